//! The input state: which keys of each device are down, and the positions of its controllers and sticks.

use std::collections::HashMap;

use conductor_event::hash::KeyState;
use conductor_event::{DeviceId, Event, HidEvent, MidiMessage};

use crate::trigger::{NumberRange, ValueRange};

/// Which notes are down on each device, and where its controllers stand.
///
/// A device takes 2.4 KiB, and that once, with its first event. Devices beyond
/// [`MAX_DEVICES`](Self::MAX_DEVICES) are not remembered.
#[derive(Clone, Debug, Default)]
pub struct InputState {
    devices: HashMap<DeviceId, Box<DeviceState>, KeyState>,
}

/// What is held on one device.
#[derive(Clone, Debug)]
struct DeviceState {
    /// A bit for each note, by channel.
    notes: [u128; 16],
    /// The last value of each controller, by channel; [`NOWHERE`] before the first.
    controllers: [[u8; 128]; 16],
    /// What data entry is for, by channel.
    selected: [Selected; 16],
    /// Where a gamepad's sticks and triggers stand; the middle before the first reading.
    ways: [f32; AXES],
}

/// The axes of two sticks, and two triggers.
const AXES: usize = 6;

/// What data entry on a channel is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Selected {
    Nothing,
    Registered,
    Unregistered,
}

/// The controllers that select and set parameters (MIDI 1.0).
pub(crate) mod parameter {
    pub(crate) const COARSE: u8 = 6;
    pub(crate) const FINE: u8 = 38;
    pub(crate) const INCREMENT: u8 = 96;
    pub(crate) const DECREMENT: u8 = 97;
    pub(super) const UNREGISTERED_FINE: u8 = 98;
    pub(super) const UNREGISTERED_COARSE: u8 = 99;
    pub(super) const REGISTERED_FINE: u8 = 100;
    pub(super) const REGISTERED_COARSE: u8 = 101;
    /// Data entry, in every way there is.
    pub(crate) const DATA: [u8; 4] = [COARSE, FINE, INCREMENT, DECREMENT];
}

/// A controller that has not moved yet: no value it could have.
const NOWHERE: u8 = 0xFF;

impl InputState {
    /// How many devices are remembered.
    pub const MAX_DEVICES: usize = 1024;

    /// Nothing is held.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes an event in. Returns where its controller, stick or trigger stood before.
    pub fn take(&mut self, device: &DeviceId, event: &Event) -> Option<f32> {
        let message = match event {
            Event::Midi(message) => message,
            Event::Hid(HidEvent::Stick { stick: number, value })
            | Event::Hid(HidEvent::Trigger { trigger: number, value }) => {
                let way = usize::from(number.wrapping_sub(*HidEvent::STICKS.start()));
                let slot = self.device(device)?.ways.get_mut(way)?;
                return Some(std::mem::replace(slot, *value));
            }
            _ => return None,
        };
        match *message {
            MidiMessage::NoteOn { channel, note, .. } => {
                self.device(device)?.notes[usize::from(channel & 15)] |= 1 << (note & 127);
                None
            }
            MidiMessage::NoteOff { channel, note, .. } => {
                self.device(device)?.notes[usize::from(channel & 15)] &= !(1 << (note & 127));
                None
            }
            MidiMessage::ControlChange { channel, controller, value } => {
                let of_device = self.device(device)?;
                let channel = usize::from(channel & 15);
                // All sound off, all notes off, and the changes of mode that end every note, too (MIDI 1.0).
                match controller {
                    120 | 123..=127 => of_device.notes[channel] = 0,
                    parameter::REGISTERED_FINE | parameter::REGISTERED_COARSE => {
                        of_device.selected[channel] = Selected::Registered;
                    }
                    parameter::UNREGISTERED_FINE | parameter::UNREGISTERED_COARSE => {
                        of_device.selected[channel] = Selected::Unregistered;
                    }
                    _ => {}
                }
                let slot = &mut of_device.controllers[channel][usize::from(controller & 127)];
                let before = std::mem::replace(slot, value);
                (before != NOWHERE).then(|| before.into())
            }
            MidiMessage::Reset => {
                self.device(device)?.notes = [0; 16];
                None
            }
            _ => None,
        }
    }

