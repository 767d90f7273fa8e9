//! OSC peers of our own: a tablet that sends, and a listener that receives.

use std::fmt::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rosc::{OscMessage, OscPacket, OscTime, OscType};

use crate::wait::TEST_TIMEOUT;

/// A UDP port on loopback where no program listens.
///
/// Not one of those that the system gives out by itself: another socket could get it before the
/// program that it is meant for.
pub fn free_port() -> u16 {
    free_socket().local_addr().unwrap().port()
}

/// A socket at such a port. Who closes it to open it again may find it taken: a program that another thread starts
/// meanwhile has it too, until it is loaded.
fn free_socket() -> UdpSocket {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    const FIRST: u16 = 12_000;
    const PORTS: u16 = 18_000;
    let offset = u16::try_from(std::process::id() % u32::from(PORTS)).unwrap();
    loop {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (offset.wrapping_mul(37) % PORTS + step) % PORTS;
        if let Ok(socket) = UdpSocket::bind(("127.0.0.1", port)) {
            return socket;
        }
    }
}

/// Asks for room for a second of what a fast sender sends, in case the listener gets no processor: what is lost is
/// then the host's fault, not the test's.
#[cfg(target_os = "linux")]
fn enlarge(socket: &UdpSocket) {
    use rustix::net::sockopt;
    const BYTES: usize = 4 << 20;
    if sockopt::set_socket_recv_buffer_size_force(socket, BYTES).is_err() {
        // It becomes as large as `net.core.rmem_max` allows.
        let _ = sockopt::set_socket_recv_buffer_size(socket, BYTES);
    }
}

#[cfg(not(target_os = "linux"))]
fn enlarge(_: &UdpSocket) {}

/// Datagrams that the kernel dropped because the receive buffer of the sockets at this port was full; 0 where the
/// system does not say. The last column of `/proc/net/udp` (proc_net(5)).
pub fn dropped(port: u16) -> u64 {
    let table = std::fs::read_to_string("/proc/net/udp").unwrap_or_default();
    let of_port = format!(":{port:04X}");
    let sockets = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let dropped = sockets.filter(|columns| columns.get(1).is_some_and(|local| local.ends_with(&of_port)));
    dropped.filter_map(|columns| columns.last()?.parse::<u64>().ok()).sum()
}

/// A configuration: a tablet on this port, and a mapping from each address to its action.
pub fn mappings(port: u16, actions: &[(&str, &str)]) -> String {
    let binding = format!("[[bindings]]\nalias = 'tablet'\nprotocol = 'osc'\ninput = {{ port = {port} }}\n");
    let mappings = actions.iter().map(|(address, action)| {
        format!(
            "[[global_mappings]]\ntrigger = {{ type = 'OscMessage', address = '{address}' }}\naction = {{ {action} }}\n"
        )
    });
    binding + &mappings.collect::<String>()
}

/// A message, ready to be sent.
pub fn message(address: &str, args: impl IntoIterator<Item = OscType>) -> OscPacket {
    OscPacket::Message(OscMessage { addr: address.into(), args: args.into_iter().collect() })
}

/// A bundle for a certain time.
pub fn bundle(time: (u32, u32), content: impl IntoIterator<Item = OscPacket>) -> OscPacket {
    let timetag = OscTime { seconds: time.0, fractional: time.1 };
    OscPacket::Bundle(rosc::OscBundle { timetag, content: content.into_iter().collect() })
}

/// A packet as it goes over the wire.
pub fn bytes(packet: &OscPacket) -> Vec<u8> {
    rosc::encoder::encode(packet).unwrap()
}

/// Sends OSC to one port.
#[derive(Debug)]
pub struct Tablet(UdpSocket);

impl Tablet {
    /// Sends to a port on loopback.
    pub fn to(port: u16) -> Self {
        Self::at(([127, 0, 0, 1], port).into())
    }

    /// Sends to an address.
    pub fn at(address: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(address).unwrap();
        Self(socket)
    }

