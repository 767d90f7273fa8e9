//! Markdown on a terminal, rendered while it comes.
//!
//! A text that is still coming is cut into blocks. Of the last one that much is shown whose look can't change by what
//! follows: whole words, outside of marks that are still open. What is rendered anew with every piece begins with what was
//! rendered before, so only the rest is printed, and nothing on the screen is ever taken back.
//!
//! The text is of others: everything in it is escaped, and each line is indented, so that none looks like a line of this
//! program.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::escape::{excerpt, fit, width as columns_of};

/// Goes before each line.
const INDENT: &str = "  ";
/// Bytes of a block that is rendered anew with every piece of it; a longer one is taken as ended.
const MAX_BLOCK: usize = 32 * 1024;
/// Columns of a line where the terminal does not say, and at most: longer lines are hard to read.
const MAX_COLUMNS: usize = 100;
/// Columns of a line at least, on the narrowest terminal.
const MIN_COLUMNS: usize = 20;
/// Columns of a cell of a table at most.
const MAX_CELL: usize = 60;

/// A Markdown text on its way to a terminal.
#[derive(Debug)]
pub struct Markdown {
    look: Look,
    /// The block that is still coming, and perhaps ended ones before it.
    pending: String,
    /// What of it was returned.
    shown: String,
    is_first: bool,
}

/// How it is rendered.
#[derive(Debug, Clone, Copy)]
struct Look {
    columns: usize,
    colour: bool,
}

impl Markdown {
    /// A text for a terminal of this many columns, with or without colours.
    pub fn new(columns: Option<u16>, colour: bool) -> Self {
        let columns = columns.map_or(80, usize::from).clamp(MIN_COLUMNS, MAX_COLUMNS);
        Self { look: Look { columns, colour }, pending: String::new(), shown: String::new(), is_first: true }
    }

    /// Takes a piece, and returns what is printed now: text with line feeds, and ANSI codes for colours.
    pub fn push(&mut self, piece: &str) -> String {
        self.pending.push_str(piece);
        let mut out = String::new();
        let mut blocks = blocks(&self.pending);
        if let [.., table, row] = &blocks[..]
            && self.pending[table.clone()].trim_start().starts_with('|')
            && !self.pending[row.clone()].contains('\n')
            && !self.pending[..row.start].ends_with("\n\n")
        {
            // The beginning of a row is none yet.
            blocks.pop();
        }
        let Some((last, ended)) = blocks.split_last() else { return out };
        let mut rest = last.start;
        for block in ended {
            let text = self.pending[block.clone()].to_owned();
            self.end_block(&text, &mut out);
        }
        if last.len() > MAX_BLOCK {
            let text = self.pending[last.clone()].to_owned();
            self.end_block(&text, &mut out);
            rest = last.end;
        }
        self.pending.drain(..rest);
        let settled = settled(&self.pending);
        if settled > 0 {
            let rendered = rendered(&self.pending[..settled], self.look);
            if let Some(more) = rendered.strip_prefix(self.shown.as_str()).filter(|more| !more.is_empty()) {
                self.gap(&mut out);
                out.push_str(more);
                self.shown = rendered;
            }
        }
        out
    }

    /// Returns the rest, which ends with a line feed if anything was printed.
    pub fn end(&mut self) -> String {
        let mut out = String::new();
        let text = std::mem::take(&mut self.pending);
        for block in blocks(&text) {
            self.end_block(&text[block], &mut out);
        }
        if !self.shown.is_empty() {
            out.push('\n');
            self.shown.clear();
        }
        self.is_first = true;
        out
    }

    fn end_block(&mut self, text: &str, out: &mut String) {
        let rendered = rendered(text, self.look);
        if !rendered.is_empty() {
            match rendered.strip_prefix(self.shown.as_str()) {
                Some(more) => {
                    self.gap(out);
                    out.push_str(more);
                }
                // It became something else: a line below made a heading of it.
                None => {
                    out.push('\n');
                    out.push_str(&rendered);
                }
            }
            out.push('\n');
        } else if !self.shown.is_empty() {
            out.push('\n');
        }
        self.shown.clear();
    }

