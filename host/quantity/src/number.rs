//! Numbers as a configuration writes them: one number or a range, a pair of bounds, a small expression.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use conductor_expression::Inputs;
use conductor_expression::{Bound, Expression, Mistake, Names, Slots};

use crate::malformed::{IntegerOrText, Malformed};
use crate::named::{self, BUTTON, CHANNEL, CONTROLLER, KEY, NOTE, PLAIN, STICK, TRIGGER};

/// The largest value of a MIDI data byte, and so of a note, a velocity or a controller.
pub const DATA_MAX: u8 = 127;

/// The largest value of a 14-bit MIDI quantity, such as pitch bend.
pub const WIDE_MAX: u16 = 16_383;

/// One number from `MIN` to `MAX` or an unbroken range of them, both ends included.
///
/// In TOML an integer (`36`) or a string (`"36..51"`), in which the `NAMES` of numbers are known (`"C2..D#3"`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span<const MIN: u16, const MAX: u16, const NAMES: u8 = PLAIN> {
    first: u16,
    last: u16,
}

/// MIDI data bytes without names, such as programs, 0 to 127.
pub type NumberRange = Span<0, { DATA_MAX as u16 }>;
/// Notes, 0 to 127.
pub type NoteRange = Span<0, { DATA_MAX as u16 }, NOTE>;
/// Controllers, 0 to 127.
pub type ControllerRange = Span<0, { DATA_MAX as u16 }, CONTROLLER>;
/// A gamepad's buttons, 128 to 144.
pub type ButtonRange = Span<128, 144, BUTTON>;
/// The axes of a gamepad's sticks, 128 to 131.
pub type StickRange = Span<128, 131, STICK>;
/// A gamepad's analog triggers, 132 to 133.
pub type TriggerRange = Span<132, 133, TRIGGER>;
/// Keys of a keyboard, and buttons of a mouse, 257 to 1023.
pub type KeyRange = Span<257, 1023, KEY>;
/// DMX channels, 1 to 512.
pub type DmxRange = Span<1, 512>;
/// Controllers that have a fine part in another one, 0 to 31.
pub type CoarseRange = Span<0, 31, CONTROLLER>;

impl<const MIN: u16, const MAX: u16, const NAMES: u8> Span<MIN, MAX, NAMES> {
    /// The range from `first` to `last`, or `None` if `first` is above `last` or one is out of range.
    pub fn new(first: u16, last: u16) -> Option<Self> {
        (MIN <= first && first <= last && last <= MAX).then_some(Self { first, last })
    }

    /// The lowest number in the range.
    pub fn first(self) -> u16 {
        self.first
    }

    /// The highest number in the range; equal to [`first`](Self::first) for a single number.
    pub fn last(self) -> u16 {
        self.last
    }

    /// The position of `number` in the range, from 0, or `None` if it is outside.
    /// This is what `{n}` means in an action.
    pub fn position(self, number: u16) -> Option<u16> {
        (self.first..=self.last).contains(&number).then(|| number - self.first)
    }

    /// The name of its grammar, among the formats of the configuration.
    const FORMAT: &str = match (NAMES, MAX) {
        (NOTE, _) => "note-range",
        (CONTROLLER, 31) => "coarse-range",
        (CONTROLLER, _) => "controller-range",
        (BUTTON, _) => "button-range",
        (STICK, _) => "stick-range",
        (TRIGGER, _) => "trigger-range",
        (KEY, _) => "key-range",
        (_, 512) => "dmx-range",
        _ => "number-range",
    };
}

impl<const MIN: u16, const MAX: u16, const NAMES: u8> fmt::Display for Span<MIN, MAX, NAMES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { self.first.fmt(f) } else { write!(f, "{}..{}", self.first, self.last) }
    }
}

impl<const MIN: u16, const MAX: u16, const NAMES: u8> FromStr for Span<MIN, MAX, NAMES> {
    type Err = Malformed;

