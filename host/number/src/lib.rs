//! Numbers with units in text, and ranges of them: `-60..10 dB`.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::fmt;

/// The most decimals that a number is written with.
pub const DECIMALS: usize = 6;

/// Whole numbers below this, and above its negative, are exact (2^53).
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Two numbers, the ends of a range. The first may be the greater one: such a range runs down.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
}

impl Range {
    /// How far along the range a number is, 0 to 1; 0 in a range of one number. What lies outside counts as the end.
    pub fn position(self, number: f64) -> f64 {
        let way = self.to - self.from;
        let position = if way == 0.0 { 0.0 } else { (number - self.from) / way };
        if position.is_nan() { 0.0 } else { position.clamp(0.0, 1.0) }
    }

    /// The number at a position along the range, 0 to 1; both ends are met exactly.
    pub fn at(self, position: f64) -> f64 {
        self.clamp(self.from * (1.0 - position) + self.to * position)
    }

    /// The number brought into the range.
    pub fn clamp(self, number: f64) -> f64 {
        number.max(self.from.min(self.to)).min(self.from.max(self.to))
    }
}

/// Reads the number that a text starts with: digits, with a decimal point if a digit follows it. Returns it with what
/// comes after. `None` if there is none, or one that no `f64` can hold.
pub fn prefix(text: &str) -> Option<(f64, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    if whole == 0 {
        return None;
    }
    let decimals = text[whole..].strip_prefix('.').map_or(0, digits);
    let end = if decimals == 0 { whole } else { whole + 1 + decimals };
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then_some((number, &text[end..]))
}

/// The unit that a text starts with: `%`, `°`, or a word such as `dB`, `Hz`, `st`, `ms`. Returns it with what comes
/// after, or `None` if there is none.
pub fn unit(text: &str) -> Option<(&str, &str)> {
    let end = match text.chars().next()? {
        first @ ('%' | '°') => first.len_utf8(),
        first if first.is_alphabetic() => text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len()),
        _ => return None,
    };
    Some(text.split_at(end))
}

/// A number as a person reads it: with up to [`DECIMALS`] decimals, without zeros at the end, and with its unit.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'u> {
    /// The number.
    pub number: f64,
    /// Its unit.
    pub unit: Option<&'u str>,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Most are whole, and integers are written several times faster.
        if self.number.fract() == 0.0 && self.number.abs() < MAX_EXACT {
            #[expect(clippy::cast_possible_truncation, reason = "it is whole, and in range")]
            let whole = self.number as i64;
            write!(f, "{whole}")?;
        } else {
            let text = format!("{:.DECIMALS$}", self.number);
            let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
            f.write_str(if text == "-0" { "0" } else { text })?;
        }
        match self.unit {
            None => Ok(()),
            Some(unit @ ("%" | "°")) => f.write_str(unit),
            Some(unit) => write!(f, " {unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_is_read_up_to_what_follows() {
        assert_eq!(prefix("0..64"), Some((0.0, "..64")));
        assert_eq!(prefix("0.25 dB"), Some((0.25, " dB")));
        assert_eq!(prefix("3."), Some((3.0, ".")));
        assert_eq!((prefix("-1"), prefix(""), prefix(".5"), prefix("x")), (None, None, None, None));
        assert_eq!(prefix(&"9".repeat(400)), None);
    }

    #[test]
    fn a_unit_is_a_sign_or_a_word() {
        assert_eq!(unit("dB, round"), Some(("dB", ", round")));
        assert_eq!(unit("% "), Some(("%", " ")));
        assert_eq!((unit(", x"), unit("")), (None, None));
    }

    #[test]
    fn a_number_is_shown_with_its_unit() {
        let shown = |number, unit| Shown { number, unit }.to_string();
        assert_eq!(shown(-12.300_000_000_1, Some("dB")), "-12.3 dB");
        assert_eq!(shown(50.0, Some("%")), "50%");
        assert_eq!(
            (shown(0.1 + 0.2, None), shown(-0.0, None), shown(100.0, None)),
            ("0.3".into(), "0".into(), "100".into())
        );
        assert_eq!(shown(-1e-9, None), "0");
    }

    proptest! {
        #[test]
        fn a_whole_number_is_shown_as_an_integer(number in -(1_i64 << 55)..1_i64 << 55) {
            #[expect(clippy::cast_precision_loss, reason = "both are made of the same one")]
            let number = number as f64;
            prop_assert_eq!(Shown { number, unit: None }.to_string(), format!("{number:.0}"));
        }

        #[test]
        fn a_position_in_a_range_is_found_again(from in -1e6..1e6, way in 1.0..1e6, position in 0.0..=1.0) {
            for range in [Range { from, to: from + way }, Range { from: from + way, to: from }] {
                prop_assert!((range.position(range.at(position)) - position).abs() < 1e-6);
                prop_assert_eq!((range.at(0.0), range.at(1.0)), (range.from, range.to));
                prop_assert_eq!(range.clamp(range.at(position)), range.at(position));
            }
        }

        #[test]
        fn any_number_has_a_position(from: f64, to: f64, number: f64) {
            let range = Range { from, to };
            prop_assert!((0.0..=1.0).contains(&range.position(number)));
        }
    }
}
