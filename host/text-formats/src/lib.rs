//! String formats with a grammar of their own: bytes, OSC addresses, destinations, times, names.
//!
//! [`FORMATS`] is the list of all of them. The JSON Schema takes its patterns from it, the checker its
//! parsers, so that an editor, the loader and an error message agree on what a text may be.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

mod hex;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use conductor_net::endpoint::EndpointPattern;
use conductor_net::http_scope::HostPattern;
use conductor_net::senders::Senders;
use conductor_package::FeatureId;
use conductor_package::program::Program;

pub use self::hex::{HexBytes, SysExMessage, SysExPrefix, hex_len};

use conductor_expression::Expression;
use conductor_keyboard::Key;
use conductor_quantity::{
    AnalogTrigger, Button, ButtonRange, Channel, ChannelExpr, CoarseRange, Controller, ControllerExpr, ControllerRange,
    DmxRange, KeyNumber, KeyRange, Malformed, Note, NoteExpr, NoteRange, NumberExpr, NumberRange, Stick, StickRange,
    TriggerRange,
};

/// A named grammar for a string.
#[derive(Debug)]
pub struct Format {
    /// The value of `format` in the schema.
    pub name: &'static str,
    /// An ECMA 262 regular expression. It may let through what `check` refuses, never the reverse.
    pub pattern: &'static str,
    /// What is allowed, as text.
    pub allowed: &'static str,
    /// The parser; the error completes "the text is wrong: …".
    pub check: fn(&str) -> Result<(), Malformed>,
}

