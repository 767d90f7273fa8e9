//! OSC over UDP: one port for every OSC binding, listening where the binding says.

use std::net::{SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{BindingSpec, Connection, Direction, EventSink, MidiOut, PortBackend, PortError, PortInfo, Protocol};

/// How long a receiver may take to notice that its port was closed.
const CLOSE_WITHIN: Duration = Duration::from_millis(100);

/// The backend. Its ports exist because they are configured.
#[derive(Debug, Default)]
pub struct OscBackend {
    endpoints: Vec<(String, u16, String)>,
}

impl OscBackend {
    /// No endpoint yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl PortBackend for OscBackend {
    fn name(&self) -> &'static str {
        "osc"
    }

    fn configure(&mut self, bindings: &[BindingSpec]) {
        self.endpoints = bindings
            .iter()
            .filter_map(|binding| {
                let (host, port) = binding.listen.clone()?;
                Some((host, port, binding.listen_name()?))
            })
            .collect();
    }

    fn list(&mut self) -> Result<Vec<PortInfo>, PortError> {
        let port = |(_, _, name): &(String, u16, String)| PortInfo {
            name: name.clone(),
            key: name.clone(),
            backend: "osc",
            protocol: Protocol::Osc,
            direction: Direction::Input,
        };
        Ok(self.endpoints.iter().map(port).collect())
    }

    fn open_input(&mut self, port: &PortInfo, sink: EventSink) -> Result<Box<dyn Connection>, PortError> {
        let (host, number, name) = self
            .endpoints
            .iter()
            .find(|(_, _, name)| *name == port.name)
            .ok_or_else(|| PortError(format!("{} is not configured any more", port.name)))?;
        let socket = bind(host, *number).map_err(|error| {
            PortError(match error.kind() {
                std::io::ErrorKind::AddrInUse => format!("{name} is in use: another program listens there"),
                std::io::ErrorKind::PermissionDenied => {
                    format!("{name}: not allowed; ports below 1024 need privileges")
                }
                _ => format!("{name}: {error}"),
            })
        })?;
        Receiver::start(socket, sink)
            .map(|receiver| Box::new(receiver) as _)
            .map_err(|error| PortError(format!("{name}: {error}")))
    }

    fn open_output(&mut self, port: &PortInfo) -> Result<Box<dyn MidiOut>, PortError> {
        Err(PortError(format!("{} is an OSC input; OSC goes out through the action OscSend", port.name)))
    }
}

fn bind(host: &str, port: u16) -> std::io::Result<UdpSocket> {
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    UdpSocket::bind(addresses.as_slice())
}

/// A thread that waits for packets.
struct Receiver {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Connection for Receiver {}

impl Receiver {
    fn start(socket: UdpSocket, mut sink: EventSink) -> std::io::Result<Self> {
        socket.set_read_timeout(Some(CLOSE_WITHIN))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("osc-in".into()).spawn(move || {
            // The largest UDP payload, so that nothing is cut off.
            let mut buffer = vec![0_u8; 65_536];
            while !stopped.load(Ordering::Relaxed) {
                // Errors are time-outs, or word that somebody else's port is closed.
                if let Ok((length, _)) = socket.recv_from(&mut buffer) {
                    sink.osc(&buffer[..length]);
                }
            }
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
