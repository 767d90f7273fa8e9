//! Text on its way to a screen of a terminal: the only place that makes spans, and all that goes into them is escaped here.
//!
//! What others wrote (names of ports, features' texts, answers of models) could hold escapes, bidi controls and characters
//! that can't be seen. They are made visible as everywhere in the program, by [`conductor_terminal::escape`], before the
//! text becomes a part of a frame, and once: what is in the state is as it came.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

use std::fmt::Display;

use conductor_terminal::{escape, excerpt};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// How a part of a line looks. Each look that says something is also said by a word or a sign: colours may be off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// As the rest.
    Plain,
    /// What is less important.
    Dim,
    /// What stands out.
    Strong,
    /// What is healthy.
    Good,
    /// What is doubtful.
    Doubt,
    /// What is wrong.
    Bad,
    /// A name, or what happened.
    Accent,
    /// What is chosen.
    Chosen,
}

impl Look {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Dim => Style::new().add_modifier(Modifier::DIM),
            Self::Strong => Style::new().add_modifier(Modifier::BOLD),
            Self::Good => Style::new().fg(Color::Green),
            Self::Doubt => Style::new().fg(Color::Yellow),
            Self::Bad => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            Self::Accent => Style::new().fg(Color::Cyan),
            Self::Chosen => Style::new().add_modifier(Modifier::REVERSED),
        }
    }
}

/// A line that is being put together.
#[derive(Debug, Clone, Default)]
pub struct Row(Vec<Span<'static>>);

impl Row {
    /// An empty line.
    pub fn new() -> Self {
        Self::default()
    }

    /// A line of one part.
    pub fn of(look: Look, text: impl Display) -> Self {
        Self::new().put(look, text)
    }

    /// Adds a part; all of its text is escaped.
    pub fn put(mut self, look: Look, text: impl Display) -> Self {
        self.0.push(Span::styled(escape(&text.to_string()).into_owned(), look.style()));
        self
    }

    /// Adds a part of at most this many columns; one that is cut ends in `…`.
    pub fn put_cut(mut self, look: Look, text: impl Display, columns: usize) -> Self {
        self.0.push(Span::styled(cut(&text.to_string(), columns), look.style()));
        self
    }

    /// Adds what is left of this many columns.
    pub fn put_rest(self, look: Look, text: impl Display, columns: usize) -> Self {
        let left = columns.saturating_sub(self.width());
        self.put_cut(look, text, left)
    }

    /// Adds text that was escaped when it was made. What is hidden in it all the same is escaped.
    pub fn put_escaped(mut self, look: Look, text: &str) -> Self {
        self.0.push(Span::styled(excerpt(text, usize::MAX), look.style()));
        self
    }

    /// Adds a cell of this many columns, and a blank behind it: text that is longer is cut, and ends in `…`.
    pub fn cell(mut self, look: Look, text: impl Display, columns: usize) -> Self {
        let text = cut(&text.to_string(), columns);
        let blanks = (columns + 1).saturating_sub(text.width());
        self.0.push(Span::styled(text, look.style()));
        self.0.push(Span::raw(" ".repeat(blanks)));
        self
    }

    /// The same with its text at the right: numbers are easier to compare so.
    pub fn right(mut self, look: Look, text: impl Display, columns: usize) -> Self {
        let text = cut(&text.to_string(), columns);
        self.0.push(Span::raw(" ".repeat(columns.saturating_sub(text.width()))));
        self.0.push(Span::styled(format!("{text} "), look.style()));
        self
    }

    /// Shows the line as the chosen one, if it is.
    pub fn chosen(mut self, is_chosen: bool) -> Self {
        if is_chosen {
            self.0.iter_mut().for_each(|span| span.style = span.style.patch(Look::Chosen.style()));
        }
        self
    }

    /// Columns that it takes.
    pub fn width(&self) -> usize {
        self.0.iter().map(|span| span.content.width()).sum()
    }

    /// The line with what there is no room for left out.
    pub fn fitting(self, columns: usize) -> Self {
        let mut row = Self::new();
        for mut span in self.0 {
            let left = columns.saturating_sub(row.width());
            if span.content.width() > left {
                span.content = cut_off(&span.content, left).into();
            }
            row.0.push(span);
        }
        row
    }

    /// The line over as many as it takes, each of at most this many columns; those after the first are indented.
    pub fn broken(self, columns: usize) -> Vec<Self> {
        const INDENT: &str = "  ";
        if self.width() <= columns {
            return vec![self];
        }
        let (mut rows, mut row, mut used) = (Vec::new(), Self::new(), 0);
        for span in self.0 {
            let mut piece = String::new();
            for c in span.content.chars() {
                let width = c.width().unwrap_or(0);
                if used + width > columns {
                    row.0.push(Span::styled(std::mem::take(&mut piece), span.style));
                    rows.push(std::mem::replace(&mut row, Self(vec![Span::raw(INDENT)])));
                    used = INDENT.len();
                }
                used += width;
                piece.push(c);
            }
            row.0.push(Span::styled(piece, span.style));
        }
        rows.push(row);
        rows
    }

    /// The line for a frame.
    pub fn line(self) -> Line<'static> {
        Line::from(self.0)
    }

    /// Lines of text with ANSI codes for looks, as [`conductor_terminal::markdown`] makes it. Other escapes in it are made
    /// visible.
    pub fn of_markdown(text: &str) -> Vec<Self> {
        let mut style = Style::new();
        let rows = text.trim_end_matches('\n').split('\n').map(|line| {
            let mut row = Self::new();
            let mut pieces = line.split("\u{1b}[");
            row.0.extend(pieces.next().filter(|piece| !piece.is_empty()).map(|piece| span(piece, style)));
            for piece in pieces {
                let codes =
                    piece.find(|c: char| !c.is_ascii_digit() && c != ';').filter(|at| piece[*at..].starts_with('m'));
                let Some(end) = codes else {
                    row.0.push(span(&format!("\u{1b}[{piece}"), style));
                    continue;
                };
                piece[..end].split(';').for_each(|code| style = with_code(style, code));
                row.0.push(span(&piece[end + 1..], style));
            }
            row
        });
        rows.collect()
    }
}

