//! Parts of mappings, as tools take them: triggers, actions, conditions, lights.
//!
//! Their schemas name every key and are closed, but say little of values: the schemas of all tools are read before
//! every conversation. Ranges of numbers, and what keys mean together, the host checks when a mapping is proposed.
//! The keys of all kinds of triggers stand side by side; those of actions and conditions, by kind.

mod kinds;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use self::kinds::{Key, Kind, Others, Shape};

/// A number, a range `"36..43"`, or an expression such as `"{value}"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// A whole number.
    Whole(i64),
    /// As text.
    Text(String),
}

impl JsonSchema for Number {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"] })
    }
}

/// The lowest and the highest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds(pub [u16; 2]);

impl JsonSchema for Bounds {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Bounds".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": { "type": "integer" } })
    }
}

// The kinds of triggers.
#[expect(missing_docs, reason = "the configuration's schema describes them")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum TriggerKind {
    Note,
    NoteRange,
    VelocityRange,
    CC,
    Aftertouch,
    PolyAftertouch,
    PitchBend,
    ProgramChange,
    SysEx,
    MidiAny,
    OscMessage,
    OscPattern,
    OscArgRange,
    GamepadButton,
    GamepadAnalogStick,
    GamepadTrigger,
    Key,
    ArtNetChannel,
    LongPress,
    DoubleTap,
    NoteChord,
    GamepadButtonChord,
    KeyChord,
    NoteSequence,
    GamepadButtonSequence,
    KeySequence,
    EncoderTurn,
    CC14,
    RPN,
    NRPN,
    Variable,
    Beat,
    Bar,
    Transport,
}

// How an encoder says how far it was turned.
#[expect(missing_docs, reason = "the configuration's schema describes them")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum EncoderMode {
    TwosComplement,
    SignedBit,
    BinaryOffset,
    IncDec,
    Difference,
    Wrapping,
}

/// Which event a mapping waits for: a kind, and the keys that it has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the configuration's schema describes them")]
pub struct Trigger {
    #[serde(rename = "type")]
    pub kind: TriggerKind,
    /// An alias, or a port's name. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// 0-15.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<Vec<u8>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note_min: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note_max: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub velocity_range: Option<Bounds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// press, release, both; enter, move; start, continue, stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cc: Option<Number>,
    /// Of CC14.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fine_first: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_range: Option<Bounds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arg: Option<u8>,
    /// 128-144.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub button: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buttons: Option<Vec<u8>>,
    /// 257-1023, or a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<Number>>,
    /// 128-131.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<Number>,
    /// any, positive, negative, clockwise, counter_clockwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_zone: Option<f64>,
    /// 132, 133.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub universe: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dmx_channel: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taps: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<EncoderMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u16>,
}

impl Trigger {
    /// A trigger of which nothing but the kind is said.
    pub fn new(kind: TriggerKind) -> Self {
        Self {
            kind,
            device: None,
            channel: None,
            note: None,
            notes: None,
            note_min: None,
            note_max: None,
            velocity_range: None,
            min: None,
            max: None,
            on: None,
            cc: None,
            fine_first: None,
            value_range: None,
            program: None,
            parameter: None,
            prefix: None,
            mask: None,
            address: None,
            pattern: None,
            arg: None,
            button: None,
            buttons: None,
            key: None,
            keys: None,
            axis: None,
            direction: None,
            dead_zone: None,
            trigger: None,
            threshold: None,
            universe: None,
            dmx_channel: None,
            duration_ms: None,
            timeout_ms: None,
            taps: None,
            mode: None,
            variable: None,
            every: None,
            offset: None,
        }
    }
}

/// What a mapping does: a kind, and the keys that it has. A kind that is not the host's is a feature's, whose keys
/// only the feature knows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Action(Map<String, Value>);

impl Action {
    /// The kinds that the host does itself; all others are features'.
    pub fn of_the_host() -> impl Iterator<Item = &'static str> + Clone {
        ACTIONS.iter().map(|kind| kind.name)
    }

    /// The kind of this action.
    pub fn kind(&self) -> &str {
        kinds::tag(&self.0)
    }

    /// The kinds of this action and of all within it.
    pub fn kinds(&self) -> Vec<&str> {
        let mut found = Vec::new();
        kinds::walk(&self.0, ACTIONS, &mut |kind| found.push(kind));
        found
    }
}

