//! The risk of plans: for all ways from one configuration to another, the risk is the same; what starts a program,
//! redirects a name or switches a feature is privileged; what only a person may change is denied.

use std::collections::{BTreeMap, BTreeSet};

use conductor_config::{Config, parse};
use conductor_config_text::edit::edited;
use conductor_host::control::plan::risk::{Level, PLANNABLE, Risk, assess};
use serde_json::Value;

use crate::bytes::Bytes;
use crate::configs_from::{config, pieces, text, whole_tables};

/// Lists of changes that are tried, beside the one of whole tables.
const SCRIPTS: usize = 3;

/// What became of a plan.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The configuration that it makes.
    pub after: Value,
    /// How far it reaches; `None` if it is denied.
    pub level: Option<Level>,
    /// Whether it starts a program that was not started, or in another way.
    pub starts: bool,
    /// Whether it sends elsewhere what is sent to an address, changes what is behind the name of a model, or switches a
    /// feature or a contribution of one.
    pub redirects: bool,
}

/// Makes a plan of bytes, which must be judged as it is.
pub fn run(data: &[u8]) {
    plan(data);
}

/// A plan made of bytes, held against everything that must be so; `None` if the bytes make no two configurations.
pub fn plan(data: &[u8]) -> Option<Outcome> {
    let mut bytes = Bytes::new(data);
    let (from, to) = (config(&mut bytes), config(&mut bytes));
    let (before_text, after_text) = (text(&from)?, text(&to)?);
    let read = |text: &str| parse(text, "config.toml").map(|loaded| loaded.config).ok();
    let (before, after) = (read(&before_text)?, read(&after_text)?);
    let risk = judged(&before, &after);
    let scripts = std::iter::once(whole_tables(&from, &to)).chain((0..SCRIPTS).map(|_| pieces(&from, &to, &mut bytes)));
    for changes in scripts {
        let made = edited(&before_text, &changes).unwrap_or_else(|error| panic!("{error}: {changes:?}\n{before_text}"));
        let made = parse(&made, "config.toml").unwrap_or_else(|wrong| panic!("{wrong}\n{made}")).config;
        assert_eq!(made, after, "{changes:?}");
        assert_eq!(judged(&before, &made), risk, "the same by {changes:?}");
    }
    // A plan back and forth reaches nowhere.
    assert_eq!(judged(&after, &after), Ok(Risk { level: Level::Usual, notes: Vec::new() }));

    let (old, new) = (json(&before), json(&after));
    let policy =
        old.keys().chain(new.keys()).any(|name| !PLANNABLE.contains(&name.as_str()) && old.get(name) != new.get(name))
            || packages(&old) != packages(&new);
    assert_eq!(risk.is_err(), policy, "{risk:?}: {old:?} -> {new:?}");
    let starts = more(&programs(&old), &programs(&new)) || more(&leading(&old), &leading(&new));
    let redirects = models(&new).iter().any(|model| !models(&old).contains(model))
        || switched_off(&old) != switched_off(&new)
        || sends_elsewhere(&old, &new);
    let arms =
        asked(&new).iter().any(|(name, variable)| asked(&old).get(name).is_some_and(|before| before != variable));
    if let Ok(risk) = &risk {
        assert!(!arms || risk.level == Level::Privileged, "{risk:#?}");
        if starts || redirects {
            assert_eq!(risk.level, Level::Privileged, "{risk:#?}");
            assert!(!starts || risk.notes.iter().any(|note| note.starts_with("starts a program: ")), "{risk:#?}");
        }
        let (sent, typed) = (found(&new, "sends"), found(&new, "types"));
        let raised = sent.iter().any(|one| !found(&old, "sends").contains(one))
            || typed.iter().any(|one| !found(&old, "types").contains(one))
            || more(&mappings(&new), &mappings(&old));
        assert!(!raised || risk.level >= Level::Raised, "{risk:#?}");
        assert!(risk.notes.iter().all(|note| !note.contains(|c: char| c.is_control() || c == '\u{202e}')), "{risk:#?}");
        assert_eq!(risk.notes.iter().collect::<BTreeSet<_>>().len(), risk.notes.len(), "{risk:#?}");
    }
    Some(Outcome { after: Value::Object(new), level: risk.ok().map(|risk| risk.level), starts, redirects })
}

