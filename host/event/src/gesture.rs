//! What a gesture was, with everything a rule or an action could ask of it, copied when it was found.

use std::fmt;

/// An event recognized from several others. Part of an [`Event`](crate::Event); the engine makes
/// them, no port does.
///
/// A key is a note, 0 to 127, a gamepad's button, 128 to 144, or a keyboard's key, 257 to 1023. One that is no note is
/// pressed as hard as can be: 127.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GestureEvent {
    /// A key has been down for long enough.
    LongPress {
        /// The press.
        press: Press,
        /// For how many milliseconds it has been down.
        held_ms: u32,
    },
    /// A key was pressed twice, quickly.
    DoubleTap {
        /// The second press.
        press: Press,
        /// How hard the first press was.
        first_velocity: u8,
        /// Milliseconds between the two.
        interval_ms: u32,
    },
    /// Several keys went down together.
    Chord(ChordEvent),
    /// An endless encoder was turned.
    Turn {
        /// The MIDI channel, 0 to 15.
        channel: u8,
        /// The controller, 0 to 127.
        controller: u8,
        /// How far: clockwise is positive.
        steps: i8,
    },
    /// A controller that comes in two parts moved.
    FineControl {
        /// The MIDI channel, 0 to 15.
        channel: u8,
        /// The controller of the coarse part, 0 to 31.
        controller: u8,
        /// Both parts, 0 to 16 383.
        value: u16,
    },
    /// A parameter was set.
    Parameter {
        /// The MIDI channel, 0 to 15.
        channel: u8,
        /// Whether it is a registered one (RPN) or not (NRPN).
        registered: bool,
        /// Which, 0 to 16 383.
        parameter: u16,
        /// To what, 0 to 16 383.
        value: u16,
    },
}

/// A key that went down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Press {
    /// The note, button or key.
    pub key: u16,
    /// How hard, 1 to 127.
    pub velocity: u8,
    /// One more than the channel, so that an event, which may have ten presses, is no larger; 0 if it is no note.
    channel: u8,
}

impl Press {
    /// The press of a note on a channel, 0 to 15, or of a button or key.
    pub fn new(channel: Option<u8>, key: u16, velocity: u8) -> Self {
        Self { key, velocity, channel: channel.map_or(0, |channel| channel.saturating_add(1)) }
    }

    /// The MIDI channel, 0 to 15; `None` if it is no note.
    pub fn channel(self) -> Option<u8> {
        self.channel.checked_sub(1)
    }
}

/// Several keys that went down together.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChordEvent {
    presses: [Press; Self::MAX_KEYS],
    count: u8,
    /// Milliseconds between the first and the last press.
    pub spread_ms: u32,
}

impl ChordEvent {
    /// The most keys in a chord: two hands have no more fingers.
    pub const MAX_KEYS: usize = 10;

    /// A chord of these presses, up to [`MAX_KEYS`](Self::MAX_KEYS).
    pub fn new(presses: impl IntoIterator<Item = Press>, spread_ms: u32) -> Self {
        let mut chord = Self { presses: [Press::default(); Self::MAX_KEYS], count: 0, spread_ms };
        for (slot, press) in chord.presses.iter_mut().zip(presses) {
            *slot = press;
            chord.count += 1;
        }
        chord
    }

    /// The presses, in the order of the keys.
    pub fn presses(&self) -> &[Press] {
        &self.presses[..usize::from(self.count)]
    }
}

impl fmt::Debug for ChordEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChordEvent").field("presses", &self.presses()).field("spread_ms", &self.spread_ms).finish()
    }
}

impl GestureEvent {
    /// The key, lowest key, controller or parameter.
    pub fn number(&self) -> u16 {
        match *self {
            Self::LongPress { press, .. } | Self::DoubleTap { press, .. } => press.key,
            Self::Chord(chord) => chord.presses().first().map_or(0, |press| press.key),
            Self::Turn { controller, .. } | Self::FineControl { controller, .. } => controller.into(),
            Self::Parameter { parameter, .. } => parameter,
        }
    }

    /// The MIDI channel, 0 to 15; of a chord that of its lowest key; `None` if it is of buttons.
    pub fn channel(&self) -> Option<u8> {
        match *self {
            Self::LongPress { press, .. } | Self::DoubleTap { press, .. } => press.channel(),
            Self::Chord(chord) => chord.presses().first().and_then(|press| press.channel()),
            Self::Turn { channel, .. } | Self::FineControl { channel, .. } | Self::Parameter { channel, .. } => {
                Some(channel)
            }
        }
    }

    /// How hard the (last) press was, of a chord the hardest, 1 to 127; the steps of a turn; a value of 14
    /// bits.
    pub fn value(&self) -> i32 {
        match *self {
            Self::LongPress { press, .. } | Self::DoubleTap { press, .. } => press.velocity.into(),
            Self::Chord(chord) => chord.presses().iter().map(|press| press.velocity).max().unwrap_or(0).into(),
            Self::Turn { steps, .. } => steps.into(),
            Self::FineControl { value, .. } | Self::Parameter { value, .. } => value.into(),
        }
    }

    /// The same from 0 to 1; a turn by nothing would be 0.5, 64 steps either way an end.
    pub fn unit(&self) -> f32 {
        let value = self.value() as f32;
        match self {
            Self::LongPress { .. } | Self::DoubleTap { .. } | Self::Chord(_) => (value / 127.0).min(1.0),
            Self::Turn { .. } => (0.5 + value / 128.0).clamp(0.0, 1.0),
            Self::FineControl { .. } | Self::Parameter { .. } => (value / 16_383.0).min(1.0),
        }
    }
}

/// What follows the gesture's word in a timeline: `36 100 after 500ms`.
impl fmt::Display for GestureEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::LongPress { press, held_ms } => write!(f, "{press} after {held_ms}ms"),
            Self::DoubleTap { press, first_velocity, interval_ms } => {
                write!(f, "{press} after {first_velocity} {interval_ms}ms ago")
            }
            Self::Chord(chord) => {
                for (index, press) in chord.presses().iter().enumerate() {
                    write!(f, "{}{press}", if index > 0 { ", " } else { "" })?;
                }
                write!(f, " within {}ms", chord.spread_ms)
            }
            Self::Turn { channel, controller, steps } => {
                write!(f, "{controller} {steps:+}")?;
                write_channel(f, Some(channel))
            }
            Self::FineControl { channel, value, .. } | Self::Parameter { channel, value, .. } => {
                write!(f, "{} {value}", self.number())?;
                write_channel(f, Some(channel))
            }
        }
    }
}

impl fmt::Display for Press {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.velocity)?;
        write_channel(f, self.channel())
    }
}

fn write_channel(f: &mut fmt::Formatter<'_>, channel: Option<u8>) -> fmt::Result {
    match channel {
        None | Some(0) => Ok(()),
        Some(channel) => write!(f, " ch {channel}"),
    }
}
