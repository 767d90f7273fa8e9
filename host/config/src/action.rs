//! Actions: what a mapping does.

mod composite;

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::clock::TapTempo;
use super::desktop_action::{Keystroke, MouseClick, MouseMove, Scroll, TypeText, VirtualGamepad, VolumeControl};
use super::process_action::{Launch, Shell};
use super::variable::{AddToVariable, CycleVariable, SetVariable, StepMode, ToggleVariable};
use conductor_expression::{Bound, Expression, Mistake};
use conductor_quantity::{
    Channel, ChannelExpr, Controller, ControllerExpr, DATA_MAX, DataBounds, Note, NoteExpr, NumberExpr,
};
use conductor_text_formats::SysExMessage;

pub use composite::{CancelOn, Conditional, Delay, Repeat, Sequence};

/// The `type` of every action that the host itself carries out, for suggesting the nearest one where an
/// action is unknown to both the host and the features.
pub const HOST_ACTIONS: &[&str] = &[
    "SendMidi",
    "MidiForward",
    "Keystroke",
    "Text",
    "MouseClick",
    "MouseMove",
    "Scroll",
    "VolumeControl",
    "VirtualGamepad",
    "Launch",
    "Shell",
    "Sequence",
    "Repeat",
    "Delay",
    "Conditional",
    "ModeChange",
    "NextMode",
    "PreviousMode",
    "SetVariable",
    "ToggleVariable",
    "CycleVariable",
    "AddToVariable",
    "TapTempo",
    "Suppress",
];

/// What a mapping does, by `type`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
#[schemars(
    transform = also_send_midi_in_capitals,
    transform = super::spelling::also_in_snake_case,
    transform = keep_features_apart
)]
pub enum Action {
    /// Sends a MIDI message.
    SendMidi(SendMidi),

    /// Sends the event on to another device, changed on the way if so wished.
    MidiForward(MidiForward),

    /// Strikes keys.
    Keystroke(Keystroke),

    /// Types a text.
    Text(TypeText),

    /// Clicks with the mouse.
    MouseClick(MouseClick),

    /// Moves the pointer.
    MouseMove(MouseMove),

    /// Turns the mouse wheel.
    Scroll(Scroll),

    /// Changes the volume of the computer.
    VolumeControl(VolumeControl),

    /// Plays the virtual gamepad.
    VirtualGamepad(VirtualGamepad),

    /// Starts a program and leaves it to itself.
    Launch(Launch),

    /// Runs a command to its end.
    Shell(Shell),

    /// Does actions one after the other.
    Sequence(Sequence),

    /// Does an action several times.
    Repeat(Repeat),

    /// Waits.
    Delay(Delay),

    /// Does one action or another.
    Conditional(Conditional),

    /// Makes another mode the active one.
    ModeChange(ModeChange),

    /// Goes on to the next mode in the order of the file, after the last to the first. In a mapping of a mode, or of all.
    NextMode(StepMode),

    /// Goes back to the mode before, from the first to the last.
    PreviousMode(StepMode),

    /// Sets a variable.
    SetVariable(SetVariable),

    /// Changes a variable to something else, and back.
    ToggleVariable(ToggleVariable),

    /// Goes on to the next text or whole number of a variable.
    CycleVariable(CycleVariable),

    /// Adds to a variable, within its limits.
    AddToVariable(AddToVariable),

    /// Sets the tempo of the clock by taps, one a beat.
    TapTempo(TapTempo),

    /// Does nothing: with `consume`, keeps an event from other mappings, and of a press that it kept the release as well.
    Suppress(Suppress),

    /// An action of a feature. Its other keys are the feature's to define, and are checked by it.
    #[serde(untagged)]
    Feature {
        /// `<feature>:<Action>`, or `<Action>` alone where one feature only has an action of that name.
        #[serde(rename = "type", deserialize_with = "not_of_the_host")]
        #[schemars(extend("format" = "action-name"))]
        type_name: String,

        /// The other keys: always an object, without `type`.
        #[serde(flatten)]
        #[schemars(with = "serde_json::Map<String, Value>")]
        params: Value,
    },
}

/// Sends a MIDI message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SendMidi {
    /// Where to: the alias of a binding, or the name of a port.
    #[schemars(length(min = 1), extend("x-mentions" = "binding"))]
    pub target: String,

    /// What is sent.
    #[serde(flatten)]
    pub message: MidiMessage,
}

