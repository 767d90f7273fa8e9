//! MIDI ports of one JACK client, for as long as its server lives.
//!
//! A program has one [`Client`] for all its ports, and keeps it. JACK's library loses its footing when clients come and
//! go while others do: the one that closes may leave a lock of its process behind, and the server then waits for an
//! answer of that process, and all clients for the server (<https://github.com/jackaudio/jack2/issues/395>). Ports
//! may come and go freely.
//!
//! Three threads meet here. JACK's own (`cycle`) moves bytes between JACK's buffers and rings, and never waits. The
//! `reader` hands what came in to listeners, which may take their time. The caller's opens and closes ports.
//!
//! The crate does not depend on Conductor: the host and the tests' instruments both use it.

mod cycle;
mod frames;
mod pluggings;
mod reader;

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use jack::{
    AsyncClient, ClientOptions, ClientStatus, MidiIn, MidiOut, NotificationHandler, PortFlags, PortId, PortSpec,
};

use self::cycle::{Change, Cycle, Retired, Says};
use self::pluggings::Pluggings;
use self::reader::{Listeners, Reader};

/// Ports that one client may have.
pub const MAX_PORTS: usize = 128;

/// The longest message that goes out, in bytes: a quarter of what waits for the next cycle at most.
pub const MAX_OUT: usize = 1 << 14;

/// Bytes of messages to one output that may wait for the next cycle.
const OUT_QUEUE_BYTES: usize = 4 * MAX_OUT;

/// Bytes of messages of all inputs that may wait for their listeners.
const IN_QUEUE_BYTES: usize = 1 << 18;

/// How long is waited for JACK's thread: until it has let go of a port, or has begun cycles that know of a connection.
/// A cycle takes some milliseconds.
const CYCLE_TIMEOUT: Duration = Duration::from_millis(500);

/// How often it is looked whether a cycle has passed.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// JACK's word for MIDI, as a pattern.
const MIDI: &str = "^8 bit raw midi$";

/// Why something can't be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No server answers, or JACK's library is not installed.
    #[error("no JACK server answers: {0}")]
    NoServer(String),
    /// The server ended after this client was opened. A new client may reach the next one.
    #[error("the JACK server has ended")]
    Gone,
    /// The server refused.
    #[error("JACK refuses {what}: {why}")]
    Refused {
        /// What was asked for.
        what: String,
        /// Its reason.
        why: String,
    },
    /// [`MAX_PORTS`] are open.
    #[error("more than {MAX_PORTS} JACK ports are open")]
    TooMany,
    /// More than [`MAX_OUT`] bytes.
    #[error("a message of {0} bytes is longer than JACK takes ({MAX_OUT})")]
    TooLong(usize),
    /// Messages come faster than JACK's cycles take them.
    #[error("messages come faster than JACK takes them")]
    Full,
}

/// Which way MIDI goes through a port, seen from the program that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// It hears: others' outputs can be connected to it.
    In,
    /// It says: it can be connected to others' inputs.
    Out,
}

/// A client of the JACK server that programs here use by default. Clones are the same client.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    /// First, so that JACK's thread has ended when the reader does.
    jack: AsyncClient<Watch, Cycle>,
    _reader: Reader,
    listeners: Arc<Listeners>,
    /// Locked during every request to the server: JACK's library writes a request in several pieces and locks nothing,
    /// and a server that gets two requests mixed waits forever for the rest, as all its clients then do for it.
    control: Mutex<Control>,
    gone: Arc<AtomicBool>,
    lost: Arc<AtomicU64>,
    /// Cycles since the client was opened.
    cycles: Arc<AtomicU64>,
    pluggings: Arc<Pluggings>,
}

/// The way to JACK's thread, for one caller at a time.
struct Control {
    changes: Sender<Change>,
    retired: Receiver<Retired>,
    open: usize,
    next: u32,
}

/// Notices that the server ends, and that ports come.
struct Watch {
    gone: Arc<AtomicBool>,
    pluggings: Arc<Pluggings>,
}

impl NotificationHandler for Watch {
    #[allow(unsafe_code, reason = "the trait declares it so")]
    // SAFETY: it is called as from a signal handler, where an atomic store is allowed.
    unsafe fn shutdown(&mut self, _status: ClientStatus, _reason: &str) {
        self.gone.store(true, Ordering::Release);
    }

