//! What a mapping says under `action`, and the OSC packet that an event makes of it.

use conductor_feature::{Event, kind};
use rosc::{OscMessage, OscPacket, OscType};
use serde::Deserialize;

use crate::template::{Field, Template, lone_placeholder};

/// The parameters of `OscSend`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Where to: one `host:port`, or several.
    pub target: Targets,
    /// The OSC address, with placeholders.
    pub address: String,
    /// The arguments; one float, the value scaled to 0-1, when left out.
    #[serde(default = "default_args")]
    pub args: Vec<serde_json::Value>,
}

/// One target or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Targets {
    /// `"127.0.0.1:9000"`
    One(String),
    /// `["127.0.0.1:9000", "127.0.0.1:9001"]`
    Several(Vec<String>),
}

impl Targets {
    /// Every target, in the order written.
    pub fn iter(&self) -> std::slice::Iter<'_, String> {
        match self {
            Self::One(target) => std::slice::from_ref(target).iter(),
            Self::Several(targets) => targets.iter(),
        }
    }
}

fn default_args() -> Vec<serde_json::Value> {
    vec![serde_json::Value::from("{unit}")]
}

/// The JSON Schema of [`Params`], which the host shows to people and models.
pub const SCHEMA: &str = r#"{
  "type": "object",
  "additionalProperties": false,
  "required": ["target", "address"],
  "properties": {
    "target": {
      "description": "Where to send: host:port, or a list of them. Each must be covered by a grant.",
      "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
    },
    "address": {
      "description": "OSC address. Placeholders: {value} {unit} {note} {cc} {number} {channel} {name} {n}.",
      "type": "string", "pattern": "^/"
    },
    "args": {
      "description": "Arguments. Numbers, booleans and text go as they are; text may hold placeholders. A lone placeholder keeps its type, or takes the one written behind a colon: i int32, h int64, f float, d double, s text.",
      "type": "array", "items": {"type": ["number", "boolean", "string"]}, "default": ["{unit}"]
    }
  }
}"#;

/// One argument, ready to be filled in.
#[derive(Debug, Clone, PartialEq)]
enum Arg {
    Fixed(OscType),
    Number(Field, Tag),
    Text(Template),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Tag {
    /// An int32 for MIDI values, which are whole numbers; a float for anything else.
    Natural,
    Int,
    Long,
    Float,
    Double,
}

impl Arg {
    fn parse(value: &serde_json::Value) -> Result<Self, String> {
        use serde_json::Value;
        Ok(match value {
            Value::Bool(b) => Self::Fixed(OscType::Bool(*b)),
            Value::Number(n) => Self::Fixed(match n.as_i64() {
                Some(whole) => i32::try_from(whole).map_or(OscType::Long(whole), OscType::Int),
                #[expect(clippy::cast_possible_truncation, reason = "OSC's usual float has 32 bits")]
                None => OscType::Float(n.as_f64().unwrap_or_default() as f32),
            }),
            Value::String(text) => match lone_placeholder(text) {
                Some((Field::Name, None | Some('s'))) => Self::Text(Template::parse("{name}")?),
                Some((field, Some('s'))) if field != Field::Name => {
                    Self::Text(Template::parse(&text.replace(":s}", "}"))?)
                }
                Some((field, tag)) => Self::Number(
                    field,
                    match tag {
                        None if field == Field::Unit => Tag::Float,
                        None => Tag::Natural,
                        Some('i') => Tag::Int,
                        Some('h') => Tag::Long,
                        Some('f') => Tag::Float,
                        Some('d') => Tag::Double,
                        Some(other) => {
                            return Err(format!("\"{text}\": `{other}` is no argument type; use i, h, f, d or s"));
                        }
                    },
                ),
                None => {
                    let template = Template::parse(text)?;
                    match template.as_text() {
                        Some(fixed) => Self::Fixed(OscType::String(fixed.to_owned())),
                        None => Self::Text(template),
                    }
                }
            },
            other => return Err(format!("an argument is a number, a boolean or text, not {other}")),
        })
    }

    fn wants_name(&self) -> bool {
        matches!(self, Self::Text(template) if template.wants_name())
    }

    #[expect(clippy::cast_possible_truncation, reason = "`as` saturates, which is what a too large value should do")]
    fn fill(&self, event: &Event, name: &str) -> OscType {
        match self {
            Self::Fixed(value) => value.clone(),
            Self::Number(field, tag) => {
                let value = field.number(event);
                match tag {
                    Tag::Natural if event.kind == kind::OSC && *field == Field::Value => OscType::Float(value as f32),
                    Tag::Natural | Tag::Int => OscType::Int(value as i32),
                    Tag::Long => OscType::Long(value as i64),
                    Tag::Float => OscType::Float(value as f32),
                    Tag::Double => OscType::Double(value),
                }
            }
            Self::Text(template) => {
                let mut text = String::new();
                template.fill(event, name, |c| c, &mut text);
                OscType::String(text)
            }
        }
    }
}

/// A message that waits for an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    address: Template,
    args: Vec<Arg>,
    wants_name: bool,
}

