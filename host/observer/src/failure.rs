//! Failures: actions that were not done, and why.

use std::sync::Arc;
use std::time::Duration;

use conductor_event::{DeviceId, Nanos, RuleId};

/// Envelopes that a worker's queue holds. Beyond that an action fails with [`Reason::QueueFull`].
///
/// At 12 000 events a second, a worker that gets no processor for 200 ms falls 2400 behind; this is 256 ms. A worker is
/// started with its first use, so only those in use have a queue.
pub const QUEUE_CAPACITY: usize = 3072;

/// Why an action was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The target names no present port.
    #[error("no port is bound to {0:?}")]
    TargetNotBound(String),
    /// The worker has more to do than its queue holds.
    #[error("its queue of {QUEUE_CAPACITY} is full")]
    QueueFull,
    /// The worker is gone.
    #[error("it is shut down")]
    Gone,
    /// It took longer than it may.
    #[error("it took longer than its {} ms", .0.as_millis())]
    Timeout(Duration),
    /// The system or a grant forbids it.
    #[error("{0}")]
    Denied(String),
    /// What it needs is missing now: no display.
    #[error("{0}")]
    Unavailable(String),
    /// The limit of those under way is reached.
    #[error("{0} of them are under way already")]
    TooMany(usize),
    /// The event is no MIDI message, so it can't be forwarded as one.
    #[error("the event is no MIDI message")]
    NotMidi,
    /// No installed feature has the action.
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
