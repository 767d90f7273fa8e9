//! The event that two triggers share, as an example to show.

use conductor_engine::{
    ArtNetChange, ChordEvent, Edge, Event, GestureEvent, HidEvent, MidiMessage, MusicalEvent, Nanos, NumberRange,
    OscArg, OscArgTest, OscMessage, Press, Push, Rotation, Trigger, ValueRange,
};

/// How hard a press is released, where nothing says so: what MIDI has for keyboards that don't measure it.
const RELEASE_VELOCITY: u8 = 64;
/// The last byte of a SysEx message.
const SYSEX_END: u8 = 0xF7;

/// An event that both triggers wait for, or the gesture that both recognize: of the numbers that both have the lowest,
/// of the values the highest. `None` if they share none, or none can be written down: of beats, variables and
/// sequences, and of OSC patterns that differ.
pub fn shared_event(one: &Trigger, other: &Trigger) -> Option<Event> {
    let event = example(one, other)?;
    // What is shown is so: an example that needs luck, such as an argument between two numbers, is held against both.
    let is_met = |trigger: &Trigger| trigger.is_gesture() || trigger.matches(&event).is_some();
    (is_met(one) && is_met(other)).then_some(event)
}

fn example(one: &Trigger, other: &Trigger) -> Option<Event> {
    use Trigger::{
        Aftertouch, ArtNet, Button, Chord, ControlChange, DoubleTap, FineControl, GamepadStick, GamepadTrigger,
        LongPress, Note, Osc, OscPattern, Parameter, PitchBend, PolyAftertouch, ProgramChange, SysEx, Transport, Turn,
    };
    Some(match (one, other) {
        (Note { notes: a, velocity: v, edge: e, channel: c }, Note { notes: b, velocity: w, edge: f, channel: d }) => {
            let (note, channel) = (byte(lowest(*a, *b)?)?, channel(*c, *d)?);
            match press_velocity(*v, *w) {
                Some(velocity) if both_press(*e, *f) => MidiMessage::NoteOn { channel, note, velocity }.into(),
                _ => MidiMessage::NoteOff { channel, note, velocity: RELEASE_VELOCITY }.into(),
            }
        }
        (
            ControlChange { controllers: a, value: v, channel: c },
            ControlChange { controllers: b, value: w, channel: d },
        ) => {
            let (controller, value) = (byte(lowest(*a, *b)?)?, byte(highest(*v, *w)?)?);
            MidiMessage::ControlChange { channel: channel(*c, *d)?, controller, value }.into()
        }
        (PolyAftertouch { notes: a, value: v, channel: c }, PolyAftertouch { notes: b, value: w, channel: d }) => {
            let (note, pressure) = (byte(lowest(*a, *b)?)?, byte(highest(*v, *w)?)?);
            MidiMessage::PolyAftertouch { channel: channel(*c, *d)?, note, pressure }.into()
        }
        (Aftertouch { value: v, channel: c }, Aftertouch { value: w, channel: d }) => {
            MidiMessage::Aftertouch { channel: channel(*c, *d)?, pressure: byte(highest(*v, *w)?)? }.into()
        }
        (PitchBend { value: v, channel: c }, PitchBend { value: w, channel: d }) => {
            MidiMessage::PitchBend { channel: channel(*c, *d)?, value: highest(*v, *w)? }.into()
        }
        (ProgramChange { programs: a, channel: c }, ProgramChange { programs: b, channel: d }) => {
            MidiMessage::ProgramChange { channel: channel(*c, *d)?, program: byte(lowest(*a, *b)?)? }.into()
        }
        (SysEx { pattern: a }, SysEx { pattern: b }) => MidiMessage::SysEx(sysex(a.bytes(), b.bytes()).into()).into(),
        (Osc { address, arg: x }, Osc { arg: y, .. } | OscPattern { arg: y, .. })
        | (OscPattern { arg: x, .. }, Osc { address, arg: y }) => osc(address, *x, *y),
        // A message may have the pattern itself for its address.
        (OscPattern { pattern, arg: x }, OscPattern { arg: y, .. }) => osc(pattern.as_str(), *x, *y),
        (Button { buttons: a, edge: e }, Button { buttons: b, edge: f }) => {
            HidEvent::Button { button: lowest(*a, *b)?, pressed: both_press(*e, *f) }.into()
        }
        (GamepadStick { sticks: a, push: p, .. }, GamepadStick { sticks: b, push: q, .. }) => {
            let value = match (p, q) {
                (Push::Negative, Push::Positive) | (Push::Positive, Push::Negative) => 0.0,
                (Push::Negative, _) | (_, Push::Negative) => -1.0,
                _ => 1.0,
            };
            HidEvent::Stick { stick: lowest(*a, *b)?, value }.into()
        }
        (GamepadTrigger { triggers: a, .. }, GamepadTrigger { triggers: b, .. }) => {
            HidEvent::Trigger { trigger: lowest(*a, *b)?, value: 1.0 }.into()
        }
        (ArtNet { universe, channels: a, value: v }, ArtNet { channels: b, value: w, .. }) => {
            let first = a.first.max(b.first);
            let channel = (first <= a.last.min(b.last)).then_some(first)?;
            ArtNetChange { universe: *universe, channel, value: byte(highest(*v, *w)?)?, previous: 0 }.into()
        }
        (Transport { does }, Transport { .. }) => Event::Musical(MusicalEvent::Transport(*does)),
        (
            LongPress { keys: a, velocity: v, channel: c, after: s },
            LongPress { keys: b, velocity: w, channel: d, after: t },
        ) => {
            let press = press(lowest(*a, *b)?, press_velocity(*v, *w)?, channel(*c, *d)?);
            Event::Gesture(GestureEvent::LongPress { press, held_ms: milliseconds((*s).max(*t)) })
        }
        (
            DoubleTap { keys: a, velocity: v, channel: c, within: s, .. },
            DoubleTap { keys: b, velocity: w, channel: d, within: t, .. },
        ) => {
            let velocity = press_velocity(*v, *w)?;
            let press = press(lowest(*a, *b)?, velocity, channel(*c, *d)?);
            let interval_ms = milliseconds((*s).min(*t)) / 2;
            Event::Gesture(GestureEvent::DoubleTap { press, first_velocity: velocity, interval_ms })
        }
        (Chord { keys, channel: c, .. }, Chord { channel: d, .. }) => {
            let channel = channel(*c, *d)?;
            let hardest = press_velocity(ValueRange::SEVEN_BIT, ValueRange::SEVEN_BIT)?;
            let presses = keys.iter().map(|key| press(*key, hardest, channel));
            Event::Gesture(GestureEvent::Chord(ChordEvent::new(presses, 0)))
        }
        (Turn { controllers: a, way: p, channel: c, .. }, Turn { controllers: b, way: q, channel: d, .. }) => {
            let steps = if *p == Rotation::CounterClockwise || *q == Rotation::CounterClockwise { -1 } else { 1 };
            let controller = byte(lowest(*a, *b)?)?;
            Event::Gesture(GestureEvent::Turn { channel: channel(*c, *d)?, controller, steps })
        }
        (
            FineControl { controllers: a, value: v, channel: c, .. },
            FineControl { controllers: b, value: w, channel: d, .. },
        ) => {
            let (controller, value) = (byte(lowest(*a, *b)?)?, highest(*v, *w)?);
            Event::Gesture(GestureEvent::FineControl { channel: channel(*c, *d)?, controller, value })
        }
        (Parameter { registered, parameter, value: v, channel: c }, Parameter { value: w, channel: d, .. }) => {
            let (registered, parameter, value) = (*registered, *parameter, highest(*v, *w)?);
            Event::Gesture(GestureEvent::Parameter { channel: channel(*c, *d)?, registered, parameter, value })
        }
        _ => return None,
    })
}