    /// Reads `"a..b"`, or `"a"` alone.
    ///
    /// # Errors
    /// Anything but numbers of the right size or their names, or a range that starts above its end.
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let number = |text| named::number(text, NAMES, MIN, MAX);
        let Some((first, last)) = text.split_once("..") else {
            let single = number(text)?;
            return Ok(Self { first: single, last: single });
        };
        Self::new(number(first)?, number(last)?).ok_or_else(|| Malformed::new("it starts above its end"))
    }
}

impl<const MIN: u16, const MAX: u16, const NAMES: u8> Serialize for Span<MIN, MAX, NAMES> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.first == self.last { serializer.serialize_u16(self.first) } else { serializer.collect_str(self) }
    }
}

impl<'de, const MIN: u16, const MAX: u16, const NAMES: u8> Deserialize<'de> for Span<MIN, MAX, NAMES> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let from_integer = |number: i64| {
            let number = u16::try_from(number).ok()?;
            Self::new(number, number)
        };
        deserializer.deserialize_any(IntegerOrText {
            expected: &format!("a number from {MIN} to {MAX}, or a range such as \"{MIN}..{MAX}\""),
            from_integer,
        })
    }
}

impl<const MIN: u16, const MAX: u16, const NAMES: u8> JsonSchema for Span<MIN, MAX, NAMES> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Self::FORMAT.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["integer", "string"],
            "minimum": MIN,
            "maximum": MAX,
            "format": Self::FORMAT,
        })
    }
}

/// A pair of numbers from 0 to `MAX`, both ends included, the lower one first.
///
/// In TOML an array of two integers: `[1, 100]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounds<const MAX: u16> {
    min: u16,
    max: u16,
}

/// Bounds of a MIDI data byte: each end is 0 to 127.
pub type DataBounds = Bounds<{ DATA_MAX as u16 }>;

/// Bounds of a 14-bit quantity: each end is 0 to 16383.
pub type WideBounds = Bounds<WIDE_MAX>;

/// Bounds of a DMX value: each end is 0 to 255.
pub type DmxBounds = Bounds<255>;

impl<const MAX: u16> Bounds<MAX> {
    /// Everything from 0 to `MAX`: what an absent pair means.
    pub const FULL: Self = Self { min: 0, max: MAX };

    /// The bounds `min` to `max`, or `None` if `min` is above `max` or `max` above `MAX`.
    pub fn new(min: u16, max: u16) -> Option<Self> {
        (min <= max && max <= MAX).then_some(Self { min, max })
    }

    /// The lowest value inside.
    pub fn min(self) -> u16 {
        self.min
    }

    /// The highest value inside.
    pub fn max(self) -> u16 {
        self.max
    }
}

impl<const MAX: u16> Default for Bounds<MAX> {
    fn default() -> Self {
        Self::FULL
    }
}

impl<const MAX: u16> Serialize for Bounds<MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [self.min, self.max].serialize(serializer)
    }
}

impl<'de, const MAX: u16> Deserialize<'de> for Bounds<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let [min, max] = <[u16; 2]>::deserialize(deserializer)?;
        Self::new(min, max)
            .ok_or_else(|| de::Error::custom(format_args!("expected two numbers from 0 to {MAX}, the lower one first")))
    }
}

impl<const MAX: u16> JsonSchema for Bounds<MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Bounds{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "items": { "type": "integer", "minimum": 0, "maximum": MAX },
            "minItems": 2,
            "maxItems": 2,
            "x-ascending": true,
        })
    }
}

/// A number that an action sends: fixed, or calculated from those of the event.
///
/// In TOML an integer (`64`) or a string: an expression such as `"{n}+36"` or `"{value -> 0..64}"`, or one of the
/// `NAMES` of numbers (`"C4"`).
#[derive(Debug, Clone, PartialEq)]
pub enum NumberExpr<const NAMES: u8 = PLAIN> {
    /// The same number for every event.
    Fixed(i32),
    /// Calculated for each event.
    Calculated(Arc<Expression>),
}

