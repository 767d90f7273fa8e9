//! The line language of events, and tests of mappings written in it.
//!
//! [`timeline`] reads and writes scripts of events, and [`effect`] what goes out; [`player`] plays a script against rules,
//! and [`mapping_test`] compares what fires, and what goes out, with what a test expects. All are pure, as the engine below
//! them is: no I/O, no clock.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod effect;
pub mod mapping_test;
pub mod named;
pub mod player;
pub mod timeline;

pub use effect::Effect;
pub use mapping_test::{Difference, MappingTest, parse_mapping_tests};
pub use player::{Performer, Player};
pub use timeline::{Timeline, TimelineEntry, TimelineError};
