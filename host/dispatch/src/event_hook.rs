//! The worker that passes events to one feature's hook, in batches, off the event path.
//!
//! It is a subscriber of the observer like any monitor: what it can't take in time it misses, and
//! it can't delay events.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use conductor_event::Record;
use conductor_observer::{Observation, Observed, is_private};
use conductor_package::capability;
use conductor_sandbox::bindings::{self, Event};
use conductor_sandbox::runnable::{may_watch_now, record_trap};
use conductor_sandbox::{ActionInstance, CallError, PreparedFeature};
use crossbeam_channel::RecvTimeoutError;

/// Events in one batch.
const MAX_BATCH: usize = 256;
/// How often the worker looks whether it should end.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A running worker. Dropping it ends it.
#[derive(Debug)]
pub struct EventHook {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    ended: AtomicBool,
    seen: AtomicU64,
    missed: AtomicU64,
}

impl EventHook {
    /// Starts the worker.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(feature: PreparedFeature, observed: &Observed) -> std::io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let (observations, left_out) = observed.subscribe_to(|observation| event(observation).is_some());
        let worker = Worker {
            feature,
            shared: Arc::clone(&shared),
            left_out,
            counted: 0,
            since_shown: 0,
            refused: 0,
            instance: None,
            numbers: HashMap::new(),
        };
        let name = format!("events {}", worker.feature.facts().descriptor.id.name());
        std::thread::Builder::new().name(name).spawn(move || worker.run(&observations))?;
        Ok(Self { shared })
    }

    /// Events that the hook has seen, and events that it missed.
    pub fn counts(&self) -> (u64, u64) {
        (self.shared.seen.load(Ordering::Relaxed), self.shared.missed.load(Ordering::Relaxed))
    }
}

impl Drop for EventHook {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
    }
}

/// What a hook is shown of this.
fn event(observation: &Observation) -> Option<&Record> {
    match observation {
        Observation::Event(record) if !record.is_repeated() && !is_private(record) => Some(record),
        _ => None,
    }
}

struct Worker {
    feature: PreparedFeature,
    shared: Arc<Shared>,
    /// Events that the queue had no room for.
    left_out: Arc<AtomicU64>,
    /// How many of those were counted as missed.
    counted: u64,
    /// Events that were left out since the last batch that the hook was shown.
    since_shown: u64,
    /// Batches that it did not get, because it was quarantined or too slow.
    refused: u64,
    instance: Option<ActionInstance>,
    /// Device numbers that were asked for before, by the device's key; `None` if the grant does
    /// not cover the device.
    numbers: HashMap<u64, Option<u32>>,
}

impl Worker {
    fn run(mut self, observations: &crossbeam_channel::Receiver<Observation>) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        loop {
            match observations.recv_timeout(STOP_CHECK_INTERVAL) {
                Ok(observation) => self.take(&observation, &mut batch),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while batch.len() < MAX_BATCH
                && let Ok(observation) = observations.try_recv()
            {
                self.take(&observation, &mut batch);
            }
            if self.shared.ended.load(Ordering::Acquire) || self.feature.facts().is_revoked() {
                return;
            }
            if !batch.is_empty() {
                self.show(&batch);
                batch.clear();
            }
        }
    }

    fn take(&mut self, observation: &Observation, batch: &mut Vec<Event>) {
        let Some(record) = event(observation) else { return };
        let facts = self.feature.facts();
        let number = self.numbers.entry(record.device.key()).or_insert_with(|| {
            capability::names(&facts.grants.observe_events, record.device.as_str())
                .then(|| facts.services.devices.number(&record.device))
        });
        if let Some(number) = *number {
            batch.push(bindings::record(record.at, number, &record.event, 0));
        }
    }

    fn show(&mut self, batch: &[Event]) {
        let left_out = self.left_out.load(Ordering::Relaxed);
        self.miss(left_out - self.counted);
        self.counted = left_out;
        let missed = self.since_shown;
        let shown = may_watch_now(self.feature.facts()).and_then(|()| {
            if self.instance.is_none() {
                self.instance = Some(self.feature.instantiate()?);
            }
            match &mut self.instance {
                Some(instance) => instance.events(batch, missed),
                None => Ok(()),
            }
        });
        let count = batch.len() as u64;
        match shown {
            Ok(()) => {
                self.since_shown = 0;
                self.shared.seen.fetch_add(count, Ordering::Relaxed);
            }
            Err(error) => {
                self.miss(count);
                let trapped = matches!(error, CallError::Trapped(_));
                if trapped {
                    self.instance = None;
                    record_trap(self.feature.facts());
                }
                self.refused += u64::from(!trapped);
                // The first of those that were not shown, and then every power of two: it can be many a second.
                if trapped || self.refused.is_power_of_two() {
                    tracing::warn!(feature = %self.feature.facts().descriptor.id, "its hook on events: {error}");
                }
            }
        }
    }

    fn miss(&mut self, count: u64) {
        self.since_shown += count;
        self.shared.missed.fetch_add(count, Ordering::Relaxed);
    }
}
