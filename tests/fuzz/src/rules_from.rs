//! Rules and events, read from bytes: worlds small enough that they meet, and now and then nonsense.

use conductor_engine::{
    Condition, Day, Days, DmxRange, Edge, Encoding, NumberRange, OscArgTest, OscPattern, Place, Push, Readings,
    Rotation, RuleSource, RuleSpec, Scope, SysExPattern, TimeRange, Trigger, ValueRange,
};
use conductor_event::{ArtNetChange, DeviceId, Event, HidEvent, MidiMessage, Nanos, OscArg, OscMessage};

use crate::bytes::Bytes;

pub const MODES: [&str; 3] = ["Play", "Live", "Edit"];
pub const DEVICES: [&str; 3] = ["pads", "keys", "keys #2"];
const ADDRESSES: [&str; 6] = ["/mixer/1/fader", "/mixer/2/fader", "/mixer", "/", "/transport", "x"];
/// What is sent to: addresses, and address patterns.
const SENT: [&str; 9] =
    ["/mixer/1/fader", "/mixer/2/fader", "/mixer", "/", "/transport", "x", "/mixer/*/fader", "/{mixer,t*}", "/["];
const PATTERNS: [&str; 6] = ["/mixer/*/fader", "/mixer/[12]/fader", "/mixer", "/*", "/{mixer,x}", "/t*"];
const SYSEX: [&str; 6] = ["F0", "F0 7E", "F0 ?E", "F0 7E ?? 06", "F0 00 20", "F0 F7"];
pub const MS: Nanos = 1_000_000;

/// How much nonsense there is in rules.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sense {
    /// None: a person who knows what is allowed has written them.
    All,
    /// Numbers may be any.
    Some,
}

