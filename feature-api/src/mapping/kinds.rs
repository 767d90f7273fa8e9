//! Values that a `type` tells apart, such as actions: the keys that each kind has, their check, and their schema.

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{ACTIONS, Action, CONDITIONS, Condition};
use crate::json::nearest;

/// One kind.
pub(super) struct Kind {
    /// What `type` says.
    pub name: &'static str,
    /// Its keys but for `type`.
    pub keys: &'static [Key],
}

/// A key of a kind.
pub(super) struct Key {
    pub name: &'static str,
    pub shape: Shape,
    pub is_required: bool,
}

/// What a key may hold.
pub(super) enum Shape {
    /// A whole number, or an expression such as `"{value}"`.
    Number,
    Integer,
    Real,
    Text,
    Texts,
    Flag,
    OneOf(&'static [&'static str]),
    SomeOf(&'static [&'static str]),
    /// The lowest and the highest.
    Bounds,
    /// Texts by name.
    Table,
    /// A table with these keys.
    Keys(&'static [Key]),
    Any,
    Action,
    Actions,
    Condition,
    Conditions,
}

/// Whether there are kinds beside those of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    /// With keys of their own.
    Allowed,
    Rejected,
}

/// The host takes other spellings of a kind, too: `send_midi`.
fn plain(kind: &str) -> String {
    kind.replace('_', "").to_lowercase()
}

fn find<'k>(kinds: &'k [Kind], name: &str) -> Option<&'k Kind> {
    let name = plain(name);
    kinds.iter().find(|kind| plain(kind.name) == name)
}

/// The value of `type`; empty if there is none.
pub(super) fn tag(value: &Map<String, Value>) -> &str {
    value.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// Checks that a value has a `type`, and the keys of its kind and no others; also of what it holds of the kind.
///
/// # Errors
/// The first thing that is wrong, in a sentence. `what` is what the value should be: "an action".
pub(super) fn check(what: &str, value: &Map<String, Value>, kinds: &[Kind], others: Others) -> Result<(), String> {
    let name = tag(value);
    if name.is_empty() {
        return Err(format!("{what} needs a `type`"));
    }
    match find(kinds, name) {
        Some(kind) => check_keys(kind.name, value, kind.keys, true),
        None if others == Others::Allowed => Ok(()),
        None => {
            let known: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
            let near = nearest(name, known.iter().copied()).map(|near| format!("; did you mean {near:?}?"));
            let what = what.split_once(' ').map_or(what, |(_, what)| what);
            Err(format!("there is no {what} {name:?}{} There are {}", near.unwrap_or(".".into()), known.join(", ")))
        }
    }
}

fn check_keys(of: &str, value: &Map<String, Value>, keys: &[Key], is_tagged: bool) -> Result<(), String> {
    let names = || is_tagged.then_some("type").into_iter().chain(keys.iter().map(|key| key.name));
    if let Some(unknown) = value.keys().find(|name| !names().any(|known| known == name.as_str())) {
        let near = nearest(unknown, names()).map(|near| format!("; did you mean {near:?}?"));
        let known: Vec<&str> = names().collect();
        return Err(format!("{of} has no key {unknown:?}{} It has {}", near.unwrap_or(".".into()), known.join(", ")));
    }
    for key in keys {
        match value.get(key.name) {
            Some(within) => check_within(key, within)?,
            None if key.is_required => return Err(format!("{of} needs the key {:?}", key.name)),
            None => {}
        }
    }
    Ok(())
}

/// Checks what is made of further keys; what is wrong with all else, the host says.
fn check_within(key: &Key, value: &Value) -> Result<(), String> {
    let one = |value: &Value| match (&key.shape, value) {
        (Shape::Action | Shape::Actions, Value::Object(action)) => check("an action", action, ACTIONS, Others::Allowed),
        (Shape::Condition | Shape::Conditions, Value::Object(condition)) => {
            check("a condition", condition, CONDITIONS, Others::Rejected)
        }
        (Shape::Keys(keys), Value::Object(table)) => check_keys(key.name, table, keys, false),
        _ => Ok(()),
    };
    match value {
        Value::Array(list) => list.iter().try_for_each(one),
        value => one(value),
    }
}

/// Names the kind of a value, and of all values in it that are of a kind of `kinds`.
pub(super) fn walk<'v>(value: &'v Map<String, Value>, kinds: &[Kind], see: &mut impl FnMut(&'v str)) {
    see(tag(value));
    let keys = find(kinds, tag(value)).into_iter().flat_map(|kind| kind.keys);
    for key in keys.filter(|key| matches!(key.shape, Shape::Action | Shape::Actions)) {
        let within = value.get(key.name);
        let list = within.and_then(Value::as_array).into_iter().flatten();
        for value in within.into_iter().chain(list).filter_map(Value::as_object) {
            walk(value, kinds, see);
        }
    }
}

/// A schema with a variant for each kind, and one for the others; closed as a whole, which takes fewer words than
/// closing each.
pub(super) fn schema(generator: &mut SchemaGenerator, kinds: &[Kind], others: Others) -> Schema {
    let variant = |generator: &mut SchemaGenerator, kind: &Kind| {
        let mut variant = of_keys(generator, kind.keys);
        variant["properties"]["type"] = json!({ "const": kind.name });
        variant
    };
    let mut variants: Vec<Value> = kinds.iter().map(|kind| variant(generator, kind)).collect();
    if others == Others::Allowed {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
        variants.push(json!({
            "description": "A feature's; conductor_list_actions has its keys.",
            "properties": { "type": { "not": { "enum": names } } },
            "additionalProperties": true,
        }));
    }
    let mut schema = Schema::default();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("required".to_owned(), json!(["type"]));
    schema.insert("oneOf".to_owned(), variants.into());
    schema.insert("unevaluatedProperties".to_owned(), false.into());
    schema
}

/// The properties that keys are, and which of them have to be there.
fn of_keys(generator: &mut SchemaGenerator, keys: &[Key]) -> Value {
    let mut properties = Map::new();
    for key in keys {
        properties.insert(key.name.to_owned(), of_shape(generator, &key.shape));
    }
    let mut schema = json!({ "properties": properties });
    let required: Vec<&str> = keys.iter().filter(|key| key.is_required).map(|key| key.name).collect();
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

fn of_shape(generator: &mut SchemaGenerator, shape: &Shape) -> Value {
    let list = |items: Value| json!({ "type": "array", "items": items });
    match shape {
        Shape::Number => json!({ "type": ["integer", "string"] }),
        Shape::Integer => json!({ "type": "integer" }),
        Shape::Real => json!({ "type": "number" }),
        Shape::Text => json!({ "type": "string" }),
        Shape::Texts => list(json!({ "type": "string" })),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::OneOf(names) => json!({ "enum": names }),
        Shape::SomeOf(names) => list(json!({ "enum": names })),
        Shape::Bounds => list(json!({ "type": "integer" })),
        Shape::Table => json!({ "type": "object" }),
        Shape::Keys(keys) => {
            let mut schema = of_keys(generator, keys);
            schema["additionalProperties"] = false.into();
            schema
        }
        Shape::Any => json!(true),
        Shape::Action => generator.subschema_for::<Action>().to_value(),
        Shape::Actions => list(generator.subschema_for::<Action>().to_value()),
        Shape::Condition => generator.subschema_for::<Condition>().to_value(),
        Shape::Conditions => list(generator.subschema_for::<Condition>().to_value()),
    }
}
