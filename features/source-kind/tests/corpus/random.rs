//! Numbers that a seed determines: SplitMix64, in whole numbers, so that a corpus is the same on every machine.

/// A source of numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The source that starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub fn within(&mut self, low: i64, high: i64) -> i64 {
        let range = u64::try_from(high - low + 1).unwrap();
        low + i64::try_from(self.next() % range).unwrap()
    }

    /// The same, with the middle likelier than the ends.
    pub fn about(&mut self, low: i64, high: i64) -> i64 {
        (self.within(low, high) + self.within(low, high) + self.within(low, high)) / 3
    }

    /// True in `percent` of the cases.
    pub fn chance(&mut self, percent: i64) -> bool {
        self.within(0, 99) < percent
    }

    /// One of them.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        let place = self.within(0, i64::try_from(of.len()).unwrap() - 1);
        of[usize::try_from(place).unwrap()]
    }

    /// All of them in another order.
    pub fn shuffled<T: Copy>(&mut self, of: &[T]) -> Vec<T> {
        let mut all = of.to_vec();
        for place in (1..all.len()).rev() {
            let other = usize::try_from(self.within(0, i64::try_from(place).unwrap())).unwrap();
            all.swap(place, other);
        }
        all
    }
}
