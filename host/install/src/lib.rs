//! Installing packages: fetching, verifying signatures, granting, and the package store.
//!
//! The steps of an installation: [`source`] fetches the package into memory, over a network by [`download`] and
//! [`oci`]; [`signature`] verifies who signed it; [`installation`] compares what it asks for with what was granted
//! before, and changes the set once a person has decided; [`store`] keeps the set on disk; a [`receipt`] records what
//! was done. [`publish`] is the way back: a package to a registry.
//!
//! Nothing here knows instances or configuration: a host that runs reads the set and makes what it needs.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

pub mod download;
mod error;
mod grant_words;
pub mod installation;
pub mod oci;
pub mod publish;
pub mod receipt;
pub mod signature;
pub mod source;
pub mod store;

use conductor_stdx::digest::{hex, sha256, unhex};

/// The SHA-256 that a text names, in lower-case hex: with or without `sha256:` before it. `None` if it names none.
fn digest_of(text: &str) -> Option<String> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text).to_ascii_lowercase();
    (hex.len() == 64 && hex.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some(hex)
}
