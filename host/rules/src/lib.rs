//! Compiles a configuration: rules that are ready to fire, profiles, and bindings of ports.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

pub mod bindings;
pub mod ineffective;
pub mod profile;
pub mod rules;

pub use crate::rules::{
    Compiled, FreshMapping, OverlappingPair, Overlaps, PlacedMapping, compile, engine_trigger, fresh_mappings,
    overlapping_pairs, overlaps, suppresses,
};