    /// An empty line before a block that begins.
    fn gap(&mut self, out: &mut String) {
        if self.shown.is_empty() && !std::mem::take(&mut self.is_first) {
            out.push('\n');
        }
    }
}

fn parser(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS)
}

/// Where the blocks of a text are that stand in no other.
fn blocks(text: &str) -> Vec<std::ops::Range<usize>> {
    let (mut depth, mut blocks) = (0_usize, Vec::new());
    for (event, range) in parser(text).into_offset_iter() {
        match event {
            Event::Start(_) => {
                if depth == 0 {
                    blocks.push(range);
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ if depth == 0 => blocks.push(range),
            _ => {}
        }
    }
    blocks
}

/// Bytes of a block whose look what follows can't change.
fn settled(block: &str) -> usize {
    let whole_lines = block.rfind('\n').map_or(0, |at| at + 1);
    let first = block.trim_start();
    if first.starts_with("```") || first.starts_with("~~~") {
        return whole_lines;
    }
    // The width of a column is known when its last cell is there.
    if first.starts_with('|') || block.contains("\n|") {
        return 0;
    }
    let mut end = block.rfind(char::is_whitespace).unwrap_or(0);
    if let Some(open) = open_mark(&block[..end]) {
        // The word around it goes with it to the next line.
        end = block[..open].rfind(char::is_whitespace).unwrap_or(0);
    }
    let last_line = block[..end].rfind('\n').map_or(0, |at| at + 1);
    let line = &block[last_line..end];
    // What begins a list, a quote or a heading is only known by what follows; and so is a backslash at a line's end.
    if line.chars().all(|c| c.is_ascii_digit() || "-*+#>.)=_ \t".contains(c)) {
        return last_line.saturating_sub(1);
    }
    if line.ends_with('\\') {
        return block[..end].rfind(char::is_whitespace).unwrap_or(0);
    }
    end
}

/// Where the first mark stands that is still open: emphasis, code, a link.
fn open_mark(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut open: Vec<(u8, usize, usize)> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let length = match byte {
            b'*' | b'_' | b'`' | b'~' => bytes[at..].iter().take_while(|other| **other == byte).count(),
            _ => 1,
        };
        let in_code = open.last().is_some_and(|(mark, _, _)| *mark == b'`');
        let is_blank = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_none_or(u8::is_ascii_whitespace);
        let is_word = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphanumeric);
        let (before, after) = (at.checked_sub(1), Some(at + length));
        match byte {
            b'\\' if !in_code => at += 1,
            b'`' => match open.iter().position(|(mark, of, _)| *mark == b'`' && *of == length) {
                Some(opened) => open.truncate(opened),
                None if !in_code => open.push((byte, length, at)),
                None => {}
            },
            _ if in_code => {}
            b'*' | b'_' | b'~' => {
                let opened = open.iter().rposition(|(mark, of, _)| *mark == byte && *of == length);
                let is_within = byte == b'_' && is_word(before) && is_word(after);
                match opened {
                    _ if is_within => {}
                    Some(opened) if !is_blank(before) => open.truncate(opened),
                    _ if !is_blank(after) => open.push((byte, length, at)),
                    _ => {}
                }
            }
            // The sign before it makes it a picture.
            b'[' => open.push((byte, 1, at - usize::from(before.is_some_and(|at| bytes[at] == b'!')))),
            b']' => {
                if let Some(opened) = open.iter().rposition(|(mark, _, _)| *mark == b'[') {
                    let start = open[opened].2;
                    open.truncate(opened);
                    match bytes.get(at + 1) {
                        Some(b'(') => open.push((b'(', 1, start)),
                        Some(_) => {}
                        // What follows may be its address.
                        None => open.push((b'[', 1, start)),
                    }
                }
            }
            b')' => {
                if let Some(opened) = open.iter().rposition(|(mark, _, _)| *mark == b'(') {
                    open.truncate(opened);
                }
            }
            _ => {}
        }
        at += length;
    }
    open.first().map(|(_, _, at)| *at)
}

