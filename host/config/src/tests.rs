//! The front-end as a whole: what it reads, what it refuses and in which words.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod accepted;
mod included;
mod mistakes;
mod robust;

/// A configuration with every kind of thing in it.
const EVERYTHING: &str = include_str!("tests/everything.toml");