/// Text that is escaped already, so that backslashes are left alone.
fn span(text: &str, style: Style) -> Span<'static> {
    Span::styled(excerpt(text, usize::MAX), style)
}

/// A style with what a code of `SGR` adds.
fn with_code(style: Style, code: &str) -> Style {
    match code {
        "1" => style.add_modifier(Modifier::BOLD),
        "2" => style.add_modifier(Modifier::DIM),
        "3" => style.add_modifier(Modifier::ITALIC),
        "9" => style.add_modifier(Modifier::CROSSED_OUT),
        "36" => style.fg(Color::Cyan),
        _ => Style::new(),
    }
}

/// A text escaped, and cut to this many columns; one that is cut ends in `…`.
pub fn cut(text: &str, columns: usize) -> String {
    // Escaping takes no character away: what is far beyond the columns need not be looked at.
    let near = text.char_indices().nth(columns.saturating_mul(2) + 64).map_or(text, |(at, _)| &text[..at]);
    let escaped = escape(near);
    if near.len() == text.len() && escaped.width() <= columns {
        return escaped.into_owned();
    }
    cut_off(&escaped, columns)
}

/// The beginning of an escaped text, and `…`, in this many columns.
fn cut_off(escaped: &str, columns: usize) -> String {
    let mut left = columns.saturating_sub(1);
    let kept = escaped.chars().take_while(|c| {
        let width = c.width().unwrap_or(0);
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    });
    let mut kept: String = kept.collect();
    if columns > 0 {
        kept.push('…');
    }
    kept
}

/// The end of a text, escaped, in at most this many columns; one that is cut begins with `…`.
pub fn end_of(text: &str, columns: usize) -> String {
    let escaped = escape(text);
    if escaped.width() <= columns {
        return escaped.into_owned();
    }
    let mut left = columns.saturating_sub(1);
    let fits = escaped.char_indices().rev().take_while(|(_, c)| {
        let width = c.width().unwrap_or(0);
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    });
    let first = fits.last().map_or(escaped.len(), |(at, _)| at);
    if columns == 0 { String::new() } else { format!("…{}", &escaped[first..]) }
}