    /// Forgets what is held on a device: it is gone.
    pub fn forget(&mut self, device: &DeviceId) {
        self.devices.remove(device);
    }

    /// Whether one of these notes is down; on any channel or device where none is given.
    pub fn is_note_down(&self, notes: NumberRange, channel: Option<u8>, device: Option<&DeviceId>) -> bool {
        let wanted = mask(notes);
        self.any(device, |held| match channel {
            Some(channel) => held.notes[usize::from(channel & 15)] & wanted != 0,
            None => held.notes.iter().any(|down| down & wanted != 0),
        })
    }

    /// Whether a controller stands in the range; on any channel or device where none is given.
    pub fn is_controller_at(
        &self,
        controller: u8,
        value: ValueRange,
        channel: Option<u8>,
        device: Option<&DeviceId>,
    ) -> bool {
        let stands = |values: &[u8; 128]| {
            let at = values[usize::from(controller & 127)];
            at != NOWHERE && value.contains(at.into())
        };
        self.any(device, |held| match channel {
            Some(channel) => stands(&held.controllers[usize::from(channel & 15)]),
            None => held.controllers.iter().any(stands),
        })
    }

    /// Where a controller of a device stands; none before it has moved.
    pub fn controller(&self, device: &DeviceId, channel: u8, controller: u8) -> Option<u8> {
        let at = self.devices.get(device)?.controllers[usize::from(channel & 15)][usize::from(controller & 127)];
        (at != NOWHERE).then_some(at)
    }

    /// Puts a controller somewhere without its having said so: an increment did.
    pub(crate) fn put_controller(&mut self, device: &DeviceId, channel: u8, controller: u8, value: u8) {
        if let Some(held) = self.device(device) {
            held.controllers[usize::from(channel & 15)][usize::from(controller & 127)] = value & 127;
        }
    }

    /// The parameter that data entry on a channel is for: whether it is a registered one, and which, 0 to
    /// 16 383. `None` if none is selected, or only half of one, or the null one.
    pub(crate) fn parameter(&self, device: &DeviceId, channel: u8) -> Option<(bool, u16)> {
        let held = self.devices.get(device)?;
        let (registered, coarse, fine) = match held.selected[usize::from(channel & 15)] {
            Selected::Nothing => return None,
            Selected::Registered => (true, parameter::REGISTERED_COARSE, parameter::REGISTERED_FINE),
            Selected::Unregistered => (false, parameter::UNREGISTERED_COARSE, parameter::UNREGISTERED_FINE),
        };
        let number = fourteen_bits(self.controller(device, channel, coarse)?, self.controller(device, channel, fine)?);
        (number != NULL_PARAMETER).then_some((registered, number))
    }

    fn any(&self, device: Option<&DeviceId>, holds: impl Fn(&DeviceState) -> bool) -> bool {
        match device {
            Some(device) => self.devices.get(device).is_some_and(|held| holds(held)),
            None => self.devices.values().any(|held| holds(held)),
        }
    }

    fn device(&mut self, device: &DeviceId) -> Option<&mut DeviceState> {
        // Twice the lookup is less than a clone of the name that an entry would need.
        if !self.devices.contains_key(device) {
            if self.devices.len() >= Self::MAX_DEVICES {
                return None;
            }
            let nothing = DeviceState {
                notes: [0; 16],
                controllers: [[NOWHERE; 128]; 16],
                selected: [Selected::Nothing; 16],
                ways: [0.0; AXES],
            };
            self.devices.insert(device.clone(), Box::new(nothing));
        }
        self.devices.get_mut(device).map(|held| &mut **held)
    }
}

/// The parameter that stands for none.
const NULL_PARAMETER: u16 = 0x3FFF;

/// A value of two parts of 7 bits each.
pub(crate) fn fourteen_bits(coarse: u8, fine: u8) -> u16 {
    u16::from(coarse & 127) << 7 | u16::from(fine & 127)
}

