//! The audit writer: the one thread of a running host that writes the audit.
//!
//! An entry about what has happened is put into a bounded queue, and the caller goes on. A caller whose entry must
//! be durable before it acts waits until it is. If the file can't be written, the host goes on: entries that are
//! dropped are counted, and their number is the first thing that is written when writing works again.

use parking_lot::{Mutex, MutexGuard};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::caller::Caller;
use crate::chain::{AuditError, Chain};
use crate::entry::{Entry, Kind};
use crate::redaction::Redaction;
use conductor_stdx::clock::Clock;

/// Entries that wait to be written.
const QUEUE_CAPACITY: usize = 4096;
/// Entries that are written at once.
const MAX_BATCH: usize = 1024;
/// How long the writer lets entries gather about what has happened, unless they are a batch before, or somebody waits.
/// Each write opens and syncs files, whatever it writes.
const GATHER_INTERVAL: Duration = Duration::from_millis(20);
/// How long callers that can wait do so for a place in the queue, and for a write.
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a place is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

enum Command {
    Note(Entry),
    Require(Entry, Sender<Result<(), AuditError>>),
    Flush(Sender<()>),
}

/// How the audit of a running host is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditStatus {
    /// Rows that this host has written.
    pub written: u64,
    /// Entries that found no place, and of which only the number will be on record.
    pub lost: u64,
    /// Why nothing can be written at the moment. Until it can, nothing is applied, undone or sent to devices.
    pub trouble: Option<String>,
}

/// The way to the record. Clones share it. Without a home nothing is kept, and nothing is refused for that.
#[derive(Debug, Clone, Default)]
pub struct Audit(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    orders: Sender<Command>,
    writer: Thread,
    clock: Clock,
    redaction: Redaction,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    written: AtomicU64,
    /// Since the host started.
    lost: AtomicU64,
    trouble: Mutex<Option<AuditError>>,
}

impl Shared {
    fn trouble(&self) -> MutexGuard<'_, Option<AuditError>> {
        self.trouble.lock()
    }
}

