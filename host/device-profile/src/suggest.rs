//! What a person may want first for a device whose profile is known: a name for it, keys for its transport, and lights that
//! show what is pressed. Each part says why it is suggested, and how certain it is.

use serde::Serialize;
use serde_json::{Value, json};

use crate::message::Message;
use crate::numbers::shortened;
use crate::port::PortFit;
use crate::profile::{Confidence, Control, ControlKind, Light, LightMessage, Profile};

/// Controls whose lights are suggested, at most: a row of them shows how it is done.
const MAX_LIT: usize = 8;

/// Names of transport buttons, each with the key that it stands for.
const TRANSPORT: [(&str, &str); 4] =
    [("play", "play_pause"), ("stop", "stop"), ("rewind", "previous_track"), ("forward", "next_track")];

/// A part of what is suggested.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Suggested {
    /// The list of the configuration that it goes to: `bindings` or `global_mappings`.
    pub list: &'static str,
    /// What is put there, as the configuration has it.
    pub value: Value,
    /// What it is, and why.
    pub reason: String,
    /// How certain it is that it does what it says.
    pub confidence: Confidence,
}

/// The port that something is suggested for.
#[derive(Debug, Clone)]
pub struct SuggestFor<'p> {
    /// Its name.
    pub name: &'p str,
    /// By what it fits the profile; `None` if it is not there yet.
    pub fit: Option<PortFit>,
    /// What it is to be called.
    pub alias: &'p str,
    /// The matchers for it, as the configuration has them.
    pub matchers: Vec<Value>,
    /// `midi`, `hid`, `osc` or `artnet`.
    pub protocol: &'p str,
    /// Whether it is bound under the alias already.
    pub bound: bool,
    /// The name of the output by which the device can be sent to; `None` if it has none.
    pub output: Option<&'p str>,
}

/// What is suggested for a port that fits a profile: the binding first, then mappings.
pub fn suggest(profile: &Profile, port: &SuggestFor<'_>) -> Vec<Suggested> {
    let mut parts = Vec::new();
    if !port.bound {
        parts.push(binding(profile, port));
    }
    if port.protocol == "midi" {
        parts.extend(TRANSPORT.iter().filter_map(|(name, key)| transport(profile, port.alias, name, key)));
        if port.output.is_some() {
            parts.extend(lights(profile, port.alias).into_iter().flatten());
        }
    }
    parts
}

fn binding(profile: &Profile, port: &SuggestFor<'_>) -> Suggested {
    let known = profile.identity.confidence.unwrap_or(Confidence::Low);
    // A name can be another device's, too.
    let (by, confidence) = match port.fit {
        Some(PortFit::UsbAndName(_)) => (Some("its USB ids and its name are"), known),
        Some(PortFit::Usb) => (Some("its USB ids are"), known),
        Some(PortFit::Name(_)) => (Some("its name is"), known.min(Confidence::Medium)),
        None => (None, known.min(Confidence::Medium)),
    };
    let title = format!("{} {}", profile.vendor, profile.name);
    let value = json!({
        "alias": port.alias,
        "protocol": port.protocol,
        "description": title,
        "matchers": port.matchers,
    });
    let reason = match by {
        Some(by) => {
            let lights = match (port.output, profile.lights.is_empty()) {
                (_, true) => String::new(),
                (Some(output), _) => format!("; its lights are set by its output \"{}\"", shortened(output)),
                (None, _) => "; its lights are left out: no output of it is there".to_owned(),
            };
            format!("\"{}\" is called {}: {by} that of the {title}{lights}", shortened(port.name), port.alias)
        }
        None => format!("the {title} is called {} when it is plugged in, by the name of its port", port.alias),
    };
    Suggested { list: "bindings", value, reason, confidence }
}

/// The first mode's controls: those that a device sends as it comes.
fn first(profile: &Profile) -> impl Iterator<Item = &Control> {
    let mode = profile.modes.first().map(|mode| mode.name.as_str());
    profile
        .controls
        .iter()
        .filter(move |control| control.modes.is_empty() || control.modes.iter().any(|has| Some(has.as_str()) == mode))
}

fn transport(profile: &Profile, alias: &str, name: &str, key: &str) -> Option<Suggested> {
    let control = first(profile).find(|control| control.name == name && control.kind == ControlKind::Button)?;
    let trigger = match control.message {
        Message::Note { channel, note } => json!({ "type": "Note", "device": alias, "channel": channel, "note": note }),
        // Its release is a message, too, with the value 0.
        Message::Cc { channel, cc } => {
            json!({ "type": "CC", "device": alias, "channel": channel, "cc": cc, "value_range": [1, 127] })
        }
        _ => return None,
    };
    let value = json!({
        "name": format!("{alias} {name}"),
        "trigger": trigger,
        "action": { "type": "Keystroke", "keys": [key] },
    });
    let reason = format!("the button {name} ({}) strikes the key {key}", control.message);
    Some(Suggested { list: "global_mappings", value, reason, confidence: control.confidence })
}

