//! Messages of features: diagnostics, alerts, notifications, and the queue that they come through.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::{Receiver, Sender};

use conductor_package::FeatureId;

/// Messages that the queue holds before it refuses more.
const QUEUE_CAPACITY: usize = 256;
/// What kind of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkKind {
    /// An operational record, with its severity.
    Diagnostic(Severity),
    /// For the person, passing.
    Alert,
    /// For a model, durable.
    Notification,
}

/// How much a diagnostic matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Good to know.
    Info,
    /// Something was skipped or bent.
    Warning,
    /// Something failed.
    Error,
}

/// A message from a feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkMessage {
    /// Who said it.
    pub feature: FeatureId,
    /// Which sink.
    pub kind: SinkKind,
    /// What, cut to the sink's length, without control characters.
    pub text: String,
}

/// The sending end, for features.
#[derive(Debug, Clone)]
pub struct SinkQueue {
    sender: Sender<SinkMessage>,
    dropped: Arc<AtomicU64>,
    taken: Arc<AtomicU64>,
}

impl SinkQueue {
    /// A queue and its receiving end.
    pub fn new() -> (Self, Receiver<SinkMessage>) {
        let (sender, receiver) = crossbeam_channel::bounded(QUEUE_CAPACITY);
        (Self { sender, dropped: Arc::default(), taken: Arc::default() }, receiver)
    }

    /// Messages that were dropped so far: over the rate limit, or the queue was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Messages that were not left out so far.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Acquire)
    }

    /// Puts a message in without waiting; one that does not fit is counted.
    pub fn put(&self, message: SinkMessage) {
        self.taken.fetch_add(1, Ordering::AcqRel);
        if self.sender.try_send(message).is_err() {
            self.taken.fetch_sub(1, Ordering::AcqRel);
            self.leave_out();
        }
    }

    /// Counts a message that is left out.
    pub fn leave_out(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}
