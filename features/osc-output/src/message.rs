//! The OSC packet for an event, from a mapping's parameters.

use conductor_expression::{Expression, Hole, Inputs, Names, OscNumber, Slots, Template};
use conductor_feature::{Event, kind};
use rosc::{OscMessage, OscPacket, OscType};

use crate::incoming::Incoming;
use crate::params::ArgValue;

/// What stands for a text in a template: the name of the device that the event came from.
const NAME: &str = "name";
/// The same: the address of the OSC message that came in.
const ADDRESS: &str = "address";
/// The same, as an address begins with it.
const WHOLE_ADDRESS: &str = "{address}";
/// In the list of arguments: all those of the OSC message that came in, as they are.
const ARGS: &str = "{args}";

/// What the contract puts into `channel` where an event has none.
const NO_CHANNEL: u8 = 255;

/// One argument, ready to be filled in.
#[derive(Debug, Clone, PartialEq)]
enum Arg {
    Fixed(OscType),
    Number(Expression, Tag),
    Text(Template),
    /// An argument of the message that came in, with its own type.
    Same(usize),
    /// All arguments of the message that came in.
    All,
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
            ArgValue::Text(text) if text == ARGS => Self::All,
            ArgValue::Text(text) => match lone(text) {
                Some((inner, None)) if let Some(OscNumber::Arg(at)) = OscNumber::of_name(inner.trim()) => {
                    Self::Same(at)
                }
                Some((inner, None)) if is_text(inner.trim()) => Self::Text(template(text)?),
                Some((inner, Some("s"))) => Self::Text(template(&format!("{{{inner}}}"))?),
                Some((inner, tag)) => {
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
                None => {
                    let template = template(text)?;
                    match template.as_text() {
                        Some(fixed) => Self::Fixed(OscType::String(fixed.to_owned())),
                        None => Self::Text(template),
                    }
                }
            },
        })
    }

    /// The same for every event, or of the same length at least.
    fn is_steady(&self) -> bool {
        matches!(self, Self::Fixed(_) | Self::Number(..))
    }

    /// Appends the value, or the values.
    fn fill(&self, source: &Source<'_>, out: &mut Vec<OscType>) {
        out.push(match self {
            Self::Fixed(value) => value.clone(),
            Self::Number(expression, tag) => number(expression, *tag, source),
            Self::Text(template) => {
                let mut text = String::new();
                template.fill(source, &mut text, |name, out| source.text(name, out));
                OscType::String(text)
            }
            Self::Same(at) => source.incoming.arg(*at).cloned().unwrap_or(OscType::Nil),
            Self::All => return out.extend_from_slice(source.incoming.args()),
        });
    }

    /// Adds what it needs.
    fn needs(&self, needs: &mut Needs) {
        match self {
            Self::Fixed(_) => {}
            Self::Number(expression, _) => needs.expression(expression),
            Self::Text(template) => needs.template(template),
            Self::Same(_) | Self::All => needs.message = true,
        }
    }
}

/// What has to be asked of the host for each event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// The name of the device.
    pub name: bool,
    /// The OSC message that came in.
    pub message: bool,
    /// The number of texts that the wildcards of the mapping's pattern have matched.
    pub matches: u32,
}

impl Needs {
    /// Whether it is anything that only an OSC message has.
    pub fn is_of_osc(self) -> bool {
        self.message || self.matches > 0
    }

    fn osc(&mut self, number: OscNumber) {
        match number {
            OscNumber::Arg(_) => self.message = true,
            OscNumber::Match(at) => self.matches = self.matches.max(u32::try_from(at + 1).unwrap_or(u32::MAX)),
        }
    }

    fn expression(&mut self, expression: &Expression) {
        expression.osc_numbers().for_each(|number| self.osc(number));
    }

    fn template(&mut self, template: &Template) {
        for hole in template.holes() {
            match hole {
                Hole::Number(expression) => self.expression(expression),
                Hole::Text(name) => match OscNumber::of_name(name) {
                    Some(number) => self.osc(number),
                    None if name == ADDRESS => self.message = true,
                    None => self.name = true,
                },
            }
        }
    }
}

/// Where the parts of a message come from.
struct Source<'e> {
    event: &'e Event,
    name: &'e str,
    incoming: &'e Incoming,
}

impl<'e> Source<'e> {
    fn new(event: &'e Event, name: &'e str, incoming: &'e Incoming) -> Self {
        Self { event, name, incoming }
    }

    fn inputs(&self) -> Inputs {
        let Event { value, unit, position, number, channel, .. } = *self.event;
        let channel = if channel == NO_CHANNEL { -1.0 } else { channel.into() };
        Inputs { value, unit: unit.into(), position: position.into(), number: number.into(), channel }
    }

    /// Appends what a name stands for that is a text.
    fn text(&self, name: &str, out: &mut String) {
        match OscNumber::of_name(name) {
            Some(OscNumber::Arg(at)) => self.incoming.arg_text(at, out),
            Some(OscNumber::Match(at)) => out.push_str(self.incoming.matched(at)),
            None if name == ADDRESS => out.push_str(self.incoming.address()),
            None => out.push_str(self.name),
        }
    }
}

impl Slots for Source<'_> {
    fn slot(&self, slot: u16) -> f64 {
        match OscNumber::in_slot(slot) {
            Some(OscNumber::Arg(at)) => self.incoming.arg_number(at),
            Some(OscNumber::Match(at)) => self.incoming.match_number(at),
            None => self.inputs().slot(slot),
        }
    }
}

/// Whether a name stands for a text.
fn is_text(name: &str) -> bool {
    name == NAME || name == ADDRESS || OscNumber::of_name(name).is_some()
}

