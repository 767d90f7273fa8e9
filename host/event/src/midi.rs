//! MIDI 1.0 messages, and the bytes they are on the wire.
//!
//! Shapes, status bytes and value ranges are those of the MIDI 1.0 Detailed Specification (MIDI
//! Association, M1 v4.2.1). Channels are 0 to 15 as on the wire, not 1 to 16 as on front panels.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// One MIDI 1.0 message.
///
/// Numbers (notes, controllers, programs) and 7-bit values are 0 to 127, channels 0 to 15, 14-bit
/// values 0 to 16 383. The fields are plain integers and can hold more; [`encode`](Self::encode) then
/// writes the low bits only, so that what goes out is always well-formed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MidiMessage {
    /// A key went up. `velocity` is how fast.
    NoteOff {
        /// 0 to 15.
        channel: u8,
        /// 0 to 127; 60 is middle C.
        note: u8,
        /// 0 to 127. 0 where the sender wrote the release as a note-on with velocity 0, and 64 is the
        /// specification's value for a keyboard that does not measure it.
        velocity: u8,
    },
    /// A key went down.
    NoteOn {
        /// 0 to 15.
        channel: u8,
        /// 0 to 127; 60 is middle C.
        note: u8,
        /// 1 to 127. On the wire 0 means note-off, and the parser reads it so.
        velocity: u8,
    },
    /// Pressure on one key that is held.
    PolyAftertouch {
        /// 0 to 15.
        channel: u8,
        /// 0 to 127.
        note: u8,
        /// 0 to 127.
        pressure: u8,
    },
    /// A knob, fader, pedal or switch moved.
    ControlChange {
        /// 0 to 15.
        channel: u8,
        /// 0 to 127; 120 and up are channel mode messages.
        controller: u8,
        /// 0 to 127.
        value: u8,
    },
    /// Another sound was chosen.
    ProgramChange {
        /// 0 to 15.
        channel: u8,
        /// 0 to 127.
        program: u8,
    },
    /// Pressure on the keyboard as a whole.
    Aftertouch {
        /// 0 to 15.
        channel: u8,
        /// 0 to 127.
        pressure: u8,
    },
    /// The pitch wheel moved.
    PitchBend {
        /// 0 to 15.
        channel: u8,
        /// 0 to 16 383; 8192 is the middle.
        value: u16,
    },
    /// A complete system exclusive message, from `F0` to `F7`, both included.
    SysEx(Arc<[u8]>),
    /// MIDI time code quarter frame: piece number in bits 4 to 6, its value in bits 0 to 3.
    TimeCode(u8),
    /// Song position in sixteenth notes ("MIDI beats") from the start, 0 to 16 383.
    SongPosition(u16),
    /// Song number, 0 to 127.
    SongSelect(u8),
    /// Ask analogue synthesizers to tune themselves.
    TuneRequest,
    /// Timing clock, 24 to the quarter note.
    Clock,
    /// Start from the beginning.
    Start,
    /// Go on from where it stopped.
    Continue,
    /// Stop.
    Stop,
    /// "I am still here", at least every 300 ms once begun.
    ActiveSensing,
    /// Return to the state after power-up.
    Reset,
}

impl MidiMessage {
    /// The channel of a channel message, 0 to 15; `None` if it is a system message.
    #[inline]
    pub fn channel(&self) -> Option<u8> {
        match *self {
            Self::NoteOff { channel, .. }
            | Self::NoteOn { channel, .. }
            | Self::PolyAftertouch { channel, .. }
            | Self::ControlChange { channel, .. }
            | Self::ProgramChange { channel, .. }
            | Self::Aftertouch { channel, .. }
            | Self::PitchBend { channel, .. } => Some(channel),
            _ => None,
        }
    }

    /// Appends the message's bytes, status byte included, to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bytes());
    }

    /// The message's bytes, without allocating: up to three held inline, a SysEx borrowed.
    ///
    /// ```
    /// # use conductor_event::MidiMessage;
    /// let bend = MidiMessage::PitchBend { channel: 2, value: 8192 };
    /// assert_eq!(*bend.to_bytes(), [0xE2, 0x00, 0x40]);
    /// ```
    pub fn to_bytes(&self) -> MidiBytes<'_> {
        match *self {
            Self::NoteOff { channel, note, velocity } => three(0x80, channel, note, velocity),
            Self::NoteOn { channel, note, velocity } => three(0x90, channel, note, velocity),
            Self::PolyAftertouch { channel, note, pressure } => three(0xA0, channel, note, pressure),
            Self::ControlChange { channel, controller, value } => three(0xB0, channel, controller, value),
            Self::ProgramChange { channel, program } => two(0xC0 | (channel & 0x0F), program),
            Self::Aftertouch { channel, pressure } => two(0xD0 | (channel & 0x0F), pressure),
            Self::PitchBend { channel, value } => three(0xE0, channel, low_bits(value), high_bits(value)),
            Self::SysEx(ref bytes) => MidiBytes(Bytes::Long(bytes)),
            Self::TimeCode(piece) => two(0xF1, piece),
            Self::SongPosition(beats) => three(0xF2, 0x02, low_bits(beats), high_bits(beats)),
            Self::SongSelect(song) => two(0xF3, song),
            Self::TuneRequest => one(0xF6),
            Self::Clock => one(0xF8),
            Self::Start => one(0xFA),
            Self::Continue => one(0xFB),
            Self::Stop => one(0xFC),
            Self::ActiveSensing => one(0xFE),
            Self::Reset => one(0xFF),
        }
    }
}

