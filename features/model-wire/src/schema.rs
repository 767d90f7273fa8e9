//! The JSON Schemas that requests have: those of tools' arguments, and of answers.

use conductor_feature::Error;
use serde_json::{Map, Value, json};

/// Keywords whose value is a schema.
const ONE: [&str; 9] = [
    "items",
    "not",
    "contains",
    "if",
    "then",
    "else",
    "propertyNames",
    "additionalProperties",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords whose value has schemas by name.
const NAMED: [&str; 5] = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/// The schema that the asker wrote, with objects in the place of schemas that are `true` or `false`.
///
/// Those are as good (JSON Schema 2020-12, core, 4.3.2), but not every API takes them: LiteLLM 1.106 answers with status 500
/// to one in a list of alternatives if the model is Gemini's. `additionalProperties` stays as it is, where they are common.
///
/// # Errors
/// `Invalid` if it is not JSON: `what` says which schema.
pub fn schema(what: &str, json: &str) -> Result<Value, Error> {
    let mut schema =
        serde_json::from_str(json).map_err(|error| Error::Invalid(format!("{what} is not JSON: {error}")))?;
    put_objects(&mut schema);
    Ok(schema)
}

/// Its depth is bounded: a text that is nested deeper than 128 levels is not read.
fn put_objects(schema: &mut Value) {
    match schema {
        Value::Bool(true) => *schema = Value::Object(Map::new()),
        Value::Bool(false) => *schema = json!({ "not": {} }),
        Value::Object(keywords) => {
            for (keyword, value) in keywords {
                match (keyword.as_str(), value) {
                    ("additionalProperties" | "unevaluatedProperties", Value::Bool(_)) => {}
                    (one, value) if ONE.contains(&one) => put_objects(value),
                    (list, Value::Array(schemas)) if LISTS.contains(&list) => schemas.iter_mut().for_each(put_objects),
                    (named, Value::Object(schemas)) if NAMED.contains(&named) => {
                        schemas.values_mut().for_each(put_objects);
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_that_is_a_boolean_becomes_an_object() {
        let written = json!({
            "type": "object", "additionalProperties": false, "default": { "items": true },
            "properties": {
                "items": true, "never": false, "list": { "items": true },
                "maybe": { "anyOf": [true, { "type": "null" }] }, "enum": { "enum": [true, false], "const": true },
                "map": { "additionalProperties": { "not": false } },
            },
            "$defs": { "any": true },
        });
        let asked = json!({
            "type": "object", "additionalProperties": false, "default": { "items": true },
            "properties": {
                "items": {}, "never": { "not": {} }, "list": { "items": {} },
                "maybe": { "anyOf": [{}, { "type": "null" }] }, "enum": { "enum": [true, false], "const": true },
                "map": { "additionalProperties": { "not": { "not": {} } } },
            },
            "$defs": { "any": {} },
        });
        assert_eq!(schema("it", &written.to_string()).unwrap(), asked);
        assert_eq!(schema("it", &asked.to_string()).unwrap(), asked);
    }

    #[test]
    fn what_is_no_json_or_too_deep_is_refused() {
        for text in ["{", &"[".repeat(500), &r#"{"not":"#.repeat(500)] {
            assert!(matches!(schema("it", text), Err(Error::Invalid(why)) if why.starts_with("it is not JSON")));
        }
    }
}
