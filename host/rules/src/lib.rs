//! From a configuration to what it makes the host do: rules that are ready to fire, profiles, and what ports need.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

pub mod bindings;
pub mod profile;
pub mod rules;

pub use crate::rules::{Compiled, Lights, compile, engine_trigger, overlaps, shadowed};
