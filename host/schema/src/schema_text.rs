//! A JSON Schema that is kept and rarely read.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A JSON Schema as compact text, which takes a fraction of the memory that its values take. Serialized as the schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SchemaText(Box<str>);

impl SchemaText {
    /// Of a schema.
    pub fn new(schema: &Value) -> Self {
        Self(schema.to_string().into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The schema, which is parsed anew each time.
    pub fn value(&self) -> Value {
        // It was made from a value.
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

impl Serialize for SchemaText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SchemaText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|schema| Self::new(&schema))
    }
}

impl JsonSchema for SchemaText {
    fn inline_schema() -> bool {
        Value::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        Value::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Value::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_comes_back_as_it_was() {
        let written = r#"{ "type": "object", "properties": { "b": { "enum": [1, "ü", null] }, "a": true } }"#;
        let schema: Value = serde_json::from_str(written).unwrap();
        let text = SchemaText::new(&schema);
        assert_eq!(text.value(), schema);
        assert!(text.as_str().len() < written.len(), "without spaces: {}", text.as_str());
        let sent = serde_json::to_value(&text).unwrap();
        assert_eq!(sent, schema);
        assert_eq!(serde_json::from_value::<SchemaText>(sent).unwrap(), text);
    }
}
