//! Short time slices for threads that wait for events.
//!
//! Linux, from 6.12 on, gives a thread that asks for a short slice the processor soon after it wakes, beside programs that
//! are busy; over time it gets no more than they do. It takes no privilege: sched_setattr(2), and "sched_runtime" of
//! `SCHED_OTHER` in the kernel's Documentation/scheduler/sched-eevdf.rst. Elsewhere this does nothing.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

static ENABLED: AtomicBool = AtomicBool::new(true);

/// Whether [`shorten`] does anything, for the whole process. Default: true.
pub fn enable(enabled: bool) {
    ENABLED.store(enabled, Ordering::Relaxed);
}

/// Asks for a short slice for the calling thread. Where that can't be had, the thread goes on as it is.
pub fn shorten() {
    if ENABLED.load(Ordering::Relaxed) {
        system::shorten();
    }
}

/// The same for a thread that is another library's, once: cheap enough to be called for each event.
pub fn shorten_once() {
    thread_local!(static DONE: Cell<bool> = const { Cell::new(false) });
    if !DONE.replace(true) {
        shorten();
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
mod system {
    /// Nanoseconds: the shortest that Linux takes.
    const SLICE: u64 = 100_000;

    /// What the calling thread is scheduled by; `None` if the system does not say.
    fn attributes() -> Option<libc::sched_attr> {
        let size = u32::try_from(size_of::<libc::sched_attr>()).ok()?;
        // SAFETY: it is made of integers, for which zeros are valid.
        let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes at most `size` bytes to `attributes`, which is as long as that and lives on.
        let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
        (result == 0).then_some(attributes)
    }

    pub(super) fn shorten() {
        let Some(mut attributes) = attributes() else { return };
        // A thread that a person made a realtime one stays that.
        if attributes.sched_policy != libc::SCHED_OTHER.cast_unsigned() {
            return;
        }
        attributes.sched_runtime = SLICE;
        // SAFETY: the kernel only reads `attributes`, whose `size` the call before has filled in.
        // A refusal leaves the thread as it was.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    }

    pub(super) fn is_short() -> bool {
        attributes().is_some_and(|attributes| attributes.sched_runtime == SLICE)
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
