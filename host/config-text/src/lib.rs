//! The text of a configuration as TOML and nothing else: changes that keep what they don't touch, the difference
//! between two texts, and the mappings in one. What the text means does not matter here.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

pub mod diff;
pub mod edit;
pub mod keys;
pub mod mappings;
