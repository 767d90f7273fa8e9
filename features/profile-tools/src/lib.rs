//! Tools for profiles, which select the mode for an application, and for the settings of the host.

use conductor_feature::json::{Nothing, Proposed, answer, register, remove, set, unknown};
use conductor_feature::page::{After, MAX_ENTRIES, Page};
use conductor_feature::planning::Change;
use conductor_feature::{
    Authority, ConfigChangeTools, Context, Error, Invocation, Lifecycle, Planner, PrivilegedTools, ReadOnlyTools,
    Reader, tool_registrar,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

struct ProfileTools;

impl Lifecycle for ProfileTools {
    fn install(ctx: &Context) -> Result<(), Error> {
        let tools = tool_registrar::Registrar::open(ctx)?;
        register::<After, Profiles>(&tools, "conductor_list_profiles")?;
        register::<Nothing, Settings>(&tools, "conductor_get_settings")?;
        register::<Profile, Proposed>(&tools, "conductor_create_profile")?;
        register::<Update, Proposed>(&tools, "conductor_update_profile")?;
        register::<NewSettings, Proposed>(&tools, "conductor_update_settings")?;
        register::<Named, Proposed>(&tools, "conductor_delete_profile")?;
        register::<Nothing, Proposed>(&tools, "conductor_reset_config")
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Profiles {
    profiles: Vec<Profile>,
    total: Option<usize>,
    next: Option<String>,
}

/// A profile, as the file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Profile {
    name: String,
    /// Applications: window class, or program.
    apps: Vec<String>,
    /// A part of the window's title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    mode: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Update {
    name: String,
    new_name: Option<String>,
    apps: Option<Vec<String>>,
    /// Empty: any.
    title: Option<String>,
    mode: Option<String>,
}

/// Which ports are opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum ListenMode {
    #[default]
    Configured,
    All,
}

/// The host's settings.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Settings {
    listen_mode: ListenMode,
    max_midi_ports: u16,
    ignore_ports: Vec<String>,
    probe_identity: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen_mode: ListenMode::Configured,
            max_midi_ports: 32,
            ignore_ports: Vec::new(),
            probe_identity: false,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewSettings {
    listen_mode: Option<ListenMode>,
    /// 1-256.
    max_midi_ports: Option<u16>,
    /// Names, with * and ?.
    ignore_ports: Option<Vec<String>>,
    /// Ask MIDI devices who they are.
    probe_identity: Option<bool>,
}

/// The part of a configuration that this is about. Everything else in it is skipped.
#[derive(Debug, Default, Deserialize)]
struct Shown {
    #[serde(default)]
    profiles: Vec<Profile>,
    #[serde(default)]
    advanced_settings: Settings,
    #[serde(default)]
    modes: Vec<Mode>,
}

#[derive(Debug, Deserialize)]
struct Mode {
    name: String,
}

impl Shown {
    fn of(reader: &Reader) -> Result<Self, Error> {
        Self::parse(&reader.config()?)
    }

    fn parse(text: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| Error::Failed(error.to_string()))
    }

    fn place(&self, name: &str) -> Result<usize, Error> {
        let at = self.profiles.iter().position(|profile| profile.name == name);
        at.ok_or_else(|| unknown("profile", name, self.profiles.iter().map(|profile| profile.name.as_str())))
    }

    fn has_mode(&self, mode: &str) -> Result<(), Error> {
        let mut names = self.modes.iter().map(|mode| mode.name.as_str());
        if names.clone().any(|name| name == mode) { Ok(()) } else { Err(unknown("mode", mode, names.by_ref())) }
    }
}

/// What goes when a configuration is reset: the show, in today's spelling and in older ones. Everything else stays: what
/// features and agents may do was for a person to decide, and a plan that touches it would be denied.
const SHOW: [&str; 7] = ["advanced_settings", "bindings", "device", "devices", "global_mappings", "modes", "profiles"];

/// What takes the show out of a configuration.
fn reset(text: &str) -> Result<Vec<Change>, Error> {
    let table: toml::Table = toml::from_str(text).map_err(|error| Error::Failed(error.to_string()))?;
    Ok(SHOW.into_iter().filter(|key| table.contains_key(*key)).map(remove).collect())
}

impl ReadOnlyTools for ProfileTools {
    fn call(name: String, args: String, _: &Invocation, reader: &Reader) -> Result<String, Error> {
        match name.as_str() {
            "conductor_list_profiles" => answer(&args, |After { after }| {
                let Page { entries: profiles, total, next } =
                    Page::of(Shown::of(reader)?.profiles, after, MAX_ENTRIES, |profile| profile)?;
                Ok(Profiles { profiles, total, next })
            }),
            "conductor_get_settings" => answer(&args, |Nothing {}| Ok(Shown::of(reader)?.advanced_settings)),
            _ => Err(Error::Invalid(format!("there is no tool {name}"))),
        }
    }
}

