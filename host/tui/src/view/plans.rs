//! The screen Plans: what waits for a person, and what the chosen one changes.

use conductor_host::control::plan::rehearsal::Difference;
use conductor_host::control::plan::risk::Level;
use conductor_host::host::PlanView;
use conductor_stdx::plural::plural;

use super::{Part, field, paragraph, sentence, title};
use crate::state::State;
use conductor_screen_text::{Look, Row};

/// Lines of a diff that are shown.
const MAX_DIFF: usize = 4000;

pub(super) fn parts(state: &State, columns: usize) -> (Option<Part>, Option<Part>) {
    let list = &state.plans.list;
    let rows = list.iter().map(|plan| {
        // Of another configuration: how far it would reach is not the question.
        let (look, level) = match plan.stale {
            true => (Look::Dim, "stale"),
            false => (risk(plan.risk.level), plan.risk.level.as_str()),
        };
        let row = Row::of(Look::Plain, " ").cell(look, level, 10);
        let row = row.cell(Look::Dim, plan.id.get(..6).unwrap_or(&plan.id), 6).cell(Look::Dim, &plan.proposer, 22);
        row.put_rest(Look::Plain, &plan.description, columns)
    });
    let above = Part::list(title("Plans that wait for you"), rows.collect(), state.plans.at, "none waits");
    let mut lines = match list.get(state.plans.at).map(|plan| state.plans.views.get(&plan.id)) {
        None => Vec::new(),
        Some(None) => vec![Row::of(Look::Dim, "asking the host ...")],
        Some(Some(Err(why))) => sentence(Look::Bad, "", why, columns),
        Some(Some(Ok(view))) => plan(view, columns),
    };
    if let Some((undo, redo)) = &state.plans.steps {
        lines.push(Row::new());
        for (about, verb, step) in [("undo would", "take back", undo), ("redo would", "apply again", redo)] {
            lines.extend(match step {
                Ok(what) => field(about, Look::Plain, &format!("{verb}: {what}"), columns),
                // Beside a plan that waits it is nothing to decide about.
                Err(_) if !list.is_empty() => Vec::new(),
                Err(why) => field(about, Look::Dim, &format!("do nothing: {why}"), columns),
            });
        }
    }
    (Some(above), Some(Part::text(title("Plan"), lines, state.plans.scroll)))
}

fn risk(level: Level) -> Look {
    match level {
        Level::Privileged => Look::Bad,
        Level::Raised => Look::Doubt,
        Level::Usual => Look::Plain,
    }
}

/// All that a person should know before deciding.
pub(super) fn plan(view: &PlanView, columns: usize) -> Vec<Row> {
    let PlanView { plan, folded_diff, rehearsal } = view;
    let mut lines = sentence(Look::Strong, "  ", &plan.description, columns);
    lines.extend(sentence(Look::Dim, "  ", &format!("proposed by {}", plan.proposed_by()), columns));
    let files = plan.touched_files.join(", ");
    let about = format!("{} of {files}, risk: {}", plural(plan.changes.len(), "change"), plan.risk.level.in_words());
    lines.extend(sentence(risk(plan.risk.level), "  ", &about, columns));
    let look = if plan.risk.level == Level::Privileged { Look::Doubt } else { Look::Plain };
    for note in &plan.risk.notes {
        lines.extend(sentence(look, "  ", &format!("{} {note}", plan.risk.level.bullet()), columns));
    }
    lines.extend(sentence(Look::Plain, "  ", &rehearsal.summary(), columns));
    for Difference { device, event, was, would_be, .. } in &rehearsal.shown {
        let rules = |rules: &[String]| if rules.is_empty() { "nothing".to_owned() } else { rules.join(", ") };
        let text = format!("{device} {event}: {} -> {}", rules(was), rules(would_be));
        lines.extend(sentence(Look::Plain, "    ", &text, columns));
    }
    for line in rehearsal.untried_lines() {
        lines.extend(sentence(Look::Plain, "  ", &line, columns));
    }
    lines.push(Row::new());
    lines.extend(diff(folded_diff.as_deref().unwrap_or(&plan.diff), columns));
    if folded_diff.is_some() {
        let id = plan.id.get(..12).unwrap_or(&plan.id);
        lines.push(Row::of(Look::Dim, format!("long values are folded; `conductor plan show {id} --full`")));
    }
    lines
}

/// A diff, behind the gutter.
fn diff(text: &str, columns: usize) -> Vec<Row> {
    let mut lines = Vec::new();
    let all = text.strip_suffix('\n').unwrap_or(text).split('\n');
    for line in all {
        if lines.len() >= MAX_DIFF {
            lines.push(Row::of(Look::Doubt, "the rest is not shown here: `conductor plan show`"));
            break;
        }
        let look = match line.bytes().next() {
            Some(b'+') => Look::Good,
            Some(b'-') => Look::Bad,
            Some(b'@') => Look::Accent,
            _ => Look::Plain,
        };
        lines.extend(paragraph(look, line, columns));
    }
    lines
}