/// A MIDI message to send, by `message_type`.
///
/// A number may be an integer, or an expression of the event's numbers: `"{n}+36"`, `"{value -> 0..64}"`. What such
/// an expression yields is rounded, and brought into the range of its field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "message_type")]
pub enum MidiMessage {
    /// Begins a note.
    NoteOn {
        /// The MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: 0.
        #[serde(default)]
        #[schemars(range(min = 0, max = 15))]
        channel: ChannelExpr,
        /// The note, 0 to 127, or by name: `"C4"`.
        #[schemars(range(min = 0, max = 127))]
        note: NoteExpr,
        /// How hard it is struck, 0 to 127; 0 ends the note.
        #[schemars(range(min = 0, max = 127))]
        velocity: NumberExpr,
    },

    /// Ends a note.
    NoteOff {
        /// The MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: 0.
        #[serde(default)]
        #[schemars(range(min = 0, max = 15))]
        channel: ChannelExpr,
        /// The note, 0 to 127, or by name: `"C4"`.
        #[schemars(range(min = 0, max = 127))]
        note: NoteExpr,
        /// How fast it is let go, 0 to 127. Default: 0.
        #[serde(default)]
        #[schemars(range(min = 0, max = 127))]
        velocity: NumberExpr,
    },

    /// Moves a controller (control change).
    CC {
        /// The MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: 0.
        #[serde(default)]
        #[schemars(range(min = 0, max = 15))]
        channel: ChannelExpr,
        /// The controller, 0 to 127, or by name: `"modulation"`.
        #[schemars(range(min = 0, max = 127))]
        cc: ControllerExpr,
        /// Its new value, 0 to 127.
        #[schemars(range(min = 0, max = 127))]
        value: NumberExpr,
    },

    /// Chooses a program.
    ProgramChange {
        /// The MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: 0.
        #[serde(default)]
        #[schemars(range(min = 0, max = 15))]
        channel: ChannelExpr,
        /// The program, 0 to 127, counted from 0.
        #[schemars(range(min = 0, max = 127))]
        program: NumberExpr,
    },

    /// Moves the pitch wheel.
    PitchBend {
        /// The MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: 0.
        #[serde(default)]
        #[schemars(range(min = 0, max = 15))]
        channel: ChannelExpr,
        /// Its new position, 0 to 16383; 8192 is the middle.
        #[schemars(range(min = 0, max = 16383))]
        value: NumberExpr,
    },

    /// Changes the pressure on the whole channel.
    Aftertouch {
        /// The MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: 0.
        #[serde(default)]
        #[schemars(range(min = 0, max = 15))]
        channel: ChannelExpr,
        /// The pressure, 0 to 127.
        #[schemars(range(min = 0, max = 127))]
        pressure: NumberExpr,
    },

    /// Changes the pressure on one note.
    PolyAftertouch {
        /// The MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: 0.
        #[serde(default)]
        #[schemars(range(min = 0, max = 15))]
        channel: ChannelExpr,
        /// The note, 0 to 127, or by name: `"C4"`.
        #[schemars(range(min = 0, max = 127))]
        note: NoteExpr,
        /// The pressure, 0 to 127.
        #[schemars(range(min = 0, max = 127))]
        pressure: NumberExpr,
    },

    /// Sends a system-exclusive message.
    SysEx {
        /// The whole message in hex, from F0 to F7. Or a command of machine control: `"mmc play"`.
        bytes: SysExMessage,
    },
}

impl MidiMessage {
    /// The numbers that are calculated, with their keys.
    pub fn calculated(&self) -> impl Iterator<Item = (&'static str, &Expression)> {
        let (channel, numbers) = match self {
            Self::NoteOn { channel, note, velocity } | Self::NoteOff { channel, note, velocity } => {
                (Some(channel), [("note", note.expression()), ("velocity", velocity.expression())])
            }
            Self::CC { channel, cc, value } => {
                (Some(channel), [("cc", cc.expression()), ("value", value.expression())])
            }
            Self::ProgramChange { channel, program } => {
                (Some(channel), [("program", program.expression()), ("", None)])
            }
            Self::PitchBend { channel, value } => (Some(channel), [("value", value.expression()), ("", None)]),
            Self::Aftertouch { channel, pressure } => {
                (Some(channel), [("pressure", pressure.expression()), ("", None)])
            }
            Self::PolyAftertouch { channel, note, pressure } => {
                (Some(channel), [("note", note.expression()), ("pressure", pressure.expression())])
            }
            Self::SysEx { .. } => (None, [("", None), ("", None)]),
        };
        let channel = ("channel", channel.and_then(NumberExpr::expression));
        [channel].into_iter().chain(numbers).filter_map(|(key, number)| Some((key, number?)))
    }

