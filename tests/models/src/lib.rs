//! Models of the hand-over between threads: the product's own source of [`strand`], compiled for loom, which tries out
//! every order in which threads can run and every value that a load can see.
//!
//! Work is a number of things that were put, and a number of them that were done; what matters about the real queues is
//! that a thread that has put something and one that looks may see each other's writes late.

#![allow(clippy::missing_panics_doc, reason = "a model panics where it does not hold")]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod doorbell;
#[path = "../../../host/stdx/src/strand.rs"]
pub mod strand;
mod sync;

pub use doorbell::Doorbell;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use strand::Strand;

/// Work, and the strand by which it is done. The state is what was done, in order.
struct Work {
    strand: Strand<Vec<usize>>,
    /// How many things were put; the queue's writes are released and acquired, and no more than that.
    put: AtomicUsize,
    done: AtomicUsize,
}

impl Work {
    fn new() -> Arc<Self> {
        let strand = Strand::new(Vec::new(), Doorbell::default());
        Arc::new(Self { strand, put: AtomicUsize::new(0), done: AtomicUsize::new(0) })
    }

    /// Does what waits, for the thread that is inside.
    fn drain(&self, log: &mut Vec<usize>) {
        let put = self.put.load(Ordering::Acquire);
        log.extend(log.len()..put);
        self.done.store(log.len(), Ordering::Release);
    }

    fn is_done(&self) -> bool {
        self.put.load(Ordering::Acquire) == self.done.load(Ordering::Acquire)
    }

    /// What a thread does that brings something: as the engine's and the features' carriers do.
    fn bring(&self) {
        self.put.fetch_add(1, Ordering::Release);
        loop {
            let Some(mut inside) = self.strand.try_enter() else { return };
            self.drain(&mut inside);
            drop(inside);
            if self.is_done() {
                return;
            }
        }
    }
}

/// Threads bring something each, at once, and no owner is there: everything is done when they have returned, once.
pub fn nothing_is_forgotten(threads: usize) {
    let mut model = loom::model::Builder::new();
    // Of three threads there are too many orders to try all: those in which one gives way to another twice at most.
    model.preemption_bound = (threads > 2).then_some(2);
    model.check(move || {
        let work = Work::new();
        let others: Vec<_> = (1..threads)
            .map(|_| {
                let work = Arc::clone(&work);
                thread::spawn(move || work.bring())
            })
            .collect();
        work.bring();
        others.into_iter().for_each(|other| other.join().unwrap_or_else(|_| panic!("a thread has failed")));
        let inside = work.strand.try_enter();
        let done = inside.map(|inside| inside.clone());
        assert_eq!(done, Some((0..threads).collect()), "what was put was not done once each, in order");
    });
}

/// The owner wants to get in while another thread brings something: it does, and never sleeps for good (loom finds that
/// nothing goes on).
pub fn the_owner_gets_in() {
    loom::model(|| {
        let work = Work::new();
        let other = {
            let work = Arc::clone(&work);
            thread::spawn(move || work.bring())
        };
        drop(work.strand.enter());
        other.join().unwrap_or_else(|_| panic!("the thread has failed"));
        drop(work.strand.enter());
    });
}

/// The owner is inside when another thread brings something, and looks once more before it sleeps: it sleeps only if
/// everything is done or it is rung for.
pub fn the_owner_does_not_sleep_over_work() {
    loom::model(|| {
        let work = Work::new();
        let other = {
            let work = Arc::clone(&work);
            thread::spawn(move || work.bring())
        };
        // The owner's loop, until there is nothing to do.
        loop {
            let mut inside = work.strand.enter();
            work.drain(&mut inside);
            drop(inside);
            if work.is_done() {
                break;
            }
        }
        other.join().unwrap_or_else(|_| panic!("the thread has failed"));
        assert!(work.is_done(), "the owner sleeps while something waits");
    });
}
