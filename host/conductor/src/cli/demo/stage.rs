//! What the demo plays on, and where it listens: simulated ports, or real ones.

use std::net::UdpSocket;
use std::time::Instant;

use conductor_event::{Event, OscArg};
use conductor_timeline::TimelineEntry;
use crossbeam_channel::Receiver;

#[cfg(unix)]
use super::virtual_port;
use conductor_ports::simulated::SimulatedPorts;
use conductor_ports::{Direction, PortBackend};

/// The names of the demo's MIDI ports, which its configuration looks for.
const PADS: &str = "Demo Pads";
const FADERS: &str = "Demo Faders";
const SYNTH: &str = "Demo Synth";

/// Something to play on.
pub(super) trait Stage {
    /// The way to its ports.
    fn backend(&self) -> Box<dyn PortBackend>;
    /// Plays one event.
    fn play(&mut self, entry: &TimelineEntry) -> anyhow::Result<()>;
    /// What arrives at the synthesizer.
    fn synth(&self) -> Receiver<Vec<u8>>;
    /// What it is, in a few words.
    fn describe(&self) -> &'static str;
}

fn port_of(device: &str) -> &'static str {
    if device == "faders" { FADERS } else { PADS }
}

/// Simulated ports.
pub(super) struct Simulated {
    ports: SimulatedPorts,
    synth: Receiver<Vec<u8>>,
}

impl Simulated {
    pub(super) fn new() -> anyhow::Result<Self> {
        let ports = SimulatedPorts::new();
        ports.plug(PADS, Direction::Input);
        ports.plug(FADERS, Direction::Input);
        ports.plug(SYNTH, Direction::Output);
        let synth = ports.sent(SYNTH).ok_or_else(|| anyhow::anyhow!("the simulated synth is not plugged"))?;
        Ok(Self { ports, synth })
    }
}

impl Stage for Simulated {
    fn backend(&self) -> Box<dyn PortBackend> {
        self.ports.backend()
    }

    fn play(&mut self, entry: &TimelineEntry) -> anyhow::Result<()> {
        let Event::Midi(message) = &entry.event else { anyhow::bail!("{entry}: only MIDI can be played here") };
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        anyhow::ensure!(self.ports.play(port_of(&entry.device), &bytes), "{} is not open", entry.device);
        Ok(())
    }

    fn synth(&self) -> Receiver<Vec<u8>> {
        self.synth.clone()
    }

    fn describe(&self) -> &'static str {
        "simulated MIDI ports"
    }
}

/// Virtual ports of the system's MIDI, through a second client.
#[cfg(unix)]
pub(super) struct System {
    pads: virtual_port::Output,
    faders: virtual_port::Output,
    _synth: virtual_port::Input,
    received: Receiver<Vec<u8>>,
}

#[cfg(unix)]
impl System {
    pub(super) fn new() -> anyhow::Result<Self> {
        // Not the host's own client name: the host does not listen to itself.
        let ports = virtual_port::Ports::new()?;
        let (sender, received) = crossbeam_channel::unbounded();
        let synth = ports.input(SYNTH, sender)?;
        Ok(Self { pads: ports.output(PADS)?, faders: ports.output(FADERS)?, _synth: synth, received })
    }
}

#[cfg(unix)]
impl Stage for System {
    fn backend(&self) -> Box<dyn PortBackend> {
        Box::new(conductor_ports::midi::MidiBackend::new())
    }

    fn play(&mut self, entry: &TimelineEntry) -> anyhow::Result<()> {
        let Event::Midi(message) = &entry.event else { anyhow::bail!("{entry}: only MIDI can be played here") };
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let port = if port_of(&entry.device) == PADS { &mut self.pads } else { &mut self.faders };
        port.send(&bytes)?;
        Ok(())
    }

    fn synth(&self) -> Receiver<Vec<u8>> {
        self.received.clone()
    }

    fn describe(&self) -> &'static str {
        if cfg!(feature = "jack") { "JACK MIDI ports" } else { "MIDI ports of the system" }
    }
}

/// Sends an OSC event to the host's own OSC port, as a tablet would.
pub(super) fn send_osc(socket: &UdpSocket, entry: &TimelineEntry) -> anyhow::Result<()> {
    let Event::Osc(message) = &entry.event else { anyhow::bail!("{entry}: only OSC can be sent here") };
    let args = message.args().iter().map(osc_type).collect();
    let packet = rosc::OscPacket::Message(rosc::OscMessage { addr: message.address().to_string(), args });
    socket.send(&rosc::encoder::encode(&packet)?)?;
    Ok(())
}

/// The demo's own script holds numbers only.
fn osc_type(arg: &OscArg) -> rosc::OscType {
    match arg {
        OscArg::Int(value) => rosc::OscType::Int(*value),
        OscArg::Float(value) => rosc::OscType::Float(*value),
        OscArg::String(value) => rosc::OscType::String(value.clone()),
        _ => rosc::OscType::Nil,
    }
}

/// Receives on a loopback port for as long as the process lives; every packet with the moment it came.
pub(super) fn listen() -> anyhow::Result<(std::net::SocketAddr, Receiver<(Instant, rosc::OscMessage)>)> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let address = socket.local_addr()?;
    let (sender, received) = crossbeam_channel::unbounded();
    std::thread::Builder::new().name("listener".into()).spawn(move || {
        let mut buffer = [0; 4096];
        loop {
            let Ok(length) = socket.recv(&mut buffer) else { continue };
            if let Ok((_, rosc::OscPacket::Message(message))) = rosc::decoder::decode_udp(&buffer[..length])
                && sender.send((Instant::now(), message)).is_err()
            {
                return;
            }
        }
    })?;
    Ok((address, received))
}
