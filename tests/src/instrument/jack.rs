//! Ports of JACK, all of one client for as long as the tests run.

use std::sync::OnceLock;
use std::sync::mpsc::Sender;

use conductor_jack::{Client, Direction};

fn client() -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| Client::open("player").unwrap_or_else(|error| panic!("{error}")))
}

fn named(direction: Direction, part: &str) -> Option<String> {
    client().ports(direction).unwrap().into_iter().find(|name| name.contains(part))
}

pub(super) struct Output(conductor_jack::Output);

impl Output {
    pub(super) fn new(name: &str) -> Self {
        Self(client().output(name).unwrap_or_else(|error| panic!("{name}: {error}")))
    }

    /// Connected to an input whose name holds `port`; `None` if there is no such input yet.
    pub(super) fn connected(port: &str) -> Option<Self> {
        let theirs = named(Direction::In, port)?;
        let output = Self::new("to the host");
        client().connect(output.0.name(), &theirs).unwrap();
        Some(output)
    }

    pub(super) fn send(&mut self, message: &[u8]) {
        self.0.send(message).unwrap();
    }
}

/// Open for as long as it lives.
pub(super) struct Input {
    port: conductor_jack::Input,
}

impl Input {
    pub(super) fn new(name: &str, sender: Sender<Vec<u8>>) -> Self {
        let port = client().input(name, move |bytes| drop(sender.send(bytes.to_vec())));
        Self { port: port.unwrap_or_else(|error| panic!("{name}: {error}")) }
    }

    /// Connected to an output whose name holds `port`; `None` if there is no such output yet.
    pub(super) fn connected(port: &str, sender: &Sender<Vec<u8>>) -> Option<Self> {
        let theirs = named(Direction::Out, port)?;
        let input = Self::new("from the host", sender.clone());
        client().connect(&theirs, input.port.name()).unwrap();
        Some(input)
    }
}
