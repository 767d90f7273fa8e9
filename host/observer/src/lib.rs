//! The observer: an event log and publish-subscribe, off the event path.
//!
//! The engine, workers and ports put observations into one bounded queue and go on. The observer's thread is not woken for
//! each of them: while there are any it looks every few milliseconds, and only when it has found none for a while it
//! sleeps until the next one wakes it. It takes them out in batches, keeps the flight recorder, logs what a person
//! should know of, passes everything on to subscribers (the demo, learn), and numbers it for clients of the
//! event stream ([`history`]).

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::thread::JoinHandle;
use std::time::Duration;

use conductor_event::{Cause, FlightRecorder, Record};
use crossbeam_channel::{Receiver, Sender, TryRecvError, TrySendError};
use parking_lot::{Mutex, MutexGuard};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

pub mod failure;
pub mod history;
pub mod light;
pub mod notification_log;
pub mod sink_message;

use self::failure::Failure;
use self::history::History;
use self::notification_log::NotificationLog;
use self::sink_message::{Severity, SinkKind, SinkMessage};
use conductor_stdx::plural::plural_u64;

/// Observations that the queue holds before more are left out and counted.
const QUEUE_CAPACITY: usize = 16_384;
/// Records that the flight recorder keeps.
pub const RECORDER_CAPACITY: usize = 4096;
/// Observations that one subscriber may be behind before it misses some.
const SUBSCRIBER_CAPACITY: usize = 8192;
/// How long the observer lets observations gather before it looks again.
const BATCH_INTERVAL: Duration = Duration::from_millis(2);
/// So often it finds nothing, each time after one interval more, before it sleeps until it is woken.
const EMPTY_LOOKS: u32 = 4;

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Observation {
    /// An event, and the rules that fired for it.
    Event(Record),
    /// An action that was not done.
    Failure(Failure),
    /// Another mode is active.
    Mode(Arc<str>),
    /// A port was opened or closed, as text.
    Port(String),
    /// A port or a backend can't be had, as text.
    PortTrouble(String),
    /// Lights of this output show something else than when they were last looked at. Once after each look.
    Lights(Arc<str>),
    /// A feature says something.
    Sink(SinkMessage),
    /// Something became of a plan.
    Plan(PlanChange),
    /// The show was locked or unlocked.
    Lock(LockChange),
    /// Something happened in a conversation with a model.
    Chat(ChatChange),
    /// A model answers again, or gives no answers any more.
    Model(ModelChange),
    /// A new rule set is in use, as text.
    Reload(String),
    /// A new configuration was refused, or an upgrade taken back, as text.
    Refused(String),
}

/// Whether an event is for the owner alone: a key that is typed (see [`Event::is_typed`]), if no rule asks for it.
///
/// [`Event::is_typed`]: conductor_event::Event::is_typed
pub fn is_private(record: &Record) -> bool {
    record.event.is_typed() && record.fired.ids().is_empty()
}

/// That the show was locked or unlocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockChange {
    /// Whether it is locked now.
    pub locked: bool,
    /// Who did it, as the audit names callers.
    pub by: String,
}

/// What happened in a conversation. It is for the home's owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatChange {
    /// The conversation.
    pub conversation: u64,
    /// The number of the event in it.
    pub number: u64,
    /// The event as JSON, without what is too long for a stream.
    pub event: Arc<str>,
}

/// A change of a model's health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChange {
    /// Its name under `[models]`.
    pub model: String,
    /// Why it gives no answer. `None` if it answers.
    pub error: Option<String>,
}

/// A change of a plan's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanChange {
    /// The change.
    pub step: PlanStep,
    /// The plan; `None` if a revision was undone or redone.
    pub plan: Option<String>,
    /// Who proposed it, or who decided.
    pub who: String,
    /// What it does, as its proposer describes it; empty if that is no longer known.
    pub description: String,
}

/// Steps in the life of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanStep {
    /// It waits for a person.
    Proposed,
    /// A person had it applied.
    Applied,
    /// It was taken off the list.
    Rejected,
    /// It was not decided in time.
    Expired,
    /// It was taken back.
    Undone,
    /// It was applied again.
    Redone,
}

/// The handle through which observations are reported. Clones share it.
#[derive(Debug, Clone)]
pub struct Observer {
    sender: Sender<Observation>,
    missed: Arc<AtomicU64>,
    /// Whether the thread sleeps until it is woken.
    sleeps: Arc<AtomicBool>,
    waker: Sender<()>,
}

