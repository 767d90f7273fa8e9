//! Whether calls of a feature are short enough to run to completion on a thread that has other things to do.
//!
//! A thread that brings an event or a request makes the feature's call itself, so that no other thread has to be woken. It
//! must not be held up for much longer than waking a thread takes. So it only makes the calls of features whose calls have
//! been short for a while. A feature that traps, or whose long calls add up to too much, has its calls made on other threads
//! again, each time for twice as long.
//!
//! What counts is processor time, since a busy machine interrupts calls that are short. Where reading it for each call
//! costs too much ([`Pace::begin`]), time that passes counts, until a call was long; and where a call waited. Virtual machines
//! stand still now and then and count that as processor time, and some take long to wake who receives what a call has sent: so
//! what is a little too long is forgiven as time passes.

use std::time::{Duration, Instant};

use crate::thread_use::ThreadUse;

/// Calls that have to be short, one after the other, before others make them.
const PROBATION_CALLS: u32 = 32;
/// For how long a thread that has brought events begins calls, of all features together. The rest is for the features' own
/// threads, so that features that are each just short enough do not add up.
pub const CARRY_BUDGET: Duration = Duration::from_micros(250);
/// So many short calls make up for one that was not: a busy machine may have interrupted it.
const FORGIVEN_AFTER: u32 = 1000;
/// What long calls may take beyond the longest short one, all together, of what is not forgiven.
const MAX_EXCESS: Duration = Duration::from_millis(1);
/// The hundredth part of the time that passes is forgiven of it: that much may long calls hold up others for, at most.
const FORGIVEN_PART: u32 = 100;
/// How long calls are made on other threads again, the first time.
const FIRST_BAN: Duration = Duration::from_secs(1);
/// The same at most.
const MAX_BAN: Duration = Duration::from_secs(300);
/// The length of a ban is reset if there was none for this factor times the length of the next one: on a busy machine a
/// feature is slow now and then through no fault of its own, and one that is slow on purpose gains little.
const BAN_RESET_FACTOR: u32 = 10;

/// When a call began.
#[derive(Debug)]
pub struct Began {
    at: Instant,
    /// What its thread had used, where that is asked for.
    thread: Option<ThreadUse>,
}

/// What is known about the calls of a feature.
#[derive(Debug)]
pub struct Pace {
    /// Short calls since the last one that was not, at most [`FORGIVEN_AFTER`].
    short: u32,
    /// Whether there was a long call since so many short ones: calls are timed by what they take of the processor.
    slow: bool,
    /// What long calls took beyond the longest short one, and when the last of them ended.
    excess: (Duration, Instant),
    banned_until: Option<Instant>,
    /// How long the next ban is.
    ban: Duration,
    /// When the last one ended.
    banned: Option<Instant>,
    /// The longest call that is short.
    most: Duration,
}

impl Pace {
    /// Calls of up to `most` are short: a few times what waking a thread takes.
    pub fn new(most: Duration) -> Self {
        let excess = (Duration::ZERO, Instant::now());
        Self { short: 0, slow: false, excess, banned_until: None, ban: FIRST_BAN, banned: None, most }
    }

    /// Whether the next call is expected to be short.
    pub fn is_quick(&self) -> bool {
        self.short >= PROBATION_CALLS && self.banned_until.is_none()
    }

    /// A call begins on this thread, and is [timed](Self::end) here.
    pub fn begin(&self) -> Began {
        // Asking what a thread has used takes a system call.
        let is_in_doubt = self.slow || !self.is_quick();
        Began { at: Instant::now(), thread: is_in_doubt.then(ThreadUse::now).flatten() }
    }

    /// A call has ended.
    pub fn end(&mut self, began: &Began) {
        let now = Instant::now();
        let passed = now.saturating_duration_since(began.at);
        let took = if passed <= self.most { None } else { began.thread.and_then(|thread| thread.busy_since()) };
        self.called(took.unwrap_or(passed), now);
    }

    /// A call that took so long has ended.
    pub fn called(&mut self, took: Duration, now: Instant) {
        if self.banned_until.is_some_and(|until| until <= now) {
            self.banned = self.banned_until.take();
            self.short = 0;
        }
        if took <= self.most {
            self.short += 1;
            if self.short >= FORGIVEN_AFTER {
                self.short = PROBATION_CALLS;
                self.slow = false;
            }
        } else if self.banned_until.is_none() && self.short < PROBATION_CALLS {
            // The first calls of an instance touch its code and memory for the first time: that is no reason for a ban.
            self.short = 0;
        } else {
            self.short = PROBATION_CALLS;
            // The first one may have been interrupted: it was not asked what it took of the processor.
            let was_timed = std::mem::replace(&mut self.slow, true) || self.banned_until.is_some();
            if was_timed && self.exceeds(took.saturating_sub(self.most), now) {
                self.ban(now);
            }
        }
    }

    /// Adds to what long calls took too much. Whether that is more than is forgiven.
    fn exceeds(&mut self, excess: Duration, now: Instant) -> bool {
        let (before, at) = self.excess;
        let forgiven = now.saturating_duration_since(at) / FORGIVEN_PART;
        let excess = before.saturating_sub(forgiven).saturating_add(excess);
        self.excess = (excess, now);
        excess > MAX_EXCESS
    }

