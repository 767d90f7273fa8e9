//! A MIDI stream: wherever it is cut, the same messages come out, and each is what MIDI 1.0 allows.

use conductor_event::{Event, MidiMessage};
use conductor_midi_parser::MidiParser;

/// So that messages that are too long come up.
const SYSEX_LIMIT: usize = 24;

pub fn run(data: &[u8]) {
    let Some((&portion, stream)) = data.split_first() else { return };
    let (whole, dropped, stray) = read(stream, stream.len());
    let cut = read(stream, usize::from(portion % 16) + 1);
    assert_eq!((&whole, dropped, stray), (&cut.0, cut.1, cut.2), "where a stream is cut makes no difference");
    for message in whole {
        is_sound(&message);
        let (again, dropped, stray) = read(&message.to_bytes(), 1);
        assert_eq!((again, dropped, stray), (vec![message.clone()], 0, 0), "what is written can be read");
        let event = Event::from(message);
        assert!((0.0..=1.0).contains(&event.unit()), "{event}");
        assert!(event.channel().is_none_or(|channel| channel < 16), "{event}");
    }
}

/// The messages of a stream that comes in portions, and what was dropped or stray in it.
fn read(stream: &[u8], portion: usize) -> (Vec<MidiMessage>, u64, u64) {
    let mut parser = MidiParser::with_sysex_limit(SYSEX_LIMIT);
    let mut messages = Vec::new();
    for bytes in stream.chunks(portion.max(1)) {
        parser.push(bytes, &mut |message| messages.push(message));
    }
    assert!(messages.len() <= stream.len(), "no message is made of nothing");
    assert!(parser.dropped_messages() + parser.stray_bytes() <= stream.len() as u64);
    (messages, parser.dropped_messages(), parser.stray_bytes())
}

fn is_sound(message: &MidiMessage) {
    let seven = |value: u8| assert!(value < 128, "{message:?}");
    let fourteen = |value: u16| assert!(value < 16_384, "{message:?}");
    match message {
        MidiMessage::NoteOn { note, velocity, .. } => {
            assert!(*velocity > 0, "a note-on without velocity is a note-off");
            seven(note | velocity);
        }
        MidiMessage::NoteOff { note: one, velocity: two, .. }
        | MidiMessage::PolyAftertouch { note: one, pressure: two, .. }
        | MidiMessage::ControlChange { controller: one, value: two, .. } => seven(one | two),
        MidiMessage::ProgramChange { program: one, .. }
        | MidiMessage::Aftertouch { pressure: one, .. }
        | MidiMessage::TimeCode(one)
        | MidiMessage::SongSelect(one) => seven(*one),
        MidiMessage::PitchBend { value, .. } | MidiMessage::SongPosition(value) => fourteen(*value),
        MidiMessage::SysEx(bytes) => {
            let [0xF0, data @ .., 0xF7] = &**bytes else { panic!("{message:?}") };
            assert!(bytes.len() <= SYSEX_LIMIT && data.iter().all(|byte| *byte < 128), "{message:?}");
        }
        _ => {}
    }
}
