//! The end of real-time priority for a thread that takes too much.
//!
//! A thread with real-time priority goes before all ordinary ones, so one that is flooded could keep a person from the
//! machine. Such a thread loses its priority once it has run for [`MAX_RUN`] without waiting: the system sends it
//! `SIGXCPU` (`RLIMIT_RTTIME` in setrlimit(2)), and the handler makes it an ordinary thread. rtkit asks for a second, hard
//! limit at which the system kills the process; it is above [`MAX_RUN`], so no thread gets there.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

use crate::{attributes, time_slice};

/// How long a thread may run with real-time priority without waiting for anything.
pub(crate) const MAX_RUN: Duration = Duration::from_millis(100);

static OVERRUNS: AtomicU32 = AtomicU32::new(0);

/// The limit on running without waiting that this process began with; `None` if it is not guarded.
static GUARDED: OnceLock<Option<Rlimit>> = OnceLock::new();

pub(crate) fn take() -> u32 {
    OVERRUNS.swap(0, Ordering::Relaxed)
}

/// Makes sure that the calling thread gets the signal: threads of other libraries often block all of them.
pub(crate) fn unblock() {
    // SAFETY: it is made of integers, for which zeros are valid.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: all three only read and write `set`, which lives on; the old mask is not asked for.
    unsafe {
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGXCPU);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// Makes sure that a thread which runs for too long loses its priority, and nothing else happens. Returns `false` if
/// the program that this one is part of has other plans with the signal.
pub(crate) fn is_guarded() -> bool {
    GUARDED.get_or_init(|| {
        let before = getrlimit(Resource::Rttime);
        (soften(None) && handle_overruns()).then_some(before)
    });
    matches!(GUARDED.get(), Some(Some(_)))
}

/// Sets the soft limit to [`MAX_RUN`], and the hard one to at most `hard` microseconds. Returns `false` if the hard limit
/// is so low that the soft one would not come first.
pub(crate) fn soften(hard: Option<u64>) -> bool {
    let soft = u64::try_from(MAX_RUN.as_micros()).unwrap_or(u64::MAX);
    let maximum = match (getrlimit(Resource::Rttime).maximum, hard) {
        (Some(now), Some(wanted)) => Some(now.min(wanted)),
        (one, other) => one.or(other),
    };
    // The system looks once a tick, of up to 10 ms: two ticks between the two.
    let comes_first = maximum.is_none_or(|maximum| maximum >= soft + 20_000);
    comes_first && setrlimit(Resource::Rttime, Rlimit { current: Some(soft), maximum }).is_ok()
}

/// Installs the handler. Returns `false` if there is another.
fn handle_overruns() -> bool {
    // SAFETY: it is made of integers and pointers, for which zeros are valid.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the old action is written to `before`, which lives on; no new one is given.
    let read = unsafe { libc::sigaction(libc::SIGXCPU, std::ptr::null(), &raw mut before) };
    if read != 0 || before.sa_sigaction != libc::SIG_DFL {
        return false;
    }
    // SAFETY: as above.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_overrun as *const () as usize;
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: `action` lives on until the call returns; `on_overrun` only does what a signal handler may do.
    unsafe { libc::sigaction(libc::SIGXCPU, &raw const action, std::ptr::null_mut()) == 0 }
}

/// Runs on the thread that ran for too long: the kernel's check of the limit (kernel/time/posix-cpu-timers.c) signals
/// the process and prefers the thread that is running. Here are only system calls and an atomic operation.
extern "C" fn on_overrun(_: libc::c_int) {
    // SAFETY: it returns this thread's own, which lives as long as the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above; what was interrupted must find it as it was.
    let kept = unsafe { *errno };
    // On an ordinary thread it is about a thread that blocks the signal, or about the process's time (RLIMIT_CPU), whose
    // hard limit ends the process all the same. Neither is a reason to end it now.
    if let Some(attributes) = attributes::get()
        && attributes::is_realtime(&attributes)
    {
        attributes::set(&time_slice::system::short(attributes));
        OVERRUNS.fetch_add(1, Ordering::Relaxed);
    }
    // The system has moved the limit by a second, for whichever thread is next.
    soften(None);
    // SAFETY: as above.
    unsafe { *errno = kept };
}

pub(crate) fn release_child(process: u32) {
    let Some(Some(before)) = GUARDED.get() else { return };
    let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return };
    let maximum = getrlimit(Resource::Rttime).maximum;
    let current = match (before.current, maximum) {
        (Some(current), Some(maximum)) => Some(current.min(maximum)),
        (one, other) => one.or(other),
    };
    // It fails where the process has ended.
    let _ = prlimit(Some(process), Resource::Rttime, Rlimit { current, maximum });
}
