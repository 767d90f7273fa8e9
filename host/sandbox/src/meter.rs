//! The meter: processor time of calls into guests in the control lane, with throttling by the shares of a feature and of the lane.
//!
//! A call is a future, and `Call::within` puts `Metered` around it. Whatever is done for the guest on the way is
//! done in one of its polls, on one thread: the guest's code, the lifting and lowering of values, host functions, the
//! check of a result. So the thread's CPU clock before and after a poll says what the call cost, and no host function
//! can be left out. A guest that a tick finds outside of a metered poll traps.
//!
//! ```text
//! Call::within(future) ─▶ poll: share spent? wait ─▶ clock ─▶ guest + host functions ─▶ clock ─▶ charge
//!                                                            └▶ tick: budget spent? trap : yield
//! ```
//!
//! A guest yields at each tick, so between two polls it ran for about a millisecond. There it is made to wait while
//! its feature, or the lane, has used up its share; time that passes for a call goes on meanwhile. Background tasks
//! may use only half of what there is at once, so that they give way to calls.
//!
//! A tick comes only while a guest runs: one host function runs to its end, and has to be bounded itself. What it cost
//! is charged, and the guest is stopped at its next step.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::time::Sleep;
use wasmtime::{Store, StoreContextMut, Trap, UpdateDeadline};

use crate::cpu::thread_time;
use crate::limits::Share;
use crate::outcome::CallError;
use crate::state::{FeatureFacts, InstanceState};
use conductor_stdx::rate::RateLimiter;

impl FeatureFacts {
    /// How long a call of this class has to wait for the feature's share, and for the lane's.
    ///
    /// A call of a feature that has used little lately does not wait for the lane: it must not pay for what others
    /// have used up.
    fn wait(&self, now: Instant, class: Class) -> Duration {
        let own = self.control_share.wait(now, class);
        let modest = self.control_share.rate.wait_for_part(now, MODEST_SHARE).is_zero();
        if class == Class::Call && modest { own } else { own.max(self.shared.lane_share.wait(now, class)) }
    }

    /// Whether a batch of events has to be left out: hooks on events take from the lane's share as tasks do, unless
    /// the feature has used little of the real-time lane lately.
    pub(crate) fn leaves_out_events(&self, now: Instant) -> bool {
        !self.cpu_share.is_modest(now) && !self.shared.lane_share.wait(now, Class::Task).is_zero()
    }
}

/// The part of a feature's burst up to which it has used little.
const MODEST_SHARE: f64 = 0.25;

/// What kind of work a call is: who gives way to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A tool, a hook, an exchange with a model, an installation: somebody waits for it.
    Call,
    /// A background task.
    Task,
}

impl Class {
    /// The part of a burst that it may use up.
    const fn part_of_burst(self) -> f64 {
        match self {
            Self::Call => 1.0,
            Self::Task => 0.5,
        }
    }
}

/// What a call may use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Processor time, host functions included.
    pub(super) cpu: Duration,
    /// Time that may pass.
    pub(super) within: Duration,
    pub(super) class: Class,
}

/// Processor time that a feature's calls in the control lane, or those of all features together, may take.
#[derive(Debug)]
pub struct ControlShare {
    rate: RateLimiter,
    used: AtomicU64,
}

impl ControlShare {
    pub(super) fn new(share: Share) -> Self {
        Self { rate: RateLimiter::new(share.rate, share.burst), used: AtomicU64::new(0) }
    }

    /// Processor time used so far.
    pub fn used(&self) -> Duration {
        Duration::from_nanos(self.used.load(Ordering::Relaxed))
    }

    pub(super) fn charge(&self, now: Instant, time: Duration) {
        self.used.fetch_add(nanos(time), Ordering::Relaxed);
        self.rate.charge(now, time.as_secs_f64() * 1000.0);
    }

    /// How long a call of this class has to wait; zero when it may go on.
    fn wait(&self, now: Instant, class: Class) -> Duration {
        self.rate.wait_for_part(now, class.part_of_burst())
    }
}

/// How long a feature's calls were made to wait because a share was spent.
#[derive(Debug, Default)]
pub struct Throttled(AtomicU64);

impl Throttled {
    /// In all so far.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn add(&self, time: Duration) {
        self.0.fetch_add(nanos(time), Ordering::Relaxed);
    }
}

