//! Quarantine, a circuit breaker with exponential backoff: a feature that keeps trapping is not called for a while.
//!
//! Traps are counted for the package, by id and digest, in whichever instance and installation they happened:
//! installing it again or another configuration clears nothing. Many traps in a short time are too many, and so are
//! fewer ones that go on for long.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use conductor_package::descriptor::FeatureId;

/// Traps within [`WINDOW`] that are too many.
pub const STRIKES: usize = 5;
/// How long a trap counts among [`STRIKES`], and how long after a quarantine a single one begins the next.
pub const WINDOW: Duration = Duration::from_secs(60);
/// Traps within [`LONG_WINDOW`] that are too many.
pub const LONG_STRIKES: usize = 20;
/// How long a trap counts among [`LONG_STRIKES`].
pub const LONG_WINDOW: Duration = Duration::from_secs(30 * 60);
/// After so long without a trap the next quarantine is a first one again.
pub const STRIKE_RETENTION: Duration = Duration::from_secs(60 * 60);
/// The first quarantine; each further one is twice as long.
const INITIAL_BACKOFF: Duration = Duration::from_secs(10);
/// The longest quarantine.
const MAX_BACKOFF: Duration = Duration::from_secs(600);
/// Packages whose traps are remembered though they are not installed.
const MAX_TRACKED: usize = 1024;

/// The traps of all packages that this host has seen.
#[derive(Debug, Default)]
pub struct Quarantines(Mutex<HashMap<(FeatureId, String), Arc<Quarantine>>>);

impl Quarantines {
    /// Those of the package with this id and digest.
    pub fn of(&self, id: &FeatureId, digest: &str, now: Instant) -> Arc<Quarantine> {
        let mut all = self.0.lock();
        let many = all.len() >= MAX_TRACKED;
        all.retain(|_, it| Arc::strong_count(it) > 1 || !(it.is_forgiven(now) || many && it.left(now).is_none()));
        Arc::clone(all.entry((id.clone(), digest.to_owned())).or_default())
    }
}

/// The traps of one package, whichever of its instances they happened in.
#[derive(Debug, Default)]
pub struct Quarantine {
    /// So that a feature in order costs one load.
    closed: AtomicBool,
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
struct Record {
    /// At most [`LONG_STRIKES`], oldest first.
    strikes: VecDeque<Instant>,
    until: Option<Instant>,
    /// When the last quarantine ends or ended, and how long it was.
    last: Option<(Instant, Duration)>,
}

impl Record {
    fn recent(&self, now: Instant) -> usize {
        self.strikes.iter().rev().take_while(|strike| now.saturating_duration_since(**strike) <= WINDOW).count()
    }
}

impl Quarantine {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock()
    }

    /// Counts a trap at `now`. True when that was one too many and a quarantine begins.
    pub fn record_trap(&self, now: Instant) -> bool {
        let mut record = self.record();
        if record.strikes.back().is_some_and(|last| now.saturating_duration_since(*last) >= STRIKE_RETENTION) {
            *record = Record::default();
        }
        record.strikes.push_back(now);
        while record.strikes.len() > LONG_STRIKES
            || record.strikes.front().is_some_and(|first| now.saturating_duration_since(*first) > LONG_WINDOW)
        {
            record.strikes.pop_front();
        }
        // What was under way when it began may trap still.
        if record.until.is_some_and(|until| now < until) {
            return false;
        }
        let again = record.last.is_some_and(|(end, _)| now.saturating_duration_since(end) <= WINDOW);
        if !again && record.recent(now) < STRIKES && record.strikes.len() < LONG_STRIKES {
            return false;
        }
        let pause = record.last.map_or(INITIAL_BACKOFF, |(_, last)| (last * 2).min(MAX_BACKOFF));
        record.last = Some((now + pause, pause));
        record.until = Some(now + pause);
        self.closed.store(true, Ordering::Release);
        true
    }

    /// Whether nothing that happened before `now` counts any more.
    fn is_forgiven(&self, now: Instant) -> bool {
        self.record().strikes.back().is_none_or(|last| now.saturating_duration_since(*last) >= STRIKE_RETENTION)
    }

