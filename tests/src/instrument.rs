//! MIDI peers: controllers and synthesizers, as virtual ports of the system's MIDI.
//!
//! What JACK's and ALSA's queues do not take in time is lost without an error, so whoever sends more
//! than a few dozen messages waits for their effects in between.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

use midir::os::unix::{VirtualInput as _, VirtualOutput as _};
use midir::{MidiInput, MidiInputConnection, MidiOutput, MidiOutputConnection};

use crate::wait::{self, PATIENCE};

/// A name that no other test's instrument has: other programs' ports are seen by every host.
pub fn name(kind: &str) -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    format!("{kind}-{}-{}", process::id(), MADE.fetch_add(1, Ordering::Relaxed))
}

/// Something to play on. Dropping it unplugs it.
pub struct Controller(MidiOutputConnection);

impl Controller {
    /// Plugs it in.
    pub fn plug(name: &str) -> Self {
        let client = MidiOutput::new(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self(client.create_virtual("out").unwrap_or_else(|error| panic!("{name}: {error}")))
    }

    /// Connects to an input that another program made, as soon as it is there; a part of its name will do.
    pub fn connect(port: &str) -> Self {
        let client = MidiOutput::new("player").unwrap_or_else(|error| panic!("{port}: {error}"));
        let named = |client: &MidiOutput| {
            let mut ports = client.ports().into_iter();
            ports.find(|found| client.port_name(found).is_ok_and(|name| name.contains(port)))
        };
        let (found, _) = wait::until(|| named(&client), || format!("nobody makes an input {port}"));
        Self(client.connect(&found, "out").unwrap_or_else(|error| panic!("{port}: {error}")))
    }

    /// Plays one message.
    pub fn play(&mut self, message: &[u8]) {
        self.0.send(message).unwrap();
    }
}

/// Something that sounds. Dropping it unplugs it.
pub struct Synth {
    _port: MidiInputConnection<Sender<Vec<u8>>>,
    received: Receiver<Vec<u8>>,
}

impl Synth {
    /// Plugs it in.
    pub fn plug(name: &str) -> Self {
        let mut client = MidiInput::new(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        client.ignore(midir::Ignore::None);
        let (sender, received) = mpsc::channel();
        let port = client
            .create_virtual("in", |_, bytes, sender| drop(sender.send(bytes.to_vec())), sender)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { _port: port, received }
    }

    /// Listens to an output that another program made, as soon as it is there; a part of its name will do.
    pub fn connect(port: &str) -> Self {
        let mut client = MidiInput::new("listener").unwrap_or_else(|error| panic!("{port}: {error}"));
        client.ignore(midir::Ignore::None);
        let named = |client: &MidiInput| {
            let mut ports = client.ports().into_iter();
            ports.find(|found| client.port_name(found).is_ok_and(|name| name.contains(port)))
        };
        let (found, _) = wait::until(|| named(&client), || format!("nobody makes an output {port}"));
        let (sender, received) = mpsc::channel();
        let port = client
            .connect(&found, "in", |_, bytes, sender| drop(sender.send(bytes.to_vec())), sender)
            .unwrap_or_else(|error| panic!("{port}: {error}"));
        Self { _port: port, received }
    }

    /// The next message that it gets.
    pub fn next(&self) -> Vec<u8> {
        self.received.recv_timeout(PATIENCE).expect("no MIDI message came")
    }

    /// The next messages that it gets.
    pub fn messages(&self, count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|_| self.next()).collect()
    }
}
