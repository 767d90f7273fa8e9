//! Conductor's event engine: what an event is, which rules it meets, and what is remembered of it.
//!
//! The crate is pure. It opens no port, reads no clock, starts no thread and knows no runtime: time
//! comes in with the event as [`Nanos`], so tests and replays drive it exactly as the host does. What a
//! rule *does* is the caller's type `A`, carried through untouched.
//!
//! | Read | for |
//! |---|---|
//! | [`device`], [`midi`], [`osc`], [`event`] | what comes in |
//! | [`midi_parser`], [`timeline`] | where it comes from: a byte stream, or a script |
//! | [`trigger`], [`rule`], [`compile`](mod@compile) | what a person wrote, and what is wrong with it |
//! | [`rule_set`], [`handle`], [`mode`] | the compiled set, its swap, and the mode it is asked for |
//! | [`transform`], [`recorder`] | what happens to a forwarded message, and what is remembered |
//!
//! ```
//! use conductor_engine::*;
//!
//! let rule = RuleSpec::new(
//!     Trigger::Note {
//!         notes: NumberRange { first: 36, last: 51 },
//!         velocity: ValueRange::SEVEN_BIT,
//!         edge: Edge::Press,
//!         channel: None,
//!     },
//!     "launch the clip",
//! );
//! let set = compile(RuleSource { modes: vec!["Default".into()], rules: vec![rule] })?;
//!
//! let event = Event::from(MidiMessage::NoteOn { channel: 9, note: 38, velocity: 100 });
//! let fired: Vec<_> = set
//!     .matches(ModeIx(0), &DeviceId::new("pads"), &event)
//!     .map(|found| (found.rule.action, found.position))
//!     .collect();
//! assert_eq!(fired, [("launch the clip", 2)]);
//! # Ok::<(), Vec<CompileError>>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod compile;
pub mod device;
pub mod event;
pub mod handle;
mod hash;
pub mod midi;
pub mod midi_parser;
pub mod mode;
pub mod osc;
pub mod recorder;
pub mod rule;
pub mod rule_set;
pub mod timeline;
pub mod transform;
pub mod trigger;

pub use compile::{CompileError, CompileErrorKind, compile};
pub use device::{DeviceEvent, DeviceId};
pub use event::{Event, EventKind};
pub use handle::{RuleSetGuard, RuleSetHandle};
pub use midi::{MidiBytes, MidiMessage};
pub use midi_parser::MidiParser;
pub use mode::{ActiveMode, UnknownMode};
pub use osc::{OscAddressError, OscArg, OscMessage, OscPattern, OscPatternError, OscPatternErrorKind, check_address};
pub use recorder::{Fired, FlightRecorder, Record};
pub use rule::{Place, Rule, RuleId, RuleSource, RuleSpec, Scope};
pub use rule_set::{Match, Matches, ModeIx, RuleSet};
pub use timeline::{Timeline, TimelineEntry, TimelineError};
pub use transform::{Curve, MidiTransform, TransformError};
pub use trigger::{Edge, NumberRange, OscArgTest, SysExPattern, SysExPatternError, Trigger, ValueRange};

/// Nanoseconds on the host's monotonic clock. Only differences mean anything; the origin is the host's.
pub type Nanos = u64;
