//! How an endless encoder says how far it was turned, and how that is distinguished from a fader's values.

/// How a controller codes a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// 1 is a step, 127 one back.
    TwosComplement,
    /// 65 is a step, 63 one back.
    BinaryOffset,
    /// 1 is a step, 65 one back.
    SignedBit,
}

impl Coding {
    /// What it says of a step, as text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TwosComplement => "1 is a step, 127 one back",
            Self::BinaryOffset => "65 is a step, 63 one back",
            Self::SignedBit => "1 is a step, 65 one back",
        }
    }
}

/// The most steps that one message says.
const MAX_STEPS: i32 = 15;

/// A coding, where the values are those of an encoder; and whether both ways were seen. `None` if they may be a
/// fader's: it passes through values in between, where an encoder stays near 0, 64 or 127, and says the same again.
pub fn coding(values: &[i32]) -> Option<(Coding, bool)> {
    let near = |from: i32, to: i32| values.iter().filter(|value| (from..=to).contains(*value)).count();
    let (all, up) = (values.len(), near(1, MAX_STEPS));
    let same = values.windows(2).any(|pair| pair[0] == pair[1]);
    let jump = values.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 50);
    if all < 2 || !(same || jump) {
        return None;
    }
    let (back, above, below) = (near(127 - MAX_STEPS + 1, 127), near(65, 64 + MAX_STEPS), near(64 - MAX_STEPS, 63));
    match () {
        () if back > 0 && up + back == all => Some((Coding::TwosComplement, up > 0)),
        () if below > 0 && below + above == all => {
            // Values around 64 that go up and down step by step are a fader's near its middle.
            let jumps = values.windows(2).filter(|pair| (pair[0] - 64) * (pair[1] - 64) < 0).count();
            (same || jumps > 0).then_some((Coding::BinaryOffset, above > 0))
        }
        () if above > 0 && up + above == all => match up {
            0 => Some((Coding::BinaryOffset, false)),
            _ => Some((Coding::SignedBit, true)),
        },
        () if up == all => Some((Coding::TwosComplement, false)),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_coding_is_told_and_a_fader_has_none() {
        assert_eq!(coding(&[1, 1, 127]), Some((Coding::TwosComplement, true)));
        assert_eq!(coding(&[65, 65, 63]), Some((Coding::BinaryOffset, true)));
        assert_eq!(coding(&[1, 65, 65]), Some((Coding::SignedBit, true)));
        assert_eq!(coding(&[1, 1, 2]), Some((Coding::TwosComplement, false)));
        assert_eq!(coding(&[65, 65]), Some((Coding::BinaryOffset, false)));
        for fader in [&[10, 12, 15][..], &[1, 2, 3], &[64], &[60, 62, 64, 66], &[0, 127, 0]] {
            assert_eq!(coding(fader), None, "{fader:?}");
        }
    }
}
