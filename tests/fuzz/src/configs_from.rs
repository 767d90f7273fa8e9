//! Configurations, read from bytes: made of parts that a person would write, with every key that there is, and few
//! enough different ones that two configurations share some.

use std::sync::LazyLock;

use conductor_config::parse;
use conductor_config_text::edit::{Change, edited};
use serde_json::{Map, Value, json};

use crate::bytes::Bytes;

/// A configuration with every key at least once.
const EVERYTHING: &str = include_str!("../../../host/config/src/tests/everything.toml");

/// Parts of configurations, in today's form.
struct Parts {
    whole: Value,
    mappings: Vec<Value>,
}

static PARTS: LazyLock<Parts> = LazyLock::new(|| {
    let whole = parse(EVERYTHING, "everything.toml").map(|loaded| loaded.config);
    let whole = whole.unwrap_or_else(|wrong| panic!("{wrong}"));
    let whole = serde_json::to_value(whole).expect("a configuration has a JSON form");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let of_modes = list(&whole["modes"]).into_iter().flat_map(|mode| list(&mode["mappings"]));
    let mappings = of_modes.chain(list(&whole["global_mappings"])).collect();
    Parts { whole, mappings }
});

const COMMANDS: [&str; 4] = ["/bin/true", "/tmp/evil", "echo \"$1\"", "a\nb\u{202e}"];
const HOSTS: [&str; 4] = ["127.0.0.1", "0.0.0.0", "10.0.0.9", "desk.local"];
const URLS: [&str; 3] = ["http://localhost:11434/v1", "http://evil.example/v1", "https://api.example/v1"];
const MODES: [&str; 3] = ["Default", "Live", "Extra"];