/// A block as lines, without a line feed at the end.
fn rendered(text: &str, look: Look) -> String {
    let mut writer = Writer::new(look);
    for event in parser(text) {
        writer.event(event);
    }
    writer.flush();
    writer.out
}

/// What a word looks like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Style {
    bold: u8,
    italic: u8,
    struck: u8,
    code: bool,
    dim: bool,
}

impl Style {
    fn codes(self) -> String {
        let codes =
            [(self.bold > 0, "1"), (self.dim, "2"), (self.italic > 0, "3"), (self.struck > 0, "9"), (self.code, "36")];
        codes.iter().filter(|(is_on, _)| *is_on).map(|(_, code)| *code).collect::<Vec<_>>().join(";")
    }
}

/// What stands before the lines of a block: a bullet before the first one, blanks before the others.
#[derive(Debug)]
struct Prefix {
    first: Option<String>,
    rest: String,
}

#[derive(Debug)]
struct Writer {
    look: Look,
    out: String,
    /// Columns of the line so far. `None` if none has begun.
    column: Option<usize>,
    prefixes: Vec<Prefix>,
    style: Style,
    /// The word so far: its parts, each with its look.
    word: Vec<(Style, String)>,
    /// Whether a blank is to come before the next word.
    is_apart: bool,
    /// The numbers of the lists that are open.
    lists: Vec<Option<u64>>,
    is_code: bool,
    links: Vec<String>,
    table: Option<Vec<Vec<String>>>,
}