fn judged(before: &Config, after: &Config) -> Result<Risk, String> {
    assess(before, after).map_err(|error| error.to_string())
}

type Table = serde_json::Map<String, Value>;

fn json(config: &Config) -> Table {
    match serde_json::to_value(config) {
        Ok(Value::Object(table)) => table,
        other => panic!("{other:?}"),
    }
}

/// How often each is there.
type Counted = BTreeMap<String, usize>;

/// Whether something is there more often in the second.
fn more(old: &Counted, new: &Counted) -> bool {
    new.iter().any(|(key, count)| old.get(key).is_none_or(|before| before < count))
}

fn counted(all: impl IntoIterator<Item = String>) -> Counted {
    let mut counts = Counted::new();
    all.into_iter().for_each(|one| *counts.entry(one).or_default() += 1);
    counts
}

/// Every mapping with its mode, and without what is for people only.
fn placed(config: &Table) -> Vec<(Value, Value)> {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let of_modes = list(config.get("modes")).into_iter().flat_map(|mode| {
        let name = mode["name"].clone();
        list(mode.get("mappings")).into_iter().map(move |mapping| (name.clone(), mapping))
    });
    let global = list(config.get("global_mappings")).into_iter().map(|mapping| (Value::Null, mapping));
    let mut all: Vec<(Value, Value)> = of_modes.chain(global).collect();
    for (_, mapping) in &mut all {
        for key in ["name", "description", "feedback"] {
            mapping.as_object_mut().map(|mapping| mapping.remove(key));
        }
        mapping.sort_all_objects();
    }
    all
}

fn mappings(config: &Table) -> Counted {
    counted(placed(config).into_iter().map(|(_, mapping)| mapping.to_string()))
}

/// The actions that a host's action is made of, or the action itself.
fn parts<'a>(action: &'a Value, look: &mut dyn FnMut(&'a Value)) {
    let inside: &[&str] = match action["type"].as_str() {
        Some("Sequence") => &["actions"],
        Some("Repeat") => &["action"],
        Some("Conditional") => &["then", "else"],
        _ => return look(action),
    };
    for value in inside.iter().filter_map(|key| action.get(*key)) {
        match value {
            Value::Array(list) => list.iter().for_each(|action| parts(action, look)),
            action => parts(action, look),
        }
    }
}

/// Whether a mapping starts programs.
fn starts(mapping: &Value) -> bool {
    let mut starts = false;
    parts(&mapping["action"], &mut |action| starts |= matches!(action["type"].as_str(), Some("Shell" | "Launch")));
    starts
}

/// Mappings that start programs.
fn programs(config: &Table) -> Counted {
    counted(
        placed(config)
            .into_iter()
            .filter(|(_, mapping)| starts(mapping))
            .map(|(mode, mapping)| format!("{mode} {mapping}")),
    )
}

/// Whether a text of a value has a name as a word.
fn names(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name),
        Value::Array(list) => list.iter().any(|inner| names(inner, name)),
        Value::Object(object) => object.values().any(|inner| names(inner, name)),
        _ => false,
    }
}

/// The variables that mappings which start programs name, as they are declared.
fn asked(config: &Table) -> BTreeMap<String, Value> {
    let starting = placed(config).into_iter().filter(|(_, mapping)| starts(mapping));
    let starting: Vec<Value> = starting.map(|(_, mapping)| mapping).collect();
    let declared = config.get("variables").and_then(Value::as_array).into_iter().flatten();
    let named = declared.filter_map(|variable| Some((variable["name"].as_str()?.to_owned(), variable.clone())));
    named.filter(|(name, _)| starting.iter().any(|mapping| names(mapping, name))).collect()
}

/// Mappings that change a variable of [`asked`].
fn leading(config: &Table) -> Counted {
    let asked = asked(config);
    let mut leading = Vec::new();
    for (mode, mapping) in placed(config) {
        let mut leads = false;
        parts(&mapping["action"], &mut |action| {
            leads |= action["variable"].as_str().is_some_and(|variable| asked.contains_key(variable));
        });
        if leads {
            leading.push(format!("{mode} {mapping}"));
        }
    }
    counted(leading)
}

