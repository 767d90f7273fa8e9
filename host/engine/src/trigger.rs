//! What a rule waits for: triggers, and the ranges in them.
//!
//! Triggers are written by people and are not validated here; [`compile`](crate::compile()) validates
//! them. [`Trigger::matches`] is their definition in plain form. The
//! [`RuleSet`](crate::RuleSet) gives the same answers from an index.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use conductor_event::{ArtNetChange, Event, HidEvent, MidiMessage, Nanos, OscArg, OscMessage};
use conductor_message_pattern::OscPattern;
use conductor_message_pattern::SysExPattern;
use conductor_musical_time::{Counted, Transport};

use crate::encoder::Encoding;

/// Numbers from `first` to `last`, both included: notes, controllers and programs 0 to 127, what a gamepad
/// has 128 to 144, keys 257 to 1023.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NumberRange {
    /// The lowest number.
    pub first: u16,
    /// The highest number.
    pub last: u16,
}

impl NumberRange {
    /// All numbers, 0 to 127.
    pub const ALL: Self = Self { first: 0, last: 127 };

    /// One number.
    pub const fn one(number: u16) -> Self {
        Self { first: number, last: number }
    }

    /// Whether the number is in the range.
    pub const fn contains(self, number: u16) -> bool {
        self.first <= number && number <= self.last
    }

    /// How far into the range the number is, from 0; `None` if it is outside.
    pub const fn position(self, number: u16) -> Option<u16> {
        if self.contains(number) { Some(number - self.first) } else { None }
    }
}

/// Values from `min` to `max`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueRange {
    /// The lowest value.
    pub min: u16,
    /// The highest value.
    pub max: u16,
}

impl ValueRange {
    /// Every 7-bit value, 0 to 127.
    pub const SEVEN_BIT: Self = Self { min: 0, max: 127 };
    /// Every 14-bit value, 0 to 16 383.
    pub const FOURTEEN_BIT: Self = Self { min: 0, max: 16_383 };

    /// Whether the value is in the range.
    pub const fn contains(self, value: u16) -> bool {
        self.min <= value && value <= self.max
    }
}

/// DMX channels from `first` to `last`, both included, each 1 to 512.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DmxRange {
    /// The lowest channel.
    pub first: u16,
    /// The highest channel.
    pub last: u16,
}

impl DmxRange {
    /// How far into the range the channel is, from 0; `None` if it is outside.
    pub const fn position(self, channel: u16) -> Option<u16> {
        if self.first <= channel && channel <= self.last { Some(channel - self.first) } else { None }
    }
}

/// A way that a stick is pushed along one of its axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Push {
    /// Left or down.
    Negative,
    /// Right or up.
    Positive,
    /// Either.
    Any,
}

impl Push {
    /// Whether a stick that stands at `value` is pushed that way, `least` or farther from the middle.
    pub fn reaches(self, value: f32, least: f32) -> bool {
        match self {
            Self::Negative => value <= -least,
            Self::Positive => value >= least,
            Self::Any => value.abs() >= least,
        }
    }
}

/// Which movement of a key counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Edge {
    /// Going down.
    Press,
    /// Coming up.
    Release,
    /// Each of the two.
    Both,
}

impl Edge {
    /// Whether going down counts.
    pub const fn has_press(self) -> bool {
        matches!(self, Self::Press | Self::Both)
    }

    /// Whether coming up counts.
    pub const fn has_release(self) -> bool {
        matches!(self, Self::Release | Self::Both)
    }
}

