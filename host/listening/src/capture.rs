//! What a session has heard: of each control the first events and the last, so that one that moves without end hides no
//! other.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use conductor_event::{DeviceId, Event, HidEvent, MidiMessage, Nanos};

/// Events of each control that are kept from its beginning.
const MAX_FIRST: usize = 32;
/// Events of each control that are kept to its end.
const MAX_LAST: usize = 96;
/// Controls that are told apart; the events of more are left out.
const MAX_CONTROLS: usize = 2048;

/// An event that was heard.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// From 1, in the order in which the session heard them. Those between two that are kept were others of a control that
    /// sent many.
    pub number: u64,
    /// When it came.
    pub at: Nanos,
    /// Where from: the alias of its binding, or the name of its port.
    pub device: DeviceId,
    /// What came.
    pub event: Event,
}

/// What is moved: the same for the press of a key and for its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Control {
    Note(u8, u8),
    Pressure(u8, u8),
    Controller(u8, u8),
    Pad(u16),
    Dmx(u16, u16),
    Osc(Arc<str>),
    /// What its kind and channel identify: pitch bend, programs, system messages.
    Other(u8, Option<u8>),
}

impl Control {
    fn of(event: &Event) -> Self {
        match event {
            Event::Midi(MidiMessage::NoteOn { channel, note, .. } | MidiMessage::NoteOff { channel, note, .. }) => {
                Self::Note(*channel, *note)
            }
            Event::Midi(MidiMessage::PolyAftertouch { channel, note, .. }) => Self::Pressure(*channel, *note),
            Event::Midi(MidiMessage::ControlChange { channel, controller, .. }) => {
                Self::Controller(*channel, *controller)
            }
            Event::Hid(moved @ (HidEvent::Button { .. } | HidEvent::Stick { .. } | HidEvent::Trigger { .. })) => {
                Self::Pad(moved.number())
            }
            Event::ArtNet(change) => Self::Dmx(change.universe, change.channel),
            Event::Osc(message) => Self::Osc(Arc::clone(message.address())),
            _ => Self::Other(event.kind() as u8, event.channel()),
        }
    }
}

/// The events of one control.
#[derive(Debug, Clone, Default)]
struct ControlEvents {
    first: Vec<Heard>,
    last: VecDeque<Heard>,
}

/// What a session has heard.
#[derive(Debug, Clone, Default)]
pub struct Capture {
    controls: HashMap<(DeviceId, Control), ControlEvents>,
    /// The number of the last event.
    last: u64,
}

impl Capture {
    /// Adds an event.
    pub fn add(&mut self, at: Nanos, device: &DeviceId, event: &Event) {
        self.last += 1;
        let key = (device.clone(), Control::of(event));
        if self.controls.len() >= MAX_CONTROLS && !self.controls.contains_key(&key) {
            return;
        }
        let heard = Heard { number: self.last, at, device: device.clone(), event: event.clone() };
        let kept = self.controls.entry(key).or_default();
        if kept.first.len() < MAX_FIRST {
            kept.first.push(heard);
        } else {
            if kept.last.len() == MAX_LAST {
                kept.last.pop_front();
            }
            kept.last.push_back(heard);
        }
    }

    /// What came after the event with this number, oldest first, at most `limit`.
    pub fn after(&self, number: u64, limit: usize) -> Vec<Heard> {
        let kept = self.controls.values().flat_map(|kept| kept.first.iter().chain(&kept.last));
        let mut heard: Vec<&Heard> = kept.filter(|heard| heard.number > number).collect();
        heard.sort_unstable_by_key(|heard| heard.number);
        heard.into_iter().take(limit).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller(value: u8) -> Event {
        Event::Midi(MidiMessage::ControlChange { channel: 0, controller: 7, value })
    }

    // LRN-5: a fader that moves all the time hides neither the pad that was hit before, nor the one after.
    #[test]
    fn a_fader_hides_no_pad() {
        let (mut capture, desk) = (Capture::default(), DeviceId::new("desk"));
        let pad = |note| Event::Midi(MidiMessage::NoteOn { channel: 9, note, velocity: 100 });
        capture.add(0, &desk, &pad(36));
        for at in 0..100_000_u64 {
            capture.add(at, &desk, &controller((at % 128) as u8));
        }
        capture.add(100_000, &desk, &pad(37));
        let heard = capture.after(0, usize::MAX);
        assert_eq!(heard.len(), 2 + MAX_FIRST + MAX_LAST);
        assert_eq!((heard[0].event.clone(), heard[0].number), (pad(36), 1));
        assert_eq!(heard.last().map(|heard| heard.event.clone()), Some(pad(37)));
        let end = heard.last().map_or(0, |heard| heard.number);
        assert!(capture.after(end, 10).is_empty(), "a cursor goes on from where it was");
        capture.add(100_001, &desk, &controller(1));
        assert_eq!(capture.after(end, 10).len(), 1);
    }

    #[test]
    fn a_flood_of_addresses_has_an_end() {
        let (mut capture, desk) = (Capture::default(), DeviceId::new("desk"));
        for channel in 0..16 {
            for number in 0..128 {
                let note = MidiMessage::NoteOn { channel, note: number, velocity: 1 };
                let other = MidiMessage::ControlChange { channel, controller: number, value: 1 };
                capture.add(0, &desk, &Event::Midi(note));
                capture.add(0, &desk, &Event::Midi(other));
            }
        }
        assert_eq!(capture.after(0, usize::MAX).len(), MAX_CONTROLS);
    }
}
