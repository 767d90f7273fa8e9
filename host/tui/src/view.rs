//! What is on the screen, made from the state and nothing else.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Position;
use ratatui::style::Color;

use crate::input::{Command, Context, Screen, key_of};
use crate::state::layout::{self, BODY, NEEDED};
use crate::state::overlay::{About, Overlay, Prompt};
use crate::state::{Extent, Link, State};
use conductor_screen_text::{Look, Row, cut, end_of, wrapped, wrapped_line};

mod action;
mod chat;
mod features;
mod flow;
mod keys;
mod learn;
mod live;
mod mappings;
mod plans;
mod status;

/// Draws the state, and returns how far it can be scrolled.
pub(crate) fn render(state: &State, frame: &mut Frame<'_>) -> Extent {
    let mut page =
        Page { width: state.size.width, height: state.size.height, buffer: frame.buffer_mut(), cursor: None };
    let extent = if state.size.is_enough() {
        page.head(state);
        let extent = page.body(state);
        page.notice(state);
        page.help(state);
        extent
    } else {
        page.too_small(state);
        Extent::default()
    };
    let cursor = page.cursor;
    finish(frame.buffer_mut(), state.has_colour);
    if let Some(cursor) = cursor {
        frame.set_cursor_position(cursor);
    }
    extent
}

/// Takes colours out where they are off, and what should not be on any screen, however it came there.
fn finish(buffer: &mut Buffer, has_colour: bool) {
    for cell in &mut buffer.content {
        if cell.symbol().chars().any(conductor_terminal::is_hidden) {
            cell.set_symbol("?");
        }
        if !has_colour {
            cell.set_fg(Color::Reset).set_bg(Color::Reset);
        }
    }
}

/// The frame that is being drawn.
struct Page<'f> {
    width: u16,
    height: u16,
    buffer: &'f mut Buffer,
    cursor: Option<Position>,
}

/// A part of the body.
struct Part {
    title: Row,
    lines: Vec<Row>,
    /// The place of the chosen line; `None` if none is.
    chosen: Option<usize>,
    scroll: Scroll,
}

/// Which of the lines of a part are shown.
enum Scroll {
    /// Those around the one at this place.
    Around(usize),
    /// Those from this many on.
    By(usize),
    /// All: what is out of sight was left out, and a person can scroll so far.
    Done { most: usize },
}

impl Part {
    /// A list in which the line at this place is chosen; one that is empty says why.
    fn list(title: Row, lines: Vec<Row>, at: usize, why: &str) -> Self {
        let chosen = (!lines.is_empty()).then_some(at);
        Self { title, lines: or_nothing(lines, why), chosen, scroll: Scroll::Around(at) }
    }

    fn text(title: Row, lines: Vec<Row>, scroll: usize) -> Self {
        Self { title, lines, chosen: None, scroll: Scroll::By(scroll) }
    }
}