    /// Puts variables in the place of their names, in every number.
    ///
    /// # Errors
    /// The key of the first number that is wrong, and why.
    pub fn bind(&mut self, find: impl Fn(&str) -> Option<Bound> + Copy) -> Result<(), (&'static str, Mistake)> {
        fn of<const N: u8>(
            key: &'static str,
            number: &mut NumberExpr<N>,
            find: impl Fn(&str) -> Option<Bound>,
        ) -> Result<(), (&'static str, Mistake)> {
            number.bind(find).map_err(|mistake| (key, mistake))
        }
        match self {
            Self::NoteOn { channel, note, velocity } | Self::NoteOff { channel, note, velocity } => {
                of("channel", channel, find)?;
                of("note", note, find)?;
                of("velocity", velocity, find)
            }
            Self::CC { channel, cc, value } => {
                of("channel", channel, find)?;
                of("cc", cc, find)?;
                of("value", value, find)
            }
            Self::ProgramChange { channel, program: number } => {
                of("channel", channel, find)?;
                of("program", number, find)
            }
            Self::PitchBend { channel, value } => {
                of("channel", channel, find)?;
                of("value", value, find)
            }
            Self::Aftertouch { channel, pressure } => {
                of("channel", channel, find)?;
                of("pressure", pressure, find)
            }
            Self::PolyAftertouch { channel, note, pressure } => {
                of("channel", channel, find)?;
                of("note", note, find)?;
                of("pressure", pressure, find)
            }
            Self::SysEx { .. } => Ok(()),
        }
    }
}

/// Sends the event on to another device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MidiForward {
    /// Where to: the alias of a binding, or the name of a port.
    #[schemars(length(min = 1), extend("x-mentions" = "binding"))]
    pub target: String,

    /// What is changed on the way. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transform: Option<MidiTransform>,
}

/// How a forwarded message differs from the one that came in.
///
/// The value (of a note its velocity, of a controller its value) is scaled, shifted, inverted and bent by
/// the curve, in this order. SysEx passes as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MidiTransform {
    /// The channel to send on, 0 to 15 or `"ch1"` to `"ch16"`. Default: that of the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,

    /// The controller to send as, 0 to 127 or its name; for control changes only. Default: that of the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cc: Option<Controller>,

    /// The note to send as, 0 to 127 or its name; for notes only. Default: that of the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,

    /// What the value is multiplied with, 0 to 127; the result is clamped to 0 to 127. Default: 1.
    #[schemars(range(min = 0, max = 127))]
    pub velocity_scale: f32,

    /// What is added to the value, -127 to 127; the result is clamped to 0 to 127. Default: 0.
    #[schemars(range(min = -127, max = 127))]
    pub velocity_offset: i8,

    /// Whether the value becomes 127 minus itself. Default: false.
    pub invert_value: bool,

    /// How the value is bent.
    pub curve: Curve,

    /// The values that count, each 0 to 127: the first becomes 0, the last 127, before anything else is
    /// done. Default: `[0, 127]`.
    pub input_range: DataBounds,

    /// Where the values end up, each 0 to 127, after everything else is done. Default: `[0, 127]`.
    pub output_range: DataBounds,

    /// What a fader does that is not where the value that it moves is. Default: `jump`.
    pub takeover: Takeover,

    /// Calms controllers that tremble. Default: no smoothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothing: Option<Smoothing>,
}

/// What a fader does that is not where the value that it moves is: after another fader or a mapping has
/// moved it, or after a mode in which it moved something else. Default: `jump`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Takeover {
    /// The value jumps to where the fader is.
    #[default]
    Jump,
    /// The value waits until the fader has reached it.
    Pickup,
}

/// Smoothing by a one-euro filter: what stands nearly still is calmed, what moves fast is followed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Smoothing {
    /// How fast a value that stands nearly still may tremble, in Hz, 0.001 to 1000; lower is calmer.
    /// Default: 1.
    #[schemars(range(min = 0.001, max = 1000))]
    pub min_cutoff: f32,

    /// How much less is smoothed the faster the value moves, 0 to 1000; higher lags less. Default: 1.
    #[schemars(range(min = 0, max = 1000))]
    pub beta: f32,
}

