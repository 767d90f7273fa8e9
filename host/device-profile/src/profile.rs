//! A profile, with every control by itself.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Message;

/// How certain a fact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Reported by users, or different from one firmware to another.
    Low,
    /// What the source says, as far as is known; not compared with anything.
    Medium,
    /// What the source says, and compared with the source, with a device, or with an independent map of the device.
    High,
}

impl Confidence {
    /// The word for it, as in a file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a control is to the hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words say it")]
pub enum ControlKind {
    Pad,
    Key,
    Button,
    Fader,
    Knob,
    Encoder,
    Jog,
    Wheel,
    Strip,
    Pedal,
    Stick,
    Trigger,
    Sensor,
}

/// The words for kinds of controls.
pub(crate) const CONTROL_KINDS: &[&str] = &[
    "pad", "key", "button", "fader", "knob", "encoder", "jog", "wheel", "strip", "pedal", "stick", "trigger", "sensor",
];

/// The words for kinds of devices.
pub(crate) const KINDS: &[&str] = &[
    "pads",
    "keyboard",
    "faders",
    "knobs",
    "encoders",
    "buttons",
    "dj",
    "foot",
    "gamepad",
    "layout",
    "groovebox",
    "surface",
];

impl ControlKind {
    /// The word for it, as in a file.
    pub fn as_str(self) -> &'static str {
        CONTROL_KINDS[self as usize]
    }
}

/// How a control says how far it was turned, where it does not say where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// 1 is a step, 127 one back.
    TwosComplement,
    /// 65 is a step, 63 one back.
    BinaryOffset,
    /// 1 is a step, 65 one back.
    SignedBit,
}

/// The words for encodings.
pub(crate) const ENCODINGS: &[&str] = &["twos_complement", "binary_offset", "signed_bit"];

impl Encoding {
    /// The word for it, as in a file and in a mapping.
    pub fn as_str(self) -> &'static str {
        ENCODINGS[self as usize]
    }
}

/// A document that facts were taken from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// What controls call it.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Who published it.
    pub publisher: String,
    /// What it was compared with, and what was found. `None`: nothing.
    #[serde(default)]
    pub compared: Option<String>,
}

/// A USB device's ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct UsbId {
    /// `idVendor`.
    pub vendor: u16,
    /// `idProduct`.
    pub product: u16,
}

impl UsbId {
    /// From `1235:0103`: four hexadecimal digits each.
    pub fn parse(text: &str) -> Option<Self> {
        let (vendor, product) = text.split_once(':')?;
        let hex = |text: &str| {
            let digits = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            digits.then(|| u16::from_str_radix(text, 16).ok()).flatten()
        };
        Some(Self { vendor: hex(vendor)?, product: hex(product)? })
    }
}

impl fmt::Display for UsbId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:04x}", self.vendor, self.product)
    }
}

/// What a device answers to a SysEx identity request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SysExIdentity {
    /// The maker's id: three bytes where the first is 0, else one byte and two zeros.
    pub manufacturer: [u8; 3],
    /// Family code, 0 to 16 383.
    pub family: u16,
    /// Family member code, 0 to 16 383; `None` if members are not told apart.
    pub model: Option<u16>,
}

/// How a device's port is called; in each name `*` stands for any text, and case does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PortNames {
    /// On every system.
    pub any: Vec<String>,
    /// On Linux.
    pub linux: Vec<String>,
    /// On macOS.
    pub macos: Vec<String>,
    /// On Windows.
    pub windows: Vec<String>,
}

impl PortNames {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        [&self.any, &self.linux, &self.macos, &self.windows].into_iter().flatten().map(String::as_str)
    }
}

/// How a device is recognised.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// Its USB ids; several where revisions differ.
    pub usb: Vec<UsbId>,
    /// How the port is called that the controls of the profile send on.
    pub ports: PortNames,
    /// Its answer to an identity request.
    pub sysex: Option<SysExIdentity>,
    /// Where this is known from.
    pub source: String,
    /// How certain it is; `None` in a profile without an identity.
    pub confidence: Option<Confidence>,
}

/// The places for a drawing: rows and columns from 1, the first at the top left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// How many rows.
    pub rows: u16,
    /// How many columns.
    pub columns: u16,
}

/// A state of the device in which its controls send other messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mode {
    /// Its name, as the maker has it.
    pub name: String,
    /// How a person gets there.
    #[serde(default)]
    pub how: Option<String>,
    /// The SysEx message that brings the device there, in hex.
    #[serde(default)]
    pub enter: Option<String>,
    /// Where this is known from.
    pub source: String,
    /// How certain it is.
    pub confidence: Confidence,
}

