//! Places in a configuration file: which bytes a path of keys stands for, and on which line they are.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::upgrade::upgrade;

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

/// The text of a configuration file, with what is needed to point into it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Source(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    file: String,
    text: String,
    // Both found when first asked for: a configuration without a mistake never pays for them.
    /// The byte at which each line starts; the first is 0.
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
    /// The text of a file; `file` is its name as messages show it.
    pub fn new(file: impl Into<String>, text: impl Into<String>) -> Self {
        let (lines, spans, hidden) = Default::default();
        Self(Arc::new(Inner { file: file.into(), text: text.into(), lines, spans, hidden }))
    }

    /// The name of the file, as messages show it.
    pub fn file(&self) -> &str {
        &self.0.file
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.0.text
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

    /// The line and the column of a byte, both counted from 1, the column in characters.
    /// A byte beyond the end of the text is taken for the end.
    pub fn line_col(&self, byte: usize) -> (usize, usize) {
        let byte = self.text().floor_char_boundary(byte);
        // The first line starts at 0, so there is always one that starts no later than the byte.
        let lines = self.lines();
        let line = lines.partition_point(|&start| start <= byte);
        let before = &self.text()[lines[line - 1]..byte];
        (line, before.chars().count() + 1)
    }

    /// A line without its line break, by its number from 1, and the byte at which it starts.
    /// There is nothing on a line that the text does not have.
    pub(super) fn line(&self, number: usize) -> (usize, &str) {
        let end = self.text().len();
        let bound = |at: usize| self.lines().get(at).copied().unwrap_or(end);
        let start = bound(number.saturating_sub(1));
        let line = &self.text()[start..bound(number)];
        (start, line.trim_end_matches(['\r', '\n']))
    }

    fn lines(&self) -> &[usize] {
        self.0.lines.get_or_init(|| {
            let ends = self.text().match_indices('\n').map(|(at, _)| at + 1);
            std::iter::once(0).chain(ends).collect()
        })
    }

    fn node(&self, path: &[PathStep<'_>]) -> &Node {
        let mut node = self.0.spans.get_or_init(|| {
            let (mut tree, _) = DeTable::parse_recoverable(self.text());
            upgrade(&mut tree, &mut |_| {});
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
        assert_eq!(source.line_col(at), (3, 15));
        assert_eq!(source.line_col(at + 1), (3, 15));
        assert_eq!(source.line_col(0), (1, 1));
        assert_eq!(source.line_col(usize::MAX), (8, 1));
        assert_eq!(source.line(3).1, "alias = \"ä\" # ü");
        assert_eq!(source.line(99).1, "");
    }
}
