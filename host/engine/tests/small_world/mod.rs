//! Triggers and events from a small world, so that they meet.

use conductor_engine::*;
use proptest::prelude::*;
use proptest::sample::select;

const ADDRESSES: [&str; 6] = ["/mixer/1/fader", "/mixer/2/fader", "/mixer", "/", "/transport", "x"];
/// Addresses of messages that are patterns, and some that look like it.
const SENT_PATTERNS: [&str; 8] =
    ["/mixer/*/fader", "/mixer/{1,2}/fader", "/*", "/[l-n]ixer", "/t?ansport", "/{", "/*/*/*", "/mixer/[1/fader"];
const PATTERNS: [&str; 6] = ["/mixer/*/fader", "/mixer/[12]/fader", "/mixer", "/*", "/{mixer,x}", "/t*"];

fn numbers() -> impl Strategy<Value = NumberRange> {
    prop_oneof![
        2 => Just(NumberRange::ALL),
        4 => (0u16..4).prop_map(NumberRange::one),
        2 => (0u16..4, 0u16..4).prop_map(|(first, more)| NumberRange { first, last: first + more }),
        1 => (120u16..128).prop_map(|first| NumberRange { first, last: 127 }),
        1 => (0u16..128).prop_map(|last| NumberRange { first: 0, last }),
    ]
}

fn number() -> impl Strategy<Value = u8> {
    prop_oneof![4 => 0u8..6, 1 => 118u8..128, 1 => 0u8..128]
}

fn values(most: u16) -> impl Strategy<Value = ValueRange> {
    prop_oneof![
        2 => Just(ValueRange { min: 0, max: most }),
        1 => (0..=most, 0..=most)
            .prop_map(|(a, b)| ValueRange { min: a.min(b), max: a.max(b) }),
    ]
}

fn channel() -> impl Strategy<Value = Option<u8>> {
    select(vec![None, None, Some(0), Some(1), Some(15)])
}

fn sysex_pattern() -> impl Strategy<Value = SysExPattern> {
    select(vec!["F0", "F0 7E", "F0 ?E", "F0 7E ?? 06", "F0 00 20", "F0 F7"])
        .prop_map(|text| text.parse().expect("a pattern"))
}

fn arg_test() -> impl Strategy<Value = Option<OscArgTest>> {
    let range = (0usize..2, -1.0..1.0, 0.0..1.0)
        .prop_map(|(index, min, more)| Some(OscArgTest { index, min, max: min + more }));
    prop_oneof![Just(None), range]
}

pub fn trigger() -> impl Strategy<Value = Trigger> {
    let edge = || select(vec![Edge::Press, Edge::Release, Edge::Both]);
    prop_oneof![
        4 => (numbers(), values(127), edge(), channel()).prop_map(
            |(notes, velocity, edge, channel)| Trigger::Note { notes, velocity, edge, channel }
        ),
        2 => (numbers(), values(127), channel()).prop_map(|(controllers, value, channel)| {
            Trigger::ControlChange { controllers, value, channel }
        }),
        1 => (values(127), channel())
            .prop_map(|(value, channel)| Trigger::Aftertouch { value, channel }),
        1 => (numbers(), values(127), channel())
            .prop_map(|(notes, value, channel)| Trigger::PolyAftertouch { notes, value, channel }),
        1 => (values(16_383), channel())
            .prop_map(|(value, channel)| Trigger::PitchBend { value, channel }),
        1 => (numbers(), channel())
            .prop_map(|(programs, channel)| Trigger::ProgramChange { programs, channel }),
        1 => sysex_pattern().prop_map(|pattern| Trigger::SysEx { pattern }),
        1 => channel().prop_map(|channel| Trigger::MidiAny { channel }),
        1 => (select(&ADDRESSES[..5]), arg_test())
            .prop_map(|(address, arg)| Trigger::Osc { address: address.into(), arg }),
        1 => (select(&PATTERNS[..]), arg_test()).prop_map(|(pattern, arg)| Trigger::OscPattern {
            pattern: OscPattern::parse(pattern).expect("a pattern").into(),
            arg,
        }),
        1 => (128u16..=144, 0u16..4, edge()).prop_map(|(first, more, edge)| Trigger::Button {
            buttons: NumberRange { first, last: (first + more).min(144) },
            edge,
        }),
        1 => (257u16..=262, 0u16..4, edge()).prop_map(|(first, more, edge)| Trigger::Button {
            buttons: NumberRange { first, last: first + more },
            edge,
        }),
        1 => (128u16..=131, select(vec![Push::Negative, Push::Positive, Push::Any]), 0.0f32..1.0).prop_map(
            |(stick, push, dead_zone)| Trigger::GamepadStick {
                sticks: NumberRange::one(stick),
                push,
                dead_zone,
                readings: Readings::Each,
            }
        ),
        1 => (132u16..=133, 0.0f32..1.0).prop_map(|(first, threshold)| Trigger::GamepadTrigger {
            triggers: NumberRange { first, last: 133 },
            threshold,
            readings: Readings::Each,
        }),
        1 => (0u16..2, 1u16..4, 0u16..4, values(255)).prop_map(|(universe, first, more, value)| Trigger::ArtNet {
            universe,
            channels: DmxRange { first, last: first + more },
            value,
        }),
    ]
}

