//! Actions at the desktop: keys, text, the mouse, the volume, a gamepad.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use conductor_keyboard::Key;
use conductor_quantity::{AnalogTrigger, Button, NumberExpr, Stick};

/// Strikes keys, as if they were struck on a keyboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Keystroke {
    /// The keys, struck together, 1 to 8: `["cmd", "space"]`. They go down in this order, and up in the
    /// other. Each is a character, or space, enter, tab, escape, backspace, delete, insert, home, end, page_up,
    /// page_down, up, down, left, right, shift, ctrl, alt, meta (or cmd), caps_lock, num_lock, pause, print_screen,
    /// play_pause, next_track, previous_track, stop, volume_up, volume_down, volume_mute, f1 to f20.
    #[schemars(length(min = 1, max = 8))]
    pub keys: Vec<Key>,

    /// Keys that are down while those are struck, up to 8: `["ctrl", "shift"]`. It is the same to write
    /// them first under `keys`. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub modifiers: Vec<Key>,

    /// Whether the keys come up again, and when. Default: `tap`.
    #[serde(default)]
    pub stroke: Stroke,
}

impl Keystroke {
    /// All keys, in the order in which they go down.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = Key> + '_ {
        self.modifiers.iter().chain(&self.keys).copied()
    }
}

/// How a key or a mouse button moves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stroke {
    /// Down and up at once.
    #[default]
    Tap,
    /// Down with the press of the pad, and up with its release. Something continuous, such as a fader,
    /// presses in the upper half of its way; a stick, when it is pushed half of its way or farther.
    Hold,
    /// Down. It stays down until something lets it up, the mode is left or the rules change.
    Press,
    /// Up.
    Release,
}

/// Types a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TypeText {
    /// The text, 1 to 4096 characters; any that Unicode has.
    #[schemars(length(min = 1, max = 4096))]
    pub text: String,
}

/// Clicks with the mouse.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MouseClick {
    /// Which button. Default: `left`.
    pub button: MouseButton,

    /// Where, in pixels from the left, 0 to 32767; needs `y`. Default: where the pointer is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 32767))]
    pub x: Option<u16>,

    /// Where, in pixels from the top, 0 to 32767; needs `x`. Default: where the pointer is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 32767))]
    pub y: Option<u16>,

    /// Whether the button comes up again, and when. Default: `tap`.
    pub stroke: Stroke,
}

/// A button of a mouse. Default: `left`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MouseButton {
    /// The one under the index finger.
    #[default]
    Left,
    /// The one that opens menus.
    Right,
    /// The wheel.
    Middle,
    /// The one that goes back.
    Back,
    /// The one that goes forward.
    Forward,
}

/// Moves the pointer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MouseMove {
    /// How far, where to or how fast, -32767 to 32767; right is positive. A number, or one made from the event, such as
    /// `"{value -> -900..900}"`. Default: the pointer stays where it is from left to right.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -32767, max = 32767))]
    pub x: Option<NumberExpr>,

    /// The same from top to bottom; down is positive.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -32767, max = 32767))]
    pub y: Option<NumberExpr>,

    /// What `x` and `y` are. Default: `by`.
    pub motion: Motion,
}

/// What the numbers of a motion of the pointer are. Default: `by`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Motion {
    /// Pixels from where the pointer is.
    #[default]
    By,
    /// The pixel, from the top left; needs both.
    To,
    /// Pixels a second: the pointer goes on at this speed until an event of the mapping makes another one, 0 too. A speed
    /// that is a plain number ends with the release of the pad. It ends as well if the mode is left, the rules
    /// change or the device is gone.
    Speed,
}

/// Plays a virtual gamepad, which other programs see as one that is plugged in, on Linux: one of `button`, `axis` and `trigger`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VirtualGamepad {
    /// The button, 128 to 144, or a name such as `"south"`, `"dpad up"` or `"xbox a"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub button: Option<Button>,

    /// Whether the button comes up again, and when. Default: `hold`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stroke: Option<Stroke>,

    /// The axis of a stick, 128 to 131: `"left x"`, `"left y"`, `"right x"`, `"right y"`; needs `value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<Stick>,

    /// The analog trigger, 132 or 133: `"left trigger"`, `"right trigger"`; needs `value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<AnalogTrigger>,

    /// Where the axis goes, -32767 to 32767, right and up positive; how far the trigger is pulled, 0 to 32767. A number, or one
    /// made from the event, such as `"{value -> -32767..32767}"`. One that is a plain number goes back to 0 with the release of
    /// the pad. It goes back as well if the mode is left, the rules change or the device is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -32767, max = 32767))]
    pub value: Option<NumberExpr>,
}

impl VirtualGamepad {
    /// How the button moves.
    pub fn stroke(&self) -> Stroke {
        self.stroke.unwrap_or(Stroke::Hold)
    }

    /// Whether it does something for as long as a control is pressed.
    pub fn holds(&self) -> bool {
        self.button.is_none() || self.stroke() == Stroke::Hold
    }
}

/// Turns the mouse wheel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scroll {
    /// How many clicks of the wheel, -100 to 100; down and right are positive. A number, or one made from
    /// the event, such as `"{value}-64"`.
    #[schemars(range(min = -100, max = 100))]
    pub amount: NumberExpr,

    /// Which way. Default: `vertical`.
    #[serde(default)]
    pub axis: Axis,
}

/// A way to scroll. Default: `vertical`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Up and down.
    #[default]
    Vertical,
    /// Left and right.
    Horizontal,
}

/// Changes the volume of the computer, by the keys that keyboards have for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeControl {
    /// What to do.
    pub operation: VolumeOperation,

    /// How many steps up or down, 1 to 100; how much one is, the system decides. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub steps: u8,
}

/// A change of the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VolumeOperation {
    /// Louder.
    Up,
    /// Softer.
    Down,
    /// Silent; loud again if it was silent.
    Mute,
}

fn one() -> u8 {
    1
}
