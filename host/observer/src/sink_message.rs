//! Messages of features: diagnostics, alerts, notifications, and the queue that they come through.

use parking_lot::Mutex;
use std::collections::BTreeMap;
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
    /// Notifications of this feature that were left out right before it; 0 for other sinks.
    pub left_out: u64,
    /// The number under which the observer has kept it; `None` if it is no notification, or is not kept.
    pub sequence: Option<u64>,
}

/// The sending end, for features.
#[derive(Debug, Clone)]
pub struct SinkQueue {
    sender: Sender<SinkMessage>,
    dropped: Arc<AtomicU64>,
    taken: Arc<AtomicU64>,
    /// The notifications of each feature that were left out since its last one.
    left_out: Arc<Mutex<BTreeMap<FeatureId, Arc<AtomicU64>>>>,
}

impl SinkQueue {
    /// A queue and its receiving end.
    pub fn new() -> (Self, Receiver<SinkMessage>) {
        let (sender, receiver) = crossbeam_channel::bounded(QUEUE_CAPACITY);
        (Self { sender, dropped: Arc::default(), taken: Arc::default(), left_out: Arc::default() }, receiver)
    }

    /// Messages that were dropped so far: over the rate limit, or the queue was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Messages that were not left out so far.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Acquire)
    }

    /// Puts a message in without waiting; one that does not fit is counted. Returns whether it fitted.
    pub fn put(&self, message: SinkMessage) -> bool {
        self.taken.fetch_add(1, Ordering::AcqRel);
        let has_room = self.sender.try_send(message).is_ok();
        if !has_room {
            self.taken.fetch_sub(1, Ordering::AcqRel);
            self.leave_out();
        }
        has_room
    }

    /// The count of this feature's notifications that were left out since its last one, for the feature's sinks.
    pub fn left_out_of(&self, feature: &FeatureId) -> Arc<AtomicU64> {
        let mut all = self.left_out.lock();
        Arc::clone(all.entry(feature.clone()).or_default())
    }

    /// The features of which notifications were left out since their last one, and how many.
    pub fn left_out(&self) -> BTreeMap<FeatureId, u64> {
        let all = self.left_out.lock();
        let counts = all.iter().map(|(feature, count)| (feature.clone(), count.load(Ordering::Relaxed)));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// Counts a message that is left out.
    pub fn leave_out(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}
