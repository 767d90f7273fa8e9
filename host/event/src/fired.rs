//! Which rules fired for an event, in which mode, and what their conditions said: numbers into a compiled rule set, so that
//! they are copied and kept without the set.

/// A rule's number in its set: its place in the order in which rules are asked, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct RuleId(pub u32);

/// A mode, by its place in the rule set's modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModeIx(pub u16);

impl ModeIx {
    /// No mode: only global rules match.
    pub const NONE: Self = Self(u16::MAX);

    /// How many modes one set may have.
    pub const MAX_MODES: usize = u16::MAX as usize;
}

/// The rules that fired for one event: how many, and the first eight of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Fired {
    first: [RuleId; Self::MAX_IDS],
    total: u32,
}

impl Fired {
    /// How many ids are kept; more are only counted.
    pub const MAX_IDS: usize = 8;

    /// No rule yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule.
    #[inline]
    pub fn push(&mut self, rule: RuleId) {
        if let Some(slot) = self.first.get_mut(self.total as usize) {
            *slot = rule;
        }
        self.total = self.total.saturating_add(1);
    }

    /// The first of them, up to [`MAX_IDS`](Self::MAX_IDS), in the order in which they fired.
    #[inline]
    pub fn ids(&self) -> &[RuleId] {
        &self.first[..self.first.len().min(self.total as usize)]
    }

    /// How many there were.
    #[inline]
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Whether the rule is among them; true for every rule if there were more than are kept.
    #[inline]
    pub fn may_have(&self, rule: RuleId) -> bool {
        self.total as usize > Self::MAX_IDS || self.ids().contains(&rule)
    }
}

impl Extend<RuleId> for Fired {
    fn extend<I: IntoIterator<Item = RuleId>>(&mut self, rules: I) {
        rules.into_iter().for_each(|rule| self.push(rule));
    }
}

impl FromIterator<RuleId> for Fired {
    fn from_iter<I: IntoIterator<Item = RuleId>>(rules: I) -> Self {
        let mut fired = Self::new();
        fired.extend(rules);
        fired
    }
}

/// What the conditions said by which an action decides, by their numbers from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Answers(u32);

impl Answers {
    /// How many conditions an action may have.
    pub const MAX: usize = u32::BITS as usize;

    /// Whether the condition of this number, from 0, held. One that was not asked did not.
    #[inline]
    pub fn holds(self, number: usize) -> bool {
        number < Self::MAX && self.0 & (1 << number) != 0
    }

    /// Which branch the condition of this number leads to, as people write it: `then` or `else`.
    pub fn branch(self, number: usize) -> &'static str {
        if self.holds(number) { "then" } else { "else" }
    }
}

impl FromIterator<bool> for Answers {
    fn from_iter<I: IntoIterator<Item = bool>>(answers: I) -> Self {
        let held = answers.into_iter().take(Self::MAX).enumerate().filter(|(_, held)| *held);
        Self(held.fold(0, |answers, (number, _)| answers | 1 << number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ninth_rule_is_counted_only() {
        let fired: Fired = (0..10).map(RuleId).collect();
        assert_eq!(fired.total(), 10);
        assert_eq!(fired.ids(), (0..8).map(RuleId).collect::<Vec<_>>());
        assert_eq!(Fired::new().ids(), []);
    }

    #[test]
    fn the_thirty_third_condition_is_not_asked() {
        let mut asked = 0;
        let answers: Answers = std::iter::repeat_with(|| {
            asked += 1;
            true
        })
        .take(40)
        .collect();
        assert_eq!(asked, Answers::MAX);
        assert!(answers.holds(0) && answers.holds(31) && !answers.holds(32) && !answers.holds(64));
    }
}