impl ConfigChangeTools for ProfileTools {
    fn call(name: String, args: String, _: &Invocation, reader: &Reader, planner: &Planner) -> Result<String, Error> {
        match name.as_str() {
            "conductor_create_profile" => answer(&args, |profile: Profile| {
                let shown = Shown::of(reader)?;
                shown.has_mode(&profile.mode)?;
                let description =
                    format!("Add the profile {}: {} for {}.", profile.name, profile.mode, profile.apps.join(", "));
                let value = serde_json::to_value(&profile).map_err(|error| Error::Failed(error.to_string()))?;
                Proposed::by(planner, &description, &[set(format!("profiles/{}", shown.profiles.len()), value)])
            }),
            "conductor_update_profile" => answer(&args, |update: Update| {
                let shown = Shown::of(reader)?;
                let at = shown.place(&update.name)?;
                update.mode.as_ref().map_or(Ok(()), |mode| shown.has_mode(mode))?;
                let place = |key: &str| format!("profiles/{at}/{key}");
                let mut changes = Vec::new();
                changes.extend(update.new_name.map(|name| set(place("name"), name)));
                changes.extend(update.apps.map(|apps| set(place("apps"), apps)));
                // There is nothing to remove from a profile that has no title.
                let had_title = shown.profiles[at].title.is_some();
                let title = update.title.filter(|title| had_title || !title.is_empty());
                let retitled = |title: String| match title.is_empty() {
                    true => remove(place("title")),
                    false => set(place("title"), title),
                };
                changes.extend(title.map(retitled));
                changes.extend(update.mode.map(|mode| set(place("mode"), mode)));
                Proposed::by(planner, &format!("Change the profile {}.", update.name), &changes)
            }),
            "conductor_update_settings" => answer(&args, |new: NewSettings| {
                let place = |key: &str| format!("advanced_settings/{key}");
                let mut changes = Vec::new();
                if let Some(mode) = new.listen_mode {
                    let value = serde_json::to_value(mode).map_err(|error| Error::Failed(error.to_string()))?;
                    changes.push(set(place("listen_mode"), value));
                }
                changes.extend(new.max_midi_ports.map(|most| set(place("max_midi_ports"), most)));
                changes.extend(new.ignore_ports.map(|ports| set(place("ignore_ports"), ports)));
                changes.extend(new.probe_identity.map(|probe| set(place("probe_identity"), probe)));
                Proposed::by(planner, "Change settings.", &changes)
            }),
            _ => Err(Error::Invalid(format!("there is no tool {name}"))),
        }
    }
}

impl PrivilegedTools for ProfileTools {
    fn call(
        name: String,
        args: String,
        _: &Invocation,
        reader: &Reader,
        planner: &Planner,
        _: &Authority,
    ) -> Result<String, Error> {
        match name.as_str() {
            "conductor_delete_profile" => answer(&args, |Named { name }| {
                let at = Shown::of(reader)?.place(&name)?;
                Proposed::by(planner, &format!("Remove the profile {name}."), &[remove(format!("profiles/{at}"))])
            }),
            "conductor_reset_config" => answer(&args, |Nothing {}| {
                let changes = reset(&reader.config()?)?;
                if changes.is_empty() {
                    return Err(Error::Invalid("there is nothing in the configuration that could be reset".into()));
                }
                let what: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
                Proposed::by(planner, &format!("Reset the configuration: remove {}.", what.join(", ")), &changes)
            }),
            _ => Err(Error::Invalid(format!("there is no tool {name}"))),
        }
    }
}

conductor_feature::feature!(ProfileTools, "../feature.toml", [read_only_tools, config_change_tools, privileged_tools]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_not_written_are_the_usual_ones() {
        let shown = Shown::parse("[advanced_settings]\nlisten_mode = 'all'").expect("TOML");
        assert_eq!(shown.advanced_settings, Settings { listen_mode: ListenMode::All, ..Settings::default() });
    }

    #[test]
    fn a_reset_leaves_what_a_person_granted() {
        let text = "[[modes]]\nname = 'a'\n[tools]\nallowed = []\n[features.x]\nenabled = false\n[device]\nname = 'p'\n[api]\n[mcp]\n";
        let paths: Vec<String> = reset(text).expect("TOML").into_iter().map(|change| change.path).collect();
        assert_eq!(paths, ["device", "modes"]);
    }
}
