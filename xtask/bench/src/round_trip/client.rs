//! The socket that plays: it sends OSC messages to a peer and takes what comes back.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::ops::AddAssign;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, bail};

use super::peers::Peer;
use super::stamped::{self, Stamped};

/// Numbers go round below this, so a `float32` holds each of them, and as a fraction of this, too.
const NUMBERS: u16 = 1 << 15;
/// No answer within this is none.
const REPLY_TIMEOUT: Duration = Duration::from_millis(200);
/// A rest after each answer: a feature may send 20 000 datagrams a second, and a quick machine asks faster.
pub const REST: Duration = Duration::from_micros(50);

/// Messages of a burst, and what makes 12 000 a second of them.
const BURST: u32 = 64;
const BURST_INTERVAL: Duration = Duration::from_nanos(1_000_000_000 * BURST as u64 / 12_000);
const BURSTS: u32 = 500;
const _: () = assert!(BURST * BURSTS <= NUMBERS as u32, "each number is sent once");

/// How a peer wants its numbers. Messages have the same length either way.
#[derive(Debug, Clone, Copy)]
pub enum Numbers {
    /// As an `int32`, which makes a discrete event.
    Whole,
    /// As a `float32` from 0 to 1.
    Unit,
}

/// How long an answer took.
#[derive(Debug, Clone, Copy)]
pub struct Trip {
    /// Until this thread had it.
    pub taken: Duration,
    /// Until it reached this socket: without the time that this thread took to wake.
    pub arrived: Duration,
}

/// The socket.
#[derive(Debug)]
pub struct Client {
    socket: UdpSocket,
    next: u16,
}

/// What became of bursts.
#[derive(Debug, Default, Clone, Copy)]
pub struct Delivered {
    pub sent: u64,
    pub came: u64,
}

impl AddAssign for Delivered {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.came += other.came;
    }
}

impl Delivered {
    /// How much of it came.
    pub fn percent(&self) -> f64 {
        self.came as f64 / self.sent as f64 * 100.0
    }
}

impl Client {
    /// A socket on a port that is free.
    pub fn new() -> Result<Self> {
        let socket = UdpSocket::bind(("127.0.0.1", 0))?;
        socket.set_read_timeout(Some(REPLY_TIMEOUT))?;
        stamped::enable(&socket)?;
        Ok(Self { socket, next: 0 })
    }

    /// Where answers are taken.
    pub fn port(&self) -> Result<u16> {
        Ok(self.socket.local_addr()?.port())
    }

    /// Asks until there is an answer: a peer may still be starting.
    pub fn wait_for(&mut self, peer: &Peer) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            let number = self.number();
            self.send(peer, number)?;
            if self.receive(peer)?.is_some() {
                while self.receive(peer)?.is_some() {}
                return Ok(());
            }
        }
        bail!("{} does not answer", peer.name)
    }

    /// Sends one message and waits for the answer to it.
    pub fn ask(&mut self, peer: &Peer) -> Result<Trip> {
        let number = self.number();
        let (start, sent) = (Instant::now(), SystemTime::UNIX_EPOCH.elapsed()?);
        self.send(peer, number)?;
        loop {
            match self.receive(peer)? {
                Some((answer, at)) if answer == number => {
                    let trip = Trip { taken: start.elapsed(), arrived: at.saturating_sub(sent) };
                    std::thread::sleep(REST);
                    return Ok(trip);
                }
                // Late, from before.
                Some(_) => {}
                None => bail!("{} gave no answer", peer.name),
            }
        }
    }

    /// Sends bursts for some seconds while another thread counts what comes back.
    pub fn bursts(&mut self, peer: &Peer) -> Result<Delivered> {
        // What is late from before would be counted.
        while self.receive(peer)?.is_some() {}
        let messages = BURST * BURSTS;
        let taker = self.try_clone()?;
        std::thread::scope(|scope| {
            let taking = scope.spawn(move || taker.take(peer, messages));
            let start = Instant::now();
            for burst in 0..BURSTS {
                std::thread::sleep((start + BURST_INTERVAL * burst).saturating_duration_since(Instant::now()));
                for _ in 0..BURST {
                    let number = self.number();
                    self.send(peer, number)?;
                }
            }
            let came = taking.join().map_err(|_| anyhow::anyhow!("the counting thread failed"))??;
            Ok(Delivered { sent: messages.into(), came })
        })
    }

    /// How many different numbers come, until all have or nothing comes any more.
    fn take(&self, peer: &Peer, messages: u32) -> Result<u64> {
        let mut seen = vec![false; NUMBERS.into()];
        let mut came = 0;
        while came < u64::from(messages) {
            let Some((number, _)) = self.receive(peer)? else { break };
            let seen = seen.get_mut(usize::from(number)).context("an answer to nothing")?;
            came += u64::from(!std::mem::replace(seen, true));
        }
        Ok(came)
    }

    fn try_clone(&self) -> Result<Self> {
        Ok(Self { socket: self.socket.try_clone()?, next: 0 })
    }

    fn number(&mut self) -> u16 {
        self.next = (self.next + 1) % NUMBERS;
        self.next
    }

    fn send(&self, peer: &Peer, number: u16) -> Result<()> {
        let (head, argument) = match peer.numbers {
            Numbers::Whole => (b"/in/fader\0\0\0,i\0\0", i32::from(number).to_be_bytes()),
            Numbers::Unit => (b"/in/fader\0\0\0,f\0\0", (f32::from(number) / f32::from(NUMBERS)).to_be_bytes()),
        };
        let mut packet = [0; 20];
        packet[..16].copy_from_slice(head);
        packet[16..].copy_from_slice(&argument);
        let address = peer.addresses[usize::from(number) % peer.addresses.len()];
        self.socket.send_to(&packet, address)?;
        Ok(())
    }

    /// The number in the next answer, and when it came; `None` if none comes in time.
    fn receive(&self, peer: &Peer) -> Result<Option<(u16, Duration)>> {
        let mut buffer = [0; 64];
        loop {
            match stamped::receive(&self.socket, &mut buffer) {
                Ok(Stamped { length, at }) => {
                    // Every peer answers with the number as the only argument, so at the end.
                    let argument = *buffer[..length].last_chunk().context("an answer is too short")?;
                    let number = match peer.numbers {
                        Numbers::Whole => u16::try_from(i32::from_be_bytes(argument))?,
                        Numbers::Unit => (f32::from_be_bytes(argument) * f32::from(NUMBERS)).round() as u16,
                    };
                    return Ok(Some((number, at)));
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(None),
                // An ICMP message that no program listens at the peer's port yet.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