/// A configuration as JSON. It may be one that is not taken.
pub fn config(bytes: &mut Bytes<'_>) -> Value {
    let parts = &*PARTS;
    let mut config = Map::new();
    let (first, count) = (usize::from(bytes.below(3)), 2 + usize::from(bytes.below(2)));
    let modes: Vec<Value> = (first..first + count)
        .map(|number| {
            let mut mode = json!({ "name": MODES[number % MODES.len()], "mappings": mappings(bytes, 3) });
            if bytes.one_in(4) {
                mode["color"] = json!("blue");
            }
            if bytes.one_in(4) {
                mode["over"] = json!(bytes.pick(&MODES));
            }
            mode
        })
        .collect();
    config.insert("modes".into(), modes.into());
    config.insert("global_mappings".into(), mappings(bytes, 4));
    let bindings = parts.whole["bindings"].as_array().into_iter().flatten().filter(|_| bytes.one_in(3)).cloned();
    let mut bindings: Vec<Value> = bindings.collect();
    for binding in &mut bindings {
        match bytes.below(6) {
            0 => binding["enabled"] = json!(bytes.one_in(2)),
            1 if binding["output"].get("host").is_some() => binding["output"]["host"] = json!(bytes.pick(&HOSTS)),
            2 if binding["input"].get("host").is_some() => binding["input"]["host"] = json!(bytes.pick(&HOSTS)),
            _ => {}
        }
    }
    config.insert("bindings".into(), bindings.into());
    let mut variables = parts.whole["variables"].clone();
    if bytes.one_in(3) {
        variables[1]["initial"] = json!(bytes.one_in(2));
    }
    config.insert("variables".into(), variables);
    // Some mappings and lights go by it, and no plan changes it, nor the lights.
    config.insert("clock".into(), parts.whole["clock"].clone());
    let mut lights = parts.whole["lights"].clone();
    lights[0]["mode"] = json!(MODES[first % MODES.len()]);
    config.insert("lights".into(), lights);
    if bytes.one_in(2) {
        let mut profile = parts.whole["profiles"][0].clone();
        profile["mode"] = json!(MODES[(first + usize::from(bytes.below(2))) % MODES.len()]);
        config.insert("profiles".into(), json!([profile]));
    }
    if bytes.one_in(2) {
        let mut settings = parts.whole["advanced_settings"].clone();
        settings["probe_identity"] = json!(bytes.one_in(2));
        settings["short_time_slices"] = json!(bytes.one_in(2));
        settings["realtime_priority"] = json!(bytes.one_in(2));
        settings["listen_mode"] = json!(bytes.pick(&["all", "configured"]));
        config.insert("advanced_settings".into(), settings);
    }
    if bytes.one_in(2) {
        let mut model = json!({ "provider": bytes.pick(&["openai-compatible", "mine"]), "model": "m" });
        if bytes.one_in(2) {
            model["url"] = json!(bytes.pick(&URLS));
        }
        if bytes.one_in(2) {
            model["secret"] = json!(bytes.pick(&["key", "other"]));
        }
        for ability in ["tools", "streams", "schema"] {
            if bytes.one_in(4) {
                model[ability] = json!(bytes.one_in(2));
            }
        }
        if bytes.one_in(4) {
            model["api_key_env"] = json!(bytes.pick(&["KEY", "OTHER"]));
        }
        if bytes.one_in(4) {
            model["temperature"] = json!(0.5);
            model["effort"] = json!(bytes.pick(&["minimal", "low", "medium", "high"]));
            model["max_tokens"] = json!(bytes.pick(&[100, 200]));
            model["context"] = json!(8000);
            model["price"] = json!({ "input": 1.0, "output": bytes.pick(&[2.0, 4.0]), "cached": 0.5 });
        }
        config.insert("models".into(), json!({ bytes.pick(&["fast", "good"]): model }));
    }
    let mut features = Map::new();
    if bytes.one_in(3) {
        let name = bytes.pick(&["lamp", "guard"]);
        let mut feature = json!({ "enabled": bytes.one_in(2) });
        if bytes.one_in(3) {
            let kind = bytes.pick(&["actions", "tools", "hooks", "tasks", "providers", "skills"]);
            feature["refused"] = json!({ kind: [bytes.pick(&["look", "dim"])] });
        }
        features.insert(name.into(), feature);
    }
    // What no plan may change, now and then.
    if bytes.one_in(12) {
        features.insert("osc-output".into(), parts.whole["features"]["osc-output"].clone());
    }
    config.insert("features".into(), features.into());
    if bytes.one_in(16) {
        config.insert("tools".into(), json!({ "allowed": ["*"], "per_minute": { "privileged": 6 } }));
    }
    if bytes.one_in(16) {
        config.insert(
            "chat".into(),
            json!({ "models": ["fast"], "tokens_per_day": 5000, "dollars_per_turn": 0.5, "dollars_per_day": 2 }),
        );
    }
    if bytes.one_in(16) {
        config.insert("llm".into(), json!({ "enabled": bytes.one_in(2), "local_only": bytes.one_in(2) }));
    }
    for table in ["api", "mcp"] {
        if bytes.one_in(16) {
            config.insert(table.into(), parts.whole[table].clone());
        }
    }
    config.into()
}

fn mappings(bytes: &mut Bytes<'_>, most: u8) -> Value {
    (0..bytes.below(most + 1)).map(|_| mapping(bytes)).collect()
}

fn mapping(bytes: &mut Bytes<'_>) -> Value {
    let some = |bytes: &mut Bytes<'_>| &PARTS.mappings[usize::from(bytes.byte()) % PARTS.mappings.len()];
    let mut mapping = some(bytes).clone();
    if bytes.one_in(2) {
        mapping["action"] = action(bytes, 2);
    }
    if bytes.one_in(4) {
        mapping["trigger"] = some(bytes)["trigger"].clone();
    }
    if bytes.one_in(4)
        && let Some(condition) = some(bytes).get("condition")
    {
        mapping["condition"] = condition.clone();
    }
    if bytes.one_in(8) {
        mapping["quantize"] = json!(bytes.pick(&["bar", "1/4"]));
    }
    if bytes.one_in(4) {
        mapping["priority"] = json!(bytes.below(3));
        mapping["consume"] = json!(bytes.one_in(2));
    }
    mapping
}

