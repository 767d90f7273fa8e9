//! What was moved: events of one control together, and the trigger that waits for it.

use conductor_feature::mapping::{Bounds, EncoderMode, Number, Trigger, TriggerKind};
use conductor_feature::{Event, kind};
use schemars::JsonSchema;
use serde::Serialize;

/// A control that was moved.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "two schemas would say it again")]
pub struct Control {
    pub device: String,
    /// The last event.
    pub last: String,
    pub events: usize,
    pub lowest: f64,
    pub highest: f64,
    /// What it may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guess: Option<String>,
    /// The trigger.
    pub toml: String,
}

/// A control: what identifies it on its device.
#[derive(Debug, Clone, PartialEq)]
enum Which {
    Note(u8, u16),
    Poly(u8, u16),
    Controller(u8, u16),
    Program(u8, u16),
    Pressure(u8),
    Wheel(u8),
    SysEx(String),
    Osc(String),
    /// The device sent a pattern, which may stand for several addresses.
    OscPattern(String),
    Button(u16),
    Stick(u16),
    Trigger(u16),
    Dmx(u16, u16),
}

impl Which {
    fn of(text: &str, event: &Event) -> Option<Self> {
        let (channel, number) = (event.channel, event.number);
        let word = |place: usize| text.split_whitespace().nth(place);
        Some(match event.kind {
            // Where a key was let go, its press is of interest; one that was down before is none of ours.
            kind::NOTE_ON => Self::Note(channel, number),
            kind::POLY_AFTERTOUCH => Self::Poly(channel, number),
            kind::CONTROL_CHANGE => Self::Controller(channel, number),
            kind::PROGRAM_CHANGE => Self::Program(channel, number),
            kind::AFTERTOUCH => Self::Pressure(channel),
            kind::PITCH_BEND => Self::Wheel(channel),
            kind::SYSEX => Self::SysEx(text.split_whitespace().skip(1).take(8).collect::<Vec<_>>().join(" ")),
            kind::OSC => Self::osc(word(1)?)?,
            kind::GAMEPAD_BUTTON => Self::Button(number),
            kind::GAMEPAD_STICK => Self::Stick(number),
            kind::GAMEPAD_TRIGGER => Self::Trigger(number),
            kind::ARTNET => Self::Dmx(word(1)?.parse().ok()?, number),
            _ => return None,
        })
    }
}

impl Which {
    /// The address of an OSC message. `None` if no trigger takes it: `#`, quotes, unusual characters, and
    /// patterns with sets of characters.
    fn osc(address: &str) -> Option<Self> {
        let is_plain = |c: char| c.is_ascii_graphic() && !"#*,?[]{}\"".contains(c);
        let is_sent = |c: char| is_plain(c) || "*?".contains(c);
        match address {
            _ if !address.starts_with('/') => None,
            address if address.chars().all(is_plain) => Some(Self::Osc(address.to_owned())),
            address if address.chars().all(is_sent) => Some(Self::OscPattern(address.to_owned())),
            _ => None,
        }
    }
}

/// The events of one control.
#[derive(Debug)]
struct Moves {
    device: String,
    which: Which,
    last: String,
    values: Vec<f64>,
}

/// The events that were received.
#[derive(Debug, Default)]
pub struct Received {
    /// The one moved last comes last.
    moves: Vec<Moves>,
}

impl Received {
    /// Adds an event; `text` is the event in the timeline language.
    pub fn add(&mut self, device: &str, text: &str, event: &Event) {
        let Some(which) = Which::of(text, event) else { return };
        let known = self.moves.iter().position(|moves| moves.device == device && moves.which == which);
        let mut moves = match known {
            Some(at) => self.moves.remove(at),
            None => Moves { device: device.to_owned(), which, last: String::new(), values: Vec::new() },
        };
        text.clone_into(&mut moves.last);
        moves.values.push(event.value);
        self.moves.push(moves);
    }

    /// The controls, the one moved last first. The pressure on a key is left out where the key itself is there.
    pub fn controls(&self) -> Vec<Control> {
        let pressed = |moves: &Moves| match moves.which {
            Which::Poly(channel, note) => self.has(&moves.device, &Which::Note(channel, note)),
            _ => false,
        };
        self.moves.iter().rev().filter(|moves| !pressed(moves)).map(Moves::control).collect()
    }

    fn has(&self, device: &str, which: &Which) -> bool {
        self.moves.iter().any(|moves| moves.device == device && moves.which == *which)
    }
}

impl Moves {
    fn control(&self) -> Control {
        let lowest = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (trigger, guess) = self.trigger(lowest, highest);
        let (device, last, events) = (self.device.clone(), self.last.clone(), self.values.len());
        Control { device, last, events, lowest, highest, guess, toml: crate::toml(&trigger) }
    }

