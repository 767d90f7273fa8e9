//! MIDI ports through a JACK server: one client, which lives as long as the server, with a port of its own for every
//! port that is open.

use conductor_jack::{Client, Direction as PortDirection, Error};

use super::super::{
    BindingSpec, Connection, Direction, EventSink, MidiOut, PortBackend, PortError, PortInfo, Protocol,
};
use super::{BACKEND, CLIENT, Unreachable, cannot_open, is_own, made, unreachable};

/// The longest part of another port's name that goes into the name of ours. JACK takes 320 bytes for a whole name.
const MAX_NAME: usize = 120;

/// The backend. It reaches the server when it is first asked for ports, and again when that has ended and another
/// one is there.
#[derive(Default)]
pub struct JackBackend {
    client: Option<Client>,
    /// The ports that bindings ask to be made.
    made: Vec<PortInfo>,
    unreachable: Unreachable,
    /// Messages of this client's that were lost, as far as JACK reported them.
    lost: u64,
}

impl JackBackend {
    /// Connects to the server when it is first asked for ports.
    pub fn new() -> Self {
        Self::default()
    }

    fn client(&mut self) -> Result<&Client, Error> {
        match &mut self.client {
            Some(client) => Ok(client),
            none => Ok(none.insert(Client::open(CLIENT)?)),
        }
    }

    fn list_now(&mut self) -> Result<Vec<PortInfo>, PortError> {
        // Said once, even where the next server is there already: what was open of this one is dead and has to be
        // closed.
        if self.client.take_if(|client| client.is_gone()).is_some() {
            return Err(unreachable(Error::Gone));
        }
        let client = self.client().map_err(unreachable)?.clone();
        let lost = client.lost();
        if lost > self.lost {
            tracing::warn!("{} MIDI messages found no room between JACK and the host", lost - self.lost);
        }
        self.lost = lost;
        let listed = |way: PortDirection, direction: Direction| -> Result<Vec<PortInfo>, PortError> {
            let names = client.ports(way).map_err(unreachable)?;
            let others = names.iter().filter(|name| !is_own(name));
            let port = |name: &String| {
                let mut port = PortInfo::new(name, name, BACKEND, Protocol::Midi, direction);
                port.metadata.plugging = client.plugging(name);
                port
            };
            Ok(others.map(port).collect())
        };
        let mut ports = listed(PortDirection::Out, Direction::Input)?;
        ports.extend(listed(PortDirection::In, Direction::Output)?);
        ports.extend(self.made.iter().cloned());
        Ok(ports)
    }

    /// The name of the host's port for this one, and the port to connect it to; `None` if the host creates it.
    fn names<'a>(&self, port: &'a PortInfo) -> (String, Option<&'a str>) {
        if self.made.contains(port) {
            let (_, own) = port.name.split_once(':').unwrap_or_default();
            return (own.to_owned(), None);
        }
        let word = match port.direction {
            Direction::Input => "from",
            Direction::Output => "to",
        };
        let theirs: String = port.key.replace(':', " ").chars().take(MAX_NAME).collect();
        (format!("{word} {theirs}"), Some(&port.key))
    }
}

/// What other programs see of a port that is made: JACK tells one port of a client from another by the name alone.
fn made_name(direction: Direction, alias: &str) -> String {
    match direction {
        Direction::Input => format!("{CLIENT}:{alias} in"),
        Direction::Output => format!("{CLIENT}:{alias} out"),
    }
}

impl PortBackend for JackBackend {
    fn name(&self) -> &'static str {
        BACKEND
    }

    fn configure(&mut self, bindings: &[BindingSpec]) {
        self.made = made(bindings, made_name);
    }

    fn list(&mut self) -> Result<Vec<PortInfo>, PortError> {
        self.unreachable.recently()?;
        let listed = self.list_now();
        self.unreachable.note(&listed);
        listed
    }

    fn open_input(&mut self, port: &PortInfo, mut sink: EventSink) -> Result<Box<dyn Connection>, PortError> {
        let (name, theirs) = self.names(port);
        let client = self.client().map_err(unreachable)?;
        let input = client.input(&name, move |bytes| sink.midi(bytes)).map_err(|error| cannot_open(port, error))?;
        if let Some(theirs) = theirs {
            client.connect(theirs, input.name()).map_err(|error| cannot_open(port, error))?;
        }
        Ok(Box::new(OpenInput { _input: input }))
    }

    fn open_output(&mut self, port: &PortInfo) -> Result<Box<dyn MidiOut>, PortError> {
        let (name, theirs) = self.names(port);
        let client = self.client().map_err(unreachable)?;
        let output = client.output(&name).map_err(|error| cannot_open(port, error))?;
        if let Some(theirs) = theirs {
            client.connect(output.name(), theirs).map_err(|error| cannot_open(port, error))?;
        }
        Ok(Box::new(OpenOutput(output)))
    }
}

struct OpenInput {
    _input: conductor_jack::Input,
}

impl Connection for OpenInput {}

struct OpenOutput(conductor_jack::Output);

impl MidiOut for OpenOutput {
    fn send(&mut self, message: &[u8]) -> Result<(), PortError> {
        self.0.send(message).map_err(|error| PortError(error.to_string()))
    }
}
