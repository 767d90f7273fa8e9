//! Patterns of SysEx messages: how one begins, byte by byte or half byte by half byte.

use std::str::FromStr;

/// How a system exclusive message begins: its first bytes from `F0` on, each with a mask of the bits
/// that count.
///
/// Written as hexadecimal bytes with `?` for a half byte that does not matter:
///
/// ```
/// # use conductor_message_pattern::SysExPattern;
/// // "Identity reply" from any device, Universal Non-Realtime, MIDI 1.0 specification.
/// let reply: SysExPattern = "F0 7E ?? 06 02".parse()?;
/// assert!(reply.matches(&[0xF0, 0x7E, 0x10, 0x06, 0x02, 0x41, 0xF7]));
/// # Ok::<(), conductor_message_pattern::SysExPatternError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SysExPattern(Box<[(u8, u8)]>);

impl SysExPattern {
    /// A pattern of `(byte, mask)` pairs, the first for `F0`. Checked when rules are compiled.
    pub fn new(bytes: impl Into<Box<[(u8, u8)]>>) -> Self {
        Self(bytes.into())
    }

    /// The `(byte, mask)` pairs.
    pub fn bytes(&self) -> &[(u8, u8)] {
        &self.0
    }

    /// Whether `message` (from `F0` on) begins like this.
    pub fn matches(&self, message: &[u8]) -> bool {
        message.len() >= self.0.len()
            && self.0.iter().zip(message).all(|(&(byte, mask), &found)| found & mask == byte & mask)
    }

    /// Checks what [`matches`](Self::matches) takes for granted: that some message could ever match.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), SysExPatternError> {
        let Some((&first, rest)) = self.0.split_first() else {
            return Err(SysExPatternError::Empty);
        };
        if first != (0xF0, 0xFF) {
            return Err(SysExPatternError::NoStart);
        }
        for (index, &(byte, mask)) in rest.iter().enumerate() {
            let is_end = byte == 0xF7 && mask == 0xFF && index + 1 == rest.len();
            if byte & mask > 0x7F && !is_end {
                return Err(SysExPatternError::NotData { byte, index: index + 1 });
            }
        }
        Ok(())
    }

    /// The byte after `F0`, when the pattern fixes it.
    pub fn manufacturer(&self) -> Option<u8> {
        match self.0.get(1) {
            Some(&(byte, 0xFF)) if byte <= 0x7F => Some(byte),
            _ => None,
        }
    }
}

impl FromStr for SysExPattern {
    type Err = SysExPatternError;

    fn from_str(text: &str) -> Result<Self, SysExPatternError> {
        let half = |c: char| match c {
            '?' => Some((0, 0)),
            c => c.to_digit(16).map(|digit| (digit as u8, 0xF)),
        };
        let byte = |word: &str| {
            let mut chars = word.chars();
            let (high, low, None) = (half(chars.next()?)?, half(chars.next()?)?, chars.next()) else {
                return None;
            };
            Some((high.0 << 4 | low.0, high.1 << 4 | low.1))
        };
        let bytes = text
            .split_whitespace()
            .map(|word| byte(word).ok_or_else(|| SysExPatternError::NotAByte(word.to_owned())))
            .collect::<Result<Vec<_>, _>>()?;
        let pattern = Self::new(bytes);
        pattern.check()?;
        Ok(pattern)
    }
}

/// What is wrong with a SysEx pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SysExPatternError {
    /// There are no bytes.
    #[error("a SysEx pattern needs at least the byte F0")]
    Empty,
    /// It does not begin with `F0`.
    #[error("a SysEx pattern begins with F0, and all of that byte counts")]
    NoStart,
    /// A byte inside a SysEx message is 00 to 7F; only the last may be `F7`.
    #[error("byte {index}, {byte:02X}, can not be inside a SysEx message: write 00 to 7F, or F7 last")]
    NotData {
        /// The byte.
        byte: u8,
        /// Its place, from 0.
        index: usize,
    },
    /// A word that is not two hexadecimal digits.
    #[error("{0:?} is not a byte: write two hexadecimal digits, with ? for a digit that may be any")]
    NotAByte(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysex_patterns_are_read_and_checked() {
        let read = |text: &str| text.parse::<SysExPattern>();
        assert_eq!(read("f0 4?"), Ok(SysExPattern::new([(0xF0, 0xFF), (0x40, 0xF0)])));
        assert_eq!(read(""), Err(SysExPatternError::Empty));
        assert_eq!(read("7E"), Err(SysExPatternError::NoStart));
        assert_eq!(read("F?"), Err(SysExPatternError::NoStart));
        assert_eq!(read("F0 7E7"), Err(SysExPatternError::NotAByte("7E7".into())));
        assert_eq!(read("F0 F7 01"), Err(SysExPatternError::NotData { byte: 0xF7, index: 1 }));
        assert!(read("F0 7E F7").is_ok());
    }

    #[test]
    fn a_prefix_longer_than_the_message_does_not_match() {
        let pattern: SysExPattern = "F0 7E ?? 06".parse().unwrap();
        assert!(!pattern.matches(&[0xF0, 0x7E]));
    }
}