/// Rules; what they do is to change the mode, or nothing.
pub fn rules(bytes: &mut Bytes<'_>, most: u8, sense: Sense) -> RuleSource<Option<&'static str>> {
    let mut modes: Vec<String> = MODES.iter().map(|&mode| mode.to_owned()).collect();
    if sense == Sense::Some && bytes.one_in(16) {
        modes.push(bytes.pick(&["", "Play", "More"]).to_owned());
    }
    let rules = (0..1 + bytes.below(most)).map(|number| {
        let trigger = trigger(bytes, sense);
        let how = bytes.byte();
        let defer = how & 1 == 1 && (trigger.can_defer() || sense == Sense::Some);
        let scope = match how >> 1 & 3 {
            0 => Scope::Mode(bytes.pick(&MODES).to_owned()),
            1 if sense == Sense::Some => Scope::Mode("Nowhere".to_owned()),
            _ => Scope::Global,
        };
        let device = (how >> 3 & 3 == 0).then(|| bytes.pick(&DEVICES).to_owned());
        let condition = (how >> 5 & 3 == 0).then(|| condition(bytes, 0));
        let place = Place::bytes(usize::from(number) * 10..usize::from(number) * 10 + 9);
        let action = (how >> 7 == 1).then(|| bytes.pick(&MODES));
        let (consume, priority) = (bytes.one_in(5), i32::from(bytes.below(3)) - 1);
        RuleSpec { scope, device, condition, defer, consume, priority, place, ..RuleSpec::new(trigger, action) }
    });
    RuleSource { rules: rules.collect(), modes }
}

fn numbers(bytes: &mut Bytes<'_>, lowest: u16, highest: u16, sense: Sense) -> NumberRange {
    let (first, more) = (bytes.byte(), bytes.byte());
    if sense == Sense::Some && more == 255 {
        return NumberRange { first: first.into(), last: bytes.byte().into() };
    }
    let first = lowest + u16::from(first) % (highest - lowest + 1).min(5);
    let more = if more >= 240 { 127 } else { u16::from(more) % 4 };
    NumberRange { first, last: (first + more).min(highest) }
}

fn values(bytes: &mut Bytes<'_>, most: u16, sense: Sense) -> ValueRange {
    match bytes.below(4) {
        0 => {
            let (one, other) = (bytes.word() % (most + 1), bytes.word() % (most + 1));
            ValueRange { min: one.min(other), max: one.max(other) }
        }
        1 if sense == Sense::Some => ValueRange { min: bytes.word(), max: bytes.word() },
        _ => ValueRange { min: 0, max: most },
    }
}

fn channel(bytes: &mut Bytes<'_>, sense: Sense) -> Option<u8> {
    match bytes.below(4) {
        0 => Some(bytes.below(2)),
        1 if sense == Sense::Some => Some(bytes.byte()),
        _ => None,
    }
}

fn time(bytes: &mut Bytes<'_>, sense: Sense) -> Nanos {
    match sense {
        Sense::All => bytes.pick(&[1, MS, 20 * MS, 50 * MS, 51 * MS, 300 * MS, 3_600_000 * MS]),
        Sense::Some => bytes.pick(&[0, 1, MS, 300 * MS, 3_600_000 * MS, 3_600_000 * MS + 1, Nanos::MAX]),
    }
}

fn part(bytes: &mut Bytes<'_>, sense: Sense) -> f32 {
    match bytes.byte() {
        255 if sense == Sense::Some => f32::from_bits(u32::from(bytes.word()) << 16),
        byte => f32::from(byte) / 255.0,
    }
}

fn arg_test(bytes: &mut Bytes<'_>, sense: Sense) -> Option<OscArgTest> {
    let index = match bytes.below(4) {
        0 | 1 => return None,
        index => usize::from(index) - 2,
    };
    let number = |bytes: &mut Bytes<'_>| f64::from(bytes.byte()) / 64.0 - 2.0;
    let (one, other) = (number(bytes), number(bytes));
    Some(match sense {
        Sense::All => OscArgTest { index, min: one.min(other), max: one.max(other) },
        Sense::Some => OscArgTest { index, min: one, max: if bytes.one_in(9) { f64::NAN } else { other } },
    })
}

fn trigger(bytes: &mut Bytes<'_>, sense: Sense) -> Trigger {
    let edge = |bytes: &mut Bytes<'_>| bytes.pick(&[Edge::Press, Edge::Press, Edge::Release, Edge::Both]);
    let readings = |bytes: &mut Bytes<'_>| bytes.pick(&[Readings::First, Readings::Each]);
    // A gamepad's keys in one of four.
    let keys = |bytes: &mut Bytes<'_>| match bytes.below(4) {
        0 => numbers(bytes, 128, 144, sense),
        _ => numbers(bytes, 0, 127, sense),
    };
    let key_channel = |bytes: &mut Bytes<'_>, keys: NumberRange| match sense {
        Sense::All if keys.first >= 128 => None,
        _ => channel(bytes, sense),
    };
    match bytes.below(24) {
        0 | 1 => Trigger::Note {
            notes: numbers(bytes, 0, 127, sense),
            velocity: values(bytes, 127, sense),
            edge: edge(bytes),
            channel: channel(bytes, sense),
        },
        2..=4 => {
            let keys = keys(bytes);
            let (velocity, channel) = (values(bytes, 127, sense), key_channel(bytes, keys));
            Trigger::LongPress { keys, velocity, channel, after: time(bytes, sense) }
        }
        5..=7 => {
            let keys = keys(bytes);
            let (velocity, channel) = (values(bytes, 127, sense), key_channel(bytes, keys));
            Trigger::DoubleTap { keys, velocity, channel, taps: 2 + velocity.max as u8 % 3, within: time(bytes, sense) }
        }
        8..=10 => chord(bytes, sense),
        11 => Trigger::Button { buttons: numbers(bytes, 128, 144, sense), edge: edge(bytes) },
        12 => Trigger::GamepadStick {
            sticks: numbers(bytes, 128, 131, sense),
            push: bytes.pick(&[Push::Positive, Push::Negative, Push::Any]),
            dead_zone: part(bytes, sense),
            readings: readings(bytes),
        },
        13 => Trigger::GamepadTrigger {
            triggers: numbers(bytes, 132, 133, sense),
            threshold: part(bytes, sense),
            readings: readings(bytes),
        },
        14 => Trigger::ControlChange {
            controllers: numbers(bytes, 0, 127, sense),
            value: values(bytes, 127, sense),
            channel: channel(bytes, sense),
        },
        15 => Trigger::Turn {
            controllers: numbers(bytes, 0, 127, sense),
            encoding: bytes.pick(&[
                Encoding::TwosComplement,
                Encoding::SignedBit,
                Encoding::BinaryOffset,
                Encoding::IncDec,
                Encoding::Difference,
            ]),
            way: bytes.pick(&[Rotation::Clockwise, Rotation::CounterClockwise, Rotation::Any]),
            channel: channel(bytes, sense),
        },
        16 => Trigger::FineControl {
            controllers: numbers(bytes, 0, 31, sense),
            value: values(bytes, 16_383, sense),
            channel: channel(bytes, sense),
            fine_first: false,
        },
        17 => Trigger::Parameter {
            registered: bytes.one_in(2),
            parameter: if sense == Sense::Some { bytes.word() } else { bytes.below(3).into() },
            value: values(bytes, 16_383, sense),
            channel: channel(bytes, sense),
        },
        18 => Trigger::Osc { address: bytes.pick(&ADDRESSES[..5]).to_owned(), arg: arg_test(bytes, sense) },
        19 => match OscPattern::parse(bytes.pick(&PATTERNS)) {
            Ok(pattern) => Trigger::OscPattern { pattern: pattern.into(), arg: arg_test(bytes, sense) },
            Err(error) => panic!("{error}"),
        },
        20 => match bytes.pick(&SYSEX).parse::<SysExPattern>() {
            Ok(pattern) => Trigger::SysEx { pattern },
            Err(error) => panic!("{error}"),
        },
        21 => {
            let first = if sense == Sense::Some { bytes.word() % 520 } else { 1 + u16::from(bytes.below(4)) };
            Trigger::ArtNet {
                universe: if bytes.one_in(9) && sense == Sense::Some { bytes.word() } else { bytes.below(2).into() },
                channels: DmxRange { first, last: first + u16::from(bytes.below(4)) },
                value: values(bytes, 255, sense),
            }
        }
        22 => match bytes.below(4) {
            0 => Trigger::Aftertouch { value: values(bytes, 127, sense), channel: channel(bytes, sense) },
            1 => Trigger::PitchBend { value: values(bytes, 16_383, sense), channel: channel(bytes, sense) },
            2 => Trigger::ProgramChange { programs: numbers(bytes, 0, 127, sense), channel: channel(bytes, sense) },
            _ => Trigger::PolyAftertouch {
                notes: numbers(bytes, 0, 127, sense),
                value: values(bytes, 127, sense),
                channel: channel(bytes, sense),
            },
        },
        _ => Trigger::MidiAny { channel: channel(bytes, sense) },
    }
}

