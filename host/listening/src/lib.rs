//! Listening for MIDI learn: while a session runs, everything that ports receive is kept for it.
//!
//! Ports put what they receive into one bounded queue ([`Listening::put`]), bound or not, and only while a session
//! runs; the ports thread opens those that are otherwise left alone, and closes them again afterwards
//! ([`Listening::on_change`]). What is heard here goes nowhere else: no rule sees it. Each session has a [`Capture`] of its
//! own, read from a cursor, in which a control that sends without end takes no other's place.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use conductor_event::{DeviceEvent, DeviceId, Event, Nanos};
use crossbeam_channel::{Receiver, Sender};
use parking_lot::Mutex;

mod capture;

pub use capture::{Capture, Heard};

/// Events that ports may be ahead of the sessions; more are counted and left out.
const QUEUE_CAPACITY: usize = 16_384;
/// Sessions at once.
pub const MAX_SESSIONS: usize = 8;
/// Sessions of those that only the owner may begin, so that an agent takes no person's place.
const RESERVED_FOR_OWNER: usize = 2;
/// How long a session lasts that no client asks about.
pub const IDLE_TIMEOUT: Duration = Duration::from_mins(10);
/// The pause between two looks into the queue while a session runs.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Why a session can't be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// There are [`MAX_SESSIONS`] already, or all but those that are kept for the owner.
    #[error("{0} sessions are listening already; stop one of them, or wait until one has ended by itself")]
    TooMany(usize),
    /// It has ended, or never was.
    #[error("no session {0} is listening: it was stopped, or not asked about for ten minutes")]
    Unknown(u64),
    /// The system has no thread left.
    #[error("the system has no thread left to listen with")]
    NoThread,
}

/// What a port received, on its way to the sessions.
type Received = (Nanos, DeviceEvent<Event>);

/// The sessions, and the queue that ports put into.
pub struct Listening {
    on: AtomicBool,
    sender: Sender<Received>,
    receiver: Receiver<Received>,
    missed: AtomicU64,
    state: Mutex<State>,
    changed: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct State {
    sessions: BTreeMap<u64, Session>,
    last: u64,
    /// Whether a thread looks into the queue.
    is_looked_after: bool,
}

struct Session {
    capture: Capture,
    asked: Instant,
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").field("on", &self.is_on()).finish_non_exhaustive()
    }
}

impl Default for Listening {
    fn default() -> Self {
        let (sender, receiver) = crossbeam_channel::bounded(QUEUE_CAPACITY);
        let (on, missed, state, changed) =
            (AtomicBool::new(false), AtomicU64::new(0), Mutex::default(), OnceLock::new());
        Self { on, sender, receiver, missed, state, changed }
    }
}

