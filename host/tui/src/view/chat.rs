//! The screen Chat: the conversations, and one of them with what waits for a person in its place.

use std::iter;

use conductor_chat::costs::dollars;
use conductor_chat::record::Approval;
use conductor_chat::store::ConversationView;
use conductor_terminal::markdown::Markdown;

use super::{Part, Scroll, or_nothing, paragraph, plans, sentence, title};
use crate::input::{Command, Context, key_of};
use crate::state::State;
use crate::state::chat::{Conversation, Part as Said};
use conductor_screen_text::{Look, Row, wrapped};

/// Lines of a plan in a conversation; the screen Plans has all.
const PLAN_LINES: usize = 16;

pub(super) fn list(state: &State, columns: usize) -> Part {
    let row = |view: &ConversationView| {
        let model = view.model.as_deref().unwrap_or("default");
        let title = if view.title.is_empty() { "(nothing was said yet)" } else { &view.title };
        let row = Row::new().right(Look::Dim, view.id, 6).cell(Look::Dim, model, 14);
        row.put_rest(Look::Plain, title, columns)
    };
    let lines: Vec<Row> = state.chat.list.iter().map(row).collect();
    let none = format!("there is none; {} begins one", key_of(Context::Conversations, Command::Begin));
    Part::list(title("Conversations"), lines, state.chat.at, &none)
}

pub(super) fn open(state: &State, open: &Conversation, columns: usize, rows: usize) -> Part {
    let cost = match open.unknown {
        0 => dollars(open.cost),
        unknown if unknown == open.answers => "at an unknown price".to_owned(),
        unknown => format!("{} and {unknown} answers at an unknown price", dollars(open.cost)),
    };
    let (read, written) = open.tokens;
    let mut head = title(&format!("Conversation {}", open.id));
    if !open.model.is_empty() {
        head = head.put_cut(Look::Plain, &open.model, 20).put(Look::Plain, " ");
    }
    if open.answers > 0 {
        head = head.put(Look::Dim, format!("{read} tokens read, {written} written, {cost} "));
    }
    if open.is_turn {
        head = head.put(Look::Doubt, "… ");
    }
    // From the end on, and only as much as is shown: a conversation may be long, and an answer takes time to render.
    let wanted = rows + open.back;
    let mut pieces: Vec<Vec<Row>> = open.approval.iter().map(|asked| waiting_call(asked, columns)).collect();
    let mut count = pieces.iter().map(Vec::len).sum::<usize>();
    let mut parts = open.parts.iter().rev();
    let is_whole = loop {
        if count > wanted {
            break false;
        }
        let Some(part) = parts.next() else { break true };
        let piece = said(state, part, columns);
        count += piece.len();
        pieces.push(piece);
    };
    if is_whole && open.is_cut {
        pieces.push(vec![Row::of(Look::Dim, "(older parts: `conductor chat show`)")]);
    }
    let lines: Vec<Row> = pieces.into_iter().rev().flatten().collect();
    let none = format!("nothing was said yet; {} writes", key_of(Context::Conversation, Command::Write));
    let lines = or_nothing(lines, &none);
    let most = lines.len().saturating_sub(rows);
    let first = most.saturating_sub(open.back);
    let shown = lines.into_iter().skip(first).take(rows).collect();
    Part {
        title: head,
        lines: shown,
        chosen: None,
        scroll: Scroll::Done { most: if is_whole { most } else { usize::MAX } },
    }
}

fn waiting_call(asked: &Approval, columns: usize) -> Vec<Row> {
    let keys = ways(&[("agrees", Command::Agree), ("declines", Command::Decline)]);
    let mut lines = vec![Row::of(Look::Bad, "▶ a call waits for you").put(Look::Plain, keys)];
    lines.extend(call(asked, columns));
    lines
}

