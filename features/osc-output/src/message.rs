//! The OSC packet for an event, from a mapping's parameters.

use conductor_feature::{Event, kind};
use rosc::{OscMessage, OscPacket, OscType};

use crate::params::ArgValue;
use crate::template::{Field, Template, lone_placeholder};

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
    fn parse(value: &ArgValue) -> Result<Self, String> {
        Ok(match value {
            ArgValue::Bool(b) => Self::Fixed(OscType::Bool(*b)),
            ArgValue::Whole(whole) => Self::Fixed(i32::try_from(*whole).map_or(OscType::Long(*whole), OscType::Int)),
            #[expect(clippy::cast_possible_truncation, reason = "OSC's usual float has 32 bits")]
            ArgValue::Real(real) => Self::Fixed(OscType::Float(*real as f32)),
            ArgValue::Text(text) => match lone_placeholder(text) {
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
        })
    }

    fn wants_name(&self) -> bool {
        matches!(self, Self::Text(template) if template.wants_name())
    }

    /// The same for every event, or of the same length at least.
    fn is_steady(&self) -> bool {
        !matches!(self, Self::Text(_))
    }

    fn fill(&self, event: &Event, name: &str) -> OscType {
        match self {
            Self::Fixed(value) => value.clone(),
            Self::Number(field, tag) => number(*field, *tag, event),
            Self::Text(template) => {
                let mut text = String::new();
                template.fill(event, name, |c| c, &mut text);
                OscType::String(text)
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "`as` saturates, which is what a too large value should do")]
fn number(field: Field, tag: Tag, event: &Event) -> OscType {
    let value = field.number(event);
    match tag {
        Tag::Natural if event.kind == kind::OSC && field == Field::Value => OscType::Float(value as f32),
        Tag::Natural | Tag::Int => OscType::Int(value as i32),
        Tag::Long => OscType::Long(value as i64),
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
#[derive(Debug, Clone, Copy, PartialEq)]
struct Number {
    field: Field,
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
            Template::parse(address)
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
        let wants_name = address.wants_name() || args.iter().any(Arg::wants_name);
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
        self.address.fill(event, name, address_char, &mut addr);
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
            Arg::Number(field, tag) => {
                numbers.push(Number { field: *field, tag: *tag, tag_at: tags + 1 + i, at });
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
        let (tag, bytes): (u8, &[u8]) = match number(self.field, self.tag, event) {
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