    /// How much longer the feature is quarantined; `None` if it may be called.
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

    /// Traps within the last [`WINDOW`].
    pub fn recent(&self, now: Instant) -> usize {
        self.record().recent(now)
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
            assert!(!quarantine.record_trap(start + SECOND * strike));
        }
        let now = start + SECOND * 5;
        assert_eq!((quarantine.left(now), quarantine.recent(now)), (None, STRIKES - 1));
        assert!(quarantine.record_trap(now));
        assert_eq!(quarantine.left(now + SECOND), Some(INITIAL_BACKOFF - SECOND));
        let later = now + INITIAL_BACKOFF;
        assert_eq!(quarantine.left(later), None, "it gets another chance");
        assert!(quarantine.record_trap(later), "and one trap is enough to end it");
        assert_eq!(quarantine.left(later), Some(INITIAL_BACKOFF * 2));
    }

    #[test]
    fn traps_that_are_far_between_do_not_count() {
        let (quarantine, start) = (Quarantine::default(), Instant::now());
        for strike in 0..100 {
            assert!(!quarantine.record_trap(start + SECOND * 120 * strike));
        }
    }

    /// Four traps a minute, for ever, are never five within a minute.
    #[test]
    fn a_slow_drip_backs_off_too() {
        let (quarantine, start) = (Quarantine::default(), Instant::now());
        let mut traps = 0;
        for now in (0..3600).step_by(15).map(|second| start + SECOND * second) {
            if quarantine.left(now).is_none() {
                quarantine.record_trap(now);
                traps += 1;
            }
        }
        assert!(traps < 30, "{traps} of 240 in an hour");
    }

    #[test]
    fn a_good_minute_after_each_quarantine_does_not_make_the_next_a_first_one() {
        let (quarantine, mut now) = (Quarantine::default(), Instant::now());
        let mut pauses = Vec::new();
        for _ in 0..7 {
            while !quarantine.record_trap(now) {}
            pauses.push(quarantine.left(now).unwrap().as_secs());
            now += quarantine.left(now).unwrap() + WINDOW + SECOND;
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 600]);
        now += STRIKE_RETENTION;
        while !quarantine.record_trap(now) {}
        assert_eq!(quarantine.left(now), Some(INITIAL_BACKOFF));
    }

    #[test]
    fn what_is_under_way_when_it_begins_makes_it_no_longer() {
        let (quarantine, now) = (Quarantine::default(), Instant::now());
        while !quarantine.record_trap(now) {}
        assert!(!(0..10).any(|_| quarantine.record_trap(now + SECOND)));
        assert_eq!(quarantine.left(now), Some(INITIAL_BACKOFF));
    }

    #[test]
    fn traps_belong_to_a_package_however_often_it_is_installed() {
        let (all, now) = (Quarantines::default(), Instant::now());
        let id = FeatureId::try_from("project:x".to_owned()).unwrap();
        let first = all.of(&id, "aa", now);
        while !first.record_trap(now) {}
        drop(first);
        assert!(all.of(&id, "aa", now + SECOND).left(now + SECOND).is_some());
        assert!(all.of(&id, "bb", now).left(now).is_none(), "another package");
        for other in 0..2 * MAX_TRACKED {
            all.of(&id, &other.to_string(), now).record_trap(now);
        }
        assert!(all.0.lock().len() <= MAX_TRACKED + 1);
        assert!(all.of(&id, "aa", now + SECOND).left(now + SECOND).is_some(), "those in quarantine are kept");
        assert_eq!(all.of(&id, "aa", now + STRIKE_RETENTION).recent(now + STRIKE_RETENTION), 0);
    }

    #[test]
    fn a_person_can_lift_it() {
        let (quarantine, now) = (Quarantine::default(), Instant::now());
        while !quarantine.record_trap(now) {}
        quarantine.lift();
        assert_eq!(quarantine.left(now), None);
        assert!(!quarantine.record_trap(now));
    }
}
