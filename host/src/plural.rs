//! Numbers of things, as sentences have them.

/// `1 rule`, `2 rules`: a count and a noun whose plural ends in s.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
