//! What comes in: one event, and the questions a rule may ask of it.

mod display;

use std::ops::RangeInclusive;
use std::sync::Arc;

use conductor_musical_time::MusicalEvent;

pub use self::display::write_name;
use crate::gesture::GestureEvent;
use crate::midi::MidiMessage;
use crate::osc::{OscArg, OscMessage};

/// Something that happened at a port. Which port is said by the
/// [`DeviceEvent`](crate::DeviceEvent) around it.
///
/// Cheap to clone: what is long is shared.
///
/// [`Display`](std::fmt::Display) writes the words that a line of the timeline language (`conductor-timeline`) has.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A MIDI message.
    Midi(MidiMessage),
    /// An OSC message.
    Osc(Arc<OscMessage>),
    /// Something on a gamepad, a keyboard or a mouse moved.
    Hid(HidEvent),
    /// One channel of an Art-Net universe changed.
    ArtNet(ArtNetChange),
    /// A variable changed.
    Variable(VariableChange),
    /// Musical time went on. The engine makes these; they come from no port.
    Musical(MusicalEvent),
    /// A gesture was found. The engine makes these; they come from no port.
    Gesture(GestureEvent),
}

/// Something on a gamepad, a keyboard or a mouse moved. Values are finite; the maker of the event ensures that.
///
/// The numbers begin at 128, where MIDI's end, so that a number alone says which of them is meant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HidEvent {
    /// A button went down or came up.
    Button {
        /// Which, 128 to 144: south, east, west, north, d-pad up, down, left, right, left and right
        /// bumper, left and right stick, start, select, mode, left and right trigger (as buttons). A key of a
        /// keyboard or a button of a mouse, 257 to 1023: 256 more than Linux's code for it (`input-event-codes.h`);
        /// the last four are a step of the wheel up, down, left and right.
        button: u16,
        /// Whether it is down now.
        pressed: bool,
    },
    /// A stick moved along one of its two axes.
    Stick {
        /// Which axis: 128 left X, 129 left Y, 130 right X, 131 right Y.
        stick: u16,
        /// Where it is: -1 is all the way left or down, 1 all the way right or up.
        value: f32,
    },
    /// An analog trigger moved.
    Trigger {
        /// Which: 132 left, 133 right.
        trigger: u16,
        /// How far it is pulled: 0 is not at all, 1 all the way.
        value: f32,
    },
}

impl HidEvent {
    /// The buttons' numbers.
    pub const BUTTONS: RangeInclusive<u16> = 128..=144;
    /// The numbers of keys, and of a mouse's buttons.
    pub const KEYS: RangeInclusive<u16> = 257..=1023;
    /// The sticks' axes' numbers.
    pub const STICKS: RangeInclusive<u16> = 128..=131;
    /// The analog triggers' numbers.
    pub const TRIGGERS: RangeInclusive<u16> = 132..=133;

    /// The number of the button, key, axis or trigger.
    #[inline]
    pub fn number(self) -> u16 {
        match self {
            Self::Button { button: number, .. }
            | Self::Stick { stick: number, .. }
            | Self::Trigger { trigger: number, .. } => number,
        }
    }

    /// Where it is now: 1 or 0 for a button that is down or up, -1 to 1 for a stick, 0 to 1 for a trigger.
    #[inline]
    pub fn value(self) -> f32 {
        match self {
            Self::Button { pressed, .. } => f32::from(u8::from(pressed)),
            Self::Stick { value, .. } | Self::Trigger { value, .. } => value,
        }
    }
}

/// One channel of an Art-Net universe changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArtNetChange {
    /// The 15-bit port address, 0 to 32 767: net, sub-net and universe in one number.
    pub universe: u16,
    /// The DMX channel, 1 to 512.
    pub channel: u16,
    /// What it is now, 0 to 255.
    pub value: u8,
    /// What it was before, 0 to 255.
    pub previous: u8,
}

impl ArtNetChange {
    /// The highest port address.
    pub const LAST_UNIVERSE: u16 = 32_767;
    /// The highest DMX channel; the lowest is 1.
    pub const LAST_CHANNEL: u16 = 512;
}

