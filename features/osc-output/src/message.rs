//! The OSC packet for an event, from a mapping's parameters.

use conductor_expression::{Expression, Hole, Inputs, Names, Template};
use conductor_feature::{Event, kind};
use rosc::{OscMessage, OscPacket, OscType};

use crate::params::ArgValue;

/// What stands for a text in a template: the name of the device that the event came from.
const NAME: &str = "name";

/// What the contract puts into `channel` where an event has none.
const NO_CHANNEL: u8 = 255;

/// One argument, ready to be filled in.
#[derive(Debug, Clone, PartialEq)]
enum Arg {
    Fixed(OscType),
    Number(Expression, Tag),
    Text(Template),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Tag {
    /// An int32 for what is a whole number for every event; a float for anything else. What depends on the event's value
    /// is whole where that is: MIDI's values are, those of OSC, sticks and analog triggers are not.
    Natural {
        always: bool,
        of_whole_values: bool,
    },
    Int,
    Long,
    Float,
    Double,
}

impl Arg {
    fn parse(value: &ArgValue) -> Result<Self, String> {
        Ok(match value {
            ArgValue::Bool(b) => Self::Fixed(OscType::Bool(*b)),
            ArgValue::Whole(whole) => Self::Fixed(i32::try_from(*whole).map_or(OscType::Long(*whole), OscType::Int)),
            #[expect(clippy::cast_possible_truncation, reason = "OSC's usual float has 32 bits")]
            ArgValue::Real(real) => Self::Fixed(OscType::Float(*real as f32)),
            ArgValue::Text(text) => match lone(text) {
                Some((inner, Some("s"))) => Self::Text(template(&format!("{{{inner}}}"))?),
                Some((inner, tag)) if inner.trim() != NAME => {
                    let expression = Expression::parse(inner, Names::Event)
                        .map_err(|wrong| format!("in \"{text}\", {}", wrong.moved(1)))?;
                    let tag = match tag {
                        None => Tag::Natural {
                            always: expression.is_whole(false),
                            of_whole_values: expression.is_whole(true),
                        },
                        Some("i") => Tag::Int,
                        Some("h") => Tag::Long,
                        Some("f") => Tag::Float,
                        Some("d") => Tag::Double,
                        Some(other) => {
                            return Err(format!("\"{text}\": `{other}` is no argument type; use i, h, f, d or s"));
                        }
                    };
                    Self::Number(expression, tag)
                }
                _ => {
                    let template = template(text)?;
                    match template.as_text() {
                        Some(fixed) => Self::Fixed(OscType::String(fixed.to_owned())),
                        None => Self::Text(template),
                    }
                }
            },
        })
    }

    fn wants_name(&self) -> bool {
        matches!(self, Self::Text(template) if wants_name(template))
    }

    /// The same for every event, or of the same length at least.
    fn is_steady(&self) -> bool {
        !matches!(self, Self::Text(_))
    }

    fn fill(&self, event: &Event, name: &str) -> OscType {
        match self {
            Self::Fixed(value) => value.clone(),
            Self::Number(expression, tag) => number(expression, *tag, event),
            Self::Text(template) => {
                let mut text = String::new();
                template.fill(&inputs(event), &mut text, |_, out| out.push_str(name));
                OscType::String(text)
            }
        }
    }
}

fn template(text: &str) -> Result<Template, String> {
    Template::parse(text, Names::Event, &[NAME]).map_err(|wrong| format!("in \"{text}\", {wrong}"))
}

fn wants_name(template: &Template) -> bool {
    template.holes().any(|hole| matches!(hole, Hole::Text(_)))
}

/// Splits `{expression}` or `{expression:type}`, when that is all there is in `text`.
fn lone(text: &str) -> Option<(&str, Option<&str>)> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    if inner.contains(['{', '}']) {
        return None;
    }
    Some(match inner.split_once(':') {
        Some((inner, tag)) => (inner, Some(tag.trim())),
        None => (inner, None),
    })
}

/// What an expression can name.
fn inputs(event: &Event) -> Inputs {
    Inputs {
        value: event.value,
        unit: event.unit.into(),
        position: event.position.into(),
        number: event.number.into(),
        channel: if event.channel == NO_CHANNEL { -1.0 } else { event.channel.into() },
    }
}

