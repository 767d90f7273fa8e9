//! Musical time: tempo, position and transport, from the MIDI clock of a device or from a tempo; taps; MIDI time code.
//!
//! It has no clock: times are handed in, in nanoseconds from any beginning, and what comes out depends on nothing else.
//! Nothing allocates, locks or waits. A time that lies before one that was handed in already counts as that one.
//!
//! A beat is a quarter note: 24 pulses of a MIDI clock. Positions are counted in pulses from the start.
//!
//! ```
//! use conductor_musical_time::{Change, Clock, Message, Settings};
//!
//! let mut clock = Clock::new(Settings { internal: false, tempo: 120.0, beats_per_bar: 4 });
//! assert_eq!(clock.receive(0, Message::Start), Some(Change::Started));
//! // 60 s / 120 / 24 = 20.83 ms from one pulse to the next.
//! for pulse in 0..=96 {
//!     assert_eq!(clock.receive(pulse * 20_833_333, Message::Pulse), Some(Change::Pulse(pulse)));
//! }
//! let time = clock.time();
//! assert_eq!((time.tempo, time.bar, time.beat, time.plays), (120.0, 2, 1, true));
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod clock;
mod event;
mod follower;
mod tap;
mod tempo;
mod time_code;

pub use clock::{CLOCK_TIMEOUT, Change, Clock, Message, MusicalTime, PULSES_PER_BEAT, Settings};
pub use event::{Counted, MusicalEvent, Transport};
pub use follower::Follower;
pub use tap::TapTempo;
pub use tempo::{Jitter, MAX_TEMPO, MIN_TEMPO, TempoMeter, limited};
pub use time_code::{FrameRate, TimeCode, TimeCodeReader};

/// Nanoseconds from any beginning.
pub type Nanos = u64;
