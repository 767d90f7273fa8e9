//! The screen Learn: what was moved, and the mapping that is made of it.

use conductor_learn_mapping::{Control, Gesture, Unbound, action_keys::ActionKey};
use conductor_ports::status::{BindingStatus, DiscoveredPort, SideState};
use conductor_ports::{Direction, Protocol};

use super::{Part, field, reason, sentence, title};
use crate::input::{Command, Context, key_of};
use crate::state::State;
use crate::state::layout;
use crate::state::learn::{Listening, begins};
use crate::state::light::LightRequest;
use crate::state::overlay::{Overlay, Prompt, Purpose};
use conductor_screen_text::{Look, Row};

pub(super) fn parts(state: &State, columns: usize) -> (Option<Part>, Option<Part>) {
    let learn = &state.learn;
    let head = match (&learn.listening, &learn.device) {
        (Listening::No, _) => title("Learn").put(Look::Dim, "nothing is listened to "),
        (Listening::Starting, _) => title("Learn").put(Look::Doubt, "starting "),
        (Listening::Yes { .. }, None) => title("Learn").put(Look::Good, "move a control of any device "),
        (Listening::Yes { .. }, Some(device)) => {
            title("Learn").put(Look::Good, "move a control of ").put_cut(Look::Accent, device, 30).put(Look::Plain, " ")
        }
    };
    let row = |control: &Control| {
        let row =
            Row::of(Look::Plain, " ").cell(Look::Plain, &control.device, 22).cell(Look::Strong, &control.kind, 12);
        row.put_rest(Look::Plain, &control.last, columns)
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
    let below = match &state.overlay {
        Some(Overlay::Line(Prompt { purpose: Purpose::Action, line, .. })) => Part::text(
            title("Actions").put(Look::Dim, r#"TYPE, TYPE VALUE or TYPE { key = "text", other = 1 } "#),
            actions(state, line.text(), columns),
            0,
        ),
        Some(Overlay::Line(Prompt { purpose: Purpose::Light(request), .. })) => {
            Part::text(title("Light"), light(state, request, columns), 0)
        }
        _ => Part::text(title("Control"), control(state, columns), 0),
    };
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

/// Why what was typed last was refused, the types of actions that begin as what is typed, and the keys of the one that is.
fn actions(state: &State, typed: &str, columns: usize) -> Vec<Row> {
    let typed = typed.split(' ').next().unwrap_or_default().to_lowercase();
    let fit = |(name, _): &&(String, String)| begins(name, &typed);
    let row = |(name, what): &(String, String)| {
        Row::of(Look::Plain, " ").cell(Look::Strong, name, 30).put_rest(Look::Dim, what, columns)
    };
    let rows = layout::lower_rows(state);
    let mut lines = state.learn.refused.as_ref().map_or_else(Vec::new, |why| reason(why, columns));
    let control = state.learn.learned.controls.get(state.learn.at);
    if let Some(gesture) = control.and_then(Control::gesture).filter(|_| !state.learn.is_plain) {
        lines.extend(sentence(Look::Doubt, "", &format!("the mapping waits for the {}", gesture.kind), columns));
    }
    let before = lines.len();
    lines.extend(state.learn.actions.iter().filter(fit).take(rows).map(row));
    if lines.len() == before {
        lines.extend(sentence(Look::Dim, "", "no action is known that begins so", columns));
    }
    let keys = state.learn.keys.iter().filter(|(name, _)| name.to_lowercase() == typed).flat_map(|(_, keys)| keys);
    for ActionKey { name, required, help, .. } in keys {
        let needed = if *required { "needed" } else { "" };
        let row = Row::of(Look::Plain, "   ").cell(Look::Accent, name, 20).cell(Look::Doubt, needed, 8);
        lines.push(row.put_rest(Look::Dim, help, columns));
    }
    if matches!(typed.as_str(), "sendmidi" | "midiforward") {
        let outputs = outputs(state);
        let said = if outputs.is_empty() { "there are none now".to_owned() } else { outputs.join(", ") };
        lines.extend(field("outputs", Look::Plain, &said, columns));
    }
    lines
}

/// What the mapping does, the output that it gets, and what the light can show.
fn light(state: &State, request: &LightRequest, columns: usize) -> Vec<Row> {
    let mut lines = field("action", Look::Accent, &request.proposal.action, columns);
    if let Some(output) = &request.output {
        let what = format!("{} is bound with it, in the same plan", output.label);
        lines.extend(field("output", Look::Doubt, &what, columns));
    }
    if let Some(light) = state.typed_light() {
        let colours: Vec<String> = light.colours().map(|(name, value)| format!("{name} = {value}")).collect();
        lines.extend(field("colours", Look::Plain, &colours.join(", "), columns));
    }
    lines
}

/// What MIDI can be sent to now, as an action names it: bindings whose output is there, then ports that no binding has.
fn outputs(state: &State) -> Vec<String> {
    let Some(ports) = state.status.as_ref().map(|status| &status.ports) else { return Vec::new() };
    let has_output = |binding: &&BindingStatus| {
        binding.protocol == Protocol::Midi
            && binding.output.as_ref().is_some_and(|output| output.state == SideState::Bound)
    };
    let bound = ports.bindings.iter().filter(has_output).map(|binding| format!("{:?}", binding.alias));
    let is_free = |port: &&DiscoveredPort| {
        port.port.protocol == Protocol::Midi && port.port.direction == Direction::Output && port.bindings.is_empty()
    };
    bound.chain(ports.ports.iter().filter(is_free).map(|port| format!("{:?}", port.device))).collect()
}
