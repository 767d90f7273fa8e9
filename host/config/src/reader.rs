//! Incremental reading of a configuration: parts that have not changed since the last time are not parsed anew.
//!
//! Nearly all of a long file are mappings, each in lines of its own. A person changes one of them, or a few, and
//! the rest is known by its text. So the text is cut into blocks, one a mapping, and what is around them; what is
//! around is read each time, and its places are counted as if the blocks were there; of the blocks only those are
//! read that were not there before, those that follow each other at once. What both texts begin and end with is not even cut anew. Wherever that does not go
//! without a doubt (a file of another form, a mistake), the whole text is read as [`parse_with`] does, which finds every
//! mistake with its place.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::ops::Range;
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
#[derive(Debug)]
pub struct Reader {
    text: Arc<str>,
    blocks: Blocks,
    /// What became of each block.
    known: Vec<Arc<Known>>,
}

impl Default for Reader {
    fn default() -> Self {
        Self { text: "".into(), blocks: Blocks::default(), known: Vec::new() }
    }
}

/// What became of a block.
#[derive(Debug)]
struct Known {
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
        let same = Same::of(&self.text, text);
        let cut = recut(&self.text, &self.blocks, text, &same)?;
        let (around, gaps) = around(text, &cut.blocks);
        let Examined { tree, mut found, names, .. } = examine([(0, around.as_str())].into_iter());
        let mut names = names?;
        if !found.is_empty() || !is_open_for(tree.get_ref(), cut.blocks.modes) {
            return None;
        }
        names.shift(|place| missing_before(&gaps, place));
        let mut config = Config::deserialize(Deserializer::from(tree)).ok()?;
        let known = self.known(text, &cut)?;
        let mut of_block = known.iter();
        for blocks in cut.blocks.all.chunk_by(|one, other| one.mode == other.mode) {
            let mappings = match blocks[0].mode {
                None => &mut config.global_mappings,
                Some(mode) => &mut config.modes.get_mut(mode)?.mappings,
            };
            mappings.extend(of_block.by_ref().take(blocks.len()).map(|known| Arc::clone(&known.mapping)));
        }
        let source = Source::new(file_name, text);
        let uses = cut
            .blocks
            .all
            .iter()
            .zip(&known)
            .flat_map(|(block, known)| known.uses.iter().map(|(kind, its)| (*kind, its, block.start)));
        names.check(uses, &source, &mut |diagnostic| found.push(diagnostic));
        if found.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            return None;
        }
        *self = Self { text: source.shared_text(), blocks: cut.blocks, known };
        let mut warnings = Diagnostics::new(source.clone());
        warnings.extend(found);
        Some(Loaded { config, source, warnings })
    }

    /// What becomes of each block; `None` if anything is wrong with one.
    fn known(&self, text: &str, cut: &Recut) -> Option<Vec<Arc<Known>>> {
        let old: Vec<&str> = self.blocks.all[cut.old.clone()].iter().map(|block| &self.text[block.range()]).collect();
        let blocks = &cut.blocks.all[cut.new.clone()];
        // After the last of each comes what both have.
        let is = |at: usize, index: usize| match (old.get(at), blocks.get(index)) {
            (Some(known), Some(block)) => *known == &text[block.range()],
            (None, None) => at == old.len(),
            _ => false,
        };
        // Looking for a text anywhere is for those that people have moved.
        let places: LazyCell<HashMap<&str, usize>, _> = LazyCell::new(|| {
            self.blocks.all.iter().enumerate().map(|(at, block)| (&self.text[block.range()], at)).collect()
        });
        let mut next = 0;
        let mut found = Vec::with_capacity(blocks.len());
        for (index, block) in blocks.iter().enumerate() {
            let at = if is(next, index) {
                Some(next + cut.old.start)
            } else if is(next + 1, index + 1) {
                // Changed where it stands.
                next += 1;
                None
            } else if is(next, index + 1) {
                // Put in between.
                None
            } else {
                places.get(&text[block.range()]).copied()
            };
            if let Some(at) = at {
                next = (at + 1).saturating_sub(cut.old.start);
            }
            found.push((block, at));
        }
        let mut all = Vec::with_capacity(cut.blocks.all.len());
        all.extend_from_slice(&self.known[..cut.old.start]);
        let are_read = |(block, at): &(&Block, Option<usize>), next: &(&Block, Option<usize>)| {
            at.is_none() && next.1.is_none() && block.mode == next.0.mode
        };
        for blocks in found.chunk_by(are_read) {
            match blocks {
                [(_, Some(at))] => all.push(Arc::clone(&self.known[*at])),
                _ => all.extend(read(text, blocks.iter().map(|(block, _)| *block))?.into_iter().map(Arc::new)),
            }
        }
        all.extend_from_slice(&self.known[cut.old.end..]);
        Some(all)
    }
}