fn action(bytes: &mut Bytes<'_>, depth: u8) -> Value {
    match bytes.below(if depth == 0 { 6 } else { 9 }) {
        0 => json!({ "type": "Launch", "app": bytes.pick(&COMMANDS) }),
        1 | 2 => {
            let mut shell = json!({ "type": "Shell", "command": bytes.pick(&COMMANDS) });
            match bytes.below(6) {
                0 => shell["args"] = json!(["-x", "{value}"]),
                1 => shell["env"] = json!({ "LD_PRELOAD": "/tmp/x.so", "A": "1" }),
                2 => shell["shell"] = json!(true),
                3 => shell["working_dir"] = json!("/tmp"),
                4 => shell["timeout_ms"] = json!(77),
                _ => {}
            }
            shell
        }
        3 => json!({ "type": "Text", "text": bytes.pick(&COMMANDS) }),
        4 => {
            let target = format!("{}:9000", bytes.pick(&HOSTS));
            json!({ "type": "OscSend", "target": target, "address": "/x" })
        }
        5 => {
            let at = usize::from(bytes.byte()) % PARTS.mappings.len();
            PARTS.mappings[at]["action"].clone()
        }
        6 => {
            let actions: Vec<Value> = (0..1 + bytes.below(3)).map(|_| action(bytes, depth - 1)).collect();
            json!({ "type": "Sequence", "actions": actions })
        }
        7 => json!({ "type": "Repeat", "count": 2, "action": action(bytes, depth - 1) }),
        _ => {
            let (then, otherwise) = (action(bytes, depth - 1), action(bytes, depth - 1));
            let condition = json!({ "type": "ModeIs", "mode": "Live" });
            json!({ "type": "Conditional", "condition": condition, "then": then, "else": otherwise })
        }
    }
}

/// The configuration as text; `None` if it has no TOML form.
pub fn text(config: &Value) -> Option<String> {
    edited("", &whole_tables(&json!({}), config)).ok()
}

/// The changes that make one configuration of another, a table each.
pub fn whole_tables(from: &Value, to: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    let tables = |value: &Value| -> Vec<String> {
        value.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
    };
    for name in tables(to) {
        if from.get(&name) != to.get(&name) {
            changes.push(Change { path: vec![name.clone()], value: to.get(&name).cloned() });
        }
    }
    let gone = tables(from).into_iter().filter(|name| to.get(name).is_none());
    changes.extend(gone.map(|name| Change { path: vec![name], value: None }));
    changes
}

/// The changes that make one configuration of another, each as deep down as `bytes` say.
pub fn pieces(from: &Value, to: &Value, bytes: &mut Bytes<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    step(&mut Vec::new(), from, to, bytes, &mut changes);
    changes
}

fn step(path: &mut Vec<String>, from: &Value, to: &Value, bytes: &mut Bytes<'_>, changes: &mut Vec<Change>) {
    if from == to {
        return;
    }
    let set = |path: &[String], value: Option<&Value>| Change { path: path.to_vec(), value: value.cloned() };
    if !path.is_empty() && bytes.one_in(6) {
        return changes.push(set(path, Some(to)));
    }
    let at = |path: &mut Vec<String>, key: String, work: &mut dyn FnMut(&mut Vec<String>)| {
        path.push(key);
        work(path);
        path.pop();
    };
    match (from, to) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in new {
                at(path, key.clone(), &mut |path| match old.get(key) {
                    Some(before) => step(path, before, value, bytes, changes),
                    None => changes.push(set(path, Some(value))),
                });
            }
            for key in old.keys().filter(|key| !new.contains_key(*key)) {
                at(path, key.clone(), &mut |path| changes.push(set(path, None)));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for (index, value) in new.iter().enumerate() {
                at(path, index.to_string(), &mut |path| match old.get(index) {
                    Some(before) => step(path, before, value, bytes, changes),
                    None => changes.push(set(path, Some(value))),
                });
            }
            for index in (new.len()..old.len()).rev() {
                at(path, index.to_string(), &mut |path| changes.push(set(path, None)));
            }
        }
        _ => changes.push(set(path, Some(to))),
    }
}
