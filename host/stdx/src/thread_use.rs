//! The processor time that the calling thread has used, and whether it has waited.
//!
//! On a busy machine a thread may stand still for milliseconds that it has not asked for. What a call has taken of the
//! processor is the same on every machine, and tells a call that is long from one that was interrupted.

use std::time::Duration;

/// What the calling thread had used at some time.
#[derive(Debug, Clone, Copy)]
pub struct ThreadUse(system::Use);

impl ThreadUse {
    /// Of the calling thread, now. `None` on systems that do not say.
    pub fn now() -> Option<Self> {
        system::now().map(Self)
    }

    /// The processor time that has been used since by the calling thread. `None` if that is another thread than at
    /// first, or has waited for something in between: then time that passes counts.
    pub fn busy_since(&self) -> Option<Duration> {
        system::busy(&self.0, &system::now()?)
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    #[derive(Debug, Clone, Copy)]
    pub(super) struct Use {
        thread: std::thread::ThreadId,
        busy: Duration,
        /// How often it has given the processor up.
        waits: i64,
    }

    pub(super) fn now() -> Option<Use> {
        // SAFETY: it is made of integers, for which zeros are valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills `usage`, which lives on.
        let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
        (result == 0).then_some(())?;
        // The times in there are as old as the scheduler's last tick; the thread's clock is not.
        let busy = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).ok()?;
        Some(Use { thread: std::thread::current().id(), busy, waits: usage.ru_nvcsw })
    }

    pub(super) fn busy(from: &Use, to: &Use) -> Option<Duration> {
        (from.thread == to.thread && from.waits == to.waits).then(|| to.busy.saturating_sub(from.busy))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::time::Duration;

    #[derive(Debug, Clone, Copy)]
    pub(super) struct Use;

    pub(super) fn now() -> Option<Use> {
        None
    }

    pub(super) fn busy(_: &Use, _: &Use) -> Option<Duration> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn work_counts_and_waiting_is_known() {
        let began = ThreadUse::now().unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        // Where another program has the processor, it takes longer.
        while began.busy_since().unwrap() < Duration::from_millis(2) {
            assert!(Instant::now() < until, "{:?}", began.busy_since());
        }
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(began.busy_since(), None, "it has waited");
    }

    #[test]
    fn threads_are_not_taken_for_each_other() {
        let began = std::thread::spawn(ThreadUse::now).join().unwrap().unwrap();
        assert_eq!(began.busy_since(), None);
    }
}