/// What a rule waits for. A `channel` of none means any channel; channels are 0 to 15.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// A key goes down or comes up.
    Note {
        /// Which keys.
        notes: NumberRange,
        /// How hard, 0 to 127. Only asked when the key goes down: a release always passes, since a
        /// release that is missed is a note that never ends.
        velocity: ValueRange,
        /// Down, up, or both.
        edge: Edge,
        /// On which channel.
        channel: Option<u8>,
    },
    /// A controller moves.
    ControlChange {
        /// Which controllers.
        controllers: NumberRange,
        /// To which values, 0 to 127.
        value: ValueRange,
        /// On which channel.
        channel: Option<u8>,
    },
    /// Pressure on the whole keyboard.
    Aftertouch {
        /// How much, 0 to 127.
        value: ValueRange,
        /// On which channel.
        channel: Option<u8>,
    },
    /// Pressure on one key.
    PolyAftertouch {
        /// Which keys.
        notes: NumberRange,
        /// How much, 0 to 127.
        value: ValueRange,
        /// On which channel.
        channel: Option<u8>,
    },
    /// The pitch wheel moves.
    PitchBend {
        /// To which values, 0 to 16 383.
        value: ValueRange,
        /// On which channel.
        channel: Option<u8>,
    },
    /// Another program is chosen.
    ProgramChange {
        /// Which programs.
        programs: NumberRange,
        /// On which channel.
        channel: Option<u8>,
    },
    /// A system exclusive message begins like this.
    SysEx {
        /// How it begins.
        pattern: SysExPattern,
    },
    /// Any MIDI message; with a channel, any message on that channel.
    MidiAny {
        /// On which channel.
        channel: Option<u8>,
    },
    /// An OSC message to exactly this address, or to an address pattern that matches it.
    Osc {
        /// The address.
        address: String,
        /// A test of one argument.
        arg: Option<OscArgTest>,
    },
    /// An OSC message to an address that matches. Two patterns are not compared with each other: the address of
    /// a message that is a pattern itself is taken as text, or is the same pattern.
    OscPattern {
        /// The pattern.
        pattern: Arc<OscPattern>,
        /// A test of one argument.
        arg: Option<OscArgTest>,
    },
    /// A gamepad's button or a key goes down or comes up.
    Button {
        /// Which: buttons, 128 to 144, or keys, 257 to 1023.
        buttons: NumberRange,
        /// Down, up, or both.
        edge: Edge,
    },
    /// A gamepad's stick moves, and is pushed far enough.
    GamepadStick {
        /// Along which axes, 128 to 131.
        sticks: NumberRange,
        /// Which way.
        push: Push,
        /// How far at least: 0 to 1. Nearer to the middle nothing counts.
        dead_zone: f32,
        /// How often it counts.
        readings: Readings,
    },
    /// A gamepad's analog trigger moves, and is pulled far enough.
    GamepadTrigger {
        /// Which triggers, 132 to 133.
        triggers: NumberRange,
        /// How far at least: 0 to 1.
        threshold: f32,
        /// How often it counts.
        readings: Readings,
    },
    /// A channel of an Art-Net universe changes.
    ArtNet {
        /// The port address, 0 to 32 767.
        universe: u16,
        /// Which channels.
        channels: DmxRange,
        /// To which values, 0 to 255.
        value: ValueRange,
    },
    /// A variable changes.
    Variable {
        /// Which one.
        variable: u16,
    },
    /// A beat or a bar of the clock begins.
    Beat {
        /// What is counted.
        counted: Counted,
        /// Each of how many fires; 0 counts as 1.
        every: u16,
        /// Which one of every `every`, from 0.
        offset: u16,
    },
    /// The clock begins or ends to play.
    Transport {
        /// What it does. A clock that is lost stops, too.
        does: Transport,
    },
    /// A key stays down for a time. See [`gesture`](crate::gesture).
    LongPress {
        /// Which keys: notes, a gamepad's buttons, or a keyboard's keys.
        keys: NumberRange,
        /// How hard they are pressed, 0 to 127; a button always counts.
        velocity: ValueRange,
        /// On which channel; `None` if they are buttons.
        channel: Option<u8>,
        /// How long, in nanoseconds, more than 0.
        after: Nanos,
    },
    /// A key is pressed twice, or more often.
    DoubleTap {
        /// Which keys: notes, a gamepad's buttons, or a keyboard's keys.
        keys: NumberRange,
        /// How hard they are pressed each time, 0 to 127; a button always counts.
        velocity: ValueRange,
        /// On which channel; `None` if they are buttons.
        channel: Option<u8>,
        /// How often, 2 to 10.
        taps: u8,
        /// Each press is less than this many nanoseconds after the one before.
        within: Nanos,
    },
    /// Several keys are pressed one after the other, and no other key of the device between them.
    Sequence {
        /// Which keys, in this order: notes, a gamepad's buttons, or a keyboard's keys. Two to ten.
        keys: Vec<u16>,
        /// On which channel; `None` if each may be on its own.
        channel: Option<u8>,
        /// Each press is less than this many nanoseconds after the one before.
        within: Nanos,
    },
    /// Several keys go down together.
    Chord {
        /// Which keys: notes, a gamepad's buttons, or a keyboard's keys. Two to ten, ascending.
        keys: Vec<u16>,
        /// On which channel; `None` if each may be on its own.
        channel: Option<u8>,
        /// The first and the last press are less than this many nanoseconds apart.
        within: Nanos,
    },
    /// An endless encoder is turned.
    Turn {
        /// Which controllers.
        controllers: NumberRange,
        /// How it says how far.
        encoding: Encoding,
        /// Which way.
        way: Rotation,
        /// On which channel.
        channel: Option<u8>,
    },
    /// A controller that comes in two parts moves: 0 to 31, with the fine part on the controller 32 above.
    FineControl {
        /// Which controllers, by the coarse part.
        controllers: NumberRange,
        /// To which values, 0 to 16 383.
        value: ValueRange,
        /// On which channel.
        channel: Option<u8>,
        /// Whether the fine part comes first and the coarse one completes it.
        fine_first: bool,
    },
    /// A registered or unregistered parameter is set (RPN, NRPN).
    Parameter {
        /// Whether it is a registered one.
        registered: bool,
        /// Which, 0 to 16 383.
        parameter: u16,
        /// To which values, 0 to 16 383.
        value: ValueRange,
        /// On which channel.
        channel: Option<u8>,
    },
}

