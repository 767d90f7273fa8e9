//! Compiles a mapping's trigger for the engine.

use std::ops::RangeInclusive;
use std::sync::Arc;

use conductor_config::{self as config, TriggerEvent};
use conductor_engine as engine;
use conductor_engine::{
    Counted, DmxRange, Encoding, NumberRange, OscArgTest, OscPattern, Push, Rotation, SysExPattern, Transport,
    ValueRange,
};
use conductor_event::Nanos;

use super::edges::edge;

/// The trigger, for a mapping with this action. `number` is the number of the variable of a name.
///
/// # Errors
/// What the configuration has to say instead.
pub(super) fn trigger(
    event: &TriggerEvent,
    action: &config::Action,
    number: impl Fn(&str) -> Option<u16>,
) -> Result<engine::Trigger, String> {
    use engine::Trigger;
    Ok(match event {
        TriggerEvent::Note { note, velocity_range, on, channel } => Trigger::Note {
            notes: range(*note),
            velocity: values(*velocity_range),
            edge: edge(*on, action),
            channel: channel.map(config::Channel::get),
        },
        TriggerEvent::NoteRange { note_min, note_max, velocity_range, on, channel } => Trigger::Note {
            notes: NumberRange { first: note_min.get().into(), last: note_max.get().into() },
            velocity: values(*velocity_range),
            edge: edge(*on, action),
            channel: channel.map(config::Channel::get),
        },
        TriggerEvent::VelocityRange { note, min, max, channel } => Trigger::Note {
            notes: range(*note),
            velocity: ValueRange { min: u16::from(*min), max: u16::from(*max) },
            edge: edge(None, action),
            channel: channel.map(config::Channel::get),
        },
        TriggerEvent::CC { cc, value_range, channel } => Trigger::ControlChange {
            controllers: range(*cc),
            value: values(*value_range),
            channel: channel.map(config::Channel::get),
        },
        TriggerEvent::Aftertouch { value_range, channel } => {
            Trigger::Aftertouch { value: values(*value_range), channel: channel.map(config::Channel::get) }
        }
        TriggerEvent::PolyAftertouch { note, value_range, channel } => Trigger::PolyAftertouch {
            notes: range(*note),
            value: values(*value_range),
            channel: channel.map(config::Channel::get),
        },
        TriggerEvent::PitchBend { value_range, channel } => {
            Trigger::PitchBend { value: values(*value_range), channel: channel.map(config::Channel::get) }
        }
        TriggerEvent::ProgramChange { program, channel } => {
            Trigger::ProgramChange { programs: range(*program), channel: channel.map(config::Channel::get) }
        }
        TriggerEvent::SysEx { prefix, mask } => Trigger::SysEx { pattern: sysex(prefix, mask.as_ref()) },
        TriggerEvent::MidiAny { channel } => Trigger::MidiAny { channel: channel.map(config::Channel::get) },
        TriggerEvent::OscMessage { address } => Trigger::Osc { address: address.clone(), arg: None },
        TriggerEvent::OscPattern { pattern } => Trigger::OscPattern { pattern: osc_pattern(pattern)?, arg: None },
        TriggerEvent::OscArgRange { address, arg, min, max } => {
            let arg = Some(OscArgTest { index: usize::from(*arg), min: *min, max: *max });
            if engine::check_address(address).is_ok() {
                Trigger::Osc { address: address.clone(), arg }
            } else {
                Trigger::OscPattern { pattern: osc_pattern(address)?, arg }
            }
        }
        TriggerEvent::GamepadButton { button, on } => {
            Trigger::Button { buttons: range(*button), edge: edge(*on, action) }
        }
        TriggerEvent::Key { key, on } => Trigger::Button { buttons: range(*key), edge: edge(*on, action) },
        TriggerEvent::GamepadAnalogStick { axis, direction, dead_zone, on } => Trigger::GamepadStick {
            sticks: range(*axis),
            push: match direction {
                config::Direction::Negative => Push::Negative,
                config::Direction::Positive => Push::Positive,
                config::Direction::Any => Push::Any,
            },
            dead_zone: *dead_zone,
            readings: match on {
                None if *direction == config::Direction::Any => engine::Readings::Each,
                on => readings(*on),
            },
        },
        TriggerEvent::GamepadTrigger { trigger, threshold, on } => {
            Trigger::GamepadTrigger { triggers: range(*trigger), threshold: *threshold, readings: readings(*on) }
        }
        TriggerEvent::Variable { variable } => match number(variable) {
            Some(variable) => Trigger::Variable { variable },
            None => return Err(format!("there is no variable {variable:?}")),
        },
        TriggerEvent::Beat { every, offset } => {
            Trigger::Beat { counted: Counted::Beats, every: *every, offset: *offset }
        }
        TriggerEvent::Bar { every, offset } => Trigger::Beat { counted: Counted::Bars, every: *every, offset: *offset },
        TriggerEvent::Transport { on } => Trigger::Transport {
            does: match on {
                config::TransportChange::Start => Transport::Start,
                config::TransportChange::Continue => Transport::Continue,
                config::TransportChange::Stop => Transport::Stop,
            },
        },
        TriggerEvent::LongPress { note, button, key, velocity_range, duration_ms, channel } => Trigger::LongPress {
            keys: keys(*note, *button, *key)?,
            velocity: values(*velocity_range),
            channel: channel.map(config::Channel::get),
            after: nanos(*duration_ms),
        },
        TriggerEvent::DoubleTap { note, button, key, velocity_range, taps, timeout_ms, channel } => {
            Trigger::DoubleTap {
                keys: keys(*note, *button, *key)?,
                velocity: values(*velocity_range),
                channel: channel.map(config::Channel::get),
                taps: *taps,
                within: nanos(*timeout_ms),
            }
        }
        TriggerEvent::NoteChord { notes, timeout_ms, channel } => Trigger::Chord {
            keys: ascending(notes.iter().map(|note| note.get().into())),
            channel: channel.map(config::Channel::get),
            within: nanos(*timeout_ms),
        },
        TriggerEvent::GamepadButtonChord { buttons, timeout_ms } => Trigger::Chord {
            keys: ascending(buttons.iter().map(|button| button.get().into())),
            channel: None,
            within: nanos(*timeout_ms),
        },
        TriggerEvent::KeyChord { keys, timeout_ms } => Trigger::Chord {
            keys: ascending(keys.iter().map(|key| key.get())),
            channel: None,
            within: nanos(*timeout_ms),
        },
        TriggerEvent::NoteSequence { notes, timeout_ms, channel } => Trigger::Sequence {
            keys: notes.iter().map(|note| note.get().into()).collect(),
            channel: channel.map(config::Channel::get),
            within: nanos(*timeout_ms),
        },
        TriggerEvent::GamepadButtonSequence { buttons, timeout_ms } => Trigger::Sequence {
            keys: buttons.iter().map(|button| button.get().into()).collect(),
            channel: None,
            within: nanos(*timeout_ms),
        },
        TriggerEvent::KeySequence { keys, timeout_ms } => Trigger::Sequence {
            keys: keys.iter().map(|key| key.get()).collect(),
            channel: None,
            within: nanos(*timeout_ms),
        },
        TriggerEvent::EncoderTurn { cc, direction, mode, channel } => Trigger::Turn {
            controllers: range(*cc),
            encoding: match mode {
                config::EncoderMode::TwosComplement => Encoding::TwosComplement,
                config::EncoderMode::SignedBit => Encoding::SignedBit,
                config::EncoderMode::BinaryOffset => Encoding::BinaryOffset,
                config::EncoderMode::IncDec => Encoding::IncDec,
                config::EncoderMode::Difference => Encoding::Difference,
                config::EncoderMode::Wrapping => Encoding::Wrapping,
            },
            way: match direction {
                config::Turn::Clockwise => Rotation::Clockwise,
                config::Turn::CounterClockwise => Rotation::CounterClockwise,
                config::Turn::Any => Rotation::Any,
            },
            channel: channel.map(config::Channel::get),
        },
        TriggerEvent::CC14 { cc, value_range, channel, fine_first } => Trigger::FineControl {
            fine_first: *fine_first,
            controllers: range(*cc),
            value: values(*value_range),
            channel: channel.map(config::Channel::get),
        },
        TriggerEvent::RPN { parameter, value_range, channel } => Trigger::Parameter {
            registered: true,
            parameter: *parameter,
            value: values(*value_range),
            channel: channel.map(config::Channel::get),
        },
        TriggerEvent::NRPN { parameter, value_range, channel } => Trigger::Parameter {
            registered: false,
            parameter: *parameter,
            value: values(*value_range),
            channel: channel.map(config::Channel::get),
        },
        TriggerEvent::ArtNetChannel { universe, dmx_channel, value_range } => Trigger::ArtNet {
            universe: *universe,
            channels: DmxRange { first: dmx_channel.first(), last: dmx_channel.last() },
            value: values(*value_range),
        },
    })
}

