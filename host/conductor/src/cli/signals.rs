//! Signals: how a person or a service manager ends a command, or asks it to read its configuration.

use crossbeam_channel::Sender;

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// SIGINT (Ctrl-C) or SIGTERM.
    End,
    /// SIGHUP.
    HangUp,
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
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            if sender.send(word(if signal == SIGHUP { Signal::HangUp } else { Signal::End })).is_err() {
                std::process::exit(INTERRUPTED.into());
            }
        }
    })?;
    Ok(())
}

/// Without signals the process is simply ended.
#[cfg(not(unix))]
pub(super) fn listen<T: Send + 'static>(
    sender: Sender<T>,
    _word: impl Fn(Signal) -> T + Send + 'static,
) -> std::io::Result<()> {
    // The channel must stay open all the same.
    std::mem::forget(sender);
    Ok(())
}
