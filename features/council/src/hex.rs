//! Lower-case hexadecimal digits: of digests, ids, keys and signatures.

/// The digits of these bytes, two each.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of lower-case digits. `None` if the text is not such digits, two for each byte.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let is_lower = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| is_lower(&byte)) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_in_the_one_form_in_which_they_are_written() {
        assert_eq!(hex(&[0, 0x1f, 255]), "001fff");
        assert_eq!(unhex("001fff"), Some(vec![0, 0x1f, 255]));
        for wrong in ["0", "0F", "0g", "é"] {
            assert_eq!(unhex(wrong), None, "{wrong}");
        }
    }
}
