//! What a control sends.

use std::fmt;

use serde::Serialize;

/// Which message tells of a control. Channels count from 0, as on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message {
    /// A note.
    Note {
        /// 0 to 15.
        channel: u8,
        /// 0 to 127.
        note: u8,
    },
    /// A control change.
    Cc {
        /// 0 to 15.
        channel: u8,
        /// 0 to 127.
        cc: u8,
    },
    /// A non-registered parameter.
    Nrpn {
        /// 0 to 15.
        channel: u8,
        /// 0 to 16 383.
        number: u16,
    },
    /// A program change.
    Program {
        /// 0 to 15.
        channel: u8,
        /// 0 to 127, counted from 0.
        program: u8,
    },
    /// The pressure on one note.
    PolyAftertouch {
        /// 0 to 15.
        channel: u8,
        /// 0 to 127.
        note: u8,
    },
    /// The pressure on a channel.
    Aftertouch {
        /// 0 to 15.
        channel: u8,
    },
    /// Pitch bend.
    PitchBend {
        /// 0 to 15.
        channel: u8,
    },
    /// An OSC message.
    Osc {
        /// From `/` on.
        address: String,
    },
    /// A gamepad's button.
    Button {
        /// 128 to 144, as in a mapping.
        button: u8,
    },
    /// A gamepad's stick, one axis.
    Stick {
        /// 128 to 131, as in a mapping.
        axis: u8,
    },
    /// A gamepad's analog trigger.
    Trigger {
        /// 132 or 133, as in a mapping.
        trigger: u8,
    },
}

impl Message {
    /// The highest value that it can carry.
    pub fn highest(&self) -> u16 {
        match self {
            Self::PitchBend { .. } | Self::Nrpn { .. } => 16_383,
            Self::Button { .. } | Self::Stick { .. } | Self::Trigger { .. } => 1,
            _ => 127,
        }
    }
}

/// As scripts of events and `monitor` write it: `note 36 ch 9`. The channel 0 is left out.
impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let channel = match self {
            Self::Note { channel, note } => write!(f, "note {note}").map(|()| *channel),
            Self::Cc { channel, cc } => write!(f, "cc {cc}").map(|()| *channel),
            Self::Nrpn { channel, number } => write!(f, "nrpn {number}").map(|()| *channel),
            Self::Program { channel, program } => write!(f, "program {program}").map(|()| *channel),
            Self::PolyAftertouch { channel, note } => write!(f, "poly-aftertouch {note}").map(|()| *channel),
            Self::Aftertouch { channel } => write!(f, "aftertouch").map(|()| *channel),
            Self::PitchBend { channel } => write!(f, "pitch-bend").map(|()| *channel),
            Self::Osc { address } => write!(f, "osc {address}").map(|()| 0),
            Self::Button { button } => write!(f, "gamepad-button {button}").map(|()| 0),
            Self::Stick { axis } => write!(f, "gamepad-stick {axis}").map(|()| 0),
            Self::Trigger { trigger } => write!(f, "gamepad-trigger {trigger}").map(|()| 0),
        }?;
        if channel == 0 { Ok(()) } else { write!(f, " ch {channel}") }
    }
}
