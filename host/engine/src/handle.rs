//! The rule set in use, as lock-free snapshots (read-copy-update): swapped while it is read.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::rule_set::RuleSet;
use crate::snapshot::{Shared, SharedGuard};

/// Holds the rule set in use.
///
/// Reading is wait-free: it takes no lock, and after a thread's first time it allocates nothing.
/// Replacing costs the readers nothing either, not even the freeing of the old set: what a reader still
/// holds is set aside, and freed by a later [`swap`](Self::swap) on the swapping thread.
pub struct RuleSetHandle<A>(Shared<Numbered<A>>);

/// A rule set with its generation, so that a reader gets both at once or neither.
struct Numbered<A> {
    set: RuleSet<A>,
    generation: u64,
}

impl<A> RuleSetHandle<A> {
    /// Starts with `set` as generation 0.
    pub fn new(set: RuleSet<A>) -> Self {
        Self(Shared::new(Numbered { set, generation: 0 }))
    }

    /// The rule set in use. It stays as it is for as long as the guard lives, even if another is swapped in.
    /// Keep the guard for one event, or for as long as a gesture takes: guards that pile up in one thread
    /// make `load` slower.
    #[inline]
    pub fn load(&self) -> RuleSetGuard<A> {
        RuleSetGuard(self.0.load())
    }

    /// Replaces the rule set and returns the new one's generation, which is one more than the last.
    ///
    /// A set that no reader holds any more is freed here and now; one that is still held is kept until
    /// a later swap finds it free.
    pub fn swap(&self, set: RuleSet<A>) -> u64 {
        let mut generation = 0;
        self.0.swap_with(|last| {
            generation = last.generation + 1;
            Numbered { set, generation }
        });
        generation
    }

    /// The generation of the rule set in use.
    pub fn generation(&self) -> u64 {
        self.0.load().generation
    }

    /// The rule set in use, to be kept for any length of time. Not for the event path: it counts its holders.
    pub fn snapshot(&self) -> RuleSetSnapshot<A> {
        RuleSetSnapshot(self.0.load_full())
    }

    /// Frees rule sets that were replaced while a reader or a snapshot held them, if nothing holds them any more.
    pub fn reclaim(&self) {
        self.0.reclaim();
    }
}

/// A handle to a rule set that was in use elsewhere, with the generation that it had there: what an engine does with it
/// does not depend on what comes into use meanwhile.
impl<A> From<RuleSetSnapshot<A>> for RuleSetHandle<A> {
    fn from(RuleSetSnapshot(numbered): RuleSetSnapshot<A>) -> Self {
        Self(Shared::of(numbered))
    }
}

impl<A> fmt::Debug for RuleSetHandle<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let current = self.load();
        f.debug_struct("RuleSetHandle")
            .field("generation", &current.generation())
            .field("set", &*current)
            .finish_non_exhaustive()
    }
}

/// A rule set that is being read. See [`RuleSetHandle::load`].
pub struct RuleSetGuard<A>(SharedGuard<Numbered<A>>);

impl<A> RuleSetGuard<A> {
    /// How many times the handle had been swapped when this set came in.
    pub fn generation(&self) -> u64 {
        self.0.generation
    }
}

impl<A> Deref for RuleSetGuard<A> {
    type Target = RuleSet<A>;

    #[inline]
    fn deref(&self) -> &RuleSet<A> {
        &self.0.set
    }
}

impl<A> fmt::Debug for RuleSetGuard<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleSetGuard").field("generation", &self.generation()).field("set", &**self).finish()
    }
}

/// A rule set and its generation, which stay as they are if another is swapped in. See [`RuleSetHandle::snapshot`].
pub struct RuleSetSnapshot<A>(Arc<Numbered<A>>);

impl<A> RuleSetSnapshot<A> {
    /// How many times the handle had been swapped when this set came in.
    pub fn generation(&self) -> u64 {
        self.0.generation
    }
}

impl<A> Clone for RuleSetSnapshot<A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A> Deref for RuleSetSnapshot<A> {
    type Target = RuleSet<A>;

    fn deref(&self) -> &RuleSet<A> {
        &self.0.set
    }
}

impl<A> fmt::Debug for RuleSetSnapshot<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleSetSnapshot").field("generation", &self.generation()).field("set", &**self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::compile;
    use crate::rule::{RuleSource, RuleSpec};
    use crate::trigger::Trigger;

    fn set<A>(action: A) -> RuleSet<A> {
        let rules = vec![RuleSpec::new(Trigger::MidiAny { channel: None }, action)];
        compile(RuleSource { modes: vec![], rules }).unwrap()
    }

    #[test]
    fn a_reader_keeps_what_it_loaded() {
        let handle = RuleSetHandle::new(set("old"));
        let before = handle.load();
        assert_eq!(handle.swap(set("new")), 1);
        assert_eq!((before.rules()[0].action, before.generation()), ("old", 0));
        assert_eq!((handle.load().rules()[0].action, handle.generation()), ("new", 1));
    }

    #[test]
    fn what_a_reader_holds_is_freed_by_a_later_swap_and_never_by_the_reader() {
        let witness = Arc::new(());
        let handle = RuleSetHandle::new(set(Arc::clone(&witness)));
        let reader = handle.load();
        handle.swap(set(Arc::default()));
        drop(reader);
        assert_eq!(Arc::strong_count(&witness), 2, "the reader must not have freed it");
        handle.swap(set(Arc::default()));
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn a_snapshot_stays_as_it_is_and_is_freed_when_it_is_reclaimed() {
        let witness = Arc::new(());
        let handle = RuleSetHandle::new(set(Arc::clone(&witness)));
        handle.swap(set(Arc::clone(&witness)));
        let snapshot = handle.snapshot();
        handle.swap(set(Arc::default()));
        assert_eq!((snapshot.generation(), snapshot.rules().len()), (1, 1));
        let fixed = RuleSetHandle::from(snapshot.clone());
        assert_eq!((fixed.generation(), handle.generation()), (1, 2));
        handle.reclaim();
        assert_eq!(Arc::strong_count(&witness), 2, "it is held");
        drop((snapshot, fixed));
        assert_eq!(Arc::strong_count(&witness), 2, "its holder does not free it");
        handle.reclaim();
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn what_nobody_reads_is_freed_at_once() {
        let witness = Arc::new(());
        let handle = RuleSetHandle::new(set(Arc::clone(&witness)));
        handle.swap(set(Arc::default()));
        assert_eq!(Arc::strong_count(&witness), 1);
    }
}