/// Every format that the schema uses.
pub const FORMATS: &[Format] = &[
    Format {
        name: "number-range",
        pattern: r"^[^.\x00-\x1f]+(\.\.[^.\x00-\x1f]+)?$",
        allowed: "a range such as \"36..51\" with both ends included",
        check: parses::<NumberRange>,
    },
    Format {
        name: "note-range",
        pattern: r"^[^.\x00-\x1f]+(\.\.[^.\x00-\x1f]+)?$",
        allowed: "a note such as \"C2\", or a range such as \"36..51\" or \"C2..D#3\" with both ends included",
        check: parses::<NoteRange>,
    },
    Format {
        name: "controller-range",
        pattern: r"^[^.\x00-\x1f]+(\.\.[^.\x00-\x1f]+)?$",
        allowed: "a controller such as \"modulation\", or a range such as \"16..23\" with both ends included",
        check: parses::<ControllerRange>,
    },
    Format {
        name: "button-range",
        pattern: r"^[^.\x00-\x1f]+(\.\.[^.\x00-\x1f]+)?$",
        allowed: "a button such as \"south\", or a range such as \"128..131\" with both ends included",
        check: parses::<ButtonRange>,
    },
    Format {
        name: "stick-range",
        pattern: r"^[^.\x00-\x1f]+(\.\.[^.\x00-\x1f]+)?$",
        allowed: "an axis such as \"left x\", or a range such as \"128..129\" with both ends included",
        check: parses::<StickRange>,
    },
    Format {
        name: "trigger-range",
        pattern: r"^[^.\x00-\x1f]+(\.\.[^.\x00-\x1f]+)?$",
        allowed: "a trigger such as \"left trigger\", or a range such as \"132..133\" with both ends included",
        check: parses::<TriggerRange>,
    },
    Format {
        name: "key-range",
        pattern: r"^[^.\x00-\x1f]+(\.\.[^.\x00-\x1f]+)?$",
        allowed: "a key such as \"f13\", or a range such as \"f13..f24\" with both ends included",
        check: parses::<KeyRange>,
    },
    Format {
        name: "dmx-range",
        pattern: r"^[^.\x00-\x1f]+(\.\.[^.\x00-\x1f]+)?$",
        allowed: "a range such as \"1..16\" with both ends included",
        check: parses::<DmxRange>,
    },
    Format {
        name: "coarse-range",
        pattern: r"^[^.\x00-\x1f]+(\.\.[^.\x00-\x1f]+)?$",
        allowed: "a controller such as \"modulation\", or a range such as \"0..31\" with both ends included",
        check: parses::<CoarseRange>,
    },
    Format { name: "note", pattern: r"^[^.\x00-\x1f]+$", allowed: "a note such as \"C4\"", check: parses::<Note> },
    Format {
        name: "controller",
        pattern: r"^[^.\x00-\x1f]+$",
        allowed: "a controller such as \"modulation\"",
        check: parses::<Controller>,
    },
    Format {
        name: "channel",
        pattern: r"^[^.\x00-\x1f]+$",
        allowed: "a channel from \"ch1\" to \"ch16\"",
        check: parses::<Channel>,
    },
    Format {
        name: "button",
        pattern: r"^[^.\x00-\x1f]+$",
        allowed: "a button such as \"south\"",
        check: parses::<Button>,
    },
    Format {
        name: "stick",
        pattern: r"^[^.\x00-\x1f]+$",
        allowed: "an axis such as \"left x\"",
        check: parses::<Stick>,
    },
    Format {
        name: "analog-trigger",
        pattern: r"^[^.\x00-\x1f]+$",
        allowed: "a trigger such as \"left trigger\"",
        check: parses::<AnalogTrigger>,
    },
    Format {
        name: "key-number",
        pattern: r"^[^.\x00-\x1f]+$",
        allowed: "a key such as \"f13\"",
        check: parses::<KeyNumber>,
    },
    Format {
        name: "time-of-day",
        pattern: r"^[0-2][0-9]:[0-5][0-9](:[0-5][0-9])?$",
        allowed: "a time from \"00:00\" to \"24:00\", with seconds if need be: \"22:00:30\"",
        check: parses::<TimeOfDay>,
    },
    Format {
        name: "number-expression",
        pattern: r"^[^\x00-\x08\x0a-\x1f]+$",
        allowed: "an expression such as \"{n}+36\" or \"{value -> 0..64}\"",
        check: parses::<NumberExpr>,
    },
    Format {
        name: "note-expression",
        pattern: r"^[^\x00-\x08\x0a-\x1f]+$",
        allowed: "a note such as \"C4\", or an expression such as \"{n}+36\"",
        check: parses::<NoteExpr>,
    },
    Format {
        name: "controller-expression",
        pattern: r"^[^\x00-\x08\x0a-\x1f]+$",
        allowed: "a controller such as \"modulation\", or an expression such as \"{n}+16\"",
        check: parses::<ControllerExpr>,
    },
    Format {
        name: "channel-expression",
        pattern: r"^[^\x00-\x08\x0a-\x1f]+$",
        allowed: "a channel such as \"ch10\", or an expression such as \"{channel}\"",
        check: parses::<ChannelExpr>,
    },
    Format {
        name: "variable-name",
        pattern: r"^[a-z][a-z0-9_]*$",
        allowed: "a small letter, then small letters, digits and `_`, such as \"gain\"; no word of expressions",
        check: variable_name,
    },
    Format {
        name: "key",
        pattern: r"^([^\x00-\x1f\x7f]|[A-Za-z][A-Za-z0-9_]+)$",
        allowed: "a character such as \"a\", or a name such as \"cmd\", \"ctrl\", \"space\", \"enter\", \"left\", \"f5\", \"play_pause\"",
        check: parses::<Key>,
    },
    Format {
        name: "hex-bytes",
        pattern: r"^\s*[0-9A-Fa-f]{2}(\s*[0-9A-Fa-f]{2})*\s*$",
        allowed: "bytes of two hex digits each, such as \"FF 7F 00\"",
        check: parses::<HexBytes>,
    },
    Format {
        name: "sysex-message",
        pattern: r"^\s*([Ff]0(\s*[0-7][0-9A-Fa-f])*\s*[Ff]7|[Mm][Mm][Cc][ _-].*)\s*$",
        allowed: "hex bytes from F0 to F7 with bytes below 80 between, such as \"F0 7D 01 F7\", or a command such as \"mmc play\"",
        check: parses::<SysExMessage>,
    },
    Format {
        name: "sysex-prefix",
        pattern: r"^\s*(([Ff]0|\?\?)(\s*([0-9A-Fa-f]{2}|\?\?))*|[Mm][Mm][Cc][ _-].*)\s*$",
        allowed: "hex bytes that start with F0, `??` for any byte, such as \"F0 7E ?? 06\", or a command such as \"mmc play\"",
        check: parses::<SysExPrefix>,
    },
    Format {
        name: "osc-address",
        pattern: r"^/[!-~]*$",
        allowed: "`/` and then printable ASCII without space # * , ? [ ] { }",
        check: osc_address,
    },
    Format {
        name: "osc-pattern",
        pattern: r"^/[!-~]*$",
        allowed: "an OSC address in which `?`, `*`, `[a-z]`, `[!x]` and `{a,b}` may stand for others",
        check: osc_pattern,
    },
    Format {
        name: "udp-destination",
        pattern: r"^(\[[^\[\]\s]+\]|[^:\[\]\s]+):([0-9]+|\*)$",
        allowed: "\"host:port\" with a port from 1 to 65535, or \"host:*\" for every port of the host",
        check: udp_destination,
    },
    Format {
        name: "http-host",
        pattern: r"^(\[[^\[\]\s]+\]|[^:\[\]\s]+)(:[0-9]+)?$",
        allowed: "a host, such as \"api.example.com\", with a port where it is not the usual one: \"localhost:8080\"",
        check: http_host,
    },
    Format {
        name: "ip-network",
        pattern: r"^[0-9A-Fa-f.:]+(/[0-9]+)?$",
        allowed: "an IP address, or a network such as \"192.168.1.0/24\"",
        check: parses::<IpNetwork>,
    },
    Format {
        name: "feature-name",
        pattern: r"^[A-Za-z0-9_-]+$",
        allowed: "ASCII letters, digits, `-` and `_`",
        check: feature_name,
    },
    Format {
        name: "action-name",
        pattern: r"^([A-Za-z0-9_-]+:)?[A-Za-z][A-Za-z0-9_]*$",
        allowed: "`Action` or `feature:Action`",
        check: action_name,
    },
    Format {
        name: "component-path",
        pattern: r"^.+\.wasm$",
        allowed: "the path of a .wasm file",
        check: component_path,
    },
    Format {
        name: "program",
        pattern: r"^[^\x00-\x1f\x7f]+$",
        allowed: "a command with the program's whole path, such as \"/usr/bin/llm -m small\"; `network`, `read=/A/PATH` and `NAME=value` may stand in front of it",
        check: program,
    },
    Format {
        name: "feature-id",
        pattern: r"^(builtin|project|plugin:[a-z0-9][a-z0-9-]*):[a-z0-9][a-z0-9-]*$",
        allowed: "a whole id such as \"builtin:osc-output\", \"project:lamp\" or \"plugin:PUBLISHER:lamp\"",
        check: feature_id,
    },
    Format {
        name: "digest",
        pattern: r"^sha256:[0-9a-f]{64}$",
        allowed: "`sha256:` and 64 digits of 0-9 and a-f, as `conductor feature inspect` prints them",
        check: digest,
    },
];

