//! How events are written: the words that a line of the timeline language (`conductor-timeline`) has for them.

use std::fmt::{self, Write as _};

use super::{ArtNetChange, Event, HidEvent};
use crate::midi::MidiMessage;
use crate::osc::OscArg;

/// Writes a name as a word, or in double quotes where it would not be read back as one: `pads`, `"nano #2"`.
///
/// # Errors
/// Those of the formatter.
pub fn write_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    let is_word = !name.is_empty()
        && !name.starts_with(['#', '\''])
        && !name.contains(|c: char| c.is_whitespace() || c.is_control() || "[]\"".contains(c));
    if is_word { f.write_str(name) } else { write_quoted(f, '"', name) }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind().name())?;
        match self {
            Self::Midi(message) => write_midi(f, message),
            Self::Osc(message) => {
                f.write_str(" ")?;
                write_name(f, message.address())?;
                message.args().iter().try_for_each(|arg| write!(f, " {arg}"))
            }
            Self::Hid(HidEvent::Button { button, pressed }) => {
                write!(f, " {button} {}", if *pressed { "down" } else { "up" })
            }
            Self::Hid(moved) => write!(f, " {} {}", moved.number(), moved.value()),
            Self::ArtNet(ArtNetChange { universe, channel, value, previous }) => {
                write!(f, " {universe} {channel} {value} {previous}")
            }
            Self::Variable(change) => write!(f, " {} {}", change.variable, change.value),
            Self::Musical(event) => write!(f, " {event}"),
            Self::Gesture(gesture) => write!(f, " {gesture}"),
        }
    }
}

/// What follows the message's word.
fn write_midi(f: &mut fmt::Formatter<'_>, message: &MidiMessage) -> fmt::Result {
    match *message {
        MidiMessage::NoteOff { note: first, velocity: second, .. }
        | MidiMessage::NoteOn { note: first, velocity: second, .. }
        | MidiMessage::PolyAftertouch { note: first, pressure: second, .. }
        | MidiMessage::ControlChange { controller: first, value: second, .. } => {
            write!(f, " {first} {second}")?;
        }
        MidiMessage::ProgramChange { program: value, .. }
        | MidiMessage::Aftertouch { pressure: value, .. }
        | MidiMessage::TimeCode(value)
        | MidiMessage::SongSelect(value) => write!(f, " {value}")?,
        MidiMessage::PitchBend { value, .. } | MidiMessage::SongPosition(value) => {
            write!(f, " {value}")?;
        }
        MidiMessage::SysEx(ref bytes) => {
            bytes.iter().try_for_each(|byte| write!(f, " {byte:02X}"))?;
        }
        _ => {}
    }
    match message.channel() {
        None | Some(0) => Ok(()),
        Some(channel) => write!(f, " ch {channel}"),
    }
}

/// Writes the argument as a line of the timeline language has it.
impl fmt::Display for OscArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            // Debug gives the shortest digits that read back, always with a point or an exponent.
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Long(value) => write!(f, "{value}h"),
            Self::Double(value) => write!(f, "{value:?}d"),
            Self::String(text) => write_quoted(f, '"', text),
            Self::Char(c) => write_quoted(f, '\'', c.encode_utf8(&mut [0; 4])),
            Self::Blob(bytes) => write_hex(f, "blob:", bytes),
            Self::Color(bytes) => write_hex(f, "color:", bytes),
            Self::Midi(bytes) => write_hex(f, "midi:", bytes),
            Self::Time { seconds, fractional } => write!(f, "time:{seconds}.{fractional}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Nil => f.write_str("nil"),
            Self::Inf => f.write_str("infinitum"),
            Self::Array(args) => {
                f.write_str("[")?;
                for (index, arg) in args.iter().enumerate() {
                    let space = if index > 0 { " " } else { "" };
                    write!(f, "{space}{arg}")?;
                }
                f.write_str("]")
            }
        }
    }
}

fn write_hex(f: &mut fmt::Formatter<'_>, prefix: &str, bytes: &[u8]) -> fmt::Result {
    f.write_str(prefix)?;
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

fn write_quoted(f: &mut fmt::Formatter<'_>, quote: char, text: &str) -> fmt::Result {
    f.write_char(quote)?;
    for c in text.chars() {
        match c {
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c == quote || c == '\\' => write!(f, "\\{c}")?,
            c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char(quote)
}
