//! The small, stable hash that keys devices and OSC addresses and fingerprints a rule set.
//!
//! The standard library's hasher resists floods, takes longer than a whole match may, and starts from
//! a random seed. Nothing here grows with what arrives from outside (the maps are filled from the
//! configuration only), so a short multiply-and-fold will do, and it gives the same number in every run
//! and on every target.

use std::hash::{BuildHasher, Hasher};

/// An odd constant with no pattern in its bits: 2^64 divided by the golden ratio.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

/// One round: multiply to 128 bits and fold the halves, so that every input bit reaches every output bit.
#[inline]
fn fold(state: u64, word: u64) -> u64 {
    let product = u128::from(state ^ word ^ MIX.rotate_left(23)) * u128::from(MIX);
    (product as u64) ^ ((product >> 64) as u64)
}

/// The 64-bit key of a byte string.
#[inline]
pub fn key_of(bytes: &[u8]) -> u64 {
    let mut hasher = StableHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

/// Hashes integers as little-endian 64-bit words, independent of the target's word size and byte order.
#[derive(Clone, Default)]
pub struct StableHasher(u64);

impl Hasher for StableHasher {
    #[inline]
    fn finish(&self) -> u64 {
        fold(self.0, MIX)
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.0 = fold(self.0, u64::from_le_bytes(*word));
        }
        // The length goes in with the tail, so that "a" and "a\0" differ.
        let mut tail = [0; 8];
        tail[..rest.len()].copy_from_slice(rest);
        self.0 = fold(self.0, u64::from_le_bytes(tail) ^ ((bytes.len() as u64) << 56));
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_u16(&mut self, value: u16) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = fold(self.0, value);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    #[inline]
    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }

    #[inline]
    fn write_i32(&mut self, value: i32) {
        self.write_u64(value as u64);
    }
}

/// Builds [`StableHasher`]s for maps keyed by text.
#[derive(Clone, Copy, Debug, Default)]
pub struct StableState;

impl BuildHasher for StableState {
    type Hasher = StableHasher;

    #[inline]
    fn build_hasher(&self) -> StableHasher {
        StableHasher::default()
    }
}

/// Passes a 64-bit key through: it was hashed when it was made.
#[derive(Clone, Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = key_of(bytes);
    }

    #[inline]
    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

/// Builds [`KeyHasher`]s for maps whose keys carry their own hash.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyState;

impl BuildHasher for KeyState {
    type Hasher = KeyHasher;

    #[inline]
    fn build_hasher(&self) -> KeyHasher {
        KeyHasher::default()
    }
}

/// The key of a pair of indices, mixed well enough for [`KeyState`].
#[inline]
pub fn key_of_pair(high: u32, low: u32) -> u64 {
    fold(0, u64::from(high) << 32 | u64::from(low))
}
