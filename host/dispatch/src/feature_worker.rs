//! The worker that owns one feature's instances in the real-time lane.
//!
//! The worker is a [`Strand`]: its own thread works with it, or the thread that has brought an event, if the feature's
//! calls are known to be short ([`Pace`]) and nothing but events waits. Whatever else there is to do, its own thread does.
//!
//! One instance serves, a spare waits. When the serving one traps, the action that it was doing
//! fails and the spare takes over at the next one; a new spare is made when there is nothing else
//! to do. Features that no event has reached have none: it would only take memory.
//!
//! It is there as long as an action is in use, and a while longer ([`IDLE_TIMEOUT`]); a
//! [`FeatureQueue`](feature_queue::FeatureQueue) starts it.
//!
//! The calls that the feature has pending are in the instance that serves. The worker waits until the next one is due at
//! the most, and what is earlier goes first: an event and a pending call never overtake each other. A pending call goes
//! with its owner as what other workers have switched on does.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use conductor_event::{DeviceId, Nanos};
use conductor_observer::{Observation, Observer};
use conductor_sandbox::bindings::{self, Event};
use conductor_sandbox::device_table::DeviceTable;
use conductor_sandbox::event_details::EventDetails;
use conductor_sandbox::runnable::{check_quarantine, may_run_now, record_trap};
use conductor_sandbox::{ActionInstance, CallError, PreparedFeature, ServiceError};
use conductor_scheduling::{time_slice, timer_slack};
use conductor_stdx::clock::Clock;
use conductor_stdx::doorbell::{self, Doorbell};
use conductor_stdx::pace::Pace;
use conductor_stdx::strand::Strand;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, TrySendError};

use super::ledger::{Owner, Release};
use super::prepared_instance::{PreparedInstance, Slot};
use super::queue::ReleaseListener;
use super::{Envelope, QUEUE_CAPACITY, Reason, WorkerCounters};
use feature_queue::Place;
use pending_owners::PendingOwners;
use prepared_action::PreparedAction;

pub mod feature_queue;
mod pending_owners;
pub mod prepared_action;

/// Commands to the worker, which have priority over its jobs: a change of the configuration
/// or a shutdown should not wait for the backlog of a slow feature.
pub(super) enum ControlRequest {
    Prepare {
        name: Arc<str>,
        params: Arc<str>,
        /// The way to this worker, for the action.
        worker: FeatureWorker,
        /// An answer that is no longer waited for is dropped, which gives the action back.
        reply: Sender<Result<PreparedAction, CallError>>,
    },
    Release(u32),
    /// End when there is nothing left to do.
    Finish,
    /// End now.
    Abandon,
}

/// What comes in the order in which it was handed over.
enum Job {
    /// An event for the action in this slot.
    Perform(Envelope, u32),
    /// Pending calls whose owner goes are cancelled.
    Release(Release),
    /// Say that everything before this is done, and when the next pending call is due.
    Settle(Sender<Option<Nanos>>),
}

/// The longest call that the thread of a port makes again.
const SHORT_CALL: Duration = Duration::from_micros(100);
/// How long a worker stays without an action that is in use, so that a reload that uses one again finds it.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The way to a feature's worker, for the event path. Clones share it.
#[derive(Debug, Clone)]
pub struct FeatureWorker(Arc<Shared>);

struct Shared {
    name: Arc<str>,
    /// The worker; `None` if it has ended.
    strand: Arc<Strand<Option<Worker>>>,
    jobs: doorbell::Sender<Job>,
    /// Unbounded: only the control side gives orders, and it waits for the answers.
    orders: doorbell::Sender<ControlRequest>,
    counters: Arc<WorkerCounters>,
    may_have_pending: bool,
    holding: Arc<Holding>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FeatureWorker").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a worker has to do with owners that go.
#[derive(Debug, Default)]
struct Holding {
    /// Whether it hears of them.
    follows: AtomicBool,
    /// A release found no room: all pending calls are cancelled when what waits is done.
    behind: AtomicBool,
}

/// What hears of owners that go in a worker's place. It does not keep the worker.
#[derive(Debug)]
pub struct PendingReleases(Weak<Shared>);

impl ReleaseListener for PendingReleases {
    fn release(&self, release: &Release) {
        let Some(worker) = self.0.upgrade() else { return };
        let finds_no_room =
            || matches!(worker.jobs.try_send(Job::Release(release.clone())), Err(TrySendError::Full(_)));
        if finds_no_room() {
            worker.holding.behind.store(true, Ordering::SeqCst);
            // Should the worker have done all in between: it sleeps, and wakes by this.
            finds_no_room();
        }
    }

    fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl FeatureWorker {
    /// Starts a worker without an instance: the first action that it prepares makes one. At its end it leaves `place`.
    ///
    /// # Errors
    /// If the system has no thread left.
    pub(super) fn start(
        feature: PreparedFeature,
        counters: Arc<WorkerCounters>,
        observer: Observer,
        place: Weak<Place>,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let bell = Doorbell::default();
        let (jobs, work) = doorbell::bounded(QUEUE_CAPACITY, &bell);
        let (orders, told) = doorbell::unbounded(&bell);
        let facts = feature.facts();
        let name: Arc<str> = facts.descriptor.id.name().into();
        let holding = Arc::<Holding>::default();
        let (clock, devices) = (facts.services.clock, Arc::clone(&facts.services.devices));
        let may_have_pending = ActionInstance::may_have_pending(&facts.descriptor);
        clock.ring_when_moved(&bell);
        let worker = Worker {
            name: Arc::clone(&name),
            work: work.clone(),
            head: None,
            told,
            finishing: false,
            clock,
            owners: may_have_pending.then(PendingOwners::default),
            sleeps_until: None,
            pace: Pace::new(SHORT_CALL),
            holding: Arc::clone(&holding),
            devices,
            counters: Arc::clone(&counters),
            feature,
            observer,
            slots: Vec::new(),
            by_meaning: HashMap::new(),
            free: Vec::new(),
            unused_since: clock.now(),
            serving: None,
            spare: None,
            used: false,
            taken: 0,
            retiring: VecDeque::new(),
            numbers: HashMap::new(),
        };
        let strand = Arc::new(Strand::new(Some(worker), bell));
        let owned = Arc::clone(&strand);
        let worker = Self(Arc::new(Shared { name, strand, jobs, orders, counters, may_have_pending, holding }));
        let thread = std::thread::Builder::new()
            .name(format!("feature {}", worker.0.name))
            .spawn(move || own(&owned, &work, &place))?;
        Ok((worker, thread))
    }

    /// Gives an order. It is lost if the worker has ended.
    pub(super) fn order(&self, order: ControlRequest) {
        let _ = self.0.orders.send(order);
    }

    /// What has to hear of owners that go, if it may have calls pending and nothing hears of them yet.
    pub(super) fn begins_to_hold(&self) -> Option<PendingReleases> {
        let begins = self.0.may_have_pending && !self.0.holding.follows.swap(true, Ordering::Relaxed);
        begins.then(|| self.pending_releases())
    }

    /// What hears of owners that go in its place.
    pub fn pending_releases(&self) -> PendingReleases {
        PendingReleases(Arc::downgrade(&self.0))
    }

    /// Jobs that wait.
    pub(super) fn waiting(&self) -> usize {
        self.0.jobs.waiting()
    }

    /// Whether both are the way to the same worker.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Hands an event over for the action in a slot, without waiting.
    ///
    /// # Errors
    /// [`Reason::QueueFull`] or [`Reason::Gone`].
    pub(super) fn put(&self, envelope: Envelope, slot: u32) -> Result<(), Reason> {
        let Shared { jobs, counters, .. } = &*self.0;
        jobs.put(Job::Perform(envelope, slot)).map_err(|error| {
            counters.failed.fetch_add(1, Ordering::Relaxed);
            match error {
                TrySendError::Full(_) => {
                    counters.queue_full.fetch_add(1, Ordering::Relaxed);
                    Reason::QueueFull
                }
                TrySendError::Disconnected(_) => Reason::Gone,
            }
        })
    }

    /// Gives the action in a slot back, after the jobs that were handed over before.
    pub(super) fn release(&self, slot: u32) {
        self.order(ControlRequest::Release(slot));
    }

    /// The feature's short name.
    pub(super) fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// Has the worker's own thread do what was handed over.
    pub fn ring(&self) {
        self.0.jobs.ring();
    }

    /// What this and the feature's other workers have done so far.
    pub fn counters(&self) -> &WorkerCounters {
        &self.0.counters
    }

    /// Waits until everything that was handed over before is done, with the pending calls that are due by then, and
    /// says when the next one is due, if there is one. Not for the event path.
    ///
    /// # Errors
    /// [`Reason::QueueFull`], [`Reason::Gone`], or [`Reason::Timeout`] when it takes longer than `within`.
    pub fn settle(&self, within: Duration) -> Result<Option<Nanos>, Reason> {
        let (settled, answer) = crossbeam_channel::bounded(1);
        self.0.jobs.put(Job::Settle(settled)).map_err(|error| match error {
            TrySendError::Full(_) => Reason::QueueFull,
            TrySendError::Disconnected(_) => Reason::Gone,
        })?;
        self.ring();
        answer.recv_timeout(within).map_err(|error| match error {
            RecvTimeoutError::Timeout => Reason::Timeout(within),
            RecvTimeoutError::Disconnected => Reason::Gone,
        })
    }

    /// Does what was handed over on this thread, if that is known to be quick and no thread is at it. Else the thread that
    /// is at it does it, or the worker's own thread. From `until` on no job is begun. Takes no lock.
    pub fn carry(&self, until: Instant) {
        let Shared { strand, jobs, .. } = &*self.0;
        loop {
            // The thread inside looks once more when it has left.
            let Some(mut worker) = strand.try_enter() else { return };
            let is_done = match &mut *worker {
                None => return,
                Some(worker) => worker.carried(until),
            };
            drop(worker);
            if !is_done {
                return jobs.ring();
            }
            if jobs.waiting() == 0 {
                return;
            }
        }
    }
}

struct Worker {
    name: Arc<str>,
    work: Receiver<Job>,
    /// The first of `work`, where a pending call may go before it.
    head: Option<Job>,
    told: Receiver<ControlRequest>,
    finishing: bool,
    clock: Clock,
    /// Where the feature may have calls pending.
    owners: Option<PendingOwners>,
    /// Until when its own thread sleeps; `None` if until it is rung for.
    sleeps_until: Option<Nanos>,
    pace: Pace,
    holding: Arc<Holding>,
    feature: PreparedFeature,
    devices: Arc<DeviceTable>,
    counters: Arc<WorkerCounters>,
    observer: Observer,
    slots: Vec<Slot>,
    /// The slots in use, by what they stand for.
    by_meaning: HashMap<(Arc<str>, Arc<str>), u32>,
    /// The slots that may be used again.
    free: Vec<u32>,
    /// When an action was prepared or released last.
    unused_since: Nanos,
    serving: Option<PreparedInstance>,
    spare: Option<PreparedInstance>,
    /// Whether it has performed.
    used: bool,
    /// How many jobs are done, of either kind.
    taken: u64,
    /// Slots that are not used by any rule any more, with the number of the last job that may need them.
    retiring: VecDeque<(u64, u32)>,
    /// Device numbers that were asked for before, by the device's key.
    numbers: HashMap<u64, u32>,
}

/// What the worker's own thread does, until the end.
fn own(strand: &Strand<Option<Worker>>, work: &Receiver<Job>, place: &Weak<Place>) {
    // Not an event thread: calls that are known to be quick run on those, and this has the others.
    time_slice::shorten();
    timer_slack::remove();
    // Read when it begins and when it has nothing left to do, not at every job.
    let mut busy_since = Instant::now();
    loop {
        let mut entered = strand.enter();
        let Some(worker) = entered.as_mut() else { return };
        if worker.turn().is_break() {
            let worker = entered.take();
            drop(entered);
            return drop(worker);
        }
        if worker.unused_until().is_some_and(|until| until <= worker.clock.now()) {
            let place = place.upgrade();
            let mut kept = place.as_ref().map(|place| place.lock());
            // Orders are given under this lock, so none comes between this look and the end.
            if worker.told.is_empty() && work.is_empty() {
                let worker = entered.take();
                drop(entered);
                drop(worker);
                if let Some(kept) = &mut kept {
                    kept.leave();
                }
                return;
            }
            continue;
        }
        worker.add_busy(busy_since);
        worker.sleeps_until = worker.wakes_at();
        let until = worker.sleeps_until.and_then(|at| worker.clock.moment(at));
        drop(entered);
        // What came while it was inside is not rung for.
        if work.is_empty() {
            strand.bell().wait(until);
        }
        busy_since = Instant::now();
    }
}

impl Worker {
    /// Does what there is to do. For its own thread. Breaks at the end.
    fn turn(&mut self) -> ControlFlow<()> {
        loop {
            // Orders first; then work; and when there is neither, the spare.
            match self.told.try_recv() {
                Ok(order) => self.obey(order)?,
                Err(TryRecvError::Disconnected) if self.work.is_empty() && self.head.is_none() => {
                    return ControlFlow::Break(());
                }
                Err(_) if self.step() => {}
                Err(_) if self.finishing => return ControlFlow::Break(()),
                Err(_) if self.ready_the_spare() => {}
                Err(_) => return ControlFlow::Continue(()),
            }
        }
    }

