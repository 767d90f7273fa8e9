//! Whether a tool's result is what its output schema says: agents are told to rely on it.
//!
//! What is understood is what schemas of results are made of: types, keys, entries, choices, references
//! within the schema. Whatever else a schema asks is taken to be so. The schema is a guest's, so that looking has
//! bounds of its own.

use std::cell::Cell;

use serde_json::{Map, Value};

/// How deep a schema may lead.
const MAX_DEPTH: usize = 64;
/// Pairs of a value and a schema that are looked at, choices included.
const MAX_STEPS: u32 = 200_000;

/// Looks whether `value` fits `schema`.
///
/// # Errors
/// The first thing that does not, with its place as a JSON pointer; or that the schema leads too far.
pub fn fits(value: &Value, schema: &Value) -> Result<(), String> {
    let look = Look { root: schema, steps: Cell::new(MAX_STEPS) };
    look.at(value, schema, &mut String::new(), MAX_DEPTH)
}

struct Look<'s> {
    root: &'s Value,
    steps: Cell<u32>,
}

impl Look<'_> {
    fn at(&self, value: &Value, schema: &Value, place: &mut String, depth: usize) -> Result<(), String> {
        let left = self.steps.get();
        if depth == 0 || left == 0 {
            return Err(format!("{}: the schema leads too far to be looked at", shown(place)));
        }
        self.steps.set(left - 1);
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(false) => return Err(format!("{}: nothing is allowed here", shown(place))),
            _ => return Ok(()),
        };
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let pointed = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            let pointed = pointed.ok_or_else(|| format!("the schema has no {reference}"))?;
            self.at(value, pointed, place, depth - 1)?;
        }
        is_of_type(value, schema).map_err(|expected| format!("{}: {} is not {expected}", shown(place), kind(value)))?;
        if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
            && !allowed.contains(value)
        {
            return Err(format!("{}: not one of {}", shown(place), Value::from(allowed.clone())));
        }
        if let Some(only) = schema.get("const")
            && only != value
        {
            return Err(format!("{}: not {only}", shown(place)));
        }
        for either in ["anyOf", "oneOf"] {
            let Some(choices) = schema.get(either).and_then(Value::as_array) else { continue };
            if !choices.iter().any(|choice| self.at(value, choice, place, depth - 1).is_ok()) {
                return Err(format!("{}: none of the {} that are allowed", shown(place), choices.len()));
            }
        }
        for all in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.at(value, all, place, depth - 1)?;
        }
        match value {
            Value::Object(object) => self.keys(object, schema, place, depth),
            Value::Array(entries) => entries.iter().enumerate().try_for_each(|(index, entry)| {
                let Some(items) = schema.get("items") else { return Ok(()) };
                within(place, &index.to_string(), |place| self.at(entry, items, place, depth - 1))
            }),
            _ => Ok(()),
        }
    }

    fn keys(
        &self,
        object: &Map<String, Value>,
        schema: &Map<String, Value>,
        place: &mut String,
        depth: usize,
    ) -> Result<(), String> {
        for key in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !object.contains_key(key) {
                return Err(format!("{}: {key:?} is missing", shown(place)));
            }
        }
        for (key, value) in object {
            let known = schema.get("properties").and_then(|properties| properties.get(key));
            if let Some(schema) = known.or_else(|| schema.get("additionalProperties")) {
                within(place, key, |place| self.at(value, schema, place, depth - 1))?;
            }
        }
        Ok(())
    }
}

/// Looks one step further in.
fn within<T>(place: &mut String, step: &str, look: impl FnOnce(&mut String) -> T) -> T {
    let length = place.len();
    place.push('/');
    place.push_str(step);
    let found = look(place);
    place.truncate(length);
    found
}

fn shown(place: &str) -> &str {
    if place.is_empty() { "the result" } else { place }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Whether it is of the type, or one of the types, that the schema names; else what they are.
fn is_of_type(value: &Value, schema: &Map<String, Value>) -> Result<(), String> {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    match schema.get("type") {
        Some(Value::String(name)) if !is(name) => Err(name.clone()),
        Some(Value::Array(names)) if !names.iter().filter_map(Value::as_str).any(is) => {
            Err(names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wrong(value: Value, schema: Value) -> String {
        fits(&value, &schema).unwrap_err()
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "plan": { "type": "string" },
                "count": { "type": ["integer", "null"] },
                "inner": { "$ref": "#/$defs/Inner" },
                "list": { "type": "array", "items": { "anyOf": [{ "$ref": "#/$defs/Inner" }, { "type": "null" }] } },
                "health": { "enum": ["green", "red"] },
            },
            "required": ["plan"],
            "additionalProperties": false,
            "$defs": { "Inner": { "type": "object", "properties": { "inner": { "$ref": "#/$defs/Inner" } } } },
        })
    }

    #[test]
    fn what_fits_is_taken() {
        for value in [
            json!({ "plan": "a" }),
            json!({ "plan": "a", "count": null, "inner": { "inner": {} }, "list": [null, {}], "health": "red" }),
            json!({ "plan": "a", "count": 3.0 }),
        ] {
            assert_eq!(fits(&value, &schema()), Ok(()), "{value}");
        }
        assert_eq!(fits(&json!([1]), &json!({})), Ok(()));
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_place() {
        let wrong = |value| wrong(value, schema());
        assert_eq!(wrong(json!([])), "the result: an array is not object");
        assert_eq!(wrong(json!({})), "the result: \"plan\" is missing");
        assert_eq!(wrong(json!({ "plan": 1 })), "/plan: a number is not string");
        assert_eq!(wrong(json!({ "plan": "a", "count": 1.5 })), "/count: a number is not integer or null");
        assert_eq!(wrong(json!({ "plan": "a", "inner": { "inner": 1 } })), "/inner/inner: a number is not object");
        assert_eq!(wrong(json!({ "plan": "a", "list": [{}, 1] })), "/list/1: none of the 2 that are allowed");
        assert_eq!(wrong(json!({ "plan": "a", "health": "blue" })), "/health: not one of [\"green\",\"red\"]");
        assert_eq!(wrong(json!({ "plan": "a", "other": 1 })), "/other: nothing is allowed here");
    }

    // A schema is a guest's: one that leads nowhere, or everywhere, costs no more than another.
    #[test]
    fn a_schema_that_leads_in_circles_ends() {
        let circle = json!({ "$ref": "#" });
        assert!(wrong(json!(1), circle).contains("leads too far"));
        let choices: Vec<Value> = vec![json!({ "$ref": "#" }); 8];
        assert!(wrong(json!(1), json!({ "anyOf": choices })).contains("none of the 8"));
        assert!(wrong(json!(1), json!({ "$ref": "#/nowhere" })).contains("has no #/nowhere"));
    }
}
