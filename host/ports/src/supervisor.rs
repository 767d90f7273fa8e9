//! The supervisor: keeps every matching port open, and detects hot-plug.
//!
//! One thread (in `port_thread`) lists the ports at every [`POLL_INTERVAL`] and owns the connections. A driver's success at
//! sending does not count as a sign of life, because unplugging is silent on some systems.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::thread::JoinHandle;

use conductor_listening::Listening;
use conductor_stdx::clock::Clock;
use conductor_stdx::doorbell;
use crossbeam_channel::Sender;
use parking_lot::Mutex;

use super::PortBackend;
pub use super::plan::PortPlan;
use super::port_thread::{Command, PortThread};
pub use super::port_thread::{POLL_INTERVAL, PortEvents, RECONNECT_GRACE};
use super::resolve::{Labels, resolve};
pub use super::status::{BindingStatus, DiscoveredPort, Health, PortState, PortsStatus, SideState, SideStatus};
use crate::engine_input::Input;

/// A look at the ports of a supervisor.
#[derive(Debug, Clone)]
pub struct PortsReader(Arc<Mutex<PortsStatus>>);

impl PortsReader {
    /// All ports, as of now.
    pub fn status(&self) -> PortsStatus {
        self.0.lock().clone()
    }
}

/// The way to the supervisor. Dropping it closes every port.
pub struct Supervisor {
    commands: Sender<Command>,
    status: Arc<Mutex<PortsStatus>>,
    listening: Arc<Listening>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervisor").finish_non_exhaustive()
    }
}

/// There is no such device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no device {device:?}; there are {}", .known.join(", "))]
pub struct UnknownDevice {
    /// What was asked for.
    pub device: String,
    /// What could be: aliases, and the names of ports.
    pub known: Vec<String>,
}

/// A way to mute devices of a supervisor, and to listen to all of its ports.
#[derive(Clone)]
pub struct Mutes {
    commands: Sender<Command>,
    status: Arc<Mutex<PortsStatus>>,
    listening: Arc<Listening>,
}

impl std::fmt::Debug for Mutes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mutes").finish_non_exhaustive()
    }
}

impl Mutes {
    /// The sessions in which something is learned. While there is one, all ports are open.
    pub fn listening(&self) -> &Arc<Listening> {
        &self.listening
    }

    fn device(&self, name: &str) -> Result<String, UnknownDevice> {
        let status = self.status.lock();
        if status.bindings.iter().any(|binding| binding.alias == name) {
            return Ok(name.to_owned());
        }
        if let Some(port) = status.ports.iter().find(|port| port.label == name) {
            return Ok(port.device.clone());
        }
        let aliases = status.bindings.iter().map(|binding| &binding.alias);
        let known: BTreeSet<&String> = aliases.chain(status.ports.iter().map(|port| &port.label)).collect();
        Err(UnknownDevice { device: name.to_owned(), known: known.into_iter().cloned().collect() })
    }

    /// Stops hearing a device, or hears it again; returns when it is done. It is forgotten when the host ends.
    ///
    /// # Errors
    /// When neither a binding nor a port is called so.
    pub fn mute(&self, device: &str, muted: bool) -> Result<(), UnknownDevice> {
        self.device(device)?;
        ask(&self.commands, |done| Command::Mute(device.to_owned(), muted, done));
        Ok(())
    }
}

/// Tells the thread, and waits until it is done; at once where it has ended.
fn ask(commands: &Sender<Command>, command: impl FnOnce(Sender<()>) -> Command) {
    let (done, wait) = crossbeam_channel::bounded(1);
    if commands.send(command(done)).is_ok() {
        let _ = wait.recv();
    }
}

impl Supervisor {
    /// Starts the thread. Nothing is opened before the first [`apply`](Self::apply).
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(
        backends: Vec<Box<dyn PortBackend>>,
        queue: doorbell::Sender<Input>,
        clock: Clock,
        events: Box<dyn PortEvents>,
    ) -> std::io::Result<Self> {
        let (commands, receiver) = crossbeam_channel::unbounded();
        let status: Arc<Mutex<PortsStatus>> = Arc::default();
        let listening: Arc<Listening> = Arc::default();
        let (listens, changed) = (Arc::clone(&listening), commands.clone());
        listening.on_change(move || ask(&changed, Command::Listen));
        let port_thread = PortThread::new(backends, queue, clock, events, listens, Arc::clone(&status))?;
        let thread = std::thread::Builder::new().name("ports".into()).spawn(move || port_thread.run(&receiver))?;
        Ok(Self { commands, status, listening, thread: Some(thread) })
    }

    /// Opens and closes ports until they are as planned; returns when it is done.
    pub fn apply(&self, plan: PortPlan) {
        self.ask(|done| Command::Apply(plan, done));
    }

    /// Closes every input and opens none any more; outputs stay.
    pub fn close_inputs(&self) {
        self.ask(Command::CloseInputs);
    }

    /// Lets go of every keyboard and mouse that is grabbed; returns when it is done. They are heard as before, and grabbed
    /// again with the next [`apply`](Self::apply).
    pub fn release_grabs(&self) {
        self.ask(Command::ReleaseGrabs);
    }

    /// Stops hearing a device, or hears it again. See [`Mutes::mute`].
    ///
    /// # Errors
    /// When neither a binding nor a port is called so.
    pub fn mute(&self, device: &str, muted: bool) -> Result<(), UnknownDevice> {
        self.mutes().mute(device, muted)
    }

    /// What the events are called of a device: `name` is a binding's alias, whether its port is there or not, or a port's
    /// own name.
    ///
    /// # Errors
    /// See [`UnknownDevice`].
    pub fn device(&self, name: &str) -> Result<String, UnknownDevice> {
        self.mutes().device(name)
    }

    /// Mutes devices, for code that must not own the supervisor.
    pub fn mutes(&self) -> Mutes {
        let (status, listening) = (Arc::clone(&self.status), Arc::clone(&self.listening));
        Mutes { commands: self.commands.clone(), status, listening }
    }

    fn ask(&self, command: impl FnOnce(Sender<()>) -> Command) {
        ask(&self.commands, command);
    }

    /// The ports as they were at the last look.
    pub fn status(&self) -> PortsStatus {
        self.status.lock().clone()
    }

    /// The same, for code that must not own the supervisor.
    pub fn reader(&self) -> PortsReader {
        PortsReader(Arc::clone(&self.status))
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How the ports are that these backends list, without opening one.
pub fn look(backends: Vec<Box<dyn PortBackend>>, plan: &PortPlan) -> PortsStatus {
    let (mut ports, mut unreachable) = (Vec::new(), Vec::new());
    for mut backend in backends {
        backend.configure(&plan.bindings);
        match backend.list() {
            Ok(listed) => ports.extend(listed),
            Err(error) => unreachable.push((backend.name().to_owned(), error.to_string())),
        }
    }
    let (ignored, ports) = plan.without_ignored(ports);
    let resolution = resolve(&ports, &plan.bindings, &Labels::default());
    let status = (0..ports.len()).map(|place| DiscoveredPort::closed(&resolution, place, false)).collect();
    PortsStatus::new(plan, &resolution, status, ignored, unreachable, &HashSet::new())
}
