//! MIDI peers: controllers and synthesizers, as virtual ports of the system's MIDI, or of JACK in a build for it.
//!
//! What JACK's and ALSA's queues do not take in time is lost without an error, so a test that sends more
//! than a few dozen messages waits for their effects in between.

#[cfg(feature = "jack")]
#[path = "instrument/jack.rs"]
mod ports;
#[cfg(not(feature = "jack"))]
#[path = "instrument/system.rs"]
mod ports;

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};

use crate::wait::{self, TEST_TIMEOUT};

/// A name that no other test's instrument has: other programs' ports are seen by every host.
pub fn name(kind: &str) -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    format!("{kind}-{}-{}", process::id(), MADE.fetch_add(1, Ordering::Relaxed))
}

/// Something to play on. Dropping it unplugs it.
pub struct Controller(ports::Output);

impl Controller {
    /// Plugs it in.
    pub fn plug(name: &str) -> Self {
        Self(ports::Output::new(name))
    }

    /// Connects to an input that another program made, as soon as it is there; a part of its name will do.
    pub fn connect(port: &str) -> Self {
        let (output, _) =
            wait::until(|| ports::Output::connected(port), || format!("no program makes an input {port}"));
        Self(output)
    }

    /// Plays one message.
    pub fn play(&mut self, message: &[u8]) {
        self.0.send(message);
    }
}

/// Something that sounds. Dropping it unplugs it.
pub struct Synth {
    _port: ports::Input,
    received: Receiver<Vec<u8>>,
}

impl Synth {
    /// Plugs it in.
    pub fn plug(name: &str) -> Self {
        let (sender, received) = mpsc::channel();
        Self { _port: ports::Input::new(name, sender), received }
    }

    /// Listens to an output that another program made, as soon as it is there; a part of its name will do.
    pub fn connect(port: &str) -> Self {
        let (sender, received) = mpsc::channel();
        let connected = || ports::Input::connected(port, &sender);
        let (input, _) = wait::until(connected, || format!("no program makes an output {port}"));
        Self { _port: input, received }
    }

    /// The next message that it gets.
    pub fn next(&self) -> Vec<u8> {
        self.received.recv_timeout(TEST_TIMEOUT).expect("no MIDI message came")
    }

    /// The messages that it gets, as they come, for as long as it is plugged in.
    pub fn heard(&self) -> impl Iterator<Item = Vec<u8>> {
        self.received.iter()
    }

    /// The next messages that it gets.
    pub fn messages(&self, count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|_| self.next()).collect()
    }
}
