//! Threads that give way: what they do, nobody on a stage waits for.
//!
//! A thread with a higher niceness gets less of a busy processor than the others, and is interrupted sooner by one that
//! wakes: sched(7), "The nice value". Any thread may raise its own. Elsewhere than on Linux, where niceness is a thread's
//! own, this does nothing.

/// Has the calling thread give way to threads that events wait for, and to other programs. Threads and processes that it
/// starts do, too.
pub fn background_thread() {
    system::give_way();
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::process::{getpriority_process, setpriority_process};

    /// A third of the processor beside a busy thread of the usual niceness, which is 0.
    pub(super) const NICENESS: i32 = 5;

    pub(super) fn give_way() {
        // Of a host that was started with a higher one the threads have that.
        if getpriority_process(None).is_ok_and(|niceness| niceness < NICENESS) {
            let _ = setpriority_process(None, NICENESS);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn give_way() {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{getpriority_process, setpriority_process};

    use super::*;

    #[test]
    fn a_thread_gives_way_and_the_others_stay_as_they_are() {
        let before = getpriority_process(None).unwrap();
        let niceness = |own: i32| {
            let thread = std::thread::spawn(move || {
                setpriority_process(None, own).unwrap();
                background_thread();
                background_thread();
                getpriority_process(None).unwrap()
            });
            thread.join().unwrap()
        };
        assert_eq!((niceness(before), niceness(12)), (before.max(system::NICENESS), 12));
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
