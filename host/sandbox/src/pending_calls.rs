//! The calls that one instance in the real-time lane has pending, in the order of their deadlines.
//!
//! A call on the event path asks to be followed by another one. Room for all is made once, so that asking for one does
//! not allocate. What service it was asked for by is not known here.

use conductor_event::Nanos;

/// Calls that one feature may have pending, of all its actions together: they are all in the instance that serves.
pub const MAX_PENDING: usize = 256;

/// The least time from the event or the deadline at which a call is asked for to its own deadline.
pub const MIN_AHEAD: Nanos = 1_000_000;

/// A call of one instance that is due at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingCall {
    /// When it is due, on the host's clock.
    pub deadline: Nanos,
    /// The prepared action in whose call it was asked for, as the instance calls it.
    pub action: u32,
    /// The guest's number for it; no other pending call of the action has it.
    pub id: u32,
    /// Whose event led to it, as a number of the worker's.
    pub owner: u32,
}

/// The call under way, in which others may be asked for.
#[derive(Debug, Clone, Copy)]
struct Cause {
    action: u32,
    owner: u32,
    /// Of the event, or the deadline.
    at: Nanos,
}

/// Why a call is not pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotPending {
    /// No call is under way that it could follow.
    NothingUnderWay,
    /// [`MAX_PENDING`] are.
    Full,
}

/// The calls that one instance has pending.
#[derive(Debug, Default)]
pub struct PendingCalls {
    /// The next one is the last; of those with one deadline, the one that was asked for first.
    calls: Vec<PendingCall>,
    cause: Option<Cause>,
}

impl PendingCalls {
    /// Makes room for as many as there may be.
    pub(crate) fn make_room(&mut self) {
        self.calls.reserve_exact(MAX_PENDING);
    }

    /// Begins a call of `action` for an event, or a deadline, at `at`. Until [`end`](Self::end) others can be asked for.
    pub(crate) fn begin(&mut self, action: u32, owner: u32, at: Nanos) {
        self.cause = Some(Cause { action, owner, at });
    }

    /// Ends the call.
    pub(crate) fn end(&mut self) {
        self.cause = None;
    }