/// The processor time of the call that an instance is in. Shared by the store, whose ticks look at it, and the
/// future around the call, which counts; both on one thread at a time.
#[derive(Debug)]
pub(crate) struct Meter {
    /// Nanoseconds of the budget that are left at the beginning of the poll under way.
    left: AtomicU64,
    /// The thread's CPU clock at the beginning of the poll under way; [`IDLE`] outside of one.
    began: AtomicU64,
    /// The budget, for what tasks get back.
    budget: AtomicU64,
    /// Nanoseconds that all polls of the instance took.
    used: AtomicU64,
}

/// No poll is under way.
const IDLE: u64 = u64::MAX;

impl Default for Meter {
    fn default() -> Self {
        Self {
            left: AtomicU64::new(0),
            began: AtomicU64::new(IDLE),
            budget: AtomicU64::new(0),
            used: AtomicU64::new(0),
        }
    }
}

impl Meter {
    fn begin(&self, budget: Duration) {
        self.left.store(nanos(budget), Ordering::Relaxed);
        self.budget.store(nanos(budget), Ordering::Relaxed);
    }

    /// Whether the budget is used up, with the thread's CPU clock at `now`. Also outside of a metered poll, where
    /// nothing may run.
    fn is_spent(&self, now: Duration) -> bool {
        let began = self.began.load(Ordering::Relaxed);
        began == IDLE || nanos(now).saturating_sub(began) >= self.left.load(Ordering::Relaxed)
    }

    fn enter(&self, now: Duration) {
        self.began.store(nanos(now).min(IDLE - 1), Ordering::Relaxed);
    }

    /// Ends a poll; returns what it took.
    fn leave(&self, now: Duration) -> Duration {
        let took = nanos(now).saturating_sub(self.began.swap(IDLE, Ordering::Relaxed));
        self.left.store(self.left.load(Ordering::Relaxed).saturating_sub(took), Ordering::Relaxed);
        self.used.fetch_add(took, Ordering::Relaxed);
        Duration::from_nanos(took)
    }

    /// What the calls of the instance have used so far, on all threads.
    pub(crate) fn used(&self) -> Duration {
        Duration::from_nanos(self.used.load(Ordering::Relaxed))
    }

    /// Gives back as much as a task has waited, up to the budget: a task that waits for no time has no more processor
    /// time than one that never waits.
    pub(crate) fn give_back(&self, waited: Duration) {
        let left = self.left.load(Ordering::Relaxed).saturating_add(nanos(waited));
        self.left.store(left.min(self.budget.load(Ordering::Relaxed)), Ordering::Relaxed);
    }
}

/// A call that begins, with its limits.
pub(super) struct Call {
    meter: Arc<Meter>,
    facts: Arc<FeatureFacts>,
    limits: Limits,
}

impl Call {
    /// Gives the call that comes its processor time.
    pub(super) fn begin(store: &mut Store<InstanceState>, limits: Limits) -> Self {
        store.data().meter.begin(limits.cpu);
        Self::resume(store, limits)
    }

    /// One more call that has what the calls before it left over.
    pub(super) fn resume(store: &mut Store<InstanceState>, limits: Limits) -> Self {
        store.set_epoch_deadline(1);
        let state = store.data();
        Self { meter: Arc::clone(&state.meter), facts: Arc::clone(&state.facts), limits }
    }

    /// Does a part of the call, metered.
    ///
    /// # Errors
    /// When more time passes than may.
    pub(super) async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, CallError> {
        let within = self.limits.within;
        tokio::time::timeout(within, self.metered(work))
            .await
            .map_err(|_| CallError::Trapped(format!("stopped: it took longer than {} s", within.as_secs())))
    }

    /// Does a part of the call, metered, however much time passes.
    pub(super) fn metered<F: Future>(&self, work: F) -> Metered<'_, F> {
        Metered { call: self, work: Box::pin(work), pause: None }
    }
}

/// A future whose processor time is counted, and which waits while a share is spent.
pub(super) struct Metered<'c, F> {
    call: &'c Call,
    work: Pin<Box<F>>,
    /// While it is made to wait: until when, and since when.
    pause: Option<(Pin<Box<Sleep>>, Instant)>,
}

