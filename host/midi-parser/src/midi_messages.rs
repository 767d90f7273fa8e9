//! Messages of any kind, for property tests of this crate and of `conductor-timeline`.

use super::MidiMessage;
use proptest::prelude::*;

/// Any message as a parser would hand it out.
pub(crate) fn midi_message() -> impl Strategy<Value = MidiMessage> {
    let (channel, data, fourteen) = (0u8..16, 0u8..128, 0u16..16_384);
    let (c, d, f) = (channel, data, fourteen);
    prop_oneof![
        (c.clone(), d.clone(), d.clone()).prop_map(|(channel, note, velocity)| MidiMessage::NoteOff {
            channel,
            note,
            velocity
        }),
        (c.clone(), d.clone(), 1u8..128).prop_map(|(channel, note, velocity)| MidiMessage::NoteOn {
            channel,
            note,
            velocity
        }),
        (c.clone(), d.clone(), d.clone())
            .prop_map(|(channel, note, pressure)| { MidiMessage::PolyAftertouch { channel, note, pressure } }),
        (c.clone(), d.clone(), d.clone())
            .prop_map(|(channel, controller, value)| { MidiMessage::ControlChange { channel, controller, value } }),
        (c.clone(), d.clone()).prop_map(|(channel, program)| MidiMessage::ProgramChange { channel, program }),
        (c.clone(), d.clone()).prop_map(|(channel, pressure)| MidiMessage::Aftertouch { channel, pressure }),
        (c, f.clone()).prop_map(|(channel, value)| MidiMessage::PitchBend { channel, value }),
        proptest::collection::vec(d.clone(), 0..10).prop_map(|data| {
            let bytes: Vec<u8> = [0xF0].into_iter().chain(data).chain([0xF7]).collect();
            MidiMessage::SysEx(bytes.into())
        }),
        d.clone().prop_map(MidiMessage::TimeCode),
        f.prop_map(MidiMessage::SongPosition),
        d.prop_map(MidiMessage::SongSelect),
        prop_oneof![
            Just(MidiMessage::TuneRequest),
            Just(MidiMessage::Clock),
            Just(MidiMessage::Start),
            Just(MidiMessage::Continue),
            Just(MidiMessage::Stop),
            Just(MidiMessage::ActiveSensing),
            Just(MidiMessage::Reset),
        ],
    ]
}
