//! Timers without slack, for threads that sleep until something is due.
//!
//! Linux wakes a thread up to 50 µs after the time that it asked for, so that timers which lie close together share one
//! wakeup. A thread may ask for less: `PR_SET_TIMERSLACK` in prctl(2). Elsewhere this does nothing.

/// Asks for wakeups of the calling thread without slack. It takes no privilege, and threads that this one starts have the
/// same.
pub fn remove() {
    #[cfg(target_os = "linux")]
    {
        /// Nanoseconds: the least there is, since 0 stands for the default.
        const LEAST: libc::c_ulong = 1;
        // SAFETY: this call takes integers only.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, LEAST) };
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_no_slack_and_others_keep_theirs() {
        // SAFETY: this call takes integers only.
        let slack = || unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
        let before = slack();
        let thread = std::thread::spawn(move || {
            remove();
            slack()
        });
        assert_eq!((thread.join().unwrap(), slack()), (1, before));
        assert!(before > 1, "the default is {before} ns");
    }
}
