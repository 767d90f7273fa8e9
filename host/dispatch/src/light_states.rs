//! What the lights of one output were set to last, for those who look.
//!
//! There is a cell for each note and controller of each channel. The output's worker writes it, and others read it without
//! a lock. The first change is reported, since others were looked at before this output was there, and then one after each
//! look: so what nobody looks at costs no more than the cell, and what changes fast is not reported faster than it is looked
//! at.

use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use conductor_event::MidiMessage;
use conductor_observer::light::{Light, LightMessage};

const CHANNELS: usize = 16;
/// Notes of a channel, and controllers.
const NUMBERS: usize = 128;
/// The first controller that stands for a channel mode message, which sets no light (MIDI 1.0).
const FIRST_CHANNEL_MODE: u8 = 120;

/// In a cell: whether anything was sent. The value is in the lowest seven bits.
const IS_SET: u16 = 1 << 8;
/// In a cell: whether the light blinks.
const BLINKS: u16 = 1 << 7;

/// The cells of an output.
#[derive(Debug)]
pub struct LightStates {
    /// Notes of each channel, then controllers of each channel.
    cells: Box<[AtomicU16]>,
    /// Whether the next change is to be reported.
    is_awaited: AtomicBool,
}

impl Default for LightStates {
    fn default() -> Self {
        let cells = std::iter::repeat_with(AtomicU16::default).take(2 * CHANNELS * NUMBERS);
        Self { cells: cells.collect(), is_awaited: AtomicBool::new(true) }
    }
}

impl LightStates {
    /// Takes over a message that was sent; what switches a light that blinks on and off changes nothing. True when the change
    /// is to be reported.
    #[must_use]
    pub fn sent(&self, message: &MidiMessage) -> bool {
        let Some((cell, value)) = set_by(message) else { return false };
        let blinks = self.cells[cell].load(Ordering::SeqCst) & BLINKS != 0;
        !blinks && self.write(cell, IS_SET | value)
    }

    /// Takes over what the light of a message shows, and whether it blinks. True when the change is to be reported.
    #[must_use]
    pub fn show(&self, message: &MidiMessage, blinks: bool) -> bool {
        let Some((cell, value)) = set_by(message) else { return false };
        self.write(cell, IS_SET | value | if blinks { BLINKS } else { 0 })
    }

    /// The port comes or goes: nothing was sent to it yet. True when the change is to be reported.
    #[must_use]
    pub fn forget(&self) -> bool {
        let mut is_reported = false;
        for cell in 0..self.cells.len() {
            is_reported |= self.write(cell, 0);
        }
        is_reported
    }

    /// What was set. The next change is reported.
    pub fn look(&self) -> Vec<Light> {
        // First: what is changed from here on is reported, whether it is seen below or not.
        self.is_awaited.store(true, Ordering::SeqCst);
        let cells = self.cells.iter().enumerate().map(|(at, cell)| (at, cell.load(Ordering::SeqCst)));
        cells.filter(|(_, state)| state & IS_SET != 0).map(|(at, state)| light(at, state)).collect()
    }

    fn write(&self, cell: usize, state: u16) -> bool {
        self.cells[cell].swap(state, Ordering::SeqCst) != state && self.is_awaited.swap(false, Ordering::SeqCst)
    }
}

/// The cell of the light that a message sets, and the value; `None` if it sets none of one byte.
fn set_by(message: &MidiMessage) -> Option<(usize, u16)> {
    let (kind, channel, number, value) = match *message {
        MidiMessage::NoteOn { channel, note, velocity } => (0, channel, note, velocity),
        MidiMessage::NoteOff { channel, note, .. } => (0, channel, note, 0),
        MidiMessage::ControlChange { channel, controller, value } if controller < FIRST_CHANNEL_MODE => {
            (1, channel, controller, value)
        }
        _ => return None,
    };
    let row = kind * CHANNELS + usize::from(channel & 15);
    Some((row * NUMBERS + usize::from(number & 127), u16::from(value & 127)))
}

/// The light of a cell in this state.
fn light(cell: usize, state: u16) -> Light {
    let (row, number) = (cell / NUMBERS, cell % NUMBERS);
    Light {
        message: if row < CHANNELS { LightMessage::Note } else { LightMessage::Cc },
        // Each is less than 128.
        channel: (row % CHANNELS) as u8,
        number: number as u8,
        value: (state & 127) as u8,
        blinks: state & BLINKS != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: MidiMessage = MidiMessage::NoteOn { channel: 15, note: 127, velocity: 21 };
    const OFF: MidiMessage = MidiMessage::NoteOff { channel: 15, note: 127, velocity: 64 };

    fn note(value: u8, blinks: bool) -> Light {
        Light { message: LightMessage::Note, channel: 15, number: 127, value, blinks }
    }

    #[test]
    fn a_light_is_what_it_was_set_to_last_until_the_port_goes() {
        let states = LightStates::default();
        let ring = MidiMessage::ControlChange { channel: 0, controller: 20, value: 127 };
        for message in [&ring, &ON] {
            let _ = states.sent(message);
        }
        let shown = Light { message: LightMessage::Cc, channel: 0, number: 20, value: 127, blinks: false };
        assert_eq!(states.look(), [note(21, false), shown]);
        assert!(states.sent(&OFF));
        assert_eq!(states.look(), [note(0, false), shown]);
        for sets_none in [
            MidiMessage::ControlChange { channel: 0, controller: 123, value: 0 },
            MidiMessage::ProgramChange { channel: 0, program: 3 },
        ] {
            assert!(!states.sent(&sets_none));
        }
        assert!(states.forget());
        assert_eq!(states.look(), []);
    }

    #[test]
    fn the_first_change_is_reported_and_one_after_each_look() {
        let states = LightStates::default();
        assert!(states.sent(&ON), "who looks knows nothing of this output yet");
        assert!(!states.sent(&OFF) && !states.sent(&ON), "nobody has looked since");
        assert_eq!(states.look(), [note(21, false)]);
        assert!(!states.sent(&ON), "it is the same");
        assert!(states.sent(&OFF));
        assert!(!states.sent(&ON), "it was reported that there is something to look at");
        assert_eq!(states.look(), [note(21, false)]);
        assert!(states.sent(&OFF));
    }

    #[test]
    fn a_light_that_blinks_is_as_it_is_when_it_is_on() {
        let states = LightStates::default();
        let _ = states.show(&ON, true);
        assert_eq!(states.look(), [note(21, true)]);
        assert!(!states.sent(&OFF) && !states.sent(&ON));
        assert_eq!(states.look(), [note(21, true)]);
        assert!(states.show(&OFF, false));
        assert_eq!(states.look(), [note(0, false)]);
    }
}