/// The format called `name`; `None` if the schema uses none of this name.
pub fn format(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

fn variable_name(text: &str) -> Result<(), Malformed> {
    let mut of_expression = Expression::parse(text, conductor_expression::Names::EventAndVariables).into_iter();
    let is_name = of_expression.all(|parsed| parsed.variables().any(|(name, _)| name == text));
    let plain = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if text.is_empty() || !plain || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err(Malformed::new("it is not a small letter, then small letters, digits and `_`"));
    }
    if ["and", "or", "not", "from"].contains(&text) || !is_name {
        return Err(Malformed::new("expressions have this name for something else"));
    }
    Ok(())
}

fn parses<T: FromStr<Err = Malformed>>(text: &str) -> Result<(), Malformed> {
    text.parse::<T>().map(drop)
}

/// Gives a text type its string form in serde and its format in the schema.
macro_rules! written_as_text {
    ($type:ident, $format:literal) => {
        impl TryFrom<String> for $type {
            type Error = Malformed;

            fn try_from(text: String) -> Result<Self, Malformed> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.to_string()
            }
        }

        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "format": $format })
            }
        }
    };
}

pub(crate) use written_as_text;

/// A time of day by the local clock, `"22:00"` or `"22:00:30"`, up to `"24:00"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeOfDay(u32);

written_as_text!(TimeOfDay, "time-of-day");

impl TimeOfDay {
    /// The second of the day, 0 to 86 400.
    pub fn second(self) -> u32 {
        self.0
    }
}

impl FromStr for TimeOfDay {
    type Err = Malformed;

    /// # Errors
    /// Anything but two or three numbers of two digits each, joined by `:`, that a clock could show.
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let number = |part: &str, most: u32| -> Result<u32, Malformed> {
            let digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse::<u32>()
                .ok()
                .filter(|&number| digits && number <= most)
                .ok_or_else(|| Malformed::new(format!("{part:?} is not two digits from 00 to {most}")))
        };
        let mut parts = text.split(':');
        let (Some(hours), Some(minutes), seconds, None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Malformed::new("it is not hours and minutes joined by `:`"));
        };
        let second = number(hours, 24)? * 3600 + number(minutes, 59)? * 60 + number(seconds.unwrap_or("00"), 59)?;
        if second > 86_400 {
            return Err(Malformed::new("the day ends at 24:00"));
        }
        Ok(Self(second))
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 3600, self.0 / 60 % 60)?;
        if self.0.is_multiple_of(60) { Ok(()) } else { write!(f, ":{:02}", self.0 % 60) }
    }
}

