//! Overlap of triggers: which of them one event can be for, and such an event, which cover others, which may keep events
//! from others.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod shared_event;

pub use shared_event::shared_event;

use conductor_engine::{DmxRange, Edge, NumberRange, Push, Rotation, Trigger, ValueRange};

/// Controllers that parameters (RPN, NRPN) are made of: data entry and its steps, and the parameter's number.
const PARAMETER_CONTROLLERS: [u16; 8] = [6, 38, 96, 97, 98, 99, 100, 101];

/// The controller of the fine values of a pair has a number so much higher than that of the coarse ones.
const FINE_ABOVE_COARSE: u16 = 32;

/// What two triggers have in common.
pub trait Overlap {
    /// Whether one event can be what both wait for. Gestures are compared with their own kind only, since a press
    /// and a long press of one key are often meant to go together; one that waits for any MIDI message overlaps
    /// nothing, since it is there to see what others see; of OSC patterns only equal ones are known to meet.
    fn overlaps(&self, other: &Self) -> bool;

    /// Whether this one matches every event that the other matches or that its gesture takes, so that nothing is
    /// left for the other where this one consumes. False where that is not known: of two OSC patterns, for one. A message
    /// whose own address is a pattern is left out: it is for as many addresses as its sender likes.
    fn covers(&self, other: &Self) -> bool;

    /// Whether a rule of this trigger that consumes, and is asked first, may keep an event from a rule of the other. In
    /// doubt it may. `suppresses`: it keeps the release of a press that it consumed, too.
    fn may_keep_from(&self, suppresses: bool, other: &Self) -> bool;
}

impl Overlap for Trigger {
    fn overlaps(&self, other: &Self) -> bool {
        use Trigger::{
            Aftertouch, ArtNet, Beat, Button, Chord, ControlChange, DoubleTap, FineControl, GamepadStick,
            GamepadTrigger, LongPress, Note, Osc, OscPattern, Parameter, PitchBend, PolyAftertouch, ProgramChange,
            Sequence, SysEx, Transport, Turn, Variable,
        };
        match (self, other) {
            (
                Note { notes: a, velocity: v, edge: e, channel: c },
                Note { notes: b, velocity: w, edge: f, channel: d },
            ) => {
                a.meets(*b) && either(*c, *d) && (e.has_release() && f.has_release() || presses(*e, *f) && v.meets(*w))
            }
            (
                ControlChange { controllers: a, value: v, channel: c },
                ControlChange { controllers: b, value: w, channel: d },
            )
            | (PolyAftertouch { notes: a, value: v, channel: c }, PolyAftertouch { notes: b, value: w, channel: d })
            | (
                FineControl { controllers: a, value: v, channel: c, .. },
                FineControl { controllers: b, value: w, channel: d, .. },
            )
            | (
                LongPress { keys: a, velocity: v, channel: c, .. },
                LongPress { keys: b, velocity: w, channel: d, .. },
            )
            | (
                DoubleTap { keys: a, velocity: v, channel: c, .. },
                DoubleTap { keys: b, velocity: w, channel: d, .. },
            ) => {
                let differ = |a: &Self, b: &Self| matches!((a, b), (DoubleTap { taps: t, .. }, DoubleTap { taps: u, .. }) if t != u);
                a.meets(*b) && v.meets(*w) && either(*c, *d) && !differ(self, other)
            }
            (Aftertouch { value: v, channel: c }, Aftertouch { value: w, channel: d })
            | (PitchBend { value: v, channel: c }, PitchBend { value: w, channel: d }) => v.meets(*w) && either(*c, *d),
            (ProgramChange { programs: a, channel: c }, ProgramChange { programs: b, channel: d }) => {
                a.meets(*b) && either(*c, *d)
            }
            (SysEx { pattern: a }, SysEx { pattern: b }) => {
                let mut bytes = a.bytes().iter().zip(b.bytes());
                bytes.all(|((one, mask), (other, and))| (one ^ other) & mask & and == 0)
            }
            (Osc { address: a, arg: x }, Osc { address: b, arg: y }) => {
                a == b && (x.is_none() || y.is_none() || x == y)
            }
            (OscPattern { pattern: a, .. }, Osc { address: b, .. })
            | (Osc { address: b, .. }, OscPattern { pattern: a, .. }) => a.matches(b),
            (OscPattern { pattern: a, .. }, OscPattern { pattern: b, .. }) => a == b,
            (Button { buttons: a, edge: e }, Button { buttons: b, edge: f }) => {
                a.meets(*b) && (presses(*e, *f) || e.has_release() && f.has_release())
            }
            (
                GamepadStick { sticks: a, push: p, dead_zone: z, .. },
                GamepadStick { sticks: b, push: q, dead_zone: y, .. },
            ) => a.meets(*b) && (p == q || *p == Push::Any || *q == Push::Any || z.max(*y) <= 0.0),
            (GamepadTrigger { triggers: a, .. }, GamepadTrigger { triggers: b, .. }) => a.meets(*b),
            (ArtNet { universe: u, channels: a, value: v }, ArtNet { universe: w, channels: b, value: x }) => {
                u == w && a.meets(*b) && v.meets(*x)
            }
            (Variable { variable: a }, Variable { variable: b }) => a == b,
            (Beat { counted: a, every: e, offset: o }, Beat { counted: b, every: f, offset: p }) => {
                // A bar may have any number of beats.
                a != b || o.abs_diff(*p) % common_divisor((*e).max(1), (*f).max(1)) == 0
            }
            (Transport { does: a }, Transport { does: b }) => a == b,
            (Chord { keys: a, channel: c, .. }, Chord { keys: b, channel: d, .. })
            | (Sequence { keys: a, channel: c, .. }, Sequence { keys: b, channel: d, .. }) => a == b && either(*c, *d),
            (Turn { controllers: a, way: p, channel: c, .. }, Turn { controllers: b, way: q, channel: d, .. }) => {
                a.meets(*b) && either(*c, *d) && (p == q || *p == Rotation::Any || *q == Rotation::Any)
            }
            (
                Parameter { registered: r, parameter: a, value: v, channel: c },
                Parameter { registered: s, parameter: b, value: w, channel: d },
            ) => r == s && a == b && v.meets(*w) && either(*c, *d),
            _ => false,
        }
    }

