//! The names of controls for what a running host has told as text: events of a capture, triggers of a plan.

use conductor_control_names::ControlNames;
use conductor_device_profile::Message;
use conductor_timeline::Timeline;
use serde_json::Value;

use super::{Paths, ports, simulate};

/// Controls of a plan that are named, at most.
const MAX_NAMED: usize = 16;

/// The names of controls of the devices that a running host has. There are none if no host answers.
pub(super) fn of_host(places: &Paths) -> ControlNames {
    let names = ControlNames::new(&places.home);
    if let Ok(Some(status)) = ports::running(places) {
        names.see(&status);
    }
    names
}

/// What the control is called that an event of a device is of; the event is in the words of the timeline language.
pub(super) fn event(names: &ControlNames, device: &str, text: &str) -> Option<String> {
    // How the device is called does not matter to the event, and may not be one word.
    let read = Timeline::parse(&format!("0s device {text}")).ok()?;
    let (_, event) = simulate::event(read.entries.into_iter().next()?);
    names.of(device, &event.event)
}

/// The controls that triggers in a value wait for, such as `note 36 of pads is pad 1`.
pub(super) fn triggers(names: &ControlNames, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(names, value, &mut found);
    found
}

fn collect(names: &ControlNames, value: &Value, found: &mut Vec<String>) {
    if found.len() >= MAX_NAMED {
        return;
    }
    match value {
        Value::Object(object) => {
            let device = object.get("device").and_then(Value::as_str);
            let named = device.and_then(|device| {
                let (message, name) = messages(value).into_iter().find_map(|message| {
                    let name = names.of_message(device, &message)?;
                    Some((message, name))
                })?;
                Some(format!("{message} of {device} is {name}"))
            });
            found.extend(named.filter(|line| !found.contains(line)));
            object.values().for_each(|value| collect(names, value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| collect(names, value, found)),
        _ => {}
    }
}

/// The messages that a trigger may wait for. Without a channel it is any, of which the device's own counts.
fn messages(trigger: &Value) -> Vec<Message> {
    let number = |key: &str| trigger[key].as_u64().and_then(|number| u8::try_from(number).ok());
    let channels: Vec<u8> = number("channel").map_or_else(|| (0..16).collect(), |channel| vec![channel]);
    let on_each = |message: &dyn Fn(u8) -> Message| channels.iter().map(|channel| message(*channel)).collect();
    match (number("note"), number("cc"), number("program"), trigger["address"].as_str()) {
        (Some(note), ..) => on_each(&|channel| Message::Note { channel, note }),
        (_, Some(cc), ..) => on_each(&|channel| Message::Cc { channel, cc }),
        (_, _, Some(program), _) => on_each(&|channel| Message::Program { channel, program }),
        (.., Some(address)) => vec![Message::Osc { address: address.to_owned() }],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use conductor_ports::{BindingSpec, Matcher, Protocol};
    use serde_json::json;

    use super::*;

    fn names() -> ControlNames {
        // The home has no profiles of its own.
        let names = ControlNames::new(std::path::Path::new("/nonexistent"));
        let mut binding = BindingSpec::new("mixer", Protocol::Midi);
        binding.input = vec![Matcher::NameContains("nanoKONTROL2".into())];
        names.expect(&[binding]);
        names
    }

    #[test]
    fn an_event_as_text_is_of_a_control() {
        assert_eq!(event(&names(), "mixer", "cc 0 100").as_deref(), Some("fader 1"));
        assert_eq!(event(&names(), "pads", "cc 0 100"), None);
        assert_eq!(event(&names(), "mixer", "nonsense"), None);
    }

    #[test]
    fn triggers_of_a_plan_are_of_controls_once_each() {
        let trigger = |cc: u8| json!({ "trigger": { "type": "CC", "device": "mixer", "cc": cc } });
        let value = json!({ "mappings": [trigger(41), trigger(41), trigger(0), trigger(127)] });
        assert_eq!(triggers(&names(), &value), ["cc 41 of mixer is play", "cc 0 of mixer is fader 1"]);
        let channel = json!({ "type": "CC", "device": "mixer", "cc": 0, "channel": 9 });
        assert!(triggers(&names(), &channel).is_empty(), "the device sends on another channel");
    }
}
