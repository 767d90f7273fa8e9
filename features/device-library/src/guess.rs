//! A first setup for an input that no profile fits: a binding, and what its events say that its controls are for.
//!
//! Little of that is certain, so little is suggested: keys for transport buttons and foot switches, the volume for an
//! encoder. What pads and faders are for is a person's to say.

use std::collections::BTreeMap;

use conductor_device_profile::{Confidence, SetupPort, Suggested, shortened};
use conductor_feature::kind;
use serde_json::{Value, json};
use source_kind::relative::{self, Coding};
use source_kind::{Kind, Moment, Source, Window};

/// Notes of transport buttons in the Mackie control protocol, each with the key that it stands for.
const MACKIE: [(u16, &str, &str); 4] =
    [(94, "play", "play_pause"), (93, "stop", "stop"), (91, "rewind", "previous_track"), (92, "forward", "next_track")];
/// Keys that turn pages, for the first two switches under a foot.
const PAGES: [(&str, &str); 2] = [("next page", "page_down"), ("previous page", "page_up")];
/// A fingerprint is trusted to some degree from here on, in percent.
const TRUSTED: u8 = 70;
/// Half of a controller's range: a switch is on from here.
const ON: f64 = 64.0;

/// What is suggested: the binding, unless there is one, and first mappings of what was heard.
pub fn setup(port: &SetupPort<'_>, alias: &str, window: &Window) -> Vec<Suggested> {
    let found = window.classify();
    let alias = port.binding.unwrap_or(alias);
    let mut parts = Vec::new();
    if port.binding.is_none() {
        parts.push(binding(port, alias, &found.sources));
    }
    for source in &found.sources {
        let moments: Vec<&Moment> =
            window.moments().iter().filter(|moment| source.channels.contains(&moment.channel)).collect();
        let guessed = match source.kind {
            Kind::Transport => transport(&moments),
            Kind::Encoders => volume(&moments),
            Kind::FootController => pages(&moments),
            _ => Vec::new(),
        };
        parts.extend(guessed.into_iter().map(|guess| guess.for_source(alias, source)));
    }
    parts
}

fn binding(port: &SetupPort<'_>, alias: &str, sources: &[Source]) -> Suggested {
    let value = json!({ "alias": alias, "protocol": port.protocol, "matchers": [port.matcher()] });
    let (what, confidence) = match sources.first() {
        None => {
            ("nothing was heard of it: have the person move its controls, and ask again".to_owned(), Confidence::Low)
        }
        Some(_) => {
            let kinds: Vec<String> =
                sources.iter().map(|source| format!("{} ({} %)", source.kind, source.confidence)).collect();
            (format!("what it sends is of {}", kinds.join(" and ")), Confidence::Medium)
        }
    };
    let reason = format!("\"{}\" is called {alias}: no profile fits it; {what}", shortened(port.name));
    Suggested { list: "bindings", value, reason, confidence }
}

/// A mapping that is guessed.
struct Guess {
    name: &'static str,
    trigger: Value,
    action: Value,
    reason: String,
}

impl Guess {
    fn for_source(mut self, alias: &str, source: &Source) -> Suggested {
        self.trigger["device"] = alias.into();
        let evidence = source.evidence.first().map(|evidence| format!(": {evidence}")).unwrap_or_default();
        let reason =
            format!("{}, since it looks like {} ({} %){evidence}", self.reason, source.kind, source.confidence);
        let value = json!({ "name": format!("{alias} {}", self.name), "trigger": self.trigger, "action": self.action });
        let confidence = if source.confidence >= TRUSTED { Confidence::Medium } else { Confidence::Low };
        Suggested { list: "global_mappings", value, reason, confidence }
    }
}

/// Keys for the buttons of a Mackie control that were pressed. Others number theirs as they like.
fn transport(moments: &[&Moment]) -> Vec<Guess> {
    let is_pressed = |note: u16| {
        moments.iter().any(|moment| moment.kind == kind::NOTE_ON && moment.channel == 0 && moment.number == note)
    };
    let guess = |(note, name, key): (u16, &'static str, &str)| Guess {
        name,
        trigger: json!({ "type": "Note", "channel": 0, "note": note }),
        action: json!({ "type": "Keystroke", "keys": [key] }),
        reason: format!("note {note} strikes the key {key}"),
    };
    MACKIE.into_iter().filter(|(note, ..)| is_pressed(*note)).map(guess).collect()
}

/// The volume for the encoder that was turned most.
fn volume(moments: &[&Moment]) -> Vec<Guess> {
    let mut turned: BTreeMap<(u8, u16), Vec<i32>> = BTreeMap::new();
    for moment in moments.iter().filter(|moment| moment.kind == kind::CONTROL_CHANGE) {
        #[expect(clippy::cast_possible_truncation, reason = "values of MIDI are small")]
        turned.entry((moment.channel, moment.number)).or_default().push(moment.value as i32);
    }
    let codings = turned.iter().filter_map(|(which, values)| Some((which, values.len(), relative::coding(values)?.0)));
    // Of those that were turned as often, the first.
    let Some(((channel, cc), _, coding)) = codings.min_by_key(|(_, count, _)| std::cmp::Reverse(*count)) else {
        return Vec::new();
    };
    let mode = match coding {
        Coding::TwosComplement => "twos_complement",
        Coding::BinaryOffset => "binary_offset",
        Coding::SignedBit => "signed_bit",
    };
    let guess = |(name, direction, operation): (&'static str, &str, &str)| Guess {
        name,
        trigger: json!({
            "type": "EncoderTurn", "channel": channel, "cc": cc, "mode": mode, "direction": direction,
        }),
        action: json!({ "type": "VolumeControl", "operation": operation }),
        reason: format!("the encoder on controller {cc} turns the volume {operation}"),
    };
    [("louder", "clockwise", "up"), ("softer", "counter_clockwise", "down")].into_iter().map(guess).collect()
}