/// A bit for each note of the range.
fn mask(NumberRange { first, last }: NumberRange) -> u128 {
    let up_to_last = u128::MAX >> (127 - last.min(127));
    up_to_last & u128::MAX.checked_shl(first.into()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(note: u8, channel: u8) -> Event {
        MidiMessage::NoteOn { channel, note, velocity: 1 }.into()
    }

    fn cc(controller: u8, value: u8) -> Event {
        MidiMessage::ControlChange { channel: 0, controller, value }.into()
    }

    #[test]
    fn a_note_is_down_until_it_is_up_or_all_are() {
        let (pads, keys) = (DeviceId::new("pads"), DeviceId::new("keys"));
        let mut held = InputState::new();
        held.take(&pads, &on(36, 9));
        let down = |held: &InputState, channel, device| held.is_note_down(NumberRange::one(36), channel, device);
        assert!(down(&held, None, None) && down(&held, Some(9), Some(&pads)));
        assert!(!down(&held, Some(0), None) && !down(&held, None, Some(&keys)));
        held.take(&pads, &MidiMessage::NoteOff { channel: 9, note: 36, velocity: 0 }.into());
        assert!(!down(&held, None, None));

        held.take(&pads, &on(36, 0));
        held.take(&pads, &on(36, 1));
        held.take(&pads, &cc(123, 0));
        assert!(!down(&held, Some(0), None), "all notes off");
        assert!(down(&held, Some(1), None), "on that channel only");
        held.take(&pads, &MidiMessage::Reset.into());
        assert!(!down(&held, None, None));
    }

    #[test]
    fn a_controller_is_nowhere_before_it_moves() {
        let pads = DeviceId::new("pads");
        let mut held = InputState::new();
        assert!(!held.is_controller_at(7, ValueRange::SEVEN_BIT, None, None));
        assert_eq!(held.take(&pads, &cc(7, 0)), None);
        assert!(held.is_controller_at(7, ValueRange { min: 0, max: 0 }, None, None));
        assert_eq!(held.take(&pads, &cc(7, 127)), Some(0.0));
        assert_eq!(held.controller(&pads, 0, 7), Some(127));
        held.forget(&pads);
        assert_eq!(held.controller(&pads, 0, 7), None);
    }

    #[test]
    fn a_parameter_is_selected_in_two_halves() {
        let pads = DeviceId::new("pads");
        let mut held = InputState::new();
        let mut take = |controller, value| {
            held.take(&pads, &cc(controller, value));
            held.parameter(&pads, 0)
        };
        assert_eq!(take(99, 1), None, "half of one");
        assert_eq!(take(98, 2), Some((false, 130)));
        assert_eq!(take(101, 0), None);
        assert_eq!(take(100, 0), Some((true, 0)));
        assert_eq!(take(100, 127), Some((true, 127)));
        assert_eq!(take(101, 127), None, "the null parameter");
        assert_eq!(take(98, 2), Some((false, 130)));
    }

    #[test]
    fn a_stick_begins_in_the_middle() {
        let pad = DeviceId::new("pad");
        let mut held = InputState::new();
        let stick = |value| Event::from(HidEvent::Stick { stick: 131, value });
        assert_eq!(held.take(&pad, &stick(0.5)), Some(0.0));
        assert_eq!(held.take(&pad, &stick(1.0)), Some(0.5));
        assert_eq!(held.take(&pad, &HidEvent::Trigger { trigger: 133, value: 1.0 }.into()), Some(0.0));
    }

    #[test]
    fn a_range_of_notes_is_a_mask() {
        assert_eq!(mask(NumberRange::ALL), u128::MAX);
        assert_eq!(mask(NumberRange::one(0)), 1);
        assert_eq!(mask(NumberRange::one(127)), 1 << 127);
        assert_eq!(mask(NumberRange { first: 3, last: 5 }), 0b11_1000);
    }

    #[test]
    fn more_devices_than_there_is_room_for_are_not_remembered() {
        let mut held = InputState::new();
        for n in 0..InputState::MAX_DEVICES + 10 {
            held.take(&DeviceId::instance("port", n), &on(1, 0));
        }
        assert_eq!(held.devices.len(), InputState::MAX_DEVICES);
    }
}