fn chord(bytes: &mut Bytes<'_>, sense: Sense) -> Trigger {
    let mut keys: Vec<u16> = match sense {
        Sense::All => {
            let first = if bytes.one_in(4) { 128 } else { bytes.below(4).into() };
            (0..2 + bytes.below(3)).map(|step| first + u16::from(step)).collect()
        }
        Sense::Some => (0..bytes.below(12)).map(|_| u16::from(bytes.byte() % 146)).collect(),
    };
    keys.sort_unstable();
    let channel = match keys.first() {
        Some(first) if *first >= 128 && sense == Sense::All => None,
        _ => channel(bytes, sense),
    };
    Trigger::Chord { keys, channel, within: time(bytes, sense) }
}

fn condition(bytes: &mut Bytes<'_>, depth: u8) -> Condition {
    // Deeper than is allowed, now and then.
    let inside = depth < 20;
    let device = |bytes: &mut Bytes<'_>| bytes.one_in(3).then(|| DeviceId::new(bytes.pick(&DEVICES)));
    match bytes.below(12) {
        0 => Condition::Always,
        1 => Condition::Never,
        2 => Condition::ModeIs(bytes.pick(&MODES).into()),
        3 | 4 => Condition::NoteHeld {
            notes: numbers(bytes, 0, 127, Sense::All),
            channel: channel(bytes, Sense::All),
            device: device(bytes),
        },
        5 => Condition::CcValueInRange {
            controller: bytes.below(4),
            value: values(bytes, 127, Sense::All),
            channel: channel(bytes, Sense::All),
            device: device(bytes),
        },
        6 => Condition::TimeRange(TimeRange { from: u32::from(bytes.word()) * 2, to: u32::from(bytes.word()) * 2 }),
        7 => Condition::DayOfWeek([Day::Monday].into_iter().filter(|_| bytes.one_in(2)).collect::<Days>()),
        8 if inside => Condition::And((0..bytes.below(3)).map(|_| condition(bytes, depth + 1)).collect()),
        9 if inside => Condition::Or((0..bytes.below(3)).map(|_| condition(bytes, depth + 1)).collect()),
        _ if inside => Condition::Not(Box::new(condition(bytes, depth + 1))),
        _ => Condition::Always,
    }
}