/// A number for the name of a variable where triggers are only compared: names that are the same have the same one.
pub(super) fn some_number(name: &str) -> Option<u16> {
    let hash = name.bytes().fold(0_u16, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    Some(hash % (engine::VariableChange::LAST + 1))
}

fn readings(on: Option<config::Readings>) -> engine::Readings {
    match on {
        None | Some(config::Readings::Enter) => engine::Readings::First,
        Some(config::Readings::Move) => engine::Readings::Each,
    }
}

fn keys(
    note: Option<config::NoteRange>,
    button: Option<config::ButtonRange>,
    key: Option<config::KeyRange>,
) -> Result<NumberRange, String> {
    match (note, button, key) {
        (Some(note), None, None) => Ok(range(note)),
        (None, Some(button), None) => Ok(range(button)),
        (None, None, Some(key)) => Ok(range(key)),
        _ => Err("say which key, by one of: `note`, 0 to 127; `button`, 128 to 144; `key`, such as \"f13\"".to_owned()),
    }
}

/// The keys of a chord, in whatever order they were written.
fn ascending(keys: impl Iterator<Item = u16>) -> Vec<u16> {
    let mut keys: Vec<u16> = keys.collect();
    keys.sort_unstable();
    keys
}

fn nanos(milliseconds: u32) -> Nanos {
    Nanos::from(milliseconds) * 1_000_000
}

/// The numbers that a trigger waits for, one after the other.
pub(super) fn waiting(event: &TriggerEvent) -> impl Iterator<Item = config::Inputs> {
    let (first, last, channel) = match event {
        TriggerEvent::Note { note: range, channel, .. }
        | TriggerEvent::VelocityRange { note: range, channel, .. }
        | TriggerEvent::PolyAftertouch { note: range, channel, .. } => (range.first(), range.last(), *channel),
        TriggerEvent::CC { cc: range, channel, .. } => (range.first(), range.last(), *channel),
        TriggerEvent::ProgramChange { program: range, channel } => (range.first(), range.last(), *channel),
        TriggerEvent::NoteRange { note_min, note_max, channel, .. } => {
            (u16::from(note_min.get()), u16::from(note_max.get()), *channel)
        }
        _ => (0, 0, None),
    };
    (first..=last).map(move |number| config::Inputs {
        position: f64::from(number - first),
        number: f64::from(number),
        channel: channel.map_or(0.0, |channel| channel.get().into()),
        ..config::Inputs::default()
    })
}

/// The notes that a trigger waits for. `None` if it waits for something else.
pub(super) fn notes(event: &TriggerEvent) -> Option<RangeInclusive<u16>> {
    match event {
        TriggerEvent::Note { note: range, .. }
        | TriggerEvent::VelocityRange { note: range, .. }
        | TriggerEvent::LongPress { note: Some(range), .. }
        | TriggerEvent::DoubleTap { note: Some(range), .. } => Some(range.first()..=range.last()),
        TriggerEvent::NoteRange { note_min, note_max, .. } => Some(note_min.get().into()..=note_max.get().into()),
        _ => None,
    }
}

/// The numbers of a range.
pub(super) fn range<const MIN: u16, const MAX: u16, const NAMES: u8>(
    range: config::Span<MIN, MAX, NAMES>,
) -> NumberRange {
    NumberRange { first: range.first(), last: range.last() }
}

pub(super) fn values<const MAX: u16>(bounds: config::Bounds<MAX>) -> ValueRange {
    ValueRange { min: bounds.min(), max: bounds.max() }
}

fn osc_pattern(pattern: &str) -> Result<Arc<OscPattern>, String> {
    OscPattern::parse(pattern).map(Arc::new).map_err(|error| error.to_string())
}

fn sysex(prefix: &config::SysExPrefix, mask: Option<&config::HexBytes>) -> SysExPattern {
    let bytes = prefix.as_slice().iter().enumerate().map(|(index, byte)| match byte {
        Some(byte) => (*byte, mask.and_then(|mask| mask.as_slice().get(index).copied()).unwrap_or(0xFF)),
        None => (0, 0),
    });
    SysExPattern::new(bytes.collect::<Vec<_>>())
}
