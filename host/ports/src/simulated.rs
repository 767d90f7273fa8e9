//! Simulated ports: for tests, demos and feature authors. Same trait as the real ones.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use conductor_event::{ArtNetChange, HidEvent};
use crossbeam_channel::{Receiver, Sender};
use parking_lot::{Mutex, MutexGuard};

use super::{Connection, Direction, EventSink, MidiOut, PortBackend, PortError, PortInfo, Protocol};

/// The hand that plugs simulated ports, plays on them and listens to them. Clones share the ports.
#[derive(Debug, Clone, Default)]
pub struct SimulatedPorts {
    state: Arc<Mutex<State>>,
}

/// What is called for each message to an output.
type OnSent = Box<dyn Fn(&[u8]) + Send + Sync>;

/// Both ends of what goes to an output: the host's and the listener's.
struct Wire {
    sender: Sender<Vec<u8>>,
    receiver: Receiver<Vec<u8>>,
    on_sent: Arc<OnceLock<OnSent>>,
}

impl Wire {
    fn new() -> Self {
        let (sender, receiver) = crossbeam_channel::unbounded();
        Self { sender, receiver, on_sent: Arc::default() }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wire({})", self.receiver.len())
    }
}

#[derive(Debug, Default)]
struct State {
    ports: Vec<PortInfo>,
    /// By the keys of the ports.
    sinks: HashMap<String, EventSink>,
    outputs: HashMap<String, Wire>,
    refused: HashMap<String, String>,
}