    /// The feature has trapped, or may not run for now.
    pub fn failed(&mut self, now: Instant) {
        self.ban(now);
    }

    fn ban(&mut self, now: Instant) {
        (self.short, self.slow, self.excess) = (0, false, (Duration::ZERO, now));
        // While its calls are made on other threads already, it is only watched for longer.
        if self.banned_until.is_none() {
            if self.banned.is_some_and(|ended| now.saturating_duration_since(ended) >= self.ban * BAN_RESET_FACTOR) {
                self.ban = FIRST_BAN;
            }
            self.banned_until = Some(now + self.ban);
            self.ban = (self.ban * 2).min(MAX_BAN);
        } else {
            self.banned_until = self.banned_until.max(Some(now + self.ban / 2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(100);
    const QUICK: Duration = Duration::from_micros(3);
    const SLOW: Duration = Duration::from_millis(2);

    /// A feature whose calls are made one after the other.
    struct Feature {
        pace: Pace,
        now: Instant,
    }

    impl Feature {
        /// One that was called once.
        fn new() -> Self {
            let mut it = Self { pace: Pace::new(SHORT), now: Instant::now() };
            it.calls(1, SLOW);
            it
        }

        /// Its ban, from now until its calls are made by others again.
        fn banned(&mut self) -> Duration {
            let began = self.now;
            self.pace.failed(began);
            while !self.pace.is_quick() {
                self.calls(1, QUICK);
            }
            self.now - began - PROBATION_CALLS * QUICK
        }

        fn calls(&mut self, count: u32, each: Duration) {
            for _ in 0..count {
                self.now += each;
                self.pace.called(each, self.now);
            }
        }
    }

    #[test]
    fn the_first_calls_are_on_its_own_thread() {
        let mut feature = Feature::new();
        assert!(!feature.pace.is_quick());
        feature.calls(PROBATION_CALLS - 1, QUICK);
        assert!(!feature.pace.is_quick());
        feature.calls(1, QUICK);
        assert!(feature.pace.is_quick());
    }

    #[test]
    fn one_slow_call_is_forgiven_and_two_are_not() {
        let mut feature = Feature::new();
        feature.calls(PROBATION_CALLS, QUICK);
        feature.calls(1, SLOW);
        assert!(feature.pace.is_quick());
        feature.calls(FORGIVEN_AFTER, QUICK);
        feature.calls(1, SLOW);
        assert!(feature.pace.is_quick());
        feature.calls(1, SLOW);
        assert!(!feature.pace.is_quick());
    }

    #[test]
    fn what_is_rare_and_little_too_long_is_forgiven() {
        const LATE: Duration = Duration::from_micros(250);
        let mut feature = Feature::new();
        feature.calls(PROBATION_CALLS, QUICK);
        // One of forty, 25 a second.
        for _ in 0..1000 {
            feature.calls(1, LATE);
            assert!(feature.pace.is_quick());
            for _ in 0..39 {
                feature.now += Duration::from_millis(1);
                feature.calls(1, QUICK);
            }
        }
        // Every one.
        let mut count = 0;
        while feature.pace.is_quick() && count < 100 {
            feature.calls(1, LATE);
            count += 1;
        }
        assert!((5..10).contains(&count), "it holds others up for about a millisecond: {count} calls");
    }

    #[test]
    fn a_ban_ends_and_the_next_one_is_longer() {
        let mut feature = Feature::new();
        let mut last = Duration::ZERO;
        for _ in 0..4 {
            feature.calls(FORGIVEN_AFTER, QUICK);
            let ban = feature.banned();
            assert!(ban + QUICK >= 2 * last && ban + QUICK >= FIRST_BAN, "{ban:?} after {last:?}");
            last = ban;
        }
    }

    #[test]
    fn a_feature_that_was_good_for_long_begins_with_a_short_ban_again() {
        let mut feature = Feature::new();
        feature.calls(PROBATION_CALLS, QUICK);
        feature.banned();
        let longer = feature.banned();
        feature.calls(PROBATION_CALLS, QUICK);
        // The next one would be 4 s.
        feature.now += BAN_RESET_FACTOR * 4 * FIRST_BAN;
        let shorter = feature.banned();
        assert!(longer >= 2 * FIRST_BAN - QUICK && shorter < 2 * FIRST_BAN, "{longer:?}, then {shorter:?}");
    }

    #[test]
    fn a_call_that_was_interrupted_is_short_once_that_is_asked() {
        let mut feature = Feature::new();
        feature.calls(PROBATION_CALLS, QUICK);
        feature.calls(1, SLOW);
        let mut began = feature.pace.begin();
        if began.thread.is_none() {
            return; // This system does not say.
        }
        began.at = began.at.checked_sub(SLOW).unwrap();
        feature.pace.end(&began);
        assert!(feature.pace.is_quick(), "the thread has hardly worked, and has not waited");
        let mut began = feature.pace.begin();
        began.at = began.at.checked_sub(SLOW).unwrap();
        std::thread::sleep(Duration::from_millis(1));
        feature.pace.end(&began);
        assert!(!feature.pace.is_quick(), "it has waited");
    }

    #[test]
    fn a_feature_that_is_always_slow_stays_on_its_own_thread() {
        let mut feature = Feature::new();
        feature.calls(10_000, SLOW);
        assert!(!feature.pace.is_quick());
    }
}
