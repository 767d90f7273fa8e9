//! Variables: numbers, switches and words that mappings set and ask.
//!
//! Every variable is a number inside: a switch is 0 or 1, a word is its position among those that it may be. So a value is
//! one atomic cell. Reading takes no lock and allocates nothing, changing does neither, and a thread that changes a
//! variable never waits for another one for longer than that one's own change.
//!
//! A variable may have a value for each device or each mode. Those are found by a [`Key`] in a table of [`MAX_OWNERS`]
//! cells that is there from the beginning; owners beyond that share one cell.
//!
//! Declaring the same variables again ([`Variables::declare`]), as a reload does, keeps the values of those whose
//! declaration is the same.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cells;
mod change;
mod watch;

use std::sync::Arc;

use conductor_expression::{Bound, Expression, Slots};
use conductor_number::Range;

pub use cells::{Key, MAX_OWNERS};
pub use change::{Change, Changed, Step};
pub use watch::Watch;

use cells::Cells;

/// What a variable may hold.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Any finite number, within limits where there are any.
    Number {
        /// The lowest and the highest, where it has limits; the first is not above the second.
        limits: Option<Range>,
    },
    /// On or off.
    Switch,
    /// One of these words, at least one.
    Word(Vec<String>),
}

impl Kind {
    /// The lowest and the highest number inside, where there are limits.
    pub fn limits(&self) -> Option<Range> {
        match self {
            Self::Number { limits } => *limits,
            Self::Switch => Some(Range { from: 0.0, to: 1.0 }),
            Self::Word(words) => Some(Range { from: 0.0, to: words.len().saturating_sub(1) as f64 }),
        }
    }

    /// A number brought into what the variable may hold: within the limits; a switch is on with anything but 0, and a word
    /// is counted by whole numbers. What is no number is 0.
    pub fn fitted(&self, number: f64) -> f64 {
        let number = if number.is_nan() { 0.0 } else { number.clamp(f64::MIN, f64::MAX) };
        match self {
            Self::Number { limits } => limits.map_or(number, |limits| limits.clamp(number)),
            Self::Switch => f64::from(number != 0.0),
            Self::Word(_) => self.limits().map_or(0.0, |limits| limits.clamp(number.round())),
        }
    }
}

/// Whose value it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// There is one for all.
    Global,
    /// Each device has its own.
    Device,
    /// Each mode has its own.
    Mode,
}

/// What is said of a variable before it is used.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// What it is called.
    pub name: String,
    /// What it may hold.
    pub kind: Kind,
    /// Whose value it is.
    pub scope: Scope,
    /// What it holds before anything was set.
    pub initial: f64,
    /// Whether its values are to be kept across a restart. The caller that declares it keeps them.
    pub keep: bool,
}

/// A variable. Clones share its values.
#[derive(Debug, Clone)]
pub struct Variable {
    declaration: Declaration,
    /// Its position among all.
    number: u16,
    cells: Arc<Cells>,
}

impl Variable {
    /// What was said of it.
    pub fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    /// Its position among all, from 0.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// What it holds for an owner; the owner does not count where there is one value for all.
    pub fn get(&self, owner: Key) -> f64 {
        self.cells.get(self.owner(owner))
    }

    /// The word that it holds; `None` if it holds none.
    pub fn word(&self, owner: Key) -> Option<&str> {
        let Kind::Word(words) = &self.declaration.kind else { return None };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is fitted")]
        words.get(self.get(owner) as usize).map(String::as_str)
    }

    /// How far along its limits a number is, 0 to 1. Without limits it is the number itself, cut off at both ends.
    pub fn unit(&self, number: f64) -> f64 {
        self.declaration.kind.limits().unwrap_or(Range { from: 0.0, to: 1.0 }).position(number)
    }

    /// Changes it for an owner, by an amount. `at` is the time, in nanoseconds from any beginning. `None` if it holds what it held.
    pub fn change(&self, owner: Key, change: &Change, amount: f64, at: u64) -> Option<Changed> {
        let (from, to) = self.cells.update(self.owner(owner), at, |before, pause| {
            self.declaration.kind.fitted(change.of(&self.declaration.kind, before, amount, pause))
        });
        if from == to {
            return None;
        }
        self.cells.changed();
        Some(Changed { variable: self.number, from, to, unit: self.unit(to) })
    }

    /// The values that owners have, by owner.
    pub fn values(&self) -> impl Iterator<Item = (Key, f64)> {
        self.cells.values()
    }

    /// Gives an owner the value that it had, as far as the variable may hold it. No mapping follows such a change; what
    /// [watches](Self::watch) hears of it.
    pub fn restore(&self, owner: Key, value: f64) {
        if self.cells.set(self.owner(owner), self.declaration.kind.fitted(value)) {
            self.cells.changed();
        }
    }

    /// Has this be called from now on whenever some owner's value has changed, instead of what was called before; `None` for
    /// nothing. It is called on the thread that changes the value, after the change.
    pub fn watch(&self, watch: Option<Arc<Watch>>) {
        self.cells.watch(watch);
    }

    fn owner(&self, owner: Key) -> Key {
        if self.declaration.scope == Scope::Global { Key::EVERYONE } else { owner }
    }
}

/// All variables that there are.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    all: Vec<Variable>,
}

impl Variables {
    /// The most that there may be.
    pub const MAX: usize = 1024;

    /// Variables as they are declared. One that is declared as in `before` keeps its values; those beyond
    /// [`MAX`](Self::MAX) are left out.
    pub fn declare(declarations: impl IntoIterator<Item = Declaration>, before: &Self) -> Self {
        let declared = declarations.into_iter().take(Self::MAX).zip(0..);
        let all = declared.map(|(declaration, number)| {
            let same = before.find(&declaration.name).filter(|known| known.declaration == declaration);
            let fresh = || Arc::new(Cells::new(declaration.kind.fitted(declaration.initial)));
            let cells = same.map_or_else(fresh, |known| Arc::clone(&known.cells));
            Variable { declaration, number, cells }
        });
        Self { all: all.collect() }
    }

    /// The variable of this name.
    pub fn find(&self, name: &str) -> Option<&Variable> {
        self.all.iter().find(|variable| variable.declaration.name == name)
    }

    /// All of them, in the order of their declaration.
    pub fn iter(&self) -> std::slice::Iter<'_, Variable> {
        self.all.iter()
    }

    /// What an expression knows a variable by: see [`Expression::bind`].
    pub fn bound(&self, name: &str) -> Option<Bound> {
        let variable = self.find(name)?;
        let slot = Expression::FIRST_VARIABLE + variable.number;
        Some(Bound { slot, limits: variable.declaration.kind.limits() })
    }

    /// The numbers of an event together with the variables, as its device and a mode see them.
    pub fn with<'v, S: Slots>(&'v self, event: &'v S, device: Key, mode: Key) -> WithVariables<'v, S> {
        WithVariables { event, variables: self, device, mode }
    }
}

/// The numbers of an event together with variables, for expressions.
#[derive(Debug, Clone, Copy)]
pub struct WithVariables<'v, S> {
    event: &'v S,
    variables: &'v Variables,
    device: Key,
    mode: Key,
}

impl<S: Slots> Slots for WithVariables<'_, S> {
    fn slot(&self, slot: u16) -> f64 {
        let Some(number) = slot.checked_sub(Expression::FIRST_VARIABLE) else { return self.event.slot(slot) };
        self.variables.all.get(usize::from(number)).map_or(0.0, |variable| {
            variable.get(if variable.declaration.scope == Scope::Mode { self.mode } else { self.device })
        })
    }
}
