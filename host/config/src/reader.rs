//! Incremental reading of a configuration: parts that have not changed since the last time are not parsed anew.
//!
//! Nearly all of a long file are mappings, each in lines of its own. A person changes one of them, or a few, and
//! the rest is known by its text. So the text is cut into blocks, one a mapping, and what is around them; what is
//! around is read each time, and its places are counted as if the blocks were there; of the blocks only those are
//! read that were not there before. Wherever that does not go without a doubt (a file of another form, a mistake),
//! the whole text is read as [`parse_with`] does, which finds every mistake with its place.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::sync::Arc;

use memchr::memmem;
use serde::Deserialize as _;
use toml::de::{DeTable, DeValue, Deserializer};

use super::diagnostic::{Diagnostics, Severity};
use super::include::Included;
use super::names::Use;
use super::place::Source;
use super::{Config, Examined, Loaded, Mapping, examine, parse_with};

/// What stands before a mapping of a mode, for it to be read by itself.
const SOME_MODE: &str = "[[modes]]\nname = \"-\"\n";

/// Reads configurations; it knows the mappings of the last one that had no mistake.
#[derive(Debug, Default)]
pub struct Reader {
    /// In the order of the file.
    known: Vec<Arc<Known>>,
}

/// What became of a block.
#[derive(Debug)]
struct Known {
    text: Box<str>,
    mapping: Arc<Mapping>,
    /// The names in it, with their places from the block's first byte on.
    uses: Vec<(&'static str, Use)>,
}

impl Reader {
    /// The same as [`parse_with`], only faster where the text is like the last one and includes no file.
    ///
    /// # Errors
    /// The same.
    pub fn parse(&mut self, text: &str, file_name: &str, included: &Included) -> Result<Loaded, Diagnostics> {
        self.piecewise(text, file_name).map_or_else(|| parse_with(text, file_name, included), Ok)
    }

    /// The configuration, read block by block; `None` if that can't be done, or something is wrong.
    fn piecewise(&mut self, text: &str, file_name: &str) -> Option<Loaded> {
        let cut = cut(text)?;
        let Examined { tree, mut found, names, .. } = examine([(0, cut.around.as_str())].into_iter());
        let mut names = names?;
        if !found.is_empty() || !is_open_for(tree.get_ref(), cut.modes) {
            return None;
        }
        names.shift(|place| cut.missing_before(place));
        let mut config = Config::deserialize(Deserializer::from(tree)).ok()?;
        let known = self.known(&cut.blocks)?;
        let mut of_block = known.iter();
        for blocks in cut.blocks.chunk_by(|one, other| one.mode == other.mode) {
            let mappings = match blocks[0].mode {
                None => &mut config.global_mappings,
                Some(mode) => &mut config.modes.get_mut(mode)?.mappings,
            };
            mappings.reserve(blocks.len());
            for (block, known) in blocks.iter().zip(of_block.by_ref()) {
                for (kind, Use { name, place, must_exist }) in &known.uses {
                    let place = place.start + block.start..place.end + block.start;
                    names.refer(kind, Arc::clone(name), place, *must_exist);
                }
                mappings.push(Arc::clone(&known.mapping));
            }
        }
        let source = Source::new(file_name, text);
        names.check(&source, &mut |diagnostic| found.push(diagnostic));
        if found.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            return None;
        }
        self.known = known;
        let mut warnings = Diagnostics::new(source.clone());
        warnings.extend(found);
        Some(Loaded { config, source, warnings })
    }