    fn trigger(&self, lowest: f64, highest: f64) -> (Trigger, Option<String>) {
        let mut guess = None;
        let mut it = Trigger { device: Some(self.device.clone()), ..Trigger::new(TriggerKind::Note) };
        let one = |number: u16| Some(Number::Whole(i64::from(number)));
        match &self.which {
            Which::Note(channel, note) => {
                (it.note, it.channel) = (one(*note), Some(*channel));
                if self.values.len() > 1 && highest - lowest >= 24.0 {
                    guess = Some(format!(
                        "feels how hard it is hit ({lowest} to {highest}): velocity_range tells soft from hard"
                    ));
                }
            }
            Which::Poly(channel, note) => {
                (it.kind, it.note, it.channel) = (TriggerKind::PolyAftertouch, one(*note), Some(*channel));
            }
            Which::Controller(channel, cc) => {
                (it.kind, it.cc, it.channel) = (TriggerKind::CC, one(*cc), Some(*channel));
                if let Some((mode, way)) = encoder(&self.values) {
                    (it.kind, it.mode) = (TriggerKind::EncoderTurn, Some(mode));
                    guess = Some(format!("an endless encoder: {way}"));
                } else if self.values.iter().all(|value| *value == 0.0 || *value == 127.0) {
                    it.value_range = Some(Bounds([127, 127]));
                    guess = Some("a button: 127 is down".to_owned());
                }
            }
            Which::Program(channel, program) => {
                (it.kind, it.program, it.channel) = (TriggerKind::ProgramChange, one(*program), Some(*channel));
            }
            Which::Pressure(channel) => (it.kind, it.channel) = (TriggerKind::Aftertouch, Some(*channel)),
            Which::Wheel(channel) => (it.kind, it.channel) = (TriggerKind::PitchBend, Some(*channel)),
            Which::SysEx(prefix) => (it.kind, it.prefix) = (TriggerKind::SysEx, Some(prefix.clone())),
            Which::Osc(address) => (it.kind, it.address) = (TriggerKind::OscMessage, Some(address.clone())),
            Which::OscPattern(pattern) => {
                (it.kind, it.pattern) = (TriggerKind::OscPattern, Some(pattern.clone()));
                guess =
                    Some("it sends a pattern; an OscMessage for any address that this matches hears it, too".into());
            }
            Which::Button(button) => (it.kind, it.button) = (TriggerKind::GamepadButton, one(*button)),
            Which::Stick(axis) => {
                (it.kind, it.axis) = (TriggerKind::GamepadAnalogStick, one(*axis));
                let way = if -lowest > highest { "negative" } else { "positive" };
                it.direction = Some(way.to_owned());
            }
            Which::Trigger(trigger) => (it.kind, it.trigger) = (TriggerKind::GamepadTrigger, one(*trigger)),
            Which::Dmx(universe, channel) => {
                (it.kind, it.universe, it.dmx_channel) = (TriggerKind::ArtNetChannel, Some(*universe), one(*channel));
            }
        }
        (it, guess)
    }
}

