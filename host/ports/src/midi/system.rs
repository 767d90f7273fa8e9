//! MIDI ports of the system, through midir: ALSA on Linux, CoreMIDI, WinMM.

use std::path::Path;

use midir::{Ignore, MidiInput, MidiInputConnection, MidiOutput, MidiOutputConnection};

use super::super::{
    BindingSpec, Connection, Direction, EventSink, MidiOut, PortBackend, PortError, PortInfo, PortMetadata, Protocol,
};
#[cfg(target_os = "linux")]
use super::announcements::Announcements;
use super::{BACKEND, CLIENT, Unreachable, cannot_open, is_own, made, unreachable};

/// The backend. Its two listing clients live as long as it does: making one is expensive, and on
/// some systems a short-lived one never learns of new devices.
#[derive(Default)]
pub struct SystemBackend {
    input: Option<MidiInput>,
    output: Option<MidiOutput>,
    #[cfg(target_os = "linux")]
    announcements: Option<Announcements>,
    /// The ports that bindings ask to be made.
    made: Vec<PortInfo>,
    unreachable: Unreachable,
}

impl SystemBackend {
    /// Connects to the system when it is first asked for ports.
    pub fn new() -> Self {
        Self::default()
    }
}

/// ALSA ends a name with the client's and port's number, which change whenever something is plugged.
fn stable_name(name: &str) -> &str {
    match name.rsplit_once(' ') {
        Some((front, numbers)) if BACKEND == "alsa" && is_client_and_port(numbers) => front,
        _ => name,
    }
}

fn is_client_and_port(numbers: &str) -> bool {
    numbers.split_once(':').is_some_and(|(client, port)| {
        !client.is_empty() && !port.is_empty() && client.bytes().chain(port.bytes()).all(|b| b.is_ascii_digit())
    })
}

/// What is known of a listed port beyond its name.
fn metadata(id: &str) -> PortMetadata {
    let mut metadata = PortMetadata::default();
    match BACKEND {
        "coremidi" => metadata.core_midi_unique_id = id.parse().ok(),
        #[cfg(target_os = "linux")]
        "alsa" => {
            let client = id.split(':').next().and_then(|client| client.parse().ok());
            metadata.usb = client.and_then(super::super::usb::card_of_client).and_then(super::super::usb::of_card);
        }
        _ => {}
    }
    metadata
}

fn connected<T, E: std::fmt::Display>(
    slot: &mut Option<T>,
    new: impl FnOnce() -> Result<T, E>,
) -> Result<&mut T, PortError> {
    match slot {
        Some(client) => Ok(client),
        None => Ok(slot.insert(new().map_err(unreachable)?)),
    }
}

/// Every port but the host's own; midir's two directions have no trait with ids in common.
fn ports_of<P>(
    ports: Vec<P>,
    direction: Direction,
    name: impl Fn(&P) -> Option<String>,
    id: impl Fn(&P) -> String,
) -> Vec<(PortInfo, P)> {
    let known = |port: P| {
        // A port may vanish between being listed and being asked.
        let name = name(&port).filter(|name| !is_own(name))?;
        let info = PortInfo::new(stable_name(&name), &name, BACKEND, Protocol::Midi, direction);
        Some((PortInfo { metadata: metadata(&id(&port)), ..info }, port))
    };
    ports.into_iter().filter_map(known).collect()
}

fn inputs(input: &MidiInput) -> Vec<(PortInfo, midir::MidiInputPort)> {
    ports_of(input.ports(), Direction::Input, |port| input.port_name(port).ok(), midir::MidiInputPort::id)
}

fn outputs(output: &MidiOutput) -> Vec<(PortInfo, midir::MidiOutputPort)> {
    ports_of(output.ports(), Direction::Output, |port| output.port_name(port).ok(), midir::MidiOutputPort::id)
}

fn find<P>(ports: Vec<(PortInfo, P)>, wanted: &PortInfo) -> Result<P, PortError> {
    let found = ports.into_iter().find(|(info, _)| info.key == wanted.key);
    found.map(|(_, port)| port).ok_or_else(|| PortError(format!("{} is gone", wanted.name)))
}

impl SystemBackend {
    fn list_now(&mut self) -> Result<Vec<PortInfo>, PortError> {
        // Without the device there is nothing to reach, and trying would only make noise.
        if BACKEND == "alsa" && !Path::new("/dev/snd/seq").exists() {
            return Err(unreachable("there is no /dev/snd/seq"));
        }
        #[cfg(target_os = "linux")]
        connected(&mut self.announcements, || Announcements::open(c"conductor-list"))?;
        let input = connected(&mut self.input, || MidiInput::new(&format!("{CLIENT}-list")))?;
        let mut ports: Vec<_> = inputs(input).into_iter().map(|(info, port)| (info, port.id())).collect();
        let output = connected(&mut self.output, || MidiOutput::new(&format!("{CLIENT}-list")))?;
        ports.extend(outputs(output).into_iter().map(|(info, port)| (info, port.id())));
        let mut ports = self.numbered(ports);
        // CoreMIDI lists what the host has made under its own name.
        ports.retain(|port| !self.made.iter().any(|made| made.name == format!("{CLIENT}:{}", port.name)));
        ports.extend(self.made.iter().cloned());
        Ok(ports)
    }