/// A text of several lines, each escaped and broken to this many columns, at blanks where there are any.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    text.split('\n').flat_map(|line| wrapped_line(&line.replace('\t', "    "), columns)).collect()
}

/// A text of one line, escaped, line feeds included, and broken to this many columns.
pub fn wrapped_line(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(8);
    let line = escape(text);
    let (mut out, mut rest) = (Vec::new(), line.as_ref());
    loop {
        let end = end_of_line(rest, columns);
        out.push(rest[..end].to_owned());
        rest = &rest[end..];
        if rest.is_empty() {
            return out;
        }
        rest = rest.strip_prefix(' ').unwrap_or(rest);
    }
}

/// How many bytes of a text fit into this many columns, up to a blank if there is one.
fn end_of_line(text: &str, columns: usize) -> usize {
    let (mut used, mut blank) = (0, None);
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns {
            return blank.unwrap_or(at).max(text.chars().next().map_or(0, char::len_utf8));
        }
        if c == ' ' && at > 0 {
            blank = Some(at);
        }
    }
    text.len()
}

/// The beginning of a text of at most this many bytes, for what is kept of it.
pub fn beginning(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use conductor_terminal::is_hidden;
    use proptest::prelude::*;

    use super::*;

    fn text(row: &Row) -> String {
        row.0.iter().map(|span| span.content.as_ref()).collect()
    }

    #[test]
    fn a_cell_has_its_columns_whatever_is_in_it() {
        for (of, shown) in [("pads", "pads   "), ("音楽音楽", "音楽…  "), ("a\u{1b}[2Jb", "a\\u{1… "), ("", "       ")]
        {
            let row = Row::new().cell(Look::Plain, of, 6);
            assert_eq!((text(&row).as_str(), row.width()), (shown, 7), "{of:?}");
        }
        assert_eq!(text(&Row::new().right(Look::Plain, 12, 4)), "  12 ");
        assert_eq!([end_of("abc", 3), end_of("abcd", 3), end_of("音楽", 3), end_of("a", 0)], ["abc", "…cd", "…楽", ""]);
    }

    #[test]
    fn markdown_has_its_looks_and_no_other_escape() {
        let rows = Row::of_markdown("  \u{1b}[1mbold\u{1b}[0m plain\u{1b}[2J\n\u{1b}[36mcode");
        assert_eq!(rows.iter().map(text).collect::<Vec<_>>(), ["  bold plain\\u{1b}[2J", "code"]);
        assert_eq!(rows[0].0[1].style, Style::new().add_modifier(Modifier::BOLD));
        assert_eq!(rows[1].0[0].style, Style::new().fg(Color::Cyan));
    }

    #[test]
    fn a_row_that_is_too_long_is_broken_with_its_looks() {
        let row = Row::of(Look::Plain, "  ").put(Look::Strong, "音楽ab").put(Look::Dim, "cde");
        let rows = row.broken(6);
        assert_eq!(rows.iter().map(text).collect::<Vec<_>>(), ["  音楽", "  abcd", "  e"]);
        assert_eq!(rows[1].0.last().map(|span| span.style), Some(Look::Dim.style()));
        assert_eq!(text(&Row::of(Look::Plain, "one two").fitting(5)), "one …");
    }

    #[test]
    fn long_lines_are_broken_at_blanks() {
        assert_eq!(wrapped("one two three\n\nfour", 9), ["one two", "three", "", "four"]);
        assert_eq!(wrapped("abcdefghijk", 8), ["abcdefgh", "ijk"]);
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left_and_nothing_is_too_wide(of in any::<String>(), columns in 0_usize..40) {
            for short in [cut(&of, columns), end_of(&of, columns)] {
                prop_assert!(short.width() <= columns, "{short:?}");
                prop_assert!(!short.chars().any(is_hidden));
            }
            for line in wrapped(&of, columns) {
                prop_assert!(!line.chars().any(is_hidden));
                prop_assert!(line.width() <= columns.max(8), "{line:?}");
            }
            for row in Row::of_markdown(&of) {
                prop_assert!(!text(&row).chars().any(is_hidden));
            }
        }
    }
}
