//! What following a display server takes, whichever it is: whether there is one, the end of the watch, and why it reports
//! nothing.

use std::env;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use async_io::Async;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Whether the environment variables name an X display.
pub(super) fn is_x() -> bool {
    is_named("DISPLAY")
}

/// Whether the environment variables name a Wayland display.
pub(super) fn is_wayland() -> bool {
    is_named("WAYLAND_DISPLAY")
}

fn is_named(display: &str) -> bool {
    env::var_os(display).is_some_and(|name| !name.is_empty())
}

/// Signals the end of the watch.
#[derive(Debug)]
pub(super) struct End(pub(super) UnixStream);

impl End {
    /// Waits until there is something to read; returns true if the watch has ended instead.
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

    /// Waits until the watch ends.
    pub(super) async fn over(&self) -> io::Result<()> {
        // Nothing is read from it, so that it may block.
        Async::new_nonblocking(self.0.as_fd())?.readable().await
    }

    /// Waits so long; returns true if the watch has ended.
    pub(super) fn within(&self, time: Duration) -> bool {
        self.0.set_read_timeout(Some(time)).is_err() || (&self.0).read(&mut [0]).is_ok()
    }
}

/// Why a display server does not report the active window.
#[derive(Debug)]
pub(super) enum WatchError {
    /// There is no display of this kind.
    NoSuchDisplay,
    /// It does not report it; why, as text.
    Because(String),
    /// It did, and no longer does; why, as text.
    Lost(String),
}
