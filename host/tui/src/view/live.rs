//! The screen Live: sources with their rates, events as they come, and an event that is opened.

use super::{Part, field, more_columns, paragraph, rate, sentence, title, width};
use crate::input::{Command, Context, key_of};
use crate::state::State;
use crate::state::layout;
use crate::state::live::{Listed, Pane, Row as Happened, RowKind};
use crate::state::overlay::Explanation;
use conductor_screen_text::{Look, Row, cut};

pub(super) fn parts(state: &State, columns: usize, rows: usize) -> (Option<Part>, Option<Part>) {
    let sources = state.sources();
    let unbound = sources.iter().filter(|source| source.is_unbound).count();
    let head = match unbound {
        0 => title("Sources"),
        count => {
            let map = key_of(Context::Live, Command::Map);
            let keys = key_of(Context::Everywhere, Command::Keys);
            let hint = format!("move a control, {map} maps it; {keys} explains the words ");
            title("Unbound sources").put(Look::Doubt, format!("({count}) ")).put(Look::Dim, hint)
        }
    };
    let lines = sources.iter().map(|one| source(one, columns)).collect();
    let mut above = Part::list(head, lines, state.live.source_at, "no source is there");
    let in_sources = state.live.pane == Pane::Sources;
    above.chosen = above.chosen.filter(|_| in_sources);
    let mut head = title("Events").put(Look::Plain, format!("{} ", state.live.kinds.name()));
    if state.live.paused.is_some() {
        head = head.put(Look::Doubt, format!("PAUSED, {} wait ", state.live.waiting()));
    }
    if let Some(only) = &state.live.only {
        head = head.put(Look::Plain, "of ").put_cut(Look::Accent, only, 24).put(Look::Plain, " ");
    }
    if !state.live.filter.is_empty() {
        head = head.put(Look::Plain, "with ").put_cut(Look::Accent, &state.live.filter, 24).put(Look::Plain, " ");
    }
    let shown = layout::live_rows(state, rows);
    let chosen =
        state.live.chosen.filter(|_| !in_sources).and_then(|number| shown.iter().position(|row| row.number >= number));
    let device = shown.iter().map(|row| width(&cut(&row.source, 16))).max().unwrap_or(0).clamp(6, 16);
    let lines: Vec<Row> = shown.iter().map(|row| happened(row, device, columns)).collect();
    let mut below = Part::list(head, lines, 0, "nothing came yet that is shown here");
    below.chosen = chosen;
    (Some(above), Some(below))
}

fn source(source: &Listed, columns: usize) -> Row {
    let look = if source.is_unbound { Look::Doubt } else { Look::Plain };
    let sign = match (source.is_muted, source.is_alight, source.is_unbound) {
        (true, ..) => "✗",
        (_, true, _) => "●",
        (_, _, true) => "?",
        _ => "·",
    };
    let protocol = source.protocol.map_or("-".to_owned(), |protocol| protocol.to_string());
    let row = Row::of(if source.is_alight { Look::Good } else { Look::Dim }, format!(" {sign} "));
    let row = row.cell(look, &source.device, 22 + more_columns(columns)).cell(Look::Dim, protocol, 6);
    let row = row.right(look, format!("{}/s", rate(source.rate)), 8).right(Look::Dim, source.total, 8);
    let state = match (source.is_muted, source.is_unbound, source.state.as_str()) {
        (true, ..) => "muted until the host ends".to_owned(),
        (_, true, "") => "no binding".to_owned(),
        (_, true, state) => format!("no binding, {state}"),
        (_, _, state) => state.to_owned(),
    };
    let said: Vec<&str> = [source.kinds.as_str(), state.as_str()].into_iter().filter(|text| !text.is_empty()).collect();
    row.put_rest(look, said.join("; "), columns)
}

