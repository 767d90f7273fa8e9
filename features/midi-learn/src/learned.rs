//! What was moved: events of one control together, what it is and why, and the trigger that waits for it.

use conductor_feature::mapping::{Bounds, EncoderMode, Number, Trigger, TriggerKind};
use conductor_feature::{Event, kind};
use schemars::JsonSchema;
use serde::Serialize;
use source_kind::relative::{self, Coding};

use crate::osc_arguments;
use crate::presses::{self, Gesture, Key, Press};

/// Nanoseconds within which the fine part of a controller of 14 bits follows the coarse one, as the trigger has it.
const FINE_TIMEOUT_NANOS: u64 = 3_000_000;

/// A control that was moved.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "two schemas would say it again")]
pub struct Control {
    pub device: String,
    /// Such as key, button, fader, encoder, pedal, wheel, stick.
    pub kind: String,
    /// What speaks for that.
    pub evidence: Vec<String>,
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
    /// What else was done with it.
    pub gestures: Vec<Gesture>,
}

/// A control: what identifies it on its device.
#[derive(Debug, Clone, PartialEq)]
enum Which {
    Note(u8, u16),
    Poly(u8, u16),
    Controller(u8, u16),
    /// A registered parameter, or one that is not.
    Parameter(u8, u16, bool),
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
            kind::GAMEPAD_BUTTON | kind::KEY => Self::Button(number),
            kind::GAMEPAD_STICK => Self::Stick(number),
            kind::GAMEPAD_TRIGGER => Self::Trigger(number),
            kind::ARTNET => Self::Dmx(word(1)?.parse().ok()?, number),
            _ => return None,
        })
    }

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

    fn key(&self) -> Option<Key> {
        match *self {
            Self::Note(channel, note) => Some(Key::Note(channel, note)),
            Self::Button(button) => Some(Key::Button(button)),
            _ => None,
        }
    }
}

/// The events of one control.
#[derive(Debug, Clone)]
struct Moves {
    device: String,
    which: Which,
    last: String,
    values: Vec<f64>,
    /// When they came.
    times: Vec<u64>,
    /// Of what can be pressed.
    presses: Vec<Press>,
    /// Whether a second controller has its low bits.
    fine: bool,
}

/// The parameter that data entry sets on a channel of a device.
#[derive(Debug, Clone, PartialEq)]
struct Selected {
    device: String,
    channel: u8,
    registered: bool,
    high: Option<u16>,
    low: Option<u16>,
}

impl Selected {
    /// The parameter; `None` if it is not said, or the one that stands for none.
    fn parameter(&self) -> Option<u16> {
        let parameter = self.high? << 7 | self.low?;
        (parameter != 0x3FFF).then_some(parameter)
    }
}

/// The events that were received.
#[derive(Debug, Default)]
pub struct Received {
    /// The one moved last comes last.
    moves: Vec<Moves>,
    selected: Vec<Selected>,
}

impl Received {
    /// Adds an event; `text` is the event in the timeline language.
    pub fn add(&mut self, device: &str, text: &str, event: &Event) {
        let up = match event.kind {
            kind::NOTE_OFF => Some(Which::Note(event.channel, event.number)),
            kind::GAMEPAD_BUTTON | kind::KEY if event.value == 0.0 => Some(Which::Button(event.number)),
            _ => None,
        };
        if let Some(which) = up {
            let moves = self.moves.iter_mut().find(|moves| moves.device == device && moves.which == which);
            let down = moves.and_then(|moves| moves.presses.last_mut()).filter(|press| press.up.is_none());
            if let Some(press) = down {
                press.up = Some(event.at);
            }
            if event.kind == kind::NOTE_OFF {
                return;
            }
        }
        let (which, value) = match self.parameter(device, event) {
            Some(Entry::Selects) => return,
            Some(Entry::Sets(which, value)) => (which, value),
            None => {
                let Some(which) = Which::of(text, event) else { return };
                (which, event.value)
            }
        };
        let known = self.moves.iter().position(|moves| moves.device == device && moves.which == which);
        let mut moves = match known {
            Some(at) => self.moves.remove(at),
            None => Moves {
                device: device.to_owned(),
                which,
                last: String::new(),
                values: Vec::new(),
                times: Vec::new(),
                presses: Vec::new(),
                fine: false,
            },
        };
        text.clone_into(&mut moves.last);
        moves.values.push(value);
        moves.times.push(event.at);
        if moves.which.key().is_some() && value > 0.0 {
            moves.presses.push(Press { down: event.at, up: None, hard: value });
        }
        self.moves.push(moves);
    }

