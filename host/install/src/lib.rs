//! Installed packages: where they came from, who signed them, what they were granted, and the
//! folder that keeps them.
//!
//! The way of a package: [`source`] fetches it into memory, over a network by [`download`] and [`oci`]; [`signature`] says who vouches for it;
//! [`installation`] compares what it asks for with what was granted before, and changes the set once a
//! person has decided; [`store`] keeps the set on disk; a [`receipt`] says what was done.
//!
//! Nothing here knows instances or configuration: a host that runs reads the set and makes what it needs.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

pub mod download;
mod grant_words;
pub mod installation;
pub mod oci;
pub mod receipt;
pub mod signature;
pub mod source;
pub mod store;

use conductor_stdx::digest::{hex, sha256, unhex};