impl Page<'_> {
    fn put(&mut self, y: u16, row: Row) {
        let area = self.buffer.area;
        #[cfg(test)]
        assert!(row.width() <= self.columns(), "too long for {} columns: {row:?}", self.width);
        if y < area.height {
            self.buffer.set_line(0, y, &row.line(), area.width.min(self.width));
        }
    }

    fn columns(&self) -> usize {
        usize::from(self.width)
    }

    fn too_small(&mut self, state: &State) {
        let (width, height) = (state.size.width, state.size.height);
        let needed = format!("conductor tui needs {} x {}", NEEDED.width, NEEDED.height);
        for (y, text) in [
            needed,
            format!("this terminal: {width} x {height}"),
            format!("{} quits", key_of(Context::TooSmall, Command::Quit)),
        ]
        .into_iter()
        .enumerate()
        {
            let row = Row::new().put_cut(Look::Plain, text, self.columns());
            self.put(u16::try_from(y).unwrap_or(u16::MAX), row);
        }
    }

    /// The host, and the screens.
    fn head(&mut self, state: &State) {
        // Something under way has its sign at the end.
        let room = self.columns().saturating_sub(3);
        let mut row = Row::of(Look::Strong, "conductor ");
        if let Some(status) = &state.status {
            row = row.put_cut(Look::Dim, &status.version, 16);
            if let Some(mode) = &status.mode {
                row = row.put(Look::Dim, "  mode ").put_cut(Look::Accent, mode, 20);
            }
            if status.lock.is_some() {
                row = row.put_rest(Look::Doubt, "  LOCKED", room);
            }
            if status.refused.is_some() {
                row = row.put_rest(Look::Bad, "  CONFIGURATION REFUSED", room);
            }
        }
        row = match &state.link {
            Link::Connecting => row.put_rest(Look::Doubt, "  connecting", room),
            Link::Up => row,
            Link::Lost { since, why } => {
                let seconds = state.now.saturating_sub(*since).as_secs();
                let said = format!("  NO HOST for {seconds} s, trying again: ");
                row.put_rest(Look::Bad, said, room).put_rest(Look::Plain, why, room)
            }
        };
        if state.is_acting() {
            row = row.put(Look::Dim, "  …");
        }
        self.put(0, row);
        let mut row = Row::new();
        for (first, screen, text) in layout::tabs(state) {
            let blanks = usize::from(first).saturating_sub(row.width());
            let look = if screen == state.screen { Look::Chosen } else { Look::Plain };
            row = row.put(Look::Plain, " ".repeat(blanks)).put(look, text);
        }
        self.put(1, row);
    }

    fn body(&mut self, state: &State) -> Extent {
        let columns = self.columns();
        let front = match &state.overlay {
            Some(Overlay::Keys { scroll }) => Some(Part::text(title("Keys and words"), keys::lines(columns), *scroll)),
            Some(Overlay::Question(question)) => {
                let lines = match &question.about {
                    About::Nothing => Vec::new(),
                    About::Text(text) => sentence(Look::Plain, "", text, columns),
                    About::Plan(view) => plans::plan(view, columns),
                    About::Call(asked) => chat::call(asked, columns),
                };
                let title = Row::of(
                    Look::Doubt,
                    format!(
                        "── {} ({}/{}) ",
                        question.asks,
                        key_of(Context::Question, Command::Yes),
                        key_of(Context::Question, Command::No)
                    ),
                );
                Some(Part::text(title, lines, question.scroll))
            }
            Some(Overlay::Explanation(open)) => Some(live::explanation(open, columns)),
            Some(Overlay::Line(_)) | None => None,
        };
        if let Some(part) = front {
            let rows = state.size.body().saturating_sub(1);
            return Extent { overlay: self.part(BODY, rows, part), lower: usize::MAX };
        }
        let layout::Parts { upper, lower } = layout::parts(state);
        let (above, below) = parts(state, columns, usize::from(lower.unwrap_or(0)));
        if let (Some(rows), Some(part)) = (upper, above) {
            self.part(BODY, rows, part);
        }
        let lower = match (lower, below) {
            (Some(rows), Some(part)) => self.part(layout::lower_title(state), rows, part),
            _ => 0,
        };
        Extent { overlay: 0, lower }
    }

    /// Draws a part with its title, and returns how far it can be scrolled.
    fn part(&mut self, y: u16, rows: u16, part: Part) -> usize {
        let count = part.lines.len();
        let hidden = count.saturating_sub(usize::from(rows));
        let (first, most) = match part.scroll {
            Scroll::Around(at) => (layout::window(at, count, usize::from(rows)), hidden),
            Scroll::By(lines) => (lines.min(hidden), hidden),
            Scroll::Done { most } => (0, most),
        };
        let more = if hidden > 0 {
            format!("{}-{} of {count} ", first + 1, (first + usize::from(rows)).min(count))
        } else {
            String::new()
        };
        let title = part.title.fitting(self.columns());
        // Where there is no room for both, the title is more to the point.
        let more = if title.width() + more.len() > self.columns() { String::new() } else { more };
        let rule = self.columns().saturating_sub(title.width() + more.len());
        self.put(y, title.put(Look::Dim, "─".repeat(rule)).put(Look::Dim, more));
        let columns = self.columns();
        for (offset, (at, row)) in part.lines.into_iter().enumerate().skip(first).take(usize::from(rows)).enumerate() {
            let is_chosen = part.chosen == Some(at);
            let blanks = columns.saturating_sub(row.width());
            let row = if is_chosen { row.put(Look::Plain, " ".repeat(blanks)).chosen(true) } else { row };
            self.put(y + 1 + u16::try_from(offset).unwrap_or(0), row);
        }
        most
    }

    /// The line that is typed, or a notice.
    fn notice(&mut self, state: &State) {
        let y = self.height.saturating_sub(2);
        if let Some(Overlay::Line(prompt)) = &state.overlay {
            self.prompt(y, prompt);
        } else if let Some(notice) = &state.notice {
            let (look, sign) = if notice.is_wrong { (Look::Bad, "! ") } else { (Look::Good, "") };
            self.put(y, Row::of(look, sign).put_rest(look, notice.text.replace('\n', " "), self.columns()));
        }
    }

    fn prompt(&mut self, y: u16, prompt: &Prompt) {
        let room = self.columns() * 3 / 4;
        let row = match &prompt.refused {
            Some(why) => Row::default().put_cut(Look::Bad, why, self.columns() / 2).put(Look::Bad, ". "),
            None => Row::default(),
        };
        let row = row.put_rest(Look::Strong, &prompt.asks, room).put(Look::Strong, ": ");
        let (before, behind) = prompt.line.parts();
        let left = self.columns().saturating_sub(row.width() + 1);
        // The cursor is in sight: of what is before it, the end is.
        let shown_before = end_of(before, left);
        let at = row.width() + width(&shown_before);
        let shown_behind = cut(behind, left.saturating_sub(width(&shown_before)));
        let row = row.put_escaped(Look::Plain, &shown_before).put_escaped(Look::Plain, &shown_behind);
        self.put(y, row);
        self.cursor = Some(Position::new(u16::try_from(at).unwrap_or(0).min(self.width.saturating_sub(1)), y));
    }

    fn help(&mut self, state: &State) {
        let mut row = Row::new();
        for help in layout::help(state) {
            let blanks = usize::from(help.first).saturating_sub(row.width());
            row = row
                .put(Look::Plain, " ".repeat(blanks))
                .put(Look::Strong, &help.key)
                .put(Look::Dim, format!(" {}", help.word));
        }
        self.put(self.height.saturating_sub(1), row);
    }
}