    fn covers(&self, other: &Self) -> bool {
        use Trigger::{
            Aftertouch, ArtNet, Beat, Button, Chord, ControlChange, DoubleTap, LongPress, MidiAny, Note, Osc,
            OscPattern, PitchBend, PolyAftertouch, ProgramChange, Sequence, SysEx, Transport, Turn, Variable,
        };
        let presses = |edge: &Edge| edge.has_press();
        match (self, other) {
            (MidiAny { channel: Some(channel) }, other) => midi_channel(other) == Some(Some(*channel)),
            (MidiAny { channel: None }, SysEx { .. }) => true,
            (MidiAny { channel: None }, other) => midi_channel(other).is_some(),
            (
                Note { notes: a, velocity: v, edge: e, channel: c },
                Note { notes: b, velocity: w, edge: f, channel: d },
            ) => {
                let press = !f.has_press() || e.has_press() && v.covers(*w);
                let release = !f.has_release() || e.has_release();
                a.covers(*b) && any_or_same(*c, *d) && press && release
            }
            (
                Note { notes: a, velocity: v, edge: e, channel: c },
                LongPress { keys: b, velocity: w, channel: d, .. } | DoubleTap { keys: b, velocity: w, channel: d, .. },
            ) => presses(e) && a.covers(*b) && v.covers(*w) && any_or_same(*c, *d),
            (
                Note { notes, velocity, edge, channel: c },
                Chord { keys, channel: d, .. } | Sequence { keys, channel: d, .. },
            ) => {
                // Without one of its keys it is no chord.
                let whole = presses(edge) && velocity.covers(ValueRange::SEVEN_BIT) && any_or_same(*c, *d);
                whole && keys.iter().any(|key| notes.contains(*key))
            }
            (
                ControlChange { controllers: a, value: v, channel: c },
                ControlChange { controllers: b, value: w, channel: d },
            )
            | (PolyAftertouch { notes: a, value: v, channel: c }, PolyAftertouch { notes: b, value: w, channel: d }) => {
                a.covers(*b) && v.covers(*w) && any_or_same(*c, *d)
            }
            (ControlChange { controllers: a, value, channel: c }, Turn { controllers: b, channel: d, .. }) => {
                a.covers(*b) && value.covers(ValueRange::SEVEN_BIT) && any_or_same(*c, *d)
            }
            (Aftertouch { value: v, channel: c }, Aftertouch { value: w, channel: d })
            | (PitchBend { value: v, channel: c }, PitchBend { value: w, channel: d }) => {
                v.covers(*w) && any_or_same(*c, *d)
            }
            (ProgramChange { programs: a, channel: c }, ProgramChange { programs: b, channel: d }) => {
                a.covers(*b) && any_or_same(*c, *d)
            }
            (Osc { address: a, arg: x }, Osc { address: b, arg: y }) => a == b && (x.is_none() || x == y),
            (OscPattern { pattern, arg: None }, Osc { address, .. }) => pattern.matches(address),
            (OscPattern { pattern: a, arg: x }, OscPattern { pattern: b, arg: y }) => a == b && (x.is_none() || x == y),
            (Button { buttons: a, edge: e }, Button { buttons: b, edge: f }) => {
                a.covers(*b) && (!f.has_press() || e.has_press()) && (!f.has_release() || e.has_release())
            }
            (Button { buttons: a, edge }, LongPress { keys: b, .. } | DoubleTap { keys: b, .. }) => {
                presses(edge) && a.covers(*b)
            }
            (Button { buttons, edge }, Chord { keys, .. } | Sequence { keys, .. }) => {
                presses(edge) && keys.iter().any(|key| buttons.contains(*key))
            }
            (ArtNet { universe: u, channels: a, value: v }, ArtNet { universe: w, channels: b, value: x }) => {
                u == w && a.covers(*b) && v.covers(*x)
            }
            (Variable { variable: a }, Variable { variable: b }) => a == b,
            (Beat { counted: a, every: e, offset: o }, Beat { counted: b, every: f, offset: p }) => {
                let every = (*e).max(1);
                a == b && (*f).max(1).is_multiple_of(every) && p % every == *o
            }
            (Transport { does: a }, Transport { does: b }) => a == b,
            _ => false,
        }
    }

