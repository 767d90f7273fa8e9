//! Why a text is no number of its kind, and the reading of what is written as an integer or as a text.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use conductor_expression::Mistake;
use serde::de::{self, Unexpected, Visitor};

/// Why a text is not what it should be; the message says which part of it, and completes
/// "the text is wrong: …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Malformed {
    why: String,
    /// The part of the text that is wrong, in bytes; all of it if there is none.
    pub place: Option<Range<usize>>,
}

impl Malformed {
    /// All of the text is wrong, for this reason.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), place: None }
    }
}

impl From<Mistake> for Malformed {
    fn from(mistake: Mistake) -> Self {
        Self { why: mistake.to_string(), place: Some(mistake.place) }
    }
}

/// Reads a value that is written as an integer or as a text of its own small language.
pub(crate) struct IntegerOrText<'e, F> {
    pub(crate) expected: &'e str,
    pub(crate) from_integer: F,
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