    fn port_registration(&mut self, client: &jack::Client, id: PortId, is_registered: bool) {
        let port = is_registered.then(|| client.port_by_id(id)).flatten();
        if let Some(name) = port.and_then(|port| port.name().ok()) {
            self.pluggings.came(name);
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("gone", &self.is_gone()).finish_non_exhaustive()
    }
}

impl Client {
    /// Opens a client. Where its name is taken, the server adds a number to it.
    ///
    /// # Errors
    /// [`Error::NoServer`]; none is started.
    pub fn open(name: &str) -> Result<Self, Error> {
        // What JACK has to say comes back as errors; its own words would stand between those of the program.
        jack::set_logger(jack::LoggerType::None);
        let no_server = |error: jack::Error| Error::NoServer(error.to_string());
        let (client, _) = jack::Client::new(name, ClientOptions::NO_START_SERVER).map_err(no_server)?;
        let (heard, to_read) = rtrb::RingBuffer::new(IN_QUEUE_BYTES);
        let (listeners, gone): (Arc<Listeners>, Arc<AtomicBool>) = Default::default();
        let (lost, cycles): (Arc<AtomicU64>, Arc<AtomicU64>) = Default::default();
        let pluggings: Arc<Pluggings> = Arc::default();
        let reader =
            Reader::start(to_read, Arc::clone(&listeners)).map_err(|error| Error::NoServer(error.to_string()))?;
        // As many as there can be ports: neither end ever finds its channel full.
        let (changes, changed) = crossbeam_channel::bounded(2 * MAX_PORTS);
        let (retire, retired) = crossbeam_channel::bounded(2 * MAX_PORTS);
        let cycle = Cycle::new(changed, retire, heard, reader.thread(), Arc::clone(&lost), Arc::clone(&cycles));
        let jack = client
            .activate_async(Watch { gone: Arc::clone(&gone), pluggings: Arc::clone(&pluggings) }, cycle)
            .map_err(no_server)?;
        let control = Mutex::new(Control { changes, retired, open: 0, next: 0 });
        let shared = Shared { jack, _reader: reader, listeners, control, gone, lost, cycles, pluggings };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The name that the server gave it: the part of its ports' names before the colon.
    pub fn name(&self) -> &str {
        self.shared.jack.as_client().name()
    }

    /// Whether the server has ended. Everything that is open is dead then.
    pub fn is_gone(&self) -> bool {
        self.shared.gone.load(Ordering::Acquire)
    }

    /// Messages that found no room, on their way in or out, since the client was opened.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Every MIDI port of this direction, of all clients, by its whole name.
    ///
    /// # Errors
    /// [`Error::Gone`].
    pub fn ports(&self, direction: Direction) -> Result<Vec<String>, Error> {
        self.there()?;
        let client = self.shared.jack.as_client();
        self.shared.pluggings.tidy(|| client.ports(None, None, PortFlags::empty()));
        let flags = match direction {
            Direction::In => PortFlags::IS_INPUT,
            Direction::Out => PortFlags::IS_OUTPUT,
        };
        Ok(client.ports(None, Some(MIDI), flags))
    }

    /// A number for the plugging of the port with this whole name: it is another one when the port went and came again,
    /// be it between two looks, and then what was connected to it is not any more.
    pub fn plugging(&self, port: &str) -> u64 {
        self.shared.pluggings.of(port)
    }

    /// Makes a port that hears. `listen` gets every message, whole, on the reader's thread; while it takes its time,
    /// those of other ports wait. It is not called any more when the port is dropped.
    ///
    /// # Errors
    /// [`Error::Gone`], [`Error::TooMany`], [`Error::Refused`], for instance where this client has a port of this name.
    pub fn input(&self, name: &str, listen: impl FnMut(&[u8]) + Send + 'static) -> Result<Input, Error> {
        let port = self.open_port(name, MidiIn::default(), |id, port| {
            self.shared.listeners.add(id, Box::new(listen));
            Change::Hear(id, port)
        })?;
        Ok(Input(port))
    }

    /// Makes a port that says.
    ///
    /// # Errors
    /// As of [`Client::input`].
    pub fn output(&self, name: &str) -> Result<Output, Error> {
        let (ring, waiting) = rtrb::RingBuffer::new(OUT_QUEUE_BYTES);
        let port =
            self.open_port(name, MidiOut::default(), |id, port| Change::Say(Box::new(Says::new(id, port, waiting))))?;
        Ok(Output { port, ring })
    }

    /// Connects an output to an input, by their whole names, and waits until JACK's next cycles know of it: what is
    /// said before goes nowhere.
    ///
    /// # Errors
    /// [`Error::Gone`]; [`Error::Refused`], for instance where one of them is gone.
    pub fn connect(&self, output: &str, input: &str) -> Result<(), Error> {
        self.there()?;
        let control = self.shared.control();
        let connected = self.shared.jack.as_client().connect_ports_by_name(output, input);
        drop(control);
        connected.map_err(|error| refused(&format!("to connect {output} to {input}"), &error))?;
        // One cycle may have begun before; the next one begins with the connection.
        let known = self.shared.cycles.load(Ordering::Acquire) + 2;
        let deadline = Instant::now() + CYCLE_TIMEOUT;
        while self.shared.cycles.load(Ordering::Acquire) < known && Instant::now() < deadline {
            thread::sleep(POLL_INTERVAL);
        }
        self.there()
    }

    fn there(&self) -> Result<(), Error> {
        if self.is_gone() { Err(Error::Gone) } else { Ok(()) }
    }

    fn open_port<S: PortSpec>(
        &self,
        name: &str,
        spec: S,
        change: impl FnOnce(u32, jack::Port<S>) -> Change,
    ) -> Result<Port, Error> {
        self.there()?;
        let mut control = self.shared.control();
        // A port that was released too late for its closer still has its name.
        while let Ok(retired) = control.retired.try_recv() {
            self.shared.unregister(&mut control, retired);
        }
        if control.open == MAX_PORTS {
            return Err(Error::TooMany);
        }
        let registered = self.shared.jack.as_client().register_port(name, spec);
        let port = registered.map_err(|error| refused(&format!("a port called {name}"), &error))?;
        let whole = port.name().map_err(|error| refused(&format!("a port called {name}"), &error))?;
        let id = control.next;
        // There is room unless JACK's thread stands still.
        control.changes.try_send(change(id, port)).map_err(|_| Error::Gone)?;
        control.next += 1;
        control.open += 1;
        Ok(Port { client: self.clone(), id, name: whole })
    }
}

fn refused(what: &str, error: &jack::Error) -> Error {
    Error::Refused { what: what.to_owned(), why: error.to_string() }
}

impl Shared {
    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock()
    }