impl Audit {
    /// Starts to keep the audit of this home.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(home: &Path, clock: Clock) -> std::io::Result<Self> {
        let (orders, waiting) = bounded(QUEUE_CAPACITY);
        let shared = Arc::<Shared>::default();
        let writer = Writer { chain: Chain::at(home), shared: Arc::clone(&shared), told: 0 };
        let running = std::thread::Builder::new().name("audit".into()).spawn(move || writer.run(&waiting))?;
        let (writer, redaction) = (running.thread().clone(), Redaction::of_environment());
        Ok(Self(Some(Arc::new(Inner { orders, writer, clock, redaction, shared }))))
    }

    /// An audit that keeps nothing.
    pub fn none() -> Self {
        Self(None)
    }

    /// Redacts this value in every entry from now on.
    pub fn learn_secret(&self, value: &str) {
        if let Some(inner) = &self.0 {
            inner.redaction.learn(value);
        }
    }

    /// A value as it may be put on record.
    pub fn redacted(&self, mut value: Value) -> Value {
        if let Some(inner) = &self.0 {
            inner.redaction.arguments(&mut value);
        }
        value
    }

    /// Puts something that happened on record, without waiting.
    pub fn note(&self, entry: Entry) {
        let Some(inner) = &self.0 else { return };
        match inner.orders.try_send(Command::Note(inner.ready(entry))) {
            Ok(()) => inner.wake_for_batch(),
            Err(_) => drop(inner.shared.lost.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// The same, but waits for a place in the queue if there is none: a caller that asks for more than can be written
    /// down has to wait for that.
    pub async fn record(&self, entry: Entry) {
        let Some(inner) = &self.0 else { return };
        let mut order = Command::Note(inner.ready(entry));
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            order = match inner.orders.try_send(order) {
                Ok(()) => return inner.wake_for_batch(),
                Err(TrySendError::Full(order)) if Instant::now() < deadline => order,
                Err(_) => {
                    inner.shared.lost.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            };
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Puts something on record that must be there before it happens. Returns when it is on the disk.
    ///
    /// # Errors
    /// See [`AuditError`]; then it must not happen.
    pub fn require(&self, entry: Entry) -> Result<(), AuditError> {
        let Some(inner) = &self.0 else { return Ok(()) };
        let (reply, written) = bounded(1);
        let late = || AuditError::Unwritable {
            file: "audit.sqlite".into(),
            why: format!("it was not written within {WAIT_TIMEOUT:?}"),
        };
        let order = Command::Require(inner.ready(entry), reply);
        inner.orders.send_timeout(order, WAIT_TIMEOUT).map_err(|_| late())?;
        inner.writer.unpark();
        written.recv_timeout(WAIT_TIMEOUT).unwrap_or_else(|_| Err(late()))
    }

    /// How it is.
    pub fn status(&self) -> AuditStatus {
        let Some(inner) = &self.0 else { return AuditStatus::default() };
        AuditStatus {
            written: inner.shared.written.load(Ordering::Relaxed),
            lost: inner.shared.lost.load(Ordering::Relaxed),
            trouble: inner.shared.trouble().as_ref().map(ToString::to_string),
        }
    }

    /// Waits until what was noted so far is written or lost, for some seconds at most.
    pub fn flush(&self, within: Duration) {
        let Some(inner) = &self.0 else { return };
        let (reply, written) = bounded(1);
        if inner.orders.send_timeout(Command::Flush(reply), within).is_ok() {
            inner.writer.unpark();
            let _ = written.recv_timeout(within);
        }
    }
}

impl Inner {
    /// Wakes the writer, which lets entries gather, if a whole batch is there.
    fn wake_for_batch(&self) {
        if self.orders.len() >= MAX_BATCH {
            self.writer.unpark();
        }
    }

    fn ready(&self, mut entry: Entry) -> Entry {
        entry.at = self.clock.wall();
        entry.subject = self.redaction.text(entry.subject);
        for value in entry.detail.values_mut() {
            if let Value::String(text) = value {
                *text = self.redaction.text(std::mem::take(text));
            }
        }
        entry
    }
}

struct Writer {
    chain: Chain,
    shared: Arc<Shared>,
    /// How many of those that were lost are on record as a number.
    told: u64,
}

impl Writer {
    fn run(mut self, waiting: &Receiver<Command>) {
        while let Ok(first) = waiting.recv() {
            if matches!(first, Command::Note(_)) && waiting.len() < MAX_BATCH {
                std::thread::park_timeout(GATHER_INTERVAL);
            }
            let (mut entries, mut replies, mut flushed) = (Vec::new(), Vec::new(), Vec::new());
            for order in std::iter::once(first).chain(waiting.try_iter().take(MAX_BATCH - 1)) {
                match order {
                    Command::Note(entry) => entries.push(entry),
                    Command::Require(entry, reply) => {
                        entries.push(entry);
                        replies.push(reply);
                    }
                    Command::Flush(reply) => flushed.push(reply),
                }
            }
            let result = if entries.is_empty() { Ok(()) } else { self.write(entries) };
            // The caller may have stopped waiting.
            for reply in replies {
                let _ = reply.send(result.clone());
            }
            for reply in flushed {
                let _ = reply.send(());
            }
        }
    }

    fn write(&mut self, mut entries: Vec<Entry>) -> Result<(), AuditError> {
        let lost = self.shared.lost.load(Ordering::Relaxed);
        let count = entries.len() as u64;
        if lost > self.told {
            let missed = Entry::new(Kind::Audit, "missed", &Caller::host(), "audit").with("entries", lost - self.told);
            entries.insert(0, missed);
        }
        let result = self.chain.append(&entries);
        let mut trouble = self.shared.trouble();
        match &result {
            Ok(()) => {
                self.told = lost;
                self.shared.written.fetch_add(entries.len() as u64, Ordering::Relaxed);
                if trouble.take().is_some() {
                    tracing::info!("the audit can be written again");
                }
            }
            Err(error) => {
                self.shared.lost.fetch_add(count, Ordering::Relaxed);
                if trouble.as_ref() != Some(error) {
                    tracing::error!("{error}");
                }
                *trouble = Some(error.clone());
            }
        }
        result
    }
}