/// The lowest number of both.
fn lowest(one: NumberRange, other: NumberRange) -> Option<u16> {
    let first = one.first.max(other.first);
    (first <= one.last.min(other.last)).then_some(first)
}

/// The highest value of both.
fn highest(one: ValueRange, other: ValueRange) -> Option<u16> {
    let max = one.max.min(other.max);
    (max >= one.min.max(other.min)).then_some(max)
}

/// How hard a press is that both wait for: one with velocity 0 would be a release.
fn press_velocity(one: ValueRange, other: ValueRange) -> Option<u8> {
    byte(highest(one, other)?).filter(|velocity| *velocity > 0)
}

fn byte(number: u16) -> Option<u8> {
    u8::try_from(number).ok()
}

/// The channel that both are about, the first if any will do.
fn channel(one: Option<u8>, other: Option<u8>) -> Option<u8> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => None,
        (one, other) => Some(one.or(other).unwrap_or(0)),
    }
}

fn both_press(one: Edge, other: Edge) -> bool {
    one.has_press() && other.has_press()
}

/// The press of a note on this channel, or of a button or key, which have no channel and no velocity.
fn press(key: u16, velocity: u8, channel: u8) -> Press {
    let is_note = key <= NumberRange::ALL.last;
    if is_note { Press::new(Some(channel), key, velocity) } else { Press::new(None, key, 127) }
}

fn milliseconds(time: Nanos) -> u32 {
    u32::try_from(time / 1_000_000).unwrap_or(u32::MAX)
}

