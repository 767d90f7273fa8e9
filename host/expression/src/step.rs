//! The steps of an expression, and the machine that does them.

use crate::scale::{From, Scale};
use crate::{Bound, Expression, MAX_STACK, Slots};

/// One step: what it takes comes from the top of the stack, and its result goes there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    /// A number of the text.
    Number(f64),
    /// What is in a slot. Before it is bound, the slot of a variable is its position among those of the expression.
    Slot(u16),
    /// A function of one number.
    One(One),
    /// A function of two numbers.
    Two(Two),
    /// A number between two others.
    Clamp,
    /// The second where the first is not 0, else the third.
    If,
    /// How many of the last this many numbers the one before them is not below.
    Layers(u8),
    /// Scales a number.
    Scale(Scale),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum One {
    Minus,
    Not,
    Abs,
    Sign,
    Round,
    Floor,
    Ceil,
    Sqrt,
    Exp,
    Log,
    Decibels,
    Gain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Two {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    Min,
    Max,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    And,
    Or,
}

impl Step {
    /// How many numbers it takes from the stack.
    pub(crate) fn takes(&self) -> usize {
        match self {
            Self::Number(_) | Self::Slot(_) => 0,
            Self::One(_) | Self::Scale(_) => 1,
            Self::Two(_) => 2,
            Self::Clamp | Self::If => 3,
            Self::Layers(thresholds) => usize::from(*thresholds) + 1,
        }
    }

    /// Puts the slots and limits of variables in.
    pub(crate) fn bind(&mut self, bound: &[Bound]) {
        let variable = |at: usize| bound.get(at).copied();
        match self {
            Self::Slot(slot) if *slot >= Expression::FIRST_VARIABLE => {
                if let Some(found) = variable(usize::from(*slot - Expression::FIRST_VARIABLE)) {
                    *slot = found.slot;
                }
            }
            Self::Scale(scale) => {
                if let From::Variable(at) = scale.from
                    && let Some(limits) = variable(at).and_then(|found| found.limits)
                {
                    scale.from = From::Range(limits);
                }
            }
            _ => {}
        }
    }
}

/// Makes a finite number of what an operation came to.
fn finite(number: f64) -> f64 {
    if number.is_nan() { 0.0 } else { number.clamp(f64::MIN, f64::MAX) }
}

fn truth(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}

/// The result of all steps; 0 if there are none.
pub(crate) fn run(steps: &[Step], slots: &impl Slots) -> f64 {
    // Most are nothing but a name, which needs no stack.
    if let [Step::Slot(slot)] = steps {
        return finite(slots.slot(*slot));
    }
    let mut stack = [0.0; MAX_STACK];
    let mut top = 0;
    for step in steps {
        let below = top - step.takes().min(top);
        let taken = &stack[below..top];
        let result = match (step, taken) {
            (Step::Number(number), _) => *number,
            (Step::Slot(slot), _) => slots.slot(*slot),
            (Step::One(one), [x]) => one.of(*x),
            (Step::Two(two), [x, y]) => two.of(*x, *y),
            (Step::Clamp, [x, low, high]) => x.max(low.min(*high)).min(low.max(*high)),
            (Step::If, [asked, then, otherwise]) => {
                if *asked != 0.0 {
                    *then
                } else {
                    *otherwise
                }
            }
            (Step::Layers(_), [x, thresholds @ ..]) => thresholds.iter().map(|threshold| truth(x >= threshold)).sum(),
            (Step::Scale(scale), [x]) => scale.apply(*x, |slot| slots.slot(slot)),
            // The parser has counted: it does not come to this.
            _ => 0.0,
        };
        if let Some(cell) = stack.get_mut(below) {
            *cell = finite(result);
            top = below + 1;
        }
    }
    top.checked_sub(1).map_or(0.0, |last| stack[last])
}

/// Whether the result of all steps is a whole number for every event. `is_whole` says it of slots.
pub(crate) fn is_whole(steps: &[Step], is_slot_whole: impl Fn(u16) -> bool) -> bool {
    let mut stack = [false; MAX_STACK];
    let mut top = 0;
    for step in steps {
        let below = top - step.takes().min(top);
        let all = stack[below..top].iter().all(|whole| *whole);
        let whole = match step {
            Step::Number(number) => number.fract() == 0.0,
            Step::Slot(slot) => is_slot_whole(*slot),
            Step::One(One::Not | One::Sign | One::Round | One::Floor | One::Ceil) | Step::Layers(_) => true,
            Step::One(One::Minus | One::Abs) | Step::Clamp => all,
            Step::One(One::Sqrt | One::Exp | One::Log | One::Decibels | One::Gain) => false,
            Step::Two(Two::Divide | Two::Power) => false,
            Step::Two(Two::Add | Two::Subtract | Two::Multiply | Two::Remainder | Two::Min | Two::Max) => all,
            Step::Two(_) => true,
            // The first number is only asked about.
            Step::If => stack[below..top].iter().skip(1).all(|whole| *whole),
            Step::Scale(scale) => {
                let numbers = [scale.step, scale.to.from, scale.to.to];
                scale.step > 0.0 && numbers.iter().all(|number| number.fract() == 0.0)
            }
        };
        if let Some(cell) = stack.get_mut(below) {
            *cell = whole;
            top = below + 1;
        }
    }
    top.checked_sub(1).is_some_and(|last| stack[last])
}

impl One {
    fn of(self, x: f64) -> f64 {
        match self {
            Self::Minus => -x,
            Self::Not => truth(x == 0.0),
            Self::Abs => x.abs(),
            Self::Sign if x == 0.0 => 0.0,
            Self::Sign => x.signum(),
            Self::Round => x.round(),
            Self::Floor => x.floor(),
            Self::Ceil => x.ceil(),
            Self::Sqrt => x.sqrt(),
            Self::Exp => x.exp(),
            Self::Log => x.ln(),
            Self::Decibels => 20.0 * x.log10(),
            Self::Gain => 10_f64.powf(x / 20.0),
        }
    }
}

impl Two {
    fn of(self, x: f64, y: f64) -> f64 {
        match self {
            Self::Add => x + y,
            Self::Subtract => x - y,
            Self::Multiply => x * y,
            Self::Divide | Self::Remainder if y == 0.0 => 0.0,
            Self::Divide => x / y,
            Self::Remainder => x.rem_euclid(y),
            Self::Power => x.powf(y),
            Self::Min => x.min(y),
            Self::Max => x.max(y),
            Self::Less => truth(x < y),
            Self::LessOrEqual => truth(x <= y),
            Self::Greater => truth(x > y),
            Self::GreaterOrEqual => truth(x >= y),
            Self::Equal => truth(x == y),
            Self::NotEqual => truth(x != y),
            Self::And => truth(x != 0.0 && y != 0.0),
            Self::Or => truth(x != 0.0 || y != 0.0),
        }
    }
}