/// A row: when, badge, device, channel, what, the control's name, what fired.
fn happened(row: &Happened, device: usize, columns: usize) -> Row {
    let at = row.at.map(|at| format!("{:.3}", at as f64 / 1e9)).unwrap_or_default();
    let (badge, look) = match row.kind {
        RowKind::Event if row.rules.is_empty() => (Look::Dim, Look::Plain),
        RowKind::Event => (Look::Accent, Look::Plain),
        RowKind::Trouble => (Look::Bad, Look::Bad),
        RowKind::Gap => (Look::Doubt, Look::Doubt),
        RowKind::Message | RowKind::Change => (Look::Accent, Look::Plain),
    };
    let channel = row.channel().map(|channel| channel.to_string()).unwrap_or_default();
    let line = Row::new().right(Look::Dim, at, 10).cell(badge, row.badge(), 4);
    if row.kind != RowKind::Event {
        let source = if row.source.is_empty() { String::new() } else { format!("{}: ", row.source) };
        return line.put_rest(look, format!("{source}{}", row.text), columns);
    }
    let line = line.cell(look, &row.source, device).right(Look::Dim, channel, 2);
    let line = line.cell(look, &row.text, 22 + more_columns(columns));
    let line =
        if row.control.is_empty() { line } else { line.put_cut(Look::Accent, &row.control, 12).put(Look::Plain, " ") };
    if row.rules.is_empty() {
        return line.put(Look::Dim, "no rule");
    }
    line.put(Look::Good, "─▶ ").put_rest(Look::Good, row.rules.join(", "), columns)
}

/// What else happened and is opened: all of it.
fn incident(row: &Happened, scroll: usize, columns: usize) -> Part {
    let mut lines = Vec::new();
    if !row.source.is_empty() {
        lines.extend(field("of", Look::Plain, &row.source, columns));
    }
    if let Some(at) = row.at {
        lines.extend(field("at", Look::Plain, &seconds(at), columns));
    }
    let look = if row.kind == RowKind::Trouble { Look::Bad } else { Look::Plain };
    lines.extend(paragraph(look, &row.text, columns));
    if row.is_cut {
        lines.push(Row::of(Look::Dim, "the rest was not kept"));
    }
    Part::text(title("What happened"), lines, scroll)
}

/// When something happened.
fn seconds(at: u64) -> String {
    format!("{:.6} s after the host's start", at as f64 / 1e9)
}

/// An event that is opened: what it is, and which rules look at it. Of what is no event, what it is.
pub(super) fn explanation(open: &Explanation, columns: usize) -> Part {
    let row = &open.row;
    if row.kind != RowKind::Event {
        return incident(row, open.scroll, columns);
    }
    let mut lines = Vec::new();
    let mut say = |about: &str, text: &str| lines.extend(field(about, Look::Plain, text, columns));
    say("device", &row.source);
    say("event", &row.text);
    if !row.control.is_empty() {
        say("control", &row.control);
    }
    if let Some(channel) = row.channel() {
        say("channel", &channel.to_string());
    }
    if let Some(at) = row.at {
        say("at", &seconds(at));
    }
    say("fired", &if row.rules.is_empty() { "nothing".to_owned() } else { row.rules.join(", ") });
    lines.push(Row::new());
    match &open.rules {
        None => lines.push(Row::of(Look::Dim, "asking the host ...")),
        Some(Err(why)) => lines.extend(sentence(Look::Bad, "", why, columns)),
        Some(Ok(rules)) if rules.is_empty() => lines.push(Row::of(Look::Plain, "no rule looks at it")),
        Some(Ok(rules)) => {
            lines.push(Row::of(Look::Dim, "the rules that look at it, as they are now:"));
            for rule in rules {
                let (look, sign) = if rule.fires { (Look::Good, "▶ fires  ") } else { (Look::Dim, "· doesn't ") };
                lines.push(Row::of(look, sign).put_rest(Look::Strong, &rule.rule, columns));
                lines.extend(sentence(Look::Plain, "    ", &rule.why, columns));
            }
        }
    }
    Part::text(title("Event"), lines, open.scroll)
}
