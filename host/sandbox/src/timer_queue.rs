//! The timers of one instance in the real-time lane, in the order of their deadlines.
//!
//! Calls on the event path set them. Room for all is made once, so that setting one does not allocate.

use conductor_event::Nanos;

use crate::bindings::Error;

/// Timers that one feature may have pending, of all its actions together: they are all in the instance that serves.
pub const MAX_TIMERS: usize = 256;

/// The least time from the event or the deadline at which a timer is set to its own deadline.
pub const MIN_TIMER: Nanos = 1_000_000;

/// A timer of one instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timer {
    /// When it is due, on the host's clock.
    pub deadline: Nanos,
    /// The prepared action in whose call it was set, as the instance calls it.
    pub action: u32,
    /// The guest's number for it; no other timer of the action has it.
    pub id: u32,
    /// Whose event led to it, as a number of the worker's.
    pub owner: u32,
}

/// The call under way, in which timers may be set.
#[derive(Debug, Clone, Copy)]
struct Cause {
    action: u32,
    owner: u32,
    /// Of the event, or the deadline.
    at: Nanos,
}

/// The timers of one instance.
#[derive(Debug, Default)]
pub struct Timers {
    /// The next one is the last; of those with one deadline, the one that was set first.
    pub(crate) pending: Vec<Timer>,
    cause: Option<Cause>,
}

impl Timers {
    /// Begins a call of `action` for an event, or a deadline, at `at`. Until [`end`](Self::end) timers can be set.
    pub(crate) fn begin(&mut self, action: u32, owner: u32, at: Nanos) {
        self.cause = Some(Cause { action, owner, at });
    }

    /// Ends the call.
    pub(crate) fn end(&mut self) {
        self.cause = None;
    }

    /// When the next one is due.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.pending.last().map(|timer| timer.deadline)
    }

    /// Takes the next one out.
    pub(crate) fn take(&mut self) -> Option<Timer> {
        self.pending.pop()
    }

    /// Cancels those of which this is true.
    pub(crate) fn cancel(&mut self, goes: impl Fn(&Timer) -> bool) {
        self.pending.retain(|timer| !goes(timer));
    }

    /// Whether one is pending for this owner.
    pub(crate) fn has_owner(&self, owner: u32) -> bool {
        self.pending.iter().any(|timer| timer.owner == owner)
    }

    /// The place of the timer of the action under way with this id.
    pub(crate) fn place(&self, id: u32) -> Option<usize> {
        let cause = self.cause?;
        self.pending.iter().position(|timer| timer.action == cause.action && timer.id == id)
    }

    /// Sets a timer for a time that is counted from that of the call under way, and returns its deadline.
    pub(crate) fn set(&mut self, id: u32, deadline: impl FnOnce(Nanos) -> Nanos) -> Result<Nanos, Error> {
        let Some(cause) = self.cause else {
            return Err(Error::Unavailable("a timer is set while an action is performed or a timer is due".into()));
        };
        if let Some(place) = self.place(id) {
            self.pending.remove(place);
        }
        if self.pending.len() >= MAX_TIMERS {
            return Err(Error::Exhausted(format!("{MAX_TIMERS} timers are pending")));
        }
        let deadline = deadline(cause.at).max(cause.at.saturating_add(MIN_TIMER));
        let place = self.pending.partition_point(|timer| timer.deadline > deadline);
        self.pending.insert(place, Timer { deadline, action: cause.action, id, owner: cause.owner });
        Ok(deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(timers: &mut Timers) -> Vec<(Nanos, u32)> {
        std::iter::from_fn(|| timers.take()).map(|timer| (timer.deadline, timer.id)).collect()
    }

    #[test]
    fn timers_are_due_in_the_order_of_deadlines_then_of_setting() {
        let mut timers = Timers::default();
        timers.begin(7, 0, 1_000);
        for (id, after) in [(1, 5_000_000), (2, 2_000_000), (3, 5_000_000), (4, 9_000_000)] {
            assert_eq!(timers.set(id, |at| at + after).unwrap(), 1_000 + after);
        }
        assert_eq!(timers.next(), Some(2_001_000));
        timers.set(4, |_| 3_000_000).unwrap();
        assert_eq!(order(&mut timers), [(2_001_000, 2), (3_000_000, 4), (5_001_000, 1), (5_001_000, 3)]);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_deadline_is_a_millisecond_away_at_least() {
        let mut timers = Timers::default();
        timers.begin(0, 0, 50_000_000);
        for (id, deadline) in [(0, 0), (1, 50_000_000), (2, 50_999_999)] {
            assert_eq!(timers.set(id, |_| deadline).unwrap(), 51_000_000);
        }
        timers.begin(0, 0, Nanos::MAX);
        assert_eq!(timers.set(3, |at| at.saturating_add(1)).unwrap(), Nanos::MAX, "which never comes");
    }

    #[test]
    fn a_feature_has_so_many_timers_and_each_id_of_an_action_once() {
        let mut timers = Timers::default();
        timers.begin(0, 0, 0);
        for id in 0..MAX_TIMERS as u32 {
            timers.set(id, |_| 1_000_000_000).unwrap();
        }
        assert!(matches!(timers.set(u32::MAX, |_| 1), Err(Error::Exhausted(_))));
        timers.begin(1, 0, 0);
        assert!(matches!(timers.set(0, |_| 1), Err(Error::Exhausted(_))), "all actions together");
        timers.begin(0, 0, 0);
        assert!(timers.set(0, |_| 2_000_000).is_ok(), "one that is replaced is one");
        assert_eq!(timers.pending.len(), MAX_TIMERS);
        timers.take();
        assert!(timers.set(u32::MAX, |_| 1).is_ok());
    }

    #[test]
    fn a_timer_is_set_within_a_call_only_and_goes_with_its_owner_or_action() {
        let mut timers = Timers::default();
        assert!(matches!(timers.set(0, |_| 1), Err(Error::Unavailable(_))));
        for (action, owner) in [(0, 5), (1, 5), (1, 6)] {
            timers.begin(action, owner, 0);
            timers.set(owner, |_| 1).unwrap();
            assert_eq!((timers.place(owner).is_some(), timers.place(99)), (true, None));
        }
        timers.end();
        assert!(matches!(timers.set(0, |_| 1), Err(Error::Unavailable(_))));
        assert_eq!(timers.place(5), None, "outside of a call there is no action whose timer it could be");
        timers.cancel(|timer| timer.action == 0);
        assert!(timers.has_owner(5));
        timers.cancel(|timer| timer.owner == 5);
        assert!(!timers.has_owner(5) && timers.has_owner(6));
    }
}
