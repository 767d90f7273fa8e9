//! A bounded pool of things that are costly to make: each is used by one caller at a time, kept for the next one, and
//! dropped when it was not used for a while.
//!
//! A caller first [enters](Pool::enter), which bounds how many are used at once: callers beyond that wait in the order
//! in which they came, and only so many. With a [`Place`] it takes a thing that was kept, or makes one, and returns it
//! with [`Pool::keep`] or drops it. The pool has no clock: what is idle is dropped when [`Pool::drop_idle`] is called, by
//! a task that [`Pool::watch`] starts, or by a test.
//!
//! A [`Budget`] bounds what several pools have together.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// A pool. It is shared by reference; all of its methods take `&self`.
#[derive(Debug)]
pub struct Pool<T> {
    size: usize,
    places: Semaphore,
    /// Callers that wait for a place, and how many may.
    waiting: AtomicUsize,
    queue: usize,
    /// How long a thing is kept that is not used; `None` for as long as the pool exists.
    idle_timeout: Option<Duration>,
    /// With the time at which each was returned, the last one at the end.
    idle: Mutex<Vec<(T, Instant)>>,
    /// Whether a task sees to what is idle.
    is_watched: AtomicBool,
}

/// One of the pool's places, given back by being dropped.
#[derive(Debug)]
#[must_use]
pub struct Place<'p>(#[expect(dead_code, reason = "dropping it gives it back")] SemaphorePermit<'p>);

/// As many callers wait as may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} callers are waiting already")]
pub struct Full(pub usize);

/// A caller that waits.
struct Waits<'p>(&'p AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> Pool<T> {
    /// A pool of at most `size` things (at least 1) that are used at once, for which at most `queue` callers wait. What
    /// is not used for `idle_timeout` can be dropped; with `None` nothing is.
    pub fn new(size: usize, queue: usize, idle_timeout: Option<Duration>) -> Self {
        let (size, waiting, idle, is_watched) =
            (size.max(1), AtomicUsize::new(0), Mutex::default(), AtomicBool::new(false));
        Self { size, places: Semaphore::new(size), waiting, queue, idle_timeout, idle, is_watched }
    }

    /// Waits for a place. Callers get theirs in the order in which this was first polled.
    ///
    /// # Errors
    /// [`Full`], at once.
    pub async fn enter(&self) -> Result<Place<'_>, Full> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(Place(place));
        }
        let count = |waiting| (waiting < self.queue).then_some(waiting + 1);
        let counted = self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count);
        counted.map_err(|_| Full(self.queue))?;
        let _waits = Waits(&self.waiting);
        // It is never closed.
        self.places.acquire().await.map(Place).map_err(|_| Full(0))
    }

    /// Callers that wait for a place.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Callers that have a place.
    pub fn in_use(&self) -> usize {
        self.size - self.places.available_permits()
    }

    /// A thing that was kept: the one that was used last. `None` if one has to be made. To be called with a place.
    pub fn take(&self) -> Option<T> {
        self.idle.lock().pop().map(|(thing, _)| thing)
    }

    /// Keeps a thing for the next caller. To be called with a place.
    pub fn keep(&self, thing: T, now: Instant) {
        self.idle.lock().push((thing, now));
    }

    /// Has a task on `runtime` drop what is idle in time, and all that is kept when `ended` returns. To be called after
    /// [`keep`](Self::keep); the task ends when nothing is kept any more, and there is one at a time.
    pub fn watch<E>(self: &Arc<Self>, runtime: &Handle, ended: impl FnOnce() -> E)
    where
        T: Send + 'static,
        E: Future<Output = ()> + Send + 'static,
    {
        if self.is_watched.swap(true, Ordering::AcqRel) {
            return;
        }
        let (pool, ended, timeout) = (Arc::downgrade(self), ended(), self.idle_timeout);
        runtime.spawn(async move {
            let mut ended = std::pin::pin!(ended);
            loop {
                let has_ended = tokio::select! {
                    () = tokio::time::sleep(timeout.unwrap_or_default()), if timeout.is_some() => false,
                    () = &mut ended => true,
                };
                let Some(pool) = pool.upgrade() else { return };
                if has_ended {
                    return pool.clear();
                }
                pool.drop_idle(Instant::now());
                pool.is_watched.store(false, Ordering::Release);
                // Something may have been kept in between, by a caller that found the pool watched.
                if pool.idle() == 0 || pool.is_watched.swap(true, Ordering::AcqRel) {
                    return;
                }
            }
        });
    }

    /// Drops what was not used for the idle timeout by `now`.
    pub fn drop_idle(&self, now: Instant) {
        if let Some(timeout) = self.idle_timeout {
            self.drop_where(|since| now.saturating_duration_since(since) >= timeout);
        }
    }

    /// Drops what is not in use at the moment, however long it has been idle, unless the pool keeps things for good.
    pub fn drop_spare(&self) {
        if self.idle_timeout.is_some() {
            self.clear();
        }
    }

    /// Drops what is not in use at the moment.
    pub fn clear(&self) {
        self.drop_where(|_| true);
    }

    /// Things that are kept and not in use.
    pub fn idle(&self) -> usize {
        self.idle.lock().len()
    }

    /// Whether there is nothing in the pool: no thing that is kept, and no caller that has a place.
    pub fn is_empty(&self) -> bool {
        self.idle() == 0 && self.in_use() == 0
    }

    fn drop_where(&self, goes: impl Fn(Instant) -> bool) {
        // Dropped when the lock is free again: that may take a while.
        let gone: Vec<_> = self.idle.lock().extract_if(.., |(_, since)| goes(*since)).collect();
        drop(gone);
    }
}

