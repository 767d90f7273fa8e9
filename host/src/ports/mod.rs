//! Ports: the raw channels that the system and the network offer.
//!
//! Every protocol is a [`PortBackend`]: it lists ports, and opens them. The simulated one has the
//! same trait as the real ones. [`supervisor`] keeps all matching ports open; [`binding`] decides
//! which match; [`sink`] is where a port's events go in.
//!
//! May import: the engine's events, `clock`. Knows no rules, actions or features.

use std::fmt;

use serde::Serialize;

pub mod binding;
pub mod midi;
pub mod osc;
mod osc_shape;
pub mod simulated;
pub mod sink;
pub mod supervisor;

pub use binding::{BindingSpec, NameMatcher};
pub use sink::EventSink;

/// What a port speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// MIDI 1.0.
    Midi,
    /// Open Sound Control 1.0.
    Osc,
}

/// Which way events go, seen from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the controller to the host.
    Input,
    /// From the host to an instrument.
    Output,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Midi => "midi",
            Self::Osc => "osc",
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
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct PortInfo {
    /// What people call it; not unique (twins share it).
    pub name: String,
    /// The backend's own key for it, unique per direction within the backend.
    pub key: String,
    /// The backend, such as `alsa`.
    pub backend: &'static str,
    /// What it speaks.
    pub protocol: Protocol,
    /// Which way.
    pub direction: Direction,
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
pub trait Connection: Send {}

/// An open MIDI output. Dropping it closes the port.
pub trait MidiOut: Send {
    /// Sends one whole MIDI message, without running status.
    ///
    /// # Errors
    /// When the driver refuses it. A driver's Ok means only that it took it.
    fn send(&mut self, message: &[u8]) -> Result<(), PortError>;
}
