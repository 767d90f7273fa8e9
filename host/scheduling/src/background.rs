//! Threads that give way to those that events wait for.
//!
//! A nice value weighs a thread against the others that are ready to run, of this program and of all others: on Linux one
//! with [`NICE`] has about a tenth of the processor beside one with 0, and all of it where nothing else runs. nice(1) and
//! "Nice levels" in the kernel's Documentation/scheduler/sched-nice-design.rst. It takes no privilege to raise it, and one
//! (`RLIMIT_NICE`) to lower it again. Elsewhere this does nothing.

/// The nice value of a background thread: that of nice(1) without a number.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Has the calling thread give way to others. One with a higher nice value keeps it. Threads and processes that it starts
/// inherit it, so what a person waits for is started by another thread.
pub fn background_thread() {
    #[cfg(target_os = "linux")]
    if let Some(mut attributes) = crate::attributes::get()
        && attributes.sched_policy == libc::SCHED_OTHER.cast_unsigned()
        && attributes.sched_nice < NICE
    {
        attributes.sched_nice = NICE;
        crate::attributes::set(&attributes);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn nice() -> i32 {
        crate::attributes::get().unwrap().sched_nice
    }

    #[test]
    fn a_background_thread_gives_way_and_the_others_do_not() {
        let before = nice();
        let thread = std::thread::spawn(|| {
            background_thread();
            let once = nice();
            background_thread();
            (once, nice())
        });
        assert_eq!(thread.join().unwrap(), (before.max(NICE), before.max(NICE)));
        assert_eq!(nice(), before);
    }
}