/// Addresses that may send: one, or a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IpNetwork(Senders);

written_as_text!(IpNetwork, "ip-network");

impl IpNetwork {
    /// The addresses as ports hold them.
    pub fn senders(&self) -> Senders {
        self.0
    }
}

impl FromStr for IpNetwork {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        text.parse().map(Self).map_err(Malformed::new)
    }
}

impl fmt::Display for IpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A host, and one of its ports or all of them: `"host:port"` or `"host:*"`; an IPv6 address stands in brackets:
/// `"[::1]:9000"`.
fn udp_destination(text: &str) -> Result<(), Malformed> {
    let (host, port) = text.rsplit_once(':').ok_or_else(|| Malformed::new("there is no port in it"))?;
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    if bracketed.is_none() && host.contains(':') {
        return Err(Malformed::new("an IPv6 address stands in brackets"));
    }
    let host = bracketed.unwrap_or(host);
    if host.is_empty() || host.contains(|c: char| c.is_whitespace() || "[]".contains(c)) {
        return Err(not_a_host(host));
    }
    let is_port = port == "*" || !port.starts_with('+') && port.parse::<u16>().is_ok_and(|port| port != 0);
    if !is_port {
        return Err(Malformed::new(format!("{port:?} is not a port from 1 to 65535")));
    }
    // Spellings that a resolver might read as another host, such as `127.1`.
    text.parse::<EndpointPattern>().map(drop).map_err(|_| not_a_host(host))
}

/// A host that a person names, with a port where it is not the scheme's own.
fn http_host(text: &str) -> Result<(), Malformed> {
    let host = text.parse().ok().filter(|host: &HostPattern| !host.is_any());
    host.map(drop).ok_or_else(|| not_a_host(text))
}

fn not_a_host(text: &str) -> Malformed {
    Malformed::new(format!("{text:?} is not a host"))
}

fn osc_address(text: &str) -> Result<(), Malformed> {
    osc_characters(text, " #*,?[]{}")
}

fn osc_pattern(text: &str) -> Result<(), Malformed> {
    osc_characters(text, " #")?;
    // A class or a list ends before the next one starts and before the next part of the address.
    let mut open = None;
    for c in text.chars() {
        match (open, c) {
            (None, '[' | '{') => open = Some(c),
            (Some('['), ']') | (Some('{'), '}') => open = None,
            (None, ']' | '}') => return Err(Malformed::new(format!("`{c}` closes nothing"))),
            (None, ',') => return Err(Malformed::new("`,` stands outside `{…}`")),
            (Some(bracket), '/' | '[' | '{' | ']' | '}') => return Err(not_closed(bracket)),
            _ => {}
        }
    }
    open.map_or(Ok(()), |bracket| Err(not_closed(bracket)))
}

fn not_closed(bracket: char) -> Malformed {
    Malformed::new(format!("`{bracket}` is not closed"))
}

fn osc_characters(text: &str, refused: &str) -> Result<(), Malformed> {
    if !text.starts_with('/') {
        return Err(Malformed::new("it does not start with `/`"));
    }
    match text.chars().find(|&c| !matches!(c, ' '..='~') || refused.contains(c)) {
        Some(c) => Err(Malformed::new(format!("{c:?} is not allowed in it"))),
        None => Ok(()),
    }
}

fn feature_name(text: &str) -> Result<(), Malformed> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if text.is_empty() {
        Err(Malformed::new("it is empty"))
    } else if let Some(c) = text.chars().find(|&c| !allowed(c)) {
        Err(Malformed::new(format!("{c:?} is not allowed in it")))
    } else {
        Ok(())
    }
}

fn action_name(text: &str) -> Result<(), Malformed> {
    let action = match text.split_once(':') {
        Some((feature, action)) => {
            feature_name(feature)?;
            action
        }
        None => text,
    };
    let mut characters = action.chars();
    let sound = characters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_');
    if sound { Ok(()) } else { Err(Malformed::new(format!("{action:?} is not the name of an action"))) }
}

fn component_path(text: &str) -> Result<(), Malformed> {
    match text.strip_suffix(".wasm") {
        Some(stem) if !stem.is_empty() => Ok(()),
        _ => Err(Malformed::new("it does not end with .wasm")),
    }
}

fn program(text: &str) -> Result<(), Malformed> {
    text.parse::<Program>().map(drop).map_err(|error| Malformed::new(error.to_string()))
}

fn feature_id(text: &str) -> Result<(), Malformed> {
    FeatureId::try_from(text.to_owned()).map(drop).map_err(|_| Malformed::new("it is no whole id of a feature"))
}