fn template(text: &str) -> Result<Template, String> {
    Template::parse(text, Names::Event, is_text).map_err(|wrong| format!("in \"{text}\", {wrong}"))
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

#[expect(clippy::cast_possible_truncation, reason = "`as` saturates, which is what a too large value should do")]
fn number(expression: &Expression, tag: Tag, source: &Source<'_>) -> OscType {
    let value = expression.eval(source);
    match tag {
        Tag::Natural { always, of_whole_values } => {
            let has_whole_value =
                !matches!(source.event.kind, kind::OSC | kind::GAMEPAD_STICK | kind::GAMEPAD_TRIGGER | kind::VARIABLE);
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
    needs: Needs,
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
        let address = if address.starts_with('/') || address.starts_with(WHOLE_ADDRESS) {
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
        let mut needs = Needs::default();
        needs.template(&address);
        args.iter().for_each(|arg| arg.needs(&mut needs));
        if let Some(fixed) = address.as_text() {
            rosc::address::verify_address(fixed).map_err(|_| {
                format!("\"{fixed}\" is no OSC address: printable ASCII without space # * , ? [ ] {{ }}")
            })?;
        }
        let mut message = Self { address, args, needs, packet: Vec::with_capacity(64), numbers: None };
        if let Some(fixed) = message.address.as_text()
            && message.args.iter().all(Arg::is_steady)
        {
            message.numbers = Some(numbers(fixed, &message.args));
            message.encode(&Source::new(&NO_EVENT, "", &Incoming::default()))?;
        }
        Ok(message)
    }

    /// What [`packet`](Self::packet) needs beside the event's record.
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// The encoded packet for an event from the device called `name`, as the message `incoming`.
    ///
    /// # Errors
    /// The encoder's message.
    pub fn packet(&mut self, event: &Event, name: &str, incoming: &Incoming) -> Result<&[u8], String> {
        let source = Source::new(event, name, incoming);
        match &self.numbers {
            Some(numbers) => numbers.iter().for_each(|number| number.write(&source, &mut self.packet)),
            None => self.encode(&source)?,
        }
        Ok(&self.packet)
    }

    fn encode(&mut self, source: &Source<'_>) -> Result<(), String> {
        let mut addr = String::with_capacity(64);
        self.address.fill(source, &mut addr, |name, out| {
            if name == ADDRESS {
                return source.text(name, out);
            }
            let mut text = String::new();
            source.text(name, &mut text);
            out.extend(text.chars().map(address_char));
        });
        let mut args = Vec::with_capacity(self.args.len());
        self.args.iter().for_each(|arg| arg.fill(source, &mut args));
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
            Arg::Fixed(_) | Arg::Text(_) | Arg::Same(_) | Arg::All => 4,
        };
    }
    numbers
}

impl Number {
    fn write(&self, source: &Source<'_>, packet: &mut [u8]) {
        let (tag, bytes): (u8, &[u8]) = match number(&self.expression, self.tag, source) {
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

/// A text from outside may hold anything; an OSC address may not (OSC 1.0, "OSC Address Spaces").
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
        match rosc::decoder::decode_udp(message.packet(event, "deck/1 left", &Incoming::default()).unwrap()).unwrap().1
        {
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

    fn rewritten(address: &str, args: serde_json::Value, incoming: &Incoming) -> OscMessage {
        let mut message = Message::new(address, &values(args)).unwrap();
        let event = Event { kind: kind::OSC, ..EVENT };
        match rosc::decoder::decode_udp(message.packet(&event, "", incoming).unwrap()).unwrap().1 {
            OscPacket::Message(message) => message,
            OscPacket::Bundle(_) => unreachable!("a message was encoded"),
        }
    }

    #[test]
    fn a_message_that_came_in_goes_on_as_it_is_or_in_parts() {
        let args = vec![OscType::Int(7), OscType::String("on air".into()), OscType::Blob(vec![1]), OscType::Bool(true)];
        let incoming = Incoming::new("/deck/*/cue", args.clone(), &["2", "cue"]);
        let whole = rewritten("{address}", json!(["{args}"]), &incoming);
        assert_eq!(whole, OscMessage { addr: "/deck/*/cue".into(), args: args.clone() });
        let parts =
            json!(["{arg2}", "{arg1}: {arg3}", "{arg0 * 2:i}", "{match1}", "{match1 * 2:d}", "{arg4}", "{arg3:s}"]);
        let parts = rewritten("/out{address}/{match2}/{arg1}", parts, &incoming);
        assert_eq!(parts.addr, "/out/deck/*/cue/cue/on_air");
        let text = |text: &str| OscType::String(text.into());
        let numbers = [OscType::Int(14), text("2"), OscType::Double(4.0), OscType::Nil, text("true")];
        assert_eq!(parts.args, [[OscType::Blob(vec![1]), text("on air: true")].as_slice(), &numbers].concat());
        let none = rewritten("/x", json!(["{args}", "{arg0}", "{match1:i}", "{address}"]), &Incoming::default());
        assert_eq!(none.args, [OscType::Nil, OscType::Int(0), text("")], "of an event that is no message");
    }

    #[test]
    fn only_what_is_needed_is_asked_of_the_host() {
        let needs = |address: &str, args| Message::new(address, &values(args)).unwrap().needs();
        assert_eq!(needs("/a/{n}", json!(["{unit}", "x", 1])), Needs::default());
        assert_eq!(needs("/a", json!(["{arg0 + 1}"])), Needs { message: true, ..Needs::default() });
        let all = Needs { name: true, message: true, matches: 3 };
        assert_eq!(needs("/{match3}/{name}", json!(["{match1}", "{args}"])), all);
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
                        let none = &Incoming::default();
                        assert_eq!(
                            written.packet(&event, "", none),
                            encoded.packet(&event, "", none),
                            "{address} {event:?}"
                        );
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
