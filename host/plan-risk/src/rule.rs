//! The mappings of a configuration, each with where it stands and what decides what it does.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::effect::{canonical_without, leaves, occasion, quoted};
use conductor_config::{Action, Condition, Config, Mapping};

/// Pairs of mappings that are compared at most, so that a configuration of many mappings can't occupy the host.
pub(crate) const MAX_PAIRS: usize = 1_000_000;

/// What of a mapping is for people only, or is an effect of its own.
pub(crate) const APART: [&str; 3] = ["name", "description", "feedback"];

/// A mapping and where it stands.
#[derive(Debug)]
pub(crate) struct Rule<'c> {
    /// `modes/0/mappings/3`
    pub place: String,
    /// Its mode; `None` if it is there in every mode.
    pub mode: Option<&'c str>,
    pub mapping: &'c Mapping,
    /// All that decides what it does, but for its mode.
    pub body: String,
    /// With its mode.
    pub key: String,
    /// Whether it starts programs.
    pub starts: bool,
    /// Whether it does so only by a variable that it changes, on which the start of a program depends.
    pub by_variable: bool,
}

impl Rule<'_> {
    /// The mapping in a note: its place, and its name if it has one.
    pub fn called(&self) -> String {
        match self.mapping.name.as_deref().or(self.mapping.description.as_deref()) {
            Some(name) => format!("{} ({})", self.place, quoted(name).trim_matches('"')),
            None => self.place.clone(),
        }
    }

    /// When it fires.
    pub fn occasion(&self) -> String {
        occasion(self.mapping, self.mode)
    }
}

/// All mappings, in the order in which they are compiled.
pub(crate) fn rules(config: &Config) -> Vec<Rule<'_>> {
    let modes = config.modes.iter().enumerate().flat_map(|(number, mode)| {
        let one = move |(index, mapping)| rule(format!("modes/{number}/mappings/{index}"), Some(&*mode.name), mapping);
        mode.mappings.iter().enumerate().map(one)
    });
    let global = config.global_mappings.iter().enumerate();
    modes.chain(global.map(|(index, mapping)| rule(format!("global_mappings/{index}"), None, mapping))).collect()
}

fn rule<'c>(place: String, mode: Option<&'c str>, mapping: &'c Arc<Mapping>) -> Rule<'c> {
    let body = canonical_without(mapping, &APART);
    let mut starts = false;
    leaves(&mapping.action, &mut |action| starts |= matches!(action, Action::Shell(_) | Action::Launch(_)));
    Rule { place, mode, mapping, key: format!("{mode:?} {body}"), body, starts, by_variable: false }
}

/// The modes that the conditions of a mapping ask for.
pub(crate) fn modes_asked<'c>(mapping: &'c Mapping, into: &mut BTreeSet<&'c str>) {
    let mut todo: Vec<&Condition> = mapping.condition.as_deref().into_iter().collect();
    let mut actions = vec![&mapping.action];
    while let Some(action) = actions.pop() {
        match action {
            Action::Sequence(sequence) => actions.extend(&sequence.actions),
            Action::Repeat(repeat) => actions.push(&repeat.action),
            Action::Conditional(conditional) => {
                todo.push(&conditional.condition);
                actions.push(&conditional.then);
                actions.extend(conditional.otherwise.as_deref());
            }
            _ => {}
        }
    }
    while let Some(condition) = todo.pop() {
        match condition {
            Condition::ModeIs { mode } => drop(into.insert(mode)),
            Condition::And { conditions } | Condition::Or { conditions } => todo.extend(conditions),
            Condition::Not { condition } => todo.push(condition),
            _ => {}
        }
    }
}
