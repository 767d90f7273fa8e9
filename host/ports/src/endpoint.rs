//! Network endpoints: a socket, its allow-list of senders, and the thread that receives.

use std::io::{self, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::binding::{Listen, OwnPorts, Place};
use super::receive_buffer::{self, DropCounter};
use super::slip::SlipReader;
use super::{BindingSpec, Connection, Direction, EventSink, PortError, PortInfo, Protocol};
use conductor_net::senders::Senders;
use conductor_scheduling::event_thread;

/// How long a receiver may take to notice that its port was closed.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);
/// How long it waits for more while values of it wait for their turn.
pub(crate) const SETTLE_INTERVAL: Duration = Duration::from_millis(2);
/// Datagrams in a row after which the system is asked whether it has dropped any.
const DROPS_CHECK_INTERVAL: u32 = 1024;
/// Streams open at once at one endpoint. What comes beyond is closed at once.
const MAX_STREAMS: usize = 16;

/// The endpoints of one protocol that bindings ask for.
#[derive(Debug, Default)]
pub struct Endpoints {
    ports: Vec<PortInfo>,
    listens: Vec<Listen>,
}

impl Endpoints {
    /// Those of these bindings. Two bindings that listen at one place share a port, of which the first has it.
    pub fn of(bindings: &[BindingSpec], protocol: Protocol, backend: &'static str) -> Self {
        let mut endpoints = Self::default();
        for binding in bindings.iter().filter(|binding| binding.protocol == protocol) {
            let OwnPorts::Endpoints { listen, send } = &binding.made else { continue };
            let mut add = |name: &str, direction| {
                if !endpoints.ports.iter().any(|port| port.key == name && port.direction == direction) {
                    endpoints.ports.push(PortInfo::new(name, name, backend, protocol, direction));
                }
            };
            listen.iter().for_each(|listen| add(&listen.name(), Direction::Input));
            send.iter().for_each(|send: &Place| add(&send.to_string(), Direction::Output));
            endpoints.listens.extend(listen.clone());
        }
        endpoints
    }

    /// All of them, as ports.
    pub fn ports(&self) -> Vec<PortInfo> {
        self.ports.clone()
    }

    /// Where to listen for this port.
    ///
    /// # Errors
    /// When it is not configured any more.
    pub fn listen(&self, port: &PortInfo) -> Result<&Listen, PortError> {
        let found = self.listens.iter().find(|listen| listen.name() == port.key);
        found.ok_or_else(|| PortError(format!("{} is not configured any more", port.name)))
    }
}

/// What is done with a packet.
pub trait Take: FnMut(&mut EventSink, &[u8]) + Send + 'static {}

impl<F: FnMut(&mut EventSink, &[u8]) + Send + 'static> Take for F {}

/// A thread that receives. Dropping it closes what it receives from.
#[derive(Debug)]
pub struct Receiver {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Connection for Receiver {}

impl Receiver {
    /// Starts the thread, whose work ends once it is to stop.
    pub(crate) fn start(name: &str, work: impl FnOnce(&AtomicBool) + Send + 'static) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            event_thread();
            work(&stopped);
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

/// Receives datagrams.
///
/// # Errors
/// Why nothing can be received there.
pub fn datagrams(
    thread: &'static str,
    listen: &Listen,
    mut sink: EventSink,
    mut take: impl Take,
) -> Result<Receiver, PortError> {
    let (name, allow) = (listen.name(), listen.allow.clone());
    let receiver = addresses(&listen.at).and_then(|addresses| {
        let socket = UdpSocket::bind(addresses.as_slice())?;
        receive_buffer::enlarge(&socket);
        socket.set_read_timeout(Some(CLOSE_TIMEOUT))?;
        Receiver::start(thread, move |stop| {
            // The largest UDP payload, so that nothing is cut off.
            let mut buffer = vec![0_u8; 65_536];
            let (mut settled, mut in_a_row, mut drops) = (true, 0, DropCounter::default());
            while !stop.load(Ordering::Relaxed) {
                // What has arrived already is returned without a wait. Errors are timeouts, or ICMP messages
                // that a peer's port is closed.
                in_a_row = match socket.recv_from(&mut buffer) {
                    Ok((length, sender)) => {
                        if is_allowed(&allow, sender) {
                            take(&mut sink, &buffer[..length]);
                        } else {
                            sink.unheard();
                        }
                        (in_a_row + 1) % DROPS_CHECK_INTERVAL
                    }
                    Err(_) => 0,
                };
                if in_a_row == 0 {
                    sink.lost(drops.dropped(&socket));
                }
                if sink.settle() != settled {
                    settled = !settled;
                    let _ = socket.set_read_timeout(Some(if settled { CLOSE_TIMEOUT } else { SETTLE_INTERVAL }));
                }
            }
        })
    });
    receiver.map_err(|error| cannot_listen(&name, &error))
}

/// Receives streams of packets that are framed by SLIP.
///
/// # Errors
/// Why nothing can be received there.
pub fn streams<T: Take + Clone>(
    thread: &'static str,
    listen: &Listen,
    sink: EventSink,
    take: T,
) -> Result<Receiver, PortError> {
    let (name, allow) = (listen.name(), listen.allow.clone());
    let receiver = addresses(&listen.at).and_then(|addresses| {
        let listener = TcpListener::bind(addresses.as_slice())?;
        listener.set_nonblocking(true)?;
        Receiver::start(thread, move |stop| {
            let mut open: Vec<Receiver> = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, sender)) => {
                        open.retain(|receiver| receiver.thread.as_ref().is_some_and(|thread| !thread.is_finished()));
                        if open.len() < MAX_STREAMS && is_allowed(&allow, sender) {
                            let (sink, take) = (sink.another(), take.clone());
                            let read = Receiver::start(thread, move |stop| read_stream(stream, sink, take, stop));
                            open.extend(read);
                        } else {
                            sink.unheard();
                        }
                    }
                    Err(_) => std::thread::sleep(CLOSE_TIMEOUT / 4),
                }
            }
        })
    });
    receiver.map_err(|error| cannot_listen(&name, &error))
}

