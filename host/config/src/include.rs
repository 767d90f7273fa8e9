//! Included files of a configuration: which files `include` names, and what they say.
//!
//! The files are read once, before the configuration is parsed: [`Included::read`]. What was read is kept beside the
//! text, and another text of the same file is parsed with them ([`Source::parse`](super::Source::parse)), so that a text from
//! elsewhere names no file of this computer.
//!
//! Of all files together one configuration is made: lists at the top (`bindings`, `modes`, ...) are continued, first by
//! the file that names another one, then by those that it names, in their order. Of a table, each key may be set
//! once. An entry that is not absolute stays in the folder of the file that names it, or in that of the configuration.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use conductor_stdx::plain_file;

/// How many files a configuration may include, all in all.
pub const MAX_FILES: usize = 64;
/// How many files may stand between the configuration and one that is included, and that one.
pub const MAX_DEPTH: usize = 8;

/// The key.
const KEY: &str = "include";

/// What a configuration includes, as it was read. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Included(Arc<Vec<Entry>>);

/// One entry of an `include`.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    /// The file that it stands in, as messages show it.
    by: String,
    written: String,
    /// What it names, or why that can't be read.
    found: Result<Vec<File>, Wrong>,
}

/// A file that is included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    /// As messages show it.
    pub name: String,
    pub text: Arc<str>,
}

/// Why an entry can't be read, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub what: String,
    pub help: Option<&'static str>,
}

fn wrong(what: impl Into<String>, help: &'static str) -> Wrong {
    Wrong { what: what.into(), help: Some(help) }
}

/// What changes which files are included, and what they say: files of this name in this folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watched {
    /// The folder.
    pub folder: PathBuf,
    /// The name; `*` in it stands for any text.
    pub name: String,
}

impl Included {
    /// Reads what the configuration `text` includes, which is in `file`. Whatever goes wrong is kept, and becomes a
    /// mistake of the entry as the text is parsed.
    pub fn read(text: &str, file: &str) -> Self {
        // Nearly every configuration is one file, and is not parsed for this.
        if !may_include(text) {
            return Self::default();
        }
        let path = Path::new(file);
        let mut reading = Reading {
            root: folder_of(path).canonicalize().ok(),
            files: path
                .canonicalize()
                .map(|path| (path, File { name: file.to_owned(), text: text.into() }))
                .into_iter()
                .collect(),
            room: plain_file::MAX_TEXT.saturating_sub(text.len() as u64),
            entries: Vec::new(),
        };
        reading.entries_of(text, file, 1);
        Self(Arc::new(reading.entries))
    }

    /// What to watch for changes; nothing if no other file is included.
    pub fn watched(&self) -> Vec<Watched> {
        let watched = self.0.iter().filter_map(|entry| {
            let path = folder_of(Path::new(&entry.by)).join(&entry.written);
            Some(Watched { folder: folder_of(&path).to_owned(), name: path.file_name()?.to_str()?.to_owned() })
        });
        watched.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The same with another text in one of the files.
    pub(super) fn with_text(&self, file: &str, text: &str) -> Self {
        let text: Arc<str> = text.into();
        let changed = |known: &File| match known.name == file {
            true => File { name: known.name.clone(), text: Arc::clone(&text) },
            false => known.clone(),
        };
        let entries = self.0.iter().map(|Entry { by, written, found }| Entry {
            by: by.clone(),
            written: written.clone(),
            found: found.as_ref().map(|files| files.iter().map(changed).collect()).map_err(Wrong::clone),
        });
        Self(Arc::new(entries.collect()))
    }

    /// What an entry of a file names, or why that can't be read. `None` if it was not there when this was read.
    pub(super) fn answer(&self, by: &str, written: &str) -> Option<&Result<Vec<File>, Wrong>> {
        self.0.iter().find(|entry| entry.by == by && entry.written == written).map(|entry| &entry.found)
    }
}

impl Watched {
    /// Whether a file has such a name.
    pub fn is(&self, name: &str) -> bool {
        matches(&self.name, name)
    }
}

/// The folder of a file; the current one for a bare name.
fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Reading, as far as it has come.
struct Reading {
    /// The folder of the configuration; `None` if it is in no file.
    root: Option<PathBuf>,
    /// The files that were read, the configuration itself among them.
    files: HashMap<PathBuf, File>,
    /// How many bytes may still be read.
    room: u64,
    entries: Vec<Entry>,
}

impl Reading {
    fn entries_of(&mut self, text: &str, by: &str, depth: usize) {
        for (_, written) in entries(text) {
            if self.entries.iter().any(|entry| entry.by == by && entry.written == written) {
                continue;
            }
            let mut new = Vec::new();
            let found = if depth > MAX_DEPTH {
                Err(wrong(
                    format!("{written:?} is one of too many files that include each other"),
                    "include it higher up",
                ))
            } else {
                self.find(by, &written)
                    .and_then(|paths| paths.iter().map(|path| self.file(path, &mut new)).collect::<Result<Vec<_>, _>>())
            };
            self.entries.push(Entry { by: by.to_owned(), written, found });
            for File { name, text } in new {
                self.entries_of(&text, &name, depth + 1);
            }
        }
    }

