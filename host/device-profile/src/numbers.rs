//! Lists of numbers as people write them: `36`, `"36-43"`, `"81-88, 71-78"`.

/// Numbers in a list, at most.
const MAX_NUMBERS: usize = 1024;

/// Reads a list of numbers and ranges.
///
/// # Errors
/// What is wrong, as a message.
pub(crate) fn parse(text: &str, min: u16, max: u16) -> Result<Vec<u16>, String> {
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim) {
        let number = |word: &str| match word.trim().parse::<u16>() {
            Ok(number) if (min..=max).contains(&number) => Ok(number),
            Ok(number) => Err(format!("{number} is not from {min} to {max}")),
            Err(_) => Err(format!("`{}` is no number; a list is written as \"1, 2, 5-8\"", shortened(word))),
        };
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return Err(format!("the range {first}-{last} is backwards"));
        }
        if all.len() + usize::from(last - first) >= MAX_NUMBERS {
            return Err(format!("more than {MAX_NUMBERS} numbers"));
        }
        all.extend(first..=last);
    }
    Ok(all)
}

/// What is quoted of a text in a message: its first 40 characters, escaped.
pub fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().count() > 40 {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_stand_in_the_order_they_are_written_in() {
        assert_eq!(parse("4", 0, 127).unwrap(), [4]);
        assert_eq!(parse("81-83, 71 ,1-2", 0, 127).unwrap(), [81, 82, 83, 71, 1, 2]);
        assert_eq!(parse("9-7", 0, 127).unwrap_err(), "the range 9-7 is backwards");
        assert_eq!(parse("128", 0, 127).unwrap_err(), "128 is not from 0 to 127");
        assert!(parse("", 0, 127).unwrap_err().contains("no number"));
        assert!(parse("1,,2", 0, 127).is_err());
        assert!(parse("0-16383", 0, 16383).unwrap_err().contains("more than"));
    }
}
