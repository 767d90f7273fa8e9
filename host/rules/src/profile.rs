//! Profiles: which mode applies for which application in front.
//!
//! Control decides which profile applies, since it takes names and titles to pieces; the engine thread gets the
//! profile's mode, and changes the mode in order with everything else that does.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use conductor_engine::AppName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use conductor_active_window::ActiveWindow;
use conductor_config::{Config, Diagnostic, Diagnostics};

/// A profile, ready to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What people call it.
    pub name: Arc<str>,
    /// The mode that is active while it applies.
    pub mode: Arc<str>,
    /// The applications that it is for, as they are written.
    pub apps: Vec<String>,
    /// What the window's title contains, in lower case; empty for any.
    title: String,
}

impl Profile {
    /// Whether it applies while this is in front.
    pub fn applies(&self, active_window: &ActiveWindow) -> bool {
        let ActiveWindow::Application(application) = active_window else { return false };
        let names: Vec<AppName> = application.names.iter().map(|name| AppName::new(name)).collect();
        self.apps.iter().any(|app| names.contains(&AppName::new(app)))
            && application.title.to_lowercase().contains(&self.title)
    }
}

/// The profiles of a configuration, in its order. Each application that two of them are for is reported, with
/// its place.
pub fn compile(config: &Config, diagnostics: &mut Diagnostics) -> Vec<Arc<Profile>> {
    let source = diagnostics.source().clone();
    let mut taken: HashMap<(AppName, String), (&str, Range<usize>)> = HashMap::new();
    let mut profiles = Vec::new();
    for (index, written) in config.profiles.iter().enumerate() {
        let title = written.title.as_deref().unwrap_or_default().to_lowercase();
        for (number, app) in written.apps.iter().enumerate() {
            let path = ["profiles".into(), index.into(), "apps".into(), number.into()];
            let place = source.place(&path);
            let key = (AppName::new(app), title.clone());
            if let Some((name, first)) = taken.get(&key) {
                let message = format!("the profile {name:?} is for {app:?} already");
                let help = format!("it is named at {}; `title` can tell two apart", source.location(first.start));
                diagnostics.push(Diagnostic::error(place, message).with_help(help));
            } else {
                taken.insert(key, (&written.name, place));
            }
        }
        let (name, mode) = (written.name.as_str().into(), written.mode.as_str().into());
        profiles.push(Arc::new(Profile { name, mode, apps: written.apps.clone(), title }));
    }
    profiles
}

/// The profile that applies: of those with a title before those without, the first.
pub fn applying<'p>(profiles: &'p [Arc<Profile>], active_window: &ActiveWindow) -> Option<&'p Arc<Profile>> {
    let applies = || profiles.iter().filter(|profile| profile.applies(active_window));
    applies().find(|profile| !profile.title.is_empty()).or_else(|| applies().next())
}

/// A profile, as the API and the commands show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileView {
    /// What people call it.
    pub name: String,
    /// The mode that it makes active.
    pub mode: String,
    /// The applications that it is for.
    pub apps: Vec<String>,
    /// What the window's title contains; `None` if it may be any.
    pub title: Option<String>,
    /// Whether it applies now.
    pub applies: bool,
}

impl ProfileView {
    /// A profile, which `applies` or does not.
    pub fn new(profile: &Profile, applies: bool) -> Self {
        let Profile { name, mode, apps, title } = profile;
        let title = Some(title.clone()).filter(|title| !title.is_empty());
        Self { name: name.to_string(), mode: mode.to_string(), apps: apps.clone(), title, applies }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_active_window::Application;
    use conductor_config::parse;

    const SHOW: &str = r#"
[[modes]]
name = "Play"
[[modes]]
name = "Mix"
[[modes]]
name = "Write"
[[profiles]]
name = "Live"
apps = ["Ableton Live", "live"]
mode = "Mix"
[[profiles]]
name = "Browser"
apps = ["firefox"]
mode = "Play"
[[profiles]]
name = "Docs"
apps = ["Firefox"]
title = "Google Docs"
mode = "Write"
"#;

    fn compiled(text: &str) -> (Vec<Arc<Profile>>, String) {
        let loaded = parse(text, "c.toml").map_err(|wrong| wrong.to_string()).unwrap();
        let mut diagnostics = Diagnostics::new(loaded.source.clone());
        let profiles = compile(&loaded.config, &mut diagnostics);
        (profiles, diagnostics.render(false))
    }

    fn profiles(text: &str) -> Vec<Arc<Profile>> {
        compiled(text).0
    }

    fn active_window(names: &[&str], title: &str) -> ActiveWindow {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        ActiveWindow::Application(Application { names, title: title.to_owned() })
    }

    #[test]
    fn the_profile_that_says_most_applies() {
        let profiles = profiles(SHOW);
        let applies =
            |active_window: ActiveWindow| applying(&profiles, &active_window).map(|profile| profile.name.to_string());
        assert_eq!(applies(active_window(&["LIVE"], "")).as_deref(), Some("Live"));
        assert_eq!(applies(active_window(&["Navigator", "firefox"], "News")).as_deref(), Some("Browser"));
        assert_eq!(applies(active_window(&["firefox"], "Songs - GOOGLE docs")).as_deref(), Some("Docs"));
        assert_eq!(applies(active_window(&["xterm"], "live")), None);
        assert_eq!(applies(ActiveWindow::Nothing), None);
        assert_eq!(applies(ActiveWindow::Unknown(String::new())), None);
    }

    // CFG-2: an application belongs to one profile, unless titles tell.
    #[test]
    fn an_application_in_two_profiles_is_a_mistake_with_its_place() {
        let text = SHOW.replace("\"live\"]", "\"Firefox\"]");
        let (_, wrong) = compiled(&text);
        assert!(wrong.contains(r#"c.toml:14:9: the profile "Live" is for "firefox" already"#), "{wrong}");
        assert!(wrong.contains("it is named at c.toml:10:25; `title` can tell two apart"), "{wrong}");
        assert!(wrong.contains("1 error in c.toml"), "{wrong}");
    }
}
