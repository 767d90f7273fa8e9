//! A strand: a state that one thread at a time works with, and that no thread waits for (an executor without a lock).
//!
//! It has an owner, a thread that sleeps at a [`Doorbell`]. Any other thread that has brought work may do it in the
//! owner's place, if no thread is inside at the moment; if one is, it need not wait, because a thread that leaves looks once
//! more for work. So nothing that was brought is forgotten, and usually no thread has to be woken.
//!
//! The rule that makes this safe, for [`Strand::try_enter`]: a thread first puts its work where those inside will look
//! for it, and then tries to enter; and one that leaves looks there after it has left. Between the two steps of each lies
//! a sequentially consistent fence, so of a thread that fails to enter and the thread that was inside, the second sees
//! what the first has put. Work goes on in the order in which it was put, because it lies in one queue. A model of it
//! (`tests/models`) compiles this file for loom.

use std::ops::{Deref, DerefMut};

use crate::doorbell::Doorbell;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, TryLockError, fence};

/// A state, and the doorbell of the thread that owns it.
#[derive(Debug)]
pub struct Strand<S> {
    /// Only ever tried: nothing waits for it.
    state: Mutex<S>,
    bell: Doorbell,
    /// Whether the owner waits for the thread that is inside.
    wanted: AtomicBool,
}

impl<S> Strand<S> {
    /// A strand whose owner sleeps at `bell`.
    pub fn new(state: S, bell: Doorbell) -> Self {
        Self { state: Mutex::new(state), bell, wanted: AtomicBool::new(false) }
    }

    /// Where the owner sleeps.
    pub fn bell(&self) -> &Doorbell {
        &self.bell
    }

    /// Enters as the owner; sleeps while another thread is inside.
    pub fn enter(&self) -> Entered<'_, S> {
        loop {
            if let Some(entered) = self.attempt() {
                return entered;
            }
            self.wanted.store(true, Ordering::SeqCst);
            // The thread inside looks at `wanted` after it has left, so that either this attempt succeeds or it rings.
            fence(Ordering::SeqCst);
            if let Some(entered) = self.attempt() {
                self.wanted.store(false, Ordering::SeqCst);
                return entered;
            }
            self.bell.wait(None);
        }
    }

    /// Enters as any other thread. `None` if a thread is inside; that one sees work that was put before this call.
    pub fn try_enter(&self) -> Option<Entered<'_, S>> {
        fence(Ordering::SeqCst);
        self.attempt()
    }

    fn attempt(&self) -> Option<Entered<'_, S>> {
        let state = match self.state.try_lock() {
            Ok(state) => state,
            // What is inside is as usable as it was; a panic is reported where it happened.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Entered { state: Some(state), strand: self })
    }
}

/// The state, for the thread that is inside. Dropping it leaves; look for work after that.
#[derive(Debug)]
pub struct Entered<'a, S> {
    /// `None` only while it is dropped.
    state: Option<MutexGuard<'a, S>>,
    strand: &'a Strand<S>,
}

impl<S> Deref for Entered<'_, S> {
    type Target = S;

    fn deref(&self) -> &S {
        self.state.as_ref().expect("it is taken only when this is dropped")
    }
}

impl<S> DerefMut for Entered<'_, S> {
    fn deref_mut(&mut self) -> &mut S {
        self.state.as_mut().expect("it is taken only when this is dropped")
    }
}

impl<S> Drop for Entered<'_, S> {
    fn drop(&mut self) {
        drop(self.state.take());
        // Before the look for work that comes next, and before the look whether the owner waits; see the module.
        fence(Ordering::SeqCst);
        if self.strand.wanted.load(Ordering::SeqCst) && self.strand.wanted.swap(false, Ordering::SeqCst) {
            self.strand.bell.ring();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use crossbeam_channel::{Receiver, Sender};

    use super::*;

    /// Adds up what lies in the queue, as a thread that brings it or as the owner.
    struct Sum {
        numbers: Receiver<u64>,
        strand: Strand<(u64, u64)>,
    }

    impl Sum {
        fn new() -> (Sender<u64>, Arc<Self>) {
            let (sender, numbers) = crossbeam_channel::unbounded();
            (sender, Arc::new(Self { numbers, strand: Strand::new((0, 0), Doorbell::default()) }))
        }

        fn drain(&self, sum: &mut (u64, u64)) {
            self.numbers.try_iter().for_each(|number| *sum = (sum.0 + number, sum.1 + 1));
        }

        fn bring(&self) {
            loop {
                let Some(mut sum) = self.strand.try_enter() else { return };
                self.drain(&mut sum);
                drop(sum);
                if self.numbers.is_empty() {
                    return;
                }
            }
        }
    }

    #[test]
    fn what_several_threads_bring_is_done_without_an_owner() {
        const EACH: u64 = 50_000;
        let (sender, sum) = Sum::new();
        let bringers: Vec<_> = (0..3)
            .map(|_| {
                let (sender, sum) = (sender.clone(), Arc::clone(&sum));
                thread::spawn(move || {
                    for number in 0..EACH {
                        sender.send(number).unwrap();
                        sum.bring();
                    }
                })
            })
            .collect();
        bringers.into_iter().for_each(|bringer| bringer.join().unwrap());
        assert_eq!(*sum.strand.try_enter().unwrap(), (3 * EACH * (EACH - 1) / 2, 3 * EACH));
    }

    #[test]
    fn the_owner_gets_in_beside_those_who_bring() {
        let (sender, sum) = Sum::new();
        let owner = {
            let sum = Arc::clone(&sum);
            thread::spawn(move || {
                for _ in 0..20_000 {
                    let mut inside = sum.strand.enter();
                    sum.drain(&mut inside);
                }
            })
        };
        while !owner.is_finished() {
            sender.send(1).unwrap();
            sum.bring();
        }
        owner.join().unwrap();
        sum.bring();
        assert!(sum.numbers.is_empty());
    }

    #[test]
    fn a_thread_inside_keeps_others_out_and_none_waits() {
        let strand = Strand::new(1, Doorbell::default());
        let inside = strand.enter();
        assert!(strand.try_enter().is_none());
        drop(inside);
        assert_eq!(*strand.try_enter().unwrap(), 1);
    }
}
