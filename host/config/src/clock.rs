//! The clock: where its time comes from, and what follows it.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

/// The variables that a configuration with a clock has besides its own: what people call musical time.
pub const CLOCK_VARIABLES: [&str; 5] = ["tempo", "beat", "bar", "playing", "time_code"];

/// The clock that beats, bars, `quantize` and delays in beats go by. A beat is a quarter note. With it there are the
/// variables `tempo`, `beat` and `bar` (from 1), `playing`, and `time_code` (in seconds).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Clock {
    /// The device whose MIDI clock, transport and MIDI time code count: the alias of a binding, or the name of a port.
    /// Default: none; the clock goes by `tempo`, and plays when Conductor starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("x-mentions" = "binding"))]
    pub device: Option<String>,

    /// Beats per minute, 20 to 999; of a device until it is measured. Default: 120.
    #[serde(default = "tempo")]
    #[schemars(range(min = 20.0, max = 999.0))]
    pub tempo: f64,

    /// The devices that get it as a MIDI clock, at most 16, by the aliases of their bindings or the names of their ports: 24
    /// pulses a beat while it plays, start, continue, stop and song position. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1)), transform = mentions_bindings)]
    pub outputs: Vec<String>,

    /// How many beats a bar has, 1 to 64. Default: 4.
    #[serde(default = "beats_per_bar")]
    #[schemars(range(min = 1, max = 64))]
    pub beats_per_bar: u8,
}

/// Says of a list that its items mention bindings.
fn mentions_bindings(schema: &mut Schema) {
    if let Some(items) = schema.get_mut("items") {
        items["x-mentions"] = "binding".into();
    }
}

fn tempo() -> f64 {
    120.0
}

fn beats_per_bar() -> u8 {
    4
}

/// What the clock's transport does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransportChange {
    /// It plays from the beginning.
    Start,
    /// It plays on from where it stands.
    Continue,
    /// It stops, or nothing comes of its device for half a second.
    Stop,
}

/// A place of the clock's grid: a bar, or a part of a whole note; `t` is a triplet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Quantize {
    /// The next bar.
    #[serde(rename = "bar")]
    Bar,
    /// The next half note.
    #[serde(rename = "1/2")]
    Half,
    /// The next beat.
    #[serde(rename = "1/4")]
    Quarter,
    /// The next third of two beats.
    #[serde(rename = "1/4t")]
    QuarterTriplet,
    /// The next eighth.
    #[serde(rename = "1/8")]
    Eighth,
    /// The next third of a beat.
    #[serde(rename = "1/8t")]
    EighthTriplet,
    /// The next sixteenth.
    #[serde(rename = "1/16")]
    Sixteenth,
    /// The next sixth of a beat.
    #[serde(rename = "1/16t")]
    SixteenthTriplet,
    /// The next thirty-second.
    #[serde(rename = "1/32")]
    ThirtySecond,
}

impl Quantize {
    /// How many pulses of a MIDI clock, of 24 a beat, lie between two places of the grid in bars of this many beats.
    pub fn pulses(self, beats_per_bar: u8) -> u16 {
        match self {
            Self::Bar => 24 * u16::from(beats_per_bar),
            Self::Half => 48,
            Self::Quarter => 24,
            Self::QuarterTriplet => 16,
            Self::Eighth => 12,
            Self::EighthTriplet => 8,
            Self::Sixteenth => 6,
            Self::SixteenthTriplet => 4,
            Self::ThirtySecond => 3,
        }
    }
}

/// Sets the tempo of the clock by taps, one a beat: the median of the last eight. A pause of three seconds begins anew.
/// There is nothing to set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TapTempo {}
