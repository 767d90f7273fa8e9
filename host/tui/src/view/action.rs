//! What is typed of a mapping, below the screen's list: the action, by a list, a form or a line, and the light.

use conductor_learn_mapping::Control;
use conductor_learn_mapping::action_form::{ActionForm, FormField};
use conductor_learn_mapping::action_keys::ActionKey;
use conductor_learn_mapping::device_light::DeviceLight;
use conductor_ports::status::{BindingStatus, DiscoveredPort, SideState};
use conductor_ports::{Direction, Protocol};
use conductor_screen_text::{Look, Row};

use super::{Part, field, reason, sentence, title};
use crate::state::State;
use crate::state::light::LightRequest;
use crate::state::overlay::{Overlay, Prompt, Purpose};

/// What is typed. `None` if it is nothing of a mapping.
pub(super) fn part(state: &State, columns: usize) -> Option<Part> {
    if let Some((form, name)) = state.typed_field() {
        return Some(fields(state, form, name, columns));
    }
    let Some(Overlay::Line(Prompt { purpose, line, .. })) = &state.overlay else { return None };
    match purpose {
        Purpose::Action => Some(actions(state, line.text(), columns)),
        Purpose::Light(request) => Some(Part::text(title("Light"), light(state, request, columns), 0)),
        Purpose::MappingLight(_) => Some(Part::text(title("Light"), colours(state.typed_light(), columns), 0)),
        _ => None,
    }
}

/// Why what was typed last was refused, and what the mapping waits for where that is not the control alone.
fn remarks(state: &State, columns: usize) -> Vec<Row> {
    let learn = &state.learn;
    let mut lines = learn.refused.as_ref().map_or_else(Vec::new, |why| reason(why, columns));
    let control = learn.learned.controls.get(learn.at).filter(|_| learn.changed.is_none());
    if let Some(gesture) = control.and_then(Control::gesture).filter(|_| !learn.is_plain) {
        lines.extend(sentence(Look::Doubt, "", &format!("the mapping waits for the {}", gesture.kind), columns));
    }
    lines
}

/// The types of actions that begin as what is typed, and the keys of the one that is.
fn actions(state: &State, line: &str, columns: usize) -> Part {
    let typed = line.trim();
    let kind = typed.split([' ', '{']).next().unwrap_or_default();
    let mut lines = remarks(state, columns);
    let (before, chosen) = (lines.len(), state.chosen_action(typed));
    let row = |(name, what): &(String, String)| {
        Row::of(Look::Plain, " ").cell(Look::Strong, name, 30).put_rest(Look::Dim, what, columns)
    };
    let at = state.fitting_actions(typed).position(|(name, _)| chosen == Some(name.as_str()));
    lines.extend(state.fitting_actions(typed).map(row));
    if lines.len() == before {
        lines.extend(sentence(Look::Dim, "", "no action is known that begins so", columns));
    }
    let keys = state.learn.keys.iter().filter(|(name, _)| name.eq_ignore_ascii_case(kind)).flat_map(|(_, keys)| keys);
    for ActionKey { name, required, help, .. } in keys {
        let needed = if *required { "needed" } else { "" };
        let row = Row::of(Look::Plain, "   ").cell(Look::Accent, name, 20).cell(Look::Doubt, needed, 8);
        lines.push(row.put_rest(Look::Dim, help, columns));
    }
    if sends_midi(kind) {
        lines.extend(field("outputs", Look::Plain, &outputs(state), columns));
    }
    let head = title("Actions").put(Look::Dim, r#"Up, Down and Enter, or type: TYPE { key = "text", other = 1 } "#);
    match at {
        Some(at) => Part::list(head, lines, before + at, ""),
        None => Part::text(head, lines, 0),
    }
}

/// The fields of a form with what is in them, and of the one that is typed what it takes.
fn fields(state: &State, form: &ActionForm, name: &str, columns: usize) -> Part {
    let mut lines = remarks(state, columns);
    let mut at = 0;
    for one in form.fields() {
        let FormField { name: own, is_required, help, example, .. } = &one;
        let needed = if *is_required { "needed" } else { "" };
        let row = Row::of(Look::Plain, " ").cell(Look::Strong, own, 20).cell(Look::Doubt, needed, 7);
        let is_typed = own == name;
        at = if is_typed { lines.len() } else { at };
        lines.push(row.put_rest(Look::Plain, form.typed(own), columns));
        if !is_typed {
            continue;
        }
        let mut say = |about: &str, text: &str| lines.extend(field(about, Look::Dim, text, columns));
        if !help.is_empty() {
            say("", help);
        }
        say("  takes", &one.takes());
        if let Some(example) = example {
            say("  such as", example);
        }
        match name {
            "target" if sends_midi(&form.kind) => say("  outputs", &outputs(state)),
            "mode" => {
                let modes = state.status.as_ref().map(|status| status.modes.join(", "));
                say("  modes", &modes.unwrap_or_default());
            }
            _ => {}
        }
    }
    let known = state.learn.actions.iter().find(|(kind, _)| *kind == form.kind);
    let what = known.map(|(_, what)| what.as_str()).unwrap_or_default();
    let head = title(&form.kind).put_cut(Look::Dim, what, columns / 2).put(Look::Plain, " ");
    Part::list(head, lines, at, "")
}

fn sends_midi(kind: &str) -> bool {
    kind.eq_ignore_ascii_case("SendMidi") || kind.eq_ignore_ascii_case("MidiForward")
}

/// What the mapping does, the output that it gets, and what the light can show.
fn light(state: &State, request: &LightRequest, columns: usize) -> Vec<Row> {
    let mut lines = field("action", Look::Accent, &request.proposal.action, columns);
    if let Some(output) = &request.output {
        let what = format!("{} is bound with it, in the same plan", output.label);
        lines.extend(field("output", Look::Doubt, &what, columns));
    }
    lines.extend(colours(state.typed_light(), columns));
    lines
}

/// What a light can show, where a profile says it.
fn colours(light: Option<&DeviceLight>, columns: usize) -> Vec<Row> {
    let Some(light) = light else { return Vec::new() };
    let colours: Vec<String> = light.colours().map(|(name, value)| format!("{name} = {value}")).collect();
    field("colours", Look::Plain, &colours.join(", "), columns)
}

/// What MIDI can be sent to now, as an action names it: bindings whose output is there, then ports that no binding has.
fn outputs(state: &State) -> String {
    let Some(ports) = state.status.as_ref().map(|status| &status.ports) else { return String::new() };
    let has_output = |binding: &&BindingStatus| {
        binding.protocol == Protocol::Midi
            && binding.output.as_ref().is_some_and(|output| output.state == SideState::Bound)
    };
    let bound = ports.bindings.iter().filter(has_output).map(|binding| format!("{:?}", binding.alias));
    let is_free = |port: &&DiscoveredPort| {
        port.port.protocol == Protocol::Midi && port.port.direction == Direction::Output && port.bindings.is_empty()
    };
    let free = ports.ports.iter().filter(is_free).map(|port| format!("{:?}", port.device));
    let all: Vec<String> = bound.chain(free).collect();
    if all.is_empty() { "there are none now".to_owned() } else { all.join(", ") }
}
