//! Large definitions that several tools of a list have, such as that of an action: they stand in the first of them, and the
//! others name that tool. What may be called with, the host checks by the whole schema all the same.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use rmcp::model::Tool;
use serde_json::{Value, json};

/// Bytes of a definition from which on it is not repeated: what says where it is has about 120.
const MIN_BYTES: usize = 512;

/// Has each definition of what a `type` tells apart stand in the list once.
pub(super) fn state_once(tools: &mut [Tool]) {
    let mut stated = HashMap::<(String, String), String>::new();
    for tool in tools {
        let definitions = tool.input_schema.get("$defs").and_then(Value::as_object).into_iter().flatten();
        let mut elsewhere = Vec::new();
        for (name, definition) in definitions.filter(|(_, definition)| is_tagged(definition)) {
            let text = definition.to_string();
            if text.len() < MIN_BYTES {
                continue;
            }
            match stated.entry((name.clone(), text)) {
                Entry::Occupied(first) => elsewhere.push((name.clone(), as_in(first.get()))),
                Entry::Vacant(first) => {
                    first.insert(tool.name.to_string());
                }
            }
        }
        if elsewhere.is_empty() {
            continue;
        }
        let schema = Arc::make_mut(&mut tool.input_schema);
        if let Some(definitions) = schema.get_mut("$defs").and_then(Value::as_object_mut) {
            definitions.extend(elsewhere);
        }
    }
}

/// Whether a definition is of an object with a `type`.
fn is_tagged(definition: &Value) -> bool {
    definition["required"].as_array().is_some_and(|required| required.iter().any(|key| key == "type"))
}

/// Stands for a definition. It has a property, since some APIs of models take no object without any.
fn as_in(tool: &str) -> Value {
    json!({
        "type": "object",
        "description": format!("As in {tool}."),
        "properties": { "type": { "type": "string" } },
        "required": ["type"],
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rmcp::model::JsonObject;

    use super::*;

    fn tool(name: &'static str, definitions: Value) -> Tool {
        let input = json!({ "type": "object", "$defs": definitions });
        let input: JsonObject = serde_json::from_value(input).unwrap();
        Tool::new(name, "Does something.", Arc::new(input))
    }

    fn tagged(key: &str) -> Value {
        let keys: JsonObject = (0..40).map(|number| (format!("{key}_{number}"), json!({ "type": "string" }))).collect();
        json!({ "type": "object", "properties": keys, "required": ["type"] })
    }

    #[test]
    fn a_large_definition_is_in_the_first_tool_alone() {
        let untagged = json!({ "type": "object", "properties": tagged("key")["properties"] });
        let small = json!({ "type": "object", "required": ["type"] });
        let definitions = || json!({ "Action": tagged("key"), "Light": untagged, "Small": small });
        let other = json!({ "Action": tagged("other") });
        let mut tools = [tool("one", definitions()), tool("two", definitions()), tool("three", other.clone())];
        state_once(&mut tools);
        let of = |tool: &Tool| tool.input_schema["$defs"].clone();
        assert_eq!(of(&tools[0]), definitions());
        let second = of(&tools[1]);
        assert_eq!(second["Action"]["description"], "As in one.");
        assert!(second["Action"]["properties"].get("key_0").is_none(), "{second}");
        assert_eq!((&second["Light"], &second["Small"]), (&untagged, &small));
        assert_eq!(of(&tools[2]), other, "another definition of this name is no repetition");
    }
}
