//! Quarantine: a feature that keeps trapping is left alone for a while.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Traps within [`WINDOW`] that are too many.
pub const STRIKES: usize = 5;
/// How long a trap counts.
pub const WINDOW: Duration = Duration::from_secs(60);
/// The first quarantine; each further one is twice as long.
const FIRST: Duration = Duration::from_secs(10);
/// The longest quarantine.
const LONGEST: Duration = Duration::from_secs(600);

/// The traps of one feature, whichever of its instances they happened in.
#[derive(Debug, Default)]
pub struct Quarantine {
    /// So that a feature in order costs one load.
    closed: AtomicBool,
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
struct Record {
    strikes: VecDeque<Instant>,
    until: Option<Instant>,
    /// How long the last one was.
    last: Option<Duration>,
}

impl Quarantine {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a trap at `now`. True when that was one too many and a quarantine begins.
    pub fn strike(&self, now: Instant) -> bool {
        let mut record = self.record();
        while record.strikes.front().is_some_and(|strike| now.saturating_duration_since(*strike) > WINDOW) {
            record.strikes.pop_front();
            // It behaved for a while: the next quarantine is a first one again.
            if record.strikes.is_empty() {
                record.last = None;
            }
        }
        record.strikes.push_back(now);
        if record.strikes.len() < STRIKES {
            return false;
        }
        let pause = record.last.map_or(FIRST, |last| (last * 2).min(LONGEST));
        record.last = Some(pause);
        record.until = Some(now + pause);
        // One more strike after it, and it is back in.
        record.strikes.drain(..1);
        self.closed.store(true, Ordering::Release);
        true
    }

    /// How much longer the feature is left alone; none when it may be called.
    pub fn left(&self, now: Instant) -> Option<Duration> {
        if !self.closed.load(Ordering::Acquire) {
            return None;
        }
        let mut record = self.record();
        match record.until {
            Some(until) if now < until => Some(until - now),
            _ => {
                record.until = None;
                self.closed.store(false, Ordering::Release);
                None
            }
        }
    }

    /// Traps that count at `now`.
    pub fn recent(&self, now: Instant) -> usize {
        let within = |strike: &&Instant| now.saturating_duration_since(**strike) <= WINDOW;
        self.record().strikes.iter().filter(within).count()
    }

    /// Ends it, because a person says so.
    pub fn lift(&self) {
        *self.record() = Record::default();
        self.closed.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_fifth_trap_within_a_minute_begins_a_quarantine_and_each_is_longer() {
        let (quarantine, start) = (Quarantine::default(), Instant::now());
        for strike in 1..STRIKES as u32 {
            assert!(!quarantine.strike(start + SECOND * strike));
        }
        let now = start + SECOND * 5;
        assert_eq!((quarantine.left(now), quarantine.recent(now)), (None, STRIKES - 1));
        assert!(quarantine.strike(now));
        assert_eq!(quarantine.left(now + SECOND), Some(FIRST - SECOND));
        let later = now + FIRST;
        assert_eq!(quarantine.left(later), None, "it gets another chance");
        assert!(quarantine.strike(later), "and one trap is enough to end it");
        assert_eq!(quarantine.left(later), Some(FIRST * 2));
    }

    #[test]
    fn traps_that_are_far_between_do_not_count() {
        let (quarantine, start) = (Quarantine::default(), Instant::now());
        for strike in 0..100 {
            assert!(!quarantine.strike(start + SECOND * 20 * strike));
        }
    }

    #[test]
    fn a_person_can_lift_it() {
        let (quarantine, now) = (Quarantine::default(), Instant::now());
        while !quarantine.strike(now) {}
        quarantine.lift();
        assert_eq!(quarantine.left(now), None);
        assert!(!quarantine.strike(now));
    }
}
