//! Schema validation of the parameters of a feature's action: reports every mistake at its key, while the feature
//! itself stops at the first.

use serde_json::Value;

use conductor_config as config;
use conductor_schema::ResultSchema;

/// One thing that is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    /// The key that is wrong; `None` if a key is missing.
    pub(super) key: Option<String>,
    /// What is wrong.
    pub(super) message: String,
    /// The key that was probably meant.
    pub(super) nearest: Option<String>,
}

/// Every key that is unknown, missing or of another kind. Whatever else a schema asks is left to the feature.
pub(super) fn mistakes(params: &Value, schema: &Value) -> Vec<Mistake> {
    let Some(params) = params.as_object() else { return Vec::new() };
    let known = schema.get("properties").and_then(Value::as_object);
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let names = || known.into_iter().flat_map(|known| known.keys()).map(String::as_str);
    let mut found = Vec::new();
    for (key, value) in params {
        match known.and_then(|known| known.get(key)) {
            Some(property) => {
                // A schema that can't be compiled on its own, for what it refers to, is left to the feature.
                let wrong = ResultSchema::compile(property).ok().and_then(|schema| schema.check(value).err());
                if let Some(message) = wrong {
                    let message = message.trim_start_matches("the result: ");
                    found.push(Mistake {
                        key: Some(key.clone()),
                        message: format!("`{key}`: {message}"),
                        nearest: None,
                    });
                }
            }
            None if is_closed => {
                let message = format!("unknown key `{key}`; there are {}", names().collect::<Vec<_>>().join(", "));
                found.push(Mistake { key: Some(key.clone()), message, nearest: config::nearest(key, names()) });
            }
            None => {}
        }
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for key in required.filter(|key| !params.contains_key(*key)) {
        found.push(Mistake { key: None, message: format!("missing key `{key}`"), nearest: None });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_key_that_is_wrong_is_told() {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["target", "address"],
            "properties": { "target": { "type": "string" }, "address": { "type": "string" }, "args": { "type": "array" } },
        });
        let found = mistakes(&json!({ "adress": "/a", "target": 7, "args": [1] }), &schema);
        let told: Vec<_> = found.iter().map(|mistake| (mistake.key.as_deref(), mistake.message.as_str())).collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert_eq!(told[0], (Some("adress"), "unknown key `adress`; there are target, address, args"));
        assert_eq!(found[0].nearest.as_deref(), Some("address"));
        assert_eq!(told[1].0, Some("target"));
        assert_eq!(told[2], (None, "missing key `address`"));
        assert_eq!(mistakes(&json!({ "target": "a", "address": "/a" }), &schema), []);
        assert_eq!(mistakes(&json!({ "anything": 1 }), &json!({})), [], "a schema that says nothing asks nothing");
    }
}