fn digest(text: &str) -> Result<(), Malformed> {
    let Some(digits) = text.strip_prefix("sha256:") else {
        return Err(Malformed::new("it does not begin with sha256:"));
    };
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    match digits.len() {
        64 if is_hex => Ok(()),
        64 => Err(Malformed::new("a digit of it is not one of 0-9 and a-f")),
        length => Err(Malformed::new(format!("it has {length} digits"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row: a format, a text, and what is wrong with the text (nothing if empty).
    const TEXTS: &[(&str, &str, &str)] = &[
        ("hex-bytes", "FF 7f00", ""),
        ("hex-bytes", " ", "there is no byte in it"),
        ("hex-bytes", "F 7", "\"F\" is not made of two hex digits per byte"),
        ("hex-bytes", "é", "\"é\" is not made of two hex digits per byte"),
        ("hex-bytes", "+1", "\"+1\" is not a byte in hex"),
        ("sysex-message", "F0 7D 01 F7", ""),
        ("sysex-message", "F0F7", ""),
        ("sysex-message", "7D F7", "it does not start with F0"),
        ("sysex-message", "F0 7D", "it does not end with F7"),
        ("sysex-message", "F0 80 F7", "80 is not a data byte"),
        ("sysex-prefix", "F0 7E ?? 06", ""),
        ("sysex-prefix", "7E", "it does not start with F0"),
        ("sysex-prefix", "F0 ?6", "\"?6\" is not a byte in hex"),
        ("osc-address", "/fader/1", ""),
        ("osc-address", "fader", "it does not start with `/`"),
        ("osc-address", "/fader/*", "'*' is not allowed in it"),
        ("osc-address", "/a\u{1b}", "'\\u{1b}' is not allowed in it"),
        ("osc-pattern", "/{fader,knob}/[1-8]/*", ""),
        ("osc-pattern", "/fader/[1", "`[` is not closed"),
        ("osc-pattern", "/{a/b}", "`{` is not closed"),
        ("osc-pattern", "/a]", "`]` closes nothing"),
        ("osc-pattern", "/a,b", "`,` stands outside `{…}`"),
        ("program", "network read=/home/me/.codex /usr/bin/codex exec -", ""),
        ("program", "codex exec -", "\"codex\" is not the whole path of a program"),
        ("program", "/usr/bin/codex '", "a quotation mark is not closed"),
        ("udp-destination", "localhost:9000", ""),
        ("udp-destination", "[::1]:*", ""),
        ("udp-destination", "localhost", "there is no port in it"),
        ("udp-destination", "::1:9000", "an IPv6 address stands in brackets"),
        ("udp-destination", ":9000", "\"\" is not a host"),
        ("udp-destination", "127.1:9000", "\"127.1\" is not a host"),
        ("udp-destination", "a:0", "\"0\" is not a port from 1 to 65535"),
        ("udp-destination", "a:65536", "\"65536\" is not a port from 1 to 65535"),
        ("feature-name", "osc-output", ""),
        ("feature-name", "a b", "' ' is not allowed in it"),
        ("action-name", "OscSend", ""),
        ("action-name", "osc-output:OscSend", ""),
        ("action-name", "osc-output:", "\"\" is not the name of an action"),
        ("action-name", "1st", "\"1st\" is not the name of an action"),
        ("component-path", "out/x.wasm", ""),
        ("component-path", ".wasm", "it does not end with .wasm"),
        ("feature-id", "builtin:osc-output", ""),
        ("feature-id", "plugin:ann-1:lamp", ""),
        ("feature-id", "osc-output", "it is no whole id of a feature"),
        ("feature-id", "project:-x", "it is no whole id of a feature"),
        ("digest", "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", ""),
        (
            "digest",
            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "it does not begin with sha256:",
        ),
        ("digest", "sha256:0123", "it has 4 digits"),
        (
            "digest",
            "sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
            "a digit of it is not one of 0-9 and a-f",
        ),
    ];

    #[test]
    fn every_format_accepts_and_refuses_with_a_reason() {
        for (name, text, why) in TEXTS {
            let format = format(name).expect(name);
            let found = (format.check)(text).err().map(|error| error.to_string());
            assert_eq!(found.unwrap_or_default(), *why, "{name} {text:?}");
        }
    }

    #[test]
    fn a_text_is_written_as_it_was_read() {
        for text in ["localhost:9000", "[::1]:*", "10.0.0.1:1"] {
            let destination: EndpointPattern = text.parse().expect(text);
            assert_eq!(destination.to_string(), text);
        }
    }
}