    /// When the next one is due.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.calls.last().map(|call| call.deadline)
    }

    /// Takes the next one out.
    pub(crate) fn take(&mut self) -> Option<PendingCall> {
        self.calls.pop()
    }

    /// Cancels those of which this is true.
    pub(crate) fn cancel(&mut self, goes: impl Fn(&PendingCall) -> bool) {
        self.calls.retain(|call| !goes(call));
    }

    /// Whether one is pending for this owner.
    pub(crate) fn has_owner(&self, owner: u32) -> bool {
        self.calls.iter().any(|call| call.owner == owner)
    }

    /// When the one of the action under way with this id is due. `None` if there is none.
    pub(crate) fn deadline(&self, id: u32) -> Option<Nanos> {
        self.place(id).map(|place| self.calls[place].deadline)
    }

    /// Cancels the one of the action under way with this id. False if there is none.
    pub(crate) fn remove(&mut self, id: u32) -> bool {
        self.place(id).map(|place| self.calls.remove(place)).is_some()
    }

    /// Asks for a call at a time that is counted from that of the call under way, and returns its deadline. One of the
    /// same action with the same id is replaced.
    pub(crate) fn add(&mut self, id: u32, deadline: impl FnOnce(Nanos) -> Nanos) -> Result<Nanos, NotPending> {
        let cause = self.cause.ok_or(NotPending::NothingUnderWay)?;
        self.remove(id);
        if self.calls.len() >= MAX_PENDING {
            return Err(NotPending::Full);
        }
        let deadline = deadline(cause.at).max(cause.at.saturating_add(MIN_AHEAD));
        let place = self.calls.partition_point(|call| call.deadline > deadline);
        self.calls.insert(place, PendingCall { deadline, action: cause.action, id, owner: cause.owner });
        Ok(deadline)
    }

    fn place(&self, id: u32) -> Option<usize> {
        let cause = self.cause?;
        self.calls.iter().position(|call| call.action == cause.action && call.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(pending: &mut PendingCalls) -> Vec<(Nanos, u32)> {
        std::iter::from_fn(|| pending.take()).map(|call| (call.deadline, call.id)).collect()
    }

    #[test]
    fn calls_are_due_in_the_order_of_deadlines_then_of_asking() {
        let mut pending = PendingCalls::default();
        pending.begin(7, 0, 1_000);
        for (id, after) in [(1, 5_000_000), (2, 2_000_000), (3, 5_000_000), (4, 9_000_000)] {
            assert_eq!(pending.add(id, |at| at + after).unwrap(), 1_000 + after);
        }
        assert_eq!(pending.next(), Some(2_001_000));
        pending.add(4, |_| 3_000_000).unwrap();
        assert_eq!(order(&mut pending), [(2_001_000, 2), (3_000_000, 4), (5_001_000, 1), (5_001_000, 3)]);
        assert_eq!(pending.next(), None);
    }

    #[test]
    fn a_deadline_is_a_millisecond_away_at_least() {
        let mut pending = PendingCalls::default();
        pending.begin(0, 0, 50_000_000);
        for (id, deadline) in [(0, 0), (1, 50_000_000), (2, 50_999_999)] {
            assert_eq!(pending.add(id, |_| deadline).unwrap(), 51_000_000);
        }
        pending.begin(0, 0, Nanos::MAX);
        assert_eq!(pending.add(3, |at| at.saturating_add(1)).unwrap(), Nanos::MAX, "which never comes");
    }

    #[test]
    fn a_feature_has_so_many_pending_and_each_id_of_an_action_once() {
        let mut pending = PendingCalls::default();
        pending.begin(0, 0, 0);
        for id in 0..MAX_PENDING as u32 {
            pending.add(id, |_| 1_000_000_000).unwrap();
        }
        assert_eq!(pending.add(u32::MAX, |_| 1), Err(NotPending::Full));
        pending.begin(1, 0, 0);
        assert_eq!(pending.add(0, |_| 1), Err(NotPending::Full), "all actions together");
        pending.begin(0, 0, 0);
        assert!(pending.add(0, |_| 2_000_000).is_ok(), "one that is replaced is one");
        assert_eq!(pending.calls.len(), MAX_PENDING);
        pending.take();
        assert!(pending.add(u32::MAX, |_| 1).is_ok());
    }

    #[test]
    fn room_is_made_once() {
        let mut pending = PendingCalls::default();
        pending.make_room();
        pending.begin(0, 0, 0);
        let room = pending.calls.capacity();
        for id in 0..MAX_PENDING as u32 {
            pending.add(id, |_| 1).unwrap();
        }
        assert_eq!((pending.calls.len(), pending.calls.capacity()), (MAX_PENDING, room));
    }

    #[test]
    fn a_call_is_asked_for_within_a_call_only_and_goes_with_its_owner_or_action() {
        let mut pending = PendingCalls::default();
        assert_eq!(pending.add(0, |_| 1), Err(NotPending::NothingUnderWay));
        for (action, owner) in [(0, 5), (1, 5), (1, 6)] {
            pending.begin(action, owner, 0);
            pending.add(owner, |_| 1).unwrap();
            assert_eq!((pending.deadline(owner), pending.deadline(99)), (Some(MIN_AHEAD), None));
        }
        assert_eq!((pending.remove(6), pending.remove(6)), (true, false));
        pending.add(6, |_| 1).unwrap();
        pending.end();
        assert_eq!(pending.add(0, |_| 1), Err(NotPending::NothingUnderWay));
        assert_eq!(pending.deadline(5), None, "outside of a call there is no action whose call it could be");
        pending.cancel(|call| call.action == 0);
        assert!(pending.has_owner(5));
        pending.cancel(|call| call.owner == 5);
        assert!(!pending.has_owner(5) && pending.has_owner(6));
    }
}