fn read_stream(mut stream: TcpStream, mut sink: EventSink, mut take: impl Take, stop: &AtomicBool) {
    let (mut reader, mut buffer) = (SlipReader::default(), vec![0_u8; 16_384]);
    // A stream that is accepted has the listener's mode on some systems.
    if stream.set_nonblocking(false).is_err() {
        return;
    }
    while !stop.load(Ordering::Relaxed) {
        let patience = if sink.settle() { CLOSE_TIMEOUT } else { SETTLE_INTERVAL };
        let _ = stream.set_read_timeout(Some(patience));
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => reader.push(&buffer[..length], |packet| match packet {
                Some(packet) => take(&mut sink, packet),
                None => sink.malformed(),
            }),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                ) => {}
            Err(_) => break,
        }
    }
    // What came last before the sender hung up counts as well.
    while !sink.settle() && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(SETTLE_INTERVAL);
    }
}

fn is_allowed(allow: &[Senders], sender: SocketAddr) -> bool {
    allow.is_empty() || allow.iter().any(|senders| senders.contain(sender.ip()))
}

fn addresses(place: &Place) -> io::Result<Vec<SocketAddr>> {
    Ok((place.host.as_str(), place.port).to_socket_addrs()?.collect())
}

fn cannot_listen(name: &str, error: &io::Error) -> PortError {
    PortError(match error.kind() {
        io::ErrorKind::AddrInUse => format!("{name} is in use: another program listens there"),
        io::ErrorKind::PermissionDenied => format!("{name}: not allowed; ports below 1024 need privileges"),
        _ => format!("{name}: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use conductor_event::DeviceId;

    use super::super::coalescing::Pacer;
    use super::super::sink::{InputRouting, PortCounters};
    use super::*;
    use conductor_stdx::clock::Clock;
    use conductor_stdx::doorbell::{self, Doorbell};

    /// A receiver that waits for the engine, which takes nothing, keeps what comes in its socket's buffer; what
    /// finds no room there is counted. Nothing is lost without a word.
    #[test]
    #[cfg(target_os = "linux")]
    fn what_the_system_drops_is_counted() {
        const SENT: u64 = 40_000;
        let (queue, inputs) = doorbell::bounded(1, &Doorbell::default());
        let (counters, pacer) = (Arc::new(PortCounters::default()), Pacer::start().unwrap());
        let routing = InputRouting::whole(DeviceId::new("touch"));
        let sink = EventSink::new(&routing, queue, Clock::start(), Arc::clone(&counters), &pacer);
        let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let at = Place { host: "127.0.0.1".into(), port: free.port() };
        let listen = Listen { at, transport: super::super::binding::Transport::Udp, allow: Vec::new() };
        let receiver = datagrams("osc-test", &listen, sink, EventSink::osc).unwrap();

        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..SENT {
            sender.send_to(b"/go\0,\0\0\0", free).unwrap();
        }
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let deadline = Instant::now() + Duration::from_secs(60);
        while count(&counters.events) + count(&counters.lost) < SENT {
            let _ = inputs.recv_timeout(Duration::from_millis(10));
            assert!(Instant::now() < deadline, "{counters:?}");
        }
        assert_eq!(count(&counters.events) + count(&counters.lost), SENT);
        assert!(count(&counters.lost) > 0 && count(&counters.events) > 200, "{counters:?}");
        drop(inputs);
        drop(receiver);
    }
}
