//! Events: what comes in from ports, what the engine makes of it, and the record of what fired.
//!
//! The types that everything on the event path shares, without the engine that decides: code that only carries, shows or
//! writes events depends on this crate alone. It opens no port, reads no clock and starts no thread.
//!
//! | Read | for |
//! |---|---|
//! | [`device`] | the device that an event is from |
//! | [`event`], [`midi`], [`osc`], [`gesture`] | what happened there |
//! | [`fired`] | which rules fired, in which mode, and how their conditions were |
//! | [`recorder`] | what is remembered of it |
//! | [`hash`] | the hash that keys devices |
//!
//! What the engine asks of each event is marked to be inlined: of another crate, little else is inlined in builds without
//! link-time optimisation.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod device;
pub mod event;
pub mod fired;
pub mod gesture;
pub mod hash;
pub mod midi;
pub mod osc;
pub mod recorder;

pub use device::{DeviceEvent, DeviceId};
pub use event::{ArtNetChange, Event, EventKind, HidEvent, VariableChange};
pub use fired::{Answers, Fired, ModeIx, RuleId};
pub use gesture::{ChordEvent, GestureEvent, Press};
pub use midi::{MidiBytes, MidiMessage};
pub use osc::{OscArg, OscMessage};
pub use recorder::{Cause, FlightRecorder, Record};

/// Nanoseconds on the host's monotonic clock. Only differences mean anything; the origin is the host's.
pub type Nanos = u64;
