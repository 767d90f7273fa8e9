//! The application in front on a Unix desktop: the thread that follows whichever display server tells it.
//!
//! Wayland's compositor is asked first, since under Wayland an X server knows of the applications that use X
//! and of no others. A display that is lost is looked for again.

use std::convert::Infallible;
use std::env;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use async_io::Async;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::{ActiveWindow, ActiveWindowWatch, Tell, changes, kwin, wayland, x11};

/// How long it is until a display that is not there is looked for again.
const AGAIN: Duration = Duration::from_secs(5);

/// How long a display server may take to hear that nobody wants to know any more.
const FAREWELL: Duration = Duration::from_secs(1);

/// What is in front on the desktop that the facts names.
#[derive(Debug)]
pub(super) struct DesktopWatch;

impl ActiveWindowWatch for DesktopWatch {
    fn start(self: Box<Self>, tell: Tell) -> io::Result<Box<dyn Send>> {
        if !is_x() && !is_wayland() {
            let reason = "there is no desktop (neither DISPLAY nor WAYLAND_DISPLAY is set) that could tell which \
                          application is in front";
            tell(ActiveWindow::Unknown(reason.to_owned()));
            return Ok(Box::new(()));
        }
        let (watching, end) = UnixStream::pair()?;
        let (ended, has_ended) = mpsc::channel();
        std::thread::Builder::new().name("front".into()).spawn(move || {
            watch(&End(end), tell);
            drop(ended);
        })?;
        Ok(Box::new(Watching { watching: Some(watching), has_ended }))
    }
}

/// The thread that watches, until this is dropped.
#[derive(Debug)]
struct Watching {
    /// The other end feels it when it is closed.
    watching: Option<UnixStream>,
    /// Nothing comes, but its end.
    has_ended: Receiver<Infallible>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        drop(self.watching.take());
        // It has to say goodbye, which a display server that hangs must not make anybody wait for.
        let _ = self.has_ended.recv_timeout(FAREWELL);
    }
}

/// Whether the facts names an X display.
pub(super) fn is_x() -> bool {
    is_named("DISPLAY")
}

/// Whether the facts names a Wayland display.
pub(super) fn is_wayland() -> bool {
    is_named("WAYLAND_DISPLAY")
}

fn is_named(display: &str) -> bool {
    env::var_os(display).is_some_and(|name| !name.is_empty())
}

/// Tells when nobody wants to know any more.
#[derive(Debug)]
pub(super) struct End(UnixStream);

impl End {
    /// Waits until there is something to read, and says whether it is over instead.
    pub(super) fn or_readable(&self, server: BorrowedFd<'_>) -> io::Result<bool> {
        let mut both = [PollFd::new(&self.0, PollFlags::IN), PollFd::from_borrowed_fd(server, PollFlags::IN)];
        loop {
            match poll(&mut both, None) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(!both[0].revents().is_empty()),
            }
        }
    }

    /// Waits until it is over.
    pub(super) async fn over(&self) -> io::Result<()> {
        // Nothing is read from it, so that it may block.
        Async::new_nonblocking(self.0.as_fd())?.readable().await
    }

    /// Waits so long, and says whether it is over.
    fn within(&self, time: Duration) -> bool {
        self.0.set_read_timeout(Some(time)).is_err() || (&self.0).read(&mut [0]).is_ok()
    }
}

fn watch(end: &End, tell: Tell) {
    let mut tell = changes(tell);
    loop {
        let mut reasons = Vec::new();
        for follow in [wayland::follow, kwin::follow, x11::follow] {
            match follow(end, &mut tell) {
                Ok(()) => return,
                Err(NotTold::NoSuchDisplay) => {}
                Err(NotTold::Because(reason)) => reasons.push(reason),
                // It may come back, and knows more than those that are asked after it.
                Err(NotTold::Lost(reason)) => {
                    reasons.push(reason);
                    break;
                }
            }
        }
        tell(ActiveWindow::Unknown(reasons.join("; ")));
        if end.within(AGAIN) {
            return;
        }
    }
}

/// Why a display server does not tell what is in front.
#[derive(Debug)]
pub(super) enum NotTold {
    /// There is none of its kind.
    NoSuchDisplay,
    /// It does not tell it; why, as text.
    Because(String),
    /// It did, and does so no longer; why, as text.
    Lost(String),
}
