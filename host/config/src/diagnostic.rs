//! Diagnostics: what is wrong with a configuration, where, and how it is shown to a person or a program.

use std::fmt::{self, Display};
use std::ops::Range;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::place::{Location, Source};
use conductor_stdx::plural::plural;
use conductor_terminal::{Lines, Style, escape, width};

/// How many characters of a source line are shown; of a longer one, the part around the mistake.
const LINE_WIDTH: usize = 120;
/// The same on the narrowest terminal.
const MIN_LINE_WIDTH: usize = 30;

/// How many diagnostics are shown to a person: those at the top are mended first anyway. Programs get all.
const MAX_SHOWN: usize = 50;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The configuration is refused.
    Error,
    /// The configuration is used, though it may not do what its author means.
    Warning,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Error => Style::Error,
            Self::Warning => Style::Warning,
        }
    }
}

/// One thing that is wrong, at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The bytes of the source that are wrong. May be empty, between two bytes.
    pub place: Range<usize>,
    /// What is wrong, in one line, without a full stop.
    pub message: String,
    /// What is allowed instead. Default: nothing is said.
    pub allowed: Option<String>,
    /// The valid name that was probably meant. Default: none is near.
    pub nearest: Option<String>,
    /// What to do about it, or where else to look. Default: nothing is said.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A mistake for which the configuration is refused.
    pub fn error(place: Range<usize>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, place, message.into())
    }

    /// Something doubtful, for which the configuration is not refused.
    pub fn warning(place: Range<usize>, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, place, message.into())
    }

    fn new(severity: Severity, place: Range<usize>, message: String) -> Self {
        Self { severity, place, message, allowed: None, nearest: None, help: None }
    }

    /// Says what is allowed instead.
    #[must_use]
    pub fn with_allowed(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = Some(allowed.into());
        self
    }

    /// Says which valid name was probably meant, if there is one; see [`nearest`](conductor_stdx::nearest::nearest).
    #[must_use]
    pub fn with_nearest(mut self, nearest: Option<String>) -> Self {
        self.nearest = nearest;
        self
    }

    /// Says what to do about it, or where else to look.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Everything that is wrong with one configuration, in the order of the file.
///
/// [`Display`](fmt::Display) gives the plain text for a person. Serialized, it is an object with `file`,
/// `errors` and `warnings` (how many), and `diagnostics`: an array of objects with `severity`, `message`, `file`,
/// `line`, `column`, `end_line`, `end_column` (from 1, columns in characters, the end not included),
/// `place` (`start` and `end` in bytes), and `allowed`, `nearest` and `help`, each a string or null.
#[derive(Debug, Clone)]
pub struct Diagnostics {
    source: Source,
    found: Vec<Diagnostic>,
    /// Whether the text for a person has the lines that they are about.
    shows_lines: bool,
}

impl Diagnostics {
    /// No diagnostics yet, about this source.
    pub fn new(source: Source) -> Self {
        Self { source, found: Vec::new(), shows_lines: true }
    }

    /// The same for readers other than the configuration's owner: private values in its lines are redacted.
    #[must_use]
    pub fn without_lines(self) -> Self {
        Self { shows_lines: false, ..self }
    }