#[expect(clippy::cast_possible_truncation, reason = "`as` saturates, which is what a too large value should do")]
fn number(expression: &Expression, tag: Tag, event: &Event) -> OscType {
    let value = expression.eval(&inputs(event));
    match tag {
        Tag::Natural { always, of_whole_values } => {
            let has_whole_value =
                !matches!(event.kind, kind::OSC | kind::GAMEPAD_STICK | kind::GAMEPAD_TRIGGER | kind::VARIABLE);
            if always || of_whole_values && has_whole_value {
                OscType::Int(value as i32)
            } else {
                OscType::Float(value as f32)
            }
        }
        Tag::Int => OscType::Int(value.round() as i32),
        Tag::Long => OscType::Long(value.round() as i64),
        Tag::Float => OscType::Float(value as f32),
        Tag::Double => OscType::Double(value),
    }
}

/// A message that waits for an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    address: Template,
    args: Vec<Arg>,
    wants_name: bool,
    /// The packet of the event before, and where its numbers stand: where nothing but numbers
    /// changes from event to event, only they are written.
    packet: Vec<u8>,
    numbers: Option<Vec<Number>>,
}

/// A number in an encoded packet.
#[derive(Debug, Clone, PartialEq)]
struct Number {
    expression: Expression,
    tag: Tag,
    /// Where its type tag is.
    tag_at: usize,
    /// Where its first byte is.
    at: usize,
}