/// A variable holds something else.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VariableChange {
    /// Which one, 0 to [`LAST`](Self::LAST).
    pub variable: u16,
    /// What it holds.
    pub value: f64,
    /// How far along its limits that is, 0 to 1.
    pub unit: f32,
}

impl VariableChange {
    /// The highest number of a variable.
    pub const LAST: u16 = 1023;
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
    /// [`HidEvent::Button`]
    GamepadButton = 33,
    /// [`HidEvent::Stick`]
    GamepadStick = 34,
    /// [`HidEvent::Trigger`]
    GamepadTrigger = 35,
    /// [`Event::ArtNet`]
    ArtNet = 36,
    /// [`Event::Variable`]
    Variable = 37,
    /// [`MusicalEvent::Beat`]
    Beat = 38,
    /// [`MusicalEvent::Transport`]
    Transport = 39,
    /// [`HidEvent::Button`] that is one of [`HidEvent::KEYS`]
    Key = 40,
    /// [`GestureEvent::LongPress`]
    LongPress = 48,
    /// [`GestureEvent::DoubleTap`]
    DoubleTap = 49,
    /// [`GestureEvent::Chord`]
    Chord = 50,
    /// [`GestureEvent::Turn`]
    Turn = 51,
    /// [`GestureEvent::FineControl`]
    FineControl = 52,
    /// [`GestureEvent::Parameter`] that is registered
    RegisteredParameter = 53,
    /// [`GestureEvent::Parameter`] that is not registered
    UnregisteredParameter = 54,
}

impl EventKind {
    /// Every kind, in the order of the numbers.
    pub const ALL: [Self; 34] = [
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
        Self::GamepadButton,
        Self::GamepadStick,
        Self::GamepadTrigger,
        Self::ArtNet,
        Self::Variable,
        Self::Beat,
        Self::Transport,
        Self::Key,
        Self::LongPress,
        Self::DoubleTap,
        Self::Chord,
        Self::Turn,
        Self::FineControl,
        Self::RegisteredParameter,
        Self::UnregisteredParameter,
    ];

    /// Whether it is a gesture, which the engine finds and no port sends.
    #[inline]
    pub fn is_gesture(self) -> bool {
        self >= Self::LongPress
    }

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
            Self::GamepadButton => "gamepad-button",
            Self::GamepadStick => "gamepad-stick",
            Self::GamepadTrigger => "gamepad-trigger",
            Self::ArtNet => "artnet",
            Self::Variable => "variable",
            Self::Beat => "beat",
            Self::Transport => "transport",
            Self::Key => "key",
            Self::LongPress => "long-press",
            Self::DoubleTap => "double-tap",
            Self::Chord => "chord",
            Self::Turn => "turn",
            Self::FineControl => "fine-cc",
            Self::RegisteredParameter => "rpn",
            Self::UnregisteredParameter => "nrpn",
        }
    }
}

