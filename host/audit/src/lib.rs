//! The audit: what was asked of the host, what it did, and who wanted it, in a chain that shows when somebody
//! has altered it.
//!
//! ```text
//! gate, plans, packages, secrets ─▶ entry ─▶ bounded queue ─▶ one thread ─▶ <home>/audit.sqlite, audit.head
//! ```
//!
//! An [`entry`] says what happened; the [`chain`] is the file, which any process of the home may add to;
//! [`verify`] finds the first row that is wrong; the [`writer`] writes for a running host, so that nobody waits
//! for the disk but who has to be sure of it.

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
