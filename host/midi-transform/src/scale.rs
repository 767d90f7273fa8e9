//! Scaling of values, numbers from 0 to 1, to a range.

/// A part of the way from 0 to 1, scaled to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The part that counts, its lower end first. What is outside is brought to the nearer end. Where both
    /// are the same, values below become the beginning of `to` and all others its end.
    pub from: (f32, f32),
    /// What its ends become; the first may be the higher one.
    pub to: (f32, f32),
}

impl Scale {
    /// Everything as it is.
    pub const WHOLE: Self = Self { from: (0.0, 1.0), to: (0.0, 1.0) };

    /// The scaled value, between the ends of `to`. What is no number becomes the beginning.
    pub fn apply(&self, value: f32) -> f32 {
        let ((low, high), (first, last)) = (self.from, self.to);
        let width = high - low;
        let place = if width > 0.0 {
            ((value - low) / width).clamp(0.0, 1.0)
        } else if value >= low {
            1.0
        } else {
            0.0
        };
        let place = if place.is_nan() { 0.0 } else { place };
        // Written so that both ends come out exactly.
        (first * (1.0 - place) + last * place).clamp(first.min(last), first.max(last))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_scale_can_cut_and_turn() {
        let scale = Scale { from: (0.25, 0.75), to: (1.0, 0.0) };
        let scaled: Vec<f32> = [0.0, 0.25, 0.5, 0.75, 1.0].map(|value| scale.apply(value)).into();
        assert_eq!(scaled, [1.0, 1.0, 0.5, 0.0, 0.0]);
        let step = Scale { from: (0.5, 0.5), to: (0.2, 0.8) };
        assert_eq!((step.apply(0.4), step.apply(0.5), step.apply(0.6)), (0.2, 0.8, 0.8));
    }

    fn unit() -> impl Strategy<Value = f32> {
        0.0f32..=1.0
    }

    proptest! {
        #[test]
        fn a_scale_stays_in_its_range_and_keeps_order(
            a in unit(), b in unit(), to in (unit(), unit()), one in any::<f32>(), other in any::<f32>(),
        ) {
            let scale = Scale { from: (a.min(b), a.max(b)), to };
            let (low, high) = (to.0.min(to.1), to.0.max(to.1));
            let scaled = scale.apply(one);
            prop_assert!((low..=high).contains(&scaled), "{scaled}");
            if one <= other {
                let (first, second) = (scaled, scale.apply(other));
                let ordered = if to.0 <= to.1 { first <= second + 1e-6 } else { first >= second - 1e-6 };
                prop_assert!(ordered, "{first} {second}");
            }
            prop_assert!((Scale::WHOLE.apply(a) - a).abs() < 1e-6);
        }
    }
}
