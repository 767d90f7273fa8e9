//! What comes in: one event, and the questions a rule may ask of it.

use std::sync::Arc;

use crate::midi::MidiMessage;
use crate::osc::{OscArg, OscMessage};

/// Something that happened at a port. Which port is said by the
/// [`DeviceEvent`](crate::DeviceEvent) around it.
///
/// Cheap to clone: what is long is shared.
///
/// [`Display`](std::fmt::Display) writes the words that a [`Timeline`](crate::Timeline) reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A MIDI message.
    Midi(MidiMessage),
    /// An OSC message.
    Osc(Arc<OscMessage>),
}

/// The kind of an event. The numbers are part of what features see and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum EventKind {
    /// [`MidiMessage::NoteOff`]
    NoteOff = 1,
    /// [`MidiMessage::NoteOn`]
    NoteOn = 2,
    /// [`MidiMessage::PolyAftertouch`]
    PolyAftertouch = 3,
    /// [`MidiMessage::ControlChange`]
    ControlChange = 4,
    /// [`MidiMessage::ProgramChange`]
    ProgramChange = 5,
    /// [`MidiMessage::Aftertouch`]
    Aftertouch = 6,
    /// [`MidiMessage::PitchBend`]
    PitchBend = 7,
    /// [`MidiMessage::SysEx`]
    SysEx = 8,
    /// [`MidiMessage::TimeCode`]
    TimeCode = 9,
    /// [`MidiMessage::SongPosition`]
    SongPosition = 10,
    /// [`MidiMessage::SongSelect`]
    SongSelect = 11,
    /// [`MidiMessage::TuneRequest`]
    TuneRequest = 12,
    /// [`MidiMessage::Clock`]
    Clock = 13,
    /// [`MidiMessage::Start`]
    Start = 14,
    /// [`MidiMessage::Continue`]
    Continue = 15,
    /// [`MidiMessage::Stop`]
    Stop = 16,
    /// [`MidiMessage::ActiveSensing`]
    ActiveSensing = 17,
    /// [`MidiMessage::Reset`]
    Reset = 18,
    /// [`Event::Osc`]
    Osc = 32,
}

impl EventKind {
    /// Every kind, in the order of the numbers.
    pub const ALL: [Self; 19] = [
        Self::NoteOff,
        Self::NoteOn,
        Self::PolyAftertouch,
        Self::ControlChange,
        Self::ProgramChange,
        Self::Aftertouch,
        Self::PitchBend,
        Self::SysEx,
        Self::TimeCode,
        Self::SongPosition,
        Self::SongSelect,
        Self::TuneRequest,
        Self::Clock,
        Self::Start,
        Self::Continue,
        Self::Stop,
        Self::ActiveSensing,
        Self::Reset,
        Self::Osc,
    ];

    /// The word for it, as in timelines: `note-on`, `cc`, `osc`, …
    pub fn name(self) -> &'static str {
        match self {
            Self::NoteOff => "note-off",
            Self::NoteOn => "note-on",
            Self::PolyAftertouch => "poly-aftertouch",
            Self::ControlChange => "cc",
            Self::ProgramChange => "program",
            Self::Aftertouch => "aftertouch",
            Self::PitchBend => "pitch-bend",
            Self::SysEx => "sysex",
            Self::TimeCode => "time-code",
            Self::SongPosition => "song-position",
            Self::SongSelect => "song-select",
            Self::TuneRequest => "tune-request",
            Self::Clock => "clock",
            Self::Start => "start",
            Self::Continue => "continue",
            Self::Stop => "stop",
            Self::ActiveSensing => "active-sensing",
            Self::Reset => "reset",
            Self::Osc => "osc",
        }
    }
}

impl Event {
    /// What kind of event it is.
    pub fn kind(&self) -> EventKind {
        match self {
            Self::Midi(message) => match message {
                MidiMessage::NoteOff { .. } => EventKind::NoteOff,
                MidiMessage::NoteOn { .. } => EventKind::NoteOn,
                MidiMessage::PolyAftertouch { .. } => EventKind::PolyAftertouch,
                MidiMessage::ControlChange { .. } => EventKind::ControlChange,
                MidiMessage::ProgramChange { .. } => EventKind::ProgramChange,
                MidiMessage::Aftertouch { .. } => EventKind::Aftertouch,
                MidiMessage::PitchBend { .. } => EventKind::PitchBend,
                MidiMessage::SysEx(_) => EventKind::SysEx,
                MidiMessage::TimeCode(_) => EventKind::TimeCode,
                MidiMessage::SongPosition(_) => EventKind::SongPosition,
                MidiMessage::SongSelect(_) => EventKind::SongSelect,
                MidiMessage::TuneRequest => EventKind::TuneRequest,
                MidiMessage::Clock => EventKind::Clock,
                MidiMessage::Start => EventKind::Start,
                MidiMessage::Continue => EventKind::Continue,
                MidiMessage::Stop => EventKind::Stop,
                MidiMessage::ActiveSensing => EventKind::ActiveSensing,
                MidiMessage::Reset => EventKind::Reset,
            },
            Self::Osc(_) => EventKind::Osc,
        }
    }

    /// The MIDI channel, 0 to 15; none for system messages and OSC.
    pub fn channel(&self) -> Option<u8> {
        match self {
            Self::Midi(message) => message.channel(),
            Self::Osc(_) => None,
        }
    }