    /// Says which plugging each port is, where the system tells.
    fn numbered(&mut self, ports: Vec<(PortInfo, String)>) -> Vec<PortInfo> {
        #[cfg(target_os = "linux")]
        if let Some(announcements) = &mut self.announcements {
            announcements.receive();
            let numbered = |(mut port, id): (PortInfo, String)| {
                port.metadata.plugging = announcements.plugging(&id);
                port
            };
            return ports.into_iter().map(numbered).collect();
        }
        ports.into_iter().map(|(port, _)| port).collect()
    }
}

impl PortBackend for SystemBackend {
    fn name(&self) -> &'static str {
        BACKEND
    }

    fn configure(&mut self, bindings: &[BindingSpec]) {
        // On macOS other programs see the alias alone.
        self.made = made(bindings, |_, alias| format!("{CLIENT}:{alias}"));
    }

    fn list(&mut self) -> Result<Vec<PortInfo>, PortError> {
        self.unreachable.recently()?;
        let listed = self.list_now();
        self.unreachable.note(&listed);
        listed
    }

    fn open_input(&mut self, port: &PortInfo, sink: EventSink) -> Result<Box<dyn Connection>, PortError> {
        let mut input = MidiInput::new(CLIENT).map_err(unreachable)?;
        input.ignore(Ignore::None);
        // ALSA's events come on a thread of this connection's own, others' in a callback of the driver.
        let sink = if cfg!(target_os = "linux") { sink } else { sink.on_a_callback() };
        if self.made.contains(port) {
            return virtual_input(input, port, sink);
        }
        let found = find(inputs(&input), port)?;
        let connection = input
            .connect(&found, "in", |_, bytes, sink: &mut EventSink| sink.midi(bytes), sink)
            .map_err(|error| cannot_open(port, error))?;
        Ok(Box::new(OpenInput { _connection: connection }))
    }

    fn open_output(&mut self, port: &PortInfo) -> Result<Box<dyn MidiOut>, PortError> {
        let output = MidiOutput::new(CLIENT).map_err(unreachable)?;
        if self.made.contains(port) {
            return virtual_output(output, port);
        }
        let found = find(outputs(&output), port)?;
        let connection = output.connect(&found, "out").map_err(|error| cannot_open(port, error))?;
        Ok(Box::new(OpenOutput(connection)))
    }
}

/// The alias that a port is made for.
#[cfg(unix)]
fn alias(port: &PortInfo) -> &str {
    port.name.split_once(':').map_or(port.name.as_str(), |(_, alias)| alias)
}

#[cfg(unix)]
fn virtual_input(input: MidiInput, port: &PortInfo, sink: EventSink) -> Result<Box<dyn Connection>, PortError> {
    use midir::os::unix::VirtualInput as _;
    let connection = input
        .create_virtual(alias(port), |_, bytes, sink: &mut EventSink| sink.midi(bytes), sink)
        .map_err(|error| cannot_open(port, error))?;
    Ok(Box::new(OpenInput { _connection: connection }))
}

#[cfg(unix)]
fn virtual_output(output: MidiOutput, port: &PortInfo) -> Result<Box<dyn MidiOut>, PortError> {
    use midir::os::unix::VirtualOutput as _;
    let connection = output.create_virtual(alias(port)).map_err(|error| cannot_open(port, error))?;
    Ok(Box::new(OpenOutput(connection)))
}

#[cfg(not(unix))]
fn virtual_input(_: MidiInput, port: &PortInfo, _: EventSink) -> Result<Box<dyn Connection>, PortError> {
    Err(cannot_open(port, "this system has no virtual MIDI ports; a driver such as loopMIDI makes them"))
}

#[cfg(not(unix))]
fn virtual_output(_: MidiOutput, port: &PortInfo) -> Result<Box<dyn MidiOut>, PortError> {
    Err(cannot_open(port, "this system has no virtual MIDI ports; a driver such as loopMIDI makes them"))
}

struct OpenInput {
    _connection: MidiInputConnection<EventSink>,
}

impl Connection for OpenInput {}

struct OpenOutput(MidiOutputConnection);

/// SysEx beyond this is lost in silence by ALSA's sequencer, so it is refused instead.
const MAX_SYSEX_OUT: usize = 4096;

impl MidiOut for OpenOutput {
    fn send(&mut self, message: &[u8]) -> Result<(), PortError> {
        if message.len() > MAX_SYSEX_OUT {
            return Err(PortError(format!(
                "a message of {} bytes is more than this driver takes ({MAX_SYSEX_OUT})",
                message.len()
            )));
        }
        self.0.send(message).map_err(|error| PortError(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_at_the_end_are_numbers_of_alsa() {
        assert!(is_client_and_port("128:0"));
        assert!(!is_client_and_port("37") && !is_client_and_port(":") && !is_client_and_port("a:0"));
    }
}
