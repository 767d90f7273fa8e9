//! Conductor's host: it owns the ports, the engine thread, the sandbox and every trust decision.
//!
//! Events run one way: a port's thread puts them into the engine's queue (`conductor-ports`), the engine
//! thread matches them and hands envelopes over ([`event_loop`]), workers do what rules say
//! (`conductor-dispatch`). Nothing on that way waits, locks, allocates or parses. Everything else
//! ([`control`], [`host`], and `conductor-rules`, `conductor-registry`, `conductor-chat` below) happens beside it. The API
//! and the command line are crates above this one; to embed all of it in a process of your own, begin with the crate
//! `conductor`.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

pub mod control;
pub mod environment;
pub mod event_loop;
pub mod host;

pub use crate::host::{Host, HostBuilder, StartError};
