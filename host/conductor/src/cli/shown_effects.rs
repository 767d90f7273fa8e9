//! Effects as the commands show them, and hints for names that nothing has.

use std::collections::BTreeSet;

use conductor_config::{Config, nearest};
use conductor_dispatch::{Action, describe_rule_id};
use conductor_engine::{RuleSet, rule_name};
use conductor_event::DeviceId;
pub(super) use conductor_host::host::shown::{line, line_since, text};
use conductor_terminal::errln;
use conductor_timeline::player::Sent;
use serde_json::{Value, json};

/// What went out, for programs.
pub(super) fn json(sent: &Sent, rules: &RuleSet<Action>) -> Value {
    let rule = sent.rule.map(|rule| describe_rule_id(rule, rules, true));
    json!({ "at": sent.at, "rule": rule, "effect": text(&sent.effect) })
}

/// What devices may be called: bindings, and the devices that rules name.
fn devices(config: &Config, rules: &RuleSet<Action>) -> BTreeSet<String> {
    let bound = config.bindings.iter().map(|binding| binding.alias.clone());
    let named = rules.rules().iter().filter_map(|rule| rule.device.as_ref()).map(ToString::to_string);
    let clock = config.clock.iter().filter_map(|clock| clock.device.clone());
    bound.chain(named).chain(clock).collect()
}

/// Says which device is meant where a name is nearly that of one, once for each; `place` is where it stands.
pub(super) fn hint_devices<'d>(
    named: impl Iterator<Item = (String, &'d DeviceId)>,
    config: &Config,
    rules: &RuleSet<Action>,
) {
    let known = devices(config, rules);
    let mut hinted = BTreeSet::new();
    for (place, device) in named {
        let name = device.as_str();
        if known.contains(name) || !hinted.insert(name.to_owned()) {
            continue;
        }
        if let Some(meant) = nearest(name, known.iter().map(String::as_str)) {
            errln!("{place}no binding and no mapping calls a device {name:?}; did you mean {meant:?}?");
        }
    }
}

/// What is wrong with the name of a rule in a test; `None` if a rule has it.
pub(super) fn unknown_rule(name: &str, rules: &RuleSet<Action>) -> Option<String> {
    let names: Vec<String> = rules.rules().iter().map(rule_name).collect();
    if names.iter().any(|known| known == name) {
        return None;
    }
    let hint = nearest(name, names.iter().map(String::as_str)).map(|meant| format!("; did you mean {meant:?}?"));
    Some(format!("there is no rule {name:?}{}", hint.unwrap_or_default()))
}