impl<'de> Deserialize<'de> for Action {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let keys = Map::deserialize(deserializer)?;
        kinds::check("an action", &keys, ACTIONS, Others::Allowed).map_err(D::Error::custom)?;
        Ok(Self(keys))
    }
}

impl JsonSchema for Action {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Action".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        kinds::schema(generator, ACTIONS, Others::Allowed)
    }
}

/// What else must be so for a mapping to fire: a kind, and the keys that it has.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Condition(Map<String, Value>);

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let keys = Map::deserialize(deserializer)?;
        kinds::check("a condition", &keys, CONDITIONS, Others::Rejected).map_err(D::Error::custom)?;
        Ok(Self(keys))
    }
}

impl JsonSchema for Condition {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Condition".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        kinds::schema(generator, CONDITIONS, Others::Rejected)
    }
}

// The MIDI messages that actions and lights send.
#[expect(missing_docs, reason = "the configuration's schema describes them")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum MessageKind {
    NoteOn,
    NoteOff,
    CC,
    ProgramChange,
    PitchBend,
    Aftertouch,
    PolyAftertouch,
    SysEx,
}

/// A MIDI message, as [`Feedback`] sends it: a kind, and the keys that it has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the configuration's schema describes them")]
pub struct Message {
    pub message_type: MessageKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub velocity: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cc: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
}

/// What lights or motor faders show of a mapping.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Feedback {
    /// Default: the trigger's device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Shown from when it has fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fired: Option<Message>,
    /// Shown until then; again at a release with `while_held`, or with `on`: both, release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Message>,
    /// Whether `idle` is shown again when the control is let go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub while_held: Option<bool>,
    /// What the display in the key says, on a Stream Deck; at most 64 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

const MESSAGES: &[&str] =
    &["NoteOn", "NoteOff", "CC", "ProgramChange", "PitchBend", "Aftertouch", "PolyAftertouch", "SysEx"];
const STROKES: &[&str] = &["tap", "hold", "press", "release"];
const CANCEL_ON: &[&str] = &["mode_change", "reload"];

