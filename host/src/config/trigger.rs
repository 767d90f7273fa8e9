//! Triggers: which event a mapping waits for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::number::{DataBounds, NumberRange, WideBounds};
use super::text::{HexBytes, SysExPrefix};

/// An event that a mapping waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Trigger {
    /// Only events of this device: the alias of a binding, or the name of a port. Default: any device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("x-mentions" = "binding"))]
    pub device: Option<String>,

    /// Which event it has to be.
    #[serde(flatten)]
    pub event: TriggerEvent,
}

/// Which event a [`Trigger`] waits for, by `type`.
///
/// MIDI channels count from 0, as on the wire: channel 0 is the one that many devices call 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
#[schemars(transform = super::schema::also_in_snake_case)]
pub enum TriggerEvent {
    /// A note is played.
    Note {
        /// The note or notes, 0 to 127; 60 is middle C.
        note: NumberRange,
        /// The velocities that count, each 0 to 127. Default: `[0, 127]`.
        #[serde(default)]
        velocity_range: DataBounds,
        /// Which edge of the note counts. Default: `press`; `both` where the action forwards the
        /// note, since a note whose end is missing never ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<Edge>,
        /// Only this MIDI channel, 0 to 15. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0, max = 15))]
        channel: Option<u8>,
    },

    /// A note between two others is played.
    #[schemars(extend("x-ascending" = ["note_min", "note_max"]))]
    NoteRange {
        /// The lowest note, 0 to 127.
        #[schemars(range(min = 0, max = 127))]
        note_min: u8,
        /// The highest note, 0 to 127, not below `note_min`.
        #[schemars(range(min = 0, max = 127))]
        note_max: u8,
        /// The velocities that count, each 0 to 127. Default: `[0, 127]`.
        #[serde(default)]
        velocity_range: DataBounds,
        /// Which edge of the note counts. Default: `press`; `both` where the action forwards the
        /// note, since a note whose end is missing never ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<Edge>,
        /// Only this MIDI channel, 0 to 15. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0, max = 15))]
        channel: Option<u8>,
    },

    /// A note is pressed with a velocity between two others.
    #[schemars(extend("x-ascending" = ["min", "max"]))]
    VelocityRange {
        /// The note or notes, 0 to 127.
        note: NumberRange,
        /// The lowest velocity, 0 to 127.
        #[schemars(range(min = 0, max = 127))]
        min: u8,
        /// The highest velocity, 0 to 127, not below `min`.
        #[schemars(range(min = 0, max = 127))]
        max: u8,
        /// Only this MIDI channel, 0 to 15. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0, max = 15))]
        channel: Option<u8>,
    },

    /// A controller is moved (control change).
    CC {
        /// The controller or controllers, 0 to 127.
        cc: NumberRange,
        /// The values that count, each 0 to 127. Default: `[0, 127]`.
        #[serde(default)]
        value_range: DataBounds,
        /// Only this MIDI channel, 0 to 15. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0, max = 15))]
        channel: Option<u8>,
    },

    /// The pressure on the whole channel changes.
    Aftertouch {
        /// The pressures that count, each 0 to 127. Default: `[0, 127]`.
        #[serde(default)]
        value_range: DataBounds,
        /// Only this MIDI channel, 0 to 15. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0, max = 15))]
        channel: Option<u8>,
    },

    /// The pressure on a held note changes.
    PolyAftertouch {
        /// The note or notes, 0 to 127.
        note: NumberRange,
        /// The pressures that count, each 0 to 127. Default: `[0, 127]`.
        #[serde(default)]
        value_range: DataBounds,
        /// Only this MIDI channel, 0 to 15. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0, max = 15))]
        channel: Option<u8>,
    },

    /// The pitch wheel is moved.
    PitchBend {
        /// The positions that count, each 0 to 16383; 8192 is the middle. Default: `[0, 16383]`.
        #[serde(default)]
        value_range: WideBounds,
        /// Only this MIDI channel, 0 to 15. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0, max = 15))]
        channel: Option<u8>,
    },

    /// A program is chosen (program change).
    ProgramChange {
        /// The program or programs, 0 to 127, counted from 0.
        program: NumberRange,
        /// Only this MIDI channel, 0 to 15. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0, max = 15))]
        channel: Option<u8>,
    },

    /// A SysEx message arrives that begins in a certain way.
    #[schemars(extend("x-same-length" = ["prefix", "mask"]))]
    SysEx {
        /// The first bytes in hex, from F0 on; `??` stands for any byte.
        prefix: SysExPrefix,
        /// Which bits of `prefix` count, in hex: as many bytes as `prefix` has. Default: all of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mask: Option<HexBytes>,
    },

    /// Any MIDI message, for forwarding whole streams.
    MidiAny {
        /// Only this MIDI channel, 0 to 15. Default: any channel, and messages without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0, max = 15))]
        channel: Option<u8>,
    },

    /// An OSC message to one address.
    OscMessage {
        /// The address, from `/` on.
        #[schemars(extend("format" = "osc-address"))]
        address: String,
    },

    /// An OSC message to any address that a pattern matches.
    OscPattern {
        /// An OSC 1.0 address pattern, such as `/fader/*`.
        #[schemars(extend("format" = "osc-pattern"))]
        pattern: String,
    },

    /// An OSC message with a number between two others.
    #[schemars(extend("x-ascending" = ["min", "max"]))]
    OscArgRange {
        /// The address, or an OSC 1.0 address pattern.
        #[schemars(extend("format" = "osc-pattern"))]
        address: String,
        /// Which argument is looked at, counted from 0, up to 255. Default: 0.
        #[serde(default)]
        #[schemars(range(min = 0, max = 255))]
        arg: u8,
        /// The lowest number that counts, in the unit of the argument.
        min: f64,
        /// The highest number that counts, not below `min`.
        max: f64,
    },
}

/// Which edge of a note counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// The note begins.
    Press,
    /// The note ends.
    Release,
    /// The note begins or ends.
    Both,
}
