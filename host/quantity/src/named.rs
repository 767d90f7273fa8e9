//! Numbers that have names: notes, controllers, channels, the buttons and axes of gamepads, the keys of keyboards.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use conductor_names::{channel, controller, gamepad, key, note};
use conductor_stdx::nearest::nearest;

use crate::malformed::{IntegerOrText, Malformed};

/// Numbers without names.
pub const PLAIN: u8 = 0;
/// Notes: `C4` is 60.
pub const NOTE: u8 = 1;
/// Controllers: `modulation` is 1.
pub const CONTROLLER: u8 = 2;
/// Channels: `ch1` is 0.
pub const CHANNEL: u8 = 3;
/// Buttons of gamepads: `south` is 128.
pub const BUTTON: u8 = 4;
/// Axes of gamepads' sticks: `left x` is 128.
pub const STICK: u8 = 5;
/// Analog triggers of gamepads: `left trigger` is 132.
pub const TRIGGER: u8 = 6;
/// Keys of keyboards, and buttons of mice: `f13` is 439.
pub const KEY: u8 = 7;

/// Reads a number from `min` to `max`, written in digits or as one of the `names`.
///
/// # Errors
/// What to write instead.
pub(crate) fn number(text: &str, names: u8, min: u16, max: u16) -> Result<u16, Malformed> {
    let text = text.trim();
    // First of all, since digits are keys, too.
    if names == KEY
        && let Some(key) = key::number(text)
    {
        return Ok(key);
    }
    // `u16::from_str` would take a leading `+`.
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        if names == CHANNEL {
            return Err(Malformed::new(format!(
                "channels count from 1 where they are named: write \"ch{text}\", or the number from 0 without quotes"
            )));
        }
        let number = text.parse().ok().filter(|number| (min..=max).contains(number));
        return number.ok_or_else(|| Malformed::new(format!("{text:?} is not a number from {min} to {max}")));
    }
    let number = match names {
        NOTE => note::number(text),
        CONTROLLER => controller::number(text),
        CHANNEL => channel::number(text),
        BUTTON => match gamepad::button(text) {
            Ok(button) => Some(button),
            Err(gamepad::NoButton::Unknown) => None,
            Err(gamepad::NoButton::Ambiguous(names)) => {
                let names = names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" or ");
                return Err(Malformed::new(format!("{text:?} is another button on each gamepad; write {names}")));
            }
        },
        STICK => gamepad::stick(text),
        TRIGGER => gamepad::trigger(text),
        _ => None,
    };
    number.map(u16::from).filter(|number| (min..=max).contains(number)).ok_or_else(|| {
        let hint = match names {
            CONTROLLER => nearest(text, controller::names()),
            BUTTON => nearest(text, gamepad::button_names()),
            KEY => key::left_of_two(text).map(str::to_owned).or_else(|| nearest(text, key::names())),
            _ => None,
        };
        Malformed::new(match hint {
            Some(hint) => format!("{text:?} is not {}; did you mean {hint:?}?", of(names, min, max)),
            None => format!("{text:?} is not {}", of(names, min, max)),
        })
    })
}

/// What such a number may be, as text.
fn of(names: u8, min: u16, max: u16) -> String {
    match names {
        NOTE => "a note: a number from 0 to 127, or a name from \"C-1\" to \"G9\", with C4 as middle C (60)".into(),
        CONTROLLER => {
            format!(
                "a controller: a number from {min} to {max}, or a name such as \"modulation\", \"volume\" or \"sustain\""
            )
        }
        CHANNEL => "a channel from \"ch1\" to \"ch16\"".into(),
        BUTTON => {
            "a button: a number from 128 to 144, or a name such as \"south\", \"dpad up\", \"xbox a\" or \"cross\""
                .into()
        }
        STICK => "an axis: a number from 128 to 131, or \"left x\", \"left y\", \"right x\" or \"right y\"".into(),
        TRIGGER => "a trigger: 132 or 133, or \"left trigger\" or \"right trigger\"".into(),
        KEY => {
            "a key: a number from 257 to 1023, or a name such as \"f13\", \"a\", \"left ctrl\" or \"mouse left\"".into()
        }
        _ => format!("a number from {min} to {max}"),
    }
}

/// A number from `MIN` to `MAX` that has a name, or may have one.
///
/// In TOML an integer (`60`) or a string (`"C4"`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Single<const MIN: u8, const MAX: u8, const NAMES: u8>(u8);

/// A key of a keyboard, or a button of a mouse: 257 to 1023, or a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyNumber(u16);

/// A note, 0 to 127.
pub type Note = Single<0, 127, NOTE>;
/// A controller, 0 to 127.
pub type Controller = Single<0, 127, CONTROLLER>;
/// A MIDI channel as it is on the wire, 0 to 15; its names count from 1.
pub type Channel = Single<0, 15, CHANNEL>;
/// A gamepad's button, 128 to 144.
pub type Button = Single<128, 144, BUTTON>;
/// An axis of a gamepad's stick, 128 to 131.
pub type Stick = Single<128, 131, STICK>;
/// An analog trigger of a gamepad, 132 or 133.
pub type AnalogTrigger = Single<132, 133, TRIGGER>;

