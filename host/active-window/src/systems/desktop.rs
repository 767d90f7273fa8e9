//! The active window on a Unix desktop: the thread that follows the display server that reports it.
//!
//! Wayland's compositor is tried first, since under Wayland an X server only knows the applications that use X.
//! A display that is lost is looked for again.

use std::convert::Infallible;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use super::display::{End, WatchError, is_wayland, is_x};
use super::{ActiveWindow, ActiveWindowWatch, Callback, changes, kwin, wayland, x11};

/// The pause before a display that is missing is looked for again.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// How long the thread may take to unsubscribe from a display server.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Watches the active window of the desktop that `DISPLAY` or `WAYLAND_DISPLAY` names.
#[derive(Debug)]
pub(super) struct DesktopWatch;

impl ActiveWindowWatch for DesktopWatch {
    fn start(self: Box<Self>, notify: Callback) -> io::Result<Box<dyn Send>> {
        if !is_x() && !is_wayland() {
            let reason = "there is no desktop (neither DISPLAY nor WAYLAND_DISPLAY is set) that could report which \
                          application is in front";
            notify(ActiveWindow::Unknown(reason.to_owned()));
            return Ok(Box::new(()));
        }
        let (watching, end) = UnixStream::pair()?;
        let (ended, has_ended) = mpsc::channel();
        std::thread::Builder::new().name("front".into()).spawn(move || {
            watch(&End(end), notify);
            drop(ended);
        })?;
        Ok(Box::new(Watching { watching: Some(watching), has_ended }))
    }
}

/// The thread that watches, until this is dropped.
#[derive(Debug)]
struct Watching {
    /// Closing it ends the watch.
    watching: Option<UnixStream>,
    /// Disconnected when the thread has ended.
    has_ended: Receiver<Infallible>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        drop(self.watching.take());
        // It unsubscribes; the timeout keeps a display server that hangs from blocking the caller.
        let _ = self.has_ended.recv_timeout(CLOSE_TIMEOUT);
    }
}

fn watch(end: &End, notify: Callback) {
    let mut notify = changes(notify);
    loop {
        let mut reasons = Vec::new();
        for follow in [wayland::follow, kwin::follow, x11::follow] {
            match follow(end, &mut notify) {
                Ok(()) => return,
                Err(WatchError::NoSuchDisplay) => {}
                Err(WatchError::Because(reason)) => reasons.push(reason),
                // It may come back, and knows more than those that are asked after it.
                Err(WatchError::Lost(reason)) => {
                    reasons.push(reason);
                    break;
                }
            }
        }
        notify(ActiveWindow::Unknown(reasons.join("; ")));
        if end.within(RETRY_INTERVAL) {
            return;
        }
    }
}
