//! The JSON schema of a profile's file, for editors.

use serde_json::{Map, Value, json};

use crate::fields::{FILE, Field, Shape};

/// The JSON schema of a file, as draft 2020-12. It says less than [`Profile::parse`](crate::Profile::parse) checks.
pub fn schema() -> Value {
    let mut schema = table(FILE);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "Profile of a controller".into();
    schema
}

fn table(fields: &[Field]) -> Value {
    let mut properties = Map::new();
    for field in fields {
        let mut schema = shape(&field.shape);
        schema["description"] = field.about.into();
        properties.insert(field.name.to_owned(), schema);
    }
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn shape(shape: &Shape) -> Value {
    match shape {
        Shape::Name => json!({ "type": "string", "minLength": 1, "maxLength": 64 }),
        Shape::Text => json!({ "type": "string", "minLength": 1, "maxLength": 400 }),
        Shape::Id => json!({ "type": "string", "pattern": "^[a-z0-9-]{1,64}$" }),
        Shape::Word(words) => json!({ "enum": words }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Number(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Shape::Numbers(min, max) => json!({ "anyOf": [
            { "type": "integer", "minimum": min, "maximum": max },
            { "type": "string", "pattern": r"^\s*\d+(\s*-\s*\d+)?(\s*,\s*\d+(\s*-\s*\d+)?)*\s*$" },
        ] }),
        Shape::Bounds(min, max) => {
            let number = json!({ "type": "integer", "minimum": min, "maximum": max });
            json!({ "type": "array", "items": number, "minItems": 2, "maxItems": 2 })
        }
        Shape::Place => {
            json!({ "type": "array", "items": { "type": "integer", "minimum": 1 }, "minItems": 2, "maxItems": 2 })
        }
        Shape::Hex => {
            json!({ "type": "string", "pattern": r"^([0-9A-Fa-f]{2}|\{\w+\})( ([0-9A-Fa-f]{2}|\{\w+\}))*$" })
        }
        Shape::Usb => json!({ "type": "string", "pattern": "^[0-9A-Fa-f]{4}:[0-9A-Fa-f]{4}$" }),
        Shape::Addresses => json!({ "anyOf": [
            { "type": "string", "pattern": "^/" },
            { "type": "array", "items": { "type": "string", "pattern": "^/" }, "minItems": 1 },
        ] }),
        Shape::Values => {
            let number = json!({ "type": "integer", "minimum": 0, "maximum": 127 });
            json!({ "type": "object", "additionalProperties": number })
        }
        Shape::List(of) => json!({ "type": "array", "items": self::shape(of), "minItems": 1, "maxItems": 512 }),
        Shape::Table(fields) => table(fields),
        Shape::Tables(fields) => json!({ "type": "array", "items": table(fields), "minItems": 1, "maxItems": 512 }),
    }
}
