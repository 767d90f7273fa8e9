//! Keys of devices (notes, buttons), and what an event does to them: down, up, all up.

use conductor_event::{Event, GestureEvent, HidEvent, MidiMessage, Press};

/// A key of a device: a note on a channel, or a button or key of what has no channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// 0 to 15; [`Key::NO_CHANNEL`] for a button.
    channel: u8,
    number: u16,
}

impl Key {
    const NO_CHANNEL: u8 = 0xFF;

    pub(crate) fn note(channel: u8, note: u8) -> Self {
        Self { channel, number: note.into() }
    }

    pub(crate) fn button(button: u16) -> Self {
        Self { channel: Self::NO_CHANNEL, number: button }
    }

    pub(crate) fn number(self) -> u16 {
        self.number
    }

    pub(crate) fn is_note_on(self, channel: u8) -> bool {
        self.channel == channel
    }

    pub(crate) fn is_note(self) -> bool {
        self.channel != Self::NO_CHANNEL
    }

    /// The key whose press an event is, or with whose press a gesture was complete; `None` if it is no press.
    pub(crate) fn pressed(event: &Event) -> Option<Self> {
        let press = match event {
            Event::Gesture(GestureEvent::LongPress { press, .. } | GestureEvent::DoubleTap { press, .. }) => *press,
            Event::Gesture(GestureEvent::Chord(chord)) => *chord.presses().last()?,
            event => return KeyChange::of(event).pressed(),
        };
        Some(press.channel().map_or(Self::button(press.key), |channel| Self { channel, number: press.key }))
    }

    pub(crate) fn press(self, velocity: u8) -> Press {
        Press::new(self.is_note().then_some(self.channel), self.number, velocity)
    }
}

/// What an event does to keys.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum KeyChange {
    Down(Key, u8),
    Up(Key),
    /// All notes of a channel, or of all, come up.
    AllUp(Option<u8>),
    None,
}

impl KeyChange {
    pub(crate) fn of(event: &Event) -> Self {
        match *event {
            Event::Midi(MidiMessage::NoteOn { channel, note, velocity }) => {
                Self::Down(Key::note(channel, note), velocity)
            }
            Event::Midi(MidiMessage::NoteOff { channel, note, .. }) => Self::Up(Key::note(channel, note)),
            Event::Hid(HidEvent::Button { button, pressed: true }) => Self::Down(Key::button(button), 127),
            Event::Hid(HidEvent::Button { button, pressed: false }) => Self::Up(Key::button(button)),
            Event::Midi(MidiMessage::ControlChange { channel, controller: 120 | 123..=127, .. }) => {
                Self::AllUp(Some(channel))
            }
            Event::Midi(MidiMessage::Reset) => Self::AllUp(None),
            _ => Self::None,
        }
    }

    /// The key that goes down.
    pub(crate) fn pressed(self) -> Option<Key> {
        if let Self::Down(key, _) = self { Some(key) } else { None }
    }

    /// Whether the key is up then, or was: one that goes down may not have come up where its end was lost.
    pub(crate) fn lets_go(self, key: Key) -> bool {
        match self {
            Self::Down(other, _) | Self::Up(other) => other == key,
            Self::AllUp(channel) => channel.is_none_or(|channel| key.is_note_on(channel)) && key.is_note(),
            Self::None => false,
        }
    }
}
