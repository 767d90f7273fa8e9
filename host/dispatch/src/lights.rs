//! What the lights and motor faders of one output show.
//!
//! Mappings say what a light shows while they wait, and what it shows when they have fired. Each mode has
//! a page of its own, over one that is for every mode. The page is shown when its mode becomes active and
//! when the port comes (back), so that a device always shows what its controls will do.

use std::collections::BTreeMap;

use conductor_engine::{MidiMessage, ModeIx};

/// A light or a fader: the status of the messages that set it, with the channel, and its number.
type Place = (u8, u8);

/// One page: what each light shows. Sorted, so that it is sent in the same order each time.
type Page = BTreeMap<Place, MidiMessage>;

/// The lights of one output.
#[derive(Debug, Default)]
pub struct Lights {
    /// By mode; none is for every mode.
    pages: BTreeMap<Option<ModeIx>, Page>,
    active: Option<ModeIx>,
}

impl Lights {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Takes over what lights show while nothing has happened, by mode, and which mode is active. Returns
    /// what is to be sent: lights that no mapping sets any more go dark.
    pub fn replace(&mut self, idle: &[(Option<ModeIx>, MidiMessage)], active: Option<ModeIx>) -> Vec<MidiMessage> {
        let before = self.shown();
        self.pages.clear();
        for (mode, message) in idle {
            if let Some(place) = place(message) {
                self.pages.entry(*mode).or_default().insert(place, message.clone());
            }
        }
        self.active = active;
        self.changes(&before)
    }

    /// Has a light show this from now on, in this mode. True when it is to be sent now.
    pub fn set(&mut self, mode: Option<ModeIx>, message: &MidiMessage) -> bool {
        let Some(place) = place(message) else { return true };
        self.pages.entry(mode).or_default().insert(place, message.clone());
        match mode {
            Some(_) => mode == self.active,
            // A mode's own page lies over the one for every mode.
            None => !self.page(self.active).is_some_and(|page| page.contains_key(&place)),
        }
    }

    /// Another mode is active. Returns what is to be sent.
    pub fn turn_to(&mut self, mode: ModeIx) -> Vec<MidiMessage> {
        let before = self.shown();
        self.active = Some(mode);
        self.changes(&before)
    }

    /// Everything that is shown, to be sent to a port that has just come.
    pub fn all(&self) -> Vec<MidiMessage> {
        self.shown().into_values().collect()
    }

    /// What makes everything dark. Nothing is shown any more.
    pub fn out(&mut self) -> Vec<MidiMessage> {
        let before = self.shown();
        self.pages.clear();
        self.changes(&before)
    }

    fn page(&self, mode: Option<ModeIx>) -> Option<&Page> {
        mode.and_then(|mode| self.pages.get(&Some(mode)))
    }

    fn shown(&self) -> Page {
        let mut shown = self.pages.get(&None).cloned().unwrap_or_default();
        shown.extend(self.page(self.active).into_iter().flatten().map(|(place, message)| (*place, message.clone())));
        shown
    }

    /// What leads from what was shown before to what is shown now.
    fn changes(&self, before: &Page) -> Vec<MidiMessage> {
        let now = self.shown();
        let gone = before.iter().filter(|(place, _)| !now.contains_key(place)).filter_map(|(_, message)| dark(message));
        let new = now.iter().filter(|(place, message)| before.get(place) != Some(message));
        gone.chain(new.map(|(_, message)| message.clone())).collect()
    }
}

/// The light that a message sets; `None` if it sets none, and is only sent.
fn place(message: &MidiMessage) -> Option<Place> {
    Some(match *message {
        MidiMessage::NoteOn { channel, note, .. } | MidiMessage::NoteOff { channel, note, .. } => {
            (0x90 | channel, note)
        }
        MidiMessage::PolyAftertouch { channel, note, .. } => (0xA0 | channel, note),
        MidiMessage::ControlChange { channel, controller, .. } => (0xB0 | channel, controller),
        MidiMessage::Aftertouch { channel, .. } => (0xD0 | channel, 0),
        MidiMessage::PitchBend { channel, .. } => (0xE0 | channel, 0),
        _ => return None,
    })
}

