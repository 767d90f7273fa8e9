//! Conductor's event engine: rule matching, and gesture recognition with deadlines.
//!
//! The crate is pure. It opens no port, reads no clock, starts no thread and knows no runtime: time
//! comes in with the event as [`Nanos`], so tests and replays drive it exactly as the host does. What a
//! rule *does* is the caller's type `A`, carried through untouched.
//!
//! | Read | for |
//! |---|---|
//! | [`conductor_event`] | what comes in, and the record of what fired |
//! | [`trigger`], [`condition`], [`rule`], [`compile`](mod@compile) | what a person wrote, and what is wrong with it |
//! | [`encoder`] | how far an endless encoder was turned |
//! | [`choice`] | what an action decides by when its rule fires |
//! | [`rule_set`], [`handle`], [`mode`] | the compiled set, its swap, and the mode it is asked for |
//! | [`engine`], [`gesture`], [`firing`] | all of it together: events in, rules that fire out, gestures with their deadlines |
//! | [`musical`] | beats, transport, and actions that wait for the grid |
//! | [`explain`] | why a rule did not fire |
//! | [`input_state`] | which keys are down and where controllers stand, for conditions |
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

pub mod choice;
pub mod compile;
pub mod condition;
pub mod encoder;
pub mod engine;
pub mod explain;
pub mod firing;
pub mod gesture;
pub mod handle;
pub mod input_state;
mod key;
pub mod mode;
pub mod musical;
mod press_decisions;
pub mod rule;
pub mod rule_set;
mod snapshot;
pub mod trigger;

pub use choice::Choices;
pub use compile::{CompileError, CompileErrorKind, check_standalone_condition, compile};
pub use condition::{AppName, Condition, Environment, EnvironmentGuard, EnvironmentHandle, EvalContext, Predicate};
pub use conductor_event::{
    Answers, ArtNetChange, Cause, ChordEvent, DeviceEvent, DeviceId, Event, EventKind, Fired, FlightRecorder,
    GestureEvent, HidEvent, MidiBytes, MidiMessage, ModeIx, Nanos, OscArg, OscMessage, Press, Record, RuleId,
    VariableChange,
};
pub use conductor_local_time::{Day, Days, LocalTime, TimeRange};
pub use conductor_message_pattern::{
    OscAddressError, OscPattern, OscPatternError, OscPatternErrorKind, SysExPattern, SysExPatternError, check_address,
};
pub use conductor_musical_time::{Change as ClockChange, MusicalTime};
pub use encoder::Encoding;
pub use engine::Engine;
pub use explain::{Explanation, Verdict};
pub use firing::{Firing, Sink};
pub use handle::{RuleSetGuard, RuleSetHandle, RuleSetSnapshot};
pub use input_state::InputState;
pub use mode::{ActiveMode, UnknownMode};
pub use musical::{ClockSource, Counted, Follower, MusicalEvent, Transport};
pub use rule::{Lasts, Place, Rule, RuleSource, RuleSpec, Scope, rule_name};
pub use rule_set::{Match, Matches, RuleSet};
pub use trigger::{DmxRange, Edge, NumberRange, OscArgTest, Push, Readings, Rotation, Trigger, ValueRange};
