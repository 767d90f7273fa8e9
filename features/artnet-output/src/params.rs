//! The parameters under a mapping's `action`, and their values for an event.

use conductor_expression::{Expression, Inputs, Names, OscNumber, Slots};
use conductor_feature::Event;
use serde::Deserialize;

use crate::frame::{CHANNELS, LAST_UNIVERSE};

/// Where Art-Net is spoken, where a target does not say.
const PORT: u16 = 6454;

/// What the contract puts into `channel` where an event has none.
const NO_CHANNEL: u8 = 255;

/// The parameters of `ArtNetSend`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Where to: `host` or `host:port`.
    pub target: String,
    /// The port address, 0 to 32767.
    #[serde(default)]
    pub universe: u16,
    /// The DMX channel, 1 to 512.
    pub channel: Number,
    /// What to set it to, 0 to 255; the event's value from end to end when left out.
    #[serde(default = "whole_range")]
    pub value: Number,
}

fn whole_range() -> Number {
    Number::Text("{unit}".into())
}

/// A number as a mapping writes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "a whole number, or a text such as \"{n}+1\"")]
pub enum Number {
    /// `7`
    Whole(i64),
    /// `"{n}+1"`
    Text(String),
}

/// A number that waits for an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Light {
    /// The same for every event.
    Fixed(i64),
    /// The event's value, from 0 to 255 over its whole range.
    Unit,
    /// Calculated for each event.
    Calculated(Expression),
}

impl Light {
    /// Reads a number as it is written.
    ///
    /// # Errors
    /// A sentence for the person who wrote the mapping.
    pub fn parse(name: &str, number: &Number) -> Result<Self, String> {
        let text = match number {
            Number::Whole(whole) => return Ok(Self::Fixed(*whole)),
            Number::Text(text) => text,
        };
        let expression =
            Expression::parse(text, Names::Event).map_err(|wrong| format!("`{name}` cannot be \"{text}\": {wrong}"))?;
        Ok(if expression.is_just("unit") { Self::Unit } else { Self::Calculated(expression) })
    }

    /// The number for an event, rounded. `osc` gives what only an OSC message has, where it is a number.
    #[expect(clippy::cast_possible_truncation, reason = "`as` saturates, which is what a too large value should do")]
    pub fn number(&self, event: &Event, osc: impl Fn(OscNumber) -> Option<f64>) -> i64 {
        match self {
            Self::Fixed(whole) => *whole,
            Self::Unit => (event.unit * 255.0).round() as i64,
            Self::Calculated(expression) => {
                let record = Inputs {
                    value: event.value,
                    unit: event.unit.into(),
                    position: event.position.into(),
                    number: event.number.into(),
                    channel: if event.channel == NO_CHANNEL { -1.0 } else { event.channel.into() },
                };
                expression.eval(&Numbers { record, osc }).round() as i64
            }
        }
    }
}

/// What an expression reads.
struct Numbers<F> {
    record: Inputs,
    osc: F,
}

impl<F: Fn(OscNumber) -> Option<f64>> Slots for Numbers<F> {
    fn slot(&self, slot: u16) -> f64 {
        match OscNumber::in_slot(slot) {
            Some(number) => (self.osc)(number).filter(|number| number.is_finite()).unwrap_or(0.0),
            None => self.record.slot(slot),
        }
    }
}

/// The parameters, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// `host:port`.
    pub target: String,
    /// The port address.
    pub universe: u16,
    /// The DMX channel.
    pub channel: Light,
    /// Its value.
    pub value: Light,
}

impl Params {
    /// Checks what a mapping says.
    ///
    /// # Errors
    /// A sentence for the person who wrote it.
    pub fn check(&self) -> Result<Checked, String> {
        if self.universe > LAST_UNIVERSE {
            return Err(format!("`universe` is out of range: {}; allowed is 0 to {LAST_UNIVERSE}", self.universe));
        }
        let channel = Light::parse("channel", &self.channel)?;
        let value = Light::parse("value", &self.value)?;
        match (&channel, &value) {
            (Light::Fixed(channel), _) if usize::try_from(*channel).map_or(true, |c| c == 0 || c > CHANNELS) => {
                Err(format!("`channel` is out of range: {channel}; allowed is 1 to {CHANNELS}"))
            }
            (_, Light::Fixed(value)) if u8::try_from(*value).is_err() => {
                Err(format!("`value` is out of range: {value}; allowed is 0 to 255"))
            }
            _ => Ok(Checked { target: with_port(&self.target), universe: self.universe, channel, value }),
        }
    }
}

