//! What the lights of devices show, as clients read it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The lights of one output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceLights {
    /// What rules call the output.
    pub device: String,
    /// What was set since its port came, notes first; none while no port is there.
    pub lights: Vec<Light>,
}

/// What one light, ring or motor fader was set to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Light {
    /// What sets it.
    pub message: LightMessage,
    /// The MIDI channel, 0 to 15.
    pub channel: u8,
    /// The note or the controller, 0 to 127.
    pub number: u8,
    /// The velocity or the value, 0 to 127; 0 where the note was ended. What colour that is, the device's profile says.
    pub value: u8,
    /// Whether the host has it go on and off; the value is what it shows when it is on.
    pub blinks: bool,
}

/// A kind of message that sets lights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LightMessage {
    /// A note.
    Note,
    /// A control change.
    Cc,
}
