//! Digests (content hashes): SHA-256, and bytes as hex digits.

use sha2::{Digest as _, Sha256};

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    hex::encode(bytes)
}

/// 32 bytes of hex digits. `None` if there are not exactly 64 digits.
pub fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

/// SHA-256, lower-case hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_digits_are_of_32_bytes_and_of_either_case() {
        let bytes: [u8; 32] = std::array::from_fn(|at| u8::try_from(at * 8).unwrap());
        let digits = hex(&bytes);
        assert!(digits.starts_with("0008101820") && digits.ends_with("f0f8"), "{digits}");
        assert_eq!(unhex(&digits), Some(bytes));
        assert_eq!(unhex(&digits.to_uppercase()), Some(bytes));
        for wrong in ["", "00", &digits[1..], &digits[2..], &format!("{digits}00"), &format!("+{}", &digits[1..])] {
            assert_eq!(unhex(wrong), None, "{wrong}");
        }
    }
}
