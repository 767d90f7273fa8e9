//! The active window of this system's desktop: by notifications on a Unix desktop, by polling on macOS and Windows.

#[cfg(all(unix, not(target_os = "macos")))]
mod desktop;
#[cfg(all(unix, not(target_os = "macos")))]
mod display;
#[cfg(all(unix, not(target_os = "macos")))]
mod kwin;
#[cfg(all(unix, not(target_os = "macos")))]
mod names;
#[cfg(any(target_os = "macos", windows))]
mod polling;
#[cfg(all(unix, not(target_os = "macos")))]
mod wayland;
#[cfg(all(unix, not(target_os = "macos")))]
mod x11;

use super::{ActiveWindow, ActiveWindowWatch, Application, Callback};

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