    /// Which key, knob or program: note, controller or program number, 0 to 127. 0 for everything else.
    pub fn number(&self) -> u16 {
        match *self {
            Self::Midi(
                MidiMessage::NoteOff { note, .. }
                | MidiMessage::NoteOn { note, .. }
                | MidiMessage::PolyAftertouch { note, .. },
            ) => note.into(),
            Self::Midi(MidiMessage::ControlChange { controller, .. }) => controller.into(),
            Self::Midi(MidiMessage::ProgramChange { program, .. }) => program.into(),
            _ => 0,
        }
    }

    /// How much, as sent: velocity, pressure and controller value 0 to 127, pitch bend and song
    /// position 0 to 16 383, program, song and time code byte 0 to 127. For OSC the first argument that
    /// is a number or a boolean. 0 for everything that has none.
    pub fn value(&self) -> f64 {
        match self {
            Self::Midi(message) => midi_value(message).0.into(),
            Self::Osc(message) => osc_value(message),
        }
    }

    /// How much, from 0 to 1: [`value`](Self::value) divided by the most that its kind can be.
    ///
    /// An OSC number is taken to be meant that way already and is clamped to 0 to 1; NaN is 0.
    pub fn unit(&self) -> f32 {
        match self {
            Self::Midi(message) => {
                let (value, most) = midi_value(message);
                (f32::from(value) / f32::from(most)).min(1.0)
            }
            Self::Osc(message) => {
                let value = osc_value(message);
                if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) as f32 }
            }
        }
    }

    /// Whether it is one reading of something that moves, so that a later one makes it worthless:
    /// controllers, pressure, pitch bend, and OSC messages whose first argument is a float.
    ///
    /// Under pressure only these may be merged; all others count each.
    pub fn is_continuous(&self) -> bool {
        match self {
            Self::Midi(message) => matches!(
                message,
                MidiMessage::PolyAftertouch { .. }
                    | MidiMessage::ControlChange { .. }
                    | MidiMessage::Aftertouch { .. }
                    | MidiMessage::PitchBend { .. }
            ),
            Self::Osc(message) => {
                matches!(message.args.first(), Some(OscArg::Float(_) | OscArg::Double(_)))
            }
        }
    }
}

impl From<MidiMessage> for Event {
    fn from(message: MidiMessage) -> Self {
        Self::Midi(message)
    }
}

impl From<OscMessage> for Event {
    fn from(message: OscMessage) -> Self {
        Self::Osc(Arc::new(message))
    }
}

/// The value of a MIDI message and the most it can be.
fn midi_value(message: &MidiMessage) -> (u16, u16) {
    match *message {
        MidiMessage::NoteOff { velocity: value, .. }
        | MidiMessage::NoteOn { velocity: value, .. }
        | MidiMessage::PolyAftertouch { pressure: value, .. }
        | MidiMessage::ControlChange { value, .. }
        | MidiMessage::ProgramChange { program: value, .. }
        | MidiMessage::Aftertouch { pressure: value, .. }
        | MidiMessage::TimeCode(value)
        | MidiMessage::SongSelect(value) => (value.into(), 127),
        MidiMessage::PitchBend { value, .. } | MidiMessage::SongPosition(value) => (value, 16_383),
        _ => (0, 127),
    }
}

fn osc_value(message: &OscMessage) -> f64 {
    message.args.iter().find_map(OscArg::as_f64).unwrap_or(0.0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
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

    fn osc(args: Vec<OscArg>) -> Event {
        OscMessage { address: "/x".into(), args }.into()
    }

    #[test]
    fn a_note_answers_every_question() {
        let event = Event::from(MidiMessage::NoteOn { channel: 9, note: 36, velocity: 127 });
        assert_eq!(event.kind(), EventKind::NoteOn);
        assert_eq!(event.channel(), Some(9));
        assert_eq!(event.number(), 36);
        assert_eq!((event.value(), event.unit()), (127.0, 1.0));
        assert!(!event.is_continuous());
    }

    #[test]
    fn pitch_bend_has_fourteen_bits() {
        let event = Event::from(MidiMessage::PitchBend { channel: 0, value: 16_383 });
        assert_eq!((event.value(), event.unit()), (16_383.0, 1.0));
        assert!(event.is_continuous());
    }

    #[test]
    fn osc_takes_its_first_number() {
        let event = osc(vec![OscArg::String("eq".into()), OscArg::Int(3), OscArg::Float(0.5)]);
        assert_eq!((event.value(), event.unit()), (3.0, 1.0));
        assert_eq!(osc(vec![OscArg::Bool(true)]).value(), 1.0);
        assert_eq!(osc(vec![]).value(), 0.0);
        assert_eq!(osc(vec![OscArg::Float(f32::NAN)]).unit(), 0.0);
        assert_eq!(osc(vec![OscArg::Double(-3.0)]).unit(), 0.0);
    }

    #[test]
    fn only_moving_things_are_continuous() {
        assert!(osc(vec![OscArg::Float(0.1)]).is_continuous());
        assert!(!osc(vec![OscArg::Int(1)]).is_continuous());
        assert!(!Event::from(MidiMessage::Clock).is_continuous());
        assert!(!Event::from(MidiMessage::ProgramChange { channel: 0, program: 1 }).is_continuous());
    }

    #[test]
    fn kinds_keep_their_numbers() {
        let numbers: Vec<_> = EventKind::ALL.iter().map(|&kind| kind as u8).collect();
        assert_eq!(numbers, (1..=18).chain([32]).collect::<Vec<_>>());
    }
}