/// How often it counts that something is where a rule wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Readings {
    /// Each reading, and the return to rest as a reading of 0.
    Each,
    /// The first, and no other until it has been back by [`MARGIN`](Self::MARGIN).
    First,
}

impl Readings {
    /// How far back something must have been to count again, so that one that trembles counts once (hysteresis).
    pub const MARGIN: f32 = 0.05;
}

/// Which way an encoder is turned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rotation {
    /// To higher values.
    Clockwise,
    /// To lower values.
    CounterClockwise,
    /// Either.
    Any,
}

impl Rotation {
    /// Whether this many steps are a turn this way.
    pub const fn is(self, steps: i8) -> bool {
        match self {
            Self::Clockwise => steps > 0,
            Self::CounterClockwise => steps < 0,
            Self::Any => steps != 0,
        }
    }
}

impl Trigger {
    /// Whether the event is what the trigger waits for, and if so its position in the trigger's number
    /// range (0 where there is no range). A gesture is never one event.
    ///
    /// This is what triggers mean, one at a time; [`RuleSet::matches`](crate::RuleSet::matches) asks a
    /// whole set at once.
    pub fn matches(&self, event: &Event) -> Option<u16> {
        if self.is_gesture() {
            return None;
        }
        match event {
            Event::Midi(message) => self.matches_midi(message),
            Event::Osc(message) => self.matches_osc(message).then_some(0),
            Event::Hid(moved) => self.matches_hid(*moved),
            Event::ArtNet(change) => self.matches_artnet(*change),
            Event::Variable(change) => {
                matches!(self, Self::Variable { variable } if *variable == change.variable).then_some(0)
            }
            Event::Musical(event) => match *self {
                Self::Beat { counted, every, offset } => event.is_one_of(counted, every, offset).then_some(0),
                Self::Transport { does } => event.does(does).then_some(0),
                _ => None,
            },
            Event::Gesture(_) => None,
        }
    }

