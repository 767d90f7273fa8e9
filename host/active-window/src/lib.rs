//! The application in front: which one it is, told when it changes.
//!
//! A [`ActiveWindowWatch`] knows how the desktop says it, and asks again and again only where it must. What it tells
//! goes into the facts that conditions see, and decides which profile applies. Where the desktop does not say it, that
//! is known, too, and said.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

#[cfg(all(unix, not(target_os = "macos")))]
mod desktop;
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

/// An application, as its front window and its program tell of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Application {
    /// The names that it goes by, what people would call it first: under X the class and the instance of
    /// its window, and the program; under Wayland the last part of its window's application id, and the whole; under
    /// KWin all of them. Never empty.
    pub names: Vec<String>,
    /// The title of its window; empty if it has none.
    pub title: String,
}

impl Application {
    /// An application with these names, of which those that are empty or there already, whatever the case, are
    /// left out; `None` if it has no name to go by.
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

/// Called with the active window, by the watch's own thread.
pub type Tell = Box<dyn Fn(ActiveWindow) + Send>;

/// A way to know what is in front.
pub trait ActiveWindowWatch: Send {
    /// Tells what is in front, now and whenever it changes, until what is returned is dropped.
    ///
    /// # Errors
    /// When the system has no thread left. That the desktop does not say it is told: [`ActiveWindow::Unknown`].
    fn start(self: Box<Self>, tell: Tell) -> std::io::Result<Box<dyn Send>>;
}

/// The way that the system has.
pub fn system() -> Box<dyn ActiveWindowWatch> {
    #[cfg(all(unix, not(target_os = "macos")))]
    let watch = desktop::DesktopWatch;
    #[cfg(any(target_os = "macos", windows))]
    let watch = polling::AskedWatch;
    Box::new(watch)
}

/// Leaves out repetitions.
fn changes(tell: Tell) -> impl FnMut(ActiveWindow) {
    let mut told = None;
    move |front| {
        if told.as_ref() != Some(&front) {
            told = Some(front.clone());
            tell(front);
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