    /// The files that an entry names; may be empty if it is a pattern.
    fn find(&self, by: &str, written: &str) -> Result<Vec<PathBuf>, Wrong> {
        let entry = Path::new(written);
        let folder = folder_of(Path::new(by));
        let outside = || {
            let help = "write the whole path, from the root on, if a file outside this folder is meant";
            Err(wrong(format!("{written:?} leads out of the folder of {by}"), help))
        };
        if !entry.is_absolute()
            && entry.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir))
        {
            return outside();
        }
        // The current folder need not be named.
        let path = if folder == Path::new(".") { entry.to_owned() } else { folder.join(entry) };
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(wrong(format!("{written:?} names no file"), "name one, such as \"bindings.toml\""));
        };
        if entry.parent().is_some_and(|folder| folder.to_string_lossy().contains('*')) {
            return Err(wrong(
                format!("{written:?} has a `*` in a folder's name"),
                "it may stand in the file's name only",
            ));
        }
        let found = if name.contains('*') { named_so(folder_of(&path), name, written)? } else { vec![path] };
        // A link inside may lead outside.
        let within = |path: &PathBuf| {
            let Ok(path) = path.canonicalize() else { return true };
            let folders = [self.root.clone(), folder.canonicalize().ok()];
            folders.iter().flatten().any(|folder| path.starts_with(folder))
        };
        if !entry.is_absolute() && !found.iter().all(within) { outside() } else { Ok(found) }
    }

    /// One file; it is among the `new` ones if it was not read before.
    fn file(&mut self, path: &Path, new: &mut Vec<File>) -> Result<File, Wrong> {
        let name = path.components().collect::<PathBuf>().display().to_string();
        let unreadable = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                wrong(format!("there is no file {name}"), "a path starts from the folder of the file that it stands in")
            }
            _ => Wrong { what: format!("{name}: {error}"), help: None },
        };
        let real = path.canonicalize().map_err(unreadable)?;
        if let Some(known) = self.files.get(&real) {
            return Ok(known.clone());
        }
        if self.files.len() > MAX_FILES {
            let what = format!("{name} is one file too many; a configuration includes up to {MAX_FILES}");
            return Err(Wrong { what, help: None });
        }
        let text = plain_file::read_text(&real, self.room).map_err(|error| match error.kind() {
            std::io::ErrorKind::FileTooLarge => Wrong {
                what: format!("{name} does not fit: all files together may have {} bytes", plain_file::MAX_TEXT),
                help: None,
            },
            _ => unreadable(error),
        })?;
        self.room -= text.len() as u64;
        let file = File { name, text: text.into() };
        self.files.insert(real, file.clone());
        new.push(file.clone());
        Ok(file)
    }
}

/// The files in a folder whose names fit a pattern, in the order of their names.
fn named_so(folder: &Path, pattern: &str, written: &str) -> Result<Vec<PathBuf>, Wrong> {
    let unreadable = |error: std::io::Error| Wrong { what: format!("{}: {error}", folder.display()), help: None };
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let Some(name) = name.to_str().filter(|name| matches(pattern, name)) else { continue };
        names.insert(name.to_owned());
        if names.len() > MAX_FILES {
            return Err(Wrong { what: format!("{written:?} names more than {MAX_FILES} files"), help: None });
        }
    }
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