    /// What a controller does for parameters; `None` if nothing.
    fn parameter(&mut self, device: &str, event: &Event) -> Option<Entry> {
        if event.kind != kind::CONTROL_CHANGE {
            return None;
        }
        let known = self.selected.iter_mut().find(|one| one.device == device && one.channel == event.channel);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "controllers are 0 to 127")]
        let value = event.value as u16;
        match event.number {
            98..=101 => {
                let registered = event.number >= 100;
                let one = match known {
                    Some(one) => one,
                    None => {
                        let (device, channel) = (device.to_owned(), event.channel);
                        self.selected.push(Selected { device, channel, registered, high: None, low: None });
                        self.selected.last_mut()?
                    }
                };
                if one.registered != registered {
                    (one.registered, one.high, one.low) = (registered, None, None);
                }
                let part = if event.number % 2 == 1 { &mut one.high } else { &mut one.low };
                *part = Some(value);
                Some(Entry::Selects)
            }
            6 | 38 => {
                let (registered, parameter) = known.map(|one| (one.registered, one.parameter()))?;
                let which = Which::Parameter(event.channel, parameter?, registered);
                let before = self.moves.iter().find(|moves| moves.device == device && moves.which == which);
                let coarse = before.and_then(|moves| moves.values.last()).copied().unwrap_or_default();
                let value = if event.number == 6 { f64::from(value << 7) } else { coarse + f64::from(value) };
                Some(Entry::Sets(which, value))
            }
            _ => None,
        }
    }

    /// The controls, the one moved last first. The pressure on a key is left out where the key itself is listed, and
    /// the low bits of a controller where the high ones are.
    pub fn controls(&self) -> Vec<Control> {
        let mut moves = self.moves.clone();
        for one in &mut moves {
            one.fine = self.low_bits(one).is_some();
        }
        let is_part = |one: &Moves| match one.which {
            Which::Poly(channel, note) => self.has(&one.device, &Which::Note(channel, note)),
            Which::Controller(channel, cc @ 32..64) => moves.iter().any(|other| {
                other.fine && other.device == one.device && other.which == Which::Controller(channel, cc - 32)
            }),
            _ => false,
        };
        let mut controls: Vec<(Option<Key>, Control)> = moves
            .iter()
            .rev()
            .filter(|one| !is_part(one))
            .map(|one| (one.which.key(), one.control(self.is_pressed_on(one))))
            .collect();
        let mut devices: Vec<&str> = moves.iter().map(|one| one.device.as_str()).collect();
        devices.sort_unstable();
        devices.dedup();
        for device in devices {
            let pressed: Vec<(Key, Press)> = moves
                .iter()
                .filter(|one| one.device == device)
                .filter_map(|one| Some((one.which.key()?, one)))
                .flat_map(|(key, one)| one.presses.iter().map(move |press| (key, *press)))
                .collect();
            if let Some((key, chord)) = presses::chord(device, &pressed) {
                let last = controls.iter_mut().find(|(of, control)| *of == Some(key) && control.device == device);
                if let Some((_, control)) = last {
                    control.gestures.push(chord);
                }
            }
        }
        controls.into_iter().map(|(_, control)| control).collect()
    }

    fn has(&self, device: &str, which: &Which) -> bool {
        self.moves.iter().any(|moves| moves.device == device && moves.which == *which)
    }

    /// Whether the pressure on a key was sensed.
    fn is_pressed_on(&self, moves: &Moves) -> bool {
        match moves.which {
            Which::Note(channel, note) => self.has(&moves.device, &Which::Poly(channel, note)),
            _ => false,
        }
    }

    /// The controller with the low bits of this one: 32 above, and each of its values within 3 ms after one of this.
    fn low_bits(&self, moves: &Moves) -> Option<&Moves> {
        let Which::Controller(channel, cc @ 0..32) = moves.which else { return None };
        let low = Which::Controller(channel, cc + 32);
        let low = self.moves.iter().find(|other| other.device == moves.device && other.which == low)?;
        let follows = |at: &&u64| moves.times.iter().any(|high| (*high..=*high + FINE_TIMEOUT_NANOS).contains(*at));
        let following = low.times.iter().filter(follows).count();
        (moves.values.len() >= 2 && low.times.len() >= 2 && following * 10 >= low.times.len() * 9).then_some(low)
    }
}

