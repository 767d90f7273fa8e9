//! Scaling a number to a range: `from 0..127 -> -60..10 dB, exponential, step 0.5`.

use conductor_number::Range;

/// What a number is scaled from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum From {
    /// From one end of a range to the other.
    Range(Range),
    /// A slot holds how far along it is, 0 to 1, and the number itself does not count.
    Slot(u16),
    /// The limits of the variable with this position among those of the expression.
    Variable(usize),
}

/// How the way from one end of the range to the other is bent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Curve {
    /// As it is.
    #[default]
    Linear,
    /// Rises fast, then slowly.
    Logarithmic,
    /// Rises slowly, then fast.
    Exponential,
    /// Rises slowly at both ends and fast in the middle.
    S,
}

impl Curve {
    /// Each with its name.
    pub const ALL: [(&str, Self); 4] = [
        ("linear", Self::Linear),
        ("logarithmic", Self::Logarithmic),
        ("exponential", Self::Exponential),
        ("s", Self::S),
    ];

    /// Bends a position, 0 to 1; both ends stay where they are.
    fn bend(self, x: f64) -> f64 {
        match self {
            Self::Linear => x,
            Self::Logarithmic => (x * 127.0).ln_1p() / 128_f64.ln(),
            Self::Exponential => x.exp_m1() / 1_f64.exp_m1(),
            Self::S => x * x * (3.0 - 2.0 * x),
        }
    }
}

/// How a number is scaled. What is set is done in the order of the fields.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    pub(crate) from: From,
    /// `dead 10%`: the part at the beginning that counts as the beginning, 0 to 0.99.
    pub dead: f64,
    /// `middle 10%`: the part around the middle that counts as the middle, 0 to 0.99.
    pub middle: f64,
    /// `invert`: whether it runs the other way.
    pub invert: bool,
    /// The curve.
    pub curve: Curve,
    /// `steps 5`: how many positions there are, evenly spaced, both ends included; 0 is any.
    pub steps: u16,
    /// Where it ends up.
    pub to: Range,
    /// `step 0.5`, or `round`, which is `step 1`: what the result is a multiple of; 0 is anything.
    pub step: f64,
}

impl Scale {
    /// The scaled number. `slot` gives what is in a slot.
    pub(crate) fn apply(&self, number: f64, slot: impl Fn(u16) -> f64) -> f64 {
        let mut x = match self.from {
            From::Range(range) => range.position(number),
            From::Slot(unit) => Range { from: 0.0, to: 1.0 }.position(slot(unit)),
            From::Variable(_) => 0.0,
        };
        if self.dead > 0.0 {
            x = ((x - self.dead) / (1.0 - self.dead)).max(0.0);
        }
        if self.middle > 0.0 {
            let (half, off) = (self.middle / 2.0, x - 0.5);
            x = 0.5 + off.signum() * (off.abs() - half).max(0.0) / (1.0 - self.middle);
        }
        if self.invert {
            x = 1.0 - x;
        }
        x = self.curve.bend(x);
        if self.steps > 1 {
            let last = f64::from(self.steps - 1);
            x = (x * last).round() / last;
        }
        let number = self.to.at(x);
        if self.step > 0.0 { self.to.clamp((number / self.step).round() * self.step) } else { number }
    }
}