/// Pages for the first two switches that were stepped on.
fn pages(moments: &[&Moment]) -> Vec<Guess> {
    let mut switches: Vec<(u8, u8, u16)> = Vec::new();
    let is_switch = |moment: &&&Moment| match moment.kind {
        kind::PROGRAM_CHANGE => true,
        // One that stands in between is a pedal.
        kind::CONTROL_CHANGE => moment.value >= ON && !moments.iter().any(|other| is_between(other, moment)),
        _ => false,
    };
    for moment in moments.iter().filter(is_switch) {
        let which = (moment.kind, moment.channel, moment.number);
        if !switches.contains(&which) {
            switches.push(which);
        }
    }
    let guess = |((of, channel, number), (name, key)): ((u8, u8, u16), (&'static str, &str))| {
        let (trigger, what) = match of {
            kind::PROGRAM_CHANGE => {
                (json!({ "type": "ProgramChange", "channel": channel, "program": number }), "program")
            }
            _ => (
                json!({ "type": "CC", "channel": channel, "cc": number, "value_range": [64, 127] }),
                "the switch on controller",
            ),
        };
        let action = json!({ "type": "Keystroke", "keys": [key] });
        Guess { name, trigger, action, reason: format!("{what} {number} strikes the key {key}") }
    };
    switches.into_iter().zip(PAGES).map(guess).collect()
}

/// Whether a moment shows the control of another one between its ends.
fn is_between(moment: &Moment, of: &Moment) -> bool {
    let is_same = (moment.kind, moment.channel, moment.number) == (of.kind, of.channel, of.number);
    is_same && moment.value > 0.0 && moment.value < 127.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port<'p>(binding: Option<&'p str>) -> SetupPort<'p> {
        SetupPort { name: "Loose", usb: None, is_input: true, protocol: "midi", binding, told_apart_by: None }
    }

    fn window(events: &[(u8, u8, u16, f64)]) -> Window {
        let mut window = Window::default();
        for (place, (kind, channel, number, value)) in events.iter().enumerate() {
            let (kind, channel, number, value) = (*kind, *channel, *number, *value);
            let at = place as u64 * 400_000_000;
            window.add(Moment { at, kind, channel, number, value, machine_control: false });
        }
        window
    }

    #[test]
    fn of_what_was_not_heard_there_is_the_binding_alone() {
        let parts = setup(&port(None), "loose", &Window::default());
        assert_eq!((parts.len(), parts[0].list, parts[0].confidence), (1, "bindings", Confidence::Low));
        assert!(parts[0].reason.contains("nothing was heard"), "{}", parts[0].reason);
        assert_eq!(parts[0].value["matchers"][0]["value"], "Loose");
        assert!(setup(&port(Some("knobs")), "loose", &Window::default()).is_empty());
    }

    #[test]
    fn an_encoder_turns_the_volume_in_its_own_coding() {
        let turn = |value| (kind::CONTROL_CHANGE, 0, 16, value);
        let turns: Vec<_> = [65.0, 65.0, 66.0, 63.0, 63.0, 62.0, 65.0, 65.0, 63.0].map(turn).to_vec();
        let parts = setup(&port(Some("knobs")), "loose", &window(&turns));
        assert_eq!(parts.len(), 2, "{parts:#?}");
        let trigger = &parts[0].value["trigger"];
        assert_eq!((&trigger["device"], &trigger["mode"]), (&json!("knobs"), &json!("binary_offset")));
        assert_eq!(parts[1].value["action"]["operation"], "down");
        assert!(parts[0].reason.contains("looks like encoders"), "{}", parts[0].reason);
    }

    #[test]
    fn two_foot_switches_turn_pages() {
        let step = |(number, value)| (kind::CONTROL_CHANGE, 0, number, value);
        let steps: Vec<_> =
            [(80, 127.0), (80, 0.0), (81, 127.0), (81, 0.0), (80, 127.0), (80, 0.0), (81, 127.0), (81, 0.0)]
                .map(step)
                .to_vec();
        let parts = setup(&port(Some("foot")), "loose", &window(&steps));
        let keys: Vec<&Value> = parts.iter().map(|part| &part.value["action"]["keys"][0]).collect();
        assert_eq!(keys, ["page_down", "page_up"]);
        assert_eq!(parts[1].value["trigger"]["cc"], 81);
    }

    #[test]
    fn the_buttons_of_a_mackie_control_strike_their_keys() {
        let press = |note| [(kind::NOTE_ON, 0, note, 127.0), (kind::NOTE_OFF, 0, note, 0.0)];
        let presses: Vec<_> = [94, 93, 91, 92, 94, 93].map(press).concat();
        let parts = setup(&port(Some("desk")), "loose", &window(&presses));
        let keys: Vec<&Value> = parts.iter().map(|part| &part.value["action"]["keys"][0]).collect();
        assert_eq!(keys, ["play_pause", "stop", "previous_track", "next_track"]);
        assert_eq!(parts[0].value["trigger"]["note"], 94);
    }
}
