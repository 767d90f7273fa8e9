//! Dispatch: what rules do, and the workers that do it.
//!
//! The engine thread hands an [`Envelope`] to a worker's bounded queue and goes on; it never waits.
//! One worker owns one backend: a MIDI output ([`midi_out`]), one feature ([`feature_worker`]). A
//! slow or dead backend delays nobody else, and each worker keeps its order.
//!
//! May import: `feature` (to run instances), `ports` (to send), and of `config` the MIDI message that
//! a mapping describes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use conductor_engine::{DeviceId, Event, MidiTransform, Nanos, RuleId};

pub mod event_hook;
pub mod feature_worker;
pub mod midi_message;
pub mod midi_out;
pub mod outputs;

use feature_worker::PreparedAction;
use midi_message::MidiTemplate;
use midi_out::MidiQueue;

/// Envelopes that a worker's queue holds. Beyond that an action fails with [`Reason::QueueFull`].
pub const QUEUE: usize = 1024;

/// What a rule does, ready to be done. Cloning is cheap.
#[derive(Debug, Clone)]
pub enum Action {
    /// An action of a feature, prepared there.
    Feature(Arc<PreparedAction>),
    /// A MIDI message, made from the event.
    SendMidi {
        /// The output.
        queue: MidiQueue,
        /// The message.
        message: Arc<MidiTemplate>,
    },
    /// The event's own message, passed on.
    MidiForward {
        /// The output.
        queue: MidiQueue,
        /// What is changed on the way.
        transform: Option<Arc<MidiTransform>>,
    },
    /// Another mode, for all devices. The engine thread does it itself.
    ModeChange {
        /// The mode's name.
        mode: Arc<str>,
    },
    /// Nothing.
    Suppress,
    /// Nothing yet: no feature that is there has the action that the mapping names.
    Missing {
        /// What the mapping names.
        name: Arc<str>,
        /// Why it is not there.
        reason: Arc<str>,
    },
}

impl Action {
    /// What it is and where it goes, for people: `OscSend`, `MidiForward to synth`.
    pub fn describe(&self) -> String {
        match self {
            Self::Feature(action) => action.name().to_owned(),
            Self::SendMidi { queue, .. } => format!("SendMidi to {}", queue.target()),
            Self::MidiForward { queue, .. } => format!("MidiForward to {}", queue.target()),
            Self::ModeChange { mode } => format!("ModeChange to {mode}"),
            Self::Suppress => "Suppress".to_owned(),
            Self::Missing { name, .. } => format!("{name} (missing)"),
        }
    }
}

/// An event on its way to a worker, and which rule sent it.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// When the event reached the host.
    pub at: Nanos,
    /// Where it came from.
    pub device: DeviceId,
    /// What it is.
    pub event: Event,
    /// Position in the trigger's range.
    pub position: u16,
    /// The rule that fired, in the set of [`generation`](Self::generation).
    pub rule: RuleId,
    /// Which rule set.
    pub generation: u64,
}

/// Why an action was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The target names no port that is there.
    #[error("no port is bound to {0:?}")]
    TargetNotBound(String),
    /// The worker has more to do than its queue holds.
    #[error("its queue of {QUEUE} is full")]
    QueueFull,
    /// The worker is gone.
    #[error("it is shut down")]
    Gone,
    /// The event is no MIDI message, so it can't be forwarded as one.
    #[error("the event is no MIDI message")]
    NotMidi,
    /// No feature that is there has the action.
    #[error("{0}")]
    Missing(Arc<str>),
    /// The feature refused, failed or was stopped; or the port's driver refused.
    #[error("{0}")]
    Failed(String),
}

/// An action that was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// When the event reached the host.
    pub at: Nanos,
    /// The event's device.
    pub device: DeviceId,
    /// The rule that asked for it.
    pub rule: RuleId,
    /// Which rule set.
    pub generation: u64,
    /// The worker: a feature's or an output's name.
    pub worker: Arc<str>,
    /// Why.
    pub reason: Reason,
}

impl Failure {
    pub(crate) fn new(envelope: &Envelope, worker: &Arc<str>, reason: Reason) -> Self {
        Self {
            at: envelope.at,
            device: envelope.device.clone(),
            rule: envelope.rule,
            generation: envelope.generation,
            worker: Arc::clone(worker),
            reason,
        }
    }
}

/// What a worker has done so far.
#[derive(Debug, Default)]
pub struct WorkerCounters {
    /// Actions done.
    pub done: AtomicU64,
    /// Actions that failed, whatever the reason.
    pub failed: AtomicU64,
    /// Of those, the ones that cost the instance: traps and overruns.
    pub trapped: AtomicU64,
    /// Of those, the ones that found the queue full.
    pub queue_full: AtomicU64,
    /// Nanoseconds at work.
    pub busy: AtomicU64,
    last_failure: Mutex<Option<String>>,
}

impl WorkerCounters {
    /// Counts a failure and remembers its text. For workers; the engine thread only counts.
    pub(crate) fn failure(&self, reason: &Reason) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_string());
    }

    /// Why the last action that failed did.
    pub fn last_failure(&self) -> Option<String> {
        self.last_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