    fn may_keep_from(&self, suppresses: bool, other: &Self) -> bool {
        use Trigger::{Button, MidiAny, Note, OscPattern};
        let presses = |trigger: &Self| match trigger {
            Note { edge, .. } | Button { edge, .. } => edge.has_press(),
            _ => true,
        };
        let releases =
            |trigger: &Self| matches!(trigger, Note { edge, .. } | Button { edge, .. } if edge.has_release());
        let is_midi = |trigger: &Self| midi_channel(trigger).is_some() || matches!(trigger, Self::SysEx { .. });
        if self.overlaps(other) || self.covers(other) {
            return true;
        }
        match (self, other) {
            (MidiAny { .. }, _) | (_, MidiAny { .. }) => is_midi(self) && is_midi(other),
            (OscPattern { .. }, OscPattern { .. }) => true,
            _ if !channels_meet(self, other) => false,
            _ if keys_meet(self, other) => {
                let gestures = presses(self) && (is_gesture(self) || is_gesture(other));
                gestures || suppresses && presses(self) && releases(other)
            }
            _ => controllers_meet(self, other),
        }
    }
}

/// Whether it waits for more than one event of a key.
fn is_gesture(trigger: &Trigger) -> bool {
    use Trigger::{Chord, DoubleTap, LongPress, Sequence};
    matches!(trigger, LongPress { .. } | DoubleTap { .. } | Chord { .. } | Sequence { .. })
}

/// Whether both wait for presses or releases of one key.
fn keys_meet(one: &Trigger, other: &Trigger) -> bool {
    let of = |trigger: &Trigger| -> Vec<NumberRange> {
        use Trigger::{Button, Chord, DoubleTap, LongPress, Note, Sequence};
        match trigger {
            Note { notes: keys, .. }
            | Button { buttons: keys, .. }
            | LongPress { keys, .. }
            | DoubleTap { keys, .. } => vec![*keys],
            Chord { keys, .. } | Sequence { keys, .. } => keys.iter().map(|key| NumberRange::one(*key)).collect(),
            _ => Vec::new(),
        }
    };
    any_meet(&of(one), &of(other))
}

