//! Ports: MIDI, Stream Deck, gamepad, keyboard, mouse, OSC and Art-Net inputs and outputs, with hot-plug and rate limits.
//!
//! Every protocol is a [`PortBackend`]: it lists ports, and opens them. The simulated one has the
//! same trait as the real ones. [`supervisor`] keeps all matching ports open; [`resolve`] decides
//! which match, by the [`matcher`]s of [`binding`]s, and [`rebinding`] which would by others; [`sink`] is
//! where a port's events go in, [`limit`] (the rate limiter) and [`coalescing`] see that no device floods
//! the engine; [`status`] is what listings show.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod artnet;
mod backend_thread;
pub mod binding;
pub mod coalescing;
mod endpoint;
pub mod engine_input;
pub mod gamepad;
#[cfg(target_os = "linux")]
pub mod keyboard;
pub mod limit;
pub mod matcher;
pub mod midi;
pub mod osc;
pub mod osc_packet;
mod osc_shape;
pub mod paced_port;
mod plan;
mod port_thread;
pub mod rebinding;
mod receive_buffer;
pub mod resolve;
pub mod simulated;
pub mod sink;
pub mod slip;
pub mod status;
#[cfg(feature = "stream-deck")]
pub mod stream_deck;
pub mod supervisor;
#[cfg(test)]
mod tests;
#[cfg(target_os = "linux")]
mod usb;

pub use binding::BindingSpec;
pub use matcher::Matcher;
pub use sink::EventSink;

/// What a port speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// MIDI 1.0.
    Midi,
    /// Gamepads.
    Hid,
    /// Computer keyboards and macro pads.
    Keyboard,
    /// Mice.
    Mouse,
    /// Open Sound Control 1.0.
    Osc,
    /// DMX512 over Art-Net 4.
    ArtNet,
}

/// Which way events go, seen from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the controller to the host.
    Input,
    /// From the host to an instrument.
    Output,
}

impl Protocol {
    /// Whether people type and point with such devices, so that each is opened for a binding that asks for it and for
    /// nothing else: neither to hear what no binding matches, nor to learn.
    pub fn is_private(self) -> bool {
        matches!(self, Self::Keyboard | Self::Mouse)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Midi => "midi",
            Self::Hid => "hid",
            Self::Keyboard => "keyboard",
            Self::Mouse => "mouse",
            Self::Osc => "osc",
            Self::ArtNet => "artnet",
        })
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Input => "input",
            Self::Output => "output",
        })
    }
}

/// A port that a backend offers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct PortInfo {
    /// What people call it; not unique (twins share it).
    pub name: String,
    /// The backend's own key for it, unique per direction within the backend.
    pub key: String,
    /// The backend, such as `alsa`.
    pub backend: Cow<'static, str>,
    /// What it speaks.
    pub protocol: Protocol,
    /// Which way.
    pub direction: Direction,
    /// What else is known of it.
    pub metadata: PortMetadata,
}

impl PortInfo {
    /// A port of which nothing more is known.
    pub fn new(name: &str, key: &str, backend: &'static str, protocol: Protocol, direction: Direction) -> Self {
        let (name, key, metadata) = (name.to_owned(), key.to_owned(), PortMetadata::default());
        Self { name, key, backend: backend.into(), protocol, direction, metadata }
    }
}

/// What is known of a port beyond its name. A field is `None` if the system does not report it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct PortMetadata {
    /// The number that CoreMIDI gave the port, which it keeps for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_midi_unique_id: Option<i32>,
    /// What the device answered to a SysEx identity request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sysex_identity: Option<SysExIdentity>,
    /// The USB device that the port is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usb: Option<UsbDevice>,
    /// Which plugging of the port it is, where the backend knows: another number says that it went and came again,
    /// and that what was open of it is dead.
    #[serde(skip)]
    pub plugging: u64,
}

/// A device's answer to a SysEx identity request (MIDI 1.0 Detailed Specification, "General
/// Information").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct SysExIdentity {
    /// The maker's id: three bytes where the first is 0, else one byte and two zeros.
    pub manufacturer: [u8; 3],
    /// Family code, 0 to 16 383.
    pub family: u16,
    /// Model (family member) code, 0 to 16 383.
    pub model: u16,
}

