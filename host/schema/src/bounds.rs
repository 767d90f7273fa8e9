//! Bounds of a schema: what is expensive to look at is rejected, for the host and the clients that it is handed to.

use serde_json::Value;

/// Values in a JSON Schema, all together.
pub const MAX_SCHEMA_VALUES: usize = 8192;
/// Levels of a JSON Schema.
pub const MAX_SCHEMA_DEPTH: usize = 64;
/// Values that one `enum` of a JSON Schema lists.
pub const MAX_SCHEMA_ENUM: usize = 1024;
/// Bytes of one `pattern` of a JSON Schema.
pub const MAX_SCHEMA_PATTERN: usize = 1024;

/// Checks that a schema is within its bounds.
///
/// # Errors
/// What of it is too much, which completes "the schema ...".
pub fn check(schema: &Value) -> Result<(), String> {
    let mut values = MAX_SCHEMA_VALUES;
    bounded(schema, MAX_SCHEMA_DEPTH, &mut values)
}

fn bounded(schema: &Value, depth: usize, values: &mut usize) -> Result<(), String> {
    let Some(deeper) = depth.checked_sub(1) else {
        return Err(format!("is nested deeper than {} levels", MAX_SCHEMA_DEPTH));
    };
    *values = values.checked_sub(1).ok_or_else(|| format!("has more than {} values", MAX_SCHEMA_VALUES))?;
    match schema {
        Value::Array(entries) => entries.iter().try_for_each(|entry| bounded(entry, deeper, values)),
        Value::Object(object) => object.iter().try_for_each(|(key, value)| {
            let (size, most, what) = match (key.as_str(), value) {
                ("enum", Value::Array(allowed)) => (allowed.len(), MAX_SCHEMA_ENUM, "values"),
                ("pattern", Value::String(pattern)) => (pattern.len(), MAX_SCHEMA_PATTERN, "bytes"),
                _ => return bounded(value, deeper, values),
            };
            if size > most {
                return Err(format!("has {key:?} with {size} {what}; at most {most} are taken"));
            }
            bounded(value, deeper, values)
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_is_bounded_in_every_direction() {
        let rejected = |schema: Value| check(&schema).unwrap_err();
        let mut deep = json!({});
        for _ in 0..MAX_SCHEMA_DEPTH {
            deep = json!({ "items": deep });
        }
        assert_eq!(rejected(deep), "is nested deeper than 64 levels");
        assert_eq!(rejected(json!({ "x": vec![0; 8192] })), "has more than 8192 values");
        let all: Vec<usize> = (0..=MAX_SCHEMA_ENUM).collect();
        assert_eq!(
            rejected(json!({ "items": { "enum": all } })),
            "has \"enum\" with 1025 values; at most 1024 are taken"
        );
        let pattern = json!({ "pattern": "(a+)+".repeat(300) });
        assert_eq!(rejected(pattern), "has \"pattern\" with 1500 bytes; at most 1024 are taken");
        check(&json!({ "enum": vec![1; 1024], "pattern": "a", "properties": { "enum": {}, "pattern": {} } })).unwrap();
    }
}
