//! Patterns of messages, parsed once and matched without an allocation: addresses of OSC messages, and how SysEx messages
//! begin.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod osc;
pub mod sysex;

pub use osc::{OscAddressError, OscPattern, OscPatternError, OscPatternErrorKind, check_address};
pub use sysex::{SysExPattern, SysExPatternError};
