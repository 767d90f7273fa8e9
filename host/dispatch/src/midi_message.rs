//! The MIDI message that `SendMidi` makes of an event.

use std::sync::Arc;

use conductor_config::{self as config, ChannelExpr, DATA_MAX, NoteExpr, NumberExpr, WIDE_MAX};
use conductor_event::{DeviceId, MidiMessage};
use conductor_expression::Slots;

use super::Envelope;
use super::variables::View;

/// A message whose numbers may come from the event, ready to be filled in without parsing.
#[derive(Debug, Clone, PartialEq)]
pub struct MidiTemplate {
    message: config::MidiMessage,
    /// The bytes of a SysEx message, so that sending it copies nothing.
    sysex: Option<Arc<[u8]>>,
    /// The variables that its numbers name.
    view: View,
}

impl MidiTemplate {
    /// A message whose variables are bound to those of `view`.
    pub fn new(message: config::MidiMessage, view: View) -> Self {
        let sysex = match &message {
            config::MidiMessage::SysEx { bytes } => Some(bytes.as_slice().into()),
            _ => None,
        };
        Self { message, sysex, view }
    }

    /// The message for an event. Numbers are brought into the range of their field; a note-on
    /// whose velocity comes out as 0 is a note-off.
    pub fn message(&self, envelope: &Envelope) -> MidiMessage {
        self.filled(&envelope.numbers(), &envelope.device)
    }

    /// The same for these numbers, of this device.
    pub fn filled(&self, event: &impl Slots, device: &DeviceId) -> MidiMessage {
        use config::MidiMessage as Template;
        let inputs = &self.view.of(event, device);
        let data = |number: &NumberExpr| clamped(number, inputs, DATA_MAX);
        let key = |note: &NoteExpr| clamped(note, inputs, DATA_MAX);
        let channel = |number: &ChannelExpr| clamped(number, inputs, 15);
        match &self.message {
            Template::NoteOn { channel: c, note, velocity } => match data(velocity) {
                0 => MidiMessage::NoteOff { channel: channel(c), note: key(note), velocity: 0 },
                velocity => MidiMessage::NoteOn { channel: channel(c), note: key(note), velocity },
            },
            Template::NoteOff { channel: c, note, velocity } => {
                MidiMessage::NoteOff { channel: channel(c), note: key(note), velocity: data(velocity) }
            }
            Template::CC { channel: c, cc, value } => MidiMessage::ControlChange {
                channel: channel(c),
                controller: clamped(cc, inputs, DATA_MAX),
                value: data(value),
            },
            Template::ProgramChange { channel: c, program } => {
                MidiMessage::ProgramChange { channel: channel(c), program: data(program) }
            }
            Template::PitchBend { channel: c, value } => MidiMessage::PitchBend {
                channel: channel(c),
                value: u16::try_from(value.eval(inputs).clamp(0, i32::from(WIDE_MAX))).unwrap_or(WIDE_MAX),
            },
            Template::Aftertouch { channel: c, pressure } => {
                MidiMessage::Aftertouch { channel: channel(c), pressure: data(pressure) }
            }
            Template::PolyAftertouch { channel: c, note, pressure } => {
                MidiMessage::PolyAftertouch { channel: channel(c), note: key(note), pressure: data(pressure) }
            }
            Template::SysEx { .. } => MidiMessage::SysEx(self.sysex.clone().unwrap_or_default()),
        }
    }
}

fn clamped<const NAMES: u8>(number: &NumberExpr<NAMES>, inputs: &impl Slots, max: u8) -> u8 {
    u8::try_from(number.eval(inputs).clamp(0, i32::from(max))).unwrap_or(max)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use conductor_event::{Answers, RuleId};

    fn envelope(message: MidiMessage) -> Envelope {
        Envelope {
            at: 0,
            device: DeviceId::new("pads"),
            event: message.into(),
            position: 3,
            pattern: None,
            answers: Answers::default(),
            rule: RuleId(0),
            generation: 0,
            mode: None,
            tries: None,
        }
    }

    fn template(toml: &str) -> MidiTemplate {
        MidiTemplate::new(toml::from_str(toml).unwrap(), View::default())
    }

    #[test]
    fn numbers_come_from_the_event_and_stay_in_range() {
        let event = envelope(MidiMessage::NoteOn { channel: 9, note: 39, velocity: 64 });
        let note =
            template("message_type = 'NoteOn'\nchannel = '{channel}'\nnote = '{n}+60'\nvelocity = '{value}+100'");
        assert_eq!(note.message(&event), MidiMessage::NoteOn { channel: 9, note: 63, velocity: 127 });
        let low = template("message_type = 'CC'\ncc = '{note}-100'\nvalue = 5");
        assert_eq!(low.message(&event), MidiMessage::ControlChange { channel: 0, controller: 0, value: 5 });
        let sysex = template("message_type = 'SysEx'\nbytes = 'F0 7E 7F 06 01 F7'");
        assert_eq!(sysex.message(&event), MidiMessage::SysEx([0xF0, 0x7E, 0x7F, 0x06, 0x01, 0xF7].into()));
    }

    #[test]
    fn a_note_on_without_velocity_is_a_note_off() {
        let note = template("message_type = 'NoteOn'\nnote = 1\nvelocity = 0");
        let off = MidiMessage::NoteOff { channel: 0, note: 1, velocity: 0 };
        assert_eq!(note.message(&envelope(MidiMessage::Clock)), off);
    }
}