impl<const MIN: u8, const MAX: u8, const NAMES: u8> Single<MIN, MAX, NAMES> {
    /// The number, or `None` if it is out of range.
    pub fn new(number: u8) -> Option<Self> {
        (MIN..=MAX).contains(&number).then_some(Self(number))
    }

    /// The number.
    pub fn get(self) -> u8 {
        self.0
    }

    /// The name of its grammar, among the formats of the configuration.
    const FORMAT: &str = match NAMES {
        NOTE => "note",
        CONTROLLER => "controller",
        CHANNEL => "channel",
        STICK => "stick",
        TRIGGER => "analog-trigger",
        _ => "button",
    };
}

impl<const MIN: u8, const MAX: u8, const NAMES: u8> fmt::Display for Single<MIN, MAX, NAMES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<const MIN: u8, const MAX: u8, const NAMES: u8> FromStr for Single<MIN, MAX, NAMES> {
    type Err = Malformed;

    /// # Errors
    /// Anything but a number in range, or one of the names.
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let number = number(text, NAMES, MIN.into(), MAX.into())?;
        u8::try_from(number).map(Self).map_err(|_| Malformed::new("it is too large"))
    }
}

impl<const MIN: u8, const MAX: u8, const NAMES: u8> Serialize for Single<MIN, MAX, NAMES> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.0)
    }
}

impl<'de, const MIN: u8, const MAX: u8, const NAMES: u8> Deserialize<'de> for Single<MIN, MAX, NAMES> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IntegerOrText {
            expected: &of(NAMES, MIN.into(), MAX.into()),
            from_integer: |number: i64| Self::new(u8::try_from(number).ok()?),
        })
    }
}

impl<const MIN: u8, const MAX: u8, const NAMES: u8> JsonSchema for Single<MIN, MAX, NAMES> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Single{NAMES}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"], "minimum": MIN, "maximum": MAX, "format": Self::FORMAT })
    }
}

impl KeyNumber {
    /// The lowest number and the highest.
    const ENDS: (u16, u16) = (257, 1023);

    /// The key's number, as in events.
    pub fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for KeyNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for KeyNumber {
    type Err = Malformed;

    /// # Errors
    /// Anything but a number in range, or one of the names.
    fn from_str(text: &str) -> Result<Self, Malformed> {
        number(text, KEY, Self::ENDS.0, Self::ENDS.1).map(Self)
    }
}

impl Serialize for KeyNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u16(self.0)
    }
}

impl<'de> Deserialize<'de> for KeyNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IntegerOrText {
            expected: &of(KEY, Self::ENDS.0, Self::ENDS.1),
            from_integer: |number: i64| {
                let number = u16::try_from(number).ok()?;
                (Self::ENDS.0..=Self::ENDS.1).contains(&number).then_some(Self(number))
            },
        })
    }
}

impl JsonSchema for KeyNumber {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "KeyNumber".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"], "minimum": 257, "maximum": 1023, "format": "key-number" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_its_name() {
        assert_eq!("C3".parse::<Note>().map(Note::get), Ok(48));
        assert_eq!("36".parse::<Note>().map(Note::get), Ok(36));
        assert_eq!("mod wheel".parse::<Controller>().map(Controller::get), Ok(1));
        assert_eq!("ch10".parse::<Channel>().map(Channel::get), Ok(9));
        assert_eq!("xbox_a".parse::<Button>().map(Button::get), Ok(128));
        assert_eq!("F13".parse::<KeyNumber>().map(KeyNumber::get), Ok(439));
        assert_eq!("1".parse::<KeyNumber>().map(KeyNumber::get), Ok(258));
        assert_eq!("258".parse::<KeyNumber>().map(KeyNumber::get), Ok(258));
    }

    #[test]
    fn a_mistake_says_what_to_write() {
        let told = |wrong: Result<u16, Malformed>| wrong.expect_err("it is wrong").to_string();
        assert_eq!(
            told(number("H3", NOTE, 0, 127)),
            "\"H3\" is not a note: a number from 0 to 127, or a name from \"C-1\" to \"G9\", with C4 as middle C (60)"
        );
        assert_eq!(
            told(number("10", CHANNEL, 0, 15)),
            "channels count from 1 where they are named: write \"ch10\", or the number from 0 without quotes"
        );
        assert!(told(number("modulaton", CONTROLLER, 0, 127)).ends_with("did you mean \"modulation\"?"));
        assert_eq!(
            told(number("a", BUTTON, 128, 144)),
            "\"a\" is another button on each gamepad; write \"xbox a\" or \"nintendo a\""
        );
        assert_eq!(told(number("C3", PLAIN, 0, 127)), "\"C3\" is not a number from 0 to 127");
        assert!(told(number("ctrl", KEY, 257, 1023)).ends_with("did you mean \"left ctrl\"?"));
        assert_eq!(told(number("256", KEY, 257, 1023)), "\"256\" is not a number from 257 to 1023");
    }
}