    /// Sends one message.
    pub fn send(&self, address: &str, args: impl IntoIterator<Item = OscType>) {
        self.send_bytes(&bytes(&message(address, args)));
    }

    /// Sends a message without arguments to a program that may not listen yet.
    pub fn try_send(&self, address: &str) {
        let _ = self.0.send(&bytes(&message(address, [])));
    }

    /// Sends one datagram of any bytes.
    pub fn send_bytes(&self, bytes: &[u8]) {
        // An error here is of the datagram before, which no program may have received.
        if self.0.send(bytes).is_err() {
            self.0.send(bytes).unwrap();
        }
    }
}

/// Receives OSC on a port of its own, in the background, so that nothing is lost.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    received: Receiver<Vec<u8>>,
    wanted: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Listens on a free port.
    pub fn new() -> Self {
        Self::at(free_socket())
    }

    /// Listens on this port.
    pub fn on(port: u16) -> Self {
        Self::at(UdpSocket::bind(("127.0.0.1", port)).unwrap())
    }

    fn at(socket: UdpSocket) -> Self {
        enlarge(&socket);
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let address = socket.local_addr().unwrap();
        let (sender, received) = mpsc::channel();
        let wanted = Arc::new(AtomicBool::new(true));
        let still = Arc::clone(&wanted);
        let thread = thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            while still.load(Ordering::Relaxed) {
                // Errors are time-outs.
                let Ok(length) = socket.recv(&mut buffer) else { continue };
                if sender.send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { address, received, wanted, thread: Some(thread) }
    }

    /// Datagrams that found no room in its receive buffer, as the kernel counted them.
    pub fn dropped(&self) -> u64 {
        dropped(self.address.port())
    }

    /// Where it listens, as configuration writes it.
    pub fn target(&self) -> String {
        self.address.to_string()
    }

    /// The next message.
    pub fn message(&self) -> OscMessage {
        let Ok(bytes) = self.received.recv_timeout(TEST_TIMEOUT) else {
            panic!("no message came to {} within {} s", self.address, TEST_TIMEOUT.as_secs());
        };
        match rosc::decoder::decode_udp(&bytes) {
            Ok((_, OscPacket::Message(message))) => message,
            other => panic!("what came is no message: {other:?}"),
        }
    }

    /// The next message; `None` if none comes within 20 ms.
    pub fn try_message(&self) -> Option<OscMessage> {
        let bytes = self.received.recv_timeout(Duration::from_millis(20)).ok()?;
        match rosc::decoder::decode_udp(&bytes) {
            Ok((_, OscPacket::Message(message))) => Some(message),
            other => panic!("what came is no message: {other:?}"),
        }
    }

    /// The next message, as [`line()`] prints it.
    pub fn line(&self) -> String {
        line(&self.message())
    }

    /// The next messages, as [`line()`] prints them.
    pub fn lines(&self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.line()).collect()
    }

    /// The one number in the next message, an int32.
    pub fn number(&self) -> i32 {
        let message = self.message();
        match message.args.as_slice() {
            [OscType::Int(number)] => *number,
            _ => panic!("no single int32: {}", line(&message)),
        }
    }
}

impl Default for Listener {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.wanted.store(false, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A message as liblo's `oscdump` prints it.
pub fn line(message: &OscMessage) -> String {
    let (mut tags, mut values) = (String::new(), String::new());
    for arg in &message.args {
        let (tag, value) = match arg {
            OscType::Int(value) => ('i', value.to_string()),
            OscType::Long(value) => ('h', value.to_string()),
            OscType::Float(value) => ('f', format!("{value:.6}")),
            OscType::Double(value) => ('d', format!("{value:.6}")),
            OscType::String(value) => ('s', format!("\"{value}\"")),
            OscType::Bool(true) => ('T', "#T".into()),
            OscType::Bool(false) => ('F', "#F".into()),
            other => panic!("no action of the host sends {other:?}"),
        };
        tags.push(tag);
        let _ = write!(values, " {value}");
    }
    format!("{} {tags}{values}", message.addr)
}