    /// Does one job, or makes one pending call. False if there is nothing of this to do now.
    fn step(&mut self) -> bool {
        // The time first: what was handed over before that is there then.
        let now = self.next_pending().map(|_| self.clock.now());
        self.look();
        if self.head.is_none() && self.holding.behind.swap(false, Ordering::SeqCst) {
            self.cancel(|_| true);
        }
        if self.pending_comes_first(now) {
            self.call_pending();
        } else if let Some(job) = self.head.take() {
            self.take(job);
        } else {
            return false;
        }
        true
    }

    /// Looks which job is next.
    fn look(&mut self) {
        self.head = self.head.take().or_else(|| self.work.try_recv().ok());
    }

    /// Does jobs on another thread than its own, and begins none from `until` on. False if something is left to its own.
    fn carried(&mut self, until: Instant) -> bool {
        let began = Instant::now();
        let (mut now, mut carried) = (began, 0);
        let is_done = loop {
            let due = self.next_pending().map(|_| self.clock.now());
            self.look();
            match &self.head {
                None => break !self.is_wanted_sooner(),
                Some(_) if now >= until || !self.told.is_empty() || self.pending_comes_first(due) => break false,
                Some(Job::Perform(_, slot)) if !self.pace.is_quick() || !self.knows(*slot) => break false,
                Some(_) => {}
            }
            self.step();
            carried += 1;
            now = Instant::now();
        };
        self.counters.carried.fetch_add(carried, Ordering::Relaxed);
        self.add_busy(began);
        is_done
    }

