//! The application in front: which one it is, told when it changes.
//!
//! A [`FrontWatch`] knows how the desktop says it; nobody asks the desktop again and again. What it tells goes
//! into the facts that conditions see, and decides which profile applies. Where the desktop does not say it,
//! that is known, too, and said.

#[cfg(all(unix, not(target_os = "macos")))]
mod names;
pub mod simulated;
#[cfg(all(unix, not(target_os = "macos")))]
mod x11;

/// An application, as its front window and its program tell of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Application {
    /// The names that it goes by, what people would call it first: under X the class and the instance of
    /// its window, and the program. Never empty.
    pub names: Vec<String>,
    /// The title of its window; empty if it has none.
    pub title: String,
}

impl Application {
    /// The name that people would call it by.
    pub fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }
}

/// What is in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Front {
    /// This application.
    Application(Application),
    /// None: the bare desktop.
    Nothing,
    /// It is not known; why, in words.
    Unknown(String),
}

/// Who is told what is in front. It is called by the watch's own thread.
pub type Tell = Box<dyn Fn(Front) + Send>;

/// A way to know what is in front.
pub trait FrontWatch: Send {
    /// Tells what is in front, now and whenever it changes, until what is returned is dropped.
    ///
    /// # Errors
    /// When the system has no thread left. That the desktop does not say it is told: [`Front::Unknown`].
    fn start(self: Box<Self>, tell: Tell) -> std::io::Result<Box<dyn Send>>;
}

/// The way that the system has.
pub fn system() -> Box<dyn FrontWatch> {
    #[cfg(all(unix, not(target_os = "macos")))]
    let watch = x11::X11Watch;
    #[cfg(not(all(unix, not(target_os = "macos"))))]
    let watch = Nowhere;
    Box::new(watch)
}

/// A system that is not asked yet.
#[cfg(not(all(unix, not(target_os = "macos"))))]
struct Nowhere;

#[cfg(not(all(unix, not(target_os = "macos"))))]
impl FrontWatch for Nowhere {
    fn start(self: Box<Self>, tell: Tell) -> std::io::Result<Box<dyn Send>> {
        tell(Front::Unknown("which application is in front is not known on this system yet".to_owned()));
        Ok(Box::new(()))
    }
}
