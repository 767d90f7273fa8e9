//! Real-time priority for event threads: by a right of this process, or from rtkit. `overrun` takes it away again.

use std::sync::atomic::{AtomicU8, Ordering};

/// What [`set_sources`] was called with, as a number.
static SOURCES: AtomicU8 = AtomicU8::new(RealtimePriority::Never as u8);

/// Where event threads may get real-time priority from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RealtimePriority {
    /// From nowhere: they are ordinary threads.
    #[default]
    Never,
    /// From [`Grant::Limits`].
    ByRight,
    /// From [`Grant::Limits`], else from [`Grant::Rtkit`].
    ByRightOrRtkit,
}

impl RealtimePriority {
    /// What a configuration asks for: true from wherever it can be had, false never, and what `unsaid` is if it says nothing.
    pub fn wanted(said: Option<bool>, unsaid: Self) -> Self {
        match said {
            Some(true) => Self::ByRightOrRtkit,
            Some(false) => Self::Never,
            None => unsaid,
        }
    }
}

/// What a thread is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Events,
    Clock,
}

impl Role {
    /// Its priority, 1 to 99. Audio servers take 5 (PulseAudio) and more: a late block is heard sooner than a late event.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code))]
    fn priority(self) -> u32 {
        match self {
            Self::Events => 2,
            Self::Clock => 3,
        }
    }
}

/// Where real-time priority comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// This user or process may take it: `RLIMIT_RTPRIO`, or the capability `CAP_SYS_NICE`.
    Limits,
    /// rtkit gives it.
    Rtkit,
}

pub(crate) fn set_sources(sources: RealtimePriority) {
    SOURCES.store(sources as u8, Ordering::Relaxed);
}

pub(crate) fn request(role: Role) {
    let sources = SOURCES.load(Ordering::Relaxed);
    if sources != RealtimePriority::Never as u8 {
        system::request(role, sources == RealtimePriority::ByRightOrRtkit as u8);
    }
}

/// How many threads lost their priority since the last call because they ran for too long.
pub fn take_overruns() -> u32 {
    system::take_overruns()
}

/// Whether event threads of this process would get real-time priority from these sources, and from which. Tried on a thread
/// of its own. With [`RealtimePriority::Never`] nothing is tried.
///
/// # Errors
/// Why not, as text.
pub fn try_realtime(sources: RealtimePriority) -> Result<Grant, String> {
    if sources == RealtimePriority::Never {
        return Err("it is not asked for".to_owned());
    }
    let tried = std::thread::spawn(move || system::take(sources == RealtimePriority::ByRightOrRtkit));
    tried.join().unwrap_or_else(|_| Err("the attempt panicked".to_owned()))
}

/// Gives a process that this one has started the limits back that this one began with: the soft limit that belongs to the
/// handler here would end it. A hard limit that rtkit asked for stays: only a privileged process may raise one.
pub fn release_child(process: u32) {
    system::release_child(process);
}

#[cfg(target_os = "linux")]
mod system {
    pub(super) use crate::overrun::{release_child, take as take_overruns};

    use super::{Grant, Role};
    use crate::overrun::{is_guarded, unblock};
    use crate::{attributes, rtkit};

    pub(super) fn request(role: Role, ask_rtkit: bool) {
        if !is_guarded() {
            return;
        }
        unblock();
        if !raise(role) && ask_rtkit {
            rtkit::request(thread_id(), role.priority());
        }
    }

    pub(super) fn take(ask_rtkit: bool) -> Result<Grant, String> {
        if !is_guarded() {
            return Err("this program handles SIGXCPU or RLIMIT_RTTIME in a way of its own".to_owned());
        }
        if raise(Role::Events) {
            return Ok(Grant::Limits);
        }
        if !ask_rtkit {
            return Err("RLIMIT_RTPRIO is 0, and there is no CAP_SYS_NICE".to_owned());
        }
        rtkit::take(thread_id(), Role::Events.priority()).map(|()| Grant::Rtkit)
    }

    /// Takes the priority by this process's own right.
    fn raise(role: Role) -> bool {
        let Some(mut attributes) = attributes::get() else { return false };
        if attributes::is_realtime(&attributes) {
            // By a person's hand, who knows better.
            return true;
        }
        attributes.sched_policy = libc::SCHED_RR.cast_unsigned();
        attributes.sched_priority = role.priority();
        attributes.sched_nice = 0;
        attributes.sched_runtime = 0;
        attributes.sched_flags |= u64::from(libc::SCHED_FLAG_RESET_ON_FORK.cast_unsigned());
        attributes::set(&attributes)
    }

