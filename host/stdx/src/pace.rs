//! Whether the calls of something are short enough to be made by a thread that has other things to do.
//!
//! A thread that brings work does it itself, so that no other thread has to be woken. It must not be held up for much
//! longer than waking a thread takes. So it only makes calls that have been short for a while. What is slow twice, or
//! fails, has its calls made elsewhere again, each time for twice as long.

use std::time::{Duration, Instant};

/// Calls that have to be short, one after the other, before others make them.
const PROBATION: u32 = 32;
/// The longest call that is short. Ten times what waking a thread takes where that is slow.
const SHORT: Duration = Duration::from_micros(250);
/// So many short calls make up for one that was not: a busy machine may have held it up.
const FORGIVEN_AFTER: u32 = 1000;
/// How long calls are made elsewhere again, the first time.
const FIRST_BAN: Duration = Duration::from_secs(1);
/// The same at most.
const LONGEST_BAN: Duration = Duration::from_secs(300);

/// What is known about the calls, which are made one after the other.
#[derive(Debug)]
pub struct Pace {
    /// Short calls since the last one that was not, at most [`FORGIVEN_AFTER`].
    short: u32,
    /// Whether a long call is not forgiven yet.
    slow: bool,
    banned_until: Option<Instant>,
    ban: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { short: 0, slow: false, banned_until: None, ban: FIRST_BAN }
    }
}

impl Pace {
    /// Whether the next call is expected to be short.
    pub fn is_quick(&self) -> bool {
        self.short >= PROBATION && self.banned_until.is_none()
    }

    /// A call that began at `began` has ended at `now`.
    pub fn called(&mut self, began: Instant, now: Instant) {
        if self.banned_until.is_some_and(|until| until <= now) {
            self.banned_until = None;
            self.short = 0;
        }
        if now.saturating_duration_since(began) <= SHORT {
            self.short += 1;
            if self.short >= FORGIVEN_AFTER {
                self.short = PROBATION;
                self.slow = false;
            }
        } else if std::mem::replace(&mut self.slow, true) || self.short < PROBATION {
            self.ban(now);
        } else {
            self.short = PROBATION;
        }
    }

    /// A call has failed in a way that may come again.
    pub fn failed(&mut self, now: Instant) {
        self.ban(now);
    }

    fn ban(&mut self, now: Instant) {
        (self.short, self.slow) = (0, false);
        // While calls are made elsewhere already, they are only watched for longer.
        if self.banned_until.is_none() {
            self.banned_until = Some(now + self.ban);
            self.ban = (self.ban * 2).min(LONGEST_BAN);
        } else {
            self.banned_until = self.banned_until.max(Some(now + self.ban / 2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_micros(3);
    const SLOW: Duration = Duration::from_millis(2);

    /// A feature whose calls are made one after the other.
    struct Feature {
        pace: Pace,
        now: Instant,
    }

    impl Feature {
        fn new() -> Self {
            Self { pace: Pace::default(), now: Instant::now() }
        }

        fn calls(&mut self, count: u32, each: Duration) {
            for _ in 0..count {
                let began = self.now;
                self.now += each;
                self.pace.called(began, self.now);
            }
        }
    }

    #[test]
    fn the_first_calls_are_on_its_own_thread() {
        let mut feature = Feature::new();
        assert!(!feature.pace.is_quick());
        feature.calls(PROBATION - 1, QUICK);
        assert!(!feature.pace.is_quick());
        feature.calls(1, QUICK);
        assert!(feature.pace.is_quick());
    }

    #[test]
    fn one_slow_call_is_forgiven_and_two_are_not() {
        let mut feature = Feature::new();
        feature.calls(PROBATION, QUICK);
        feature.calls(1, SLOW);
        assert!(feature.pace.is_quick());
        feature.calls(FORGIVEN_AFTER, QUICK);
        feature.calls(1, SLOW);
        assert!(feature.pace.is_quick());
        feature.calls(1, SLOW);
        assert!(!feature.pace.is_quick());
    }

    #[test]
    fn a_ban_ends_and_the_next_one_is_longer() {
        let mut feature = Feature::new();
        let mut last = Duration::ZERO;
        for _ in 0..4 {
            feature.calls(FORGIVEN_AFTER, QUICK);
            let began = feature.now;
            feature.pace.failed(feature.now);
            while !feature.pace.is_quick() {
                feature.calls(1, QUICK);
            }
            let ban = feature.now - began;
            assert!(ban >= 2 * last && ban >= FIRST_BAN, "{ban:?} after {last:?}");
            last = ban - PROBATION * QUICK;
        }
    }

    #[test]
    fn a_feature_that_is_always_slow_stays_on_its_own_thread() {
        let mut feature = Feature::new();
        feature.calls(10_000, SLOW);
        assert!(!feature.pace.is_quick());
    }
}