/// How an encoder says how far, where the values are those of one: small steps around 0 or 64. A fader, which
/// says where it stands, passes through values in between.
fn encoder(values: &[f64]) -> Option<(EncoderMode, &'static str)> {
    let near = |from: f64, to: f64| values.iter().filter(|value| (from..=to).contains(*value)).count();
    let (all, up) = (values.len(), near(1.0, 7.0));
    // Three small steps the same way may be a fader that begins to move; the same step again is none.
    let same = values.windows(2).any(|pair| pair[0] == pair[1]);
    if all < 2 || !(same || values.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 50.0)) {
        return None;
    }
    match () {
        () if near(121.0, 127.0) > 0 && up + near(121.0, 127.0) == all => {
            Some((EncoderMode::TwosComplement, "1 is a step, 127 one back"))
        }
        () if near(57.0, 63.0) > 0 && near(57.0, 63.0) + near(65.0, 71.0) == all => {
            Some((EncoderMode::BinaryOffset, "65 is a step, 63 one back"))
        }
        () if near(65.0, 71.0) > 0 && up + near(65.0, 71.0) == all => match up {
            0 => Some((EncoderMode::BinaryOffset, "65 is a step; turned the other way it would say more")),
            _ => Some((EncoderMode::SignedBit, "1 is a step, 65 one back")),
        },
        () if up == all => Some((EncoderMode::TwosComplement, "1 is a step; turned the other way it would say more")),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: u8, number: u16, value: f64) -> Event {
        Event { at: 0, device: 0, kind, channel: 9, number, position: 0, value, unit: 0.0 }
    }

    fn learned(events: &[(&str, Event)]) -> Vec<Control> {
        let mut heard = Received::default();
        events.iter().for_each(|(text, event)| heard.add("pads", text, event));
        heard.controls()
    }

    fn cc(values: &[f64]) -> Control {
        let events: Vec<_> = values.iter().map(|value| ("cc 16", event(kind::CONTROL_CHANGE, 16, *value))).collect();
        learned(&events).remove(0)
    }

    #[test]
    fn a_pad_is_a_note_and_says_whether_it_feels() {
        let pad = learned(&[
            ("note-on 36 30 ch 9", event(kind::NOTE_ON, 36, 30.0)),
            ("poly-aftertouch 36 9 ch 9", event(kind::POLY_AFTERTOUCH, 36, 9.0)),
            ("note-off 36 ch 9", event(kind::NOTE_OFF, 36, 0.0)),
            ("note-on 36 110 ch 9", event(kind::NOTE_ON, 36, 110.0)),
        ]);
        let [pad] = &pad[..] else { panic!("{pad:?}") };
        assert_eq!((pad.events, pad.lowest, pad.highest), (2, 30.0, 110.0));
        assert!(pad.guess.as_ref().is_some_and(|guess| guess.contains("velocity_range")));
        for part in ["type = \"Note\"", "note = 36", "channel = 9", "device = \"pads\""] {
            assert!(pad.toml.contains(part), "{}", pad.toml);
        }
    }

    #[test]
    fn encoders_are_told_from_faders_and_buttons() {
        let is = |control: &Control, what: &str| assert!(control.toml.contains(what), "{control:?}");
        is(&cc(&[1.0, 1.0, 127.0]), "\"twos_complement\"");
        is(&cc(&[127.0, 126.0, 1.0]), "\"twos_complement\"");
        is(&cc(&[65.0, 65.0, 63.0]), "\"binary_offset\"");
        is(&cc(&[1.0, 65.0, 65.0]), "\"signed_bit\"");
        is(&cc(&[1.0, 1.0, 2.0]), "\"twos_complement\"");
        for fader in [&[10.0, 12.0, 15.0][..], &[1.0, 2.0, 3.0], &[64.0], &[60.0, 62.0, 64.0, 66.0]] {
            is(&cc(fader), "\"CC\"");
        }
        let button = cc(&[127.0, 0.0]);
        is(&button, "value_range = [127,127]");
        assert!(button.guess.as_ref().is_some_and(|guess| guess.contains("button")));
    }

    #[test]
    fn every_protocol_has_its_trigger_and_the_last_one_comes_first() {
        let controls = learned(&[
            ("osc /fader 0.5", event(kind::OSC, 0, 0.5)),
            ("gamepad-button 128 down", event(kind::GAMEPAD_BUTTON, 128, 1.0)),
            ("gamepad-stick 129 -0.9", event(kind::GAMEPAD_STICK, 129, -0.9)),
            ("artnet 3 7 200", event(kind::ARTNET, 7, 200.0)),
            ("sysex F0 43 10 F7", event(kind::SYSEX, 0, 0.0)),
            ("clock", event(kind::CLOCK, 0, 0.0)),
        ]);
        let toml: Vec<&str> = controls.iter().map(|control| control.toml.as_str()).collect();
        assert_eq!(
            toml,
            [
                r#"trigger = { device = "pads", prefix = "F0 43 10 F7", type = "SysEx" }"#,
                r#"trigger = { device = "pads", dmx_channel = 7, type = "ArtNetChannel", universe = 3 }"#,
                r#"trigger = { axis = 129, device = "pads", direction = "negative", type = "GamepadAnalogStick" }"#,
                r#"trigger = { button = 128, device = "pads", type = "GamepadButton" }"#,
                r#"trigger = { address = "/fader", device = "pads", type = "OscMessage" }"#,
            ]
        );
    }

    #[test]
    fn no_trigger_is_proposed_that_would_be_refused() {
        let address = |address: &str| learned(&[(&format!("osc {address} 1"), event(kind::OSC, 0, 1.0))]);
        let toml = |control: &[Control]| control.iter().map(|control| control.toml.clone()).collect::<Vec<_>>();
        assert_eq!(
            toml(&address("/wild/*")),
            [r#"trigger = { device = "pads", pattern = "/wild/*", type = "OscPattern" }"#]
        );
        for odd in ["/a#b", "\"/a", "a", "/[1-2]", "/{a", "/\u{e9}"] {
            assert_eq!(address(odd), [], "{odd}");
        }
    }
}
