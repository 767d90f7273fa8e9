//! Where things are on the screen: what is drawn there, and what a click there means.
//!
//! ```text
//! row 0       the host
//! row 1       the screens
//! from row 2  a title, the upper part (a list), a title, the lower part
//! last but 1  a notice, or the line that is typed
//! last        keys
//! ```

use unicode_width::UnicodeWidthStr as _;

use super::State;
use super::live::{Pane, Row, RowKind};
use crate::input::{Binding, Command, Context, Screen, bindings};

/// The size of a terminal that is needed.
pub(crate) const NEEDED: Size = Size { width: 80, height: 24 };
/// Rows that are always there: the host, the screens, the notice, the keys.
const FIXED_ROWS: u16 = 4;
/// The row of the first title.
pub(crate) const BODY: u16 = 2;

/// The size of a terminal, in columns and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) width: u16,
    pub(crate) height: u16,
}

impl Size {
    /// Whether the screens have room.
    pub(crate) fn is_enough(self) -> bool {
        self.width >= NEEDED.width && self.height >= NEEDED.height
    }

    /// Rows of the body, titles included.
    pub(crate) fn body(self) -> u16 {
        self.height.saturating_sub(FIXED_ROWS)
    }

    /// Lines that a page moves by.
    pub(crate) fn page(self) -> usize {
        usize::from((self.body() / 2).max(1))
    }
}

/// The parts of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Rows of the upper part, without its title. `None` if there is only a lower one.
    pub(crate) upper: Option<u16>,
    /// The same of the lower one.
    pub(crate) lower: Option<u16>,
}

/// The parts of the screen that is shown.
pub(crate) fn parts(state: &State) -> Parts {
    let body = state.size.body();
    let rows = |count: usize, most: u16| u16::try_from(count).unwrap_or(most).clamp(1, most.max(1));
    let upper = match state.screen {
        Screen::Status => Some(rows(state.status.as_ref().map_or(0, |status| status.modes.len()), body / 4)),
        Screen::Live => Some(rows(state.sources().len(), body / 4)),
        Screen::Mappings | Screen::Features => Some(body * 3 / 5),
        Screen::Plans => Some(rows(state.plans.list.len(), body / 4)),
        Screen::Learn => Some(rows(state.learn.learned.controls.len(), body / 3)),
        Screen::Chat if state.chat.open.is_none() => {
            return Parts { upper: Some(body.saturating_sub(1)), lower: None };
        }
        Screen::Chat | Screen::Flow => None,
    };
    let taken = upper.map_or(0, |upper| upper + 1) + 1;
    Parts { upper, lower: Some(body.saturating_sub(taken)) }
}

/// The row of the title of the lower part.
pub(crate) fn lower_title(state: &State) -> u16 {
    BODY + parts(state).upper.map_or(0, |upper| upper + 1)
}

/// Rows of the lower part.
pub(crate) fn lower_rows(state: &State) -> usize {
    usize::from(parts(state).lower.unwrap_or(0))
}

/// Whether a row of the terminal is in the lower part.
pub(crate) fn is_in_lower(state: &State, row: u16) -> bool {
    parts(state).lower.is_some() && row >= lower_title(state)
}

/// The first line that is shown of this many, in this many rows, where the one at a place is in sight.
pub(crate) fn window(at: usize, count: usize, rows: usize) -> usize {
    at.saturating_sub(rows / 2).min(count.saturating_sub(rows))
}

/// The rows of events that are shown, oldest first.
pub(crate) fn live_rows(state: &State, rows: usize) -> Vec<&Row> {
    let Some(chosen) = state.live.chosen else { return state.live.last_shown(rows) };
    let shown = state.live.shown();
    let at = shown.iter().position(|row| row.number >= chosen).unwrap_or(shown.len().saturating_sub(1));
    let first = window(at, shown.len(), rows);
    shown.into_iter().skip(first).take(rows).collect()
}

/// A list on a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Modes,
    Sources,
    /// Events; places count from the first that is shown.
    Rows,
    Mappings,
    Plans,
    Features,
    Conversations,
    Controls,
}

/// The list of the upper part, how many it has, and the place of the chosen one.
pub(crate) fn upper_list(state: &State) -> Option<(List, usize, usize)> {
    let status = state.status.as_ref();
    Some(match state.screen {
        Screen::Status => (List::Modes, status.map_or(0, |status| status.modes.len()), state.mode_at),
        Screen::Live => (List::Sources, state.sources().len(), state.live.source_at),
        Screen::Mappings => (List::Mappings, state.mappings.shown.len(), state.mappings.at),
        Screen::Plans => (List::Plans, state.plans.list.len(), state.plans.at),
        Screen::Features => (List::Features, state.feature_count(), state.features.at),
        Screen::Chat => (List::Conversations, state.chat.list.len(), state.chat.at),
        Screen::Learn => (List::Controls, state.learn.learned.controls.len(), state.learn.at),
        Screen::Flow => return None,
    })
}

