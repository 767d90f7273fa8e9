//! Bytes that are written as hex digits: any, whole system exclusive messages, and the beginnings of such messages.

use std::fmt;
use std::str::FromStr;

use conductor_names::machine_control;
use serde::{Deserialize, Serialize};

use super::{Malformed, written_as_text};

/// At least one byte of any value, written as hex: `"FF 7F 00"`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HexBytes(Vec<u8>);

written_as_text!(HexBytes, "hex-bytes");

impl HexBytes {
    /// The bytes, at least one.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl FromStr for HexBytes {
    type Err = Malformed;

    /// # Errors
    /// No byte at all, or anything that is not two hex digits per byte.
    fn from_str(text: &str) -> Result<Self, Malformed> {
        hex_pairs(text)?.map(hex_byte).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for HexBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        spaced(f, &self.0, |f, byte| write!(f, "{byte:02X}"))
    }
}

/// One whole SysEx message, `F0` and `F7` included, written as hex.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SysExMessage(HexBytes);

written_as_text!(SysExMessage, "sysex-message");

impl SysExMessage {
    /// The message as it goes over the wire, from `F0` to `F7`.
    pub fn as_slice(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl FromStr for SysExMessage {
    type Err = Malformed;

    /// # Errors
    /// As [`HexBytes`]; a message that does not run from `F0` to `F7`, or has a byte of 80 or more inside.
    fn from_str(text: &str) -> Result<Self, Malformed> {
        if let Some(message) = machine_control(text)? {
            return Ok(Self(HexBytes(message.to_vec())));
        }
        let bytes: HexBytes = text.parse()?;
        match bytes.as_slice() {
            [0xF0, data @ .., 0xF7] => match data.iter().find(|&&byte| byte >= 0x80) {
                Some(byte) => Err(Malformed::new(format!("{byte:02X} is not a data byte"))),
                None => Ok(Self(bytes)),
            },
            [0xF0, ..] => Err(Malformed::new("it does not end with F7")),
            _ => Err(Malformed::new("it does not start with F0")),
        }
    }
}

impl fmt::Display for SysExMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How SysEx messages begin, `F0` included; `??` stands for any byte: `"F0 7E ?? 06"`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SysExPrefix(Vec<Option<u8>>);

written_as_text!(SysExPrefix, "sysex-prefix");

impl SysExPrefix {
    /// The bytes from `F0` on, at least one; `None` stands for any byte.
    pub fn as_slice(&self) -> &[Option<u8>] {
        &self.0
    }
}

impl FromStr for SysExPrefix {
    type Err = Malformed;

    /// # Errors
    /// As [`HexBytes`]; a first byte that is neither `F0` nor `??`.
    fn from_str(text: &str) -> Result<Self, Malformed> {
        if let Some(message) = machine_control(text)? {
            // Byte 2 is the device that it is for, 7F for all of them: one that is for any is meant.
            let bytes = message.iter().enumerate().map(|(at, byte)| (at != 2).then_some(*byte));
            return Ok(Self(bytes.collect()));
        }
        let bytes = hex_pairs(text)?
            .map(|pair| match pair {
                "??" => Ok(None),
                pair => hex_byte(pair).map(Some),
            })
            .collect::<Result<Vec<_>, _>>()?;
        match bytes.first() {
            Some(None | Some(0xF0)) => Ok(Self(bytes)),
            // It would never match: every SysEx message starts with this byte.
            _ => Err(Malformed::new("it does not start with F0")),
        }
    }
}

impl fmt::Display for SysExPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        spaced(f, &self.0, |f, byte| match byte {
            Some(byte) => write!(f, "{byte:02X}"),
            None => f.write_str("??"),
        })
    }
}

/// How many bytes a hex text writes, whether or not each of them is a valid one.
pub fn hex_len(text: &str) -> usize {
    if let Ok(Some(message)) = machine_control(text) {
        return message.len();
    }
    text.split_whitespace().map(|word| word.len() / 2).sum()
}

/// The message of a command of machine control; `None` if the text is none.
fn machine_control(text: &str) -> Result<Option<[u8; 6]>, Malformed> {
    let message = machine_control::message(text);
    if message.is_none() && text.trim_start().get(..3).is_some_and(|word| word.eq_ignore_ascii_case("mmc")) {
        let commands = machine_control::commands().collect::<Vec<_>>().join(", ");
        return Err(Malformed::new(format!("there is no such command of machine control; there are {commands}")));
    }
    Ok(message)
}

/// The two-character pieces of a hex text; whitespace may stand between pieces, never inside one.
fn hex_pairs(text: &str) -> Result<impl Iterator<Item = &str>, Malformed> {
    if text.trim().is_empty() {
        return Err(Malformed::new("there is no byte in it"));
    }
    for word in text.split_whitespace() {
        // Also what makes it sound to cut the word at every second byte.
        if !word.is_ascii() || !word.len().is_multiple_of(2) {
            let why = format!("{word:?} is not made of two hex digits per byte");
            return Err(Malformed::new(why));
        }
    }
    Ok(text.split_whitespace().flat_map(|word| (0..word.len()).step_by(2).map(|at| &word[at..at + 2])))
}

fn hex_byte(pair: &str) -> Result<u8, Malformed> {
    u8::from_str_radix(pair, 16)
        .ok()
        .filter(|_| pair.bytes().all(|digit| digit.is_ascii_hexdigit()))
        .ok_or_else(|| Malformed::new(format!("{pair:?} is not a byte in hex")))
}

fn spaced<T>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    write: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            f.write_str(" ")?;
        }
        write(f, item)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_as_it_was_read() {
        let prefix: SysExPrefix = "f07E ??06".parse().expect("a prefix");
        assert_eq!(prefix.to_string(), "F0 7E ?? 06");
        assert_eq!(hex_len("f07E ??06"), 4);
    }
}