/// How much of two texts is the same, in bytes.
struct Same {
    /// At their beginning.
    first: usize,
    /// At their end, not counting what is in `first`.
    last: usize,
}

impl Same {
    fn of(one: &str, other: &str) -> Self {
        /// Compared at once; where two differ, byte by byte.
        const CHUNK: usize = 256;
        let (one, other) = (one.as_bytes(), other.as_bytes());
        let chunks = one.chunks(CHUNK).zip(other.chunks(CHUNK)).take_while(|(one, other)| one == other);
        let whole = chunks.map(|(one, _)| one.len()).sum::<usize>();
        let bytes = one[whole..].iter().zip(&other[whole..]).take_while(|(one, other)| one == other);
        let first = whole + bytes.count();
        let (one, other) = (&one[first..], &other[first..]);
        let chunks = one.rchunks(CHUNK).zip(other.rchunks(CHUNK)).take_while(|(one, other)| one == other);
        let whole = chunks.map(|(one, _)| one.len()).sum::<usize>();
        let (one, other) = (&one[..one.len() - whole], &other[..other.len() - whole]);
        let bytes = one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other);
        Self { first, last: whole + bytes.count() }
    }
}

/// A mapping with all that stands under its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Block {
    /// Its first byte in the whole text.
    start: usize,
    end: usize,
    /// The mode that it belongs to, counted from 0; `None` if to all of them.
    mode: Option<usize>,
    /// How many modes have a header before it.
    modes: usize,
}

impl Block {
    fn range(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// The blocks of a text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Blocks {
    all: Vec<Block>,
    /// How many modes have a header.
    modes: usize,
}

/// The blocks of a text that is like another.
struct Recut {
    blocks: Blocks,
    /// The blocks of the other text that may not be in this one, by their numbers.
    old: Range<usize>,
    /// The blocks of this one that may not be in the other.
    new: Range<usize>,
}

/// Cuts a text at its headers; `None` if a line might be one or not. Of the text before this one, `last`, the blocks are
/// known.
fn recut(last: &str, known: &Blocks, text: &str, same: &Same) -> Option<Recut> {
    // Within such strings a line can look like a header. What is new begins or ends with what is not, so one may lie on
    // the border.
    const QUOTES: [&str; 2] = ["\"\"\"", "'''"];
    let changed = same.first.saturating_sub(2)..(text.len() - same.last + 2).min(text.len());
    if QUOTES.iter().any(|quotes| memmem::find(&text.as_bytes()[changed.clone()], quotes.as_bytes()).is_some()) {
        return None;
    }
    // The last block that begins where both are the same may have another header now, and then the one before it another
    // end.
    let before = known.all.partition_point(|block| block.start <= same.first).checked_sub(2);
    let (before, at, modes) = before.map_or((0, 0, 0), |before| {
        let block = &known.all[before];
        (before, block.start, block.modes)
    });
    let mut cutter = Cutter { text, at, modes, blocks: known.all[..before].to_vec(), open: None };
    // The first block that begins, with the end of the line before it, where both are the same to their end.
    let last_same = last.len() - same.last;
    let after = known.all.partition_point(|block| block.start <= last_same);
    let Some(next) = known.all.get(after) else {
        cutter.run(text.len())?;
        let new = before..cutter.blocks.len();
        let blocks = Blocks { all: cutter.blocks, modes: cutter.modes };
        return Some(Recut { blocks, old: before..known.all.len(), new });
    };
    let meets = text.len() - (last.len() - next.start);
    cutter.run(meets)?;
    let Cutter { mut blocks, modes, .. } = cutter;
    let new = before..blocks.len();
    let moved = |place: usize| place + meets - next.start;
    let another_mode = |mode: usize| (mode + modes).checked_sub(next.modes);
    for block in &known.all[after..] {
        let mode = match block.mode {
            None => None,
            Some(mode) => Some(another_mode(mode)?),
        };
        let (start, end) = (moved(block.start), moved(block.end));
        blocks.push(Block { start, end, mode, modes: another_mode(block.modes)? });
    }
    let blocks = Blocks { all: blocks, modes: another_mode(known.modes)? };
    Some(Recut { blocks, old: before..after, new })
}

/// Cuts a text, line by line.
struct Cutter<'t> {
    text: &'t str,
    /// The line that is looked at next.
    at: usize,
    /// How many modes had a header up to there.
    modes: usize,
    blocks: Vec<Block>,
    /// The block that is not at its end yet: where it begins, its mode, and how headers in it begin.
    open: Option<(usize, Option<usize>, &'static str)>,
}

impl Cutter<'_> {
    /// Cuts up to a place where a line begins and a block ends, or the text.
    fn run(&mut self, end: usize) -> Option<()> {
        while self.at < end {
            let line = &self.text[self.at..];
            let line = &line[..memchr::memchr(b'\n', line.as_bytes()).map_or(line.len(), |end| end + 1)];
            if line.bytes().find(|byte| !matches!(byte, b' ' | b'\t')) == Some(b'[') {
                self.header(header(line)?)?;
            }
            self.at += line.len();
        }
        self.close();
        Some(())
    }

