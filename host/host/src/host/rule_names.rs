//! What the rules of earlier generations were called, for events that are shown after another configuration came into
//! force: a rule's number means something in its own set only.

use std::collections::VecDeque;
use std::fmt::{Display, Write as _};

use conductor_event::RuleId;
use parking_lot::Mutex;

/// Generations whose rules are remembered.
const MAX_GENERATIONS: usize = 8;
/// Bytes of all names that are remembered. The oldest generations give way.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// The names of the rules of the last generations before the one in force.
#[derive(Debug, Default)]
pub(super) struct RuleNames(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    /// Oldest first.
    generations: VecDeque<Names>,
    bytes: usize,
}

#[derive(Debug)]
struct Names {
    generation: u64,
    /// All names, one after the other: a text for each would make a reload longer.
    text: Box<str>,
    /// Where each ends.
    ends: Box<[usize]>,
}

impl Names {
    fn of(&self, rule: RuleId) -> Option<&str> {
        let rule = usize::try_from(rule.0).ok()?;
        let start = rule.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.text.get(start..*self.ends.get(rule)?)
    }

    fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.ends)
    }
}

impl RuleNames {
    /// Remembers what the rules of a generation are called, in their order.
    pub(super) fn keep(&self, generation: u64, names: impl Iterator<Item = impl Display>) {
        let mut text = String::new();
        let ends = names.map(|name| {
            // Writing to a text fails only if the name does.
            let _ = write!(text, "{name}");
            text.len()
        });
        let ends = ends.collect();
        let names = Names { generation, text: text.into_boxed_str(), ends };
        let mut kept = self.0.lock();
        kept.bytes += names.bytes();
        kept.generations.push_back(names);
        while kept.generations.len() > MAX_GENERATIONS || kept.bytes > MAX_BYTES {
            let Some(oldest) = kept.generations.pop_front() else { return };
            kept.bytes -= oldest.bytes();
        }
    }

    /// What a rule of a generation was called; `None` if that is not remembered.
    pub(super) fn of(&self, rule: RuleId, generation: u64) -> Option<String> {
        let kept = self.0.lock();
        let of = kept.generations.iter().rev().find(|names| names.generation == generation)?;
        of.of(rule).map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(names: &RuleNames, generation: u64, rules: &[&str]) {
        names.keep(generation, rules.iter());
    }

    #[test]
    fn the_rules_of_the_last_generations_keep_their_names() {
        let names = RuleNames::default();
        keep(&names, 0, &["kick", "snare"]);
        keep(&names, 1, &["snare"]);
        let of = |rule, generation| names.of(RuleId(rule), generation);
        assert_eq!((of(1, 0).as_deref(), of(0, 1).as_deref()), (Some("snare"), Some("snare")));
        assert_eq!((of(0, 0).as_deref(), of(2, 0), of(1, 1), of(0, 2)), (Some("kick"), None, None, None));
        for generation in 2..=8 {
            keep(&names, generation, &["hat"]);
        }
        assert_eq!((of(0, 0), of(0, 1).as_deref()), (None, Some("snare")), "eight are remembered");
    }

    #[test]
    fn what_is_remembered_is_bounded_in_bytes() {
        let names = RuleNames::default();
        let long = "x".repeat(MAX_BYTES / 3);
        for generation in 0..5 {
            keep(&names, generation, &[&long]);
        }
        let known: Vec<u64> = (0..5).filter(|generation| names.of(RuleId(0), *generation).is_some()).collect();
        assert_eq!(known, [3, 4]);
        keep(&names, 5, &[&long, &long, &long]);
        assert!(names.of(RuleId(0), 5).is_none() && names.of(RuleId(0), 4).is_none(), "more than there is room for");
        keep(&names, 6, &["kick"]);
        assert_eq!(names.of(RuleId(0), 6).as_deref(), Some("kick"));
        assert_eq!(names.0.lock().bytes, size_of::<usize>() + 4);
    }
}
