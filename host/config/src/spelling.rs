//! Second spellings in the JSON Schema: the `type` of an action, a trigger, a condition or a matcher in another case.

use schemars::Schema;
use serde_json::Value;

/// Lets the `type` of each variant be written in PascalCase too.
pub(super) fn also_in_pascal_case(schema: &mut Schema) {
    also_as(schema, |name| {
        let mut capital = true;
        let letters = name.chars().filter_map(|letter| {
            let written = if capital { letter.to_ascii_uppercase() } else { letter };
            capital = letter == '_';
            (!capital).then_some(written)
        });
        Some(letters.collect())
    });
}

/// Lets the `type` of each variant be written in snake_case too.
pub(super) fn also_in_snake_case(schema: &mut Schema) {
    also_as(schema, |name| {
        let mut snake = String::with_capacity(name.len() + 2);
        let mut after_lower = false;
        for letter in name.chars() {
            if letter.is_ascii_uppercase() && after_lower {
                snake.push('_');
            }
            after_lower = letter.is_ascii_lowercase();
            snake.push(letter.to_ascii_lowercase());
        }
        Some(snake)
    });
}

/// Adds a second spelling of the `type` of each variant for which `respell` has one.
/// The first spelling stays the one that serde knows: the checker puts it in place of the others.
pub(super) fn also_as(schema: &mut Schema, respell: impl Fn(&str) -> Option<String>) {
    for union in ["oneOf", "anyOf"] {
        let Some(Value::Array(variants)) = schema.get_mut(union) else {
            continue;
        };
        for variant in variants {
            let Some(Value::Object(tag)) = variant.pointer_mut("/properties/type") else {
                continue;
            };
            if let Some(name) = tag.shift_remove("const") {
                tag.insert("enum".to_owned(), Value::Array(vec![name]));
            }
            if let Some(Value::Array(names)) = tag.get_mut("enum")
                && let Some(name) = names.first().and_then(Value::as_str)
                && let Some(other) = respell(name)
                && !names.iter().any(|name| *name == other)
            {
                names.push(other.into());
            }
        }
    }
}
