//! How datagrams of features leave this machine: the operating system's sockets, or a test's in their place.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};

/// How datagrams leave this machine, and how host names are resolved. Tests put their own here, so
/// that no packet has to leave.
pub trait Datagrams: std::fmt::Debug + Send + Sync {
    /// A way to send datagrams to `address`.
    ///
    /// # Errors
    /// The socket's error.
    fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn DatagramSender>>;

    /// The first address of a host name. May wait; called when a grant is given.
    ///
    /// # Errors
    /// The resolver's error.
    fn resolve(&self, host: &str) -> io::Result<IpAddr>;
}

/// Sends datagrams to one address.
pub trait DatagramSender: std::fmt::Debug + Send + Sync {
    /// Sends one datagram without waiting.
    ///
    /// # Errors
    /// The socket's error; `WouldBlock` when it is full, `ConnectionRefused` when the machine at
    /// the other end reported that no program listens.
    fn send(&self, data: &[u8]) -> io::Result<()>;
}

/// The operating system's sockets.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemDatagrams;

#[derive(Debug)]
struct SystemSender(UdpSocket);

impl Datagrams for SystemDatagrams {
    fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn DatagramSender>> {
        let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0))?;
        socket.set_nonblocking(true)?;
        socket.connect(address)?;
        Ok(Box::new(SystemSender(socket)))
    }

    fn resolve(&self, host: &str) -> io::Result<IpAddr> {
        let first = (host, 0).to_socket_addrs()?.next();
        first.map(|address| address.ip()).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no address"))
    }
}

impl DatagramSender for SystemSender {
    fn send(&self, data: &[u8]) -> io::Result<()> {
        match self.0.send(data) {
            // A connected socket reports here that no program received the datagram *before*, and sends
            // nothing. This one is still tried: a program may listen by now.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let _ = self.0.send(data);
                Err(error)
            }
            other => other.map(|_| ()),
        }
    }
}