impl Message {
    /// Checks the address and the arguments.
    ///
    /// # Errors
    /// A sentence for the person who wrote the mapping.
    pub fn new(address: &str, args: &[serde_json::Value]) -> Result<Self, String> {
        if !address.starts_with('/') {
            return Err(format!("the address \"{address}\" must start with `/`"));
        }
        let address = Template::parse(address)?;
        let args = args.iter().map(Arg::parse).collect::<Result<Vec<_>, _>>()?;
        let wants_name = address.wants_name() || args.iter().any(Arg::wants_name);
        let message = Self { address, args, wants_name };
        if let Some(fixed) = message.address.as_text() {
            rosc::address::verify_address(fixed).map_err(|_| {
                format!("\"{fixed}\" is no OSC address: printable ASCII without space # * , ? [ ] {{ }}")
            })?;
        }
        Ok(message)
    }

    /// Whether [`packet`](Self::packet) needs the device's name.
    pub fn wants_name(&self) -> bool {
        self.wants_name
    }

    /// The encoded packet for an event from the device called `name`.
    ///
    /// # Errors
    /// The encoder's message.
    pub fn packet(&self, event: &Event, name: &str) -> Result<Vec<u8>, String> {
        let mut addr = String::with_capacity(64);
        self.address.fill(event, name, address_char, &mut addr);
        let args = self.args.iter().map(|arg| arg.fill(event, name)).collect();
        rosc::encoder::encode(&OscPacket::Message(OscMessage { addr, args })).map_err(|error| error.to_string())
    }
}

/// A device's name may hold anything; an OSC address may not (OSC 1.0, "OSC Address Spaces").
fn address_char(c: char) -> char {
    match c {
        ' ' | '#' | '*' | ',' | '/' | '?' | '[' | ']' | '{' | '}' => '_',
        c if c.is_ascii_graphic() => c,
        _ => '_',
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    const EVENT: Event = Event {
        at: 0,
        device: 1,
        kind: kind::CONTROL_CHANGE,
        channel: 0,
        number: 7,
        position: 2,
        value: 127.0,
        unit: 1.0,
    };

    fn decoded(address: &str, args: serde_json::Value, event: &Event) -> OscMessage {
        let args: Vec<_> = args.as_array().unwrap().clone();
        let packet = Message::new(address, &args).unwrap().packet(event, "deck/1 left").unwrap();
        match rosc::decoder::decode_udp(&packet).unwrap().1 {
            OscPacket::Message(message) => message,
            OscPacket::Bundle(_) => unreachable!("a message was encoded"),
        }
    }

    #[test]
    fn arguments_keep_or_take_their_type() {
        let message = decoded(
            "/a",
            json!(["{unit}", "{value}", "{value:f}", "{value:d}", "{n:h}", "{cc:s}", "{name}", 1, 1.5, true, "on {n}"]),
            &EVENT,
        );
        assert_eq!(
            message.args,
            [
                OscType::Float(1.0),
                OscType::Int(127),
                OscType::Float(127.0),
                OscType::Double(127.0),
                OscType::Long(2),
                OscType::String("7".into()),
                OscType::String("deck/1 left".into()),
                OscType::Int(1),
                OscType::Float(1.5),
                OscType::Bool(true),
                OscType::String("on 2".into()),
            ]
        );
    }

    #[test]
    fn a_name_in_an_address_is_made_to_fit() {
        assert_eq!(decoded("/{name}/{n}", json!([]), &EVENT).addr, "/deck_1_left/2");
    }

    #[test]
    fn values_from_osc_stay_floats() {
        let event = Event { kind: kind::OSC, value: 0.25, unit: 0.25, ..EVENT };
        assert_eq!(decoded("/a", json!(["{value}"]), &event).args, [OscType::Float(0.25)]);
    }

    #[test]
    fn mistakes_are_said_plainly() {
        assert_eq!(Message::new("fader", &[]).unwrap_err(), "the address \"fader\" must start with `/`");
        assert!(Message::new("/a b", &[]).unwrap_err().contains("no OSC address"));
        assert!(Message::new("/a", &[json!({"x": 1})]).unwrap_err().contains("an argument is"));
        assert!(Message::new("/a", &[json!("{value:q}")]).unwrap_err().contains("no argument type"));
    }
}
