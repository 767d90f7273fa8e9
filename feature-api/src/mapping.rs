//! Triggers and actions of mappings, as tools take them: the keys of every kind side by side, so that
//! the schema stays small. Which keys a kind has, the host knows, and says when a mapping is proposed.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A number, a range `"36..43"`, or an expression such as `"{value}"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// A whole number.
    Whole(i64),
    /// In words.
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
    ArtNetChannel,
    LongPress,
    DoubleTap,
    NoteChord,
    GamepadButtonChord,
    EncoderTurn,
    CC14,
    RPN,
    NRPN,
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
    /// press, release, both; enter, move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cc: Option<Number>,
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
    pub mode: Option<EncoderMode>,
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
            axis: None,
            direction: None,
            dead_zone: None,
            trigger: None,
            threshold: None,
            universe: None,
            dmx_channel: None,
            duration_ms: None,
            timeout_ms: None,
            mode: None,
        }
    }
}

/// The kinds of actions that the host does itself; all others are features'.
pub const HOST_ACTIONS: [&str; 15] = [
    "SendMidi",
    "MidiForward",
    "Keystroke",
    "Text",
    "MouseClick",
    "Scroll",
    "VolumeControl",
    "Launch",
    "Shell",
    "Sequence",
    "Repeat",
    "Delay",
    "Conditional",
    "ModeChange",
    "Suppress",
];

// The MIDI messages that an action sends.
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

/// What a mapping does: a kind, and the keys that it has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the configuration's schema describes them")]
pub struct Action {
    /// SendMidi, MidiForward, Keystroke, Text, MouseClick, Scroll, VolumeControl, Launch, Shell,
    /// Sequence, Repeat, Delay, Conditional, ModeChange, Suppress; or a feature's.
    #[serde(rename = "type")]
    pub kind: String,
    /// An output: an alias, or a port's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_type: Option<MessageKind>,
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
    /// Hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transform: Option<BTreeMap<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modifiers: Option<Vec<String>>,
    /// tap, hold, press, release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stroke: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub button: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<String>,
    /// up, down, mute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<Action>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_between_ms: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_on: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Box<Action>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u32>,
    /// Such as {"type": "ModeIs", "mode": "Mix"}.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<BTreeMap<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Box<Action>>,
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "else")]
    pub otherwise: Option<Box<Action>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The keys of a feature's action.
    #[serde(flatten)]
    pub params: Map<String, Value>,
}

impl Action {
    /// The kinds of this action and of all within it.
    pub fn kinds(&self) -> Vec<&str> {
        let inner = [&self.action, &self.then, &self.otherwise].into_iter().flatten().map(|action| &**action);
        let inner = inner.chain(self.actions.iter().flatten());
        std::iter::once(self.kind.as_str()).chain(inner.flat_map(Self::kinds)).collect()
    }
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
    fn a_key_that_no_trigger_has_is_refused() {
        let wrong = serde_json::from_value::<Trigger>(json!({ "type": "Note", "note": 36, "velocty": 1 }));
        assert!(wrong.expect_err("no such key").to_string().contains("unknown field `velocty`"));
    }
}
