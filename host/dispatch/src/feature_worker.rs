//! The worker that owns one feature's instances in the real-time lane.
//!
//! The worker is a [`Strand`]: its own thread works with it, or the thread that has brought an event, if the feature's
//! calls are known to be short ([`Pace`]) and nothing but events waits. Whatever else there is to do, its own thread does.
//!
//! One instance serves, a spare waits. When the serving one traps, the action that it was doing
//! fails and the spare takes over at the next one; a new spare is made when there is nothing else
//! to do. Features that no event has reached have none: it would only take memory.
//!
//! Timers that the feature sets are in the instance that serves. The worker waits until the next one at the most, and
//! what is earlier goes first: an event and a timer never overtake each other. A timer goes with its owner as what other
//! workers have switched on does.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use conductor_engine::{DeviceId, Nanos};
use crossbeam_channel::{Receiver, RecvTimeoutError, SendError, Sender, TryRecvError, TrySendError};

use super::ledger::{Owner, Release};
use super::pace::Pace;
use super::queue::ReleaseListener;
use super::timer_owners::TimerOwners;
use super::{Envelope, QUEUE_CAPACITY, Reason, WorkerCounters};
use conductor_observer::{Observation, Observer};
use conductor_package::capability::CapabilityKind;
use conductor_sandbox::actor::{check_quarantine, may_run_now, record_trap};
use conductor_sandbox::bindings::{self, Event};
use conductor_sandbox::host_functions::devices::DeviceTable;
use conductor_sandbox::state::FeatureFacts;
use conductor_sandbox::{ActionInstance, CallError, InstallError, PreparedFeature, ServiceError};
use conductor_stdx::clock::Clock;
use conductor_stdx::doorbell::{self, Doorbell};
use conductor_stdx::strand::Strand;

/// Commands to the worker, which have priority over its jobs: a change of the configuration
/// or a shutdown should not wait for the backlog of a slow feature.
enum ControlRequest {
    Prepare {
        name: Arc<str>,
        params: Arc<str>,
        reply: Sender<Result<u32, CallError>>,
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
    /// Timers whose owner goes are cancelled.
    Release(Release),
}

/// How long a feature may take to begin and end with a `prepare`.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(5);

/// The way to a feature. Clones share it.
#[derive(Debug, Clone)]
pub struct FeatureQueue(Arc<Shared>);

struct Shared {
    name: Arc<str>,
    /// The worker; `None` if it has ended.
    worker: Arc<Strand<Option<Worker>>>,
    jobs: doorbell::Sender<Job>,
    /// Unbounded: only the control side gives orders, and it waits for the answers.
    orders: doorbell::Sender<ControlRequest>,
    counters: Arc<WorkerCounters>,
    facts: Arc<FeatureFacts>,
    holding: Arc<Holding>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FeatureQueue").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a worker has to do with owners that go.
#[derive(Debug, Default)]
struct Holding {
    /// Whether it hears of them.
    follows: AtomicBool,
    /// A release found no room: all timers are cancelled when what waits is done.
    behind: AtomicBool,
}

/// An action that a feature has prepared. Dropping the last one gives it back.
#[derive(Debug)]
pub struct PreparedAction {
    queue: FeatureQueue,
    name: Arc<str>,
    slot: u32,
}

impl PreparedAction {
    /// The action's name, as mappings write it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The feature that does it.
    pub fn feature(&self) -> &Arc<str> {
        &self.queue.0.name
    }

    /// The way to the feature.
    pub fn queue(&self) -> &FeatureQueue {
        &self.queue
    }

    /// Hands an event over without waiting, and has it done by the worker's own thread.
    ///
    /// # Errors
    /// [`Reason::QueueFull`] or [`Reason::Gone`].
    pub fn try_perform(&self, envelope: Envelope) -> Result<(), Reason> {
        self.put(envelope)?;
        self.queue.ring();
        Ok(())
    }

