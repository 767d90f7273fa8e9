//! The terminal shell: a host on one screen, by keys and by mouse.
//!
//! It is a client of the API as any other. [`run`] has the terminal until it ends. What is known and shown is one value
//! (`state`), which what the host says (`api`) and what a person does (`input`, by one table of keys) change; `view` draws
//! it, `state::layout` says where, and `session` takes the terminal and gives it back.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded, select};

use api::{Askers, FromHost};
use session::{FromTerminal, Session};
use state::layout::Size;
use state::live::TICK_INTERVAL;
use state::{Input, State};

mod api;
mod input;
#[cfg(all(test, unix))]
#[path = "../../conductor/tests/terminal/pty.rs"]
mod pty;
mod session;
mod state;
#[cfg(test)]
mod tests;
mod view;

/// The least time between two frames.
const FRAME_INTERVAL: Duration = Duration::from_millis(34);
/// What waits to be taken in, at most; a host that has more waits, and its stream says what was left out.
const QUEUE_CAPACITY: usize = 8192;
/// What is taken in before the next frame is thought of.
const MAX_BATCH: usize = 2048;
/// How long the end waits for the host to stop listening.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// How the shell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The person at the terminal ended it.
    Quit,
    /// What was received from `ending` ended it.
    Asked,
    /// The terminal is gone.
    TerminalGone,
}

/// Why there is no shell.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    /// Standard input or standard output is no terminal.
    #[error("`conductor tui` needs a terminal; `conductor status` and `conductor monitor` don't")]
    NoTerminal,
    /// The terminal can't be switched, or a thread can't be started.
    #[error("the terminal can't be used: {0}")]
    Terminal(#[from] io::Error),
}

/// Shows the host that runs in `home` until the person at the terminal, something received from `ending`, or the end of the
/// terminal ends it. Without a host it waits for one. The terminal is as before when this returns or panics.
///
/// # Errors
/// See [`TuiError`].
pub fn run(home: &Path, ending: &Receiver<()>) -> Result<End, TuiError> {
    if !session::is_there() {
        return Err(TuiError::NoTerminal);
    }
    let (width, height) = Session::size()?;
    let mut state = State::new(width, height, session::has_colour());
    let end = {
        let mut session = Session::enter()?;
        main_loop(home, ending, &mut session, &mut state)?
    };
    if let Some(listening) = state.session() {
        let (done, is_done) = bounded(1);
        let home = home.to_owned();
        thread::Builder::new().name("last word".into()).spawn(move || {
            // Without requests, the host ends a session by itself, too.
            let _ = api::stop_listening(&home, listening);
            let _ = done.send(());
        })?;
        let _ = is_done.recv_timeout(SHUTDOWN_TIMEOUT);
    }
    Ok(end)
}

fn main_loop(home: &Path, ending: &Receiver<()>, session: &mut Session, state: &mut State) -> Result<End, TuiError> {
    let (sender, terminal) = bounded(1024);
    session::listen(&sender)?;
    let (sender, host) = bounded(QUEUE_CAPACITY);
    api::follow(home, sender.clone())?;
    let askers = Askers::start(home, &sender)?;
    let started = Instant::now();
    let (mut next_tick, mut next_frame, mut is_changed) = (TICK_INTERVAL, Duration::ZERO, true);
    loop {
        let now = started.elapsed();
        let until = if is_changed { next_frame.min(next_tick) } else { next_tick };
        select! {
            recv(ending) -> _ => return Ok(End::Asked),
            recv(terminal) -> message => match message {
                Ok(message) => for message in std::iter::once(message).chain(terminal.try_iter().take(MAX_BATCH)) {
                    match message {
                        FromTerminal::Input(input) => state.input(input, started.elapsed()),
                        FromTerminal::Gone => return Ok(End::TerminalGone),
                    }
                },
                Err(_) => return Ok(End::TerminalGone),
            },
            recv(host) -> message => take(state, message.into_iter().chain(host.try_iter().take(MAX_BATCH)), started),
            default(until.saturating_sub(now)) => {}
        }
        if state.has_ended {
            return Ok(End::Quit);
        }
        let now = started.elapsed();
        if now >= next_tick {
            state.tick(now);
            // A change before keys were read first is not reported.
            if let Ok((width, height)) = Session::size()
                && state.size != (Size { width, height })
            {
                state.input(Input::Resize(width, height), now);
            }
            next_tick = now + TICK_INTERVAL;
        }
        state.take_requests().into_iter().for_each(|request| askers.ask(request));
        is_changed |= state.take_changed();
        if is_changed && now >= next_frame {
            match session.draw(state) {
                Ok(extent) => state.seen(extent),
                Err(_) => return Ok(End::TerminalGone),
            }
            is_changed = false;
            next_frame = started.elapsed() + FRAME_INTERVAL;
        }
    }
}

fn take(state: &mut State, messages: impl Iterator<Item = FromHost>, started: Instant) {
    messages.for_each(|message| state.receive(message, started.elapsed()));
}
