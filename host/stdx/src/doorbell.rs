//! Queues with a wakeup, for a thread that sleeps as soon as there is nothing to do.
//!
//! A blocking receive of `crossbeam-channel` spins and yields for some microseconds before it sleeps. A thread that is
//! woken for every event pays that each time, and delays the next thread on its core. Here it looks, and sleeps:
//! [`Sender::send`] rings, and a ring while it is awake makes its next sleep short instead of long. Rings are no count,
//! so a thread that wakes looks at all its queues.
//!
//! A thread that may work for longer than a moment can spare the other one its wakeup: [`Sender::put`] does not ring, and
//! [`Sender::carry`] does the work on the calling thread where the other side offers that ([`Doorbell::carried_by`]).

use std::fmt;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{self, Thread};
use std::time::Instant;

use crossbeam_channel::{Receiver, SendError, TrySendError};

/// Work that any thread may do in place of the one that waits at a doorbell.
pub trait Carrier: Send + Sync {
    /// Does what waits, if no other thread is at it; else that one does it. Takes no lock.
    fn carry(&self);
}

/// What wakes one thread. Clones ring for the same one.
#[derive(Clone, Default)]
pub struct Doorbell(Arc<Place>);

/// Where one thread waits.
#[derive(Default)]
struct Place {
    thread: OnceLock<Thread>,
    carrier: OnceLock<Weak<dyn Carrier>>,
}

impl fmt::Debug for Doorbell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Doorbell").field(&self.0.thread.get().map(Thread::id)).finish()
    }
}

impl Doorbell {
    /// From now on [`Sender::carry`] has the work done by this, for as long as it lives. The first one counts.
    pub fn carried_by(&self, carrier: Weak<dyn Carrier>) {
        let _ = self.0.carrier.set(carrier);
    }

    /// Has the work done on this thread where that is offered; else rings.
    fn carry(&self) {
        match self.0.carrier.get().and_then(Weak::upgrade) {
            Some(carrier) => carrier.carry(),
            None => self.ring(),
        }
    }

    /// Wakes the thread that waits here, or will. Takes no lock.
    pub fn ring(&self) {
        // What was put into a queue before this is there for the thread before it can be seen to have begun to wait;
        // the other half is in `wait`.
        fence(Ordering::SeqCst);
        if let Some(thread) = self.0.thread.get() {
            thread.unpark();
        }
    }

    /// Whether no other thread can ring or wait here.
    pub(crate) fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Sleeps until a ring, or until `deadline`; it may wake sooner. The thread that does so first is the one
    /// that is rung for.
    pub fn wait(&self, deadline: Option<Instant>) {
        if self.0.thread.get().is_none() {
            let _ = self.0.thread.set(thread::current());
            fence(Ordering::SeqCst);
            // A ring before this point had no thread to wake, so this call does not sleep.
            return;
        }
        debug_assert_eq!(self.0.thread.get().map(Thread::id), Some(thread::current().id()), "one thread is rung for");
        match deadline {
            None => thread::park(),
            Some(deadline) => thread::park_timeout(deadline.saturating_duration_since(Instant::now())),
        }
    }
}

/// Rings when it is dropped: that nothing more can come is something to wake for.
#[derive(Debug)]
struct Ring(Doorbell);

impl Drop for Ring {
    fn drop(&mut self) {
        self.0.ring();
    }
}

/// What all senders of a queue share, so that only the last one who leaves rings: a rule set holds one in every rule.
struct Shared<T> {
    // In this order: the queue has ended when the ring is heard.
    queue: crossbeam_channel::Sender<T>,
    ring: Ring,
}

/// The way into a queue. Clones share it.
pub struct Sender<T>(Arc<Shared<T>>);

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender")
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// The sender and the receiver of a bounded queue, for the thread that waits at `bell`.
pub fn bounded<T>(capacity: usize, bell: &Doorbell) -> (Sender<T>, Receiver<T>) {
    let (queue, receiver) = crossbeam_channel::bounded(capacity);
    (Sender::new(queue, bell), receiver)
}

/// The same without an end; only for what few may send.
pub fn unbounded<T>(bell: &Doorbell) -> (Sender<T>, Receiver<T>) {
    let (queue, receiver) = crossbeam_channel::unbounded();
    (Sender::new(queue, bell), receiver)
}

