//! Numbers as a configuration writes them: one number or a range, a pair of bounds, a small expression.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The largest value of a MIDI data byte, and so of a note, a velocity or a controller.
pub const DATA_MAX: u8 = 127;

/// The largest value of a 14-bit MIDI quantity, such as pitch bend.
pub const WIDE_MAX: u16 = 16_383;

/// Why a text is not what it should be; the message says which part of it, and completes
/// "the text is wrong: …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub(super) String);

impl Malformed {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// One number from `MIN` to `MAX` or an unbroken range of them, both ends included.
///
/// In TOML an integer (`36`) or a string (`"36..51"`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span<const MIN: u16, const MAX: u16> {
    first: u16,
    last: u16,
}

/// MIDI data bytes: notes, controllers or programs, 0 to 127.
pub type NumberRange = Span<0, { DATA_MAX as u16 }>;
/// A gamepad's buttons, 128 to 144.
pub type ButtonRange = Span<128, 144>;
/// The axes of a gamepad's sticks, 128 to 131.
pub type StickRange = Span<128, 131>;
/// A gamepad's analog triggers, 132 to 133.
pub type TriggerRange = Span<132, 133>;
/// DMX channels, 1 to 512.
pub type DmxRange = Span<1, 512>;
/// Controllers that have a fine part in another one, 0 to 31.
pub type CoarseRange = Span<0, 31>;

impl<const MIN: u16, const MAX: u16> Span<MIN, MAX> {
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
    const FORMAT: &str = match (MIN, MAX) {
        (128, 144) => "button-range",
        (128, 131) => "stick-range",
        (132, 133) => "trigger-range",
        (1, 512) => "dmx-range",
        (0, 31) => "coarse-range",
        _ => "number-range",
    };
}

impl<const MIN: u16, const MAX: u16> fmt::Display for Span<MIN, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { self.first.fmt(f) } else { write!(f, "{}..{}", self.first, self.last) }
    }
}

impl<const MIN: u16, const MAX: u16> FromStr for Span<MIN, MAX> {
    type Err = Malformed;

    /// Reads `"a..b"`.
    ///
    /// # Errors
    /// Anything but two numbers of the right size joined by `..`, or a range that starts above its end.
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let Some((first, last)) = text.split_once("..") else {
            return Err(Malformed::new(match plain_number(text, MIN, MAX) {
                Ok(number) => format!("write {number} without quotes; a text is a range"),
                Err(_) => "it is no range; a single number is written without quotes, and names are not known".into(),
            }));
        };
        let (first, last) = (plain_number(first, MIN, MAX)?, plain_number(last, MIN, MAX)?);
        Self::new(first, last).ok_or_else(|| Malformed::new("it starts above its end"))
    }
}

fn plain_number(text: &str, min: u16, max: u16) -> Result<u16, Malformed> {
    let text = text.trim();
    // `u16::from_str` would take a leading `+`.
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|number| digits && (min..=max).contains(number))
        .ok_or_else(|| Malformed::new(format!("{text:?} is not a number from {min} to {max}")))
}

impl<const MIN: u16, const MAX: u16> Serialize for Span<MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.first == self.last { serializer.serialize_u16(self.first) } else { serializer.collect_str(self) }
    }
}

impl<'de, const MIN: u16, const MAX: u16> Deserialize<'de> for Span<MIN, MAX> {
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

impl<const MIN: u16, const MAX: u16> JsonSchema for Span<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Span{MIN}To{MAX}").into()
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

/// What a [`NumberExpr`] can refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variable {
    /// `{n}`: the position in the trigger's number range, counted from 0.
    Position,
    /// `{value}`: the value of the event: a velocity, a controller's value, a pressure, a bend.
    Value,
    /// `{note}`: the note number of the event, 0 to 127.
    Note,
    /// `{channel}`: the MIDI channel of the event, 0 to 15.
    Channel,
}

impl Variable {
    const ALL: [Self; 4] = [Self::Position, Self::Value, Self::Note, Self::Channel];

    /// As it is written, braces included.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Position => "{n}",
            Self::Value => "{value}",
            Self::Note => "{note}",
            Self::Channel => "{channel}",
        }
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The values that [`NumberExpr::eval`] puts in place of the variables, all 0 by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Inputs {
    /// Stands for `{n}`.
    pub position: i32,
    /// Stands for `{value}`.
    pub value: i32,
    /// Stands for `{note}`.
    pub note: i32,
    /// Stands for `{channel}`.
    pub channel: i32,
}

/// A number that an action sends: fixed, or taken from the event and shifted.
///
/// In TOML an integer (`64`) or a string: `"{n}"`, `"{value}"`, `"{note}"` or `"{channel}"`, optionally
/// followed by `+k` or `-k` with `k` from 0 to 16383 (`"{n}+36"`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NumberExpr {
    /// The same number for every event.
    Fixed(i32),
    /// A value of the event plus an offset.
    Shifted {
        /// What the event provides.
        variable: Variable,
        /// What is added to it, -16383 to 16383.
        offset: i32,
    },
}