impl SimulatedPorts {
    /// No ports yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The backend to give to a host.
    pub fn backend(&self) -> Box<dyn PortBackend> {
        Box::new(Backend { ports: self.clone() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Plugs a MIDI port in.
    pub fn plug(&self, name: &str, direction: Direction) {
        let key = format!("{direction}:{name}");
        self.plug_port(PortInfo::new(name, &key, "simulated", Protocol::Midi, direction));
    }

    /// Plugs any port in; its `backend` becomes the simulated one. Twins have one name and two keys.
    pub fn plug_port(&self, port: PortInfo) {
        let mut state = self.state();
        if port.direction == Direction::Output {
            state.outputs.entry(port.name.clone()).or_insert_with(Wire::new);
        }
        state.ports.push(PortInfo { backend: "simulated".into(), ..port });
    }

    /// Pulls a port out, by its name or its key.
    pub fn unplug(&self, port: &str, direction: Direction) {
        let mut state = self.state();
        let is_meant = |known: &PortInfo| known.direction == direction && (known.name == port || known.key == port);
        let keys: Vec<String> =
            state.ports.iter().filter(|known| is_meant(known)).map(|known| known.key.clone()).collect();
        state.ports.retain(|known| !is_meant(known));
        keys.iter().for_each(|key| drop(state.sinks.remove(key)));
    }

    /// Lists the ports the other way round from now on, as a system may after a restart.
    pub fn reverse(&self) {
        self.state().ports.reverse();
    }

    /// Makes the port refuse to be opened, for this reason.
    pub fn refuse(&self, name: &str, reason: &str) {
        self.state().refused.insert(name.to_owned(), reason.to_owned());
    }

    /// Plays MIDI bytes on an input. False when the port is not open.
    pub fn play(&self, name: &str, bytes: &[u8]) -> bool {
        self.with_sink(name, |sink| sink.midi(bytes))
    }

    /// Plays an OSC packet on an input. False when the port is not open.
    pub fn play_osc(&self, name: &str, packet: &[u8]) -> bool {
        self.with_sink(name, |sink| sink.osc(packet))
    }

    /// Moves something on a gamepad. False when it is not open.
    pub fn play_gamepad(&self, name: &str, moved: HidEvent) -> bool {
        self.with_sink(name, |sink| sink.hid(moved))
    }

    /// Changes a channel of an Art-Net universe. False when the port is not open.
    pub fn play_artnet(&self, name: &str, change: ArtNetChange) -> bool {
        self.with_sink(name, |sink| {
            // A test that changes more channels at once than there is room for plays them again itself.
            let _ = sink.artnet(change);
        })
    }

    fn with_sink(&self, port: &str, play: impl FnOnce(&mut EventSink)) -> bool {
        let key = self.state().input_key(port);
        // Taken out while it plays: a full queue makes it wait, and no other caller should.
        let Some((key, mut sink)) = key.and_then(|key| self.state().sinks.remove_entry(&key)) else { return false };
        play(&mut sink);
        let mut state = self.state();
        if state.input_key(&key).is_some() {
            state.sinks.insert(key, sink);
        }
        true
    }

    /// What the host sends to an output, message by message. `None` if no such output was plugged in.
    pub fn sent(&self, name: &str) -> Option<Receiver<Vec<u8>>> {
        self.state().outputs.get(name).map(|wire| wire.receiver.clone())
    }

    /// Has this called for each message that the host sends to an output, on the output's thread and before [`sent`](Self::sent)
    /// has it: for measuring when. It must not wait. False if no such output was plugged in, or if there is one already.
    pub fn on_sent(&self, name: &str, call: impl Fn(&[u8]) + Send + Sync + 'static) -> bool {
        self.state().outputs.get(name).is_some_and(|wire| wire.on_sent.set(Box::new(call)).is_ok())
    }

    /// Whether the host listens to this input now.
    pub fn is_open(&self, name: &str) -> bool {
        let state = self.state();
        state.input_key(name).is_some_and(|key| state.sinks.contains_key(&key))
    }
}

impl State {
    /// The key of the input with this name or key.
    fn input_key(&self, port: &str) -> Option<String> {
        let mut inputs = self.ports.iter().filter(|known| known.direction == Direction::Input);
        inputs.find(|known| known.name == port || known.key == port).map(|known| known.key.clone())
    }
}

struct Backend {
    ports: SimulatedPorts,
}

struct OpenInput {
    ports: SimulatedPorts,
    key: String,
}

impl Connection for OpenInput {}

impl Drop for OpenInput {
    fn drop(&mut self) {
        self.ports.state().sinks.remove(&self.key);
    }
}

struct OpenOutput {
    sender: Sender<Vec<u8>>,
    on_sent: Arc<OnceLock<OnSent>>,
}

impl MidiOut for OpenOutput {
    fn send(&mut self, message: &[u8]) -> Result<(), PortError> {
        if let Some(call) = self.on_sent.get() {
            call(message);
        }
        self.sender.send(message.to_vec()).map_err(|_| PortError("the simulated port is gone".into()))
    }
}

impl Backend {
    fn refusal(&self, port: &PortInfo) -> Result<(), PortError> {
        match self.ports.state().refused.get(&port.name) {
            Some(reason) => Err(PortError(reason.clone())),
            None => Ok(()),
        }
    }
}

impl PortBackend for Backend {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn list(&mut self) -> Result<Vec<PortInfo>, PortError> {
        Ok(self.ports.state().ports.clone())
    }

    fn open_input(&mut self, port: &PortInfo, sink: EventSink) -> Result<Box<dyn Connection>, PortError> {
        self.refusal(port)?;
        self.ports.state().sinks.insert(port.key.clone(), sink);
        Ok(Box::new(OpenInput { ports: self.ports.clone(), key: port.key.clone() }))
    }

    fn open_output(&mut self, port: &PortInfo) -> Result<Box<dyn MidiOut>, PortError> {
        self.refusal(port)?;
        let state = self.ports.state();
        let wire = state.outputs.get(&port.name).ok_or_else(|| PortError(format!("{} is no output", port.name)))?;
        Ok(Box::new(OpenOutput { sender: wire.sender.clone(), on_sent: Arc::clone(&wire.on_sent) }))
    }
}
