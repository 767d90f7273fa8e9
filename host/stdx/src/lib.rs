//! Additions to the standard library, one per file: atomic file writes, rate limiters, queues with a wakeup, clocks,
//! digests, change notification. Nothing here depends on what Conductor is for.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

pub mod atomic_file;
pub mod changes;
pub mod clock;
pub mod device_defaults;
pub mod digest;
pub mod doorbell;
pub mod first_step;
pub mod heap;
pub mod hidden;
pub mod host_key;
pub mod jobs;
pub mod nearest;
pub mod pace;
pub mod plain_file;
pub mod plural;
pub mod pool;
pub mod private_file;
pub mod rate;
pub mod strand;
mod sync;
pub mod template;
pub mod thread_use;