const ACTIONS: &[Kind] = &[
    Kind {
        name: "SendMidi",
        keys: &[
            required("target", Shape::Text),
            required("message_type", Shape::OneOf(MESSAGES)),
            optional("channel", Shape::Number),
            optional("note", Shape::Number),
            optional("velocity", Shape::Number),
            optional("cc", Shape::Number),
            optional("value", Shape::Number),
            optional("program", Shape::Number),
            optional("pressure", Shape::Number),
            optional("bytes", Shape::Text),
        ],
    },
    Kind {
        name: "MidiForward",
        keys: &[required("target", Shape::Text), optional("transform", Shape::Keys(TRANSFORM))],
    },
    Kind {
        name: "Keystroke",
        keys: &[
            required("keys", Shape::Texts),
            optional("modifiers", Shape::Texts),
            optional("stroke", Shape::OneOf(STROKES)),
        ],
    },
    Kind { name: "Text", keys: &[required("text", Shape::Text)] },
    Kind {
        name: "MouseClick",
        keys: &[
            optional("button", Shape::OneOf(&["left", "right", "middle", "back", "forward"])),
            optional("x", Shape::Integer),
            optional("y", Shape::Integer),
            optional("stroke", Shape::OneOf(STROKES)),
        ],
    },
    Kind {
        name: "VirtualGamepad",
        keys: &[
            optional("button", Shape::Number),
            optional("stroke", Shape::OneOf(&["hold", "tap", "press", "release"])),
            optional("axis", Shape::Number),
            optional("trigger", Shape::Number),
            optional("value", Shape::Number),
        ],
    },
    Kind {
        name: "MouseMove",
        keys: &[
            optional("x", Shape::Number),
            optional("y", Shape::Number),
            optional("motion", Shape::OneOf(&["by", "to", "speed"])),
        ],
    },
    Kind {
        name: "Scroll",
        keys: &[required("amount", Shape::Number), optional("axis", Shape::OneOf(&["vertical", "horizontal"]))],
    },
    Kind {
        name: "VolumeControl",
        keys: &[required("operation", Shape::OneOf(&["up", "down", "mute"])), optional("steps", Shape::Integer)],
    },
    Kind {
        name: "Launch",
        keys: &[
            required("app", Shape::Text),
            optional("args", Shape::Texts),
            optional("working_dir", Shape::Text),
            optional("env", Shape::Table),
        ],
    },
    Kind {
        name: "Shell",
        keys: &[
            required("command", Shape::Text),
            optional("args", Shape::Texts),
            optional("shell", Shape::Flag),
            optional("working_dir", Shape::Text),
            optional("env", Shape::Table),
            optional("timeout_ms", Shape::Integer),
        ],
    },
    Kind {
        name: "Sequence",
        keys: &[
            required("actions", Shape::Actions),
            optional("delay_between_ms", Shape::Integer),
            optional("cancel_on", Shape::SomeOf(CANCEL_ON)),
        ],
    },
    Kind {
        name: "Repeat",
        keys: &[
            required("action", Shape::Action),
            required("count", Shape::Integer),
            optional("delay_ms", Shape::Integer),
            optional("cancel_on", Shape::SomeOf(CANCEL_ON)),
        ],
    },
    Kind { name: "Delay", keys: &[optional("ms", Shape::Integer), optional("beats", Shape::Real)] },
    Kind {
        name: "Conditional",
        keys: &[
            required("condition", Shape::Condition),
            required("then", Shape::Action),
            optional("else", Shape::Action),
        ],
    },
    Kind {
        name: "ModeChange",
        keys: &[
            required("mode", Shape::Text),
            optional("lasts", Shape::OneOf(&["until_changed", "while_held", "one_press"])),
        ],
    },
    Kind { name: "NextMode", keys: &[] },
    Kind { name: "PreviousMode", keys: &[] },
    Kind { name: "SetVariable", keys: &[required("variable", Shape::Text), required("value", Shape::Any)] },
    Kind { name: "ToggleVariable", keys: &[required("variable", Shape::Text)] },
    Kind { name: "CycleVariable", keys: &[required("variable", Shape::Text), optional("by", Shape::Integer)] },
    Kind {
        name: "AddToVariable",
        keys: &[
            required("variable", Shape::Text),
            optional("by", Shape::Number),
            optional("wrap", Shape::Flag),
            optional("acceleration", Shape::Real),
            optional("detents", Shape::Any),
        ],
    },
    Kind { name: "TapTempo", keys: &[] },
    Kind { name: "Suppress", keys: &[] },
];

const TRANSFORM: &[Key] = &[
    optional("channel", Shape::Integer),
    optional("cc", Shape::Integer),
    optional("note", Shape::Integer),
    optional("velocity_scale", Shape::Real),
    optional("velocity_offset", Shape::Integer),
    optional("invert_value", Shape::Flag),
    optional("curve", Shape::Any),
    optional("input_range", Shape::Bounds),
    optional("output_range", Shape::Bounds),
    optional("takeover", Shape::OneOf(&["jump", "pickup"])),
    optional("smoothing", Shape::Keys(&[optional("min_cutoff", Shape::Real), optional("beta", Shape::Real)])),
];

