//! The difference between two configurations, as text: whole, and with long values folded.
//!
//! Only the lines inside of one string value are ever folded, as the TOML parser sees them, and their number is said:
//! everything else in a change is shown line by line.

use std::ops::Range;

use similar::{ChangeTag, TextDiff};
use toml_edit::{Document, Item, Value};

/// Lines around each change.
const CONTEXT: usize = 3;
/// Lines of one string value that a folded diff shows.
pub const MAX_VALUE_LINES: usize = 20;

/// A unified diff with three lines around each change; empty if nothing changes.
pub fn unified(file: &str, before: &str, after: &str) -> String {
    TextDiff::from_lines(before, after).unified_diff().context_radius(CONTEXT).header(file, file).to_string()
}

/// As [`unified`], with at most [`MAX_VALUE_LINES`] lines of each string value, and the number of the others in their
/// place. `None` if no value is that long.
pub fn folded(file: &str, before: &str, after: &str) -> Option<String> {
    let (old, new) = (long_values(before), long_values(after));
    if old.is_empty() && new.is_empty() {
        return None;
    }
    let diff = TextDiff::from_lines(before, after);
    let mut out = format!("--- {file}\n+++ {file}\n");
    let mut folded = 0;
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        out.push_str(&format!("{}\n", hunk.header()));
        let mut hidden = 0;
        let mut end = |hidden: &mut usize, out: &mut String| {
            if *hidden > 0 {
                out.push_str(&format!("… {hidden} more lines of this value\n"));
                folded += *hidden;
                *hidden = 0;
            }
        };
        for change in hunk.iter_changes() {
            let (sign, line, values) = match change.tag() {
                ChangeTag::Delete => ('-', change.old_index(), &old),
                ChangeTag::Insert => ('+', change.new_index(), &new),
                ChangeTag::Equal => (' ', change.new_index(), &new),
            };
            if line.is_some_and(|line| values.iter().any(|value| value.contains(&line))) {
                hidden += 1;
                continue;
            }
            end(&mut hidden, &mut out);
            let text = change.value();
            out.push_str(&format!("{sign}{}\n", text.strip_suffix('\n').unwrap_or(text)));
        }
        end(&mut hidden, &mut out);
    }
    (folded > 0).then_some(out)
}

/// The lines of string values beyond the first [`MAX_VALUE_LINES`], without the last line of each; counted from 0.
/// Empty for a text that is no TOML.
fn long_values(text: &str) -> Vec<Range<usize>> {
    let Ok(document) = Document::parse(text) else { return Vec::new() };
    let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let line = |byte: usize| starts.partition_point(|start| *start <= byte).saturating_sub(1);
    let mut found = Vec::new();
    let mut todo: Vec<Part<'_>> = document.iter().map(|(_, item)| Part::Item(item)).collect();
    while let Some(part) = todo.pop() {
        match part {
            Part::Item(Item::Table(table)) => todo.extend(table.iter().map(|(_, item)| Part::Item(item))),
            Part::Item(Item::ArrayOfTables(tables)) => {
                todo.extend(tables.iter().flat_map(|table| table.iter().map(|(_, item)| Part::Item(item))));
            }
            Part::Item(Item::Value(value)) => todo.push(Part::Value(value)),
            Part::Item(Item::None) => {}
            Part::Value(Value::Array(array)) => todo.extend(array.iter().map(Part::Value)),
            Part::Value(Value::InlineTable(table)) => todo.extend(table.iter().map(|(_, value)| Part::Value(value))),
            Part::Value(value) => {
                let Some(span) = value.span().filter(|_| value.is_str()) else { continue };
                let (first, last) = (line(span.start), line(span.end.saturating_sub(1)));
                // The line that ends the value may hold what stands behind it.
                let hidden = first + MAX_VALUE_LINES..last;
                if hidden.len() > 1 {
                    found.push(hidden);
                }
            }
        }
    }
    found
}

/// A part of a document.
enum Part<'d> {
    Item(&'d Item),
    Value(&'d Value),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_folded_and_everything_else_is_shown() {
        let before = "a = 1\n";
        let long = "line\n".repeat(5000);
        let after = format!("a = 1\nb = \"\"\"\n{long}\"\"\"\nc = 2\n");
        let shown = folded("c.toml", before, &after).unwrap();
        assert_eq!(shown.lines().count(), 2 + 1 + 1 + MAX_VALUE_LINES + 1 + 2, "{shown}");
        assert!(shown.contains("\n… 4981 more lines of this value\n+\"\"\"\n+c = 2\n"), "{shown}");
        assert!(unified("c.toml", before, &after).lines().count() > 5000);
        assert_eq!(folded("c.toml", before, "a = 2\n"), None);
    }

    #[test]
    fn what_only_looks_like_a_long_value_is_shown() {
        // Quotes in a string of one line begin no other string.
        let hidden = "[[global_mappings]]\n".repeat(60);
        let after = format!("a = '\"\"\"'\n{hidden}b = '\"\"\"'\n");
        assert_eq!(folded("c.toml", "", &after), None);
        let tables = "[[modes]]\nname = 'x'\n".repeat(60);
        assert_eq!(folded("c.toml", "", &tables), None);
    }
}
