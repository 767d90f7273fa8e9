//! Keys of a keyboard, by the names that people give them.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use conductor_quantity::Malformed;
use conductor_stdx::nearest::nearest;

/// A key: one that writes a character, or one with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Key {
    /// The key that writes this character.
    Char(char),
    /// A key that has a name.
    Named(NamedKey),
}

macro_rules! named_keys {
    ($($key:ident = $name:literal $(| $other:literal)*;)*) => {
        /// A key that writes nothing, or nothing that one sees.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each is the key of that name")]
        pub enum NamedKey {
            $($key,)*
        }

        impl NamedKey {
            /// Every name, with its key; of a key with several names the one to use comes first.
            pub const NAMES: &[(&'static str, Self)] = &[$(($name, Self::$key), $(($other, Self::$key),)*)*];
        }
    };
}

named_keys! {
    Space = "space";
    Enter = "enter" | "return";
    Tab = "tab";
    Escape = "escape" | "esc";
    Backspace = "backspace";
    Delete = "delete" | "del";
    Insert = "insert" | "ins";
    Home = "home";
    End = "end";
    PageUp = "page_up" | "pageup";
    PageDown = "page_down" | "pagedown";
    Up = "up" | "up_arrow";
    Down = "down" | "down_arrow";
    Left = "left" | "left_arrow";
    Right = "right" | "right_arrow";
    Shift = "shift";
    Control = "ctrl" | "control";
    Alt = "alt" | "option" | "opt";
    Meta = "meta" | "cmd" | "command" | "super" | "win";
    CapsLock = "caps_lock" | "capslock";
    NumLock = "num_lock" | "numlock";
    Pause = "pause";
    PrintScreen = "print_screen" | "printscreen";
    PlayPause = "play_pause" | "media_play_pause";
    NextTrack = "next_track" | "media_next";
    PreviousTrack = "previous_track" | "media_previous";
    StopPlaying = "stop" | "media_stop";
    VolumeUp = "volume_up";
    VolumeDown = "volume_down";
    VolumeMute = "volume_mute" | "mute";
    F1 = "f1";
    F2 = "f2";
    F3 = "f3";
    F4 = "f4";
    F5 = "f5";
    F6 = "f6";
    F7 = "f7";
    F8 = "f8";
    F9 = "f9";
    F10 = "f10";
    F11 = "f11";
    F12 = "f12";
    F13 = "f13";
    F14 = "f14";
    F15 = "f15";
    F16 = "f16";
    F17 = "f17";
    F18 = "f18";
    F19 = "f19";
    F20 = "f20";
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Char(character) => write!(f, "{character}"),
            Self::Named(key) => {
                let name = NamedKey::NAMES.iter().find(|(_, named)| named == key).map_or("", |(name, _)| name);
                f.write_str(name)
            }
        }
    }
}

impl FromStr for Key {
    type Err = Malformed;

    /// Parses a single character, or a name in any case.
    ///
    /// # Errors
    /// Anything else.
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(' '), None) => return Ok(Self::Named(NamedKey::Space)),
            (Some(character), None) if !character.is_control() => return Ok(Self::Char(character)),
            _ => {}
        }
        let lower = text.to_lowercase();
        if let Some((_, key)) = NamedKey::NAMES.iter().find(|(name, _)| *name == lower) {
            return Ok(Self::Named(*key));
        }
        let near = nearest(&lower, NamedKey::NAMES.iter().map(|(name, _)| *name));
        Err(Malformed::new(match near {
            Some(near) => format!("no key is called so; did you mean {near:?}?"),
            None => "no key is called so".to_owned(),
        }))
    }
}

impl TryFrom<String> for Key {
    type Error = Malformed;

    fn try_from(text: String) -> Result<Self, Malformed> {
        text.parse()
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.to_string()
    }
}

impl JsonSchema for Key {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Key".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "key" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_names_that_people_give_them() {
        for (text, key) in [
            ("a", Key::Char('a')),
            ("Ä", Key::Char('Ä')),
            ("€", Key::Char('€')),
            (" ", Key::Named(NamedKey::Space)),
            ("cmd", Key::Named(NamedKey::Meta)),
            ("Ctrl", Key::Named(NamedKey::Control)),
            ("F12", Key::Named(NamedKey::F12)),
        ] {
            assert_eq!(text.parse(), Ok(key), "{text}");
        }
        for (name, key) in NamedKey::NAMES {
            assert_eq!(name.parse(), Ok(Key::Named(*key)));
            assert_eq!(Key::Named(*key).to_string().parse(), Ok(Key::Named(*key)));
        }
    }

    #[test]
    fn a_key_that_nobody_knows_is_compared_with_those_there_are() {
        let said = |text: &str| text.parse::<Key>().unwrap_err().to_string();
        assert_eq!(said("spcae"), "no key is called so; did you mean \"space\"?");
        assert_eq!(said("xyzzy-plugh"), "no key is called so");
        assert_eq!(said(""), "no key is called so");
        assert_eq!(said("\u{7}"), "no key is called so");
    }
}