    /// Hands an event over without waiting; [`FeatureQueue::carry`] or [`FeatureQueue::ring`] has it done.
    ///
    /// # Errors
    /// [`Reason::QueueFull`] or [`Reason::Gone`].
    pub fn put(&self, envelope: Envelope) -> Result<(), Reason> {
        let Shared { jobs, counters, .. } = &*self.queue.0;
        jobs.put(Job::Perform(envelope, self.slot)).map_err(|error| {
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
}

impl Drop for PreparedAction {
    fn drop(&mut self) {
        let _ = self.queue.0.orders.send(ControlRequest::Release(self.slot));
    }
}

impl ReleaseListener for FeatureQueue {
    fn release(&self, release: &Release) {
        let put = || self.0.jobs.try_send(Job::Release(release.clone()));
        if let Err(TrySendError::Full(_)) = put() {
            self.0.holding.behind.store(true, Ordering::SeqCst);
            // Should the worker have done all in between: it sleeps, and wakes by this.
            let _ = put();
        }
    }

    fn is_gone(&self) -> bool {
        self.0.facts.is_revoked()
    }
}

impl FeatureQueue {
    /// Makes the first instance, which installs the feature, and starts the worker around it.
    ///
    /// # Errors
    /// See [`InstallError`]; nothing is left behind.
    pub fn start(
        feature: PreparedFeature,
        observer: Observer,
    ) -> Result<(Self, JoinHandle<()>, Vec<conductor_sandbox::RegisteredAction>), InstallError> {
        let instance = feature.instantiate()?;
        let registered = instance.registered().to_vec();
        let bell = Doorbell::default();
        let (jobs, work) = doorbell::bounded(QUEUE_CAPACITY, &bell);
        let (orders, told) = doorbell::unbounded(&bell);
        let name: Arc<str> = feature.facts().descriptor.id.name().into();
        let facts = Arc::clone(feature.facts());
        let (counters, holding) = (Arc::<WorkerCounters>::default(), Arc::<Holding>::default());
        let clock = facts.services.clock;
        let owners = facts.descriptor.requests(CapabilityKind::Timers).then(TimerOwners::default);
        if owners.is_some() {
            clock.ring_when_moved(&bell);
        }
        let worker = Worker {
            name: Arc::clone(&name),
            work: work.clone(),
            head: None,
            told,
            finishing: false,
            clock,
            owners,
            sleeps_until: None,
            pace: Pace::default(),
            holding: Arc::clone(&holding),
            devices: Arc::clone(&facts.services.devices),
            counters: Arc::clone(&counters),
            feature,
            observer,
            slots: Vec::new(),
            by_meaning: HashMap::new(),
            free: Vec::new(),
            serving: Some(Ready { instance, ids: Vec::new() }),
            spare: None,
            used: false,
            taken: 0,
            retiring: VecDeque::new(),
            numbers: HashMap::new(),
        };
        let worker = Arc::new(Strand::new(Some(worker), bell));
        let owned = Arc::clone(&worker);
        let queue = Self(Arc::new(Shared { name, worker, jobs, orders, counters, facts, holding }));
        let thread = std::thread::Builder::new()
            .name(format!("feature {}", queue.0.name))
            .spawn(move || own(&owned, &work))
            .map_err(|error| InstallError::Instantiate(error.to_string()))?;
        Ok((queue, thread, registered))
    }

    /// The feature's short name.
    pub fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// Whether it can have timers.
    fn sets_timers(&self) -> bool {
        self.0.facts.descriptor.requests(CapabilityKind::Timers)
    }

    /// Whether it has to hear of owners that go from now on, and did not before.
    pub(super) fn begins_to_hold(&self) -> bool {
        self.sets_timers() && !self.0.holding.follows.swap(true, Ordering::Relaxed)
    }

    /// What the worker has done so far.
    pub fn counters(&self) -> &WorkerCounters {
        &self.0.counters
    }

    /// Whether both are the way to the same worker.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Has the worker's own thread do what was handed over.
    pub fn ring(&self) {
        self.0.jobs.ring();
    }

    /// Does what was handed over on this thread, if that is known to be quick and no thread is at it. Else the thread that
    /// is at it does it, or the worker's own thread. From `until` on no job is begun. Takes no lock.
    pub fn carry(&self, until: Instant) {
        let Shared { worker: strand, jobs, .. } = &*self.0;
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

    /// Has the feature prepare an action; `params` is a JSON object. The same action with the same
    /// parameters is prepared once. While the feature is in quarantine this only notes what is wanted; see
    /// [`unavailable`](Self::unavailable).
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn prepare(&self, action: &str, params: &str) -> Result<Arc<PreparedAction>, CallError> {
        let gone = || CallError::Trapped("the feature is shut down".into());
        let (reply, answer) = crossbeam_channel::bounded(1);
        let name: Arc<str> = action.into();
        let order = ControlRequest::Prepare { name: Arc::clone(&name), params: params.into(), reply };
        self.0.orders.send(order).map_err(|_| gone())?;
        let slot = answer.recv_timeout(PREPARE_TIMEOUT).map_err(|error| match error {
            RecvTimeoutError::Disconnected => gone(),
            RecvTimeoutError::Timeout => {
                CallError::Trapped(format!("the feature did not answer within {} s", PREPARE_TIMEOUT.as_secs()))
            }
        })??;
        Ok(Arc::new(PreparedAction { queue: self.clone(), name, slot }))
    }

    /// Why the feature does nothing now, if it is in quarantine.
    pub fn unavailable(&self) -> Option<String> {
        check_quarantine(&self.0.facts).err().map(|error| error.to_string())
    }

    /// Jobs that wait.
    pub fn waiting(&self) -> usize {
        self.0.jobs.waiting()
    }

    /// Ends the worker once it has done what is in its queue.
    pub fn finish(&self) {
        let _ = self.0.orders.send(ControlRequest::Finish);
    }

    /// Ends the worker after the job that it is at; what is in its queue is left undone.
    pub fn abandon(&self) {
        let _ = self.0.orders.send(ControlRequest::Abandon);
    }
}

/// An action that is prepared in every instance.
struct Slot {
    name: Arc<str>,
    params: Arc<str>,
    /// How many [`PreparedAction`]s stand for it; at 0 the slot is free.
    uses: usize,
}

/// An instance and the ids under which it knows the slots, as far as it has prepared them.
struct Ready {
    instance: ActionInstance,
    ids: Vec<Option<u32>>,
}

impl Ready {
    /// This is what it calls the slot; `None` if it has not prepared it.
    fn know(&mut self, slot: usize, id: Option<u32>) {
        self.ids.resize(self.ids.len().max(slot + 1), None);
        self.ids[slot] = id;
    }

    /// Prepares the first slot that this instance does not know yet. False when it knows all.
    fn catch_up(&mut self, slots: &[Slot]) -> Result<bool, CallError> {
        let Some(slot) = slots.get(self.ids.len()) else { return Ok(false) };
        let id = if slot.uses == 0 {
            None
        } else {
            match self.instance.prepare(&slot.name, &slot.params) {
                Ok(id) => Some(id),
                // It was prepared before, so this is odd, but the other slots are none the worse.
                Err(CallError::Refused(_)) => None,
                Err(trap) => return Err(trap),
            }
        };
        self.ids.push(id);
        Ok(true)
    }
}

struct Worker {
    name: Arc<str>,
    work: Receiver<Job>,
    /// The first of `work`, where a timer may go before it.
    head: Option<Job>,
    told: Receiver<ControlRequest>,
    finishing: bool,
    clock: Clock,
    /// Where the feature can have timers.
    owners: Option<TimerOwners>,
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
    serving: Option<Ready>,
    spare: Option<Ready>,
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
fn own(strand: &Strand<Option<Worker>>, work: &Receiver<Job>) {
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
        worker.add_busy(busy_since);
        worker.sleeps_until = worker.next_timer();
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

    /// Does one job, or calls for one timer. False if there is nothing of this to do now.
    fn step(&mut self) -> bool {
        // The time first: what was handed over before that is there then.
        let now = self.next_timer().map(|_| self.clock.now());
        self.look();
        if self.head.is_none() && self.holding.behind.swap(false, Ordering::SeqCst) {
            self.cancel(|_| true);
        }
        if self.timer_comes_first(now) {
            self.call_timer();
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
            let due = self.next_timer().map(|_| self.clock.now());
            self.look();
            match &self.head {
                None => break !self.is_wanted_sooner(),
                Some(_) if now >= until || !self.told.is_empty() || self.timer_comes_first(due) => break false,
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

    /// Whether its own thread sleeps for too long: there is an order, or a timer is due before.
    fn is_wanted_sooner(&self) -> bool {
        let sleeps_too_long = |at| self.sleeps_until.is_none_or(|until| at < until);
        self.finishing
            || !self.told.is_empty()
            || self.holding.behind.load(Ordering::SeqCst)
            || self.next_timer().is_some_and(sleeps_too_long)
    }

    fn add_busy(&self, since: Instant) {
        let busy = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.counters.busy.fetch_add(busy, Ordering::Relaxed);
    }

    fn obey(&mut self, order: ControlRequest) -> ControlFlow<()> {
        match order {
            ControlRequest::Prepare { name, params, reply } => {
                let slot = self.prepare(name, params);
                // The caller has given up, so it will not release the slot either.
                if let Err(SendError(Ok(slot))) = reply.send(slot) {
                    self.release(slot);
                }
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
        let owner = self.owners.as_mut().map_or(0, |owners| owners.number(envelope));
        let began = Instant::now();
        let prepared = may_run_now(self.feature.facts()).and_then(|()| self.prepared(slot));
        let performed = prepared.and_then(|(ready, id)| ready.instance.perform_for(owner, id, event));
        self.pace.called(began, Instant::now());
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
        if matches!(error, CallError::Trapped(_)) {
            self.pace.failed(Instant::now());
            self.drop_instance();
            self.trapped();
        }
        let reason = Reason::Failed(error.to_string());
        self.counters.failure(&reason);
        self.observer.put(Observation::Failure(envelope.failure(&self.name, reason)));
    }

    /// The instance that serves goes, with its timers.
    fn drop_instance(&mut self) {
        self.serving = None;
        self.owners.iter_mut().for_each(|owners| owners.forget(|_, _| true));
    }

    /// When the next timer is due.
    fn next_timer(&self) -> Option<Nanos> {
        self.owners.as_ref().and(self.serving.as_ref())?.instance.next_timer()
    }

    /// Whether a timer is due at `now`, and before the event that is next. What cancels timers does not wait for them.
    fn timer_comes_first(&self, now: Option<Nanos>) -> bool {
        let (Some(deadline), Some(now)) = (self.next_timer(), now) else { return false };
        match &self.head {
            Some(Job::Perform(envelope, _)) => deadline <= now.min(envelope.at),
            Some(Job::Release(_)) => false,
            None => !self.finishing && deadline <= now,
        }
    }

    /// Has the feature called for its next timer, where it may run; else the timer is left out.
    fn call_timer(&mut self) {
        let Some(ready) = &mut self.serving else { return };
        let Some(timer) = ready.instance.take_timer() else { return };
        if let Err(error) = may_run_now(self.feature.facts()).and_then(|()| ready.instance.due(timer)) {
            let cause = self.owners.as_ref().and_then(|owners| owners.get(timer.owner)).cloned();
            if let Some(cause) = cause {
                self.failed(&Envelope { at: timer.deadline, ..cause }, error);
            }
        }
        self.forget_owner(timer.owner);
    }

    /// An owner without timers needs no number.
    fn forget_owner(&mut self, owner: u32) {
        if let Some(owners) = &mut self.owners
            && !self.serving.as_ref().is_some_and(|ready| ready.instance.has_timer_of(owner))
        {
            owners.forget(|number, _| number == owner);
        }
    }

    /// Cancels the timers of owners that go.
    fn cancel(&mut self, goes: impl Fn(Owner) -> bool) {
        let (Some(owners), Some(ready)) = (&mut self.owners, &mut self.serving) else { return };
        ready.instance.cancel_timers(|owner| owners.get(owner).is_none_or(|cause| goes(cause.into())));
        owners.forget(|_, cause| goes(cause.into()));
    }

    fn event(&mut self, envelope: &Envelope) -> Event {
        let Self { numbers, devices, .. } = self;
        let device = number_of(numbers, devices, &envelope.device);
        bindings::record(envelope.at, device, &envelope.event, envelope.position)
    }

    /// The instance that serves, which knows every slot; the spare, or a new one, where it is gone.
    fn serving(&mut self) -> Result<&mut Ready, CallError> {
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
    fn prepared(&mut self, slot: u32) -> Result<(&mut Ready, u32), CallError> {
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

    fn instance(&self) -> Result<Ready, CallError> {
        let instance = self.feature.instantiate()?;
        Ok(Ready { instance, ids: Vec::new() })
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