    /// Whether a call for this slot is nothing but that: the instance is there, and has prepared it.
    fn knows(&self, slot: u32) -> bool {
        let known = self.serving.as_ref().and_then(|ready| ready.ids.get(slot as usize));
        known.is_some_and(Option::is_some)
    }

    /// Whether its own thread sleeps for too long: there is an order, or a call is due before, or the worker's end.
    fn is_wanted_sooner(&self) -> bool {
        let sleeps_too_long = |at| self.sleeps_until.is_none_or(|until| at < until);
        self.finishing
            || !self.told.is_empty()
            || self.holding.behind.load(Ordering::SeqCst)
            || self.wakes_at().is_some_and(sleeps_too_long)
    }

    fn add_busy(&self, since: Instant) {
        let busy = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.counters.busy.fetch_add(busy, Ordering::Relaxed);
    }

    fn obey(&mut self, order: ControlRequest) -> ControlFlow<()> {
        match order {
            ControlRequest::Prepare { name, params, worker, reply } => {
                let slot = self.prepare(Arc::clone(&name), params);
                self.unused_since = self.clock.now();
                let _ = reply.send(slot.map(|slot| PreparedAction::new(worker, name, slot)));
            }
            // Nothing new can come for it, but orders overtake jobs: what lies in the queue may need it.
            ControlRequest::Release(slot) => {
                let waiting = self.work.len() + usize::from(self.head.is_some());
                self.retiring.push_back((self.taken + waiting as u64, slot));
                self.retire();
            }
            ControlRequest::Finish => self.finishing = true,
            ControlRequest::Abandon => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Perform(envelope, slot) => self.perform(&envelope, slot),
            Job::Release(release) => self.cancel(|owner| release.takes(&owner)),
            // The one that waits may have gone.
            Job::Settle(settled) => drop(settled.try_send(self.next_pending())),
        }
        self.taken += 1;
        self.retire();
    }

    /// Releases the slots whose last job is done.
    fn retire(&mut self) {
        while let Some(&(last, slot)) = self.retiring.front()
            && last <= self.taken
        {
            self.retiring.pop_front();
            self.release(slot);
        }
    }