fn said(state: &State, part: &Said, columns: usize) -> Vec<Row> {
    match part {
        Said::Said(text) => {
            let said = wrapped(text, columns.saturating_sub(2));
            let before = ["> "].into_iter().chain(iter::repeat("  "));
            let row = |(before, line): (&str, &String)| Row::of(Look::Accent, before).put_escaped(Look::Strong, line);
            iter::once(Row::new()).chain(before.zip(&said).map(row)).collect()
        }
        Said::Answer { text } => {
            let width = u16::try_from(columns).unwrap_or(u16::MAX);
            let mut markdown = Markdown::new(Some(width), true);
            let rendered = markdown.push(text) + &markdown.end();
            Row::of_markdown(&rendered).into_iter().flat_map(|row| row.broken(columns)).collect()
        }
        Said::Call { tool, args, result, .. } => {
            let args = if matches!(args.trim(), "" | "{}") { String::new() } else { format!(" {args}") };
            let row = Row::of(Look::Dim, "  [").put_cut(Look::Accent, tool, 40).put_cut(Look::Dim, args, columns / 3);
            vec![match result {
                None => row.put(Look::Dim, "] …"),
                Some((text, true)) => row.put(Look::Bad, "] failed: ").put_rest(Look::Bad, text, columns),
                Some((text, false)) => row.put(Look::Dim, "] -> ").put_rest(Look::Dim, text, columns),
            }]
        }
        Said::Plan { id, outcome: None, .. } => waiting_plan(state, id, columns),
        Said::Plan { id, description, outcome: Some(outcome) } => {
            let row = Row::of(Look::Dim, "  the plan ").put_cut(Look::Dim, id.get(..12).unwrap_or(id), 12);
            let row = row.put(Look::Strong, format!(": {}", outcome.as_str()));
            let what =
                if description.is_empty() { Vec::new() } else { sentence(Look::Plain, "  ", description, columns) };
            iter::once(row).chain(what).collect()
        }
        // It stands at the end.
        Said::Approval { agreed: None, .. } => Vec::new(),
        Said::Approval { tool, effect, agreed: Some(agreed), .. } => {
            let came = if *agreed { "  you agreed to " } else { "  you did not agree to " };
            vec![Row::of(Look::Dim, came).put_rest(Look::Plain, format!("{tool}: {effect}"), columns)]
        }
        Said::Notification { feature, text } => {
            let row = Row::of(Look::Accent, "  ").put_cut(Look::Accent, feature, 40).put(Look::Accent, " notified:");
            iter::once(row).chain(paragraph(Look::Plain, text, columns)).collect()
        }
        Said::Remark { text, is_wrong } => sentence(if *is_wrong { Look::Bad } else { Look::Dim }, "  ", text, columns),
    }
}

/// The keys that decide.
fn ways(ways: &[(&str, Command)]) -> String {
    let way = |(word, command): &(&str, Command)| format!("{} {word}", key_of(Context::Conversation, *command));
    format!(" ({})", ways.iter().map(way).collect::<Vec<_>>().join(", "))
}

/// What a call would do that waits for a person.
pub(super) fn call(asked: &Approval, columns: usize) -> Vec<Row> {
    let mut lines = sentence(Look::Strong, "  ", &format!("{} {}:", asked.tool, asked.effect), columns);
    lines.extend(paragraph(Look::Plain, &asked.shown, columns));
    lines
}

/// A plan where it was proposed.
fn waiting_plan(state: &State, id: &str, columns: usize) -> Vec<Row> {
    let keys = ways(&[("applies", Command::Apply), ("rejects", Command::Reject)]);
    let mut lines = vec![Row::of(Look::Doubt, "▶ a plan waits for you").put(Look::Plain, keys)];
    match state.plans.views.get(id) {
        None => lines.push(Row::of(Look::Dim, "  asking the host ...")),
        Some(Err(why)) => lines.extend(sentence(Look::Bad, "  ", why, columns)),
        Some(Ok(view)) => {
            let all = plans::plan(view, columns);
            let left = all.len().saturating_sub(PLAN_LINES);
            lines.extend(all.into_iter().take(PLAN_LINES));
            if left > 0 {
                lines.push(Row::of(Look::Dim, format!("  {left} more lines")));
            }
        }
    }
    lines
}