/// What a controller does for a parameter.
enum Entry {
    Selects,
    Sets(Which, f64),
}

/// What a control is: a word, and what speaks for it.
#[derive(Debug, Default)]
struct Recognized {
    kind: &'static str,
    evidence: Vec<String>,
    guess: Option<String>,
}

impl Recognized {
    fn new(kind: &'static str, evidence: impl Into<String>) -> Self {
        Self { kind, evidence: vec![evidence.into()], guess: None }
    }

    fn guessed(mut self, guess: impl Into<String>) -> Self {
        self.guess = Some(guess.into());
        self
    }

    fn and(mut self, holds: bool, evidence: impl FnOnce() -> String) -> Self {
        if holds {
            self.evidence.push(evidence());
        }
        self
    }
}

impl Moves {
    fn control(&self, pressure: bool) -> Control {
        let lowest = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = self.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (trigger, recognized) = self.trigger(lowest, highest);
        let (device, last, events) = (self.device.clone(), self.last.clone(), self.values.len());
        let Recognized { kind, evidence, guess } =
            recognized.and(pressure, || "the pressure on it is sensed".to_owned());
        let gestures = self.which.key().map(|key| presses::gestures(&self.device, key, &self.presses));
        let (kind, gestures, toml) = (kind.to_owned(), gestures.unwrap_or_default(), crate::toml(&trigger));
        Control { device, kind, evidence, last, events, lowest, highest, guess, toml, gestures }
    }