/// A message that begins as both say: a bit that only one of them asks for is as that one has it.
fn sysex(one: &[(u8, u8)], other: &[(u8, u8)]) -> Vec<u8> {
    let at = |pattern: &[(u8, u8)], index: usize| {
        let (byte, mask) = pattern.get(index).copied().unwrap_or_default();
        byte & mask
    };
    let mut bytes: Vec<u8> = (0..one.len().max(other.len())).map(|index| at(one, index) | at(other, index)).collect();
    if bytes.last() != Some(&SYSEX_END) {
        bytes.push(SYSEX_END);
    }
    bytes
}

/// A message to this address whose arguments pass both tests, as far as numbers can.
fn osc(address: &str, one: Option<OscArgTest>, other: Option<OscArgTest>) -> Event {
    let tests: Vec<OscArgTest> = [one, other].into_iter().flatten().collect();
    let count = tests.iter().map(|test| test.index + 1).max().unwrap_or(0);
    let mut args = vec![OscArg::Nil; count];
    for test in &tests {
        let of_it = || tests.iter().filter(|other| other.index == test.index);
        let min = of_it().map(|test| test.min).fold(f64::NEG_INFINITY, f64::max);
        let max = of_it().map(|test| test.max).fold(f64::INFINITY, f64::min);
        args[test.index] = OscArg::Float((min / 2.0 + max / 2.0) as f32);
    }
    OscMessage::new(address, args).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: ValueRange = ValueRange::SEVEN_BIT;

    fn note(first: u16, last: u16, velocity: ValueRange, edge: Edge, channel: Option<u8>) -> Trigger {
        Trigger::Note { notes: NumberRange { first, last }, velocity, edge, channel }
    }

    fn shown(one: &Trigger, other: &Trigger) -> Option<String> {
        shared_event(one, other).map(|event| event.to_string())
    }

    #[test]
    fn the_lowest_note_and_the_hardest_press_of_both_are_shown() {
        let pads = note(36, 51, ALL, Edge::Both, None);
        let soft = note(40, 60, ValueRange { min: 1, max: 80 }, Edge::Press, Some(9));
        assert_eq!(shown(&pads, &soft).as_deref(), Some("note-on 40 80 ch 9"));
        assert_eq!(shown(&pads, &note(36, 36, ALL, Edge::Release, None)).as_deref(), Some("note-off 36 64"));
        assert_eq!(shown(&pads, &note(52, 60, ALL, Edge::Press, None)), None);
        assert_eq!(shown(&soft, &note(40, 40, ALL, Edge::Press, Some(1))), None);
        // Whatever it is released with: their presses differ.
        let hard = note(40, 40, ValueRange { min: 81, max: 127 }, Edge::Both, None);
        let gentle = note(40, 40, ValueRange { min: 1, max: 80 }, Edge::Both, None);
        assert_eq!(shown(&hard, &gentle).as_deref(), Some("note-off 40 64"));
    }

    #[test]
    fn an_argument_is_shown_that_passes_both_tests() {
        let fader =
            |index, min, max| Trigger::Osc { address: "/fader".into(), arg: Some(OscArgTest { index, min, max }) };
        let any = Trigger::Osc { address: "/fader".into(), arg: None };
        assert_eq!(shown(&fader(0, 0.0, 0.5), &fader(0, 0.25, 1.0)).as_deref(), Some("osc /fader 0.375"));
        assert_eq!(shown(&fader(1, 0.5, 0.5), &any).as_deref(), Some("osc /fader nil 0.5"));
        assert_eq!(shown(&any, &any).as_deref(), Some("osc /fader"));
        assert_eq!(shown(&fader(0, 0.0, 0.25), &fader(0, 0.5, 1.0)), None);
    }

    #[test]
    fn gestures_are_shown_as_the_stream_has_them() {
        let long = |keys, after| Trigger::LongPress { keys, velocity: ALL, channel: None, after };
        let pads = long(NumberRange { first: 36, last: 51 }, 800_000_000);
        let pad = long(NumberRange::one(40), 500_000_000);
        assert_eq!(shown(&pads, &pad).as_deref(), Some("long-press 40 127 after 800ms"));
        let button = long(NumberRange::one(128), 500_000_000);
        assert_eq!(shown(&button, &button).as_deref(), Some("long-press 128 127 after 500ms"));
        let turn = |way| Trigger::Turn {
            controllers: NumberRange::one(20),
            encoding: conductor_engine::Encoding::TwosComplement,
            way,
            channel: Some(2),
        };
        let (any, left) = (turn(Rotation::Any), turn(Rotation::CounterClockwise));
        assert_eq!(shown(&any, &left).as_deref(), Some("turn 20 -1 ch 2"));
    }

    #[test]
    fn what_no_line_can_say_is_left_out() {
        let variable = Trigger::Variable { variable: 3 };
        assert_eq!(shown(&variable, &variable), None);
    }
}
