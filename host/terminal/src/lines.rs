//! Output of several lines, with colours.

use std::fmt::{self, Display, Write as _};

use super::escape::{escape, escape_line, excerpt, fit};

/// How a part of a line looks on a terminal that has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// As the rest.
    Plain,
    /// What stands out: bold.
    Bold,
    /// What is less important.
    Dim,
    /// What is wrong: bold red.
    Error,
    /// What is doubtful: bold yellow.
    Warning,
    /// What is missing: red.
    Red,
    /// What is there: green.
    Green,
    /// A name: yellow.
    Yellow,
    /// A number of a line: blue.
    Blue,
    /// What happened: cyan.
    Cyan,
}

impl Style {
    /// The number that is sent to the terminal. `None` if nothing is.
    fn code(self) -> Option<&'static str> {
        Some(match self {
            Self::Plain => return None,
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Error => "1;31",
            Self::Warning => "1;33",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Blue => "34",
            Self::Cyan => "36",
        })
    }
}

/// Lines that are fit for a terminal: all text in them is escaped when it is added.
///
/// [`Display`] gives them without colours, each with a line feed at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines {
    /// Escaped; the only control characters are the line feeds that end lines.
    text: String,
    /// Parts of the text that are not plain, in order.
    styles: Vec<(std::ops::Range<usize>, Style)>,
}

impl Lines {
    /// No lines.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one line. Line feeds in it are escaped as all else.
    pub fn push(&mut self, line: impl Display) {
        self.push_spans(&[(Style::Plain, &line)]);
    }

    /// Adds one line, made of parts that look different.
    pub fn push_spans(&mut self, spans: &[(Style, &dyn Display)]) {
        for (style, part) in spans {
            let start = self.text.len();
            self.text.push_str(&escape(&part.to_string()));
            if style.code().is_some() && self.text.len() > start {
                self.styles.push((start..self.text.len(), *style));
            }
        }
        self.text.push('\n');
    }

    /// Adds one line of text that was escaped when it was made. What is hidden in it all the same is escaped; its
    /// backslashes are left alone.
    pub fn push_escaped(&mut self, line: &str) {
        self.text.push_str(&excerpt(line, usize::MAX));
        self.text.push('\n');
    }

    /// Adds one line, cut to this many columns as [`fit`] does.
    pub fn push_fit(&mut self, columns: usize, line: &str) {
        self.text.push_str(&fit(line, columns));
        self.text.push('\n');
    }

    /// Adds a text of several lines, each escaped and with the gutter before it, which the text can't leave out. One
    /// line feed at the end of the text is not another line.
    pub fn push_text(&mut self, gutter: &str, text: &str) {
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            self.text.push_str(gutter);
            self.text.push_str(&escape_line(line));
            self.text.push('\n');
        }
    }

    /// Adds other lines.
    pub fn append(&mut self, other: Self) {
        let offset = self.text.len();
        self.text.push_str(&other.text);
        let moved = other.styles.into_iter().map(|(part, style)| (part.start + offset..part.end + offset, style));
        self.styles.extend(moved);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The lines as text, with ANSI codes for the styles if `colour` is set.
    pub fn render(&self, colour: bool) -> String {
        if !colour || self.styles.is_empty() {
            return self.text.clone();
        }
        let mut out = String::with_capacity(self.text.len() + self.styles.len() * 12);
        let mut done = 0;
        for (part, style) in &self.styles {
            out.push_str(&self.text[done..part.start]);
            let code = style.code().unwrap_or_default();
            // Writing to a string does not fail.
            let _ = write!(out, "\x1b[{code}m{}\x1b[0m", &self.text[part.clone()]);
            done = part.end;
        }
        out.push_str(&self.text[done..]);
        out
    }
}

impl Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_whatever_is_in_it() {
        let mut lines = Lines::new();
        lines.push(format_args!("{:<6} {}", "a\nb", "\u{1b}[2J"));
        lines.push_text("  | ", "one\nplan applied\n");
        assert_eq!(lines.to_string(), "a\\u{a}b    \\u{1b}[2J\n  | one\n  | plan applied\n");
    }

    #[test]
    fn colours_are_styles_and_never_text() {
        let mut first = Lines::new();
        first.push("before");
        let mut second = Lines::new();
        second.push_spans(&[(Style::Error, &"error"), (Style::Plain, &": \u{1b}[0m")]);
        first.append(second);
        assert_eq!(first.render(true), "before\n\u{1b}[1;31merror\u{1b}[0m: \\u{1b}[0m\n");
        assert_eq!(first.render(false), "before\nerror: \\u{1b}[0m\n");
    }
}
