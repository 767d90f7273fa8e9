//! What the tools' schemas promise is what the host takes.

use std::collections::{BTreeMap, BTreeSet};

use conductor_config as config;
use serde_json::Value;

use crate::stage::Stage;

/// A tool's input schema.
fn input(stage: &Stage, tool: &str) -> Value {
    stage.host.tools().into_iter().find(|view| view.tool.name == tool).unwrap().tool.input.value()
}

/// The schema that something refers to, or itself.
fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    match schema["$ref"].as_str() {
        Some(reference) => root.pointer(reference.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

fn keys(schema: &Value) -> BTreeSet<String> {
    schema["properties"].as_object().map(|keys| keys.keys().cloned().collect()).unwrap_or_default()
}

/// Every key, and every kind in the words of `type`, that the configuration's schema has for something; the older
/// spellings aside.
fn configured(what: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let schema: Value = serde_json::to_value(config::json_schema()).unwrap();
    let (mut all, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    let mut waiting = vec![&schema["$defs"][what]];
    while let Some(at) = waiting.pop() {
        let at = resolved(&schema, at);
        all.extend(keys(at));
        let tag = &at["properties"]["type"];
        let names = tag["enum"].as_array().into_iter().flatten().chain(Some(&tag["const"])).filter_map(Value::as_str);
        kinds.extend(names.filter(|name| name.starts_with(char::is_uppercase)).map(str::to_owned));
        for within in ["oneOf", "anyOf", "allOf"] {
            waiting.extend(at[within].as_array().into_iter().flatten());
        }
    }
    (all, kinds)
}

// MCP-3: no free-form objects where a type exists; and nothing that the configuration has is missing.
#[test]
fn triggers_and_actions_have_every_key_that_the_configuration_has() {
    let stage = Stage::new();
    for tool in ["conductor_create_mapping", "conductor_update_mapping"] {
        let schema = input(&stage, tool);
        let trigger = resolved(&schema, &schema["properties"]["trigger"]);
        let (known, kinds) = configured("Trigger");
        assert!(kinds.len() > 20, "{kinds:?}");
        let missing: Vec<_> = known.difference(&keys(trigger)).cloned().collect();
        assert!(missing.is_empty(), "{tool}: no {missing:?} in triggers");
        let offered: BTreeSet<String> = trigger["properties"]["type"]["enum"]
            .as_array()
            .unwrap()
            .iter()
            .map(|kind| kind.as_str().unwrap().to_owned())
            .collect();
        assert_eq!(offered, kinds, "{tool}");

        for key in keys(&serde_json::to_value(config::json_schema()).unwrap()["$defs"]["Mapping"]) {
            assert!(keys(&schema).contains(&key), "{tool} can't say `{key}`");
        }
        for what in ["action", "condition"] {
            let offered = by_kind(&schema, resolved(&schema, &schema["properties"][what]));
            let configured = by_kind_of_configuration(what);
            assert!(configured.len() > 10, "{configured:?}");
            assert_eq!(offered, configured, "{tool}, {what}");
        }
    }
}

/// The keys of each kind, of a closed schema that has a variant for each.
fn by_kind(root: &Value, schema: &Value) -> BTreeMap<String, BTreeSet<String>> {
    assert_eq!(schema["unevaluatedProperties"], false, "it takes anything");
    let mut found = BTreeMap::new();
    for variant in schema["oneOf"].as_array().unwrap() {
        let variant = resolved(root, variant);
        if let Some(kind) = variant["properties"]["type"]["const"].as_str() {
            assert!(variant.get("additionalProperties").is_none(), "{kind} takes anything");
            found.insert(kind.to_owned(), keys(variant));
        }
    }
    found
}

/// The same of the configuration's schema, older spellings aside.
fn by_kind_of_configuration(what: &str) -> BTreeMap<String, BTreeSet<String>> {
    if what == "action" {
        let of_all_messages = |schema: &Value| {
            let messages = schema["oneOf"].as_array().into_iter().flatten().flat_map(keys);
            keys(schema).into_iter().chain(messages).collect()
        };
        let schemas = config::action_schemas().into_iter();
        return schemas.map(|(name, schema)| (name.to_owned(), of_all_messages(&schema))).collect();
    }
    let schema: Value = serde_json::to_value(config::json_schema()).unwrap();
    let variants = schema["$defs"]["Condition"]["oneOf"].as_array().unwrap();
    let named = |variant: &Value| {
        let tag = &variant["properties"]["type"];
        let name = tag["const"].as_str().or_else(|| tag["enum"][0].as_str()).unwrap();
        (name.to_owned(), keys(variant))
    };
    variants.iter().map(named).collect()
}

// MCP-3: arguments and results are described, and what is not there is refused.
#[test]
fn every_tool_has_whole_schemas() {
    let stage = Stage::new();
    for view in stage.host.tools() {
        let tool = view.tool;
        let input = tool.input.value();
        assert_eq!(input["type"], "object", "{}", tool.name);
        assert_eq!(input["additionalProperties"], false, "{} takes anything", tool.name);
        // Where descriptions are escaped, a line feed is a sign that no model knows.
        assert!(!input.to_string().contains("\\n"), "{} has descriptions of several lines", tool.name);
        let output = tool.output.unwrap_or_else(|| panic!("{} says nothing of its result", tool.name)).value();
        assert_eq!(output["type"], "object", "{}", tool.name);
        assert!(!keys(&output).is_empty(), "{} says nothing of its result", tool.name);
        assert!(tool.summary.len() <= 120, "{}: {}", tool.name, tool.summary);
    }
}
