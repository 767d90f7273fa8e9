//! The OSC message that an action is performed for: what of it goes on into the message that is sent.

use conductor_feature::event_details;
use rosc::{OscMessage, OscPacket, OscType};

use crate::message::Needs;

/// The message that came in, and what the wildcards of the mapping's pattern matched; empty for any other event.
#[derive(Debug, Default)]
pub struct Incoming {
    message: Option<OscMessage>,
    matches: Vec<String>,
}

/// Of an event that is no OSC message, or of one of which nothing is needed.
pub static NOTHING: Incoming = Incoming { message: None, matches: Vec::new() };

impl Incoming {
    /// Asks the host for what is needed of the event that an action is performed for.
    pub fn of_event(needs: Needs) -> Self {
        let message = if needs.message { event_details::osc_message() } else { None };
        let message = message.and_then(|packet| match rosc::decoder::decode_udp(&packet) {
            Ok((_, OscPacket::Message(message))) => Some(message),
            _ => None,
        });
        Self { message, matches: (1..=needs.matches).map_while(event_details::osc_match).collect() }
    }

    /// The address as it was sent; empty if there is none.
    pub fn address(&self) -> &str {
        self.message.as_ref().map_or("", |message| &message.addr)
    }

    /// All arguments.
    pub fn args(&self) -> &[OscType] {
        self.message.as_ref().map_or(&[], |message| &message.args)
    }

    /// An argument by its position, from 0.
    pub fn arg(&self, at: usize) -> Option<&OscType> {
        self.args().get(at)
    }

    /// An argument as a number: `true` is 1, `false` 0, and so is what is no number.
    pub fn arg_number(&self, at: usize) -> f64 {
        match self.arg(at) {
            Some(OscType::Int(value)) => f64::from(*value),
            Some(OscType::Float(value)) => f64::from(*value),
            #[expect(clippy::cast_precision_loss, reason = "beyond 2^53 it is rounded")]
            Some(OscType::Long(value)) => *value as f64,
            Some(OscType::Double(value)) => *value,
            Some(OscType::Bool(value)) => f64::from(*value),
            _ => 0.0,
        }
    }

    /// Appends an argument as a text: a string or a character as it is, a number as it is written, nothing for what is
    /// neither.
    pub fn arg_text(&self, at: usize, out: &mut String) {
        match self.arg(at) {
            Some(OscType::String(text)) => out.push_str(text),
            Some(OscType::Char(character)) => out.push(*character),
            Some(OscType::Int(value)) => out.push_str(&value.to_string()),
            Some(OscType::Long(value)) => out.push_str(&value.to_string()),
            Some(OscType::Float(value)) => out.push_str(&value.to_string()),
            Some(OscType::Double(value)) => out.push_str(&value.to_string()),
            Some(OscType::Bool(value)) => out.push_str(&value.to_string()),
            _ => {}
        }
    }

    /// What a wildcard matched, by its position from 0; empty if nothing did.
    pub fn matched(&self, at: usize) -> &str {
        self.matches.get(at).map_or("", String::as_str)
    }

    /// The same as a number; 0 if it is not a number.
    pub fn match_number(&self, at: usize) -> f64 {
        self.matched(at).parse().ok().filter(|number: &f64| number.is_finite()).unwrap_or(0.0)
    }

    /// What would be there for this message.
    #[cfg(test)]
    pub fn new(addr: &str, args: Vec<OscType>, matches: &[&str]) -> Self {
        let matches = matches.iter().map(|text| (*text).to_owned()).collect();
        Self { message: Some(OscMessage { addr: addr.into(), args }), matches }
    }
}