    fn trigger(&self, lowest: f64, highest: f64) -> (Trigger, Recognized) {
        let mut it = Trigger { device: Some(self.device.clone()), ..Trigger::new(TriggerKind::Note) };
        let one = |number: u16| Some(Number::Whole(i64::from(number)));
        let all = self.values.len();
        let moved = || format!("{all} values from {lowest} to {highest}");
        let recognized = match &self.which {
            Which::Note(channel, note) => {
                (it.note, it.channel) = (one(*note), Some(*channel));
                let feels = all > 1 && highest - lowest >= 24.0;
                let often = if all == 1 { "once".to_owned() } else { format!("{all} times") };
                let key = Recognized::new("key", format!("note {note} was played {often}"))
                    .and(all > 1 && lowest == highest, || format!("always at {lowest}: it does not feel how hard"));
                match feels {
                    true => key.guessed(format!(
                        "feels how hard it is hit ({lowest} to {highest}): velocity_range tells soft from hard"
                    )),
                    false => key,
                }
            }
            Which::Poly(channel, note) => {
                (it.kind, it.note, it.channel) = (TriggerKind::PolyAftertouch, one(*note), Some(*channel));
                Recognized::new("pressure", format!("on one key; {}", moved()))
            }
            Which::Controller(channel, cc) => {
                (it.kind, it.cc, it.channel) = (TriggerKind::CC, one(*cc), Some(*channel));
                self.controller(*cc, &mut it, moved())
            }
            Which::Parameter(channel, parameter, registered) => {
                let (kind, word) = match registered {
                    true => (TriggerKind::RPN, "registered-parameter"),
                    false => (TriggerKind::NRPN, "parameter"),
                };
                (it.kind, it.parameter, it.channel) = (kind, Some(*parameter), Some(*channel));
                let numbers = if *registered { "100 and 101" } else { "98 and 99" };
                Recognized::new(word, format!("controllers {numbers} select {parameter}, data entry sets it"))
                    .and(true, moved)
            }
            Which::Program(channel, program) => {
                (it.kind, it.program, it.channel) = (TriggerKind::ProgramChange, one(*program), Some(*channel));
                Recognized::new("program", format!("program change to {program}"))
            }
            Which::Pressure(channel) => {
                (it.kind, it.channel) = (TriggerKind::Aftertouch, Some(*channel));
                Recognized::new("pressure", format!("of the whole channel; {}", moved()))
            }
            Which::Wheel(channel) => {
                (it.kind, it.channel) = (TriggerKind::PitchBend, Some(*channel));
                let returns = self.values.last() == Some(&8192.0);
                match returns {
                    true => Recognized::new("wheel", format!("it returns to its middle; {}", moved())),
                    false => Recognized::new("fader", format!("pitch bend that stays where it is; {}", moved())),
                }
            }
            Which::SysEx(prefix) => {
                (it.kind, it.prefix) = (TriggerKind::SysEx, Some(prefix.clone()));
                Recognized::new("sysex", format!("messages that begin so; {all} came"))
            }
            Which::Osc(address) => {
                (it.kind, it.address) = (TriggerKind::OscMessage, Some(address.clone()));
                let recognized = self.osc(moved());
                if recognized.kind != "button" {
                    return (it, recognized);
                }
                // Letting go is a message, too, and is not to fire again.
                (it.kind, it.min, it.max) = (TriggerKind::OscArgRange, Some(0.5), Some(1.0));
                recognized.guessed("a button: 1 is down, and 0 when it is let go does not fire")
            }
            Which::OscPattern(pattern) => {
                (it.kind, it.pattern) = (TriggerKind::OscPattern, Some(pattern.clone()));
                self.osc(moved())
                    .guessed("it sends a pattern; an OscMessage for any address that this matches hears it, too")
            }
            Which::Button(key) if *key >= presses::FIRST_KEY => {
                (it.kind, it.key) = (TriggerKind::Key, one(*key));
                Recognized::new("key", format!("of a computer keyboard or a mouse; {} presses", self.presses.len()))
            }
            Which::Button(button) => {
                (it.kind, it.button) = (TriggerKind::GamepadButton, one(*button));
                Recognized::new("button", format!("of a gamepad; {} presses", self.presses.len()))
            }
            Which::Stick(axis) => {
                (it.kind, it.axis) = (TriggerKind::GamepadAnalogStick, one(*axis));
                let way = if -lowest > highest { "negative" } else { "positive" };
                it.direction = Some(way.to_owned());
                let name = ["left X", "left Y", "right X", "right Y"];
                let name = axis.checked_sub(128).and_then(|place| name.get(usize::from(place)).copied());
                Recognized::new("stick", format!("axis {} of a gamepad; {}", name.unwrap_or("unknown"), moved()))
                    .and(lowest < -0.3 && highest > 0.3, || "it was pushed both ways".to_owned())
            }
            Which::Trigger(trigger) => {
                (it.kind, it.trigger) = (TriggerKind::GamepadTrigger, one(*trigger));
                Recognized::new("trigger", format!("analog, of a gamepad; {}", moved()))
            }
            Which::Dmx(universe, channel) => {
                (it.kind, it.universe, it.dmx_channel) = (TriggerKind::ArtNetChannel, Some(*universe), one(*channel));
                Recognized::new("channel", format!("of a universe; {}", moved()))
            }
        };
        (it, recognized)
    }

    /// What a controller is, and the keys of its trigger.
    fn controller(&self, cc: u16, it: &mut Trigger, moved: String) -> Recognized {
        #[expect(clippy::cast_possible_truncation, reason = "controllers are 0 to 127")]
        let steps: Vec<i32> = self.values.iter().map(|value| *value as i32).collect();
        let is_switch = steps.iter().all(|value| matches!(value, 0 | 127));
        if self.fine {
            it.kind = TriggerKind::CC14;
            return Recognized::new("fader", format!("of 14 bits: controller {} follows with the fine part", cc + 32))
                .and(true, || moved);
        }
        if !is_switch && let Some((coding, both)) = relative::coding(&steps) {
            let way = match (coding, both) {
                (_, true) => coding.as_str(),
                (Coding::BinaryOffset, false) => "65 is a step; turned the other way it would say more",
                (_, false) => "1 is a step; turned the other way it would say more",
            };
            it.kind = TriggerKind::EncoderTurn;
            it.mode = Some(match coding {
                Coding::TwosComplement => EncoderMode::TwosComplement,
                Coding::BinaryOffset => EncoderMode::BinaryOffset,
                Coding::SignedBit => EncoderMode::SignedBit,
            });
            return Recognized::new("encoder", format!("it says how far it was turned, not where it stands: {way}"))
                .guessed(format!("an endless encoder: {way}"));
        }
        let pedal = matches!(cc, 4 | 11 | 64..=69);
        if is_switch {
            it.value_range = Some(Bounds([127, 127]));
            let evidence = format!("{} values, all of them 0 or 127", steps.len());
            return match pedal {
                true => Recognized::new("pedal", evidence)
                    .and(true, || format!("controller {cc} is a pedal's in MIDI"))
                    .guessed("a pedal: 127 is down"),
                false => Recognized::new("button", evidence).guessed("a button: 127 is down"),
            };
        }
        match pedal {
            true => Recognized::new("pedal", moved).and(true, || format!("controller {cc} is a pedal's in MIDI")),
            false => Recognized::new("fader", moved).and(steps.len() > 2, || {
                "it says where it stands, step by step: a fader, a knob or a wheel".to_owned()
            }),
        }
    }

