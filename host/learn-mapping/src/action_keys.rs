//! The keys that an action takes, read from its JSON Schema: enough to type one without looking it up.

use serde_json::{Map, Value};

/// A key of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionKey {
    /// As a configuration has it.
    pub name: String,
    /// Whether it has to be there; of several forms of the action, in each.
    pub required: bool,
    /// Whether its value is written as a text, and as nothing else that is shorter.
    pub is_text: bool,
    /// What it is, in a sentence; of one that chooses the form of the action, the values there are.
    pub help: String,
}

/// The keys of an action with this schema, those that have to be there first. Of an action with several forms, those that
/// all have, and those of each. Empty if the schema names none.
pub fn keys(schema: &Value) -> Vec<ActionKey> {
    let common = resolved(schema, schema);
    let forms = FORMS.into_iter().find_map(|word| common[word].as_array()).map(Vec::as_slice).unwrap_or_default();
    let forms: Vec<&Value> = forms.iter().map(|form| resolved(form, schema)).collect();
    let mut keys: Vec<ActionKey> = Vec::new();
    let all = std::iter::once(common).chain(forms.iter().copied());
    for (name, property) in all.filter_map(|form| form["properties"].as_object()).flatten() {
        if name == "type" || keys.iter().any(|key| key.name == *name) {
            continue;
        }
        let in_each = !forms.is_empty() && forms.iter().all(|form| is_required(form, name));
        let mut choices: Vec<&str> = forms.iter().filter_map(|form| fixed(&form["properties"][name])).collect();
        choices.dedup();
        let is_choice = forms.len() > 1 && choices.len() == forms.len();
        let help = property["description"].as_str().or_else(|| resolved(property, schema)["description"].as_str());
        keys.push(ActionKey {
            name: name.clone(),
            required: in_each || is_required(common, name),
            is_text: is_choice || is_text(property, schema),
            help: if is_choice { choices.join(", ") } else { help.unwrap_or_default().to_owned() },
        });
    }
    keys.sort_by_key(|key| !key.required);
    keys
}

/// The words under which a schema has forms.
pub(crate) const FORMS: [&str; 2] = ["oneOf", "anyOf"];

/// The text that a property is fixed to, in the first of its spellings. `None` if it is free.
pub(crate) fn fixed(property: &Value) -> Option<&str> {
    property["const"].as_str().or_else(|| property["enum"][0].as_str())
}

/// Whether a property takes a text, and no number: an expression is a text, too, but a number is what people write.
fn is_text(property: &Value, document: &Value) -> bool {
    let property = resolved(property, document);
    let forms = FORMS.into_iter().filter_map(|word| property[word].as_array()).flatten();
    let all: Vec<&Value> = std::iter::once(property).chain(forms.map(|form| resolved(form, document))).collect();
    let takes = |kind: &str| {
        let is_kind = |one: &&Value| {
            one["type"] == kind || one["type"].as_array().is_some_and(|kinds| kinds.iter().any(|known| known == kind))
        };
        all.iter().any(is_kind)
    };
    takes("string") && !takes("integer") && !takes("number")
}

pub(crate) fn is_required(form: &Value, name: &str) -> bool {
    form["required"].as_array().is_some_and(|required| required.iter().any(|key| key == name))
}

/// What a schema refers to within the document, if it does.
pub(crate) fn resolved<'s>(schema: &'s Value, document: &'s Value) -> &'s Value {
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
    fn keys_of_all_forms_are_beside_those_of_each_and_a_choice_lists_its_values() {
        let form = |name: &str| {
            let properties = json!({ "message_type": { "const": name }, "note": {} });
            json!({ "properties": properties, "required": ["message_type", "note"] })
        };
        let schema = json!({
            "properties": { "type": {}, "target": { "type": "string" } }, "required": ["type", "target"],
            "oneOf": [form("NoteOn"), form("NoteOff")],
        });
        assert_eq!(names(&schema), [("target".into(), true), ("message_type".into(), true), ("note".into(), true)]);
        assert_eq!(keys(&schema)[1].help, "NoteOn, NoteOff");
    }

    #[test]
    fn a_text_is_told_from_what_may_be_a_number() {
        let is_text = |property: Value| keys(&json!({ "properties": { "key": property } }))[0].is_text;
        assert!(is_text(json!({ "type": "string" })));
        assert!(is_text(json!({ "anyOf": [{ "type": "string" }, { "type": "array" }] })));
        assert!(is_text(json!({ "type": ["string", "null"] })));
        assert!(!is_text(json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }] })));
        assert!(!is_text(json!({ "type": "boolean" })));
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