impl<F: Future> Future for Metered<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let Call { meter, facts, limits } = this.call;
        loop {
            if let Some((pause, since)) = &mut this.pause {
                std::task::ready!(pause.as_mut().poll(context));
                facts.throttled.add(since.elapsed());
                this.pause = None;
            }
            let now = Instant::now();
            let wait = facts.wait(now, limits.class);
            if wait.is_zero() {
                break;
            }
            this.pause = Some((Box::pin(tokio::time::sleep(wait)), now));
        }
        let charged = Charged::begin(meter, facts);
        let polled = this.work.as_mut().poll(context);
        drop(charged);
        polled
    }
}

/// Charges what a poll took when it ends, also by a panic.
struct Charged<'c> {
    meter: &'c Meter,
    facts: &'c FeatureFacts,
}

impl<'c> Charged<'c> {
    fn begin(meter: &'c Meter, facts: &'c FeatureFacts) -> Self {
        meter.enter(thread_time());
        Self { meter, facts }
    }
}

impl Drop for Charged<'_> {
    fn drop(&mut self) {
        let took = self.meter.leave(thread_time());
        let now = Instant::now();
        self.facts.control_share.charge(now, took);
        self.facts.shared.lane_share.charge(now, took);
    }
}

/// Called at every tick of a call in the control lane: lets others run, or traps.
pub(super) fn on_tick(mut store: StoreContextMut<'_, InstanceState>) -> wasmtime::Result<UpdateDeadline> {
    let state = store.data_mut();
    state.facts.shared.at_work.note();
    if state.meter.is_spent(thread_time()) { Err(Trap::Interrupt.into()) } else { Ok(UpdateDeadline::Yield(1)) }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_call_may_use_its_budget_over_many_polls() {
        let meter = Meter::default();
        meter.begin(ms(20));
        assert!(meter.is_spent(ms(0)), "nothing may run outside of a poll");
        meter.enter(ms(1_000));
        assert!(!meter.is_spent(ms(1_019)), "whatever the thread has used before");
        assert!(meter.is_spent(ms(1_020)));
        assert_eq!(meter.leave(ms(1_015)), ms(15));
        meter.enter(ms(7));
        assert!(!meter.is_spent(ms(11)), "on another thread");
        assert!(meter.is_spent(ms(12)));
        assert_eq!(meter.leave(ms(50)), ms(43));
        meter.enter(ms(50));
        assert!(meter.is_spent(ms(50)), "a long host function leaves nothing");
        assert_eq!(meter.used(), ms(15 + 43));
    }

    #[test]
    fn a_pause_gives_back_as_much_time_as_it_took() {
        let meter = Meter::default();
        meter.begin(ms(20));
        meter.enter(ms(0));
        meter.leave(ms(15));
        let left = |waited: u64| {
            meter.give_back(ms(waited));
            Duration::from_nanos(meter.left.load(Ordering::Relaxed))
        };
        assert_eq!([left(0), left(5), left(86_400_000)], [ms(5), ms(10), ms(20)]);
    }

    #[test]
    fn tasks_give_way_to_calls() {
        let (share, now) = (ControlShare::new(Share { rate: 500.0, burst: 4_000.0 }), Instant::now());
        let waits = |now| [Class::Task, Class::Call].map(|class| share.wait(now, class) > Duration::ZERO);
        assert_eq!(waits(now), [false, false]);
        share.charge(now, ms(2_500));
        assert_eq!(waits(now), [true, false], "half of the burst is for calls");
        share.charge(now, ms(2_000));
        assert_eq!(waits(now), [true, true]);
        assert_eq!(share.used(), ms(4_500));
        assert_eq!(waits(now + ms(1_200)), [true, false]);
        assert_eq!(waits(now + ms(6_000)), [false, false]);
    }

    #[test]
    fn a_host_function_that_takes_long_makes_the_next_call_wait_for_it() {
        let (share, now) = (ControlShare::new(Share { rate: 500.0, burst: 1_000.0 }), Instant::now());
        share.charge(now, ms(30_000));
        let wait = share.wait(now, Class::Call);
        assert!(wait > Duration::from_secs(55) && wait < Duration::from_secs(61), "{wait:?}");
    }
}
