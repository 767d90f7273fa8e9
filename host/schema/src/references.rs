//! Where the references of a schema lead, before clients get it: nowhere outside of it, and at one place of a value not
//! in circles and not to ever more schemas. The libraries of some clients fetch what a reference names, and follow it as
//! often as it is written.

use std::collections::HashMap;

use serde_json::Value;

use conductor_terminal::excerpt;

/// Schemas that one place of a value may be held against.
const MAX_AT_ONE_PLACE: usize = 4096;
/// References that lead from one to the next.
const MAX_CHAIN: usize = 64;
/// Bytes of a reference that are shown.
const MAX_SHOWN: usize = 64;

/// Checks every schema in a schema.
///
/// # Errors
/// The first reference that leads elsewhere, in a circle, or to too many schemas; the rest of a sentence.
pub fn check(root: &Value) -> Result<(), String> {
    let mut costs = Costs { root, known: HashMap::new() };
    // The depth of a schema is bounded, and so is what is in it.
    let mut todo = vec![root];
    while let Some(value) = todo.pop() {
        match value {
            Value::Object(object) => {
                costs.of(value, MAX_CHAIN)?;
                todo.extend(object.values());
            }
            Value::Array(items) => todo.extend(items),
            _ => {}
        }
    }
    Ok(())
}

struct Costs<'s> {
    root: &'s Value,
    /// `None` for what is being looked at.
    known: HashMap<*const Value, Option<Cost>>,
}

#[derive(Debug, Clone, Copy)]
struct Cost {
    /// Schemas that a value is held against.
    schemas: usize,
    /// Of these, how many lead from one to the next.
    chain: usize,
}

impl<'s> Costs<'s> {
    /// The cost of validating a value against a schema, from which a chain leads through at most `left` others.
    fn of(&mut self, schema: &'s Value, left: usize) -> Result<Cost, String> {
        let too_long = || format!("has more than {MAX_CHAIN} schemas that lead from one to the next");
        let mut cost = Cost { schemas: 1, chain: 1 };
        let Value::Object(object) = schema else { return Ok(cost) };
        match self.known.get(&std::ptr::from_ref(schema)) {
            Some(Some(cost)) => return Ok(*cost),
            Some(None) => return Err("leads in a circle without an end".to_owned()),
            None => {}
        }
        let left = left.checked_sub(1).ok_or_else(too_long)?;
        self.known.insert(schema, None);
        for (key, value) in object {
            let inner: Vec<&Value> = match (key.as_str(), value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => vec![self.led(reference)?],
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => schemas.iter().collect(),
                ("not" | "if" | "then" | "else", schema) => vec![schema],
                ("dependentSchemas", Value::Object(schemas)) => schemas.values().collect(),
                _ => continue,
            };
            for schema in inner {
                let inner = self.of(schema, left)?;
                cost.schemas = cost.schemas.saturating_add(inner.schemas);
                cost.chain = cost.chain.max(inner.chain + 1);
            }
        }
        if cost.chain > MAX_CHAIN {
            return Err(too_long());
        }
        if cost.schemas > MAX_AT_ONE_PLACE {
            return Err(format!("holds one place against more than {MAX_AT_ONE_PLACE} schemas"));
        }
        self.known.insert(schema, Some(cost));
        Ok(cost)
    }

    /// What a reference leads to.
    fn led(&self, reference: &str) -> Result<&'s Value, String> {
        let pointer = reference.strip_prefix('#').ok_or_else(|| {
            format!("refers to {}; a reference is to a place of the same schema", excerpt(reference, MAX_SHOWN))
        })?;
        self.root
            .pointer(pointer)
            .ok_or_else(|| format!("refers to nothing: the schema has no {}", excerpt(reference, MAX_SHOWN)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(schema: Value) -> String {
        check(&schema).unwrap_err()
    }

    #[test]
    fn no_reference_leads_outside() {
        for elsewhere in ["http://169.254.169.254/", "file:///etc/passwd", "other.json#/a", "//host/x", ""] {
            for key in ["$ref", "$dynamicRef", "$recursiveRef"] {
                let deep = json!({ "properties": { "a": { "items": [{ "not": { key: elsewhere } }] } } });
                assert!(wrong(deep).contains("to a place of the same schema"), "{key} {elsewhere}");
            }
        }
        assert_eq!(wrong(json!({ "$ref": "#/$defs/x" })), "refers to nothing: the schema has no #/$defs/x");
    }

    #[test]
    fn a_few_lines_are_not_followed_a_billion_times() {
        let twice = |to: String| json!({ "allOf": [{ "$ref": to }, { "$ref": to }] });
        let mut definitions: serde_json::Map<String, Value> =
            (0..30).map(|n| (format!("a{n}"), twice(format!("#/$defs/a{}", n + 1)))).collect();
        definitions.insert("a30".into(), json!({}));
        assert!(wrong(json!({ "$defs": definitions })).contains("more than 4096 schemas"));
        let circle = json!({ "$defs": { "a": { "anyOf": [{ "$ref": "#/$defs/b" }] }, "b": { "$ref": "#/$defs/a" } } });
        assert!(wrong(circle).contains("in a circle"));
        assert!(wrong(json!({ "$ref": "#" })).contains("in a circle"));
        let mut chain: serde_json::Map<String, Value> =
            (0..5000).map(|n| (format!("a{n}"), json!({ "$ref": format!("#/$defs/a{}", n + 1) }))).collect();
        chain.insert("a5000".into(), json!({}));
        assert!(wrong(json!({ "$defs": chain })).contains("from one to the next"));
    }

    #[test]
    fn a_tree_is_no_circle() {
        let tree = json!({
            "$ref": "#/$defs/tree",
            "$defs": { "tree": { "type": "object", "properties": { "children": { "items": { "$ref": "#/$defs/tree" } } } } },
        });
        assert_eq!(check(&tree), Ok(()));
        // A property may have any name.
        assert_eq!(check(&json!({ "properties": { "$ref": { "type": "string" }, "not": {} } })), Ok(()));
    }
}
