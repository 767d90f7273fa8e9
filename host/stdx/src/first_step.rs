//! The first step of work on the thread that brings it, and the rest on a runtime for such work.
//!
//! Work that is short ends in one step, and no other thread has to be woken for it. What waits, or yields because it has
//! been at work for a while, goes on there from where it is. So a thread that brings work is held up for one step at most.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

thread_local! {
    static IS_FIRST: Cell<bool> = const { Cell::new(false) };
}

/// Where work is after its first step.
#[derive(Debug)]
pub enum Step<T> {
    /// It has ended; `None` if it panicked.
    Ended(Option<T>),
    /// It goes on elsewhere, whether or not it is waited for.
    Goes(JoinHandle<T>),
}

/// Work that can go on elsewhere.
pub type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Takes the first step of `work` here, and leaves the rest to `lane`. What it spawns and sleeps by is the lane's from
/// the beginning.
pub fn take<T: Send + 'static>(mut work: Work<T>, lane: &Handle) -> Step<T> {
    let polled = {
        let (_lane, _first) = (lane.enter(), First::begin());
        // What has not ended is polled again by the lane, so no waker is lost.
        let poll = || work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        catch_unwind(AssertUnwindSafe(poll))
    };
    match polled {
        Ok(Poll::Ready(result)) => Step::Ended(Some(result)),
        Ok(Poll::Pending) => Step::Goes(lane.spawn(work)),
        Err(_) => Step::Ended(None),
    }
}

/// Whether this thread is in the first step of work, and so perhaps none of the lane's.
pub fn is_under_way() -> bool {
    IS_FIRST.get()
}

/// Ends the first step: what comes after this is done in the lane.
pub async fn end() {
    std::future::poll_fn(|_| if is_under_way() { Poll::Pending } else { Poll::Ready(()) }).await;
}

/// A first step that is under way, ended by being dropped.
struct First(bool);

impl First {
    fn begin() -> Self {
        Self(IS_FIRST.replace(true))
    }
}

impl Drop for First {
    fn drop(&mut self) {
        IS_FIRST.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::{ThreadId, current};

    async fn here() -> ThreadId {
        current().id()
    }

    #[test]
    fn what_ends_at_once_ends_here_and_the_rest_goes_on_in_the_lane() {
        let lane = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
        let Step::Ended(thread) = take(Box::pin(here()), lane.handle()) else { panic!("it did not end") };
        assert_eq!(thread, Some(current().id()));
        let work = async {
            let first = (here().await, is_under_way());
            end().await;
            (first, (here().await, is_under_way()))
        };
        let Step::Goes(rest) = take(Box::pin(work), lane.handle()) else { panic!("it ended") };
        let (first, then) = lane.block_on(rest).unwrap();
        assert_eq!(first, (current().id(), true));
        assert!(then.0 != current().id() && !then.1);
    }

    #[test]
    fn what_waits_is_woken_in_the_lane() {
        let lane = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
        let (say, said) = tokio::sync::oneshot::channel();
        let Step::Goes(rest) = take(Box::pin(said), lane.handle()) else { panic!("it ended") };
        say.send("now").unwrap();
        assert_eq!(lane.block_on(rest).unwrap(), Ok("now"));
    }

    #[test]
    fn a_panic_ends_the_call_and_nothing_else() {
        let lane = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let work = async { panic!("a mistake") };
        assert!(matches!(take::<()>(Box::pin(work), lane.handle()), Step::Ended(None)));
        assert!(!is_under_way());
    }
}