/// A bound on the things of several pools together, in use or kept.
#[derive(Debug)]
pub struct Budget {
    places: Arc<Semaphore>,
    pools: Mutex<Vec<Weak<dyn GivesWay>>>,
}

/// A pool, whatever is in it.
trait GivesWay: Send + Sync {
    /// See [`Pool::drop_spare`].
    fn give_way(&self);
}

impl<T: Send> GivesWay for Pool<T> {
    fn give_way(&self) {
        self.drop_spare();
    }
}

/// The part of a [`Budget`] that one thing takes, to be dropped with it.
#[derive(Debug)]
#[must_use]
pub struct Share(#[expect(dead_code, reason = "dropping it gives it back")] OwnedSemaphorePermit);

impl Budget {
    /// A budget of `size` things.
    pub fn new(size: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(size)), pools: Mutex::default() }
    }

    /// Has what is idle in this pool give way to what is made for others.
    pub fn add<T: Send + 'static>(&self, pool: &Arc<Pool<T>>) {
        let pool = Arc::downgrade(pool);
        let mut pools = self.pools.lock();
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(pool);
    }

    /// A share for a thing that is to be made. `None` if all there are is taken by what can't be dropped.
    pub fn take(&self) -> Option<Share> {
        let take = || Arc::clone(&self.places).try_acquire_owned().ok();
        let share = take().or_else(|| {
            let pools: Vec<_> = self.pools.lock().iter().filter_map(Weak::upgrade).collect();
            pools.iter().for_each(|pool| pool.give_way());
            take()
        });
        share.map(Share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn entered<T>(pool: &Pool<T>) -> Result<Place<'_>, Full> {
        match pin!(pool.enter()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(entered) => entered,
            Poll::Pending => panic!("it waits"),
        }
    }

    #[test]
    fn callers_wait_in_the_order_in_which_they_came_and_only_so_many() {
        let pool = Pool::<()>::new(2, 2, None);
        let (first, second) = (entered(&pool).unwrap(), entered(&pool).unwrap());
        let context = &mut Context::from_waker(Waker::noop());
        let (mut third, mut fourth) = (pin!(pool.enter()), pin!(pool.enter()));
        assert!(third.as_mut().poll(context).is_pending() && fourth.as_mut().poll(context).is_pending());
        assert_eq!((pool.waiting(), entered(&pool).unwrap_err()), (2, Full(2)));
        drop(second);
        assert!(fourth.as_mut().poll(context).is_pending(), "another one came before");
        let Poll::Ready(third) = third.as_mut().poll(context) else { panic!("a place is free") };
        assert_eq!(pool.waiting(), 1);
        drop((first, third));
        assert!(fourth.as_mut().poll(context).is_ready());
        assert_eq!(pool.waiting(), 0);
    }

    #[test]
    fn a_caller_that_gives_up_takes_no_place() {
        let pool = Pool::<()>::new(1, 8, None);
        let first = entered(&pool).unwrap();
        {
            let mut second = pin!(pool.enter());
            assert!(second.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert_eq!(pool.waiting(), 0);
        drop(first);
        assert!(entered(&pool).is_ok());
    }

    #[test]
    fn what_was_used_last_is_used_next_and_what_is_idle_is_dropped() {
        let (pool, start) = (Pool::new(4, 0, Some(TIMEOUT)), Instant::now());
        pool.keep("old", start);
        pool.keep("new", start + Duration::from_secs(20));
        assert_eq!(pool.take(), Some("new"));
        pool.keep("new", start + Duration::from_secs(25));
        pool.drop_idle(start + TIMEOUT - Duration::from_millis(1));
        assert_eq!(pool.idle(), 2);
        pool.drop_idle(start + TIMEOUT);
        assert_eq!((pool.idle(), pool.take()), (1, Some("new")));
        assert!(pool.is_empty());
        pool.keep("new", start);
        pool.drop_spare();
        assert!(pool.is_empty(), "what is idle gives way");
    }

    #[test]
    fn a_pool_that_keeps_things_for_good_drops_them_only_when_it_is_cleared() {
        let (pool, start) = (Pool::new(1, 0, None), Instant::now());
        pool.keep("it", start);
        pool.drop_idle(start + TIMEOUT * 1000);
        pool.drop_spare();
        assert_eq!(pool.idle(), 1);
        pool.clear();
        assert!(pool.is_empty());
        let place = entered(&pool).unwrap();
        assert!(!pool.is_empty(), "one is in use");
        drop(place);
    }
    #[test]
    fn what_is_idle_in_one_pool_gives_way_to_what_another_one_needs() {
        let budget = Budget::new(2);
        let pools = [Some(TIMEOUT), None].map(|idle| Arc::new(Pool::new(4, 0, idle)));
        pools.iter().for_each(|pool| budget.add(pool));
        pools[0].keep(budget.take().unwrap(), Instant::now());
        let used = budget.take().unwrap();
        let third = budget.take().unwrap();
        assert!(pools[0].is_empty() && budget.take().is_none(), "two are in use");
        drop(third);
        pools[1].keep(used, Instant::now());
        let another = budget.take().unwrap();
        assert!(budget.take().is_none(), "what is kept for good does not give way");
        assert_eq!(pools[1].idle(), 1);
        drop(another);
        assert!(budget.take().is_some());
    }
}
