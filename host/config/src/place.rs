//! Places in a configuration: which bytes a path of keys stands for, and on which line of which file they are.
//!
//! The bytes of all files that make up a configuration are numbered as if the files stood one after the other, so that a
//! place is one range, whichever file it is in.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::combined;
use super::include::Included;

/// One step of the path to a value.
///
/// Paths follow [`Config`](super::Config), not the file: the first `[[devices]]` of an old file is
/// `["bindings", 0]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathStep<'a> {
    /// The value under this key of a table.
    Key(&'a str),
    /// The item of an array, counted from 0.
    Index(usize),
}

impl<'a> From<&'a str> for PathStep<'a> {
    fn from(key: &'a str) -> Self {
        Self::Key(key)
    }
}

impl From<usize> for PathStep<'_> {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// A line of a file that makes up a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location<'s> {
    /// The name of the file, as messages show it.
    pub file: &'s str,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
}

impl fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column } = self;
        write!(f, "{file}:{line}:{column}")
    }
}

/// A file's text as a part of a configuration.
#[derive(Debug)]
pub(super) struct Part {
    /// The name of the file, as messages show it.
    pub file: String,
    pub text: Arc<str>,
    /// The place of its first byte among those of all parts.
    pub start: usize,
}

/// The text of a configuration file, those of the files that it includes, and what is needed to point into them. Cheap
/// to clone.
#[derive(Debug, Clone)]
pub struct Source(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The file itself, and then those that it includes. Never empty.
    parts: Vec<Part>,
    included: Included,
    // Both found when first asked for: a configuration without a mistake never pays for them.
    /// The place at which each line of each part starts; the first is 0.
    lines: OnceLock<Vec<usize>>,
    spans: OnceLock<Node>,
    /// Made when a reader other than the owner first asks for it.
    hidden: OnceLock<String>,
}

/// The bytes of a value and of what is in it.
#[derive(Debug)]
struct Node {
    key: Range<usize>,
    value: Range<usize>,
    inside: Inside,
}

#[derive(Debug)]
enum Inside {
    Nothing,
    Table(HashMap<String, Node>),
    Array(Vec<Node>),
}

impl Source {
    /// The text of a file that includes no other; `file` is its name as messages show it.
    pub fn new(file: impl Into<String>, text: impl Into<Arc<str>>) -> Self {
        let part = Part { file: file.into(), text: text.into(), start: 0 };
        Self::of(vec![part], Included::default())
    }

    /// The texts of a file and of those that it includes, in this order.
    pub(super) fn of(parts: Vec<Part>, included: Included) -> Self {
        let (lines, spans, hidden) = Default::default();
        Self(Arc::new(Inner { parts, included, lines, spans, hidden }))
    }

    /// The name of the file itself, as messages show it.
    pub fn file(&self) -> &str {
        &self.0.parts[0].file
    }

    /// The whole text of the file itself, without what it includes.
    pub fn text(&self) -> &str {
        &self.0.parts[0].text
    }

    /// The same, to be kept.
    pub(super) fn shared_text(&self) -> Arc<str> {
        Arc::clone(&self.0.parts[0].text)
    }

    /// What it includes, as it was read.
    pub fn included(&self) -> &Included {
        &self.0.included
    }

