//! The screen Learn: what was moved, and the mapping that is made of it.

use conductor_learn_mapping::{Control, Gesture, Unbound};
use conductor_screen_text::{Look, Row};

use super::{Part, action, field, title};
use crate::input::{Command, Context, key_of};
use crate::state::State;
use crate::state::learn::Listening;

pub(super) fn parts(state: &State, columns: usize) -> (Option<Part>, Option<Part>) {
    let learn = &state.learn;
    let head = match (&learn.listening, &learn.device) {
        (Listening::No, _) if learn.learned.controls.is_empty() => title("Learn").put(Look::Dim, "not listening "),
        (Listening::No, _) => title("Learn").put(Look::Dim, "what was moved "),
        (Listening::Starting, _) => title("Learn").put(Look::Doubt, "starting "),
        (Listening::Yes { .. }, None) => title("Learn").put(Look::Good, "move a control of any device "),
        (Listening::Yes { .. }, Some(device)) => {
            title("Learn").put(Look::Good, "move a control of ").put_cut(Look::Accent, device, 30).put(Look::Plain, " ")
        }
    };
    let row = |control: &Control| {
        let row = Row::of(Look::Plain, " ").cell(Look::Plain, &control.device, 22).cell(
            Look::Strong,
            state.name_of(control),
            12,
        );
        // Of a control that was let go of it is the release, which is not what a mapping waits for.
        row.put_rest(Look::Dim, format!("last: {}", control.last), columns)
    };
    let why = match (&learn.listening, learn.learned.unbound.is_empty()) {
        (Listening::No, _) => &format!(
            "{} listens to every port; in Live, {} to one source",
            key_of(Context::Learn, Command::ListenStart),
            key_of(Context::Live, Command::Map)
        ),
        (_, true) if learn.is_moving => "something moves: it is listed once it rests",
        (_, true) => "nothing was moved since: what came before does not count",
        (_, false) => "something came, but nothing that a mapping can wait for",
    };
    let lines: Vec<Row> = learn.learned.controls.iter().map(row).collect();
    let above = Part::list(head, lines, learn.at, why);
    let below = action::part(state, columns);
    let below = below.unwrap_or_else(|| Part::text(title("Control"), control(state, columns), 0));
    (Some(above), Some(below))
}

fn control(state: &State, columns: usize) -> Vec<Row> {
    let learn = &state.learn;
    let mode = learn.mode.as_deref().unwrap_or("every mode");
    let Some(control) = learn.learned.controls.get(learn.at) else { return Vec::new() };
    let whose = if learn.any { "any device" } else { "this device alone" };
    let mut lines = field("will map", Look::Plain, &format!("in {mode}, from {whose}"), columns);
    if let Some(Unbound { could_be, .. }) = learn.learned.unbound_port_of(control) {
        let what = match could_be {
            Some(alias) => format!("the port becomes {alias} first: it could as well be another"),
            None => "the port gets a binding first, in the same plan".to_owned(),
        };
        lines.extend(field("", Look::Doubt, &what, columns));
    }
    lines.extend(field("evidence", Look::Plain, &control.evidence.join("; "), columns));
    lines.extend(field("trigger", Look::Accent, &control.toml, columns));
    for gesture in &control.gestures {
        let Gesture { kind, evidence, toml } = gesture;
        lines.extend(field("gesture", Look::Plain, &format!("{kind}: {evidence}"), columns));
        lines.extend(field("", Look::Accent, toml, columns));
        if control.gesture() == Some(gesture) {
            lines.extend(field("", Look::Doubt, &waits_for(gesture, learn.is_plain), columns));
        }
    }
    lines
}

/// Which of a control and its gesture the mapping waits for, and how that is changed.
fn waits_for(Gesture { kind, .. }: &Gesture, is_plain: bool) -> String {
    let key = key_of(Context::Learn, Command::Gesture);
    match is_plain {
        true => format!("the mapping waits for the control alone; {key}: for the {kind}"),
        false => format!("the mapping waits for the {kind}; {key}: for the control alone"),
    }
}