/// Whether both wait for values of one controller.
fn controllers_meet(one: &Trigger, other: &Trigger) -> bool {
    let of = |trigger: &Trigger| -> Vec<NumberRange> {
        use Trigger::{ControlChange, FineControl, Parameter, Turn};
        match trigger {
            ControlChange { controllers, .. } | Turn { controllers, .. } => vec![*controllers],
            FineControl { controllers, .. } => {
                let fine = |number: u16| number.saturating_add(FINE_ABOVE_COARSE);
                vec![*controllers, NumberRange { first: fine(controllers.first), last: fine(controllers.last) }]
            }
            Parameter { .. } => PARAMETER_CONTROLLERS.map(NumberRange::one).to_vec(),
            _ => Vec::new(),
        }
    };
    any_meet(&of(one), &of(other))
}

fn any_meet(some: &[NumberRange], others: &[NumberRange]) -> bool {
    some.iter().any(|one| others.iter().any(|other| one.meets(*other)))
}

/// Whether both can be about one channel, as far as they ask for any.
fn channels_meet(one: &Trigger, other: &Trigger) -> bool {
    either(midi_channel(one).flatten(), midi_channel(other).flatten())
}

/// The channel that a trigger for MIDI messages with a channel asks for, which may be any. `None` if it is another
/// trigger.
fn midi_channel(trigger: &Trigger) -> Option<Option<u8>> {
    use Trigger::{
        Aftertouch, Chord, ControlChange, DoubleTap, FineControl, LongPress, MidiAny, Note, Parameter, PitchBend,
        PolyAftertouch, ProgramChange, Sequence, Turn,
    };
    match *trigger {
        Note { channel, .. }
        | ControlChange { channel, .. }
        | Aftertouch { channel, .. }
        | PolyAftertouch { channel, .. }
        | PitchBend { channel, .. }
        | ProgramChange { channel, .. }
        | MidiAny { channel }
        | Turn { channel, .. }
        | FineControl { channel, .. }
        | Parameter { channel, .. } => Some(channel),
        LongPress { keys, channel, .. } | DoubleTap { keys, channel, .. } if keys.first <= 127 => Some(channel),
        Chord { ref keys, channel, .. } | Sequence { ref keys, channel, .. }
            if keys.first().is_some_and(|key| *key <= 127) =>
        {
            Some(channel)
        }
        _ => None,
    }
}

/// The greatest common divisor of two numbers above 0.
fn common_divisor(one: u16, other: u16) -> u16 {
    if other == 0 { one } else { common_divisor(other, one % other) }
}

/// Whether what is for the first channel is for the second, too.
fn any_or_same(one: Option<u8>, other: Option<u8>) -> bool {
    one.is_none() || one == other
}

/// Whether both count going down.
fn presses(one: Edge, other: Edge) -> bool {
    one.has_press() && other.has_press()
}

/// Whether both can be about one channel.
fn either(one: Option<u8>, other: Option<u8>) -> bool {
    one.is_none() || other.is_none() || one == other
}

/// A range of numbers.
trait Range: Copy {
    /// The lowest and the highest number.
    fn ends(self) -> (u16, u16);

    fn meets(self, other: Self) -> bool {
        let ((first, last), (other_first, other_last)) = (self.ends(), other.ends());
        first <= other_last && other_first <= last
    }

    fn covers(self, other: Self) -> bool {
        let ((first, last), (other_first, other_last)) = (self.ends(), other.ends());
        first <= other_first && other_last <= last
    }
}

impl Range for NumberRange {
    fn ends(self) -> (u16, u16) {
        (self.first, self.last)
    }
}

impl Range for ValueRange {
    fn ends(self) -> (u16, u16) {
        (self.min, self.max)
    }
}