/// Whether a name fits a pattern, in which `*` stands for any text; names that begin with a full stop are hidden from
/// patterns that begin with `*`.
fn matches(pattern: &str, name: &str) -> bool {
    if pattern.starts_with('*') && name.starts_with('.') {
        return false;
    }
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

/// Whether a line of a text begins with the key. A name or a comment that has the word costs no parsing of the whole text.
fn may_include(text: &str) -> bool {
    let begins_line = |before: &str| {
        let before = before.trim_end_matches(['"', '\'']).trim_end_matches([' ', '\t']);
        before.is_empty() || before.ends_with(['\n', '\u{feff}'])
    };
    memchr::memmem::find_iter(text.as_bytes(), KEY).any(|at| begins_line(&text[..at]))
}

/// The entries of a file's `include`, and where they stand in it.
pub(super) fn entries(text: &str) -> Vec<(Range<usize>, String)> {
    if !may_include(text) {
        return Vec::new();
    }
    let (tree, _) = DeTable::parse_recoverable(text);
    let entries = tree.get_ref().get(KEY).and_then(|value| value.get_ref().as_array());
    let entry = |value: &Spanned<DeValue<'_>>| Some((value.span(), value.get_ref().as_str()?.to_owned()));
    entries.into_iter().flatten().filter_map(entry).collect()
}

/// Something that two files set.
#[derive(Debug)]
pub(super) struct SetTwice {
    pub key: String,
    pub place: Range<usize>,
    pub first: Range<usize>,
}

/// A tree whose places count from `start` on.
pub(super) fn shifted<'t>(table: DeTable<'t>, start: usize) -> DeTable<'t> {
    let moved = |place: Range<usize>| start + place.start..start + place.end;
    let entries = table.into_iter().map(|(key, value)| {
        let place = moved(key.span());
        (Spanned::new(place, key.into_inner()), shifted_value(value, start))
    });
    entries.collect()
}

fn shifted_value<'t>(value: Spanned<DeValue<'t>>, start: usize) -> Spanned<DeValue<'t>> {
    let place = value.span();
    let value = match value.into_inner() {
        DeValue::Table(table) => DeValue::Table(shifted(table, start)),
        DeValue::Array(array) => DeValue::Array(array.into_iter().map(|item| shifted_value(item, start)).collect()),
        other => other,
    };
    Spanned::new(start + place.start..start + place.end, value)
}

/// Continues a configuration with another file's.
pub(super) fn merge<'t>(whole: &mut DeTable<'t>, mut more: DeTable<'t>, twice: &mut Vec<SetTwice>) {
    // The files that it names are parts already.
    more.remove(KEY);
    join(whole, more, true, twice);
}

fn join<'t>(whole: &mut DeTable<'t>, more: DeTable<'t>, is_top: bool, twice: &mut Vec<SetTwice>) {
    for (key, value) in more {
        let name: &str = key.get_ref();
        let Some((first, present)) = whole.get_key_value(name).map(|(key, _)| key.span()).zip(whole.get_mut(name))
        else {
            whole.insert(key, value);
            continue;
        };
        let place = value.span();
        match (present.get_mut(), value.into_inner()) {
            (DeValue::Array(items), DeValue::Array(more)) if is_top => {
                more.into_iter().for_each(|item| items.push(item))
            }
            (DeValue::Table(table), DeValue::Table(more)) => join(table, more, false, twice),
            _ => {
                let place = if key.span().is_empty() { place } else { key.span() };
                twice.push(SetTwice { key: key.into_inner().into_owned(), place, first });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_line_that_begins_with_the_key_may_include() {
        for text in
            ["include = []", "a = 1\r\n  include = []", "\"include\" = []", "'include' = []", "\u{feff}include = []"]
        {
            assert!(may_include(text), "{text}");
        }
        for text in ["", "# include", "[[modes]]\nname = \"include\"", "[a]\nb = { include = 1 }"] {
            assert!(!may_include(text), "{text}");
        }
    }
}