impl<T> Sender<T> {
    fn new(queue: crossbeam_channel::Sender<T>, bell: &Doorbell) -> Self {
        Self(Arc::new(Shared { queue, ring: Ring(bell.clone()) }))
    }

    /// Puts it in and rings, where there is room. Does not wait.
    ///
    /// # Errors
    /// As [`crossbeam_channel::Sender::try_send`]: if the queue is full or the receiver has been dropped.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.0.queue.try_send(value)?;
        self.0.ring.0.ring();
        Ok(())
    }

    /// Puts it in, where there is room, and leaves it to the caller to have it done soon, by [`carry`](Self::carry) or
    /// [`ring`](Self::ring). Does not wait.
    ///
    /// # Errors
    /// As [`try_send`](Self::try_send).
    pub fn put(&self, value: T) -> Result<(), TrySendError<T>> {
        self.0.queue.try_send(value)
    }

    /// Has what was put in done on this thread, where the other side offers that and no thread is at it; else rings.
    pub fn carry(&self) {
        self.0.ring.0.carry();
    }

    /// Wakes the other side.
    pub fn ring(&self) {
        self.0.ring.0.ring();
    }

    /// Puts it in and rings; waits for room if there is none.
    ///
    /// # Errors
    /// If the receiver has been dropped.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.0.queue.send(value)?;
        self.0.ring.0.ring();
        Ok(())
    }

    /// Whether there is no room now.
    pub fn is_full(&self) -> bool {
        self.0.queue.is_full()
    }

    /// How many are in it now.
    pub fn waiting(&self) -> usize {
        self.0.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crossbeam_channel::TryRecvError;

    use super::*;

    /// Takes numbers from two queues until both have ended, and says how many and their sum.
    fn taker(bell: Doorbell, queues: [Receiver<u64>; 2]) -> (u64, u64) {
        let (mut count, mut sum) = (0, 0);
        loop {
            let looks = queues.each_ref().map(|queue| queue.try_recv());
            for number in looks.iter().flatten() {
                (count, sum) = (count + 1, sum + number);
            }
            if looks.iter().all(|look| *look == Err(TryRecvError::Disconnected)) {
                return (count, sum);
            }
            if looks.iter().all(Result::is_err) {
                bell.wait(None);
            }
        }
    }

    /// Each send wakes it; so does the last sender when it is dropped.
    #[test]
    fn nothing_that_was_put_in_is_slept_over() {
        const EACH: u64 = 20_000;
        let bell = Doorbell::default();
        let (first, first_out) = bounded(4, &bell);
        let (second, second_out) = unbounded(&bell);
        let taker = thread::spawn(move || taker(bell, [first_out, second_out]));
        let senders = [first.clone(), first, second.clone(), second].map(|sender| {
            thread::spawn(move || {
                for number in 0..EACH {
                    sender.send(number).unwrap();
                    if number % 64 == 0 {
                        thread::yield_now();
                    }
                }
            })
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        assert_eq!(taker.join().unwrap(), (4 * EACH, 4 * (EACH - 1) * EACH / 2));
    }

    #[test]
    fn a_ring_while_it_is_awake_is_not_lost() {
        let bell = Doorbell::default();
        let (sender, receiver) = bounded(1, &bell);
        // It is known now, and awake.
        bell.wait(None);
        sender.try_send(7).unwrap();
        bell.wait(None);
        assert_eq!(receiver.try_recv(), Ok(7));
        assert!(matches!(sender.try_send(8), Ok(())) && sender.is_full() && sender.waiting() == 1);
        assert!(matches!(sender.try_send(9), Err(TrySendError::Full(9))));
    }

    /// A rule set that goes takes thousands of them along.
    #[test]
    fn who_leaves_first_wakes_nobody() {
        let bell = Doorbell::default();
        let (sender, receiver) = bounded::<u64>(1, &bell);
        bell.wait(None);
        drop(sender.clone());
        let until = Instant::now() + Duration::from_millis(20);
        bell.wait(Some(until));
        assert!(Instant::now() >= until, "it was rung for");
        drop(sender);
        bell.wait(None);
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    }

    #[test]
    fn a_deadline_ends_the_wait() {
        let bell = Doorbell::default();
        bell.wait(None);
        bell.wait(Some(Instant::now()));
        let later = Instant::now() + Duration::from_millis(5);
        while Instant::now() < later {
            bell.wait(Some(later));
        }
    }
}