impl Writer {
    fn new(look: Look) -> Self {
        Self {
            look,
            out: String::new(),
            column: None,
            prefixes: Vec::new(),
            style: Style::default(),
            word: Vec::new(),
            is_apart: false,
            lists: Vec::new(),
            is_code: false,
            links: Vec::new(),
            table: None,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.is_code => self.code_lines(&text),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => {
                let before = std::mem::replace(&mut self.style.code, true);
                self.text(&text);
                self.style.code = before;
            }
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::InlineHtml(text) | Event::Html(text) => {
                self.text(&text);
            }
            Event::FootnoteReference(name) => self.text(&format!("[{name}]")),
            Event::SoftBreak => self.blank(),
            Event::HardBreak => {
                self.flush();
                self.column = None;
            }
            Event::Rule => {
                self.begin();
                self.piece(Style { dim: true, ..Style::default() }, &"─".repeat(20));
            }
            Event::TaskListMarker(done) => {
                self.text(if done { "[x]" } else { "[ ]" });
                self.blank();
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.begin(),
            Tag::Heading { .. } => {
                self.begin();
                self.style.bold += 1;
            }
            Tag::BlockQuote(_) => self.prefixes.push(Prefix { first: None, rest: "▌ ".to_owned() }),
            Tag::CodeBlock(kind) => {
                self.begin();
                self.is_code = true;
                if let CodeBlockKind::Fenced(name) = kind
                    && !name.is_empty()
                {
                    self.begin();
                    self.piece(Style { dim: true, ..Style::default() }, &format!("│ {}", excerpt(&name, 40)));
                    self.column = None;
                }
            }
            Tag::List(number) => {
                self.flush();
                self.lists.push(number);
            }
            Tag::Item => {
                self.flush();
                self.column = None;
                let bullet = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                let rest = " ".repeat(columns_of(&bullet));
                self.prefixes.push(Prefix { first: Some(bullet), rest });
            }
            Tag::Emphasis => self.style.italic += 1,
            Tag::Strong => self.style.bold += 1,
            Tag::Strikethrough => self.style.struck += 1,
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.links.push(dest_url.into_string()),
            Tag::Table(_) => {
                self.begin();
                self.table = Some(Vec::new());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(rows) = &mut self.table {
                    rows.push(Vec::new());
                }
            }
            Tag::TableCell => {
                if let Some(row) = self.table.as_mut().and_then(|rows| rows.last_mut()) {
                    row.push(String::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.flush(),
            TagEnd::Heading(_) => {
                self.flush();
                self.style.bold -= 1;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.column = None;
                self.prefixes.pop();
            }
            TagEnd::CodeBlock => {
                self.is_code = false;
                self.column = None;
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                self.column = None;
            }
            TagEnd::Item => {
                self.flush();
                if self.prefixes.last().is_some_and(|prefix| prefix.first.is_some()) {
                    // An item without anything in it.
                    self.line();
                }
                self.column = None;
                self.prefixes.pop();
            }
            TagEnd::Emphasis => self.style.italic -= 1,
            TagEnd::Strong => self.style.bold -= 1,
            TagEnd::Strikethrough => self.style.struck -= 1,
            TagEnd::Link | TagEnd::Image => {
                let said: String = self.word.iter().map(|(_, part)| part.as_str()).collect();
                // An address that is written out is not written twice.
                if let Some(url) = self.links.pop().filter(|url| !said.contains(url.as_str()) && self.table.is_none()) {
                    self.blank();
                    let before = std::mem::replace(&mut self.style.dim, true);
                    self.text(&format!("({url})"));
                    self.style.dim = before;
                }
            }
            TagEnd::Table => self.end_table(),
            _ => {}
        }
    }

    /// Begins a block: on a line of its own, unless one has a bullet only.
    fn begin(&mut self) {
        self.flush();
        self.column = None;
        self.is_apart = false;
    }

    fn text(&mut self, text: &str) {
        if let Some(cell) = self.table.as_mut().and_then(|rows| rows.last_mut()).and_then(|row| row.last_mut()) {
            cell.push_str(text);
            return;
        }
        for (number, part) in text.split(char::is_whitespace).enumerate() {
            if number > 0 {
                self.blank();
            }
            if !part.is_empty() {
                self.word.push((self.style, excerpt(part, usize::MAX)));
            }
        }
    }

    /// Ends the word.
    fn blank(&mut self) {
        self.put_word();
        self.is_apart = true;
    }

    fn flush(&mut self) {
        self.put_word();
        self.is_apart = false;
    }

    fn put_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let width: usize = word.iter().map(|(_, part)| columns_of(part)).sum();
        if let Some(column) = self.column {
            let blank = usize::from(self.is_apart);
            if column + blank + width > self.look.columns {
                self.column = None;
            } else if self.is_apart {
                self.out.push(' ');
                self.column = Some(column + 1);
            }
        }
        self.is_apart = false;
        for (style, part) in word {
            self.piece(style, &part);
        }
    }

    fn code_lines(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            if self.column.is_none() {
                self.piece(Style { dim: true, ..Style::default() }, "│ ");
            }
            let style = Style { code: true, ..Style::default() };
            // Tabs are no columns that can be counted.
            self.piece(style, &excerpt(&line.trim_end_matches(['\n', '\r']).replace('\t', "    "), usize::MAX));
            if line.ends_with('\n') {
                self.column = None;
            }
        }
    }

    /// Puts text that is escaped on the line.
    fn piece(&mut self, style: Style, text: &str) {
        if self.column.is_none() {
            self.line();
        }
        let codes = style.codes();
        if self.look.colour && !codes.is_empty() && !text.is_empty() {
            self.out.push_str(&format!("\u{1b}[{codes}m{text}\u{1b}[0m"));
        } else {
            self.out.push_str(text);
        }
        self.column = self.column.map(|column| column + columns_of(text));
    }

    /// Begins a line with what stands before it.
    fn line(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        let mut before = INDENT.to_owned();
        for prefix in &mut self.prefixes {
            before.push_str(prefix.first.take().as_deref().unwrap_or(&prefix.rest));
        }
        self.out.push_str(&before);
        self.column = Some(columns_of(&before));
    }

    fn end_table(&mut self) {
        let Some(rows) = self.table.take() else { return };
        let fitted = |row: Vec<String>| row.iter().map(|cell| fit(cell, MAX_CELL).into_owned()).collect();
        let rows: Vec<Vec<String>> = rows.into_iter().map(fitted).collect();
        let most = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width =
            |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| columns_of(cell)).max().unwrap_or(0);
        let widths: Vec<usize> = (0..most).map(width).collect();
        for (number, row) in rows.iter().enumerate() {
            self.column = None;
            let style = Style { bold: u8::from(number == 0), ..Style::default() };
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let fill = width.saturating_sub(columns_of(cell));
                self.piece(style, cell);
                if at + 1 < row.len() {
                    self.piece(Style { dim: true, ..Style::default() }, &format!("{} │ ", " ".repeat(fill)));
                }
            }
        }
        self.column = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(text: &str) -> String {
        let mut markdown = Markdown::new(Some(40), false);
        let begun = markdown.push(text);
        begun + &markdown.end()
    }

    fn cut(text: &str, size: usize) -> String {
        let mut markdown = Markdown::new(Some(40), false);
        let letters: Vec<char> = text.chars().collect();
        let mut out: String =
            letters.chunks(size).map(|piece| markdown.push(&piece.iter().collect::<String>())).collect();
        out.push_str(&markdown.end());
        out
    }

    const SAMPLE: &str = "# Pads\n\nThe pad **36 plays** `copy`, and *not* `paste`; see [the docs](https://example.com).\n\
        \n- one\n- two, which is long enough to go on in the next line of it\n  1. inner\n  2. other\n\n```toml\nname = \"x\"\n\n\
        \tb = 1\n```\n\n> said\n> so\n\n| pad | does |\n|---|---|\n| 36 | copy |\n| 7 | snake_case_name |\n\n---\nend 2 * 3";

    #[test]
    fn it_is_shown_as_it_is_meant() {
        let expected = "  Pads\n\n  The pad 36 plays copy, and not paste;\n  see the docs (https://example.com).\n\n  • one\n  \
            • two, which is long enough to go on\n    in the next line of it\n    1. inner\n    2. other\n\n  │ toml\n  \
            │ name = \"x\"\n  │ \n  │     b = 1\n\n  ▌ said so\n\n  pad │ does\n  36  │ copy\n  7   │ snake_case_name\n\n  \
            ────────────────────\n\n  end 2 * 3\n";
        assert_eq!(whole(SAMPLE), expected);
        for size in [1, 2, 3, 7, 50] {
            assert_eq!(cut(SAMPLE, size), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn words_are_shown_as_they_come_and_nothing_is_taken_back() {
        let mut markdown = Markdown::new(Some(40), true);
        assert_eq!(markdown.push("The **pad"), "  The");
        assert_eq!(markdown.push("** is red"), " \u{1b}[1mpad\u{1b}[0m is");
        assert_eq!(markdown.push(".\n\nNext "), " red.\n\n  Next");
        assert_eq!(markdown.end(), "\n");
        assert_eq!(markdown.end(), "");
    }

    #[test]
    fn a_line_that_becomes_a_heading_is_shown_again() {
        assert_eq!(cut("a title here\n====\n\nx", 3), "  a title here\n\n  x\n");
    }

    proptest! {
        // Whatever a model says: nothing but line feeds controls the terminal, and every line is indented.
        #[test]
        fn nothing_in_it_controls_the_terminal(text in "(\\PC|[\u{0}-\u{1f}\u{7f}-\u{9f}\u{202e}*_`|>#\\[\\]()\n -]){0,200}", size in 1_usize..9) {
            let out = cut(&text, size);
            prop_assert!(!out.chars().any(|c| c != '\n' && crate::is_hidden(c)), "{out:?}");
            for line in out.lines() {
                prop_assert!(line.is_empty() || line.starts_with(INDENT), "{line:?} of {out:?}");
            }
        }

        // However it is cut, the same words are there.
        #[test]
        fn it_is_the_same_however_it_comes(
            words in proptest::collection::vec("[a-z]{1,6}|\\*\\*[a-z]{1,4}\\*\\*|`[a-z]{1,5}`|\n\n|\n\n- [a-z]{1,4}", 0..40),
            size in 1_usize..9,
        ) {
            let text = words.join(" ");
            prop_assert_eq!(cut(&text, size), whole(&text));
        }
    }
}