impl Message {
    /// Checks the address and the arguments.
    ///
    /// # Errors
    /// A sentence for each mistake, one a line, for the person who wrote the mapping.
    pub fn new(address: &str, args: &[ArgValue]) -> Result<Self, String> {
        let address = if address.starts_with('/') {
            template(address)
        } else {
            Err(format!("the address \"{address}\" must start with `/`"))
        };
        let (args, wrong): (Vec<_>, Vec<_>) = args.iter().map(Arg::parse).partition(Result::is_ok);
        let mut wrong: Vec<String> = wrong.into_iter().filter_map(Result::err).collect();
        let args: Vec<Arg> = args.into_iter().flatten().collect();
        let address = match address {
            Ok(address) if wrong.is_empty() => address,
            address => {
                wrong.splice(0..0, address.err());
                return Err(wrong.join("\n"));
            }
        };
        let wants_name = wants_name(&address) || args.iter().any(Arg::wants_name);
        if let Some(fixed) = address.as_text() {
            rosc::address::verify_address(fixed).map_err(|_| {
                format!("\"{fixed}\" is no OSC address: printable ASCII without space # * , ? [ ] {{ }}")
            })?;
        }
        let mut message = Self { address, args, wants_name, packet: Vec::with_capacity(64), numbers: None };
        if let Some(fixed) = message.address.as_text()
            && message.args.iter().all(Arg::is_steady)
        {
            message.numbers = Some(numbers(fixed, &message.args));
            message.encode(&NO_EVENT, "")?;
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
    pub fn packet(&mut self, event: &Event, name: &str) -> Result<&[u8], String> {
        match &self.numbers {
            Some(numbers) => numbers.iter().for_each(|number| number.write(event, &mut self.packet)),
            None => self.encode(event, name)?,
        }
        Ok(&self.packet)
    }

    fn encode(&mut self, event: &Event, name: &str) -> Result<(), String> {
        let mut addr = String::with_capacity(64);
        self.address.fill(&inputs(event), &mut addr, |_, out| out.extend(name.chars().map(address_char)));
        let args = self.args.iter().map(|arg| arg.fill(event, name)).collect();
        self.packet.clear();
        rosc::encoder::encode_into(&OscPacket::Message(OscMessage { addr, args }), &mut self.packet)
            .map(|_| ())
            .map_err(|error| error.to_string())
    }
}

/// Stands in where a packet is laid out before there is an event.
const NO_EVENT: Event = Event { at: 0, device: 0, kind: 0, channel: 0, number: 0, position: 0, value: 0.0, unit: 0.0 };

/// Where the numbers of a message with this address stand (OSC 1.0, "OSC Messages": address, type
/// tags and every argument are padded to 4 bytes).
fn numbers(address: &str, args: &[Arg]) -> Vec<Number> {
    let padded = |bytes: usize| bytes.next_multiple_of(4);
    let tags = padded(address.len() + 1);
    let mut at = tags + padded(1 + args.len() + 1);
    let mut numbers = Vec::new();
    for (i, arg) in args.iter().enumerate() {
        at += match arg {
            Arg::Number(expression, tag) => {
                numbers.push(Number { expression: expression.clone(), tag: *tag, tag_at: tags + 1 + i, at });
                if matches!(tag, Tag::Long | Tag::Double) { 8 } else { 4 }
            }
            Arg::Fixed(OscType::Bool(_)) => 0,
            Arg::Fixed(OscType::String(text)) => padded(text.len() + 1),
            Arg::Fixed(OscType::Long(_)) => 8,
            Arg::Fixed(_) | Arg::Text(_) => 4,
        };
    }
    numbers
}

impl Number {
    fn write(&self, event: &Event, packet: &mut [u8]) {
        let (tag, bytes): (u8, &[u8]) = match number(&self.expression, self.tag, event) {
            OscType::Int(value) => (b'i', &value.to_be_bytes()),
            OscType::Float(value) => (b'f', &value.to_be_bytes()),
            OscType::Long(value) => (b'h', &value.to_be_bytes()),
            OscType::Double(value) => (b'd', &value.to_be_bytes()),
            _ => return,
        };
        packet[self.tag_at] = tag;
        packet[self.at..self.at + bytes.len()].copy_from_slice(bytes);
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

    fn values(args: serde_json::Value) -> Vec<ArgValue> {
        serde_json::from_value(args).unwrap()
    }

    fn decoded(address: &str, args: serde_json::Value, event: &Event) -> OscMessage {
        let mut message = Message::new(address, &values(args)).unwrap();
        match rosc::decoder::decode_udp(message.packet(event, "deck/1 left").unwrap()).unwrap().1 {
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
    fn a_number_may_be_calculated() {
        let args = json!([
            "{value -> -60..10 dB}",
            "{value -> -60..10 dB:s}",
            "{n + 1}",
            "{value / 2}",
            "{value / 2:i}",
            "{value -> 0..7, round}",
            "level {value -> 0..100 %}",
        ]);
        let expected = [
            OscType::Float(10.0),
            OscType::String("10 dB".into()),
            OscType::Int(3),
            OscType::Float(63.5),
            OscType::Int(64),
            OscType::Int(7),
            OscType::String("level 100%".into()),
        ];
        assert_eq!(decoded("/ch/{n+1}", args, &EVENT), OscMessage { addr: "/ch/3".into(), args: expected.into() });
        let wrong = Message::new("/a", &values(json!(["{value -> 0..}"]))).unwrap_err();
        assert_eq!(wrong, "in \"{value -> 0..}\", column 14: the text is over; expected a range such as `0..127`");
    }

    #[test]
    fn the_value_of_a_stick_is_a_float() {
        let event = Event { kind: kind::GAMEPAD_STICK, value: -0.5, unit: 0.25, ..EVENT };
        assert_eq!(decoded("/a", json!(["{value}", "{n}"]), &event).args, [OscType::Float(-0.5), OscType::Int(2)]);
    }

    #[test]
    fn an_event_without_a_channel_says_minus_one() {
        let event = Event { channel: NO_CHANNEL, ..EVENT };
        assert_eq!(decoded("/a", json!(["{channel}"]), &event).args, [OscType::Int(-1)]);
    }

    #[test]
    fn numbers_that_are_written_into_the_packet_are_those_that_would_be_encoded() {
        let args = values(json!([
            "{unit}",
            "fixed",
            "{value}",
            true,
            1,
            "{value:d}",
            5_000_000_000_i64,
            "{n:h}",
            "{channel}"
        ]));
        for address in ["/a", "/ab", "/abc", "/mixer/level"] {
            for count in 0..=args.len() {
                let mut written = Message::new(address, &args[..count]).unwrap();
                assert!(written.numbers.is_some());
                for kind in [kind::NOTE_ON, kind::OSC, kind::PITCH_BEND] {
                    for value in [0.0, 1.0, 127.0, 16_383.0, -3.5, 1e300] {
                        let event = Event { kind, value, unit: (value / 127.0) as f32, ..EVENT };
                        let mut encoded = Message { numbers: None, ..written.clone() };
                        assert_eq!(written.packet(&event, ""), encoded.packet(&event, ""), "{address} {event:?}");
                    }
                }
            }
        }
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
        assert!(Message::new("/a", &values(json!(["{value:q}"]))).unwrap_err().contains("no argument type"));
        let both = Message::new("fader", &values(json!(["{value:q}", 1, "{nothing}"]))).unwrap_err();
        assert_eq!(both.lines().count(), 3, "{both}");
    }
}
