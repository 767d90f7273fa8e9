//! OSC 1.0 messages, as the engine has them.
//!
//! Types are those of "The Open Sound Control 1.0 Specification" (opensoundcontrol.org). Reading and writing packets is
//! the port's business, not the engine's.

use std::sync::Arc;

use conductor_message_pattern::OscPattern;

/// One OSC message: an address and its arguments.
///
/// The address may be an address pattern ("OSC Message Dispatching and Pattern Matching" in the
/// specification): then the message is for every address that the pattern [reaches](Self::reaches).
#[derive(Clone, Debug, PartialEq)]
pub struct OscMessage {
    /// Starts with `/`. It comes from outside: the engine compares it and never trusts its shape.
    address: Arc<str>,
    /// The arguments, in the order sent.
    args: Vec<OscArg>,
    /// The address, compiled, if it is a pattern.
    pattern: Option<Arc<OscPattern>>,
}

impl OscMessage {
    /// Bytes that the address of a message may have to be dispatched as a pattern.
    pub const MAX_PATTERN: usize = 255;
    /// Wildcards (`?`, `*`, `[...]`, `{...}`) that the address of a message may have to be dispatched as a
    /// pattern. With [`MAX_PATTERN`](Self::MAX_PATTERN) it bounds what one message costs each rule that has
    /// to be compared.
    pub const MAX_WILDCARDS: usize = 16;

    /// A message. An address with wildcards that is no pattern, or beyond the limits, stands for nothing but
    /// its own text. Compiles the pattern, so this is nothing for the event path.
    pub fn new(address: impl Into<Arc<str>>, args: Vec<OscArg>) -> Self {
        let address = address.into();
        let may_be = address.len() <= Self::MAX_PATTERN && address.contains(['?', '*', '[', '{']);
        let pattern = may_be.then(|| OscPattern::parse(&address).ok()).flatten();
        let pattern = pattern.filter(|pattern| pattern.wildcards() <= Self::MAX_WILDCARDS).map(Arc::new);
        Self { address, args, pattern }
    }

    /// The address as it was sent.
    #[inline]
    pub fn address(&self) -> &Arc<str> {
        &self.address
    }

    /// The arguments, in the order sent.
    #[inline]
    pub fn args(&self) -> &[OscArg] {
        &self.args
    }

    /// Whether the address is a pattern, which may reach several addresses.
    pub fn is_pattern(&self) -> bool {
        self.pattern.is_some()
    }

    /// Whether the message is for this address: it is the message's own, or the message's pattern matches it.
    /// Allocates nothing; see [`OscPattern`] for what it costs.
    pub fn reaches(&self, address: &str) -> bool {
        *self.address == *address || self.pattern.as_ref().is_some_and(|pattern| pattern.matches(address))
    }
}

/// One OSC argument. The letter is its type tag.
#[derive(Clone, Debug, PartialEq)]
pub enum OscArg {
    /// `i`
    Int(i32),
    /// `f`
    Float(f32),
    /// `h`
    Long(i64),
    /// `d`
    Double(f64),
    /// `s` (and `S`, symbol)
    String(String),
    /// `b`
    Blob(Vec<u8>),
    /// `t`: an NTP time stamp.
    Time {
        /// Seconds since 1900-01-01.
        seconds: u32,
        /// 2^-32 seconds.
        fractional: u32,
    },
    /// `c`
    Char(char),
    /// `r`: red, green, blue, alpha.
    Color([u8; 4]),
    /// `m`: port, status, first and second data byte.
    Midi([u8; 4]),
    /// `T` or `F`
    Bool(bool),
    /// `N`
    Nil,
    /// `I`, "infinitum" or "impulse": a bang without a value.
    Inf,
    /// `[` … `]`
    Array(Vec<OscArg>),
}

impl OscArg {
    /// The argument as a number: integers and floats as they are, `true` 1, `false` 0, else none.
    /// A 64-bit integer beyond 2^53 is rounded.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::Int(value) => Some(value.into()),
            Self::Float(value) => Some(value.into()),
            Self::Long(value) => Some(value as f64),
            Self::Double(value) => Some(value),
            Self::Bool(value) => Some(value.into()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // "OSC Message Dispatching and Pattern Matching" in the specification.
    #[test]
    fn the_address_of_a_message_may_be_a_pattern() {
        let sent = |address: &str| OscMessage::new(address, Vec::new());
        assert!(sent("/mixer/*/mute").reaches("/mixer/1/mute"));
        assert!(
            sent("/mixer/{1,2}/mute").reaches("/mixer/2/mute") && !sent("/mixer/{1,2}/mute").reaches("/mixer/3/mute")
        );
        assert!(!sent("/mixer/*").reaches("/mixer/1/mute"), "nothing matches across a slash");
        assert!(sent("/go").reaches("/go") && !sent("/go").is_pattern());
        // What looks like a pattern and is none stands for its text.
        for odd in ["/a[", "/a{b", "/a b*", "x*", "*"] {
            assert!(!sent(odd).is_pattern() && sent(odd).reaches(odd) && !sent(odd).reaches("/a"), "{odd}");
        }
    }

    #[test]
    fn a_pattern_that_would_cost_too_much_is_dispatched_as_text() {
        let sent = |address: String| OscMessage::new(address, Vec::new());
        let wildcards = |count: usize| format!("/{}", "*a".repeat(count));
        assert!(sent(wildcards(OscMessage::MAX_WILDCARDS)).is_pattern());
        assert!(!sent(wildcards(OscMessage::MAX_WILDCARDS + 1)).is_pattern());
        assert!(!sent(format!("/{}", "/*".repeat(17))).is_pattern(), "over all its parts");
        let long = |length: usize| format!("/*{}", "a".repeat(length - 2));
        assert!(sent(long(OscMessage::MAX_PATTERN)).is_pattern());
        assert!(!sent(long(OscMessage::MAX_PATTERN + 1)).is_pattern());
    }
}