/// A number that is a note.
pub type NoteExpr = NumberExpr<NOTE>;
/// A number that is a controller.
pub type ControllerExpr = NumberExpr<CONTROLLER>;
/// A number that is a channel.
pub type ChannelExpr = NumberExpr<CHANNEL>;

impl<const NAMES: u8> NumberExpr<NAMES> {
    /// The number for one event, as it is.
    pub fn number(&self, slots: &impl Slots) -> f64 {
        match self {
            Self::Fixed(number) => (*number).into(),
            Self::Calculated(expression) => expression.eval(slots),
        }
    }

    /// The number for one event, rounded. It may lie outside what the message can carry: the caller clamps.
    pub fn eval(&self, slots: &impl Slots) -> i32 {
        match self {
            Self::Fixed(number) => *number,
            #[expect(clippy::cast_possible_truncation, reason = "`as` saturates, and results are clamped anyway")]
            Self::Calculated(expression) => expression.eval(slots).round() as i32,
        }
    }

    /// What it is calculated by; `None` if it is the same for every event.
    pub fn expression(&self) -> Option<&Expression> {
        match self {
            Self::Fixed(_) => None,
            Self::Calculated(expression) => Some(expression),
        }
    }

    /// Puts variables in the place of their names.
    ///
    /// # Errors
    /// That of [`Expression::bind`].
    pub fn bind(&mut self, find: impl Fn(&str) -> Option<Bound>) -> Result<(), Mistake> {
        match self {
            Self::Fixed(_) => Ok(()),
            Self::Calculated(expression) => Arc::make_mut(expression).bind(find),
        }
    }

    /// The name of its grammar, among the formats of the configuration.
    const FORMAT: &str = match NAMES {
        NOTE => "note-expression",
        CONTROLLER => "controller-expression",
        CHANNEL => "channel-expression",
        _ => "number-expression",
    };
}

impl<const NAMES: u8> Default for NumberExpr<NAMES> {
    fn default() -> Self {
        Self::Fixed(0)
    }
}

impl<const NAMES: u8> fmt::Display for NumberExpr<NAMES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(number) => number.fmt(f),
            Self::Calculated(expression) => expression.fmt(f),
        }
    }
}

impl<const NAMES: u8> FromStr for NumberExpr<NAMES> {
    type Err = Malformed;

    /// Reads the string form: the name of a number, or an expression.
    ///
    /// # Errors
    /// What is wrong with the expression, at its place.
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let is_word = NAMES != PLAIN && !text.contains(|c: char| "{}()+*/".contains(c));
        let most = match NAMES {
            PLAIN => WIDE_MAX,
            CHANNEL => 15,
            _ => DATA_MAX.into(),
        };
        match named::number(text, NAMES, 0, most) {
            Ok(number) => Ok(Self::Fixed(number.into())),
            // A channel in digits could be meant either way.
            Err(why) if NAMES == CHANNEL && text.trim().parse::<u16>().is_ok() => Err(why),
            Err(why) => match Expression::parse(text, Names::EventAndVariables) {
                // One word is a name of such a number, rather than that of a variable, which is `{written so}` here.
                Ok(expression) if is_word && expression.variables().next().is_some() => Err(why),
                Err(_) if is_word => Err(why),
                Ok(expression) => Ok(Self::Calculated(Arc::new(expression))),
                Err(mistake) => Err(mistake.into()),
            },
        }
    }
}

impl<const NAMES: u8> Serialize for NumberExpr<NAMES> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(number) => serializer.serialize_i32(*number),
            Self::Calculated(_) => serializer.collect_str(self),
        }
    }
}