    /// What becomes of each block; `None` if anything is wrong with one.
    fn known(&self, blocks: &[Block<'_>]) -> Option<Vec<Arc<Known>>> {
        let is = |at: usize, block: Option<&Block<'_>>| {
            let text = self.known.get(at).map(|known| &*known.text);
            text.is_some() && text == block.map(|block| block.text)
        };
        // Looking for a text anywhere is for those that people have moved.
        let places: LazyCell<HashMap<&str, usize>, _> =
            LazyCell::new(|| self.known.iter().enumerate().map(|(at, known)| (&*known.text, at)).collect());
        let mut next = 0;
        let mut all = Vec::with_capacity(blocks.len());
        for (index, block) in blocks.iter().enumerate() {
            let following = blocks.get(index + 1);
            let found = if is(next, Some(block)) {
                Some(next)
            } else if is(next + 1, following) {
                // Changed where it stands.
                next += 1;
                None
            } else if is(next, following) {
                // Put in between.
                None
            } else {
                places.get(block.text).copied()
            };
            all.push(match found {
                Some(at) => {
                    next = at + 1;
                    Arc::clone(&self.known[at])
                }
                None => Arc::new(read(block)?),
            });
        }
        Some(all)
    }
}

/// A mapping with all that stands under its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Block<'t> {
    text: &'t str,
    /// Its first byte in the whole text.
    start: usize,
    /// The mode that it belongs to, counted from 0; none is all of them.
    mode: Option<usize>,
}

/// A text in pieces.
struct Cut<'t> {
    /// The text without the blocks.
    around: String,
    /// Where blocks are missing in it, and how many bytes have been missing up to there and with them.
    gaps: Vec<(usize, usize)>,
    blocks: Vec<Block<'t>>,
    /// How many modes have a header.
    modes: usize,
}

impl Cut<'_> {
    /// How many bytes are missing before a place in what is around.
    fn missing_before(&self, place: usize) -> usize {
        let gaps = self.gaps.partition_point(|(at, _)| *at <= place);
        gaps.checked_sub(1).map_or(0, |last| self.gaps[last].1)
    }
}

/// Cuts a text at its headers; `None` if a line might be one or not.
fn cut(text: &str) -> Option<Cut<'_>> {
    // Within such strings a line can look like a header.
    if [b"\"\"\"", b"'''"].iter().any(|quotes| memmem::find(text.as_bytes(), *quotes).is_some()) {
        return None;
    }
    let (mut blocks, mut modes): (Vec<Block<'_>>, usize) = (Vec::new(), 0);
    // The block that is not at its end yet: where it begins, its mode, and how headers in it begin.
    let mut open: Option<(usize, Option<usize>, &str)> = None;
    let mut at = 0;
    while at < text.len() {
        let line = &text[at..];
        let line = &line[..memchr::memchr(b'\n', line.as_bytes()).map_or(line.len(), |end| end + 1)];
        if line.bytes().find(|byte| !matches!(byte, b' ' | b'\t')) == Some(b'[') {
            let header = header(line)?;
            if !open.is_some_and(|(.., inside)| header.name.starts_with(inside)) {
                blocks.extend(open.take().map(|(start, mode, _)| Block { text: &text[start..at], start, mode }));
                match header {
                    Header { name: "modes", list: true } => modes += 1,
                    Header { name: "global_mappings", list: true } => open = Some((at, None, "global_mappings.")),
                    Header { name: "modes.mappings", list: true } => {
                        open = Some((at, Some(modes.checked_sub(1)?), "modes.mappings."));
                    }
                    _ => {}
                }
            }
        }
        at += line.len();
    }
    blocks.extend(open.map(|(start, mode, _)| Block { text: &text[start..], start, mode }));
    let (mut around, mut gaps, mut missing) = (String::new(), Vec::<(usize, usize)>::new(), 0);
    for Block { text: block, start, .. } in &blocks {
        around.push_str(&text[around.len() + missing..*start]);
        missing += block.len();
        match gaps.last_mut() {
            Some((at, with_it)) if *at == around.len() => *with_it = missing,
            _ => gaps.push((around.len(), missing)),
        }
    }
    around.push_str(&text[around.len() + missing..]);
    Some(Cut { around, gaps, blocks, modes })
}

/// The name in a header, of bare keys; `list` tells `[[name]]` from `[name]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header<'t> {
    name: &'t str,
    list: bool,
}