/// What sets a light.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LightMessage {
    /// A note with the value as its velocity.
    Note,
    /// A control change.
    Cc,
    /// A SysEx message.
    Sysex,
    /// An OSC message to the control's address.
    Osc,
}

/// The words for what sets a light.
pub(crate) const LIGHT_MESSAGES: &[&str] = &["note", "cc", "sysex", "osc"];

impl LightMessage {
    /// The word for it, as in a file.
    pub fn as_str(self) -> &'static str {
        LIGHT_MESSAGES[self as usize]
    }
}

/// How lights are set, for the controls that name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Light {
    /// What controls call it.
    pub id: String,
    /// What sets it: a message with the control's own number, if no other is given.
    pub message: LightMessage,
    /// The channel, 0 to 15, where it is not the control's own.
    #[serde(default)]
    pub channel: Option<u8>,
    /// The SysEx message in hex, with `{number}` and `{value}` (or `{red}`, `{green}`, `{blue}`) in their places.
    #[serde(default)]
    pub sysex: Option<String>,
    /// Values with their meaning, such as `off = 0`; the first that is not `off` is a good one to begin with.
    #[serde(default)]
    pub values: Vec<LightValue>,
    /// More about it.
    #[serde(default)]
    pub about: Option<String>,
    /// Where this is known from.
    pub source: String,
    /// How certain it is.
    pub confidence: Confidence,
}

/// A value of a light.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LightValue {
    /// What it looks like.
    pub name: String,
    /// 0 to 127.
    pub value: u8,
}

/// One control.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Control {
    /// Its name, such as `pad 3`.
    pub name: String,
    /// What it is.
    pub kind: ControlKind,
    /// What it sends.
    pub message: Message,
    /// The values that it sends, from the lowest to the highest.
    pub range: [u16; 2],
    /// Whether a further control change (its number plus 32) has seven bits more.
    pub fourteen_bit: bool,
    /// How it says how far it was turned; `None` if it says where it stands.
    pub encoding: Option<Encoding>,
    /// Its row and column in the layout, from 1.
    pub place: Option<[u16; 2]>,
    /// The modes in which it sends this; none is all of them.
    pub modes: Vec<String>,
    /// The [`Light`] that it has.
    pub light: Option<String>,
    /// The document that this is from.
    pub source: String,
    /// How certain it is.
    pub confidence: Confidence,
    /// Where its series begins in the file, from 1.
    pub line: usize,
}

/// What is known of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// Its id: maker and name, as the file is called.
    pub id: String,
    /// Who makes it.
    pub vendor: String,
    /// What it is called.
    pub name: String,
    /// What kinds of device it is.
    pub kinds: Vec<String>,
    /// Further words that people look for it with.
    pub words: Vec<String>,
    /// What a person should know.
    pub about: Option<String>,
    /// The documents.
    pub sources: Vec<Source>,
    /// How it is recognised.
    pub identity: Identity,
    /// The places for a drawing.
    pub layout: Option<Layout>,
    /// Its modes; the first is the one that it starts in, or the one that a mapping should use.
    pub modes: Vec<Mode>,
    /// How lights are set.
    pub lights: Vec<Light>,
    /// All controls, in the order of the file.
    pub controls: Vec<Control>,
}

impl Profile {
    /// The controls that send a message: one for each mode in which it means another control. Those of the first mode come
    /// first.
    pub fn controls_for(&self, message: &Message) -> Vec<&Control> {
        let order = |control: &&Control| match control.modes.first() {
            None => 0,
            Some(mode) => self.modes.iter().position(|known| known.name == *mode).unwrap_or(usize::MAX),
        };
        let mut found: Vec<&Control> = self.controls.iter().filter(|control| control.sends(message)).collect();
        found.sort_by_key(order);
        found
    }

    /// The control's name for a message, such as `pad 3`; `None` if no control sends it. Where modes differ, that of the
    /// first mode.
    pub fn name_of(&self, message: &Message) -> Option<&str> {
        Some(&self.controls_for(message).first()?.name)
    }

    /// How the lights of a control are set.
    pub fn light_of(&self, control: &Control) -> Option<&Light> {
        let id = control.light.as_deref()?;
        self.lights.iter().find(|light| light.id == id)
    }
}

impl Control {
    /// Whether it sends this message. The pressure on a pad is the pad's.
    fn sends(&self, message: &Message) -> bool {
        match (&self.message, message) {
            (mine, theirs) if mine == theirs => true,
            (Message::Note { channel, note }, Message::PolyAftertouch { channel: other, note: pressed }) => {
                (channel, note) == (other, pressed)
            }
            (Message::Cc { channel, cc }, Message::Cc { channel: other, cc: low }) => {
                self.fourteen_bit && channel == other && cc + 32 == *low
            }
            _ => false,
        }
    }
}
