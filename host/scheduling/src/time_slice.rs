//! Short time slices for threads that are waited for.
//!
//! Linux, from 6.12 on, gives a thread that asks for a short slice the processor soon after it wakes, beside programs that
//! are busy; over time it gets no more than they do. It takes no privilege: sched_setattr(2), and "sched_runtime" of
//! `SCHED_OTHER` in the kernel's Documentation/scheduler/sched-eevdf.rst. Elsewhere this does nothing.

use std::sync::atomic::{AtomicBool, Ordering};

static ENABLED: AtomicBool = AtomicBool::new(true);

pub(crate) fn enable(enabled: bool) {
    ENABLED.store(enabled, Ordering::Relaxed);
}

/// Asks for a short slice for the calling thread. Where that can't be had, the thread goes on as it is.
pub fn shorten() {
    if ENABLED.load(Ordering::Relaxed) {
        system::shorten();
    }
}

/// Whether this system has short slices. Tried on a thread of its own.
pub fn is_available() -> bool {
    let tried = std::thread::spawn(|| {
        system::shorten();
        system::is_short()
    });
    tried.join().unwrap_or(false)
}

#[cfg(target_os = "linux")]
pub(crate) mod system {
    use crate::attributes;

    /// Nanoseconds: the shortest that Linux takes.
    const SLICE: u64 = 100_000;

    pub(super) fn shorten() {
        let Some(attributes) = attributes::get() else { return };
        // A thread that has real-time priority already keeps it.
        if attributes.sched_policy == libc::SCHED_OTHER.cast_unsigned() {
            attributes::set(&short(attributes));
        }
    }

    /// Those of an ordinary thread with a short slice.
    pub(crate) fn short(mut attributes: libc::sched_attr) -> libc::sched_attr {
        attributes.sched_policy = libc::SCHED_OTHER.cast_unsigned();
        attributes.sched_priority = 0;
        attributes.sched_runtime = SLICE;
        attributes
    }

    pub(super) fn is_short() -> bool {
        attributes::get().is_some_and(|attributes| attributes.sched_runtime == SLICE)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn shorten() {}

    pub(super) fn is_short() -> bool {
        false
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_a_short_slice_where_the_system_has_them_and_its_priority_stays() {
        // SAFETY: both take integers only; a thread may always lower its own priority.
        let nice = || unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        let thread = std::thread::spawn(move || {
            // SAFETY: as above.
            assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 5) }, 0);
            shorten();
            (system::is_short(), nice())
        });
        assert_eq!(thread.join().unwrap(), (is_available(), 5));
    }
}