    /// What sends OSC to an address.
    fn osc(&self, moved: String) -> Recognized {
        let types = osc_arguments::types(&self.last);
        let says = match types.is_empty() {
            true => "no arguments".to_owned(),
            false => format!("arguments: {}", types.join(", ")),
        };
        let on_or_off = self.values.iter().all(|value| *value == 0.0 || *value == 1.0);
        let kind = match types.first() {
            Some(&"boolean") => "button",
            Some(&("float" | "double" | "integer" | "long integer")) if on_or_off && self.values.len() > 1 => "button",
            Some(&("float" | "double")) => "fader",
            _ => "message",
        };
        Recognized::new(kind, says).and(kind != "message", || moved)
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

    /// An event at a time in milliseconds; the text is made for it.
    fn at(ms: u64, kind: u8, number: u16, value: f64) -> (String, Event) {
        let text = match kind {
            kind::NOTE_ON => format!("note-on {number} {value} ch 9"),
            kind::NOTE_OFF => format!("note-off {number} ch 9"),
            kind::GAMEPAD_BUTTON => format!("gamepad-button {number}"),
            kind::KEY => format!("key {number}"),
            _ => format!("cc {number} {value} ch 9"),
        };
        (text, Event { at: ms * 1_000_000, ..event(kind, number, value) })
    }

    fn heard(events: &[(String, Event)]) -> Vec<Control> {
        let mut heard = Received::default();
        events.iter().for_each(|(text, event)| heard.add("pads", text, event));
        heard.controls()
    }

    fn press(number: u16, from: u64, to: u64, hard: f64) -> [(String, Event); 2] {
        [at(from, kind::NOTE_ON, number, hard), at(to, kind::NOTE_OFF, number, 0.0)]
    }

    fn gestures(control: &Control) -> Vec<(&str, &str)> {
        control.gestures.iter().map(|gesture| (gesture.kind.as_str(), gesture.toml.as_str())).collect()
    }

    // LRN-1
    #[test]
    fn a_long_press_and_a_double_tap_are_told_from_a_press() {
        let short = heard(&press(36, 0, 480, 100.0));
        assert_eq!(gestures(&short[0]), []);
        let long = heard(&press(36, 0, 700, 100.0));
        let trigger = r#"trigger = { channel = 9, device = "pads", duration_ms = 500, note = 36, type = "LongPress" }"#;
        assert_eq!(gestures(&long[0]), [("long-press", trigger)]);
        assert!(long[0].gestures[0].evidence.contains("700 ms"));

        let twice = |second: u64| heard(&[press(36, 0, 80, 100.0), press(36, second, second + 80, 100.0)].concat());
        let trigger = r#"trigger = { channel = 9, device = "pads", note = 36, timeout_ms = 400, type = "DoubleTap" }"#;
        assert_eq!(gestures(&twice(200)[0]), [("double-tap", trigger)]);
        assert_eq!(gestures(&twice(450)[0]), [], "too late");
        let roll: Vec<_> = (0..5).flat_map(|hit| press(36, hit * 150, hit * 150 + 60, 100.0)).collect();
        assert_eq!(gestures(&heard(&roll)[0]), [], "a roll is none");
    }

    // LRN-1
    #[test]
    fn keys_that_go_down_together_are_a_chord() {
        let chord = heard(&[press(60, 0, 400, 90.0), press(64, 12, 410, 90.0), press(67, 30, 390, 90.0)].concat());
        let trigger = r#"trigger = { channel = 9, device = "pads", notes = [60,64,67], type = "NoteChord" }"#;
        assert_eq!(gestures(&chord[0]), [("chord", trigger)], "with the key that came last");
        assert!(chord[0].gestures[0].evidence.contains("3 keys went down within 30 ms"));
        assert!(chord[1..].iter().all(|control| control.gestures.is_empty()));
        let arpeggio = heard(&[press(60, 0, 400, 90.0), press(64, 80, 410, 90.0)].concat());
        assert!(arpeggio.iter().all(|control| control.gestures.is_empty()), "{arpeggio:?}");
        let flam = heard(&[press(60, 0, 10, 90.0), press(64, 20, 410, 90.0)].concat());
        assert!(flam.iter().all(|control| control.gestures.is_empty()), "one ended before the other began");

        let down = |number, ms| at(ms, kind::GAMEPAD_BUTTON, number, 1.0);
        let buttons = heard(&[down(128, 0), down(129, 20), at(300, kind::GAMEPAD_BUTTON, 129, 0.0)]);
        let trigger = r#"trigger = { buttons = [128,129], device = "pads", type = "GamepadButtonChord" }"#;
        assert_eq!(gestures(&buttons[0]), [("chord", trigger)]);

        let down = |number, ms| at(ms, kind::KEY, number, 1.0);
        let keys = heard(&[down(439, 0), down(440, 20), at(700, kind::KEY, 440, 0.0)]);
        let chord = r#"trigger = { device = "pads", keys = [439,440], type = "KeyChord" }"#;
        let long = r#"trigger = { device = "pads", duration_ms = 500, key = 440, type = "LongPress" }"#;
        assert_eq!(gestures(&keys[0]), [("long-press", long), ("chord", chord)]);
        assert_eq!(keys[0].toml, r#"trigger = { device = "pads", key = 440, type = "Key" }"#);
    }

    // LRN-1
    #[test]
    fn layers_of_velocity_are_told() {
        let hits = |all: &[f64]| {
            let hit = |(place, hard): (usize, &f64)| press(36, place as u64 * 1000, place as u64 * 1000 + 50, *hard);
            heard(&all.iter().enumerate().flat_map(hit).collect::<Vec<_>>()).remove(0)
        };
        let two = hits(&[20.0, 110.0, 25.0, 118.0]);
        let ranges: Vec<&str> = two.gestures.iter().map(|layer| layer.toml.as_str()).collect();
        assert!(ranges[0].contains("velocity_range = [1,67]"), "{ranges:?}");
        assert!(ranges[1].contains("velocity_range = [68,127]"), "{ranges:?}");
        assert_eq!(two.gestures[0].evidence, "layer 1 of 2: 20 to 25");
        assert_eq!(hits(&[90.0, 95.0, 99.0]).gestures, [], "one layer is none");
        assert_eq!(hits(&[100.0, 100.0]).evidence[1], "always at 100: it does not feel how hard");
    }

    // LRN-1
    #[test]
    fn fine_controllers_and_parameters_are_one_control_each() {
        let mut fine = Vec::new();
        for step in 0..5_u64 {
            fine.push(at(step * 20, kind::CONTROL_CHANGE, 7, 40.0 + step as f64));
            fine.push(at(step * 20 + 1, kind::CONTROL_CHANGE, 39, 100.0));
        }
        let [fader] = &heard(&fine)[..] else { panic!("{:?}", heard(&fine)) };
        assert_eq!((fader.kind.as_str(), fader.events), ("fader", 5));
        assert_eq!(fader.toml, r#"trigger = { cc = 7, channel = 9, device = "pads", type = "CC14" }"#);
        assert!(fader.evidence[0].contains("controller 39 follows"));
        let apart: Vec<_> = fine.iter().filter(|(_, event)| event.number == 39).cloned().collect();
        assert_eq!(heard(&apart).len(), 1, "by itself it is a controller");

        let select = |high: f64, low: f64, from: u16| {
            [at(0, kind::CONTROL_CHANGE, from + 1, high), at(1, kind::CONTROL_CHANGE, from, low)]
        };
        let set = [at(2, kind::CONTROL_CHANGE, 6, 12.0), at(3, kind::CONTROL_CHANGE, 38, 5.0)];
        let nrpn = heard(&[select(1.0, 8.0, 98), set.clone()].concat());
        let [nrpn] = &nrpn[..] else { panic!("{nrpn:?}") };
        assert_eq!((nrpn.kind.as_str(), nrpn.highest), ("parameter", 12.0 * 128.0 + 5.0));
        assert_eq!(nrpn.toml, r#"trigger = { channel = 9, device = "pads", parameter = 136, type = "NRPN" }"#);
        let rpn = heard(&[select(0.0, 0.0, 100), set.clone()].concat());
        assert_eq!(rpn[0].kind, "registered-parameter");
        assert_eq!(rpn[0].toml, r#"trigger = { channel = 9, device = "pads", parameter = 0, type = "RPN" }"#);
        let none = heard(&[select(127.0, 127.0, 100), set].concat());
        assert_eq!(none.len(), 2, "127 and 127 select none: data entry is a controller then");
    }

    // LRN-1
    #[test]
    fn each_kind_of_control_is_told_with_its_evidence() {
        let kinds = |events: &[(&str, Event)]| {
            let controls = learned(events);
            assert!(controls.iter().all(|control| !control.evidence.is_empty()), "{controls:?}");
            controls.iter().map(|control| control.kind.clone()).collect::<Vec<_>>()
        };
        let cc = |number: u16, value: f64| event(kind::CONTROL_CHANGE, number, value);
        assert_eq!(kinds(&[("cc 64 127", cc(64, 127.0)), ("cc 64 0", cc(64, 0.0))]), ["pedal"]);
        assert_eq!(kinds(&[("cc 11 10", cc(11, 10.0)), ("cc 11 14", cc(11, 14.0))]), ["pedal"]);
        assert_eq!(kinds(&[("cc 7 10", cc(7, 10.0)), ("cc 7 14", cc(7, 14.0)), ("cc 7 19", cc(7, 19.0))]), ["fader"]);
        assert_eq!(kinds(&[("cc 20 127", cc(20, 127.0)), ("cc 20 0", cc(20, 0.0))]), ["button"]);
        let bend = |value: f64| event(kind::PITCH_BEND, 0, value);
        assert_eq!(kinds(&[("pitch-bend 9000", bend(9000.0)), ("pitch-bend 8192", bend(8192.0))]), ["wheel"]);
        assert_eq!(kinds(&[("pitch-bend 9000", bend(9000.0)), ("pitch-bend 9100", bend(9100.0))]), ["fader"]);
        let osc = |value: f64| event(kind::OSC, 0, value);
        assert_eq!(kinds(&[("osc /a 1.0", osc(1.0)), ("osc /a 0.0", osc(0.0))]), ["button"]);
        assert_eq!(kinds(&[("osc /a true", osc(1.0))]), ["button"]);
        let pushed = learned(&[("osc /a 1.0", osc(1.0)), ("osc /a 0.0", osc(0.0))]);
        let down = r#"trigger = { address = "/a", device = "pads", max = 1.0, min = 0.5, type = "OscArgRange" }"#;
        assert_eq!(pushed[0].toml, down, "letting go does not fire");
        assert_eq!(kinds(&[("osc /a 0.25", osc(0.25))]), ["fader"]);
        assert_eq!(kinds(&[("osc /a \"go\" 3", osc(3.0))]), ["message"]);
        let typed = learned(&[("osc /a \"go\" 3 0.5", osc(3.0))]);
        assert_eq!(typed[0].evidence, ["arguments: string, integer, float"]);
        let stick = |value: f64| event(kind::GAMEPAD_STICK, 128, value);
        let pushed = learned(&[("gamepad-stick 128 -0.9", stick(-0.9)), ("gamepad-stick 128 0.8", stick(0.8))]);
        assert_eq!(pushed[0].kind, "stick");
        assert!(pushed[0].evidence[0].contains("axis left X") && pushed[0].evidence[1].contains("both ways"));
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
        assert_eq!(pad.evidence[0], "note 36 was played 2 times");
        let once = learned(&[("note-on 36 30 ch 9", event(kind::NOTE_ON, 36, 30.0))]);
        assert_eq!(once[0].evidence[0], "note 36 was played once");
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