/// The parts of the screen that is shown, in this many columns and rows of the lower one.
fn parts(state: &State, columns: usize, lower: usize) -> (Option<Part>, Option<Part>) {
    match state.screen {
        Screen::Status => status::parts(state, columns),
        Screen::Live => live::parts(state, columns, lower),
        Screen::Flow => (None, Some(flow::part(state, columns))),
        Screen::Mappings => mappings::parts(state, columns),
        Screen::Plans => plans::parts(state, columns),
        Screen::Features => features::parts(state, columns),
        Screen::Chat => match &state.chat.open {
            None => (Some(chat::list(state, columns)), None),
            Some(open) => (None, Some(chat::open(state, open, columns, lower))),
        },
        Screen::Learn => learn::parts(state, columns),
    }
}

fn title(text: &str) -> Row {
    Row::of(Look::Dim, "── ").put(Look::Strong, text).put(Look::Plain, " ")
}

/// Goes before each line of a text that others wrote and that has lines: none of them looks like a line around it.
const GUTTER: &str = "  | ";

/// A text of several lines, each behind the gutter.
fn paragraph(look: Look, text: &str, columns: usize) -> Vec<Row> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    behind(GUTTER, look, &wrapped(text, columns.saturating_sub(width(GUTTER))))
}

/// A text of one line, over as many as that takes, with blanks before each.
fn sentence(look: Look, blanks: &str, text: &str, columns: usize) -> Vec<Row> {
    behind(blanks, look, &wrapped_line(text, columns.saturating_sub(width(blanks))))
}

/// Why something is not done: a sentence, and what is said of it in further lines.
fn reason(why: &str, columns: usize) -> Vec<Row> {
    let (first, further) = why.split_once('\n').unwrap_or((why, ""));
    let mut lines = sentence(Look::Bad, "", first, columns);
    if !further.is_empty() {
        lines.extend(paragraph(Look::Bad, further, columns));
    }
    lines
}

fn behind(before: &str, look: Look, lines: &[String]) -> Vec<Row> {
    lines.iter().map(|line| Row::of(Look::Dim, before).put_escaped(look, line)).collect()
}

/// A line of `about` and what there is to say, over as many lines as that takes.
fn field(about: &str, look: Look, text: &str, columns: usize) -> Vec<Row> {
    const ABOUT: usize = 11;
    let lines = wrapped_line(text, columns.saturating_sub(ABOUT + 1));
    let row = |(at, line): (usize, &String)| {
        Row::new().cell(Look::Dim, if at == 0 { about } else { "" }, ABOUT).put_escaped(look, line)
    };
    lines.iter().enumerate().map(row).collect()
}

/// What a column has more than on the narrowest terminal, where there is a text that may be long.
fn more_columns(columns: usize) -> usize {
    columns.saturating_sub(usize::from(NEEDED.width)) / 3
}

/// A list that has nothing to show says why.
fn or_nothing(lines: Vec<Row>, why: &str) -> Vec<Row> {
    if lines.is_empty() { vec![Row::of(Look::Dim, format!("  {why}"))] } else { lines }
}

/// Columns of escaped text.
fn width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// `12.5`, `0.3`, `1200`: a rate in few columns.
fn rate(rate: f64) -> String {
    if rate >= 100.0 { format!("{rate:.0}") } else { format!("{rate:.1}") }
}

/// `1.5 MB`.
fn megabytes(bytes: usize) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