    /// Whether it takes more than one event to recognize, or memory of those before.
    pub fn is_gesture(&self) -> bool {
        match self {
            Self::LongPress { .. }
            | Self::DoubleTap { .. }
            | Self::Chord { .. }
            | Self::Sequence { .. }
            | Self::Turn { .. }
            | Self::FineControl { .. }
            | Self::Parameter { .. } => true,
            Self::GamepadStick { readings, .. } | Self::GamepadTrigger { readings, .. } => *readings == Readings::First,
            _ => false,
        }
    }

    /// Whether its rule follows a stick or trigger with each reading, and so fires once more when that comes
    /// back to rest: the last reading outside of the dead zone would otherwise stay in force.
    pub fn reports_rest(&self) -> bool {
        matches!(
            self,
            Self::GamepadStick { readings: Readings::Each, .. } | Self::GamepadTrigger { readings: Readings::Each, .. }
        )
    }

    /// Whether it waits for nothing but that a key goes down.
    pub fn is_press(&self) -> bool {
        match self {
            Self::Note { edge, .. } | Self::Button { edge, .. } => *edge == Edge::Press,
            _ => false,
        }
    }

    /// Whether another gesture can be distinguished from it by waiting: a press, or a gesture of keys.
    pub fn can_defer(&self) -> bool {
        let is_of_keys = |gesture: &Self| {
            matches!(
                gesture,
                Self::LongPress { .. } | Self::DoubleTap { .. } | Self::Chord { .. } | Self::Sequence { .. }
            )
        };
        self.is_press() || is_of_keys(self)
    }

    fn matches_midi(&self, message: &MidiMessage) -> Option<u16> {
        let on = |wanted: Option<u8>| wanted.is_none() || wanted == message.channel();
        match (self, message) {
            (Self::Note { notes, velocity: range, edge, channel }, &MidiMessage::NoteOn { note, velocity, .. })
                if edge.has_press() && on(*channel) && range.contains(velocity.into()) =>
            {
                notes.position(note.into())
            }
            (Self::Note { notes, edge, channel, .. }, &MidiMessage::NoteOff { note, .. })
                if edge.has_release() && on(*channel) =>
            {
                notes.position(note.into())
            }
            (
                Self::ControlChange { controllers, value: range, channel },
                &MidiMessage::ControlChange { controller, value, .. },
            ) if on(*channel) && range.contains(value.into()) => controllers.position(controller.into()),
            (
                Self::PolyAftertouch { notes, value: range, channel },
                &MidiMessage::PolyAftertouch { note, pressure, .. },
            ) if on(*channel) && range.contains(pressure.into()) => notes.position(note.into()),
            (Self::Aftertouch { value: range, channel }, &MidiMessage::Aftertouch { pressure, .. })
                if on(*channel) && range.contains(pressure.into()) =>
            {
                Some(0)
            }
            (Self::PitchBend { value: range, channel }, &MidiMessage::PitchBend { value, .. })
                if on(*channel) && range.contains(value) =>
            {
                Some(0)
            }
            (Self::ProgramChange { programs, channel }, &MidiMessage::ProgramChange { program, .. })
                if on(*channel) =>
            {
                programs.position(program.into())
            }
            (Self::SysEx { pattern }, MidiMessage::SysEx(bytes)) if pattern.matches(bytes) => Some(0),
            (Self::MidiAny { channel }, _) if on(*channel) => Some(0),
            _ => None,
        }
    }

    fn matches_osc(&self, message: &OscMessage) -> bool {
        let (found, test) = match self {
            Self::Osc { address, arg } => (message.reaches(address), arg),
            Self::OscPattern { pattern, arg } => {
                let is_same = message.is_pattern() && pattern.as_str() == &**message.address();
                (is_same || pattern.matches(message.address()), arg)
            }
            _ => return false,
        };
        found && test.is_none_or(|test| test.passes(message))
    }
}

