//! The list of turns under way, by their conversations.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

/// How long a stop waits for turns to be ended on the disk.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Turns under way.
#[derive(Debug, Default)]
pub(crate) struct Running {
    pub(crate) turns: Mutex<HashMap<u64, Place>>,
    /// Notified whenever a turn has left the list.
    pub(crate) ended: Condvar,
    /// Whether no more begin.
    pub(crate) is_stopped: AtomicBool,
}

/// A turn in the list of those under way.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) cancelled: CancellationToken,
    /// Whether its last event is being kept. A client that has seen that event may say the next thing at once, which
    /// then waits for the rest of the turn's work instead of being rejected.
    pub(crate) ends: bool,
}

impl Running {
    /// Marks a turn whose last event is about to be shown.
    pub(crate) fn mark_ending(&self, id: u64) {
        if let Some(place) = self.turns.lock().get_mut(&id) {
            place.ends = true;
        }
    }

    /// The list, once no turn of this conversation is about to end; two seconds at most.
    pub(crate) fn settled(&self, id: u64) -> MutexGuard<'_, HashMap<u64, Place>> {
        let mut turns = self.turns.lock();
        let deadline = Instant::now() + STOP_TIMEOUT;
        while turns.get(&id).is_some_and(|place| place.ends) && !self.ended.wait_until(&mut turns, deadline).timed_out()
        {
        }
        turns
    }
}

/// Takes a turn off the list when it has ended, however it did.
pub(crate) struct Listed(pub(crate) Arc<Running>, pub(crate) u64);

impl Drop for Listed {
    fn drop(&mut self) {
        self.0.turns.lock().remove(&self.1);
        self.0.ended.notify_all();
    }
}
