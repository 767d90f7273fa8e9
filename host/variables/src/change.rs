//! Changes: what is made of a value.

use conductor_number::Range;

use crate::Kind;

/// What is done to a variable.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// It becomes the amount.
    Set,
    /// A switch the other way; a number from its lowest to anything else and back to it; a word to the next one.
    Toggle,
    /// The amount is added.
    Add(Step),
    /// As many further as the amount is, among words or whole numbers between the limits, from the last one to the first.
    Cycle,
}

/// How something is added to a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Whether it goes on at the other limit.
    pub wraps: bool,
    /// How many times as much it is when changes follow each other at once, at least 1: an encoder that is turned fast.
    pub acceleration: f64,
    /// Where it stops first: a knob that clicks in at 0.
    pub detents: Vec<f64>,
}

impl Step {
    /// The amount, and nothing else.
    pub const PLAIN: Self = Self { wraps: false, acceleration: 1.0, detents: Vec::new() };
}

/// A pause that is this long or longer is no acceleration, in nanoseconds.
const SLOW: f64 = 60e6;

/// What a change has come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Changed {
    /// Which variable, by its position among all.
    pub variable: u16,
    /// What it held.
    pub from: f64,
    /// What it holds.
    pub to: f64,
    /// How far along its limits that is, 0 to 1.
    pub unit: f64,
}

impl Change {
    /// What becomes of a value, not yet brought into the limits. `pause` is the nanoseconds since the last change.
    pub(crate) fn of(&self, kind: &Kind, before: f64, amount: f64, pause: Option<u64>) -> f64 {
        let limits = kind.limits();
        match self {
            Self::Set => amount,
            Self::Toggle => match kind {
                Kind::Switch => 1.0 - before,
                Kind::Word(_) => cycled(before, 1.0, limits),
                Kind::Number { limits: Some(limits) } if before == limits.from => limits.to,
                Kind::Number { limits: Some(limits) } => limits.from,
                Kind::Number { limits: None } => f64::from(before == 0.0),
            },
            Self::Cycle => cycled(before, amount, limits),
            Self::Add(step) => {
                let by = amount * step.factor(pause);
                match limits {
                    Some(limits) if step.wraps => wrapped(before + by, limits),
                    _ => step.stopped(before, before + by),
                }
            }
        }
    }
}

impl Step {
    fn factor(&self, pause: Option<u64>) -> f64 {
        let nearness = pause.map_or(0.0, |pause| 1.0 - (pause as f64 / SLOW).min(1.0));
        1.0 + (self.acceleration - 1.0).max(0.0) * nearness
    }

    /// Where a way from one number to another ends: at the first detent that it passes.
    fn stopped(&self, from: f64, to: f64) -> f64 {
        let passed =
            self.detents.iter().copied().filter(|detent| {
                if to > from { from < *detent && *detent < to } else { to < *detent && *detent < from }
            });
        let nearest = |one: f64, other: f64| if (one - from).abs() <= (other - from).abs() { one } else { other };
        passed.reduce(nearest).unwrap_or(to)
    }
}

/// So many whole numbers further, from the highest to the lowest.
fn cycled(before: f64, by: f64, limits: Option<Range>) -> f64 {
    let Some(Range { from, to }) = limits else { return before + by };
    let count = (to - from).floor() + 1.0;
    from + (before - from + by).rem_euclid(count).floor()
}

/// A number that has gone beyond a limit goes on at the other one.
fn wrapped(number: f64, limits: Range) -> f64 {
    let width = limits.to - limits.from;
    if width <= 0.0 || (limits.from..=limits.to).contains(&number) {
        return number;
    }
    limits.from + (number - limits.from).rem_euclid(width)
}
