//! Which variables the start of programs depends on, and which mappings change those.
//!
//! A variable counts wherever its name stands as a word in a text of a mapping (a condition, an expression, an
//! argument), so that no field can be forgotten: in doubt a program depends on it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::effect;
use crate::rule::{Rule, modes_asked};
use conductor_config::{Action, Config, Mapping};

/// Marks the mappings that change a variable on which the start of a program depends, and returns those variables.
///
/// A program depends on what its mapping asks for, on what a mapping asks for that changes such a variable, and on what
/// one asks for that makes a mode active in which it starts.
pub(crate) fn lead_to_programs<'c>(config: &'c Config, rules: &mut [Rule<'c>]) -> BTreeSet<&'c str> {
    let declared: BTreeSet<&str> = config.variable_names().collect();
    let (mut asked, mut modes) = (BTreeSet::new(), BTreeSet::new());
    if declared.is_empty() {
        return asked;
    }
    let mut leads: Vec<bool> = rules.iter().map(|rule| rule.starts).collect();
    let mut todo: Vec<usize> = (0..rules.len()).filter(|at| leads[*at]).collect();
    while !todo.is_empty() {
        for at in todo.drain(..) {
            asked.extend(mentioned(rules[at].mapping, &declared));
            modes.extend(rules[at].mode.into_iter().flat_map(|mode| config.modes_over(mode)));
            modes_asked(rules[at].mapping, &mut modes);
        }
        for (at, rule) in rules.iter_mut().enumerate().filter(|(at, _)| !leads[*at]) {
            let (mut changes, mut switches) = (false, false);
            effect::leaves(&rule.mapping.action, &mut |action| match action {
                Action::ModeChange(change) => switches |= modes.contains(change.mode.as_str()),
                Action::NextMode(_) | Action::PreviousMode(_) => switches |= !modes.is_empty(),
                other => changes |= effect::changed(other).is_some_and(|variable| asked.contains(variable)),
            });
            rule.by_variable = changes;
            rule.starts = changes;
            if changes || switches {
                todo.push(at);
            }
        }
        todo.iter().for_each(|at| leads[*at] = true);
    }
    asked
}

/// The variables that a mapping names.
fn mentioned<'c>(mapping: &Mapping, declared: &BTreeSet<&'c str>) -> BTreeSet<&'c str> {
    let value = |part: serde_json::Result<Value>| part.unwrap_or_default();
    let mut todo = vec![
        value(serde_json::to_value(&mapping.trigger)),
        value(serde_json::to_value(&mapping.condition)),
        value(serde_json::to_value(&mapping.action)),
    ];
    let mut found = BTreeSet::new();
    while let Some(value) = todo.pop() {
        match value {
            Value::String(text) => {
                let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                found.extend(words.filter_map(|word| declared.get(word).copied()));
            }
            Value::Array(list) => todo.extend(list),
            Value::Object(object) => todo.extend(object.into_iter().map(|(_, value)| value)),
            _ => {}
        }
    }
    found
}
