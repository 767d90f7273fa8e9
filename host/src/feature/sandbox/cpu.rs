//! CPU time of guests: what a call may use before it is stopped, and what all calls of a feature may.
//!
//! Epochs count time that passes, and a busy machine may keep a thread waiting for longer than any
//! budget; a feature must not pay for that. So a tick only makes the host look at the thread's own
//! clock. Reading it costs a system call, which is why it is not read for calls that end before
//! the first tick, as nearly all do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wasmtime::{StoreContextMut, Trap, UpdateDeadline};

use super::limits;
use super::rate::Rate;
use super::state::InstanceState;

/// What the call under way may use, and since when it is watched.
#[derive(Debug, Default)]
pub struct CpuBudget {
    budget: Duration,
    /// The thread's CPU time at the first tick of the call.
    watched_since: Option<Duration>,
}

impl CpuBudget {
    /// For a call that begins now.
    pub fn new(budget: Duration) -> Self {
        Self { budget, watched_since: None }
    }

    /// Whether the call has used up its budget, with the thread's clock at `now`.
    fn is_spent(&mut self, now: Duration) -> bool {
        let since = *self.watched_since.get_or_insert(now);
        now.saturating_sub(since) >= self.budget
    }
}

/// What a feature's calls in the real-time lane may take of a processor, all its instances together. One
/// that stays just below the limit of each call would else keep a processor to itself.
///
/// Counted in ticks that find it at work, one millisecond each: calls that are shorter than a tick are
/// found as often as they are long.
#[derive(Debug)]
pub struct CpuShare {
    rate: Rate,
    /// So that a feature in order costs one load.
    spent: AtomicBool,
}

impl Default for CpuShare {
    fn default() -> Self {
        Self { rate: Rate::new(limits::REALTIME_CPU_RATE, limits::REALTIME_CPU_BURST), spent: AtomicBool::new(false) }
    }
}

impl CpuShare {
    fn charge(&self, now: Instant) {
        self.rate.charge(now);
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
}

/// Called at every tick of a call: go on, or trap.
pub(super) fn on_tick(mut store: StoreContextMut<'_, InstanceState>) -> wasmtime::Result<UpdateDeadline> {
    let state = store.data_mut();
    state.facts.at_work.note();
    state.facts.cpu_share.charge(Instant::now());
    if state.cpu.is_spent(thread_time()) {
        return Err(Trap::Interrupt.into());
    }
    Ok(UpdateDeadline::Continue(1))
}

/// Called at every tick of a call in the control lane: lets others run, or traps. Instances there
/// move between threads, so ticks are counted: one at most for each millisecond that the guest ran.
pub(super) fn on_control_tick(mut store: StoreContextMut<'_, InstanceState>) -> wasmtime::Result<UpdateDeadline> {
    let state = store.data_mut();
    state.facts.at_work.note();
    state.ticks = state.ticks.saturating_sub(1);
    if state.ticks == 0 { Err(Trap::Interrupt.into()) } else { Ok(UpdateDeadline::Yield(1)) }
}

/// CPU time that this thread has used.
#[cfg(unix)]
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Time that has passed, where the system has no such clock.
#[cfg(not(unix))]
fn thread_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_counts_from_the_first_tick() {
        let ms = Duration::from_millis;
        let mut cpu = CpuBudget::new(ms(20));
        assert!(!cpu.is_spent(ms(1_000)), "whatever the thread has used before");
        assert!(!cpu.is_spent(ms(1_000)), "waiting costs nothing");
        assert!(!cpu.is_spent(ms(1_019)));
        assert!(cpu.is_spent(ms(1_020)));
    }

    #[test]
    fn a_share_is_spent_and_comes_back() {
        let (share, start) = (CpuShare::default(), Instant::now());
        let ms = |n: f64| Duration::from_secs_f64(n / 1000.0);
        for _ in 0..limits::REALTIME_CPU_BURST as u32 {
            assert!(!share.is_spent(|| start));
            share.charge(start);
        }
        assert!(share.is_spent(|| start));
        assert!(share.is_spent(|| start + ms(1.0)));
        let later = start + ms(10_000.0 / limits::REALTIME_CPU_RATE);
        assert!(!share.is_spent(|| later), "it may go on");
        (0..20).for_each(|_| share.charge(later));
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