impl<'de, const NAMES: u8> Deserialize<'de> for NumberExpr<NAMES> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let from_integer = |number: i64| i32::try_from(number).ok().map(Self::Fixed);
        deserializer.deserialize_any(IntegerOrText {
            expected: "an integer, or an expression such as \"{n}+36\"",
            from_integer,
        })
    }
}

impl<const NAMES: u8> JsonSchema for NumberExpr<NAMES> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Self::FORMAT.into()
    }

    /// Has no bounds of its own: each field that holds one says what a plain number may be.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"], "format": Self::FORMAT })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_knows_positions() {
        let range: NumberRange = "36..51".parse().expect("a range");
        assert_eq!(range.position(36), Some(0));
        assert_eq!(range.position(51), Some(15));
        assert_eq!(range.position(52), None);
        assert_eq!(range.to_string(), "36..51");
    }

    #[test]
    fn the_ends_of_a_range_may_have_names() {
        let range = |first, last| NoteRange::new(first, last).expect("a range");
        assert_eq!("C2..D#3".parse(), Ok(range(36, 51)));
        assert_eq!("Bb-1".parse(), Ok(range(10, 10)));
        assert_eq!("36".parse(), Ok(range(36, 36)));
        assert_eq!("volume".parse::<ControllerRange>().map(ControllerRange::first), Ok(7));
        assert_eq!("dpad up..dpad right".parse::<ButtonRange>().map(|range| range.to_string()), Ok("132..135".into()));
    }

    #[test]
    fn a_range_says_what_is_wrong_with_it() {
        for (text, why) in [
            ("C3", "\"C3\" is not a number from 0 to 127"),
            ("36..", "\"\" is not a number from 0 to 127"),
            ("36..128", "\"128\" is not a number from 0 to 127"),
            ("+1..2", "\"+1\" is not a number from 0 to 127"),
            ("51..36", "it starts above its end"),
        ] {
            let error = text.parse::<NumberRange>().expect_err(text);
            assert_eq!(error.to_string(), why, "{text}");
        }
    }

    #[test]
    fn an_expression_is_read_written_and_evaluated() {
        let inputs = Inputs { position: 2.0, value: 100.0, unit: 0.5, number: 60.0, channel: 9.0 };
        for (text, value) in [
            ("{n}", 2),
            ("{n}+36", 38),
            ("{value} - 101", -1),
            ("{note} / 7", 9),
            ("{value -> 0..63, round}", 32),
            ("C4 + n", 62),
            ("12", 12),
        ] {
            let expr: NumberExpr = text.parse().expect(text);
            assert_eq!(expr.to_string(), text);
            assert_eq!(expr.eval(&inputs), value, "{text}");
        }
        assert_eq!(<NumberExpr>::Fixed(7).eval(&inputs), 7);
        assert_eq!("c4".parse(), Ok(NoteExpr::Fixed(60)));
        assert_eq!("Sustain".parse(), Ok(ControllerExpr::Fixed(64)));
        assert_eq!("ch1".parse(), Ok(ChannelExpr::Fixed(0)));
        assert_eq!("{ch} - 2".parse::<ChannelExpr>().map(|channel| channel.eval(&inputs)), Ok(8));
    }

    #[test]
    fn an_expression_says_what_is_wrong_with_it() {
        for (text, why) in [
            ("", "column 1: the text is over; expected a number or a name"),
            ("{n n}", "column 4: `n` cannot stand here; expected `}`"),
            ("{n}+", "column 5: the text is over; expected a number or a name"),
            ("n -> 0..1", "column 1: say what `n` comes from: `n from 0..127 -> ...`"),
        ] {
            let error = text.parse::<NumberExpr>().expect_err(text);
            assert_eq!(error.to_string(), why, "{text}");
        }
        assert!("H3".parse::<NoteExpr>().expect_err("H3").to_string().starts_with("\"H3\" is not a note"));
        assert!("12".parse::<ChannelExpr>().expect_err("12").to_string().contains("\"ch12\""));
    }
}
