//! Installed packages: where they came from, who signed them, what they were granted, and the
//! folder that keeps them.
//!
//! The way of a package: [`source`] fetches it into memory; [`signature`] says who vouches for it;
//! [`install`] compares what it asks for with what was granted before, and changes the set once a
//! person has decided; [`store`] keeps the set on disk; a [`receipt`] says what was done.
//!
//! May import: `feature`'s `package`, `check`, `capability` and `descriptor`. Nothing here knows
//! instances or configuration: a host that runs reads the set and makes what it needs.

pub mod install;
pub mod receipt;
pub mod signature;
pub mod source;
pub mod store;

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Lower-case hex.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing to a String can't fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// 32 bytes of hex digits.
fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// SHA-256, lower-case hex.
fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