    /// Adds a diagnostic. It takes its place among the others by where it is in the file; of several at
    /// one place, the first that was added comes first.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let start = |found: &Diagnostic| found.place.start;
        let at = self.found.partition_point(|found| start(found) <= start(&diagnostic));
        self.found.insert(at, diagnostic);
    }

    /// The source that all of them are about.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// All of them, in the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Diagnostic> {
        self.found.iter()
    }

    /// Whether nothing is wrong, not even doubtful.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// How many are of this severity.
    pub fn count(&self, severity: Severity) -> usize {
        let same = |found: &&Diagnostic| found.severity == severity;
        self.found.iter().filter(same).count()
    }

    /// The warnings, if there is nothing worse.
    ///
    /// # Errors
    /// All of them, where one or more are errors.
    pub fn into_result(self) -> Result<Self, Self> {
        if self.count(Severity::Error) == 0 { Ok(self) } else { Err(self) }
    }

    /// The text for a person, with ANSI colours if `colour` is set. Empty if nothing is wrong.
    pub fn render(&self, colour: bool) -> String {
        self.lines().render(colour)
    }

    /// The text for a person: the first 50, errors before warnings, and how many there are. Empty if nothing is wrong.
    pub fn lines(&self) -> Lines {
        self.lines_within(None)
    }

    /// The same for a terminal of `columns`: of a longer line of the source, the part around the mistake is shown.
    pub fn lines_within(&self, columns: Option<u16>) -> Lines {
        let mut lines = Lines::new();
        let is_error = |found: &&Diagnostic| found.severity == Severity::Error;
        let errors = self.found.iter().filter(is_error).take(MAX_SHOWN);
        let warnings = self.found.iter().filter(|found| !is_error(found));
        let mut shown: Vec<&Diagnostic> = errors.chain(warnings).take(MAX_SHOWN).collect();
        shown.sort_by_key(|found| found.place.start);
        for diagnostic in &shown {
            self.push_one(&mut lines, diagnostic, columns);
            lines.push("");
        }
        if !self.is_empty() {
            let hidden = if self.found.len() > MAX_SHOWN {
                format!("; the first {MAX_SHOWN} are shown, and {} more are not", self.found.len() - MAX_SHOWN)
            } else {
                String::new()
            };
            lines.push(format_args!("{}{hidden}", self.summary()));
        }
        lines
    }

    /// The last line: how many there are.
    fn summary(&self) -> String {
        let counted = |severity: Severity| match self.count(severity) {
            0 => None,
            many => Some(plural(many, severity.as_str())),
        };
        let counts = [counted(Severity::Error), counted(Severity::Warning)];
        let counts: Vec<String> = counts.into_iter().flatten().collect();
        let included = match self.source.files().len() - 1 {
            0 => String::new(),
            more => format!(" and {} that it includes", plural(more, "file")),
        };
        format!("{} in {}{included}", counts.join(" and "), self.source.file())
    }

    fn push_one(&self, out: &mut Lines, found: &Diagnostic, columns: Option<u16>) {
        let location = self.source.location(found.place.start);
        let severity = found.severity;
        out.push_spans(&[
            (severity.style(), &severity.as_str()),
            (Style::Plain, &format_args!(": {location}: {}", found.message)),
        ]);

        let line = location.line;
        let gutter = line.to_string().len();
        if self.shows_lines {
            // Before the line stand its number, blanks and a bar; it may be cut at both ends.
            let room = columns.map_or(LINE_WIDTH, |columns| usize::from(columns).saturating_sub(gutter + 6));
            self.push_line(out, found, line, gutter, room.clamp(MIN_LINE_WIDTH, LINE_WIDTH));
        }

        if let Some(allowed) = &found.allowed {
            out.push(format_args!(" {:gutter$}   allowed: {allowed}", ""));
        }
        if let Some(nearest) = &found.nearest {
            out.push(format_args!(" {:gutter$}   did you mean \"{nearest}\"?", ""));
        }
        if let Some(help) = &found.help {
            out.push(format_args!(" {:gutter$}   help: {help}", ""));
        }
    }

    /// The line that a diagnostic is about, with carets under the place.
    fn push_line(&self, out: &mut Lines, found: &Diagnostic, line: usize, gutter: usize, room: usize) {
        let severity = found.severity;
        let shown = Excerpt::new(&self.source, &found.place, room);
        let [blank, bar]: [&dyn Display; 2] = [&" ", &"|"];
        let mut text: Vec<(Style, &dyn Display)> = vec![
            (Style::Plain, blank),
            (Style::Blue, &line),
            (Style::Plain, blank),
            (Style::Blue, bar),
            (Style::Plain, blank),
        ];
        text.extend(shown.parts.iter().map(|part| (Style::Plain, part as &dyn Display)));
        out.push_spans(&text);
        out.push_spans(&[
            (Style::Plain, &format_args!(" {:gutter$} ", "")),
            (Style::Blue, bar),
            (Style::Plain, &format_args!(" {:indent$}", "", indent = shown.indent)),
            (severity.style(), &"^".repeat(shown.carets)),
        ]);
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<T: IntoIterator<Item = Diagnostic>>(&mut self, more: T) {
        self.found.extend(more);
        self.found.sort_by_key(|found| found.place.start);
    }
}

