//! Rules: as a person wrote them, and as they are after compiling.

use std::num::NonZeroU16;
use std::ops::Range;

use conductor_event::{DeviceId, ModeIx, RuleId};

use crate::choice::Choices;
use crate::condition::Condition;
use crate::trigger::Trigger;

/// Where something stands in the configuration file, as a range of bytes; or nowhere, for rules that
/// came from somewhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Place(Option<(u32, u32)>);

impl Place {
    /// Not in a file.
    pub const NONE: Self = Self(None);

    /// These bytes of the file. Files of 4 GiB and more have no places.
    pub fn bytes(range: Range<usize>) -> Self {
        match (u32::try_from(range.start), u32::try_from(range.end)) {
            (Ok(start), Ok(end)) => Self(Some((start, end))),
            _ => Self::NONE,
        }
    }

    /// The bytes, if it is in a file.
    pub fn range(self) -> Option<Range<usize>> {
        self.0.map(|(start, end)| start as usize..end as usize)
    }
}

impl From<Range<usize>> for Place {
    fn from(range: Range<usize>) -> Self {
        Self::bytes(range)
    }
}

/// When a rule is awake.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub enum Scope {
    /// In every mode, and where there are no modes.
    #[default]
    Global,
    /// In the mode of this name.
    Mode(String),
}

/// How long a mode stays active that a rule's action asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Lasts {
    /// Until another mode is asked for.
    #[default]
    UntilChanged,
    /// Until the key comes up that the rule fires for; of a chord the highest, of a sequence the last. For what fires
    /// while the key is down, so for no rule that defers; without a key the mode does not change.
    WhileHeld,
    /// For one press of any key, and for as long as the key is down that the rule fires for if that comes up later.
    OnePress,
}

/// A rule as written.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleSpec<A> {
    /// In which modes it is active.
    pub scope: Scope,
    /// The device that it matches, by the name of its [`DeviceId`]; `None` if it matches every device.
    pub device: Option<String>,
    /// What it waits for.
    pub trigger: Trigger,
    /// What else must be so; `None` if nothing must.
    pub condition: Option<Condition>,
    /// What its action decides by when it fires.
    pub choices: Choices,
    /// How long a mode lasts that its action asks for.
    pub lasts: Lasts,
    /// Whether it waits until no other gesture can follow from its presses. For presses and for gestures of keys; see
    /// [`gesture`](crate::gesture).
    pub defer: bool,
    /// Higher goes first. 0 is usual.
    pub priority: i32,
    /// Whether rules after it are not asked any more when it fires.
    pub consume: bool,
    /// Whether the release of a press that it fires for and consumes is kept from rules after it, too, whatever holds then.
    pub swallows_release: bool,
    /// To which pulses of the clock its action waits, multiples of this many; `None` if it does not wait. See
    /// [`musical`](crate::musical).
    pub quantize: Option<NonZeroU16>,
    /// What people call it.
    pub name: Option<String>,
    /// Where it stands in the file.
    pub place: Place,
    /// What it does.
    pub action: A,
}

impl<A> RuleSpec<A> {
    /// A global rule for every device: priority 0, not consuming, without name or place.
    pub fn new(trigger: Trigger, action: A) -> Self {
        Self {
            scope: Scope::Global,
            device: None,
            trigger,
            condition: None,
            choices: Choices::default(),
            lasts: Lasts::default(),
            defer: false,
            priority: 0,
            consume: false,
            swallows_release: false,
            quantize: None,
            name: None,
            place: Place::NONE,
            action,
        }
    }
}

/// Everything a rule set is compiled from.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleSource<A> {
    /// The names of the modes. The first is the one that is active to begin with.
    pub modes: Vec<String>,
    /// The rules, in the order of the file.
    pub rules: Vec<RuleSpec<A>>,
}

impl<A> Default for RuleSource<A> {
    fn default() -> Self {
        Self { modes: Vec::new(), rules: Vec::new() }
    }
}

/// A rule in a compiled set.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule<A> {
    /// Its number in this set.
    pub id: RuleId,
    /// What people call it.
    pub name: Option<Box<str>>,
    /// Where it stands in the file.
    pub place: Place,
    /// The device that it matches; `None` if it matches every device.
    pub device: Option<DeviceId>,
    /// The mode in which it is active; `None` if it is active in every mode.
    pub mode: Option<ModeIx>,
    /// What it waits for.
    pub trigger: Trigger,
    /// What else must be so; `None` if nothing must.
    pub condition: Option<Condition>,
    /// What its action decides by when it fires; `None` if by nothing.
    pub choices: Option<Box<Choices>>,
    /// How long a mode lasts that its action asks for.
    pub lasts: Lasts,
    /// Whether it waits until no other gesture can follow from its presses.
    pub defer: bool,
    /// Whether rules after it are not asked any more when it fires.
    pub consume: bool,
    /// Whether the release of a press that it fires for and consumes is kept from rules after it, too.
    pub swallows_release: bool,
    /// To which pulses of the clock its action waits, multiples of this many; `None` if it does not wait.
    pub quantize: Option<NonZeroU16>,
    /// Higher goes first.
    pub priority: i32,
    /// What it does.
    pub action: A,
}

impl<A> Rule<A> {
    /// Every condition that is asked of it: its own, and those that its action decides by.
    pub fn conditions(&self) -> impl Iterator<Item = &Condition> {
        let choices = self.choices.iter().flat_map(|choices| &choices.conditions);
        self.condition.iter().chain(choices)
    }
}

/// What a rule is called in reports and tests: its name, or its number in the order of rules, from 1: `rule 3`.
pub fn rule_name<A>(rule: &Rule<A>) -> String {
    rule.name.as_deref().map_or_else(|| format!("rule {}", rule.id.0 + 1), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_byte_range_or_nowhere() {
        assert_eq!(Place::bytes(3..9).range(), Some(3..9));
        assert_eq!(Place::NONE.range(), None);
        assert_eq!(Place::bytes(0..usize::MAX), Place::NONE);
    }
}