    fn header(&mut self, header: Header<'_>) -> Option<()> {
        if self.open.is_some_and(|(.., inside)| header.name.starts_with(inside)) {
            return Some(());
        }
        self.close();
        match header {
            Header { name: "modes", list: true } => self.modes += 1,
            Header { name: "global_mappings", list: true } => self.open = Some((self.at, None, "global_mappings.")),
            Header { name: "modes.mappings", list: true } => {
                self.open = Some((self.at, Some(self.modes.checked_sub(1)?), "modes.mappings."));
            }
            _ => {}
        }
        Some(())
    }

    fn close(&mut self) {
        let (end, modes) = (self.at, self.modes);
        self.blocks.extend(self.open.take().map(|(start, mode, _)| Block { start, end, mode, modes }));
    }
}

/// The text without the blocks; and where blocks are missing in it, and how many bytes have been missing up to there and
/// with them.
fn around(text: &str, blocks: &Blocks) -> (String, Vec<(usize, usize)>) {
    let (mut around, mut gaps, mut missing) = (String::new(), Vec::<(usize, usize)>::new(), 0);
    for Block { start, end, .. } in &blocks.all {
        around.push_str(&text[around.len() + missing..*start]);
        missing += end - start;
        match gaps.last_mut() {
            Some((at, with_it)) if *at == around.len() => *with_it = missing,
            _ => gaps.push((around.len(), missing)),
        }
    }
    around.push_str(&text[around.len() + missing..]);
    (around, gaps)
}

/// How many bytes are missing before a place in what is around.
fn missing_before(gaps: &[(usize, usize)], place: usize) -> usize {
    let before = gaps.partition_point(|(at, _)| *at <= place);
    before.checked_sub(1).map_or(0, |last| gaps[last].1)
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

/// Reads blocks of one mode; `None` if anything is wrong with one.
fn read<'b>(text: &str, blocks: impl Iterator<Item = &'b Block> + Clone) -> Option<Vec<Known>> {
    let is_in_mode = blocks.clone().any(|block| block.mode.is_some());
    let mut joined = String::from(if is_in_mode { SOME_MODE } else { "" });
    let first = joined.len();
    let mut starts = Vec::new();
    for block in blocks {
        starts.push(joined.len());
        joined.push_str(&text[block.range()]);
    }
    let Examined { tree, found, names, .. } = examine([(0, joined.as_str())].into_iter());
    let names = names.filter(|names| found.is_empty() && !names.gives_after(first))?;
    let mut config = Config::deserialize(Deserializer::from(tree)).ok()?;
    let mappings = if is_in_mode { &mut config.modes.first_mut()?.mappings } else { &mut config.global_mappings };
    if mappings.len() != starts.len() {
        return None;
    }
    let mut all: Vec<Known> = mappings.drain(..).map(|mapping| Known { mapping, uses: Vec::new() }).collect();
    for (kind, mut its) in names.uses().filter(|(_, its)| its.place.start >= first) {
        let of = starts.partition_point(|start| *start <= its.place.start).checked_sub(1)?;
        its.place = its.place.start - starts[of]..its.place.end - starts[of];
        all[of].uses.push((kind, its));
    }
    Some(all)
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
        let at = reader.blocks.all.iter().position(|block| reader.text[block.range()].contains("note = 3")).unwrap();
        Arc::make_mut(&mut Arc::get_mut(&mut reader.known[at]).unwrap().mapping).name = Some("known".into());
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
            changes in proptest::collection::vec((0..64_usize, 0..64_usize, 0..6_u8), 1..6),
        ) {
            let mut reader = Reader::default();
            let mut lines: Vec<String> = SHOW.lines().map(str::to_owned).collect();
            for (from, to, change) in changes {
                let (from, to) = (from % lines.len(), to % lines.len());
                match change {
                    0 => lines.swap(from, to),
                    1 => drop(lines.remove(from)),
                    2 => lines.insert(from, lines[to].clone()),
                    // A single character, as it is typed.
                    3 => drop(lines[from].pop()),
                    4 => lines[from].insert(0, ['[', ']', '"', '\'', '#', '\n'][to % 6]),
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