impl Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

impl Diagnostics {
    /// Each on one line, with its place: `config.toml:3:1: what is wrong; what to do about it`.
    pub fn summaries(&self) -> Vec<String> {
        let line = |found: &Diagnostic| {
            let help = found.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
            format!("{}: {}{help}", self.source.location(found.place.start), found.message)
        };
        self.found.iter().map(line).collect()
    }
}

impl Serialize for Diagnostics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let located = |found| Located { source: &self.source, found };
        let located: Vec<_> = self.found.iter().map(located).collect();
        let mut object = serializer.serialize_struct("Diagnostics", 4)?;
        object.serialize_field("file", self.source.file())?;
        object.serialize_field("errors", &self.count(Severity::Error))?;
        object.serialize_field("warnings", &self.count(Severity::Warning))?;
        object.serialize_field("diagnostics", &located)?;
        object.end()
    }
}

/// A diagnostic with its lines and columns.
struct Located<'d> {
    source: &'d Source,
    found: &'d Diagnostic,
}

impl Serialize for Located<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { source, found } = self;
        let (Location { file, line, column }, end) =
            (source.location(found.place.start), source.location(found.place.end));
        // What spans several files ends with the first.
        let (end_line, end_column) = if end.file == file { (end.line, end.column) } else { (line, column) };
        let mut object = serializer.serialize_struct("Diagnostic", 11)?;
        object.serialize_field("severity", &found.severity)?;
        object.serialize_field("message", &found.message)?;
        object.serialize_field("file", file)?;
        object.serialize_field("line", &line)?;
        object.serialize_field("column", &column)?;
        object.serialize_field("end_line", &end_line)?;
        object.serialize_field("end_column", &end_column)?;
        object.serialize_field("place", &source.in_file(&found.place))?;
        object.serialize_field("allowed", &found.allowed)?;
        object.serialize_field("nearest", &found.nearest)?;
        object.serialize_field("help", &found.help)?;
        object.end()
    }
}

/// The part of a source line that is shown, and where under it the carets stand.
struct Excerpt {
    /// What comes before the place, the place, and what comes behind it. Tabs are blanks.
    parts: [String; 3],
    /// Columns before the carets.
    indent: usize,
    carets: usize,
}

