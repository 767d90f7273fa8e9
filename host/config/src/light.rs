//! Lights that show what variables hold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::action::MidiMessage;

/// A light, a ring or a motor fader of a device, which shows what variables hold: at once when they change, when the device
/// comes back, and when its mode becomes active again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Light {
    /// The device with the light: the alias of a binding, or the name of a port. Of variables that each device has for itself
    /// its own count.
    #[schemars(length(min = 1), extend("x-mentions" = "binding"))]
    pub target: String,

    /// The mode in which it is shown, and in those that lie over it, unless something else of theirs is shown there. Default:
    /// every mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-refers-to" = "mode"))]
    pub mode: Option<String>,

    /// What sets the light. Its numbers are fixed, or expressions that name variables: `velocity = "{if(mute, 5, 21)}"` is a
    /// colour, `value = "{gain -> 0..127}"` a ring.
    pub shows: MidiMessage,

    /// It blinks while this expression of variables is not 0: `"armed and not playing"`. Twice a second it is on. Default:
    /// never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("format" = "number-expression"))]
    pub blink: Option<String>,
}
