//! Datagrams that go nowhere: to measure everything but the socket.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use conductor_sandbox::datagrams::{DatagramSender, Datagrams};
use crossbeam_channel::Sender;

fn no_names<T>() -> io::Result<T> {
    Err(io::Error::other("targets are written as addresses here"))
}

/// Drops what is sent.
#[derive(Debug, Clone, Copy)]
pub struct Discard;

impl Datagrams for Discard {
    fn connect(&self, _address: SocketAddr) -> io::Result<Box<dyn DatagramSender>> {
        Ok(Box::new(Self))
    }

    fn resolve(&self, _host: &str) -> io::Result<IpAddr> {
        no_names()
    }
}

impl DatagramSender for Discard {
    fn send(&self, data: &[u8]) -> io::Result<()> {
        std::hint::black_box(data);
        Ok(())
    }
}

/// Says when something was sent, instead of sending it.
#[derive(Debug, Clone)]
pub struct Stamp(pub Sender<Instant>);

impl Datagrams for Stamp {
    fn connect(&self, _address: SocketAddr) -> io::Result<Box<dyn DatagramSender>> {
        Ok(Box::new(self.clone()))
    }

    fn resolve(&self, _host: &str) -> io::Result<IpAddr> {
        no_names()
    }
}

impl DatagramSender for Stamp {
    fn send(&self, _data: &[u8]) -> io::Result<()> {
        let _ = self.0.try_send(Instant::now());
        Ok(())
    }
}
