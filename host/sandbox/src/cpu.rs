//! Processor time of guests in the real-time lane: what a call may use before it is stopped, and what all calls of a
//! feature may. That of the control lane is in [`meter`](crate::meter).
//!
//! Epochs count time that passes, and a busy machine may keep a thread waiting for longer than any
//! budget; a feature must not pay for that. So a tick only makes the host look at the thread's own
//! clock. Reading it costs a system call, which is why it is not read for calls that end before
//! the first tick, as nearly all do.
//!
//! A tick does not reach a guest within a host function. None of those in this lane takes long, and what they take
//! counts: at its end a call is charged for the ticks that passed since it began.

use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::limits;
use conductor_stdx::rate::RateLimiter;

/// What the call under way may use, and since when it is watched.
#[derive(Debug, Default)]
pub struct CpuBudget {
    budget: Duration,
    /// The thread's CPU time from which the budget counts; `None` before the first tick of a `perform`.
    watched_since: Option<Duration>,
    /// Ticks of the sandbox before the call.
    began_at: u64,
}

impl CpuBudget {
    /// For a `perform` that begins at this number of ticks. Its budget counts from its first tick.
    pub fn of_perform(budget: Duration, ticks: u64) -> Self {
        Self { budget, watched_since: None, began_at: ticks }
    }

    /// For any other call. Its budget counts from now.
    pub fn new(budget: Duration, ticks: u64) -> Self {
        Self { budget, watched_since: Some(thread_time()), began_at: ticks }
    }

    /// Whether the call has used up its budget, with the thread's clock at `now`.
    pub(super) fn is_spent(&mut self, now: Duration) -> bool {
        let since = *self.watched_since.get_or_insert(now);
        now.saturating_sub(since) >= self.budget
    }

    /// What a call that ends now has taken, about: as many milliseconds as ticks have passed, but no more than this
    /// thread has worked since it was last looked at. Zero for one that ends before a tick.
    pub(super) fn taken(&self, ticks: u64) -> Duration {
        let passed = u32::try_from(ticks.saturating_sub(self.began_at)).unwrap_or(u32::MAX);
        if passed == 0 { Duration::ZERO } else { worked().min(limits::TICK.saturating_mul(passed)) }
    }
}

thread_local! {
    static SEEN: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// What this thread has worked since this was last asked for.
fn worked() -> Duration {
    let now = thread_time();
    now.saturating_sub(SEEN.replace(now))
}

/// What a feature's calls in the real-time lane may take of a processor, all its instances together. One
/// that stays just below the limit of each call would else keep a processor to itself.
///
/// Counted in ticks, one millisecond each: calls that are shorter than a tick are found as often as they are long.
#[derive(Debug)]
pub struct CpuShare {
    rate: RateLimiter,
    /// So that a feature in order costs one load.
    spent: AtomicBool,
    /// When it was last said that nothing is left.
    said: Mutex<Option<Instant>>,
}

impl Default for CpuShare {
    fn default() -> Self {
        Self {
            rate: RateLimiter::new(limits::REALTIME_CPU_RATE, limits::REALTIME_CPU_BURST),
            spent: AtomicBool::new(false),
            said: Mutex::new(None),
        }
    }
}

impl CpuShare {
    pub(super) fn charge(&self, now: Instant, time: Duration) {
        self.rate.charge(now, time.as_secs_f64() * 1000.0);
        if self.rate.is_spent(now) {
            self.spent.store(true, Ordering::Relaxed);
        }
    }

    /// Whether nothing is left at `now`.
    pub fn is_spent(&self, now: impl FnOnce() -> Instant) -> bool {
        if !self.spent.load(Ordering::Relaxed) {
            return false;
        }
        let spent = self.rate.is_spent(now());
        self.spent.store(spent, Ordering::Relaxed);
        spent
    }

    /// Whether less than a quarter of the burst is used up.
    pub(super) fn is_modest(&self, now: Instant) -> bool {
        self.rate.wait_for_part(now, 0.25).is_zero()
    }

    /// Whether it is time to count a strike for calls that were left out because nothing is left: once every
    /// [`limits::OVERUSE_STRIKE`] at most.
    pub fn strikes(&self, now: Instant) -> bool {
        let mut said = self.said.lock();
        let due = said.is_none_or(|said| now.saturating_duration_since(said) >= limits::OVERUSE_STRIKE);
        if due {
            *said = Some(now);
        }
        due
    }
}

/// CPU time that this thread has used.
#[cfg(unix)]
pub(super) fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Time that has passed, where the system has no such clock.
#[cfg(not(unix))]
pub(super) fn thread_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_counts_from_the_first_tick() {
        let ms = Duration::from_millis;
        let mut cpu = CpuBudget::of_perform(ms(20), 0);
        assert!(!cpu.is_spent(ms(1_000)), "whatever the thread has used before");
        assert!(!cpu.is_spent(ms(1_000)), "waiting costs nothing");
        assert!(!cpu.is_spent(ms(1_019)));
        assert!(cpu.is_spent(ms(1_020)));
    }

    #[test]
    fn a_call_is_charged_for_the_ticks_in_it_but_for_no_more_than_the_thread_has_worked() {
        let cpu = CpuBudget::of_perform(Duration::from_millis(20), 100);
        worked();
        assert_eq!(cpu.taken(100), Duration::ZERO);
        assert!(cpu.taken(1_000_000_000) < Duration::from_secs(5), "a machine that is busy is not its fault");
        let start = thread_time();
        while thread_time() - start < Duration::from_millis(3) {
            std::hint::spin_loop();
        }
        assert_eq!(cpu.taken(102), Duration::from_millis(2));
    }

    #[test]
    fn calls_that_are_left_out_count_as_a_strike_now_and_then() {
        let (share, start) = (CpuShare::default(), Instant::now());
        assert!(share.strikes(start) && !share.strikes(start));
        assert!(share.strikes(start + limits::OVERUSE_STRIKE));
    }

    #[test]
    fn a_share_is_spent_and_comes_back() {
        let (share, start) = (CpuShare::default(), Instant::now());
        let ms = |n: f64| Duration::from_secs_f64(n / 1000.0);
        for _ in 0..limits::REALTIME_CPU_BURST as u32 {
            assert!(!share.is_spent(|| start));
            share.charge(start, limits::TICK);
        }
        assert!(share.is_spent(|| start));
        assert!(share.is_spent(|| start + ms(1.0)));
        let later = start + ms(10_000.0 / limits::REALTIME_CPU_RATE);
        assert!(!share.is_spent(|| later), "it may go on");
        share.charge(later, limits::TICK * 20);
        assert!(share.is_spent(|| later), "but not for long");
    }

    #[test]
    fn the_threads_clock_runs_when_the_thread_does() {
        let start = thread_time();
        let mut n = 0_u64;
        while thread_time() == start {
            n = std::hint::black_box(n + 1);
        }
    }
}
