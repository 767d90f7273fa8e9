//! Bindings for the port thread: which port matches, which channels of it are bound, and which ports to create.

use std::fmt;

use super::matcher::Specificity;
use super::{Direction, Matcher, PortInfo, Protocol};
use conductor_net::senders::Senders;
use conductor_stdx::device_defaults::{USUAL_DEAD_ZONE, USUAL_RATE};

/// A configured binding, as the ports side needs it.
#[derive(Debug, Clone)]
pub struct BindingSpec {
    /// The name that events get.
    pub alias: String,
    /// What its ports speak.
    pub protocol: Protocol,
    /// Matchers for its input, of which any has to match; empty if it has no input.
    pub input: Vec<Matcher>,
    /// Matchers for its output, of which any has to match; empty if it has no output.
    pub output: Vec<Matcher>,
    /// The directions that it asks for by themselves; without any, one of the two is enough.
    pub needs: Vec<Direction>,
    /// The part of its port that is its own.
    pub channels: Channels,
    /// Events that its device may send in a second, at least 1.
    pub max_events_per_sec: u32,
    /// How far a stick has to leave its middle before it counts, 0 to 1.
    pub dead_zone: f32,
    /// Whether its device, a keyboard or a mouse, is to be heard by this host alone.
    pub grab: bool,
    /// What has to be made for it.
    pub made: OwnPorts,
}

impl BindingSpec {
    /// A binding that nothing matches.
    pub fn new(alias: &str, protocol: Protocol) -> Self {
        Self {
            alias: alias.to_owned(),
            protocol,
            input: Vec::new(),
            output: Vec::new(),
            needs: Vec::new(),
            channels: Channels::ALL,
            max_events_per_sec: USUAL_RATE,
            dead_zone: USUAL_DEAD_ZONE,
            grab: false,
            made: OwnPorts::Nothing,
        }
    }

    /// What tells its port of this direction.
    pub fn matchers(&self, direction: Direction) -> &[Matcher] {
        match direction {
            Direction::Input => &self.input,
            Direction::Output => &self.output,
        }
    }

    /// How well the port fits; `None` if it does not.
    pub fn fits(&self, port: &PortInfo) -> Option<Specificity> {
        let matching = self.matchers(port.direction).iter().filter(|matcher| matcher.matches(port));
        matching.map(Matcher::specificity).max().filter(|_| self.protocol == port.protocol)
    }
}

/// Ports that the host creates for a binding.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OwnPorts {
    /// Nothing: the system has the ports.
    #[default]
    Nothing,
    /// MIDI ports of the host's own, called by the alias, which other programs see.
    Virtual,
    /// Endpoints in the network.
    Endpoints {
        /// Where packets are received.
        listen: Option<Listen>,
        /// Where packets go to.
        send: Option<Place>,
    },
}

/// A host and a port in the network, as they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// A name or an address.
    pub host: String,
    /// The port's number.
    pub port: u16,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// Where packets are received, and from whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// The local address.
    pub at: Place,
    /// How packets come.
    pub transport: Transport,
    /// The only senders that are heard; everybody if there are none.
    pub allow: Vec<Senders>,
}

impl Listen {
    /// What listings call it: `127.0.0.1:9000`, `tcp 127.0.0.1:9000`.
    pub fn name(&self) -> String {
        match self.transport {
            Transport::Udp => self.at.to_string(),
            Transport::Tcp => format!("tcp {}", self.at),
        }
    }
}

/// How packets come through the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Transport {
    /// One packet in each datagram.
    #[default]
    Udp,
    /// A stream of packets, framed by SLIP.
    Tcp,
}

/// A set of MIDI channels, and of what has no channel: system messages, and everything that is not MIDI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channels(u32);

impl Channels {
    /// Everything.
    pub const ALL: Self = Self(0x1_FFFF);
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// How many slots there are: 16 channels, and what has none.
    pub const SLOTS: usize = 17;

    /// These channels, 0 to 15, and not what has none.
    pub fn only(channels: impl IntoIterator<Item = u8>) -> Self {
        Self(channels.into_iter().fold(0, |set, channel| set | 1 << (channel & 15)))
    }

    /// The slot of an event with this channel.
    pub fn slot(channel: Option<u8>) -> usize {
        channel.map_or(16, |channel| usize::from(channel & 15))
    }

    /// Whether the slot is in the set.
    pub fn has(self, slot: usize) -> bool {
        self.0 >> slot & 1 == 1
    }

    /// What is in both.
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is in this set but not in the other.
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}
