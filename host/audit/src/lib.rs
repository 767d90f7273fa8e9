//! The audit log: what was asked of the host, what it did, and for whom, in a hash chain that shows tampering.
//!
//! ```text
//! gate, plans, packages, secrets ─▶ entry ─▶ bounded queue ─▶ one thread ─▶ <home>/audit.sqlite, audit.head
//! ```
//!
//! An [`entry`] says what happened; the [`chain`] is the file, which any process of the home may add to;
//! [`verify`] finds the first row that is wrong; the [`writer`] writes for a running host, so that only callers
//! that need the entry to be durable wait for the disk.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

pub mod caller;
pub mod chain;
pub mod entry;
pub mod pending;
pub mod redaction;
#[cfg(test)]
mod tests;
pub mod verify;
pub mod writer;

pub use chain::{AuditError, Chain, Row};
pub use entry::{Entry, Kind, Outcome};
pub use pending::Pending;
pub use writer::{Audit, AuditStatus};
