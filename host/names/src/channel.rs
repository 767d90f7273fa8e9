//! Names of MIDI channels: `ch1` to `ch16`, as devices count them.

/// The channel as it is on the wire, 0 to 15: `"ch1"` is 0, `"ch16"` 15. Case does not count, and a space may stand
/// before the number. `None` if it is no such name.
pub fn number(name: &str) -> Option<u8> {
    let digits = super::plain(name);
    let digits = digits.strip_prefix("channel").or_else(|| digits.strip_prefix("ch"))?.trim_start();
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let counted: u8 = digits.parse().ok().filter(|_| is_number)?;
    counted.checked_sub(1).filter(|&channel| channel < 16)
}

/// The name of a channel as it is on the wire, 0 to 15.
pub fn name(channel: u8) -> String {
    format!("ch{}", u16::from(channel) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_count_from_one() {
        for channel in 0..16 {
            assert_eq!(number(&name(channel)), Some(channel));
        }
        assert_eq!((number("CH 10"), number("channel 1")), (Some(9), Some(0)));
        for wrong in ["ch0", "ch17", "ch", "10", "ch+1", "ch1x", "ch999"] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
    }
}