impl Trigger {
    fn matches_hid(&self, moved: HidEvent) -> Option<u16> {
        match (self, moved) {
            (Self::Button { buttons, edge }, HidEvent::Button { button, pressed })
                if if pressed { edge.has_press() } else { edge.has_release() } =>
            {
                buttons.position(button)
            }
            (Self::GamepadStick { sticks, push, dead_zone, .. }, HidEvent::Stick { stick, value })
                if push.reaches(value, *dead_zone) =>
            {
                sticks.position(stick)
            }
            (Self::GamepadTrigger { triggers, threshold, .. }, HidEvent::Trigger { trigger, value })
                if value >= *threshold =>
            {
                triggers.position(trigger)
            }
            _ => None,
        }
    }

    fn matches_artnet(&self, change: ArtNetChange) -> Option<u16> {
        match self {
            Self::ArtNet { universe, channels, value }
                if *universe == change.universe && value.contains(change.value.into()) =>
            {
                channels.position(change.channel)
            }
            _ => None,
        }
    }
}

impl Hash for Trigger {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Note { notes, velocity, edge, channel } => {
                (notes, velocity, edge, channel).hash(state);
            }
            Self::ControlChange { controllers, value, channel } => {
                (controllers, value, channel).hash(state);
            }
            Self::Aftertouch { value, channel } | Self::PitchBend { value, channel } => {
                (value, channel).hash(state);
            }
            Self::PolyAftertouch { notes, value, channel } => (notes, value, channel).hash(state),
            Self::ProgramChange { programs, channel } => (programs, channel).hash(state),
            Self::SysEx { pattern } => pattern.hash(state),
            Self::MidiAny { channel } => channel.hash(state),
            Self::Osc { address, arg } => (address, arg).hash(state),
            Self::OscPattern { pattern, arg } => (pattern.as_str(), arg).hash(state),
            Self::Button { buttons, edge } => (buttons, edge).hash(state),
            Self::GamepadStick { sticks, push, dead_zone, readings } => {
                (sticks, push, bits(*dead_zone), readings).hash(state);
            }
            Self::GamepadTrigger { triggers, threshold, readings } => {
                (triggers, bits(*threshold), readings).hash(state);
            }
            Self::ArtNet { universe, channels, value } => (universe, channels, value).hash(state),
            Self::Variable { variable } => variable.hash(state),
            Self::Beat { counted, every, offset } => (counted, every, offset).hash(state),
            Self::Transport { does } => does.hash(state),
            Self::LongPress { keys, velocity, channel, after } => (keys, velocity, channel, after).hash(state),
            Self::DoubleTap { keys, velocity, channel, taps, within } => {
                (keys, velocity, channel, taps, within).hash(state);
            }
            Self::Chord { keys, channel, within } | Self::Sequence { keys, channel, within } => {
                (keys, channel, within).hash(state)
            }
            Self::Turn { controllers, encoding, way, channel } => (controllers, encoding, way, channel).hash(state),
            Self::FineControl { controllers: c, value, channel, fine_first: f } => (c, value, channel, f).hash(state),
            Self::Parameter { registered, parameter, value, channel } => {
                (registered, parameter, value, channel).hash(state);
            }
        }
    }
}

/// A number as something to hash: -0.0, which equals 0.0, as 0.0.
fn bits(number: f32) -> u32 {
    (number + 0.0).to_bits()
}

/// A test of one OSC argument: present, a number or a boolean (`true` is 1), and from `min` to `max`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OscArgTest {
    /// Which argument, from 0.
    pub index: usize,
    /// The lowest value, included.
    pub min: f64,
    /// The highest value, included.
    pub max: f64,
}

impl OscArgTest {
    /// Whether the message's argument passes. NaN never does.
    pub fn passes(self, message: &OscMessage) -> bool {
        message
            .args()
            .get(self.index)
            .and_then(OscArg::as_f64)
            .is_some_and(|value| self.min <= value && value <= self.max)
    }
}

