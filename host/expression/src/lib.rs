//! Expressions: numbers that are calculated from those of an event, such as `{value -> -60..10 dB, exponential}`.
//!
//! The language is total. It has no loops and no assignments, every expression has a value for every event, and that value
//! is a finite number: what is divided by zero is 0, what is no number (the root of -1) is 0, and what is too large is
//! the largest number there is. A comparison is 1 where it is so, and 0 where it is not.
//!
//! An expression is parsed once ([`Expression::parse`]), with an error at its place, and then evaluated without
//! allocating: it is a list of at most [`MAX_STEPS`] steps on a stack of [`MAX_STACK`] numbers.
//!
//! ```
//! use conductor_expression::{Expression, Inputs, Names};
//!
//! let decibels = Expression::parse("value -> -60..10 dB", Names::Event)?;
//! assert_eq!(decibels.eval(&Inputs { value: 127.0, unit: 1.0, ..Inputs::default() }), 10.0);
//! let wrong = Expression::parse("valu * 2", Names::Event).unwrap_err();
//! assert_eq!(wrong.to_string(), "column 1: there is no `valu`; did you mean `value`?");
//! # Ok::<(), conductor_expression::Mistake>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod event;
mod parse;
mod scale;
mod step;
mod template;
mod token;

use std::fmt;
use std::ops::Range;

pub use event::{ARGS, EVENT_NAMES, Inputs, MATCHES, OscNumber, is_event_name};
pub use parse::FUNCTIONS;
pub use scale::{Curve, Scale};
pub use template::{Hole, Template};

use step::Step;

/// The most steps that an expression may have; about one for each number, name and sign in it.
pub const MAX_STEPS: usize = 64;
/// The most numbers that an expression may have waiting at once.
pub const MAX_STACK: usize = 16;
/// The most characters that an expression may have.
pub const MAX_LENGTH: usize = 512;

/// Which names an expression may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Those of an event: [`EVENT_NAMES`], and the others that are counted as `arg0` and `match1` are.
    Event,
    /// Any other one, too, as that of a variable, which [`Expression::bind`] has to find.
    EventAndVariables,
}

/// Where the numbers are that an expression names: those of the event ([`Inputs`]), and of variables.
pub trait Slots {
    /// The number in a slot; 0 where there is none.
    fn slot(&self, slot: u16) -> f64;
}

/// What is wrong with an expression, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The part of the text that is wrong, in bytes.
    pub place: Range<usize>,
    /// The same as a person counts: the character that it begins with, from 1.
    pub column: usize,
    /// What is wrong, and what to write instead.
    pub message: String,
}

impl Mistake {
    fn new(text: &str, place: Range<usize>, message: impl Into<String>) -> Self {
        let before = text.get(..place.start).unwrap_or(text);
        Self { column: before.chars().count() + 1, place, message: message.into() }
    }

    /// The same mistake in a text that has this many more ASCII characters in front.
    #[must_use]
    pub fn moved(self, by: usize) -> Self {
        Self { place: self.place.start + by..self.place.end + by, column: self.column + by, ..self }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.message)
    }
}

impl std::error::Error for Mistake {}

/// A variable that an expression names.
#[derive(Debug, Clone, PartialEq)]
struct Variable {
    name: String,
    place: Range<usize>,
    /// Whether it is scaled by its own limits: the text does not say what it comes from.
    needs_limits: bool,
}

/// What a variable is known by, for [`Expression::bind`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Its slot, from [`Expression::FIRST_VARIABLE`].
    pub slot: u16,
    /// Its lowest and highest number, where it has limits.
    pub limits: Option<conductor_number::Range>,
}

/// An expression that is ready to be evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    text: Box<str>,
    steps: Box<[Step]>,
    unit: Option<Box<str>>,
    variables: Box<[Variable]>,
}

impl Expression {
    /// The first slot that is a variable's; those below are for the event's numbers.
    pub const FIRST_VARIABLE: u16 = 32;

    /// Reads an expression.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn parse(text: &str, names: Names) -> Result<Self, Mistake> {
        let parsed = parse::parse(text, names)?;
        Ok(Self {
            text: text.into(),
            steps: parsed.steps.into(),
            unit: parsed.unit.map(Into::into),
            variables: parsed.variables.into(),
        })
    }

    /// An expression that is one of the event's names, without parsing; `None` if there is no such name.
    pub fn of_name(name: &str) -> Option<Self> {
        event::find(name)?;
        Self::parse(name, Names::Event).ok()
    }

    /// Its value; always a finite number. It does not allocate.
    pub fn eval(&self, slots: &impl Slots) -> f64 {
        step::run(&self.steps, slots)
    }

    /// Whether the value is the same for every event.
    pub fn is_fixed(&self) -> bool {
        !self.steps.iter().any(|step| matches!(step, Step::Slot(_)))
    }

    /// Whether the value is a whole number for every event whose own value is one, if `of_whole_values`, or else for
    /// every event at all.
    pub fn is_whole(&self, of_whole_values: bool) -> bool {
        step::is_whole(&self.steps, |slot| event::is_whole(slot, of_whole_values))
    }

    /// Whether it names a number of an event.
    pub fn names_events(&self) -> bool {
        let is_event = |step: &Step| matches!(step, Step::Slot(slot) if *slot < Self::FIRST_VARIABLE);
        self.steps.iter().any(is_event)
    }

    /// The numbers in it that only an OSC message has, in the order of the text; each may come more than once.
    pub fn osc_numbers(&self) -> impl Iterator<Item = OscNumber> {
        self.steps.iter().filter_map(|step| match step {
            Step::Slot(slot) => OscNumber::in_slot(*slot),
            _ => None,
        })
    }

    /// The unit that it is scaled to, where it names one: `dB`.
    pub fn unit(&self) -> Option<&str> {
        self.unit.as_deref()
    }

    /// As it was written, without spaces around it.
    pub fn as_str(&self) -> &str {
        self.text.trim()
    }

    /// Whether it is nothing but this name of the event, and not scaled.
    pub fn is_just(&self, name: &str) -> bool {
        matches!((&*self.steps, event::find(name)), ([Step::Slot(slot)], Some((found, _))) if *slot == found)
    }

    /// The names of the variables in it with their places, in the order of the text; each may come more than once.
    pub fn variables(&self) -> impl Iterator<Item = (&str, Range<usize>)> {
        self.variables.iter().map(|variable| (variable.name.as_str(), variable.place.clone()))
    }

    /// Puts the slots of variables in the place of their names.
    ///
    /// # Errors
    /// A variable that `find` does not know, or one that is scaled and has no limits.
    pub fn bind(&mut self, find: impl Fn(&str) -> Option<Bound>) -> Result<(), Mistake> {
        let mut bound = Vec::with_capacity(self.variables.len());
        for variable in &self.variables {
            let Variable { name, place, needs_limits } = variable;
            let Some(found) = find(name) else {
                return Err(Mistake::new(&self.text, place.clone(), format!("there is no variable `{name}`")));
            };
            if *needs_limits && found.limits.is_none() {
                let message = format!(
                    "the variable `{name}` has no `min` and `max`: say what it comes from, such as `{name} from 0..10 -> ...`"
                );
                return Err(Mistake::new(&self.text, place.clone(), message));
            }
            bound.push(found);
        }
        for step in &mut self.steps {
            step.bind(&bound);
        }
        Ok(())
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
