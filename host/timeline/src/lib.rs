//! The line language of events, and tests of mappings written in it.
//!
//! [`timeline`] reads and writes scripts of events; [`mapping_test`] plays such a script against rules and compares what
//! fires with what the test expects. Both are pure, as the engine below them is: no I/O, no clock.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod mapping_test;
pub mod named;
pub mod timeline;

pub use mapping_test::{Difference, MappingTest, parse_mapping_tests};
pub use timeline::{Timeline, TimelineEntry, TimelineError};