impl NumberExpr {
    /// The number for one event. It may lie outside what the message can carry: the caller clamps.
    pub fn eval(self, inputs: &Inputs) -> i32 {
        match self {
            Self::Fixed(number) => number,
            Self::Shifted { variable, offset } => {
                let value = match variable {
                    Variable::Position => inputs.position,
                    Variable::Value => inputs.value,
                    Variable::Note => inputs.note,
                    Variable::Channel => inputs.channel,
                };
                value.saturating_add(offset)
            }
        }
    }
}

impl Default for NumberExpr {
    fn default() -> Self {
        Self::Fixed(0)
    }
}

impl fmt::Display for NumberExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(number) => number.fmt(f),
            Self::Shifted { variable, offset: 0 } => variable.fmt(f),
            Self::Shifted { variable, offset } => write!(f, "{variable}{offset:+}"),
        }
    }
}

impl FromStr for NumberExpr {
    type Err = Malformed;

    /// Reads the string form, such as `"{n}+36"`; spaces around the sign are allowed.
    ///
    /// # Errors
    /// Anything that does not start with one of the variables, or whose offset is not a number up to 16383.
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let text = text.trim();
        let (variable, rest) = Variable::ALL
            .into_iter()
            .find_map(|variable| {
                let rest = text.strip_prefix(variable.as_str())?;
                Some((variable, rest.trim_start()))
            })
            .ok_or_else(|| Malformed::new("it does not start with one of the variables"))?;
        let offset = if rest.is_empty() {
            0
        } else if let Some(digits) = rest.strip_prefix('+') {
            offset(digits)?
        } else if let Some(digits) = rest.strip_prefix('-') {
            -offset(digits)?
        } else {
            return Err(Malformed::new(format!("{rest:?} does not start with + or -")));
        };
        Ok(Self::Shifted { variable, offset })
    }
}

fn offset(digits: &str) -> Result<i32, Malformed> {
    digits
        .trim_start()
        .parse::<u16>()
        .ok()
        .filter(|&offset| offset <= WIDE_MAX && !digits.contains('+'))
        .map(i32::from)
        .ok_or_else(|| Malformed::new(format!("{digits:?} is not a number up to {WIDE_MAX}")))
}

impl Serialize for NumberExpr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(number) => serializer.serialize_i32(*number),
            Self::Shifted { .. } => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for NumberExpr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let from_integer = |number: i64| i32::try_from(number).ok().map(NumberExpr::Fixed);
        deserializer.deserialize_any(IntegerOrText {
            expected: "an integer, or an expression such as \"{n}+36\"",
            from_integer,
        })
    }
}

impl JsonSchema for NumberExpr {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "NumberExpr".into()
    }

    /// Has no bounds of its own: each field that holds one says what a plain number may be.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"], "format": "number-expression" })
    }
}

/// Reads a value that is written as an integer or as a text of its own small language.
struct IntegerOrText<'e, F> {
    expected: &'e str,
    from_integer: F,
}

impl<T, F> Visitor<'_> for IntegerOrText<'_, F>
where
    T: FromStr<Err = Malformed>,
    F: Fn(i64) -> Option<T>,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        (self.from_integer)(number).ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        i64::try_from(number)
            .ok()
            .and_then(&self.from_integer)
            .ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
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
    fn a_range_says_what_is_wrong_with_it() {
        for (text, why) in [
            ("36", "write 36 without quotes; a text is a range"),
            ("C3", "it is no range; a single number is written without quotes, and names are not known"),
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
        let inputs = Inputs { position: 2, value: 100, note: 60, channel: 9 };
        for (text, written, value) in [
            ("{n}", "{n}", 2),
            ("{n}+36", "{n}+36", 38),
            ("{value} - 101", "{value}-101", -1),
            ("{note}+0", "{note}", 60),
            ("{channel}", "{channel}", 9),
        ] {
            let expr: NumberExpr = text.parse().expect(text);
            assert_eq!(expr.to_string(), written);
            assert_eq!(expr.eval(&inputs), value);
        }
        assert_eq!(NumberExpr::Fixed(7).eval(&inputs), 7);
    }

    #[test]
    fn an_expression_says_what_is_wrong_with_it() {
        for (text, why) in [
            ("", "it does not start with one of the variables"),
            ("12", "it does not start with one of the variables"),
            ("{m}", "it does not start with one of the variables"),
            ("{n}*2", "\"*2\" does not start with + or -"),
            ("{n}+", "\"\" is not a number up to 16383"),
            ("{n}++1", "\"+1\" is not a number up to 16383"),
            ("{n}-99999", "\"99999\" is not a number up to 16383"),
        ] {
            let error = text.parse::<NumberExpr>().expect_err(text);
            assert_eq!(error.to_string(), why, "{text}");
        }
    }
}