    /// Has JACK's thread let go of a port, and unregisters it. Where the server stands still or has ended, the port
    /// goes with the client.
    fn close(&self, id: u32) {
        self.listeners.remove(id);
        let mut control = self.control();
        if self.gone.load(Ordering::Acquire) || control.changes.try_send(Change::Retire(id)).is_err() {
            return;
        }
        let deadline = Instant::now() + CYCLE_TIMEOUT;
        while let Ok(retired) = control.retired.recv_deadline(deadline) {
            let is_it = retired.id() == id;
            self.unregister(&mut control, retired);
            if is_it {
                return;
            }
        }
    }

    /// Forgets a port that JACK's thread has let go of.
    fn unregister(&self, control: &mut Control, retired: Retired) {
        control.open -= 1;
        // It fails only where the server has ended meanwhile.
        let _ = match retired {
            Retired::Heard(_, port) => self.jack.as_client().unregister_port(port),
            Retired::Said(says) => self.jack.as_client().unregister_port(says.port),
        };
    }
}

/// A port of this client, until it is dropped.
struct Port {
    client: Client,
    id: u32,
    name: String,
}

impl Drop for Port {
    fn drop(&mut self) {
        self.client.shared.close(self.id);
    }
}

/// A port that hears. Dropping it closes it.
pub struct Input(Port);

impl Input {
    /// Its whole name, such as `conductor:from Keys`.
    pub fn name(&self) -> &str {
        &self.0.name
    }
}

/// A port that says. Dropping it closes it, once everything that was sent has gone out.
pub struct Output {
    port: Port,
    ring: rtrb::Producer<u8>,
}

impl Output {
    /// Its whole name, such as `conductor:to Synth`.
    pub fn name(&self) -> &str {
        &self.port.name
    }

    /// Sends one whole MIDI message, without running status, in JACK's next cycle.
    ///
    /// # Errors
    /// [`Error::Gone`], [`Error::TooLong`], [`Error::Full`]; nothing of it is sent then.
    pub fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        self.port.client.there()?;
        if message.len() > MAX_OUT {
            return Err(Error::TooLong(message.len()));
        }
        frames::put(&mut self.ring, self.port.id, message).then_some(()).ok_or(Error::Full)
    }
}
