//! Shares of a processor in the control lane: what a feature, and all features together, may use, and what the call that
//! an instance is in has left. [`meter`](crate::meter) charges them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::limits::Share;
use conductor_stdx::rate::RateLimiter;

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

    /// Whether little of the burst is used up.
    pub(super) fn is_modest(&self, now: Instant) -> bool {
        self.rate.wait_for_part(now, MODEST_SHARE).is_zero()
    }

    /// How long a call of this class has to wait; zero when it may go on.
    pub(super) fn wait(&self, now: Instant, class: Class) -> Duration {
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

    pub(super) fn add(&self, time: Duration) {
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
    pub(super) fn begin(&self, budget: Duration) {
        self.left.store(nanos(budget), Ordering::Relaxed);
        self.budget.store(nanos(budget), Ordering::Relaxed);
    }

    /// Whether the budget is used up, with the thread's CPU clock at `now`. Also outside of a metered poll, where
    /// nothing may run.
    pub(super) fn is_spent(&self, now: Duration) -> bool {
        let began = self.began.load(Ordering::Relaxed);
        began == IDLE || nanos(now).saturating_sub(began) >= self.left.load(Ordering::Relaxed)
    }

    pub(super) fn enter(&self, now: Duration) {
        self.began.store(nanos(now).min(IDLE - 1), Ordering::Relaxed);
    }

    /// Ends a poll; returns what it took.
    pub(super) fn leave(&self, now: Duration) -> Duration {
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