impl Excerpt {
    /// `room` is how many characters are shown.
    fn new(source: &Source, place: &Range<usize>, room: usize) -> Self {
        let (start, text) = source.line_at(place.start);
        let offset = |byte: usize| text.floor_char_boundary(byte.saturating_sub(start));
        let (from, to) = (offset(place.start), offset(place.end.max(place.start)));

        let before = text[..from].chars().rev();
        // A third of the width is enough to see what comes before.
        let lead: usize = before.take(room / 3).map(char::len_utf8).sum();
        let cut_left = text.chars().nth(room).is_some() && lead < from;
        let shown_from = if cut_left { from - lead } else { 0 };
        let shown: String = text[shown_from..].chars().take(room).collect();
        let shown_to = shown_from + shown.len();
        let cut_right = shown_to < text.len();

        let ahead = if cut_left { "…" } else { "" };
        let behind = if cut_right { "…" } else { "" };
        let to = to.min(shown_to).max(from);
        let parts = [
            format!("{ahead}{}", &text[shown_from..from]),
            text[from..to].to_owned(),
            format!("{}{behind}", &text[to..shown_to]),
        ]
        .map(|part| part.replace('\t', "    "));
        Self { indent: width(&escape(&parts[0])), carets: width(&escape(&parts[1])).max(1), parts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str, place: Range<usize>) -> String {
        let mut all = Diagnostics::new(Source::new("c.toml", text));
        all.push(Diagnostic::error(place, "wrong"));
        all.render(false)
    }

    #[test]
    fn carets_stand_under_the_place_whatever_comes_before() {
        assert_eq!(
            rendered("a = 1\n\té = 2\n", 7..9),
            "error: c.toml:2:2: wrong\n 2 |     é = 2\n   |     ^\n\n1 error in c.toml\n"
        );
    }

    #[test]
    fn a_place_over_several_lines_is_marked_on_the_first() {
        assert_eq!(
            rendered("a = [\n1,\n]\n", 4..10),
            "error: c.toml:1:5: wrong\n 1 | a = [\n   |     ^\n\n1 error in c.toml\n"
        );
    }

    #[test]
    fn of_a_long_line_only_the_part_around_is_shown() {
        let text = format!("{}x{}", "a".repeat(500), "b".repeat(500));
        let shown = rendered(&text, 500..501);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1], format!(" 1 | …{}x{}…", "a".repeat(40), "b".repeat(79)));
        assert_eq!(lines[2], format!("   | {}^", " ".repeat(41)));
    }

    #[test]
    fn of_a_line_that_is_longer_than_the_terminal_the_part_around_is_shown() {
        let mut all = Diagnostics::new(Source::new("c.toml", format!("{}xxx{}", "a".repeat(100), "b".repeat(100))));
        all.push(Diagnostic::error(100..103, "wrong"));
        for columns in [40, 80, 200] {
            let shown = all.lines_within(Some(columns)).to_string();
            let lines: Vec<&str> = shown.lines().collect();
            assert!(lines[..3].iter().all(|line| width(line) <= usize::from(columns)), "{shown}");
            let carets = lines[2].find("^^^").map(|at| width(&lines[2][..at]));
            assert_eq!(lines[1].find("xxx").map(|at| width(&lines[1][..at])), carets, "{shown}");
        }
    }

    #[test]
    fn a_file_cannot_drive_the_terminal() {
        let shown = rendered("a = \"\u{1b}[2J\"\n", 4..5);
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    }

    #[test]
    fn carets_stand_under_the_place_when_what_is_before_is_escaped() {
        let shown = rendered("a = \"\u{202e}音\" x\n", 13..14);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1], " 1 | a = \"\\u{202e}音\" x");
        assert_eq!(lines[2], format!("   | {}^", " ".repeat(17)));
    }

    #[test]
    fn of_many_mistakes_the_first_are_shown_and_all_are_counted() {
        let text = "x\n".repeat(20_000);
        let mut all = Diagnostics::new(Source::new("c.toml", text));
        all.extend((0..20_000).map(|line| match line {
            0..100 => Diagnostic::warning(line * 2..line * 2 + 1, "doubtful"),
            _ => Diagnostic::error(line * 2..line * 2 + 1, "wrong"),
        }));
        let shown = all.render(false);
        assert_eq!(shown.matches("error: c.toml").count(), MAX_SHOWN, "errors go before warnings");
        assert!(
            shown.ends_with(
                "\n19900 errors and 100 warnings in c.toml; the first 50 are shown, and 19950 more are not\n"
            )
        );
        assert!(shown.len() < 8 * 1024, "{}", shown.len());
    }

    #[test]
    fn a_place_outside_the_text_is_shown_at_its_end() {
        assert_eq!(rendered("a", 7..9), "error: c.toml:1:2: wrong\n 1 | a\n   |  ^\n\n1 error in c.toml\n");
    }

    #[test]
    fn programs_get_everything_as_json() {
        let mut all = Diagnostics::new(Source::new("c.toml", "a = 1\nb = 2\n"));
        all.push(Diagnostic::warning(6..7, "second").with_help("h"));
        all.push(Diagnostic::error(0..1, "first").with_allowed("x"));
        let json = serde_json::to_value(&all).expect("JSON");
        assert_eq!(json["errors"], 1);
        assert_eq!(json["warnings"], 1);
        let first = serde_json::json!({
            "severity": "error", "message": "first", "file": "c.toml",
            "line": 1, "column": 1, "end_line": 1, "end_column": 2,
            "place": { "start": 0, "end": 1 },
            "allowed": "x", "nearest": null, "help": null,
        });
        assert_eq!(json["diagnostics"][0], first);
        assert_eq!(json["diagnostics"][1]["line"], 2);
    }
}
