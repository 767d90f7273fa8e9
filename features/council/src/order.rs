//! The orders in which reviews are shown, drawn from a seed that is on record.

/// A sequence of numbers that follows from a seed (SplitMix64): the same on every machine.
#[derive(Debug, Clone)]
pub struct Sequence(u64);

impl Sequence {
    /// The sequence of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The numbers from 0 to `count`, in an order of their own each time.
    pub fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            // At most nine things are ordered: the rest of the division is as good as even.
            let chosen = self.next() % (last as u64 + 1);
            order.swap(last, usize::try_from(chosen).unwrap_or(last));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CNC-8: the order follows from the seed that is on record.
    #[test]
    fn the_same_seed_has_the_same_orders_and_they_differ_within_one() {
        let orders = |seed: u64| {
            let mut sequence = Sequence::new(seed);
            (0..20).map(|_| sequence.shuffled(5)).collect::<Vec<_>>()
        };
        assert_eq!(orders(7), orders(7));
        assert_ne!(orders(7), orders(8));
        let first = orders(7);
        assert!(first.iter().any(|order| *order != first[0]));
        for mut order in first {
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4]);
        }
        assert_eq!(Sequence::new(7).shuffled(0), [0; 0]);
    }

    #[test]
    fn every_place_is_taken_about_as_often() {
        let mut sequence = Sequence::new(1);
        let mut first = [0; 3];
        (0..3000).for_each(|_| first[sequence.shuffled(3)[0]] += 1);
        assert!(first.iter().all(|count| (900..1100).contains(count)), "{first:?}");
    }
}
