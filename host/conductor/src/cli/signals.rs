//! Signals: how a person, a terminal or a service manager ends a command, or asks it to read its configuration.

use crossbeam_channel::Sender;

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// SIGINT (Ctrl-C), SIGTERM, or the SIGHUP of a terminal that is gone. On Windows Ctrl-C, Ctrl-Break, and the end of the
    /// console or the session.
    End,
    /// Any other SIGHUP.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no such signal"))]
    Reload,
}

/// The exit code of a command that a signal ended, as shells have it for SIGINT.
pub(super) const INTERRUPTED: u8 = 130;

/// Sends what `word` makes of every signal from now on. Once the receiver is dropped, a signal ends the process.
#[cfg(unix)]
pub(super) fn listen<T: Send + 'static>(
    sender: Sender<T>,
    word: impl Fn(Signal) -> T + Send + 'static,
) -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    // Before the signal is taken, which ends that it is ignored.
    let ends_with_terminal = terminal::ends_processes();
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            let is_reload = signal == SIGHUP && !(ends_with_terminal && terminal::is_gone());
            if sender.send(word(if is_reload { Signal::Reload } else { Signal::End })).is_err() {
                std::process::exit(INTERRUPTED.into());
            }
        }
    })?;
    Ok(())
}

/// The same of what a console says.
#[cfg(windows)]
pub(super) fn listen<T: Send + 'static>(
    sender: Sender<T>,
    word: impl Fn(Signal) -> T + Send + 'static,
) -> std::io::Result<()> {
    let said = move || {
        if sender.send(word(Signal::End)).is_err() {
            std::process::exit(INTERRUPTED.into());
        }
    };
    ctrlc::set_handler(said).map_err(std::io::Error::other)
}

/// The controlling terminal of this process, which sends SIGHUP as it is closed.
#[cfg(unix)]
mod terminal {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::unix::fs::OpenOptionsExt as _;

    /// Whether there is one, and SIGHUP is not ignored, as `nohup` has it, so that a process ends with its terminal.
    pub(super) fn ends_processes() -> bool {
        !is_hang_up_ignored() && open().is_ok()
    }

    /// Whether there is none any more. Another reason why it can't be opened, such as too many open files, says nothing
    /// of it.
    pub(super) fn is_gone() -> bool {
        open().is_err_and(|error| matches!(error.raw_os_error(), Some(libc::ENXIO | libc::EIO)))
    }

    /// POSIX: this name is the controlling terminal of whichever process opens it.
    fn open() -> io::Result<File> {
        OpenOptions::new().read(true).custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK).open("/dev/tty")
    }

    fn is_hang_up_ignored() -> bool {
        let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: without a new action the call changes nothing, and the pointer is to what lives longer than it.
        let done = unsafe { libc::sigaction(libc::SIGHUP, std::ptr::null(), action.as_mut_ptr()) };
        // SAFETY: all zeros is a value, and the call fills it.
        let action = unsafe { action.assume_init() };
        done == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}