/// The message that makes the light of another message dark. A motor fader stays where it is: it should not run
/// down because a mode is left.
fn dark(message: &MidiMessage) -> Option<MidiMessage> {
    match *message {
        MidiMessage::NoteOn { channel, note, .. } => Some(MidiMessage::NoteOff { channel, note, velocity: 0 }),
        MidiMessage::ControlChange { channel, controller, value } if value > 0 => {
            Some(MidiMessage::ControlChange { channel, controller, value: 0 })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn light(note: u8, velocity: u8) -> MidiMessage {
        MidiMessage::NoteOn { channel: 0, note, velocity }
    }

    fn dark_light(note: u8) -> MidiMessage {
        MidiMessage::NoteOff { channel: 0, note, velocity: 0 }
    }

    const PLAY: Option<ModeIx> = Some(ModeIx(0));
    const EDIT: Option<ModeIx> = Some(ModeIx(1));

    // ACT-5: a mode's lights are those of its mappings, and come back with it.
    #[test]
    fn each_mode_has_its_page_over_the_one_for_all() {
        let mut lights = Lights::default();
        let idle = [(PLAY, light(1, 10)), (EDIT, light(2, 20)), (None, light(2, 5)), (None, light(3, 30))];
        assert_eq!(lights.replace(&idle, PLAY), [light(1, 10), light(2, 5), light(3, 30)]);
        assert!(lights.set(PLAY, &light(1, 127)));
        assert!(!lights.set(EDIT, &light(2, 99)), "not now");
        assert_eq!(lights.turn_to(ModeIx(1)), [dark_light(1), light(2, 99)]);
        assert!(!lights.set(None, &light(2, 6)), "the mode's own is over it");
        assert_eq!(lights.turn_to(ModeIx(0)), [light(1, 127), light(2, 6)]);
        assert_eq!(lights.all(), [light(1, 127), light(2, 6), light(3, 30)]);
        assert_eq!(lights.replace(&[(None, light(3, 30))], PLAY), [dark_light(1), dark_light(2)]);
        assert_eq!(lights.out(), [dark_light(3)]);
    }

    #[test]
    fn what_sets_no_light_is_only_sent() {
        let mut lights = Lights::default();
        assert!(lights.set(None, &MidiMessage::ProgramChange { channel: 0, program: 3 }));
        assert!(lights.all().is_empty());
    }

    proptest! {
        /// A device that gets what is to be sent, and nothing else, shows what it should after every step.
        #[test]
        fn the_device_shows_the_page(steps in prop::collection::vec((0u8..4, 0u8..4, 0u8..3, 1u8..128), 0..60)) {
            let mut lights = Lights::default();
            let mut device: BTreeMap<u8, u8> = BTreeMap::new();
            let mut receive = |messages: Vec<MidiMessage>| {
                for message in messages {
                    match message {
                        MidiMessage::NoteOn { note, velocity, .. } => drop(device.insert(note, velocity)),
                        MidiMessage::NoteOff { note, .. } => drop(device.remove(&note)),
                        other => panic!("{other:?}"),
                    }
                }
                device.clone()
            };
            for (step, note, mode, velocity) in steps {
                let mode_ix = (mode < 2).then_some(ModeIx(mode.into()));
                let message = light(note, velocity);
                let sent = match step {
                    0 => lights.turn_to(ModeIx(u16::from(mode))),
                    1 => lights.replace(&[(mode_ix, message)], lights.active),
                    _ => if lights.set(mode_ix, &message) { vec![message] } else { vec![] },
                };
                let shown = receive(sent);
                let expected: BTreeMap<u8, u8> = lights.all().iter().map(|message| match *message {
                    MidiMessage::NoteOn { note, velocity, .. } => (note, velocity),
                    ref other => panic!("{other:?}"),
                }).collect();
                prop_assert_eq!(shown, expected);
            }
            prop_assert!(receive(lights.out()).is_empty());
        }
    }
}