/// Lights of the first row of pads or buttons that have any: on while they are pressed.
fn lights(profile: &Profile, alias: &str) -> Option<[Suggested; 2]> {
    let lit = |control: &&Control| {
        let is_one = matches!(control.kind, ControlKind::Pad | ControlKind::Button);
        let light =
            profile.light_of(control).filter(|light| light.message == LightMessage::Note && values(light).is_some());
        is_one && light.is_some() && matches!(control.message, Message::Note { .. })
    };
    let begin = first(profile).find(lit)?;
    let light = profile.light_of(begin)?;
    let (off, on, colour) = values(light)?;
    let Message::Note { channel, note } = begin.message else { return None };
    // An unbroken run of notes, which one mapping can name.
    let runs_on = |(index, control): &(usize, &Control)| {
        let next = u8::try_from(*index).ok().and_then(|index| note.checked_add(index));
        control.light == begin.light && next.is_some_and(|note| control.message == Message::Note { channel, note })
    };
    let run = first(profile).skip_while(|control| *control != begin).take(MAX_LIT).enumerate().take_while(runs_on);
    let last = run.last().map_or(begin, |(_, control)| control);
    let Message::Note { note: end, .. } = last.message else { return None };
    let notes = if end == note { json!(note) } else { json!(format!("{note}..{end}")) };
    let names = if end == note { begin.name.clone() } else { format!("{} to {}", begin.name, last.name) };
    let all = first(profile).filter(|control| profile.light_of(control).is_some()).count();
    let left_out = match all.saturating_sub(usize::from(end.saturating_sub(note)) + 1) {
        0 => String::new(),
        count => format!("; the lights of {count} more controls are left out"),
    };
    let part = |edge: &str, velocity: u8, what: String| Suggested {
        list: "global_mappings",
        value: json!({
            "name": format!("{alias} lights, {edge}"),
            "trigger": { "type": "Note", "device": alias, "channel": channel, "note": notes.clone(), "on": edge },
            "action": {
                "type": "SendMidi",
                "target": alias,
                "message_type": "NoteOn",
                "channel": light.channel.unwrap_or(channel),
                "note": "{note}",
                "velocity": velocity,
            },
        }),
        reason: what,
        confidence: light.confidence.min(begin.confidence),
    };
    Some([
        part("press", on, format!("{names} light up {colour} while they are pressed (velocity {on}){left_out}")),
        part("release", off, format!("and go out when they are let go (velocity {off})")),
    ])
}

/// What is off, and what is a good one to begin with, with its name.
fn values(light: &Light) -> Option<(u8, u8, &str)> {
    let off = light.values.iter().find(|value| value.name == "off")?.value;
    let on = light.values.iter().find(|value| value.value != off)?;
    Some((off, on.value, &on.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Library;

    fn suggested(id: &str, port: &str, bound: bool) -> Vec<Suggested> {
        let library = Library::bundled();
        let (profile, fit) = library.of_port(port, None).unwrap();
        assert_eq!(profile.id, id);
        let matchers = vec![json!({ "type": "exact_name", "value": port })];
        suggest(
            profile,
            &SuggestFor {
                name: port,
                fit: Some(fit),
                alias: "pads",
                matchers,
                protocol: "midi",
                bound,
                output: Some(port),
            },
        )
    }

    #[test]
    fn pads_with_lights_get_a_name_and_lights_while_pressed() {
        let parts = suggested("akai-apc-mini", "APC MINI MIDI 1", false);
        assert_eq!(parts[0].value["alias"], "pads");
        // By the name alone it may be another device.
        assert_eq!(parts[0].confidence, Confidence::Medium);
        assert_eq!(parts[1].value["trigger"]["note"], "56..63");
        assert_eq!(parts[1].value["action"]["velocity"], 1);
        assert_eq!(parts[2].value["trigger"]["on"], "release");
        assert_eq!(parts[2].value["action"]["velocity"], 0);
        assert!(parts[1].reason.contains("pad 1 to pad 8 light up green"), "{}", parts[1].reason);
        assert!(parts[1].reason.ends_with("more controls are left out"), "{}", parts[1].reason);
    }

    #[test]
    fn a_transport_gets_its_keys_and_a_bound_port_no_second_name() {
        let parts = suggested("korg-nanokontrol2", "nanoKONTROL2", true);
        let keys: Vec<&Value> = parts.iter().map(|part| &part.value["action"]["keys"][0]).collect();
        assert_eq!(keys, ["play_pause", "stop", "previous_track", "next_track"]);
        assert_eq!(parts[0].value["trigger"]["cc"], 41);
    }
}