impl Observer {
    /// Puts an observation in without waiting.
    pub fn put(&self, observation: Observation) {
        self.put_quietly(observation);
        self.wake();
    }

    /// Puts an observation in without waiting. It may lie there until [`wake`](Self::wake) is called: for the event path,
    /// where that comes after everything else.
    pub fn put_quietly(&self, observation: Observation) {
        if self.sender.try_send(observation).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Wakes the observer's thread, if it would not look by itself.
    pub fn wake(&self) {
        // What was put in before this is there for the thread before it can be seen to sleep; the other half is there.
        fence(Ordering::SeqCst);
        if self.sleeps.load(Ordering::Relaxed) && self.sleeps.swap(false, Ordering::SeqCst) {
            let _ = self.waker.try_send(());
        }
    }

    /// Observations that were left out because the queue was full.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

/// What the observer has gathered.
#[derive(Debug, Clone)]
pub struct Observed {
    inner: Arc<Mutex<Inner>>,
    history: History,
    notified: watch::Receiver<u64>,
}

#[derive(Debug)]
struct Inner {
    recorder: FlightRecorder,
    /// Events in it, and those that fell out.
    events: u64,
    mode: Option<Arc<str>>,
    failures: u64,
    last_failure: Option<Failure>,
    /// Messages of features that were passed on.
    messages_passed: u64,
    subscribers: Vec<Subscriber>,
}

#[derive(Debug)]
struct Subscriber {
    sender: Sender<Observation>,
    wants: fn(&Observation) -> bool,
    missed: Arc<AtomicU64>,
}

impl Observed {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// The last observations, and those that come.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The number of the last notification that is kept, and a way to wait for more: from the time of this call on.
    pub fn notified(&self) -> watch::Receiver<u64> {
        let mut notified = self.notified.clone();
        notified.mark_unchanged();
        notified
    }

    /// Subscribes to everything from now on, until the receiver is dropped. A subscriber that falls too far
    /// behind misses observations.
    pub fn subscribe(&self) -> Receiver<Observation> {
        self.subscribe_to(|_| true).0
    }

    /// Subscribes to the observations that `wants` matches; others do not count against the subscriber's queue. Also
    /// returns the number of matching observations that it has missed so far.
    pub fn subscribe_to(&self, wants: fn(&Observation) -> bool) -> (Receiver<Observation>, Arc<AtomicU64>) {
        let (sender, receiver) = crossbeam_channel::bounded(SUBSCRIBER_CAPACITY);
        let missed = Arc::<AtomicU64>::default();
        self.inner().subscribers.push(Subscriber { sender, wants, missed: Arc::clone(&missed) });
        (receiver, missed)
    }

    /// Sends everything from now on there as well.
    pub fn subscriber(&self, sender: Sender<Observation>) {
        self.inner().subscribers.push(Subscriber { sender, wants: |_| true, missed: Arc::default() });
    }

    /// Messages of features that were passed on so far.
    pub fn messages_passed(&self) -> u64 {
        self.inner().messages_passed
    }

    /// Events recorded so far, without the gestures that the engine finds in them.
    pub fn recorded(&self) -> u64 {
        self.inner().events
    }

    /// The last events, oldest first.
    pub fn records(&self) -> Vec<Record> {
        self.inner().recorder.iter().cloned().collect()
    }

    /// The last of these that features and agents may see, at most `limit`, oldest first. See [`is_private`].
    pub fn public_records(&self, limit: usize) -> Vec<Record> {
        let mut records: Vec<Record> = self.records();
        records.retain(|record| !is_private(record));
        records.split_off(records.len().saturating_sub(limit))
    }

    /// The mode that was last changed to; `None` before the first change.
    pub fn mode(&self) -> Option<Arc<str>> {
        self.inner().mode.clone()
    }

    /// How many actions failed, and the last one.
    pub fn failures(&self) -> (u64, Option<Failure>) {
        let inner = self.inner();
        (inner.failures, inner.last_failure.clone())
    }
}

/// Starts the observer's thread; `sinks` is what features say, and `notifications` where the durable
/// part of it goes. It ends when every [`Observer`] is dropped.
///
/// # Errors
/// When the system has no thread left.
pub fn start(
    sinks: Receiver<SinkMessage>,
    mut notifications: Option<NotificationLog>,
) -> std::io::Result<(Observer, Observed, JoinHandle<()>)> {
    let (sender, receiver) = crossbeam_channel::bounded(QUEUE_CAPACITY);
    let inner = Inner {
        recorder: FlightRecorder::new(RECORDER_CAPACITY),
        events: 0,
        mode: None,
        failures: 0,
        last_failure: None,
        messages_passed: 0,
        subscribers: Vec::new(),
    };
    let notified = notifications.as_ref().map_or_else(|| watch::channel(0).1, NotificationLog::last);
    let observed = Observed { inner: Arc::new(Mutex::new(inner)), history: History::default(), notified };
    let (shared, missed) = (observed.clone(), Arc::<AtomicU64>::default());
    let left_out = Arc::clone(&missed);
    let (waker, woken) = crossbeam_channel::bounded(1);
    let sleeps = Arc::<AtomicBool>::default();
    let mut source = Source { receiver, sinks: Some(sinks), woken, sleeps: Arc::clone(&sleeps) };
    let thread = std::thread::Builder::new().name("observer".into()).spawn(move || {
        let (mut told, mut batch) = (0, Vec::new());
        while source.gather(&mut batch) {
            // First, so that a notification can be read once it is reported; without the lock, since it waits for the disk.
            if let Some(log) = &mut notifications {
                batch.iter_mut().for_each(|observation| keep_notification(log, observation));
            }
            {
                let mut inner = shared.inner();
                batch.iter().for_each(|observation| inner.take(observation));
            }
            shared.history.put(|ring| {
                let missed = left_out.load(Ordering::Relaxed);
                ring.lose(missed - told);
                told = missed;
                batch.drain(..).for_each(|observation| ring.keep(observation));
            });
        }
    })?;
    Ok((Observer { sender, missed, sleeps, waker }, observed, thread))
}

/// Where the observer's thread takes observations from.
struct Source {
    receiver: Receiver<Observation>,
    /// `None` if every feature is gone.
    sinks: Option<Receiver<SinkMessage>>,
    woken: Receiver<()>,
    sleeps: Arc<AtomicBool>,
}

impl Source {
    /// Waits for observations and takes them out. False at the end.
    fn gather(&mut self, batch: &mut Vec<Observation>) -> bool {
        let mut looks = 0;
        loop {
            std::thread::sleep(BATCH_INTERVAL * (1 + looks));
            batch.extend(self.receiver.try_iter().take(QUEUE_CAPACITY));
            batch.extend(self.sinks.iter().flat_map(Receiver::try_iter).map(Observation::Sink));
            if !batch.is_empty() {
                return true;
            }
            match self.receiver.try_recv() {
                Ok(observation) => batch.push(observation),
                Err(TryRecvError::Disconnected) => return false,
                Err(TryRecvError::Empty) if looks < EMPTY_LOOKS => looks += 1,
                Err(TryRecvError::Empty) => {
                    looks = 0;
                    self.sleep(batch);
                }
            }
        }
    }

    /// Sleeps until there is something, or no observer any more.
    fn sleep(&mut self, batch: &mut Vec<Observation>) {
        self.sleeps.store(true, Ordering::SeqCst);
        // One who puts something in sees that this sleeps, or it is seen here.
        fence(Ordering::SeqCst);
        if self.receiver.is_empty() {
            match &self.sinks {
                Some(sinks) => crossbeam_channel::select! {
                    recv(self.woken) -> _ => {}
                    recv(sinks) -> message => match message {
                        Ok(message) => batch.push(Observation::Sink(message)),
                        Err(_) => self.sinks = None,
                    },
                },
                None => drop(self.woken.recv()),
            }
        }
        self.sleeps.store(false, Ordering::SeqCst);
    }
}

impl Inner {
    fn take(&mut self, observation: &Observation) {
        match observation {
            Observation::Event(record) => {
                self.events += u64::from(record.cause == Cause::Input);
                self.recorder.push(record.clone());
            }
            Observation::Failure(failure) => {
                self.failures += 1;
                // The first, and then every power of two: a broken mapping must not fill the log.
                if self.failures.is_power_of_two() {
                    let so_far = plural_u64(self.failures, "failure");
                    tracing::warn!("{}: {} ({so_far} so far)", failure.worker, failure.reason);
                }
                self.last_failure = Some(failure.clone());
            }
            Observation::Mode(mode) => {
                tracing::info!("mode: {mode}");
                self.mode = Some(Arc::clone(mode));
            }
            // The audit has them; what was said, and what lights show, is nothing for the log.
            Observation::Plan(_) | Observation::Chat(_) | Observation::Lights(_) => {}
            Observation::Model(ModelChange { model, error: None }) => tracing::info!("the model {model} answers"),
            Observation::Model(ModelChange { model, error: Some(error) }) => {
                tracing::warn!("the model {model} gives no answer: {error}");
            }
            Observation::Lock(LockChange { locked, by }) => {
                tracing::info!(by, "the show is {}", if *locked { "locked" } else { "unlocked" });
            }
            Observation::Port(text) | Observation::Reload(text) => tracing::info!("{text}"),
            Observation::PortTrouble(text) => tracing::warn!("{text}"),
            Observation::Refused(text) => tracing::error!("{text}"),
            Observation::Sink(message) => log_sink(message),
        }
        self.subscribers.retain(|Subscriber { sender, wants, missed }| {
            if !wants(observation) {
                return true;
            }
            match sender.try_send(observation.clone()) {
                Ok(()) => true,
                Err(TrySendError::Full(_)) => {
                    missed.fetch_add(1, Ordering::Relaxed);
                    true
                }
                Err(TrySendError::Disconnected(_)) => false,
            }
        });
        self.messages_passed += u64::from(matches!(observation, Observation::Sink(_)));
    }
}

/// Keeps a notification, and gives it the number that it has there.
fn keep_notification(log: &mut NotificationLog, observation: &mut Observation) {
    let Observation::Sink(message) = observation else { return };
    if message.kind != SinkKind::Notification {
        return;
    }
    match log.append(message) {
        Ok(sequence) => message.sequence = Some(sequence),
        Err(error) => tracing::error!("a notification of {} could not be kept: {error}", message.feature),
    }
}

fn log_sink(message: &SinkMessage) {
    let SinkMessage { feature, kind, text, .. } = message;
    match kind {
        SinkKind::Diagnostic(Severity::Info) => tracing::info!(%feature, "{text}"),
        SinkKind::Diagnostic(Severity::Warning) => tracing::warn!(%feature, "{text}"),
        SinkKind::Diagnostic(Severity::Error) => tracing::error!(%feature, "{text}"),
        SinkKind::Alert => tracing::warn!(%feature, "ALERT: {text}"),
        SinkKind::Notification => tracing::info!(%feature, "notification: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use conductor_event::{DeviceId, Fired, HidEvent, ModeIx, RuleId};

    use super::*;
    use crate::sink_message::SinkQueue;

    #[test]
    fn what_is_rare_reaches_whoever_wants_only_that() {
        let (_, messages) = SinkQueue::new();
        let (observer, observed, thread) = start(messages, None).unwrap();
        let (modes, missed) = observed.subscribe_to(|observation| matches!(observation, Observation::Mode(_)));
        let everything = observed.subscribe();
        let news =
            || PlanChange { step: PlanStep::Proposed, plan: None, who: String::new(), description: String::new() };
        for _ in 0..=SUBSCRIBER_CAPACITY {
            observer.put(Observation::Plan(news()));
        }
        observer.put(Observation::Mode("live".into()));
        drop(observer);
        thread.join().unwrap();
        assert!(matches!(modes.try_recv(), Ok(Observation::Mode(mode)) if &*mode == "live") && modes.is_empty());
        assert_eq!(
            (missed.load(Ordering::Relaxed), everything.len()),
            (0, SUBSCRIBER_CAPACITY),
            "the other's was full"
        );
    }

    // PRT-4, FEA-22
    #[test]
    fn keys_that_are_typed_are_for_the_owner_alone() {
        let (_, messages) = SinkQueue::new();
        let (observer, observed, thread) = start(messages, None).unwrap();
        let key = |button, fires: bool| {
            let mut fired = Fired::new();
            if fires {
                fired.push(RuleId(0));
            }
            let event = HidEvent::Button { button, pressed: true }.into();
            let (device, cause) = (DeviceId::new("keys"), Cause::Input);
            Observation::Event(Record { at: 0, device, event, cause, mode: ModeIx(0), generation: 1, fired })
        };
        // P, S, which is mapped, and F13.
        for (button, fires) in [(281, false), (287, true), (439, false)] {
            observer.put(key(button, fires));
        }
        drop(observer);
        thread.join().unwrap();
        let numbers = |records: Vec<Record>| records.iter().map(|record| record.event.number()).collect::<Vec<_>>();
        assert_eq!(numbers(observed.records()), [281, 287, 439]);
        assert_eq!(numbers(observed.public_records(9)), [287, 439]);
        assert_eq!(numbers(observed.public_records(1)), [439]);
    }
}