impl Hash for OscArgTest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Adding zero makes -0.0, which equals 0.0, hash as 0.0.
        (self.index, (self.min + 0.0).to_bits(), (self.max + 0.0).to_bits()).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note_on(note: u8, velocity: u8) -> Event {
        MidiMessage::NoteOn { channel: 9, note, velocity }.into()
    }

    fn note_off(note: u8) -> Event {
        MidiMessage::NoteOff { channel: 9, note, velocity: 0 }.into()
    }

    #[test]
    fn a_soft_release_of_a_hard_press_still_counts() {
        let hard = Trigger::Note {
            notes: NumberRange { first: 36, last: 51 },
            velocity: ValueRange { min: 100, max: 127 },
            edge: Edge::Both,
            channel: Some(9),
        };
        assert_eq!(hard.matches(&note_on(36, 100)), Some(0));
        assert_eq!(hard.matches(&note_on(51, 127)), Some(15));
        assert_eq!(hard.matches(&note_on(36, 99)), None);
        assert_eq!(hard.matches(&note_off(40)), Some(4));
        assert_eq!(hard.matches(&note_off(52)), None);
    }

    #[test]
    fn an_edge_is_only_that_edge() {
        let with =
            |edge| Trigger::Note { notes: NumberRange::one(1), velocity: ValueRange::SEVEN_BIT, edge, channel: None };
        assert!(with(Edge::Press).matches(&note_off(1)).is_none());
        assert!(with(Edge::Release).matches(&note_on(1, 1)).is_none());
    }

    #[test]
    fn any_midi_on_a_channel_leaves_out_what_has_no_channel() {
        let clock = Event::from(MidiMessage::Clock);
        assert_eq!(Trigger::MidiAny { channel: None }.matches(&clock), Some(0));
        assert_eq!(Trigger::MidiAny { channel: Some(9) }.matches(&clock), None);
        assert_eq!(Trigger::MidiAny { channel: Some(9) }.matches(&note_on(1, 1)), Some(0));
        assert_eq!(Trigger::MidiAny { channel: Some(8) }.matches(&note_on(1, 1)), None);
    }

    #[test]
    fn an_osc_argument_is_tested_by_value_whatever_its_type() {
        let test = OscArgTest { index: 1, min: 0.5, max: 1.0 };
        let message = |arg| OscMessage::new("/x", vec![OscArg::Nil, arg]);
        assert!(test.passes(&message(OscArg::Float(0.5))));
        assert!(test.passes(&message(OscArg::Bool(true))));
        assert!(test.passes(&message(OscArg::Int(1))));
        assert!(!test.passes(&message(OscArg::Float(f32::NAN))));
        assert!(!test.passes(&message(OscArg::String("1".into()))));
        assert!(!test.passes(&OscMessage::new("/x", vec![])));
    }

    #[test]
    fn a_stick_counts_where_it_is_pushed_far_enough() {
        let pushed = |push, value| {
            let trigger = Trigger::GamepadStick {
                sticks: NumberRange { first: 128, last: 129 },
                push,
                dead_zone: 0.25,
                readings: Readings::Each,
            };
            trigger.matches(&HidEvent::Stick { stick: 129, value }.into())
        };
        assert_eq!(pushed(Push::Positive, 0.25), Some(1));
        assert_eq!(pushed(Push::Positive, 0.2), None);
        assert_eq!(pushed(Push::Positive, -1.0), None);
        assert_eq!(pushed(Push::Negative, -0.3), Some(1));
        assert_eq!(pushed(Push::Any, -0.3), Some(1));
        assert_eq!(pushed(Push::Any, 0.0), None);
    }

    #[test]
    fn a_dmx_channel_counts_in_its_universe_only() {
        let trigger = Trigger::ArtNet {
            universe: 3,
            channels: DmxRange { first: 510, last: 512 },
            value: ValueRange { min: 128, max: 255 },
        };
        let change = |universe, channel, value| ArtNetChange { universe, channel, value, previous: 0 }.into();
        assert_eq!(trigger.matches(&change(3, 512, 128)), Some(2));
        assert_eq!(trigger.matches(&change(3, 509, 128)), None);
        assert_eq!(trigger.matches(&change(3, 512, 127)), None);
        assert_eq!(trigger.matches(&change(4, 512, 128)), None);
    }
}
