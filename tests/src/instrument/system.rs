//! Ports of the system's MIDI, each with a client of its own name.

use std::sync::mpsc::Sender;

use midir::os::unix::{VirtualInput as _, VirtualOutput as _};
use midir::{Ignore, MidiInput, MidiInputConnection, MidiOutput, MidiOutputConnection};

pub(super) struct Output(MidiOutputConnection);

impl Output {
    pub(super) fn new(name: &str) -> Self {
        let client = MidiOutput::new(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self(client.create_virtual("out").unwrap_or_else(|error| panic!("{name}: {error}")))
    }

    /// Connected to an input whose name holds `port`; `None` if there is no such input yet.
    pub(super) fn connected(port: &str) -> Option<Self> {
        let client = MidiOutput::new("player").unwrap_or_else(|error| panic!("{port}: {error}"));
        let named = |found: &_| client.port_name(found).is_ok_and(|name| name.contains(port));
        let found = client.ports().into_iter().find(named)?;
        Some(Self(client.connect(&found, "out").unwrap_or_else(|error| panic!("{port}: {error}"))))
    }

    pub(super) fn send(&mut self, message: &[u8]) {
        self.0.send(message).unwrap();
    }
}

/// Open for as long as it lives.
pub(super) struct Input {
    _connection: MidiInputConnection<Sender<Vec<u8>>>,
}

impl Input {
    pub(super) fn new(name: &str, sender: Sender<Vec<u8>>) -> Self {
        let connection = client(name).create_virtual("in", pass, sender);
        Self { _connection: connection.unwrap_or_else(|error| panic!("{name}: {error}")) }
    }

    /// Connected to an output whose name holds `port`; `None` if there is no such output yet.
    pub(super) fn connected(port: &str, sender: &Sender<Vec<u8>>) -> Option<Self> {
        let client = client("listener");
        let named = |found: &_| client.port_name(found).is_ok_and(|name| name.contains(port));
        let found = client.ports().into_iter().find(named)?;
        let connection = client.connect(&found, "in", pass, sender.clone());
        Some(Self { _connection: connection.unwrap_or_else(|error| panic!("{port}: {error}")) })
    }
}

fn client(name: &str) -> MidiInput {
    let mut client = MidiInput::new(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    client.ignore(Ignore::None);
    client
}

fn pass(_: u64, bytes: &[u8], sender: &mut Sender<Vec<u8>>) {
    let _ = sender.send(bytes.to_vec());
}