    /// The calling thread, as the system numbers it.
    fn thread_id() -> u64 {
        // SAFETY: it takes nothing and can't fail.
        unsafe { libc::gettid() }.unsigned_abs().into()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Grant, Role};

    pub(super) fn request(_: Role, _: bool) {}

    pub(super) fn take(_: bool) -> Result<Grant, String> {
        Err("there is none on this system".to_owned())
    }

    pub(super) fn release_child(_: u32) {}

    pub(super) fn take_overruns() -> u32 {
        0
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::*;
    use crate::attributes;
    use crate::overrun::MAX_RUN;

    /// Priority of the calling thread; 0 for an ordinary one.
    fn priority() -> u32 {
        attributes::get().unwrap().sched_priority
    }

    /// Runs on, in this thread's own time and without waiting.
    fn run_for(time: Duration, until: impl Fn() -> bool) {
        let used = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let start = used();
        let passed = |now: rustix::time::Timespec| {
            Duration::new((now.tv_sec - start.tv_sec).unsigned_abs(), 0)
                + Duration::from_nanos(now.tv_nsec.unsigned_abs())
                - Duration::from_nanos(start.tv_nsec.unsigned_abs())
        };
        while passed(used()) < time && !until() {
            std::hint::spin_loop();
        }
    }

    /// As root, or with `rtprio` in limits.conf(5); elsewhere there is nothing to test.
    fn granted() -> bool {
        try_realtime(RealtimePriority::ByRight) == Ok(Grant::Limits)
    }

    #[test]
    fn an_event_thread_goes_before_ordinary_ones_and_what_it_starts_does_not() {
        if !granted() {
            return;
        }
        let thread = std::thread::spawn(|| {
            system::request(Role::Events, false);
            let started = std::thread::spawn(priority).join().unwrap();
            (priority(), started)
        });
        assert_eq!(thread.join().unwrap(), (2, 0));
        let clock = std::thread::spawn(|| {
            system::request(Role::Clock, false);
            priority()
        });
        assert_eq!(clock.join().unwrap(), 3, "the clock is above what it must interrupt");
    }

    #[test]
    fn threads_that_do_not_wait_lose_their_priority_one_after_the_other_and_the_process_goes_on() {
        if !granted() {
            return;
        }
        take_overruns();
        for _ in 0..2 {
            let thread = std::thread::spawn(|| {
                system::request(Role::Events, false);
                assert_eq!(priority(), 2);
                run_for(MAX_RUN * 10, || priority() == 0);
                priority()
            });
            assert_eq!(thread.join().unwrap(), 0, "the second has the same limit as the first");
        }
        assert!(take_overruns() >= 2, "another test may have one more");
    }

    #[test]
    fn a_thread_that_blocks_all_signals_loses_its_priority_too() {
        if !granted() {
            return;
        }
        let thread = std::thread::spawn(|| {
            // SAFETY: it is made of integers, for which zeros are valid.
            let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
            // SAFETY: both only read and write `all`, which lives on.
            unsafe {
                libc::sigfillset(&raw mut all);
                libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
            }
            system::request(Role::Events, false);
            assert_eq!(priority(), 2);
            run_for(MAX_RUN * 10, || priority() == 0);
            priority()
        });
        assert_eq!(thread.join().unwrap(), 0);
    }

    #[test]
    fn an_ordinary_thread_that_gets_the_signal_does_not_end_the_process() {
        assert!(try_realtime(RealtimePriority::ByRightOrRtkit) != Err("the attempt panicked".to_owned()));
        // SAFETY: it takes an integer.
        assert_eq!(unsafe { libc::raise(libc::SIGXCPU) }, 0);
        assert_eq!(priority(), 0);
    }

    #[test]
    fn a_child_has_the_limit_that_this_process_began_with() {
        assert!(try_realtime(RealtimePriority::ByRightOrRtkit) != Err("the attempt panicked".to_owned()));
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        release_child(child.id());
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max realtime timeout")).unwrap();
        assert_eq!(line.split_whitespace().nth(3), Some("unlimited"), "{line}");
    }
}