pub fn event() -> impl Strategy<Value = Event> {
    let c = || select(vec![0u8, 1, 2, 15]);
    let d = || 0u8..128;
    let osc_arg = prop_oneof![
        (-2.0f32..2.0).prop_map(OscArg::Float),
        (-1..3).prop_map(OscArg::Int),
        any::<bool>().prop_map(OscArg::Bool),
        Just(OscArg::Nil),
    ];
    let midi = prop_oneof![
        4 => (c(), number(), 1u8..128)
            .prop_map(|(channel, note, velocity)| MidiMessage::NoteOn { channel, note, velocity }),
        2 => (c(), number(), d())
            .prop_map(|(channel, note, velocity)| MidiMessage::NoteOff { channel, note, velocity }),
        2 => (c(), number(), d()).prop_map(|(channel, controller, value)| {
            MidiMessage::ControlChange { channel, controller, value }
        }),
        1 => (c(), number(), d()).prop_map(|(channel, note, pressure)| {
            MidiMessage::PolyAftertouch { channel, note, pressure }
        }),
        1 => (c(), number())
            .prop_map(|(channel, program)| MidiMessage::ProgramChange { channel, program }),
        1 => (c(), d()).prop_map(|(channel, pressure)| MidiMessage::Aftertouch { channel, pressure }),
        1 => (c(), 0u16..16_384).prop_map(|(channel, value)| MidiMessage::PitchBend { channel, value }),
        1 => select(vec![&[0xF0, 0xF7][..], &[0xF0, 0x7E, 0x10, 0x06, 0xF7], &[0xF0, 0x00, 0x20, 0xF7], &[]])
            .prop_map(|bytes| MidiMessage::SysEx(bytes.into())),
        1 => select(vec![MidiMessage::Clock, MidiMessage::SongSelect(3), MidiMessage::TimeCode(1)]),
    ];
    let addresses: Vec<&str> = ADDRESSES.iter().chain(&SENT_PATTERNS).copied().collect();
    let osc = (select(addresses), proptest::collection::vec(osc_arg, 0..3))
        .prop_map(|(address, args)| Event::from(OscMessage::new(address, args)));
    let gamepad = prop_oneof![
        (128u16..=144, any::<bool>()).prop_map(|(button, pressed)| HidEvent::Button { button, pressed }),
        (257u16..=268, any::<bool>()).prop_map(|(button, pressed)| HidEvent::Button { button, pressed }),
        (128u16..=131, -1.0f32..=1.0).prop_map(|(stick, value)| HidEvent::Stick { stick, value }),
        (132u16..=133, 0.0f32..=1.0).prop_map(|(trigger, value)| HidEvent::Trigger { trigger, value }),
    ];
    let artnet = (0u16..3, 1u16..8, any::<u8>()).prop_map(|(universe, channel, value)| ArtNetChange {
        universe,
        channel,
        value,
        previous: 0,
    });
    prop_oneof![
        5 => midi.prop_map(Event::Midi),
        1 => osc,
        1 => gamepad.prop_map(Event::Hid),
        1 => artnet.prop_map(Event::ArtNet)
    ]
}