const CONDITIONS: &[Kind] = &[
    Kind { name: "Always", keys: &[] },
    Kind { name: "Never", keys: &[] },
    Kind { name: "ModeIs", keys: &[required("mode", Shape::Text)] },
    Kind { name: "TimeRange", keys: &[required("start", Shape::Text), required("end", Shape::Text)] },
    Kind {
        name: "DayOfWeek",
        keys: &[required(
            "days",
            Shape::SomeOf(&["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]),
        )],
    },
    Kind { name: "AppRunning", keys: &[required("app", Shape::Text)] },
    Kind { name: "AppFrontmost", keys: &[required("app", Shape::Text)] },
    Kind {
        name: "NoteHeld",
        keys: &[required("note", Shape::Number), optional("channel", Shape::Integer), optional("device", Shape::Text)],
    },
    Kind {
        name: "CcValueInRange",
        keys: &[
            required("cc", Shape::Integer),
            required("value_range", Shape::Bounds),
            optional("channel", Shape::Integer),
            optional("device", Shape::Text),
        ],
    },
    Kind {
        name: "VariableIs",
        keys: &[
            required("variable", Shape::Text),
            optional("value", Shape::Any),
            optional("min", Shape::Real),
            optional("max", Shape::Real),
            optional("device", Shape::Text),
        ],
    },
    Kind { name: "Expression", keys: &[required("holds", Shape::Text)] },
    Kind { name: "And", keys: &[required("conditions", Shape::Conditions)] },
    Kind { name: "Or", keys: &[required("conditions", Shape::Conditions)] },
    Kind { name: "Not", keys: &[required("condition", Shape::Condition)] },
];

const fn required(name: &'static str, shape: Shape) -> Key {
    Key { name, shape, is_required: true }
}

const fn optional(name: &'static str, shape: Shape) -> Key {
    Key { name, shape, is_required: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_read_is_what_is_written() {
        for written in [
            json!({ "type": "Note", "note": "36..43", "device": "pads", "velocity_range": [1, 100] }),
            json!({ "type": "EncoderTurn", "cc": 16, "mode": "signed_bit" }),
            json!({ "type": "OscArgRange", "address": "/a", "min": 0.5, "max": 1.0 }),
        ] {
            let trigger: Trigger = serde_json::from_value(written.clone()).expect("a trigger");
            assert_eq!(serde_json::to_value(trigger).expect("JSON"), written);
        }
        for written in [
            json!({ "type": "SendMidi", "target": "synth", "message_type": "CC", "cc": 7, "value": "{value}" }),
            json!({ "type": "Repeat", "count": 2, "action": { "type": "OscSend", "address": "/go", "args": ["1"] } }),
            json!({ "type": "Conditional", "condition": { "type": "Always" }, "then": { "type": "Suppress" },
                    "else": { "type": "Suppress" } }),
            json!({ "type": "lamp:On", "brightness": 0.5, "colour": { "red": 1 } }),
        ] {
            let action: Action = serde_json::from_value(written.clone()).expect("an action");
            assert_eq!(serde_json::to_value(action).expect("JSON"), written);
        }
    }

    #[test]
    fn a_key_that_an_action_does_not_have_is_refused_wherever_it_is() {
        let wrong = |written: Value| serde_json::from_value::<Action>(written).expect_err("no such key").to_string();
        let nested = json!({ "type": "Sequence", "actions": [{ "type": "SendMidi", "target": "synth",
                             "message_type": "CC", "valu": 1 }] });
        assert_eq!(
            wrong(nested),
            "SendMidi has no key \"valu\"; did you mean \"value\"? It has type, target, message_type, channel, note, \
             velocity, cc, value, program, pressure, bytes"
        );
        assert!(wrong(json!({ "type": "Shell" })).contains("Shell needs the key \"command\""));
        assert!(wrong(json!({ "command": "x" })).contains("an action needs a `type`"));
        let within =
            json!({ "type": "Conditional", "condition": { "type": "ModeWas" }, "then": { "type": "Suppress" } });
        assert!(wrong(within).contains("there is no condition \"ModeWas\"; did you mean \"ModeIs\"?"));
        let forward = json!({ "type": "MidiForward", "target": "synth", "transform": { "scale": 2 } });
        assert!(wrong(forward).contains("transform has no key \"scale\""));
    }

    #[test]
    fn actions_within_actions_are_found() {
        let action: Action = serde_json::from_value(json!({
            "type": "Repeat", "count": 2,
            "action": { "type": "Sequence", "actions": [{ "type": "Suppress" }, { "type": "OscSend", "address": "/a" }] },
        }))
        .expect("an action");
        assert_eq!(action.kinds(), ["Repeat", "Sequence", "Suppress", "OscSend"]);
    }

    #[test]
    fn a_key_that_no_trigger_has_is_refused() {
        let wrong = serde_json::from_value::<Trigger>(json!({ "type": "Note", "note": 36, "velocty": 1 }));
        assert!(wrong.expect_err("no such key").to_string().contains("unknown field `velocty`"));
    }
}