/// What is typed, or where is sent to.
fn found(config: &Table, what: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, mapping) in placed(config) {
        parts(&mapping["action"], &mut |action| {
            let kind = action["type"].as_str().unwrap_or_default();
            match what {
                "types" if matches!(kind, "Text" | "Keystroke" | "MouseClick" | "MouseMove" | "VirtualGamepad") => {
                    _ = found.insert(action.to_string())
                }
                "sends" if matches!(kind, "OscSend" | "osc-output:OscSend") => {
                    _ = found.insert(action["target"].to_string())
                }
                _ => {}
            }
        });
    }
    found
}

/// Addresses by trigger and mode.
type Sent = BTreeMap<String, BTreeSet<String>>;

/// The addresses that each trigger sends to in its mode. Names of bindings are left out.
fn sent_by(config: &Table) -> Sent {
    let mut sent = Sent::new();
    for (mode, mapping) in placed(config) {
        parts(&mapping["action"], &mut |action| {
            if matches!(action["type"].as_str(), Some("OscSend" | "osc-output:OscSend")) {
                let target = &action["target"];
                let targets = target.as_array().map_or(std::slice::from_ref(target), Vec::as_slice);
                let addresses = targets.iter().filter_map(Value::as_str).filter(|target| target.contains(':'));
                let all = sent.entry(format!("{mode} {}", mapping["trigger"])).or_default();
                all.extend(addresses.map(str::to_owned));
            }
        });
    }
    sent
}

/// Whether an address is sent to no more by some trigger, and another one is: by the same trigger, or by any if nothing
/// was sent there.
fn sends_elsewhere(old: &Table, new: &Table) -> bool {
    let (old, new) = (sent_by(old), sent_by(new));
    let without = |these: &Sent, those: &Sent| -> Vec<(String, String)> {
        let has = |trigger: &str, address: &str| those.get(trigger).is_some_and(|sent| sent.contains(address));
        let all = these.iter().flat_map(|(trigger, sent)| sent.iter().map(move |address| (trigger, address)));
        all.filter(|(trigger, address)| !has(trigger, address)).map(|(t, a)| (t.clone(), a.clone())).collect()
    };
    let known: BTreeSet<&String> = old.values().flatten().collect();
    let lost = without(&old, &new);
    without(&new, &old).iter().any(|(trigger, address)| {
        lost.iter().any(|(before, other)| other != address && (before == trigger || !known.contains(address)))
    })
}

fn models(config: &Table) -> Vec<String> {
    let models = config.get("models").and_then(Value::as_object).into_iter().flatten();
    models.map(|(name, model)| format!("{name} {model}")).collect()
}

/// The features that are disabled, and the contributions that are refused.
fn switched_off(config: &Table) -> BTreeSet<String> {
    let features = || config.get("features").and_then(Value::as_object).into_iter().flatten();
    let disabled = features().filter(|(_, feature)| feature["enabled"] == false).map(|(name, _)| name.clone());
    let refused = features().flat_map(|(name, feature)| {
        let kinds = feature.get("refused").and_then(Value::as_object).into_iter().flatten();
        kinds.flat_map(move |(kind, names)| {
            names.as_array().into_iter().flatten().map(move |one| format!("{name} {kind} {one}"))
        })
    });
    disabled.chain(refused).collect()
}

/// Everything about features but whether they are enabled and what of them is refused; one that says nothing is as good as none.
fn packages(config: &Table) -> BTreeMap<String, Value> {
    let nothing = parse("[features.x]\n", "x").map(|loaded| json(&loaded.config)["features"]["x"].clone());
    let without = |feature: &Value| {
        let mut feature = feature.clone();
        if let Some(feature) = feature.as_object_mut() {
            feature.retain(|key, _| key != "enabled" && key != "refused");
        }
        feature
    };
    let nothing = without(&nothing.unwrap_or_else(|wrong| panic!("{wrong}")));
    let features = config.get("features").and_then(Value::as_object).into_iter().flatten();
    features
        .map(|(name, feature)| (name.clone(), without(feature)))
        .filter(|(_, feature)| *feature != nothing)
        .collect()
}