/// The bytes of one message; a byte slice in all but name. See [`MidiMessage::to_bytes`].
#[derive(Clone, Copy)]
pub struct MidiBytes<'a>(Bytes<'a>);

#[derive(Clone, Copy)]
enum Bytes<'a> {
    Short { bytes: [u8; 3], len: u8 },
    Long(&'a [u8]),
}

impl Deref for MidiBytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Short { bytes, len } => &bytes[..usize::from(*len)],
            Bytes::Long(bytes) => bytes,
        }
    }
}

impl fmt::Debug for MidiBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02X?}", &**self)
    }
}

fn one(status: u8) -> MidiBytes<'static> {
    MidiBytes(Bytes::Short { bytes: [status, 0, 0], len: 1 })
}

fn two(status: u8, data: u8) -> MidiBytes<'static> {
    MidiBytes(Bytes::Short { bytes: [status, data & 0x7F, 0], len: 2 })
}

fn three(status: u8, low_nibble: u8, first: u8, second: u8) -> MidiBytes<'static> {
    let bytes = [status | (low_nibble & 0x0F), first & 0x7F, second & 0x7F];
    MidiBytes(Bytes::Short { bytes, len: 3 })
}

/// Bits 0 to 6 of a 14-bit value; on the wire they come first.
fn low_bits(value: u16) -> u8 {
    (value & 0x7F) as u8
}

/// Bits 7 to 13 of a 14-bit value.
fn high_bits(value: u16) -> u8 {
    (value >> 7 & 0x7F) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_byte_is_the_one_in_the_specification() {
        let cases: [(MidiMessage, &[u8]); 18] = [
            (MidiMessage::NoteOff { channel: 1, note: 60, velocity: 64 }, &[0x81, 60, 64]),
            (MidiMessage::NoteOn { channel: 15, note: 60, velocity: 1 }, &[0x9F, 60, 1]),
            (MidiMessage::PolyAftertouch { channel: 0, note: 1, pressure: 2 }, &[0xA0, 1, 2]),
            (MidiMessage::ControlChange { channel: 3, controller: 7, value: 127 }, &[0xB3, 7, 127]),
            (MidiMessage::ProgramChange { channel: 4, program: 5 }, &[0xC4, 5]),
            (MidiMessage::Aftertouch { channel: 5, pressure: 6 }, &[0xD5, 6]),
            (MidiMessage::PitchBend { channel: 6, value: 16383 }, &[0xE6, 127, 127]),
            (MidiMessage::SysEx(Arc::from([0xF0, 0x7E, 0xF7])), &[0xF0, 0x7E, 0xF7]),
            (MidiMessage::TimeCode(0x35), &[0xF1, 0x35]),
            (MidiMessage::SongPosition(129), &[0xF2, 1, 1]),
            (MidiMessage::SongSelect(9), &[0xF3, 9]),
            (MidiMessage::TuneRequest, &[0xF6]),
            (MidiMessage::Clock, &[0xF8]),
            (MidiMessage::Start, &[0xFA]),
            (MidiMessage::Continue, &[0xFB]),
            (MidiMessage::Stop, &[0xFC]),
            (MidiMessage::ActiveSensing, &[0xFE]),
            (MidiMessage::Reset, &[0xFF]),
        ];
        for (message, bytes) in cases {
            assert_eq!(&*message.to_bytes(), bytes, "{message:?}");
        }
    }

    #[test]
    fn fields_out_of_range_never_reach_the_wire() {
        let message = MidiMessage::NoteOn { channel: 0xFF, note: 0xFF, velocity: 0xFF };
        assert_eq!(*message.to_bytes(), [0x9F, 0x7F, 0x7F]);
        let message = MidiMessage::PitchBend { channel: 0, value: 0xFFFF };
        assert_eq!(*message.to_bytes(), [0xE0, 0x7F, 0x7F]);
    }

    #[test]
    fn encoding_appends() {
        let mut out = vec![0xF8];
        MidiMessage::Stop.encode(&mut out);
        assert_eq!(out, [0xF8, 0xFC]);
    }
}
