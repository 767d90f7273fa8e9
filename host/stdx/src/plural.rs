//! Counts with singular or plural nouns, for messages.

/// `1 rule`, `2 rules`: a count and a noun whose plural ends in s.
pub fn plural(count: usize, noun: &str) -> String {
    plural_u64(u64::try_from(count).unwrap_or(u64::MAX), noun)
}

/// As [`plural`], for what is counted in 64 bits.
pub fn plural_u64(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