/// What of a list is at a row of the terminal.
pub(crate) fn list_at(state: &State, row: u16) -> Option<(List, usize)> {
    let Parts { upper, lower } = parts(state);
    if let (Some(upper), Some((list, count, chosen))) = (upper, upper_list(state))
        && let Some(offset) = row.checked_sub(BODY + 1).filter(|offset| *offset < upper)
    {
        let at = window(chosen, count, usize::from(upper)) + usize::from(offset);
        return Some((list, at)).filter(|_| at < count);
    }
    let offset = row.checked_sub(lower_title(state) + 1).filter(|offset| lower.is_some_and(|lower| *offset < lower))?;
    (state.screen == Screen::Live).then_some((List::Rows, usize::from(offset)))
}

/// The names of the screens with their first column, and how each is written.
pub(crate) fn tabs(state: &State) -> Vec<(u16, Screen, String)> {
    let mut column = 0;
    let tab = |(at, screen): (usize, &Screen)| {
        let count = match screen {
            Screen::Plans => state.plans.list.len(),
            _ => 0,
        };
        let count = match count {
            0 => String::new(),
            count @ 1..=9 => format!(" ({count})"),
            _ => " (9+)".to_owned(),
        };
        let text = format!("{} {}{count}", at + 1, screen.name());
        let first = column;
        column += u16::try_from(text.width()).unwrap_or(0) + 2;
        (first, *screen, text)
    };
    Screen::ALL.iter().enumerate().map(tab).collect()
}

/// The screen whose name is there.
pub(crate) fn tab_at(state: &State, column: u16, row: u16) -> Option<Screen> {
    let is_there = |(first, _, text): &(u16, Screen, String)| {
        (*first..first + u16::try_from(text.width()).unwrap_or(0)).contains(&column)
    };
    tabs(state).into_iter().find(|tab| row == 1 && is_there(tab)).map(|(_, screen, _)| screen)
}

/// A key of the help line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Help {
    /// Its first column.
    pub(crate) first: u16,
    pub(crate) key: String,
    pub(crate) word: &'static str,
    pub(crate) command: Command,
}

impl Help {
    fn width(&self) -> u16 {
        u16::try_from(self.key.width() + 1 + self.word.width()).unwrap_or(u16::MAX)
    }
}

/// The help line: the keys that do something now, as many as there is room for. Those for everywhere are always there.
pub(crate) fn help(state: &State) -> Vec<Help> {
    const GAP: u16 = 2;
    let is_shown = |binding: &&Binding| !binding.word.is_empty() && state.is_available(binding.command);
    let shown = bindings(state.contexts()).filter(is_shown);
    let entry = |binding: &Binding| Help {
        first: 0,
        key: binding.keys.first().map(|key| key.name()).unwrap_or_default(),
        word: word(state, binding),
        command: binding.command,
    };
    let (everywhere, own): (Vec<_>, Vec<_>) = shown.partition(|binding| binding.context == Context::Everywhere);
    let everywhere: Vec<Help> = everywhere.into_iter().map(entry).collect();
    let mut left = state.size.width;
    let mut take = |help: &Help| {
        let width = help.width() + GAP;
        let fits = width <= left + GAP;
        left = if fits { left.saturating_sub(width) } else { 0 };
        fits
    };
    let kept: Vec<Help> = everywhere.into_iter().filter(|help| take(help)).collect();
    let mut all: Vec<Help> = own.into_iter().map(entry).take_while(|help| take(help)).collect();
    all.extend(kept);
    let mut column = 0;
    for help in &mut all {
        help.first = column;
        column += help.width() + GAP;
    }
    all
}

/// The word for what a key does now.
fn word(state: &State, binding: &Binding) -> &'static str {
    match binding.command {
        Command::Pause if state.live.paused.is_some() => "go on",
        Command::Open if state.screen == Screen::Live => match state.row_to_open() {
            Some(row) if row.kind != RowKind::Event => "read",
            _ => binding.word,
        },
        Command::Submit => state.submit_word().unwrap_or(binding.word),
        Command::Complete if state.typed_field().is_some() => "next field",
        Command::OtherPane if state.live.pane == Pane::Sources => "events",
        Command::Lock if state.status.as_ref().is_some_and(|status| status.lock.is_some()) => "unlock",
        Command::Mute => {
            let muted = state.sources().get(state.live.source_at).is_some_and(|source| source.is_muted);
            if muted { "hear" } else { binding.word }
        }
        _ => binding.word,
    }
}

/// The key of the help line that is there.
pub(crate) fn help_at(state: &State, column: u16, row: u16) -> Option<Command> {
    let is_there = |help: &&Help| (help.first..help.first + help.width()).contains(&column);
    let is_row = row + 1 == state.size.height;
    help(state).iter().find(|help| is_row && is_there(help)).map(|help| help.command)
}