    fn perform(&mut self, envelope: &Envelope, slot: u32) {
        self.used = true;
        let event = self.event(envelope);
        let details = EventDetails::of(&envelope.event, envelope.pattern.as_ref());
        let owner = self.owners.as_mut().map_or(0, |owners| owners.number(envelope));
        let began = self.pace.begin();
        let prepared = may_run_now(self.feature.facts()).and_then(|()| self.prepared(slot));
        let performed = prepared.and_then(|(ready, id)| ready.instance.perform_for(owner, id, event, details));
        self.pace.end(&began);
        match performed {
            Ok(()) => {
                self.counters.done.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => self.failed(envelope, error),
        }
        self.forget_owner(owner);
    }

    /// What was wanted for this event failed.
    fn failed(&mut self, envelope: &Envelope, error: CallError) {
        let has_trapped = matches!(error, CallError::Trapped(_));
        let reason = Reason::Failed(error.to_string());
        // A reader that sees the trap finds its text, and one that sees the failure finds the trap.
        self.counters.remember(&reason);
        if has_trapped {
            self.pace.failed(Instant::now());
            self.drop_instance();
            self.trapped();
        }
        self.counters.failure(&reason);
        self.observer.put(Observation::Failure(envelope.failure(&self.name, reason)));
    }

    /// The instance that serves goes, with its pending calls.
    fn drop_instance(&mut self) {
        self.serving = None;
        self.owners.iter_mut().for_each(|owners| owners.forget(|_, _| true));
    }

    /// Until when it stays; `None` if an action is in use.
    fn unused_until(&self) -> Option<Nanos> {
        let kept_for = u64::try_from(IDLE_TIMEOUT.as_nanos()).unwrap_or(Nanos::MAX);
        self.by_meaning.is_empty().then(|| self.unused_since.saturating_add(kept_for))
    }

    /// When its own thread has something to do, if nothing comes before.
    fn wakes_at(&self) -> Option<Nanos> {
        [self.next_pending(), self.unused_until()].into_iter().flatten().min()
    }

    /// When the next pending call is due.
    fn next_pending(&self) -> Option<Nanos> {
        self.owners.as_ref().and(self.serving.as_ref())?.instance.next_pending()
    }

    /// Whether a pending call is due at `now`, and before the event that is next. What cancels calls waits for none.
    fn pending_comes_first(&self, now: Option<Nanos>) -> bool {
        let (Some(deadline), Some(now)) = (self.next_pending(), now) else { return false };
        match &self.head {
            Some(Job::Perform(envelope, _)) => deadline <= now.min(envelope.at),
            Some(Job::Release(_)) => false,
            Some(Job::Settle(_)) => deadline <= now,
            None => !self.finishing && deadline <= now,
        }
    }

    /// Makes the next pending call, where the feature may run; else it is left out.
    fn call_pending(&mut self) {
        let Some(ready) = &mut self.serving else { return };
        let Some(call) = ready.instance.take_pending() else { return };
        if let Err(error) = may_run_now(self.feature.facts()).and_then(|()| ready.instance.due(call)) {
            let cause = self.owners.as_ref().and_then(|owners| owners.get(call.owner)).cloned();
            if let Some(cause) = cause {
                self.failed(&Envelope { at: call.deadline, ..cause }, error);
            }
        }
        self.forget_owner(call.owner);
    }

    /// An owner without pending calls needs no number.
    fn forget_owner(&mut self, owner: u32) {
        if let Some(owners) = &mut self.owners
            && !self.serving.as_ref().is_some_and(|ready| ready.instance.has_pending_of(owner))
        {
            owners.forget(|number, _| number == owner);
        }
    }

    /// Cancels the pending calls of owners that go.
    fn cancel(&mut self, goes: impl Fn(Owner) -> bool) {
        let (Some(owners), Some(ready)) = (&mut self.owners, &mut self.serving) else { return };
        ready.instance.cancel_pending(|owner| owners.get(owner).is_none_or(|cause| goes(cause.into())));
        owners.forget(|_, cause| goes(cause.into()));
    }

    fn event(&mut self, envelope: &Envelope) -> Event {
        let Self { numbers, devices, .. } = self;
        let device = number_of(numbers, devices, &envelope.device);
        bindings::record(envelope.at, device, &envelope.event, envelope.position)
    }

    /// The instance that serves, which knows every slot; the spare, or a new one, where it is gone.
    fn serving(&mut self) -> Result<&mut PreparedInstance, CallError> {
        if self.serving.is_none() {
            let mut ready = match self.spare.take() {
                Some(ready) => ready,
                None => self.instance()?,
            };
            while ready.catch_up(&self.slots)? {}
            self.serving = Some(ready);
        }
        self.serving.as_mut().ok_or_else(|| CallError::Trapped("no instance".into()))
    }

    /// The instance that serves, and what it calls this slot. What was asked for while the feature was in
    /// quarantine is prepared now.
    fn prepared(&mut self, slot: u32) -> Result<(&mut PreparedInstance, u32), CallError> {
        let index = slot as usize;
        let Some((name, params)) = self.slots.get(index).map(|it| (Arc::clone(&it.name), Arc::clone(&it.params)))
        else {
            return Err(CallError::Refused(ServiceError::Failed("the action is not prepared".into())));
        };
        let ready = self.serving()?;
        let id = match ready.ids.get(index).copied().flatten() {
            Some(id) => id,
            None => {
                let id = ready.instance.prepare(&name, &params)?;
                ready.know(index, Some(id));
                id
            }
        };
        Ok((ready, id))
    }

    fn instance(&self) -> Result<PreparedInstance, CallError> {
        let instance = self.feature.instantiate()?;
        Ok(PreparedInstance::new(instance))
    }

    /// One step towards a spare that can take over at once. False when there is nothing to do, or
    /// it can't be done now. A feature that has had nothing to do yet keeps no spare.
    fn ready_the_spare(&mut self) -> bool {
        if !self.used || check_quarantine(self.feature.facts()).is_err() {
            return false;
        }
        let made = match &mut self.spare {
            Some(spare) => spare.catch_up(&self.slots),
            None => self.instance().map(|ready| {
                self.spare = Some(ready);
                true
            }),
        };
        made.unwrap_or_else(|error| {
            self.spare = None;
            if matches!(error, CallError::Trapped(_)) {
                self.trapped();
            }
            false
        })
    }

    /// Counts a trap, last of all: a reader that sees the count finds what follows from it.
    fn trapped(&self) {
        record_trap(self.feature.facts());
        self.counters.trapped.fetch_add(1, Ordering::Relaxed);
    }

    fn prepare(&mut self, name: Arc<str>, params: Arc<str>) -> Result<u32, CallError> {
        let meaning = (name, params);
        if let Some(&slot) = self.by_meaning.get(&meaning) {
            self.slots[slot as usize].uses += 1;
            return Ok(slot);
        }
        // The end of a quarantine is not waited for: it is prepared when it is first performed.
        let id = if check_quarantine(self.feature.facts()).is_err() {
            None
        } else {
            let prepared = self.serving().and_then(|ready| ready.instance.prepare(&meaning.0, &meaning.1));
            if matches!(prepared, Err(CallError::Trapped(_))) {
                self.drop_instance();
                self.trapped();
            }
            Some(prepared?)
        };
        let entry = Slot { name: Arc::clone(&meaning.0), params: Arc::clone(&meaning.1), uses: 1 };
        let slot = match self.free.pop() {
            Some(free) => {
                self.slots[free as usize] = entry;
                // What the spare knows under this number is something else.
                self.spare = None;
                free
            }
            None => {
                self.slots.push(entry);
                u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.by_meaning.insert(meaning, slot);
        if let Some(ready) = &mut self.serving {
            ready.know(slot as usize, id);
        }
        Ok(slot)
    }

    fn release(&mut self, slot: u32) {
        let Some(entry) = self.slots.get_mut(slot as usize) else { return };
        entry.uses = entry.uses.saturating_sub(1);
        if entry.uses > 0 {
            return;
        }
        self.by_meaning.remove(&(Arc::clone(&entry.name), Arc::clone(&entry.params)));
        self.unused_since = self.clock.now();
        self.free.push(slot);
        let mut traps = 0;
        for keeper in [&mut self.serving, &mut self.spare] {
            if let Some(ready) = keeper
                && let Some(id) = ready.ids.get_mut(slot as usize).and_then(Option::take)
                && ready.instance.release(id).is_err()
            {
                *keeper = None;
                traps += 1;
            }
        }
        if self.serving.is_none() {
            self.drop_instance();
        }
        (0..traps).for_each(|_| self.trapped());
    }
}

fn number_of(numbers: &mut HashMap<u64, u32>, devices: &DeviceTable, device: &DeviceId) -> u32 {
    *numbers.entry(device.key()).or_insert_with(|| devices.number(device))
}
