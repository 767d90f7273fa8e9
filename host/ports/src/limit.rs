//! The rate limiter of a device: how many events it may put into the engine in a second.
//!
//! Only continuous values wait for it, and are coalesced (see [`coalescing`](super::coalescing)); discrete
//! events use up the allowance and always pass.

use std::sync::atomic::{AtomicU64, Ordering};

use conductor_event::Nanos;

/// How far ahead of its pace a device may be, so that a burst passes at once.
const BURST: Nanos = 100_000_000;
/// How long a flood of discrete events may keep continuous ones waiting.
const MAX_AHEAD: Nanos = 2 * BURST;

/// The allowance: the time at which the device would be back at its pace (the "generic cell rate algorithm").
/// Asked on the port's thread and on the one that delivers what was held back, without a lock.
#[derive(Debug)]
pub struct Limit {
    /// Nanoseconds for each event.
    pace: Nanos,
    back_at: AtomicU64,
}

impl Limit {
    /// As many events in a second; at least 1.
    pub fn new(events_per_sec: u32) -> Self {
        Self { pace: 1_000_000_000 / Nanos::from(events_per_sec.max(1)), back_at: AtomicU64::new(0) }
    }

    /// Whether an event that may wait may pass now; if so, it counts.
    pub fn allows(&self, now: Nanos) -> bool {
        let next = |back_at: Nanos| (back_at <= now.saturating_add(BURST)).then(|| back_at.max(now) + self.pace);
        self.back_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    /// Counts an event that passes in any case.
    pub fn count(&self, now: Nanos) {
        let next = |back_at: Nanos| Some((back_at.max(now) + self.pace).min(now.saturating_add(MAX_AHEAD)));
        let _ = self.back_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    // ENG-11
    #[test]
    fn a_burst_passes_and_then_the_pace_holds() {
        let limit = Limit::new(100);
        let passed = |at: Nanos, tries: usize| (0..tries).filter(|_| limit.allows(at)).count();
        assert_eq!(passed(0, 1000), 11, "a tenth of a second's worth, and the one that is due");
        let in_a_second: usize = (1..=1000).map(|ms| passed(ms * SECOND / 1000, 10)).sum();
        assert_eq!(in_a_second, 100);
        assert_eq!(passed(100 * SECOND, 1000), 11, "rest is not saved up");
    }

    #[test]
    fn discrete_events_use_the_allowance_up_but_do_not_starve_the_others() {
        let limit = Limit::new(1000);
        (0..1_000_000).for_each(|_| limit.count(0));
        assert!(!limit.allows(0));
        assert!(limit.allows(SECOND / 5));
    }
}
