//! How the system schedules the host's threads.
//!
//! - A thread that events wait for calls [`event_thread`]. It gets real-time priority if the system grants it (`realtime`),
//!   and a short time slice otherwise (`time_slice`).
//! - The clock that stops guests calls [`clock_thread`]: it must run while an event thread is busy with a guest.
//! - A thread that runs a feature's slow calls or answers a client calls [`time_slice::shorten`] at most: what others wrote
//!   never has priority over other programs.
//! - A thread of conversations calls [`background_thread`]. That of the audit does not: what happens waits for its record.
//! - A thread that sleeps until something is due calls [`timer_slack::remove`].
//!
//! All of it is Linux's. Elsewhere these functions do nothing.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

#[cfg(target_os = "linux")]
mod attributes;
mod background;
#[cfg(target_os = "linux")]
mod overrun;
mod realtime;
#[cfg(all(target_os = "linux", feature = "rtkit"))]
mod rtkit;
#[cfg(all(target_os = "linux", not(feature = "rtkit")))]
mod rtkit {
    //! Nobody to ask.

    pub(crate) fn request(_: u64, _: u32) {}

    pub(crate) fn take(_: u64, _: u32) -> Result<(), String> {
        Err("RLIMIT_RTPRIO is 0, and this program was built without rtkit".to_owned())
    }
}
pub mod time_slice;
pub mod timer_slack;

use std::cell::Cell;

pub use background::background_thread;
pub use realtime::{Grant, RealtimePriority, release_child, take_overruns, try_realtime};

/// What the threads of this process may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Whether [`time_slice::shorten`] does anything. Without a call of [`configure`]: true.
    pub short_time_slices: bool,
    /// Where event threads may get real-time priority from. Without a call of [`configure`]: from nowhere.
    pub realtime_priority: RealtimePriority,
}

/// Sets what threads may ask for from now on, for the whole process. Threads that have asked before keep what they have.
pub fn configure(settings: Settings) {
    time_slice::enable(settings.short_time_slices);
    realtime::set_sources(settings.realtime_priority);
}

/// Asks for the calling thread to run as soon as an event arrives. It does not wait for an answer: rtkit gives the
/// priority some milliseconds later, if at all. A thread or process that this one starts has nothing of it.
pub fn event_thread() {
    time_slice::shorten();
    realtime::request(realtime::Role::Events);
}

/// The same for a thread that is another library's, once: cheap enough to be called for each event.
pub fn event_thread_once() {
    thread_local!(static DONE: Cell<bool> = const { Cell::new(false) });
    if !DONE.replace(true) {
        event_thread();
    }
}

/// The same for the clock that stops guests which use up their time: it is above the event threads, on which guests run.
pub fn clock_thread() {
    time_slice::shorten();
    realtime::request(realtime::Role::Clock);
}
