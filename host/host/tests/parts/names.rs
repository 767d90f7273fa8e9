//! The parts that there are, by kind and name: in the schema, and in a configuration.

use std::collections::BTreeSet;

use serde_json::Value;

/// Kinds and names.
pub type Names = BTreeSet<(String, String)>;

/// The name of the action that no schema knows, since a feature brings it.
const OF_A_FEATURE: &str = "<feature>:<Action>";

/// Every part that the schema of the configuration knows.
pub fn of_the_schema(schema: &Value) -> Names {
    let definition = |name: &str| &schema["$defs"][name];
    let mut names = Names::new();
    let mut add = |kind: &str, name: &str| names.insert((kind.to_owned(), name.to_owned()));
    for (kind, union, tag) in [
        ("trigger", &definition("Trigger")["oneOf"], "type"),
        ("condition", &definition("Condition")["oneOf"], "type"),
        ("action", &definition("Action")["anyOf"], "type"),
        ("matcher", &definition("Matcher")["oneOf"], "type"),
        ("message", &definition("MidiMessage")["oneOf"], "message_type"),
    ] {
        let variants = union.as_array().unwrap_or_else(|| panic!("the schema has no {kind}"));
        for variant in variants {
            let tag = &variant["properties"][tag];
            add(kind, tag["const"].as_str().or(tag["enum"][0].as_str()).unwrap_or(OF_A_FEATURE));
        }
    }
    let transforms = definition("MidiTransform")["properties"].as_object().expect("the schema has transforms");
    for key in transforms.keys().filter(|key| *key != "curve") {
        add("transform", key);
    }
    for curve in definition("Curve")["oneOf"].as_array().expect("the schema has curves") {
        let table = || curve["properties"].as_object()?.keys().next().map(String::as_str);
        add("transform", &format!("curve {}", curve["const"].as_str().or_else(table).expect("a curve has a name")));
    }
    let takeovers = definition("Takeover")["oneOf"].as_array().expect("the schema has takeovers");
    assert_eq!(takeovers.len(), 2, "a new way to take over needs a section");
    names
}

/// Every part that a configuration uses.
pub fn of_a_file(text: &str) -> Names {
    let file: toml::Value = toml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut names = Names::new();
    gather(&file, "", &mut names);
    names
}

/// `of` is the key that the value stands under.
fn gather(value: &toml::Value, of: &str, names: &mut Names) {
    match value {
        toml::Value::Array(items) => items.iter().for_each(|item| gather(item, of, names)),
        toml::Value::Table(table) => {
            let mut add = |kind: &str, name: &str| names.insert((kind.to_owned(), name.to_owned()));
            let text = |key: &str| table.get(key).and_then(toml::Value::as_str);
            let kind = match of {
                "action" | "actions" | "then" | "else" => "action",
                "condition" | "conditions" => "condition",
                other => other.trim_end_matches('s'),
            };
            if let (Some(name), "trigger" | "condition" | "action" | "matcher") = (text("type"), kind) {
                add(kind, if matches!(name, "OscSend" | "ArtNetSend") { OF_A_FEATURE } else { name });
            }
            if let Some(name) = text("message_type") {
                add("message", name);
            }
            if of == "transform" {
                for key in table.keys() {
                    add("transform", key);
                }
                let curve = table.get("curve");
                let named = curve.and_then(toml::Value::as_str);
                let table = || curve?.as_table()?.keys().next().map(String::as_str);
                if let Some(curve) = named.or_else(table) {
                    add("transform", &format!("curve {curve}"));
                }
            }
            table.iter().for_each(|(key, value)| gather(value, key, names));
        }
        _ => {}
    }
}
