//! The JSON Schema of the configuration, generated from the types in `model`.
//!
//! It is what `conductor config schema` prints, what editors complete from, and what the checker holds a
//! file against. Beside the standard keywords it has a few of its own, for rules that JSON Schema lacks:
//!
//! - `x-names`: the string is the name of a thing of this kind, and no other may have it.
//! - `x-refers-to`: the string must be such a name. `x-mentions`: it may be one; if not, that is a warning.
//! - `x-ascending`: the items of an array, or two named keys of a table, are not in descending order.
//! - `x-same-length`: two named keys hold hex texts of as many bytes.
//!
//! Where a string has a `format` of the configuration's own, its `pattern` is added here.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::{Value, json};

use super::action::HOST_ACTIONS;
use super::llm::OLD_KEYS;
use super::model::Config;
use conductor_text_formats::format;

/// The JSON Schema (draft 2020-12) of a configuration file, with the documentation, the default and the
/// range of every field.
pub fn json_schema() -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Config>();
    RecursiveTransform(as_toml).transform(&mut schema);
    describe_old_forms(&mut schema);
    schema.to_value()
}

/// The JSON Schema of each action of the host, by its name. Each stands alone: what it refers to is under its `$defs`;
/// only an action within an action is said to be one, and no more.
pub fn action_schemas() -> Vec<(&'static str, Value)> {
    let root = json_schema();
    let variants = root.pointer("/$defs/Action/anyOf").and_then(Value::as_array);
    let of = |name: &str| variants?.iter().find(|variant| has_type(variant, name));
    let schema = |name: &&'static str| {
        let mut schema = of(name)?.clone();
        schema["properties"]["type"] = json!({ "const": name });
        let mut definitions = serde_json::Map::new();
        stand_alone(&mut schema, &root, &mut definitions);
        if !definitions.is_empty() {
            schema["$defs"] = definitions.into();
        }
        Some((*name, schema))
    };
    HOST_ACTIONS.iter().filter_map(schema).collect()
}

fn has_type(variant: &Value, name: &str) -> bool {
    let names = variant.pointer("/properties/type/enum").and_then(Value::as_array);
    names.is_some_and(|names| names.iter().any(|one| one == name))
}

/// Takes out keywords of the configuration's own, and collects what is referred to.
fn stand_alone(schema: &mut Value, root: &Value, definitions: &mut serde_json::Map<String, Value>) {
    match schema {
        Value::Object(object) => {
            object.retain(|keyword, _| !keyword.starts_with("x-"));
            if object.get("$ref").is_some_and(|to| to == "#/$defs/Action") {
                object.shift_remove("$ref");
                object.insert("type".to_owned(), "object".into());
                object.entry("description").or_insert("An action.".into());
            }
            if let Some(Value::String(reference)) = object.get("$ref")
                && let Some(name) = reference.strip_prefix("#/$defs/").map(str::to_owned)
                && !definitions.contains_key(&name)
                && let Some(definition) = root["$defs"].get(&name)
            {
                // Before its content: it may refer to itself.
                definitions.insert(name.clone(), Value::Null);
                let mut definition = definition.clone();
                stand_alone(&mut definition, root, definitions);
                definitions.insert(name, definition);
            }
            object.values_mut().for_each(|value| stand_alone(value, root, definitions));
        }
        Value::Array(list) => list.iter_mut().for_each(|value| stand_alone(value, root, definitions)),
        _ => {}
    }
}

/// Takes out what TOML cannot say (`null`) and what only Rust means (`uint8`); adds patterns to formats.
fn as_toml(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_mut_slice() {
            object["type"] = only.take();
        }
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.shift_remove("default");
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|choice| choice != &json!({ "type": "null" }));
        if let [Value::Object(only)] = choices.as_mut_slice() {
            let only = std::mem::take(only);
            object.shift_remove("anyOf");
            object.extend(only);
        }
    }
    if let Some(name) = object.get("format").and_then(Value::as_str) {
        match format(name) {
            Some(format) => {
                object.insert("pattern".to_owned(), format.pattern.into());
            }
            None => {
                object.shift_remove("format");
            }
        }
    }
}

/// Adds the keys that are read for the sake of old files; they mean what `bindings` means.
fn describe_old_forms(schema: &mut Schema) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let devices = json!({
            "description": "The old name of `bindings`. With `direction = \"output\"` its matchers tell outputs only.",
            "deprecated": true,
            "type": "array",
            "items": { "type": "object" },
        });
        let device = json!({
            "description": "The oldest form: one binding, whose alias is `main` if it has none.",
            "deprecated": true,
            "type": "object",
        });
        properties.insert("devices".to_owned(), devices);
        properties.insert("device".to_owned(), device);
    }
    if let Some(Value::Object(llm)) = schema.pointer_mut("/$defs/Llm/properties") {
        for (key, what) in OLD_KEYS {
            let kind = if key == "default_provider" { "string" } else { "object" };
            llm.insert(key.to_owned(), json!({ "description": what, "deprecated": true, "type": kind }));
        }
    }
}