impl Listening {
    /// Whether a session runs.
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Hands an event to the sessions, if there are any. Called by port threads: it neither waits nor allocates.
    pub fn put(&self, at: Nanos, device: &DeviceId, event: &Event) {
        if self.is_on() {
            let received = (at, DeviceEvent { device: device.clone(), event: event.clone() });
            if self.sender.try_send(received).is_err() {
                self.missed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Events that were left out, since the queue was full.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Has `changed` called whenever listening begins or ends, before the call that did it returns: by the owner of the
    /// ports, once.
    pub fn on_change(&self, changed: impl Fn() + Send + Sync + 'static) {
        let _ = self.changed.set(Box::new(changed));
    }

    /// Begins a session, and returns its number. The ports are open when it returns. `by_owner`: whether the owner of
    /// this host asks for it, for whom some places are kept.
    ///
    /// # Errors
    /// [`ListenError::TooMany`], [`ListenError::NoThread`].
    pub fn begin(self: &Arc<Self>, by_owner: bool) -> Result<u64, ListenError> {
        let (number, is_new) = {
            let mut state = self.state.lock();
            self.take_in(&mut state);
            let places = if by_owner { MAX_SESSIONS } else { MAX_SESSIONS - RESERVED_FOR_OWNER };
            if state.sessions.len() >= places {
                return Err(ListenError::TooMany(state.sessions.len()));
            }
            if !state.is_looked_after {
                self.look_after()?;
                state.is_looked_after = true;
            }
            state.last += 1;
            let number = state.last;
            state.sessions.insert(number, Session { capture: Capture::default(), asked: Instant::now() });
            (number, !self.on.swap(true, Ordering::SeqCst))
        };
        if is_new {
            self.tell();
        }
        Ok(number)
    }

    /// What a session has heard after the event with the number `after` (0 for all), oldest first, at most `limit`.
    ///
    /// # Errors
    /// [`ListenError::Unknown`].
    pub fn heard(&self, session: u64, after: u64, limit: usize) -> Result<Vec<Heard>, ListenError> {
        let mut state = self.state.lock();
        self.take_in(&mut state);
        let session = state.sessions.get_mut(&session).ok_or(ListenError::Unknown(session))?;
        session.asked = Instant::now();
        Ok(session.capture.after(after, limit))
    }

    /// Ends a session. With the last one the ports are closed.
    ///
    /// # Errors
    /// [`ListenError::Unknown`].
    pub fn end(&self, session: u64) -> Result<(), ListenError> {
        let is_over = {
            let mut state = self.state.lock();
            state.sessions.remove(&session).ok_or(ListenError::Unknown(session))?;
            self.is_over(&state)
        };
        if is_over {
            self.tell();
        }
        Ok(())
    }

    /// Takes what came out of the queue into every session.
    fn take_in(&self, state: &mut State) {
        for (at, DeviceEvent { device, event }) in self.receiver.try_iter().take(QUEUE_CAPACITY) {
            for session in state.sessions.values_mut() {
                session.capture.add(at, &device, &event);
            }
        }
    }

    /// Switches listening off if no session is left; true if it was on. The caller that removed the last one closes the
    /// ports, so this is under the same lock.
    fn is_over(&self, state: &State) -> bool {
        state.sessions.is_empty() && self.on.swap(false, Ordering::SeqCst)
    }

    fn tell(&self) {
        if let Some(changed) = self.changed.get() {
            changed();
        }
    }

    /// Starts the thread that looks into the queue, until no session is left.
    fn look_after(self: &Arc<Self>) -> Result<(), ListenError> {
        let listening = Arc::clone(self);
        let look = move || {
            let is_over = loop {
                std::thread::sleep(LOOK_INTERVAL);
                let mut state = listening.state.lock();
                listening.take_in(&mut state);
                state.sessions.retain(|_, session| session.asked.elapsed() < IDLE_TIMEOUT);
                if state.sessions.is_empty() {
                    state.is_looked_after = false;
                    break listening.is_over(&state);
                }
            };
            if is_over {
                listening.tell();
            }
        };
        let thread = std::thread::Builder::new().name("listening".into()).spawn(look);
        thread.map(drop).map_err(|_| ListenError::NoThread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_event::MidiMessage;
    use std::sync::atomic::AtomicUsize;

    fn note(note: u8) -> Event {
        Event::Midi(MidiMessage::NoteOn { channel: 0, note, velocity: 100 })
    }

    #[test]
    fn two_sessions_hear_the_same_and_end_each_for_itself() {
        let (listening, changes) = (Arc::new(Listening::default()), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&changes);
        listening.on_change(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        let pads = DeviceId::new("pads");
        listening.put(1, &pads, &note(1));
        let agent = listening.begin(false).unwrap();
        listening.put(2, &pads, &note(2));
        let person = listening.begin(true).unwrap();
        listening.put(3, &pads, &note(3));
        let heard = |session| listening.heard(session, 0, 100).unwrap().len();
        assert_eq!((heard(agent), heard(person)), (2, 1), "each from its beginning");
        listening.end(agent).unwrap();
        assert!(listening.is_on());
        assert_eq!(listening.heard(agent, 0, 1), Err(ListenError::Unknown(agent)));
        listening.put(4, &pads, &note(4));
        assert_eq!(heard(person), 2);
        listening.end(person).unwrap();
        assert!(!listening.is_on());
        assert_eq!(changes.load(Ordering::SeqCst), 2, "once on, once off");
        listening.put(5, &pads, &note(5));
        let next = listening.begin(true).unwrap();
        assert_eq!(listening.heard(next, 0, 100), Ok(Vec::new()), "nothing of before");
        listening.end(next).unwrap();
    }

    #[test]
    fn there_is_an_end_to_sessions_and_agents_leave_room_for_the_owner() {
        let listening = Arc::new(Listening::default());
        let of_agents = MAX_SESSIONS - RESERVED_FOR_OWNER;
        let all: Vec<u64> = (0..of_agents).map(|_| listening.begin(false).unwrap()).collect();
        assert_eq!(listening.begin(false), Err(ListenError::TooMany(of_agents)));
        for _ in 0..RESERVED_FOR_OWNER {
            listening.begin(true).unwrap();
        }
        assert_eq!(listening.begin(true), Err(ListenError::TooMany(MAX_SESSIONS)));
        listening.end(all[0]).unwrap();
        assert_eq!(listening.begin(false), Err(ListenError::TooMany(MAX_SESSIONS - 1)));
        assert!(listening.begin(true).is_ok());
    }
}
