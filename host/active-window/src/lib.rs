//! The active window: which application is in front, and a callback when that changes.
//!
//! An [`ActiveWindowWatch`] gets it from the desktop, by notifications if the system has them and by polling if not.
//! It becomes part of the environment that conditions read, and decides which profile applies. If the desktop does
//! not report it, the reason is reported instead.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

#[cfg(all(unix, not(target_os = "macos")))]
mod desktop;
#[cfg(all(unix, not(target_os = "macos")))]
mod display;
#[cfg(all(unix, not(target_os = "macos")))]
mod kwin;
#[cfg(all(unix, not(target_os = "macos")))]
pub mod names;
#[cfg(any(target_os = "macos", windows))]
mod polling;
pub mod simulated;
#[cfg(all(unix, not(target_os = "macos")))]
mod wayland;
#[cfg(all(unix, not(target_os = "macos")))]
mod x11;

/// An application, by its front window and its program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Application {
    /// Its names, the most usual first: under X the class and the instance of
    /// its window, and the program; under Wayland the last part of its window's application id, and the whole; under
    /// KWin all of them. Never empty.
    pub names: Vec<String>,
    /// The title of its window; empty if it has none.
    pub title: String,
}

impl Application {
    /// An application with these names, without empty ones and repetitions (letter case does not count); `None` if
    /// that leaves no name.
    pub fn named(names: impl IntoIterator<Item = String>, title: String) -> Option<Self> {
        let mut distinct: Vec<String> = Vec::new();
        for name in names {
            if !name.is_empty() && !distinct.iter().any(|other| other.to_lowercase() == name.to_lowercase()) {
                distinct.push(name);
            }
        }
        (!distinct.is_empty()).then_some(Self { names: distinct, title })
    }

    /// The name that people would call it by.
    pub fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }
}

/// What is in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActiveWindow {
    /// This application.
    Application(Application),
    /// None: the bare desktop.
    Nothing,
    /// It is not known; why, as text.
    Unknown(String),
}

impl From<Option<Application>> for ActiveWindow {
    fn from(application: Option<Application>) -> Self {
        application.map_or(Self::Nothing, Self::Application)
    }
}

/// A callback that gets the active window, on the watch's own thread.
pub type Callback = Box<dyn Fn(ActiveWindow) + Send>;

/// A source of the active window.
pub trait ActiveWindowWatch: Send {
    /// Calls `notify` with the active window, now and whenever it changes, until the returned guard is dropped.
    ///
    /// # Errors
    /// If the system has no thread left. A desktop that does not report it is no error: [`ActiveWindow::Unknown`].
    fn start(self: Box<Self>, notify: Callback) -> std::io::Result<Box<dyn Send>>;
}

/// The source for this system.
pub fn system() -> Box<dyn ActiveWindowWatch> {
    #[cfg(all(unix, not(target_os = "macos")))]
    let watch = desktop::DesktopWatch;
    #[cfg(any(target_os = "macos", windows))]
    let watch = polling::PollingWatch;
    Box::new(watch)
}

/// Leaves out repetitions.
fn changes(notify: Callback) -> impl FnMut(ActiveWindow) {
    let mut last = None;
    move |front| {
        if last.as_ref() != Some(&front) {
            last = Some(front.clone());
            notify(front);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_once() {
        let names = ["XTerm", "xterm", "", "bash", "BASH"].map(str::to_owned);
        assert_eq!(Application::named(names, String::new()).unwrap().names, ["XTerm", "bash"]);
        assert_eq!(Application::named([String::new()], "a title".to_owned()), None);
    }
}
