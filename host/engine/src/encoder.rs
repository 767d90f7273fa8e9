//! How endless encoders say how far they were turned.

/// How an endless encoder writes a turn into the 7 bits of a controller's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Two's complement of 7 bits: 1 is one step clockwise, 127 one step back.
    TwosComplement,
    /// Sign and magnitude: 1 is one step clockwise, 65 one step back.
    SignedBit,
    /// Counted from the middle: 65 is one step clockwise, 63 one step back.
    BinaryOffset,
    /// A single step however fast it is turned: 1 to 63 is clockwise, 65 to 127 is back.
    IncDec,
    /// Where it stands, as a fader would: the difference to where it stood counts. An encoder that is
    /// turned on at an end says that end again, and that is a step, too.
    Difference,
    /// The same for one that goes on from 127 to 0 and back: the shorter way round counts.
    Wrapping,
}

impl Encoding {
    /// How many steps a controller was turned that says `value` now and said `before` last; clockwise is
    /// positive. 0 where it was not turned, and where that can't be known: by difference, at first.
    pub fn steps(self, value: u8, before: Option<u8>) -> i8 {
        let value = (value & 127) as i8;
        match self {
            Self::TwosComplement if value >= 64 => (i16::from(value) - 128) as i8,
            Self::TwosComplement => value,
            Self::SignedBit if value >= 64 => -(value - 64),
            Self::SignedBit => value,
            Self::BinaryOffset => value - 64,
            Self::IncDec => match value {
                0 | 64 => 0,
                1..=63 => 1,
                _ => -1,
            },
            Self::Difference => match (before, value) {
                (None, _) => 0,
                (Some(0), 0) => -1,
                (Some(127), 127) => 1,
                (Some(before), value) => value - (before & 127) as i8,
            },
            Self::Wrapping => before.map_or(0, |before| {
                let around = (i16::from(value) - i16::from(before & 127) + 64).rem_euclid(128);
                (around - 64) as i8
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_encoding_counts_its_own_way() {
        use Encoding::{BinaryOffset, IncDec, SignedBit, TwosComplement};
        let cases = [
            (TwosComplement, [(0, 0), (1, 1), (63, 63), (64, -64), (65, -63), (127, -1)]),
            (SignedBit, [(0, 0), (1, 1), (63, 63), (64, 0), (65, -1), (127, -63)]),
            (BinaryOffset, [(0, -64), (1, -63), (63, -1), (64, 0), (65, 1), (127, 63)]),
            (IncDec, [(0, 0), (1, 1), (63, 1), (64, 0), (65, -1), (127, -1)]),
        ];
        for (encoding, values) in cases {
            for (value, steps) in values {
                assert_eq!(encoding.steps(value, Some(5)), steps, "{encoding:?} {value}");
                assert_eq!(encoding.steps(value, None), steps, "what was before does not matter");
            }
        }
    }

    #[test]
    fn what_wraps_goes_the_shorter_way_round() {
        let steps = |value, before| Encoding::Wrapping.steps(value, before);
        assert_eq!((steps(0, Some(127)), steps(127, Some(0))), (1, -1));
        assert_eq!((steps(5, Some(120)), steps(120, Some(5))), (13, -13));
        assert_eq!((steps(63, Some(0)), steps(64, Some(0)), steps(65, Some(0))), (63, -64, -63));
        assert_eq!((steps(9, None), steps(9, Some(9))), (0, 0));
    }

    #[test]
    fn a_difference_needs_something_to_differ_from() {
        let steps = |value, before| Encoding::Difference.steps(value, before);
        assert_eq!(steps(64, None), 0);
        assert_eq!(steps(64, Some(60)), 4);
        assert_eq!(steps(60, Some(64)), -4);
        assert_eq!(steps(64, Some(64)), 0);
        assert_eq!((steps(127, Some(127)), steps(0, Some(0))), (1, -1), "an end said again is a step");
        assert_eq!((steps(127, Some(0)), steps(0, Some(127))), (127, -127));
    }
}
