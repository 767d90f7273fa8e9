//! The keys that an action takes, read from its JSON Schema: enough to type one without looking it up.

use serde_json::{Map, Value};

/// A key of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActionKey {
    pub(crate) name: String,
    /// Whether it has to be there; of several forms of the action, in each.
    pub(crate) required: bool,
    /// What it is, in a sentence.
    pub(crate) help: String,
}

/// The keys of an action with this schema, those that have to be there first. Of an action with several forms, those of all.
/// Empty if the schema names none.
pub(crate) fn keys(schema: &Value) -> Vec<ActionKey> {
    let forms = ["oneOf", "anyOf"].into_iter().find_map(|word| schema[word].as_array());
    let forms: Vec<&Value> = match forms {
        Some(forms) if schema["properties"].is_null() => forms.iter().map(|form| resolved(form, schema)).collect(),
        _ => vec![resolved(schema, schema)],
    };
    let mut keys: Vec<ActionKey> = Vec::new();
    for (name, property) in forms.iter().filter_map(|form| form["properties"].as_object()).flatten() {
        if name == "type" || keys.iter().any(|key| key.name == *name) {
            continue;
        }
        let required = forms.iter().all(|form| is_required(form, name));
        let help = property["description"].as_str().or_else(|| resolved(property, schema)["description"].as_str());
        keys.push(ActionKey { name: name.clone(), required, help: help.unwrap_or_default().to_owned() });
    }
    keys.sort_by_key(|key| !key.required);
    keys
}

fn is_required(form: &Value, name: &str) -> bool {
    form["required"].as_array().is_some_and(|required| required.iter().any(|key| key == name))
}

/// What a schema refers to within the document, if it does.
fn resolved<'s>(schema: &'s Value, document: &'s Value) -> &'s Value {
    let place = schema.as_object().map(Map::len).and(schema["$ref"].as_str()).and_then(|to| to.strip_prefix('#'));
    place.and_then(|place| document.pointer(place)).unwrap_or(schema)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(schema: &Value) -> Vec<(String, bool)> {
        keys(schema).into_iter().map(|key| (key.name, key.required)).collect()
    }

    #[test]
    fn what_has_to_be_there_comes_first() {
        let schema = json!({
            "properties": { "modifiers": { "description": "Held meanwhile." }, "keys": { "$ref": "#/$defs/Keys" }, "type": {} },
            "required": ["keys"],
            "$defs": { "Keys": { "description": "The keys, by their names." } },
        });
        assert_eq!(names(&schema), [("keys".into(), true), ("modifiers".into(), false)]);
        assert_eq!(keys(&schema)[0].help, "The keys, by their names.");
    }

    #[test]
    fn of_several_forms_there_are_the_keys_of_all() {
        let schema = json!({ "oneOf": [
            { "properties": { "message_type": {}, "note": {} }, "required": ["message_type", "note"] },
            { "$ref": "#/$defs/CC" },
        ], "$defs": { "CC": { "properties": { "message_type": {}, "cc": {} }, "required": ["message_type", "cc"] } } });
        assert_eq!(names(&schema), [("message_type".into(), true), ("note".into(), false), ("cc".into(), false)]);
        assert_eq!(names(&json!({})), []);
        assert_eq!(names(&json!(null)), []);
    }
}