/// The target with its port. An IPv6 address stands in brackets where a port follows.
fn with_port(target: &str) -> String {
    let has_port = match target.rsplit_once(']') {
        Some((_, rest)) => rest.starts_with(':'),
        None => target.contains(':'),
    };
    if has_port { target.to_owned() } else { format!("{target}:{PORT}") }
}

/// The JSON Schema of [`Params`], which the host shows to people and models.
pub const SCHEMA: &str = r#"{
  "type": "object",
  "additionalProperties": false,
  "required": ["target", "channel"],
  "properties": {
    "target": {
      "description": "Where to send: host, or host:port where it is not 6454. It must be covered by a grant.",
      "type": "string", "minLength": 1
    },
    "universe": {
      "description": "The 15-bit port address: net, sub-net and universe in one number.",
      "type": "integer", "minimum": 0, "maximum": 32767, "default": 0
    },
    "channel": {
      "description": "The DMX channel, 1 to 512: a number, or an expression such as {n}+1, of {n}, {value}, {note}, {cc}, {number} and {channel}.",
      "type": ["integer", "string"], "minimum": 1, "maximum": 512
    },
    "value": {
      "description": "What to set it to, 0 to 255: a number; {unit}, the event's whole range from 0 to 255; or an expression such as {value -> 0..100, exponential}, rounded and cut off at both ends.",
      "type": ["integer", "string"], "minimum": 0, "maximum": 255, "default": "{unit}"
    }
  }
}"#;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const EVENT: Event =
        Event { at: 0, device: 1, kind: 4, channel: 2, number: 74, position: 3, value: 64.0, unit: 0.5 };

    fn checked(text: &str) -> Result<Checked, String> {
        serde_json::from_str::<Params>(text).map_err(|error| error.to_string())?.check()
    }

    #[test]
    fn numbers_are_fixed_or_of_the_event() {
        for (written, expected) in [
            ("{n}", 3),
            ("{n} + 10", 13),
            ("{value}-1", 63),
            ("{cc}", 74),
            ("{channel}+1", 3),
            ("{unit}", 128),
            ("{value -> 100..200}", 150),
        ] {
            let light = Light::parse("value", &Number::Text(written.into())).unwrap();
            assert_eq!(light.number(&EVENT, |_| None), expected, "{written}");
        }
        let of_osc = Light::parse("value", &Number::Text("{arg1} + match1 * 10 + arg2".into())).unwrap();
        let osc = |number| match number {
            OscNumber::Arg(1) => Some(3.0),
            OscNumber::Match(0) => Some(4.0),
            _ => None,
        };
        assert_eq!(of_osc.number(&EVENT, osc), 43);
        assert_eq!(Light::parse("value", &Number::Whole(7)).unwrap().number(&EVENT, |_| None), 7);
    }

    #[test]
    fn a_target_has_a_port() {
        for (written, expected) in [
            ("node", "node:6454"),
            ("10.0.0.2:7000", "10.0.0.2:7000"),
            ("[::1]", "[::1]:6454"),
            ("[::1]:7000", "[::1]:7000"),
        ] {
            assert_eq!(with_port(written), expected);
        }
    }

    #[test]
    fn mistakes_say_what_is_allowed() {
        let wrong = |text: &str| checked(text).unwrap_err();
        assert!(wrong(r#"{"target": "a", "channel": 0}"#).contains("allowed is 1 to 512"));
        assert!(wrong(r#"{"target": "a", "channel": 513}"#).contains("allowed is 1 to 512"));
        assert!(wrong(r#"{"target": "a", "channel": 1, "value": 256}"#).contains("allowed is 0 to 255"));
        assert!(wrong(r#"{"target": "a", "channel": 1, "universe": 32768}"#).contains("0 to 32767"));
        assert!(
            wrong(r#"{"target": "a", "channel": "{unit"}"#).starts_with("`channel` cannot be \"{unit\": column 6: ")
        );
        assert!(wrong(r#"{"target": "a", "channel": 1, "chanel": 2}"#).contains("unknown field `chanel`"));
        assert!(wrong(r#"{"target": "a", "channel": 1.5}"#).contains("a whole number, or a text"));
    }
}
