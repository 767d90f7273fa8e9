//! Lock-free snapshots of values that are swapped while they are read: read-copy-update (RCU, also called
//! double buffering) with arc-swap.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Guard};

/// Something that many read while it is now and then replaced.
///
/// Reading is wait-free: it takes no lock, and after a thread's first time it allocates nothing.
/// Replacing costs the readers nothing either, not even the freeing of what was there: what a reader
/// still holds is set aside, and freed by a later replacement, on the replacing thread.
pub(crate) struct Shared<T> {
    current: ArcSwap<T>,
    /// What was in use when it was replaced. Only [`swap_with`](Self::swap_with) takes this lock.
    retired: Mutex<Vec<Arc<T>>>,
}

/// What is being read. See [`Shared::load`].
pub(crate) type SharedGuard<T> = Guard<Arc<T>>;

impl<T> Shared<T> {
    pub(crate) fn new(first: T) -> Self {
        Self::of(Arc::new(first))
    }

    pub(crate) fn of(first: Arc<T>) -> Self {
        Self { current: ArcSwap::new(first), retired: Mutex::new(Vec::new()) }
    }

    #[inline]
    pub(crate) fn load(&self) -> SharedGuard<T> {
        self.current.load()
    }

    /// The same to be kept for any length of time. It counts its holders.
    pub(crate) fn load_full(&self) -> Arc<T> {
        self.current.load_full()
    }

    /// Replaces what is there with what `next` makes of it. Two at once come one after the other.
    ///
    /// What no reader holds any more is freed here and now; what is still held is kept until a later
    /// call finds it free.
    pub(crate) fn swap_with(&self, next: impl FnOnce(&T) -> T) {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        let next = Arc::new(next(&self.current.load()));
        retired.push(self.current.swap(next));
        // A replaced value gets no new readers, so a count of one is final: only this list holds it.
        let free = free(&mut retired);
        drop(retired);
        drop(free);
    }

    /// Frees what was replaced and is no longer held, on this thread.
    pub(crate) fn reclaim(&self) {
        let free = free(&mut self.retired.lock().unwrap_or_else(PoisonError::into_inner));
        drop(free);
    }
}

/// Takes out the values that only the list itself holds.
fn free<T>(retired: &mut Vec<Arc<T>>) -> Vec<Arc<T>> {
    retired.extract_if(.., |old| Arc::strong_count(old) == 1).collect()
}