impl SysExIdentity {
    /// The identity request, to any device: `F0 7E 7F 06 01 F7`.
    pub const REQUEST: [u8; 6] = [0xF0, 0x7E, 0x7F, 0x06, 0x01, 0xF7];

    /// Reads the answer: `F0 7E channel 06 02`, the maker, family and model, low bits first, four bytes
    /// of version, `F7`. `None` if it is another message.
    pub fn of_reply(message: &[u8]) -> Option<Self> {
        let [0xF0, 0x7E, _, 0x06, 0x02, rest @ ..] = message else { return None };
        let (manufacturer, rest) = match rest {
            [0, one, two, rest @ ..] => ([0, *one, *two], rest),
            [one, rest @ ..] => ([*one, 0, 0], rest),
            [] => return None,
        };
        let word = |low: u8, high: u8| u16::from(low & 0x7F) | u16::from(high & 0x7F) << 7;
        match rest {
            [family_low, family_high, model_low, model_high, _, _, _, _, 0xF7] => Some(Self {
                manufacturer,
                family: word(*family_low, *family_high),
                model: word(*model_low, *model_high),
            }),
            _ => None,
        }
    }
}

impl fmt::Display for SysExIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, two, three] = self.manufacturer;
        write!(f, "{one:02X} {two:02X} {three:02X}, family {}, model {}", self.family, self.model)
    }
}

/// What is known of a USB device.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct UsbDevice {
    /// `idVendor`.
    pub vendor_id: u16,
    /// `idProduct`.
    pub product_id: u16,
    /// `iSerial`, where the device has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// The bus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus: Option<u8>,
    /// The address on the bus, which is given anew with every plugging.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<u8>,
    /// The socket: the bus and the hubs' ports, such as `1-2.4`. It stays the same for as long as the
    /// cable is put into the same hole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Why a port or a whole backend is not to be had. The text is for the person who plugged it in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PortError(pub String);

/// One way to reach ports.
pub trait PortBackend: Send {
    /// A word for listings: `alsa`, `jack`, `osc`, `simulated`.
    fn name(&self) -> &'static str;

    /// Tells the backend about the configured bindings. Only backends whose ports exist because
    /// they are configured care.
    fn configure(&mut self, bindings: &[BindingSpec]) {
        let _ = bindings;
    }

    /// Whether the devices behind its MIDI outputs may understand SysEx, so that they are asked who they are.
    fn has_sysex(&self) -> bool {
        true
    }

    /// Every port there is now, in a stable order.
    ///
    /// # Errors
    /// When the backend as a whole can't be used: no sound system, no server.
    fn list(&mut self) -> Result<Vec<PortInfo>, PortError>;

    /// Opens an input; its events go into `sink` until the connection is dropped.
    ///
    /// # Errors
    /// When this port can't be opened.
    fn open_input(&mut self, port: &PortInfo, sink: EventSink) -> Result<Box<dyn Connection>, PortError>;

    /// Opens an output.
    ///
    /// # Errors
    /// When this port can't be opened, or is no output.
    fn open_output(&mut self, port: &PortInfo) -> Result<Box<dyn MidiOut>, PortError>;
}

/// An open input. Dropping it closes the port.
pub trait Connection: Send {
    /// Whether it was to be heard by this host alone, and others hear it until it is opened anew.
    fn has_let_go(&self) -> bool {
        false
    }
}

/// An open MIDI output. Dropping it closes the port.
pub trait MidiOut: Send {
    /// Sends one whole MIDI message, without running status.
    ///
    /// # Errors
    /// When the driver refuses it. A driver's Ok means only that it took it.
    fn send(&mut self, message: &[u8]) -> Result<(), PortError>;

    /// Has the display in the key of a note say a text, or nothing, beside the colour that messages set. A port whose keys have
    /// no displays ignores it.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    fn show_text(&mut self, note: u8, text: Option<&str>) -> Result<(), PortError> {
        let _ = (note, text);
        Ok(())
    }
}