    /// The files that make it up, each with its text: itself, and those that it includes in the order in which they count.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.parts.iter().map(|part| (part.file.as_str(), &*part.text))
    }

    /// The file in which the value at `path` stands, and its text. Of a value that is in none, the file in which the
    /// nearest one around it stands.
    pub fn file_of(&self, path: &[PathStep<'_>]) -> (&str, &str) {
        let part = self.part(self.place(path).start);
        (&part.file, &part.text)
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.0.parts
    }

    /// The file that a place is in. What lies beyond the last one's end is taken for its end.
    fn part(&self, place: usize) -> &Part {
        let behind = self.0.parts.partition_point(|part| part.start <= place);
        &self.0.parts[behind.saturating_sub(1)]
    }

    /// The folder of the file in which the value at `path` stands: what relative paths in it start from.
    pub fn folder_of(&self, path: &[PathStep<'_>]) -> &Path {
        // A place need not be looked for where there is one file.
        let file = if self.0.parts.len() == 1 { self.file() } else { self.file_of(path).0 };
        Path::new(file).parent().unwrap_or(Path::new("."))
    }

    /// The text as others than its owner see it, without private values. See [`hidden`](conductor_stdx::hidden).
    pub fn hidden(&self) -> &str {
        self.0.hidden.get_or_init(|| conductor_stdx::hidden::hide(self.text()))
    }

    /// The bytes of the value at `path`. Of a table under a header, that is the header.
    ///
    /// Where the file has no such value, the place is that of the nearest one around it: a default has
    /// none of its own.
    pub fn place(&self, path: &[PathStep<'_>]) -> Range<usize> {
        self.node(path).value.clone()
    }

    /// The bytes of the last key in `path`, for a mistake that is about the key and not its value.
    /// An item of an array has no key: its place is that of [`place`](Self::place).
    pub fn key_place(&self, path: &[PathStep<'_>]) -> Range<usize> {
        self.node(path).key.clone()
    }

    /// The file, the line and the column of a place. One beyond the end of a file is taken for its end.
    pub fn location(&self, place: usize) -> Location<'_> {
        let part = self.part(place);
        let place = part.start + part.text.floor_char_boundary(place - part.start);
        // The first line of every part starts where the part does, so there is always one that starts no later.
        let lines = self.lines();
        let (first, line) = (begin(lines, part.start), begin(lines, place));
        let before = &part.text[lines[line] - part.start..place - part.start];
        Location { file: &part.file, line: line - first + 1, column: before.chars().count() + 1 }
    }

    /// The place in its own file, in bytes.
    pub(super) fn in_file(&self, place: &Range<usize>) -> Range<usize> {
        let start = self.part(place.start).start;
        place.start - start..place.end.max(place.start) - start
    }

    /// The line that a place is on, without its line break, and the place at which it starts.
    pub(super) fn line_at(&self, place: usize) -> (usize, &str) {
        let part = self.part(place);
        let lines = self.lines();
        let line = begin(lines, place);
        let start = lines[line] - part.start;
        let end = lines.get(line + 1).map_or(part.text.len(), |next| (next - part.start).min(part.text.len()));
        (lines[line], part.text[start..end].trim_end_matches(['\r', '\n']))
    }

    fn lines(&self) -> &[usize] {
        self.0.lines.get_or_init(|| {
            let mut lines = Vec::new();
            for Part { text, start, .. } in &self.0.parts {
                lines.push(*start);
                lines.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| start + at + 1));
            }
            lines
        })
    }

    fn node(&self, path: &[PathStep<'_>]) -> &Node {
        let mut node = self.0.spans.get_or_init(|| {
            let tree = combined(self.parts().iter().map(|part| (part.start, &*part.text))).tree;
            let span = tree.span();
            Node::table(span.clone(), span, tree.get_ref())
        });
        for step in path {
            let next = match (step, &node.inside) {
                (PathStep::Key(key), Inside::Table(keys)) => keys.get(*key),
                (PathStep::Index(index), Inside::Array(items)) => items.get(*index),
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }
}

/// The number of the last line that begins no later than a place, from 0.
fn begin(lines: &[usize], place: usize) -> usize {
    lines.partition_point(|&start| start <= place).saturating_sub(1)
}

impl Node {
    fn new(key: Range<usize>, value: &Spanned<DeValue<'_>>) -> Self {
        let span = value.span();
        match value.get_ref() {
            DeValue::Table(table) => Self::table(key, span, table),
            DeValue::Array(array) => {
                let items = array.iter().map(|item| Self::new(item.span(), item));
                let inside = Inside::Array(items.collect());
                Self { key, value: span, inside }
            }
            _ => Self { key, value: span, inside: Inside::Nothing },
        }
    }

    fn table(key: Range<usize>, value: Range<usize>, table: &DeTable<'_>) -> Self {
        let keys = table.iter();
        let keys = keys.map(|(key, value)| (key.get_ref().to_string(), Self::new(key.span(), value)));
        let inside = Inside::Table(keys.collect());
        Self { key, value, inside }
    }
}

#[cfg(test)]
mod tests {
    use super::PathStep::{Index, Key};
    use super::*;

    const TEXT: &str = "# é\n[[devices]]\nalias = \"ä\" # ü\n[[bindings]]\nalias = \"b\"\n[device]\nname = 'n'\n";

    fn quoted(path: &[PathStep<'_>]) -> &'static str {
        &TEXT[Source::new("x", TEXT).place(path)]
    }

    #[test]
    fn a_path_leads_to_a_value_or_to_what_is_around_it() {
        assert_eq!(quoted(&[Key("bindings"), Index(0), Key("alias")]), "\"ä\"");
        assert_eq!(quoted(&[Key("bindings"), Index(0)]), "[[devices]]");
        assert_eq!(quoted(&[Key("bindings"), Index(1), Key("alias")]), "\"b\"");
        assert_eq!(quoted(&[Key("bindings"), Index(1), Key("enabled")]), "[[bindings]]");
        assert_eq!(quoted(&[Key("bindings"), Index(2), Key("name")]), "'n'");
        assert_eq!(quoted(&[Key("modes")]), "");
    }

    #[test]
    fn a_key_has_a_place_of_its_own() {
        let source = Source::new("x", TEXT);
        assert_eq!(&TEXT[source.key_place(&["bindings".into(), 0.into(), "alias".into()])], "alias");
    }

    #[test]
    fn columns_count_characters() {
        let source = Source::new("x", TEXT);
        let at = TEXT.find('ü').expect("an ü");
        let line_col = |place| {
            let Location { line, column, .. } = source.location(place);
            (line, column)
        };
        assert_eq!(line_col(at), (3, 15));
        assert_eq!(line_col(at + 1), (3, 15));
        assert_eq!(line_col(0), (1, 1));
        assert_eq!(line_col(usize::MAX), (8, 1));
        assert_eq!(source.line_at(at).1, "alias = \"ä\" # ü");
        assert_eq!(source.line_at(usize::MAX).1, "");
    }
}