/// `None` if it is not a header, or one that can be written more simply.
fn header(line: &str) -> Option<Header<'_>> {
    let line = line.split('#').next()?.trim_matches([' ', '\t', '\r', '\n']);
    let inner = line.strip_prefix('[')?.strip_suffix(']')?;
    let (name, list) = match inner.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        Some(name) => (name, true),
        None => (inner, false),
    };
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (!name.is_empty() && name.bytes().all(is_bare)).then_some(Header { name, list })
}

/// Whether blocks can be put into what is around them: no mapping is there in another form, and every mode has a
/// header.
fn is_open_for(around: &DeTable<'_>, modes: usize) -> bool {
    if around.contains_key("global_mappings") || around.contains_key("include") {
        return false;
    }
    match around.get("modes").map(|modes| modes.get_ref()) {
        None => modes == 0,
        Some(DeValue::Array(all)) => {
            let open = |mode: &DeValue<'_>| mode.as_table().is_some_and(|mode| !mode.contains_key("mappings"));
            all.len() == modes && all.iter().all(|mode| open(mode.get_ref()))
        }
        Some(_) => false,
    }
}

/// Reads a block by itself; `None` if anything is wrong with it.
fn read(block: &Block<'_>) -> Option<Known> {
    let (before, text) = match block.mode {
        None => (0, block.text.to_owned()),
        Some(_) => (SOME_MODE.len(), [SOME_MODE, block.text].concat()),
    };
    let Examined { tree, found, names, .. } = examine([(0, text.as_str())].into_iter());
    let names = names.filter(|names| found.is_empty() && !names.gives_after(before))?;
    let mut config = Config::deserialize(Deserializer::from(tree)).ok()?;
    let mappings = match block.mode {
        None => &mut config.global_mappings,
        Some(_) => &mut config.modes.first_mut()?.mappings,
    };
    let mapping = mappings.pop().filter(|_| mappings.is_empty())?;
    let uses = names.uses().filter(|(_, its)| its.place.start >= before).map(|(kind, mut its)| {
        its.place = its.place.start - before..its.place.end - before;
        (kind, its)
    });
    Some(Known { text: block.text.into(), mapping, uses: uses.collect() })
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use proptest::prelude::*;

    const SHOW: &str = "\
# what mappings there are
[[bindings]]
alias = \"pads\"
name = \"Pad\"

[[modes]]
name = \"Play\"
[[modes.mappings]] # one
trigger = { type = \"Note\", note = 1, device = \"pads\" }
action = { type = \"ModeChange\", mode = \"Mix\" }
  [[modes.mappings]]
  [modes.mappings.trigger]
  type = \"Note\"
  note = 2
  device = \"nobody\"
  [modes.mappings.action]
  type = \"Sequence\"
  [[modes.mappings.action.actions]]
  type = \"Suppress\"

[[modes]]
name = \"Mix\"
[[global_mappings]]
trigger = { type = \"Note\", note = 3 }
action = { type = \"MidiForward\", target = \"pads\" }

[features.osc-output]
enabled = true
[[modes.mappings]]
trigger = { type = \"Note\", note = 4 }
action = { type = \"Suppress\" }";

    /// Both ways of reading come to the same.
    fn same(reader: &mut Reader, text: &str) {
        let (one, other) = (reader.parse(text, "c.toml", &Included::default()), parse(text, "c.toml"));
        match (one, other) {
            (Ok(one), Ok(other)) => {
                assert_eq!(one.config, other.config, "{text}");
                assert_eq!(one.warnings.to_string(), other.warnings.to_string(), "{text}");
                assert_eq!(one.source.text(), text);
            }
            (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string(), "{text}"),
            (one, other) => panic!("{:?} and {:?} of\n{text}", one.is_ok(), other.is_ok()),
        }
    }

    #[test]
    fn a_file_is_read_in_pieces_and_only_what_is_new_is_read_anew() {
        let mut reader = Reader::default();
        let loaded = reader.piecewise(SHOW, "c.toml").expect("a file that can be cut");
        assert_eq!(loaded.config, parse(SHOW, "c.toml").unwrap().config);
        assert_eq!(loaded.config.modes.iter().map(|mode| mode.mappings.len()).collect::<Vec<_>>(), [2, 1]);
        same(&mut reader, SHOW);
        assert_eq!(reader.known.len(), 4);

        // What is known is taken as it is: here is a mapping that no file has.
        let known = reader.known.iter_mut().find(|known| known.text.contains("note = 3")).unwrap();
        Arc::make_mut(&mut Arc::get_mut(known).unwrap().mapping).name = Some("known".into());
        let changed = SHOW.replace("note = 4", "note = 5");
        let loaded = reader.parse(&changed, "c.toml", &Included::default()).unwrap();
        assert_eq!(loaded.config.global_mappings[0].name.as_deref(), Some("known"));
        assert_eq!(reader.known.len(), 4, "what is not in the file any more is forgotten");
        let around = |text: &str| text.replace("note = 3 }", "note = 3 }\nname = \"other\"");
        let loaded = reader.parse(&around(&changed), "c.toml", &Included::default()).unwrap();
        assert_eq!(loaded.config.global_mappings[0].name.as_deref(), Some("other"), "what is not known is read");
        let loaded = reader.parse(&changed, "c.toml", &Included::default()).unwrap();
        let moved = loaded.source.place(&["modes".into(), 1.into(), "mappings".into(), 0.into(), "trigger".into()]);
        assert!(changed[moved].contains("note = 5"));
    }

    #[test]
    fn mistakes_are_found_with_their_places_as_ever() {
        let mut reader = Reader::default();
        same(&mut reader, SHOW);
        for (old, new) in [
            ("note = 3", "note = 300"),
            ("note = 3", "note = "),
            ("\"Mix\"", "\"Mox\""),
            ("alias = \"pads\"", "alias = \"knobs\""),
            ("name = \"Mix\"", "name = \"Play\""),
            ("[[global_mappings]]", "[global_mappings]"),
            ("[[global_mappings]]", "[[\"global_mappings\"]]"),
            ("[[global_mappings]]", "global_mappings = []\n[[global_mappings]]"),
            ("name = \"Mix\"", "name = \"Mix\"\nmappings = []"),
            ("[[modes]]", "[[modes.mappings]]"),
            ("[[modes]]", "[modes]"),
            ("[[bindings]]", "[global_mappings.x]\n[[bindings]]"),
            ("[features.osc-output]", "[features.osc-output]\n[global_mappings.mapping]"),
            ("enabled = true", "enabled = \"\"\"\n[[global_mappings]]\n\"\"\""),
            ("note = 3", "note = [\n[1]\n]"),
            ("# one", "[1]"),
            ("\n", "\r\n"),
            ("\n", "\r"),
        ] {
            same(&mut reader, &SHOW.replace(old, new));
            same(&mut reader, &SHOW.replacen(old, new, 1));
        }
        same(&mut reader, SHOW);
        same(&mut reader, "");
    }

    proptest! {
        #[test]
        fn a_file_means_the_same_however_it_is_read(
            changes in proptest::collection::vec((0..64_usize, 0..64_usize, 0..4_u8), 1..6),
        ) {
            let mut reader = Reader::default();
            let mut lines: Vec<String> = SHOW.lines().map(str::to_owned).collect();
            for (from, to, change) in changes {
                let (from, to) = (from % lines.len(), to % lines.len());
                match change {
                    0 => lines.swap(from, to),
                    1 => drop(lines.remove(from)),
                    2 => lines.insert(from, lines[to].clone()),
                    _ => lines[from] = lines[from].replace('1', "7").replace("Note", "CC"),
                }
                if lines.is_empty() {
                    lines.push(String::new());
                }
                same(&mut reader, &lines.join("\n"));
            }
        }
    }
}
