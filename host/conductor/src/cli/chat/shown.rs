//! What a turn looks like at a terminal: the answer as Markdown, calls of tools as cards of one line, which open.

use conductor_chat::record::{ChatEvent, Recorded};
use conductor_stdx::plural::plural_u64;
use conductor_terminal::{self as terminal, Lines, Rendered, errln};

/// Columns of a card's arguments and of its result.
const CARD: (usize, usize) = (60, 60);

/// A call of a tool.
#[derive(Debug)]
struct Card {
    call: String,
    tool: String,
    args: String,
    /// Its result, and whether it failed; `None` while it is under way.
    result: Option<(String, bool)>,
}

/// What is on the terminal of a conversation.
#[derive(Debug, Default)]
pub(super) struct Shown {
    answer: Rendered,
    cards: Vec<Card>,
    /// Whether a model has said something since the last line of this program, and whether its last line is open.
    is_saying: bool,
    is_open: bool,
}

impl Shown {
    /// Shows what happened.
    pub(super) fn event(&mut self, one: &Recorded) {
        match &one.event {
            ChatEvent::Text { text } => {
                if !std::mem::replace(&mut self.is_saying, true) {
                    // As wide as the terminal is by now.
                    self.answer = Rendered::new();
                }
                self.answer.push(text);
                self.is_open = !text.ends_with('\n');
            }
            ChatEvent::Call { call, tool, args, .. } => {
                self.end_answer();
                let (call, tool, args) = (call.clone(), tool.clone(), args.clone());
                self.cards.push(Card { call, tool, args, result: None });
            }
            ChatEvent::CallEnded { call, result, failed, .. } => self.end_call(call, result, *failed),
            ChatEvent::ModelFailed { model, error } => {
                self.end_answer();
                errln!("  {model} gave no answer: {error}");
            }
            ChatEvent::Answered { notes, .. } => {
                self.end_answer();
                notes.iter().for_each(|note| errln!("  ({note})"));
            }
            ChatEvent::Notification { feature, text, left_out, .. } => self.notification(feature, text, *left_out),
            ChatEvent::Approval { .. } | ChatEvent::TurnEnded { .. } => self.end_answer(),
            _ => {}
        }
    }

    /// Ends the text of a model with its line.
    fn end_answer(&mut self) {
        if std::mem::take(&mut self.is_saying) {
            self.answer.end();
            // Where it is not rendered it comes as it was said.
            if std::mem::take(&mut self.is_open) && !terminal::is_output_terminal() {
                terminal::piece("\n");
            }
        }
    }

    fn notification(&mut self, feature: &str, text: &str, left_out: u64) {
        self.end_answer();
        let mut lines = Lines::new();
        if left_out > 0 {
            lines.push(format_args!("  ({} before the next one are left out)", plural_u64(left_out, "notification")));
        }
        // The text was escaped when it was kept.
        lines.push_escaped(&format!("  {feature}: {text}"));
        terminal::eprint(&lines);
    }

    fn end_call(&mut self, call: &str, result: &str, failed: bool) {
        // Ids are unique in an answer only.
        let Some(at) = self.cards.iter().rposition(|card| card.call == call && card.result.is_none()) else { return };
        let card = &mut self.cards[at];
        card.result = Some((result.to_owned(), failed));
        let args = if matches!(card.args.trim(), "" | "{}") { "" } else { card.args.as_str() };
        let (tool, args, result) =
            (terminal::escape(&card.tool), terminal::fit(args, CARD.0), terminal::fit(result, CARD.1));
        let space = if args.is_empty() { "" } else { " " };
        let sign = if failed { "failed:" } else { "->" };
        let mut line = Lines::new();
        line.push_escaped(&format!("  [{}] {tool}{space}{args} {sign} {result}", at + 1));
        terminal::eprint(&line);
    }

    /// Opens a card: all of its arguments and its result.
    pub(super) fn open(&self, number: &str) {
        let card = number.trim().parse::<usize>().ok().and_then(|number| self.cards.get(number.checked_sub(1)?));
        let Some(card) = card else {
            match self.cards.len() {
                0 => errln!("no tool was called yet"),
                count => errln!("/open takes a number, 1 to {count}"),
            }
            return;
        };
        let mut lines = Lines::new();
        lines.push(&card.tool);
        lines.push_text("  < ", &readable(&card.args));
        match &card.result {
            Some((result, _)) => lines.push_text("  > ", &readable(result)),
            None => lines.push("  (it is under way, or the turn ended before)"),
        }
        terminal::eprint(&lines);
    }
}

/// JSON over several lines; other text as it is.
fn readable(text: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(text);
    value.ok().and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or_else(|| text.to_owned())
}
