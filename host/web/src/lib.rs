//! The web shell's server: pages for a browser on this computer, and its way to the API of a running host.
//!
//! It listens on 127.0.0.1 alone and has three things: `/sign-in/CODE`, a link that signs one browser in, once; `/v1/...`,
//! the API of the host, as its owner, for a browser that is signed in; and the pages, which have no
//! secret in them. It keeps nothing on the disk, and its sessions end with it.
//!
//! A browser also runs pages of others, and they can send requests to this computer. `guard` says which requests are
//! looked at, `sessions` who is signed in, and `peer` which users of the computer may connect.

#![cfg(unix)]
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

mod answer;
mod forward;
mod guard;
mod pages;
mod peer;
mod server;
mod sessions;
mod stall;

use std::time::Duration;

pub use pages::Pages;
pub use server::{Links, Server};

/// How much, and for how long.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections that are open at once; one more is answered with 503.
    pub connections: usize,
    /// Bytes of a request's head; a longer one is answered with 431.
    pub head_bytes: usize,
    /// How long a request's head may take to come, and how long a connection may be idle.
    pub head_timeout: Duration,
    /// Bytes of a request's body, as the API has it; a longer one is answered with 413.
    pub body_bytes: usize,
    /// How long a client may read nothing of an answer before it is cut off.
    pub stall_timeout: Duration,
    /// How long a link can be opened.
    pub link_life: Duration,
    /// How long a browser stays signed in.
    pub session_life: Duration,
    /// Browsers that are signed in at once; one more signs out the one that has been signed in for longest.
    pub sessions: usize,
    /// How long a wrong code or cookie waits for its answer.
    pub wrong_delay: Duration,
    /// How many of them may wait; one more is answered at once, with 429.
    pub wrong_at_once: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            head_bytes: 32 * 1024,
            head_timeout: Duration::from_secs(15),
            body_bytes: 2 * 1024 * 1024,
            stall_timeout: Duration::from_secs(60),
            link_life: Duration::from_secs(60),
            session_life: Duration::from_secs(12 * 60 * 60),
            sessions: 8,
            wrong_delay: Duration::from_millis(300),
            wrong_at_once: 8,
        }
    }
}