impl Range for DmxRange {
    fn ends(self) -> (u16, u16) {
        (self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use conductor_engine::Counted;

    use super::*;

    #[test]
    fn beats_overlap_where_one_is_both() {
        let beat = |every, offset| Trigger::Beat { counted: Counted::Beats, every, offset };
        let bar = Trigger::Beat { counted: Counted::Bars, every: 1, offset: 0 };
        for (a, b, overlaps, covers) in [
            (beat(1, 0), beat(4, 3), true, true),
            (beat(4, 3), beat(1, 0), true, false),
            (beat(4, 1), beat(6, 3), true, false),
            (beat(4, 1), beat(6, 2), false, false),
            (beat(2, 1), beat(4, 3), true, true),
            (beat(2, 1), beat(4, 2), false, false),
            (beat(4, 1), bar.clone(), true, false),
        ] {
            assert_eq!((a.overlaps(&b), a.covers(&b)), (overlaps, covers), "{a:?} {b:?}");
        }
    }

    #[test]
    fn presses_of_one_key_overlap_unless_something_tells_them_apart() {
        let note = |notes, velocity, edge, channel| Trigger::Note { notes, velocity, edge, channel };
        let (soft, hard) = (ValueRange { min: 0, max: 80 }, ValueRange { min: 81, max: 127 });
        let pad = note(NumberRange::one(36), ValueRange::SEVEN_BIT, Edge::Press, None);
        let pads = |velocity, edge, channel| note(NumberRange { first: 36, last: 51 }, velocity, edge, channel);
        assert!(pad.overlaps(&pads(ValueRange::SEVEN_BIT, Edge::Both, Some(9))));
        assert!(!pad.overlaps(&pads(ValueRange::SEVEN_BIT, Edge::Release, None)));
        assert!(!pad.overlaps(&note(NumberRange::one(37), ValueRange::SEVEN_BIT, Edge::Press, None)));
        assert!(!pads(soft, Edge::Press, None).overlaps(&pads(hard, Edge::Press, None)));
        // A release has no velocity that is asked for.
        assert!(pads(soft, Edge::Both, None).overlaps(&pads(hard, Edge::Both, None)));
        assert!(!pads(soft, Edge::Press, Some(1)).overlaps(&pads(soft, Edge::Press, Some(2))));
        let long = long_press(36);
        assert!(!pad.overlaps(&long), "that is what long presses are for");
        assert!(long.overlaps(&long.clone()));
    }

    fn long_press(key: u16) -> Trigger {
        Trigger::LongPress { keys: NumberRange::one(key), velocity: ValueRange::SEVEN_BIT, channel: None, after: 1 }
    }

    fn note(key: u16, edge: Edge) -> Trigger {
        Trigger::Note { notes: NumberRange::one(key), velocity: ValueRange::SEVEN_BIT, edge, channel: None }
    }

    #[test]
    fn what_consumes_a_press_keeps_gestures_from_it() {
        let press = note(36, Edge::Press);
        assert!(press.may_keep_from(false, &long_press(36)));
        assert!(!press.may_keep_from(false, &long_press(37)));
        assert!(!note(36, Edge::Release).may_keep_from(false, &long_press(36)));
        let chord = Trigger::Chord { keys: vec![35, 36], channel: None, within: 1 };
        assert!(press.may_keep_from(false, &chord) && chord.may_keep_from(false, &long_press(35)));
    }

    #[test]
    fn a_release_is_kept_with_its_press_only_by_what_suppresses_it() {
        let (press, release) = (note(36, Edge::Press), note(36, Edge::Release));
        assert!(press.may_keep_from(true, &release) && !press.may_keep_from(false, &release));
        assert!(!press.may_keep_from(true, &note(37, Edge::Release)));
    }

    #[test]
    fn what_consumes_a_controller_keeps_what_is_made_of_it() {
        let cc = |number| Trigger::ControlChange {
            controllers: NumberRange::one(number),
            value: ValueRange::SEVEN_BIT,
            channel: None,
        };
        let fine = Trigger::FineControl {
            controllers: NumberRange::one(7),
            value: ValueRange { min: 0, max: 16383 },
            channel: None,
            fine_first: false,
        };
        assert!(cc(7).may_keep_from(false, &fine) && cc(39).may_keep_from(false, &fine));
        assert!(!cc(8).may_keep_from(false, &fine));
        let any = Trigger::MidiAny { channel: None };
        assert!(any.may_keep_from(false, &cc(1)) && any.may_keep_from(false, &long_press(36)));
        let pad = Trigger::Button { buttons: NumberRange::one(128), edge: Edge::Press };
        assert!(!any.may_keep_from(false, &pad));
    }
}