impl Event {
    /// What kind of event it is.
    #[inline]
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
            Self::Hid(HidEvent::Button { button, .. }) if HidEvent::KEYS.contains(button) => EventKind::Key,
            Self::Hid(HidEvent::Button { .. }) => EventKind::GamepadButton,
            Self::Hid(HidEvent::Stick { .. }) => EventKind::GamepadStick,
            Self::Hid(HidEvent::Trigger { .. }) => EventKind::GamepadTrigger,
            Self::ArtNet(_) => EventKind::ArtNet,
            Self::Variable(_) => EventKind::Variable,
            Self::Musical(MusicalEvent::Beat { .. }) => EventKind::Beat,
            Self::Musical(MusicalEvent::Transport(_)) => EventKind::Transport,
            Self::Gesture(gesture) => match gesture {
                GestureEvent::LongPress { .. } => EventKind::LongPress,
                GestureEvent::DoubleTap { .. } => EventKind::DoubleTap,
                GestureEvent::Chord(_) => EventKind::Chord,
                GestureEvent::Turn { .. } => EventKind::Turn,
                GestureEvent::FineControl { .. } => EventKind::FineControl,
                GestureEvent::Parameter { registered: true, .. } => EventKind::RegisteredParameter,
                GestureEvent::Parameter { registered: false, .. } => EventKind::UnregisteredParameter,
            },
        }
    }

    /// The MIDI channel, 0 to 15; `None` if it is a system message or not MIDI.
    #[inline]
    pub fn channel(&self) -> Option<u8> {
        match self {
            Self::Midi(message) => message.channel(),
            Self::Gesture(gesture) => gesture.channel(),
            _ => None,
        }
    }

    /// Which key, knob or program: note, controller or program number, 0 to 127; a gamepad's button, axis
    /// or trigger, 128 to 144; a key, 257 to 1023; a DMX channel, 1 to 512; a variable's; the beat in its bar, from 1; of a gesture see
    /// [`GestureEvent::number`]. 0 for everything else.
    #[inline]
    pub fn number(&self) -> u16 {
        match *self {
            Self::Midi(
                MidiMessage::NoteOff { note, .. }
                | MidiMessage::NoteOn { note, .. }
                | MidiMessage::PolyAftertouch { note, .. },
            ) => note.into(),
            Self::Midi(MidiMessage::ControlChange { controller, .. }) => controller.into(),
            Self::Midi(MidiMessage::ProgramChange { program, .. }) => program.into(),
            Self::Hid(moved) => moved.number(),
            Self::ArtNet(change) => change.channel,
            Self::Variable(change) => change.variable,
            Self::Musical(event) => event.beat().into(),
            Self::Gesture(gesture) => gesture.number(),
            _ => 0,
        }
    }

    /// How much, as sent: velocity, pressure and controller value 0 to 127, pitch bend and song
    /// position 0 to 16 383, program, song and time code byte 0 to 127. For OSC the first argument that
    /// is a number or a boolean. A button or a key 0 or 1, stick -1 to 1, trigger 0 to 1; a DMX channel
    /// 0 to 255; of a beat the bar, from 1; of a gesture see [`GestureEvent::value`]. 0 for everything that has none.
    #[inline]
    pub fn value(&self) -> f64 {
        match self {
            Self::Midi(message) => midi_value(message).0.into(),
            Self::Osc(message) => osc_value(message),
            Self::Hid(moved) => moved.value().into(),
            Self::ArtNet(change) => change.value.into(),
            Self::Variable(change) => change.value,
            Self::Musical(event) => event.bar().into(),
            Self::Gesture(gesture) => gesture.value().into(),
        }
    }

    /// How much, from 0 to 1: [`value`](Self::value) divided by the most that its kind can be; a stick's
    /// way from one end to the other, so that 0.5 is the middle; of a beat how far in its bar it begins.
    ///
    /// An OSC number is taken to be meant that way already and is clamped to 0 to 1; NaN is 0.
    #[inline]
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
            Self::Hid(HidEvent::Stick { value, .. }) => ((value + 1.0) / 2.0).clamp(0.0, 1.0),
            Self::Hid(moved) => moved.value().clamp(0.0, 1.0),
            Self::ArtNet(change) => f32::from(change.value) / 255.0,
            Self::Variable(change) => change.unit,
            Self::Musical(event) => event.way(),
            Self::Gesture(gesture) => gesture.unit(),
        }
    }

    /// Whether something that moves is to be taken for pressed: in the upper half of its way; a stick, when it is
    /// pushed half of its way or farther, to whichever side. At rest nothing is.
    #[inline]
    pub fn is_pressed(&self) -> bool {
        match self {
            Self::Hid(HidEvent::Stick { value, .. }) => value.abs() >= 0.5,
            moved => moved.unit() >= 0.5,
        }
    }

    /// Whether it is a key of those that people write with, passwords too: letters, digits, punctuation and what shifts
    /// them, on the keypad as well. Function, media and macro keys are not, nor the buttons of a mouse.
    ///
    /// No one but its rules may know of such a key: neither features nor agents.
    #[inline]
    pub fn is_typed(&self) -> bool {
        let Self::Hid(HidEvent::Button { button: 256.., .. }) = self else { return false };
        // By Linux's codes: Escape to Caps Lock, the keypad, and the keys that other than US keyboards have.
        matches!(self.number() - 256, 1..=58 | 69..=86 | 89..=101 | 117..=124 | 179 | 180)
    }

    /// Whether it is one reading of something that moves, so that a later one makes it worthless:
    /// controllers, pressure, pitch bend, OSC messages whose first argument is a float, a gamepad's sticks
    /// and triggers, DMX channels.
    ///
    /// Under pressure only these may be merged; all others count each.
    #[inline]
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
                matches!(message.args().first(), Some(OscArg::Float(_) | OscArg::Double(_)))
            }
            Self::Hid(moved) => !matches!(moved, HidEvent::Button { .. }),
            Self::ArtNet(_) => true,
            // Each was asked for, and one that comes back is no change.
            Self::Variable(_) | Self::Musical(_) => false,
            Self::Gesture(gesture) => {
                matches!(gesture, GestureEvent::FineControl { .. } | GestureEvent::Parameter { .. })
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

impl From<HidEvent> for Event {
    fn from(moved: HidEvent) -> Self {
        Self::Hid(moved)
    }
}

impl From<ArtNetChange> for Event {
    fn from(change: ArtNetChange) -> Self {
        Self::ArtNet(change)
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
    message.args().iter().find_map(OscArg::as_f64).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn osc(args: Vec<OscArg>) -> Event {
        OscMessage::new("/x", args).into()
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
    fn a_gamepad_speaks_of_ways_from_end_to_end() {
        let stick = Event::from(HidEvent::Stick { stick: 129, value: -0.5 });
        assert_eq!((stick.number(), stick.value(), stick.unit()), (129, -0.5, 0.25));
        let button = Event::from(HidEvent::Button { button: 144, pressed: true });
        assert_eq!((button.number(), button.value(), button.unit()), (144, 1.0, 1.0));
        assert!(stick.is_continuous() && !button.is_continuous());
        assert_eq!((stick.kind(), stick.channel()), (EventKind::GamepadStick, None));
    }

    #[test]
    fn a_key_is_a_button_with_a_number_of_its_own() {
        let key = Event::from(HidEvent::Button { button: 439, pressed: true });
        assert_eq!((key.kind(), key.number(), key.value()), (EventKind::Key, 439, 1.0));
        assert_eq!(key.to_string(), "key 439 down");
        assert!(!key.is_continuous());
    }

    #[test]
    fn only_keys_that_people_write_with_are_typed() {
        let is_typed = |button| Event::from(HidEvent::Button { button, pressed: true }).is_typed();
        // Escape, A, space, keypad 7 and its Enter, right Alt, the key between left Shift and Z.
        assert!([257, 286, 313, 327, 352, 356, 342].into_iter().all(is_typed));
        // F1, F12, F13, volume up, macro 1, a mouse's left button, a wheel, buttons of a gamepad.
        assert!(![315, 344, 439, 371, 912, 528, 1020, 128, 144].into_iter().any(is_typed));
        assert!(!Event::from(HidEvent::Stick { stick: 129, value: -0.5 }).is_typed());
    }

    #[test]
    fn a_dmx_channel_has_eight_bits() {
        let event = Event::from(ArtNetChange { universe: 0x7FFF, channel: 512, value: 255, previous: 0 });
        assert_eq!((event.kind(), event.number(), event.value(), event.unit()), (EventKind::ArtNet, 512, 255.0, 1.0));
    }

    // Events are copied all along their way.
    #[test]
    fn an_event_is_small() {
        assert_eq!(size_of::<Event>(), 56);
    }

    #[test]
    fn kinds_keep_their_numbers() {
        let numbers: Vec<_> = EventKind::ALL.iter().map(|&kind| kind as u8).collect();
        assert_eq!(numbers, (1..=18).chain(32..=40).chain(48..=54).collect::<Vec<_>>());
    }
}
