//! Overlap and subsumption of triggers, which the author of both rules may not have intended.

use crate::trigger::{DmxRange, Edge, NumberRange, Push, Rotation, Trigger, ValueRange};

impl Trigger {
    /// Whether one event can be what both wait for. Gestures are compared with their own kind only, since a press
    /// and a long press of one key are often meant to go together; one that waits for any MIDI message overlaps
    /// nothing, since it is there to see what others see; of OSC patterns only equal ones are known to meet.
    pub fn overlaps(&self, other: &Self) -> bool {
        use Trigger::{
            Aftertouch, ArtNet, Chord, ControlChange, DoubleTap, FineControl, GamepadButton, GamepadStick,
            GamepadTrigger, LongPress, Note, Osc, OscPattern, Parameter, PitchBend, PolyAftertouch, ProgramChange,
            Sequence, SysEx, Turn, Variable,
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
                FineControl { controllers: a, value: v, channel: c },
                FineControl { controllers: b, value: w, channel: d },
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
            (GamepadButton { buttons: a, edge: e }, GamepadButton { buttons: b, edge: f }) => {
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
}

impl Trigger {
    /// Whether this one matches every event that the other matches or that its gesture takes, so that nothing is
    /// left for the other where this one consumes. False where that is not known: of OSC patterns, for one.
    pub fn covers(&self, other: &Self) -> bool {
        use Trigger::{
            Aftertouch, ArtNet, Chord, ControlChange, DoubleTap, GamepadButton, LongPress, MidiAny, Note, Osc,
            OscPattern, PitchBend, PolyAftertouch, ProgramChange, Sequence, SysEx, Turn, Variable,
        };
        let presses = |edge: &Edge| edge.has_press();
        match (self, other) {
            (MidiAny { channel: Some(channel) }, other) => other.midi_channel() == Some(Some(*channel)),
            (MidiAny { channel: None }, SysEx { .. }) => true,
            (MidiAny { channel: None }, other) => other.midi_channel().is_some(),
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
            (GamepadButton { buttons: a, edge: e }, GamepadButton { buttons: b, edge: f }) => {
                a.covers(*b) && (!f.has_press() || e.has_press()) && (!f.has_release() || e.has_release())
            }
            (GamepadButton { buttons: a, edge }, LongPress { keys: b, .. } | DoubleTap { keys: b, .. }) => {
                presses(edge) && a.covers(*b)
            }
            (GamepadButton { buttons, edge }, Chord { keys, .. } | Sequence { keys, .. }) => {
                presses(edge) && keys.iter().any(|key| buttons.contains(*key))
            }
            (ArtNet { universe: u, channels: a, value: v }, ArtNet { universe: w, channels: b, value: x }) => {
                u == w && a.first <= b.first && b.last <= a.last && v.covers(*x)
            }
            (Variable { variable: a }, Variable { variable: b }) => a == b,
            _ => false,
        }
    }

    /// The channel that a trigger for MIDI messages with a channel asks for, which may be any. `None` if it is another
    /// trigger.
    fn midi_channel(&self) -> Option<Option<u8>> {
        match *self {
            Self::Note { channel, .. }
            | Self::ControlChange { channel, .. }
            | Self::Aftertouch { channel, .. }
            | Self::PolyAftertouch { channel, .. }
            | Self::PitchBend { channel, .. }
            | Self::ProgramChange { channel, .. }
            | Self::MidiAny { channel }
            | Self::Turn { channel, .. }
            | Self::FineControl { channel, .. }
            | Self::Parameter { channel, .. } => Some(channel),
            Self::LongPress { keys, channel, .. } | Self::DoubleTap { keys, channel, .. } if keys.first <= 127 => {
                Some(channel)
            }
            Self::Chord { ref keys, channel, .. } | Self::Sequence { ref keys, channel, .. }
                if keys.first().is_some_and(|key| *key <= 127) =>
            {
                Some(channel)
            }
            _ => None,
        }
    }
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

impl NumberRange {
    fn meets(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    fn covers(self, other: Self) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

impl ValueRange {
    fn meets(self, other: Self) -> bool {
        self.min <= other.max && other.min <= self.max
    }

    fn covers(self, other: Self) -> bool {
        self.min <= other.min && other.max <= self.max
    }
}

impl DmxRange {
    fn meets(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let long =
            Trigger::LongPress { keys: NumberRange::one(36), velocity: ValueRange::SEVEN_BIT, channel: None, after: 1 };
        assert!(!pad.overlaps(&long), "that is what long presses are for");
        assert!(long.overlaps(&long.clone()));
    }
}