impl Default for Smoothing {
    fn default() -> Self {
        Self { min_cutoff: 1.0, beta: 1.0 }
    }
}

impl Default for MidiTransform {
    fn default() -> Self {
        Self {
            channel: None,
            cc: None,
            note: None,
            velocity_scale: 1.0,
            velocity_offset: 0,
            invert_value: false,
            curve: Curve::default(),
            input_range: DataBounds::FULL,
            output_range: DataBounds::FULL,
            takeover: Takeover::default(),
            smoothing: None,
        }
    }
}

/// How a value from 0 to 127 is bent into another one. Default: `linear`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Curve {
    /// As it is.
    #[default]
    Linear,
    /// Rises fast, then slowly.
    Logarithmic,
    /// Rises slowly, then fast.
    Exponential,
    /// Rises slowly at both ends and fast in the middle.
    S,
    /// By a table of 128 numbers, each 0 to 127: value 0 becomes the first of them, 127 the last.
    Lut(Lut),
}

/// A number from 0 to 127 for each number from 0 to 127.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
pub struct Lut(Box<[u8; Lut::LEN]>);

impl Lut {
    /// How many numbers the table has.
    pub const LEN: usize = DATA_MAX as usize + 1;

    /// The numbers, each 0 to 127.
    pub fn numbers(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

impl TryFrom<Vec<u8>> for Lut {
    type Error = &'static str;

    fn try_from(numbers: Vec<u8>) -> Result<Self, Self::Error> {
        if numbers.iter().any(|&number| number > DATA_MAX) {
            return Err("a number of the table is above 127");
        }
        let numbers = numbers.into_boxed_slice().try_into();
        numbers.map(Self).map_err(|_| "the table does not have 128 numbers")
    }
}

impl From<Lut> for Vec<u8> {
    fn from(lut: Lut) -> Self {
        lut.0.to_vec()
    }
}

impl JsonSchema for Lut {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Lut".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "128 numbers, each 0 to 127.",
            "type": "array",
            "items": { "type": "integer", "minimum": 0, "maximum": DATA_MAX },
            "minItems": Lut::LEN,
            "maxItems": Lut::LEN,
        })
    }
}

/// Makes another mode the active one, for all devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModeChange {
    /// The name of a mode of this configuration.
    #[schemars(length(min = 1), extend("x-refers-to" = "mode"))]
    pub mode: String,
    /// For how long: `until_changed` until another mode is chosen, `while_held` until the key comes up that the mapping
    /// fires for, `one_press` for the next press of any key. Then the mode from before is active again. A mapping asks
    /// for one of them, not in a `Sequence` or `Repeat`, and `while_held` needs a trigger for keys and no `defer`.
    /// Default: `until_changed`.
    #[serde(default)]
    pub lasts: Lasts,
}

/// For how long a mode is active.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lasts {
    /// Until another mode is chosen.
    #[default]
    UntilChanged,
    /// Until the key comes up.
    WhileHeld,
    /// For the next press.
    OnePress,
}

/// Does nothing. There is nothing to set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Suppress {}

/// Keeps a faulty action of the host from passing as the action of a feature, where anything goes.
fn not_of_the_host<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if HOST_ACTIONS.contains(&name.as_str()) {
        return Err(de::Error::invalid_value(Unexpected::Str(&name), &"the name of a feature's action"));
    }
    Ok(name)
}

/// Lets `SendMIDI` stand for `SendMidi`.
fn also_send_midi_in_capitals(schema: &mut Schema) {
    super::spelling::also_as(schema, |name| (name == "SendMidi").then(|| "SendMIDI".to_owned()));
}

/// Takes every spelling of the host's own actions from those that a feature's action may have, so that a
/// faulty action of the host does not pass for one of a feature in the schema either.
fn keep_features_apart(schema: &mut Schema) {
    let Some(Value::Array(actions)) = schema.get_mut("anyOf") else {
        return;
    };
    let names =
        actions.iter().filter_map(|action| action.pointer("/properties/type/enum")?.as_array()).flatten().cloned();
    let taken = json!({ "enum": names.collect::<Vec<_>>() });
    let open = |action: &&mut Value| action["additionalProperties"] == true;
    if let Some(feature) = actions.iter_mut().find(open) {
        feature["properties"]["type"]["not"] = taken;
    }
}