/// Something that happens.
pub fn event(bytes: &mut Bytes<'_>) -> Event {
    let what = bytes.byte();
    let channel = u8::from(what >> 6 == 3);
    let note = bytes.byte() % 6;
    match what % 20 {
        0..=4 => MidiMessage::NoteOn { channel, note, velocity: bytes.byte() & 127 }.into(),
        5..=8 => MidiMessage::NoteOff { channel, note, velocity: 64 }.into(),
        9 | 10 => {
            let controller = bytes.pick(&[0, 1, 2, 3, 6, 32, 33, 38, 96, 97, 98, 99, 100, 101, 120, 123]);
            MidiMessage::ControlChange { channel, controller, value: bytes.byte() & 127 }.into()
        }
        11 => HidEvent::Button { button: u16::from(128 + note), pressed: true }.into(),
        12 => HidEvent::Button { button: u16::from(128 + note), pressed: false }.into(),
        13 => HidEvent::Stick { stick: u16::from(128 + note % 4), value: f32::from(bytes.byte()) / 127.5 - 1.0 }.into(),
        14 => HidEvent::Trigger { trigger: u16::from(132 + note % 2), value: f32::from(bytes.byte()) / 255.0 }.into(),
        15 => {
            let (universe, channel) = (u16::from(note % 2), 1 + u16::from(note));
            ArtNetChange { universe, channel, value: bytes.byte(), previous: bytes.byte() }.into()
        }
        16 => {
            let arg = match bytes.byte() {
                0 => OscArg::Nil,
                byte @ 1..128 => OscArg::Int(byte.into()),
                byte => OscArg::Float(f32::from(byte) / 64.0 - 3.0),
            };
            OscMessage::new(bytes.pick(&SENT), vec![arg]).into()
        }
        17 => {
            let data = bytes.take(usize::from(note));
            let message = [0xF0].into_iter().chain(data.iter().map(|byte| byte & 127)).chain([0xF7]);
            MidiMessage::SysEx(message.collect()).into()
        }
        18 => match note {
            0 => MidiMessage::Reset.into(),
            1 => MidiMessage::Clock.into(),
            2 => MidiMessage::ProgramChange { channel, program: bytes.below(6) }.into(),
            3 => MidiMessage::Aftertouch { channel, pressure: bytes.byte() & 127 }.into(),
            _ => MidiMessage::PolyAftertouch { channel, note, pressure: bytes.byte() & 127 }.into(),
        },
        _ => MidiMessage::PitchBend { channel, value: bytes.word() & 16_383 }.into(),
    }
}
