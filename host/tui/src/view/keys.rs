//! What the words on the screens mean, and every key.

use conductor_screen_text::{Look, Row};

use super::field;
use crate::input::{BINDINGS, Context};

/// Words of the screens that a person who has read nothing can't know.
const WORDS: [(&str, &str); 8] = [
    ("port", "one way into or out of a device; the keys and the lights of one device are often two"),
    ("source", "a device that events come from"),
    ("binding", "a name for a device, and how its ports are recognized; mappings and lights use the name"),
    ("unbound", "a source without a binding: no mapping can name it; mapping a control of it adds one"),
    ("mapping", "what a control does, in one mode or in all"),
    ("rule", "a mapping that is in force"),
    ("plan", "a change of the configuration that waits for a person"),
    ("feature", "a package that adds actions, models or tools, and can do only what it was granted"),
];

pub(super) fn lines(columns: usize) -> Vec<Row> {
    let mut lines = vec![Row::of(Look::Strong, "Words")];
    lines.extend(WORDS.iter().flat_map(|(word, meaning)| field(&format!("  {word}"), Look::Plain, meaning, columns)));
    for context in Context::ALL {
        lines.push(Row::of(Look::Strong, context.name()));
        for binding in BINDINGS.iter().filter(|binding| binding.context == context) {
            let keys: Vec<String> = binding.keys.iter().map(|key| key.name()).collect();
            let row = Row::of(Look::Plain, "  ").cell(Look::Accent, keys.join(" "), 14);
            lines.push(row.put(Look::Plain, binding.what));
        }
    }
    lines
}
