//! The supervisor: keeps every matching port open, and notices what is plugged and unplugged.
//!
//! One thread owns the backends and the connections. It lists the ports at every [`POLL`]; what a
//! driver says when it sends is not believed, because unplugging is silent on some systems.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use serde::Serialize;

use super::binding::{Resolved, resolve};
use super::sink::PortCounters;
use super::{BindingSpec, Connection, Direction, EventSink, MidiOut, PortBackend, PortInfo, Protocol};
use crate::clock::Clock;
use crate::event_loop::Input;

/// How often ports are listed. A new port is open within this time and what opening takes.
pub const POLL: Duration = Duration::from_millis(500);

/// How long a port that could not be opened is left alone.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// Which ports are opened.
#[derive(Debug, Clone, Default)]
pub struct PortPlan {
    /// The configured bindings that are enabled.
    pub bindings: Vec<BindingSpec>,
    /// Open inputs that no binding matches, too.
    pub open_unbound: bool,
    /// MIDI inputs open at once, at most.
    pub max_midi_ports: usize,
    /// The outputs that rules send to, by alias or port name.
    pub targets: Vec<String>,
}

/// What became of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PortState {
    /// Open.
    Open,
    /// Not wanted: no binding matches, or no rule sends to it.
    Idle,
    /// An earlier port has taken the binding that would match.
    Contested(String),
    /// Not opened: there are `max_midi_ports` already.
    OverLimit,
    /// It can't be opened, for this reason.
    Failed(String),
}

/// One port, as listings show it.
#[derive(Debug, Clone, Serialize)]
pub struct PortStatus {
    /// The port.
    #[serde(flatten)]
    pub port: PortInfo,
    /// What its events are called.
    pub device: String,
    /// The binding, where one matches.
    pub binding: Option<String>,
    /// What became of it.
    pub state: PortState,
    /// Events that went in.
    pub events: u64,
    /// Continuous values left out because the engine was behind.
    pub dropped: u64,
    /// Messages that made no sense.
    pub malformed: u64,
}

/// All ports, and the backends that can't be reached.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PortsStatus {
    /// Every port of every backend.
    pub ports: Vec<PortStatus>,
    /// Backends as a whole, with the reason why they can't be used.
    pub unreachable: Vec<(String, String)>,
}

/// A look at the ports of a supervisor.
#[derive(Debug, Clone)]
pub struct PortsReader(Arc<Mutex<PortsStatus>>);

impl PortsReader {
    /// All ports, as of now.
    pub fn status(&self) -> PortsStatus {
        lock(&self.0).clone()
    }
}

/// What the supervisor reports to whoever started it.
pub trait PortEvents: Send {
    /// A port was opened or closed; in words.
    fn changed(&mut self, text: String);
    /// A port or a backend can't be had; in words.
    fn trouble(&mut self, text: String);
    /// An output that rules send to is there.
    fn output(&mut self, target: &str, port: Box<dyn MidiOut>);
    /// An output that rules send to is gone.
    fn output_gone(&mut self, target: &str);
}

enum Command {
    Apply(PortPlan, Sender<()>),
    CloseInputs(Sender<()>),
    Stop,
}

/// The way to the supervisor. Dropping it closes every port.
pub struct Supervisor {
    commands: Sender<Command>,
    status: Arc<Mutex<PortsStatus>>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervisor").finish_non_exhaustive()
    }
}

impl Supervisor {
    /// Starts the thread. Nothing is opened before the first [`apply`](Self::apply).
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(
        backends: Vec<Box<dyn PortBackend>>,
        queue: Sender<Input>,
        clock: Clock,
        events: Box<dyn PortEvents>,
    ) -> std::io::Result<Self> {
        let (commands, receiver) = crossbeam_channel::unbounded();
        let status: Arc<Mutex<PortsStatus>> = Arc::default();
        let keeper = Keeper {
            backends,
            queue,
            clock,
            events,
            plan: PortPlan::default(),
            inputs: HashMap::new(),
            outputs: HashMap::new(),
            failed: HashMap::new(),
            status: Arc::clone(&status),
        };
        let thread = std::thread::Builder::new().name("ports".into()).spawn(move || keeper.run(&receiver))?;
        Ok(Self { commands, status, thread: Some(thread) })
    }

    /// Opens and closes ports until they are as planned; returns when it is done.
    pub fn apply(&self, plan: PortPlan) {
        let (done, wait) = crossbeam_channel::bounded(1);
        if self.commands.send(Command::Apply(plan, done)).is_ok() {
            let _ = wait.recv();
        }
    }

    /// Closes every input and opens none any more; outputs stay.
    pub fn close_inputs(&self) {
        let (done, wait) = crossbeam_channel::bounded(1);
        if self.commands.send(Command::CloseInputs(done)).is_ok() {
            let _ = wait.recv();
        }
    }

    /// The ports as they were at the last look.
    pub fn status(&self) -> PortsStatus {
        lock(&self.status).clone()
    }

    /// A way to the same for whoever must not own the supervisor.
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A port, beyond the moment of one listing.
type PortKey = (&'static str, Direction, String);

fn key(port: &PortInfo) -> PortKey {
    (port.backend, port.direction, port.key.clone())
}

struct OpenInput {
    device: conductor_engine::DeviceId,
    counters: Arc<PortCounters>,
    _connection: Box<dyn Connection>,
}

struct Keeper {
    backends: Vec<Box<dyn PortBackend>>,
    queue: Sender<Input>,
    clock: Clock,
    events: Box<dyn PortEvents>,
    plan: PortPlan,
    inputs: HashMap<PortKey, OpenInput>,
    /// Open outputs, by the target that rules call them.
    outputs: HashMap<String, PortKey>,
    /// Ports that could not be opened, why, and when to try again.
    failed: HashMap<PortKey, (String, Instant)>,
    status: Arc<Mutex<PortsStatus>>,
}

impl Keeper {
    fn run(mut self, commands: &Receiver<Command>) {
        let mut next = Instant::now() + POLL;
        loop {
            match commands.recv_deadline(next) {
                Ok(Command::Apply(plan, done)) => {
                    for backend in &mut self.backends {
                        backend.configure(&plan.bindings);
                    }
                    self.plan = plan;
                    self.failed.clear();
                    self.look();
                    let _ = done.send(());
                }
                Ok(Command::CloseInputs(done)) => {
                    self.inputs.clear();
                    let _ = done.send(());
                    // Nothing is opened any more: only the end can come.
                    while matches!(commands.recv(), Ok(Command::Apply(..) | Command::CloseInputs(_))) {}
                    return;
                }
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => self.look(),
            }
            next = Instant::now() + POLL;
        }
    }

    /// Lists all ports, opens what is wanted, closes what is not or is gone.
    fn look(&mut self) {
        let mut ports = Vec::new();
        let mut unreachable = Vec::new();
        for backend in &mut self.backends {
            match backend.list() {
                Ok(listed) => ports.extend(listed),
                Err(error) => unreachable.push((backend.name().to_owned(), error.to_string())),
            }
        }
        self.report_backends(&unreachable);
        let (inputs, outputs): (Vec<_>, Vec<_>) =
            ports.into_iter().partition(|port| port.direction == Direction::Input);
        let inputs = resolve(&inputs, &self.plan.bindings);
        let outputs = resolve(&outputs, &self.plan.bindings);
        self.failed.retain(|failed, _| inputs.iter().chain(&outputs).any(|resolved| key(&resolved.port) == *failed));

        let mut status: Vec<PortStatus> = self.look_at_inputs(&inputs);
        status.extend(self.look_at_outputs(&outputs));
        *lock(&self.status) = PortsStatus { ports: status, unreachable };
    }

    fn report_backends(&mut self, unreachable: &[(String, String)]) {
        let before = lock(&self.status).unreachable.clone();
        for (name, reason) in unreachable {
            if !before.iter().any(|(known, _)| known == name) {
                self.events.trouble(format!("{reason}. The rest works."));
            }
        }
    }

    fn look_at_inputs(&mut self, inputs: &[Resolved]) -> Vec<PortStatus> {
        let wanted = |resolved: &Resolved| {
            resolved.binding.is_some() || (self.plan.open_unbound && resolved.contested.is_none())
        };
        // A port that is gone, not wanted any more, or called something else now, is closed.
        let still: HashMap<PortKey, &Resolved> =
            inputs.iter().filter(|resolved| wanted(resolved)).map(|resolved| (key(&resolved.port), resolved)).collect();
        let mut closed = Vec::new();
        self.inputs.retain(|key, open| {
            let keep = still.get(key).is_some_and(|resolved| resolved.device == open.device);
            if !keep {
                closed.push(format!("closed {}", open.device));
            }
            keep
        });
        closed.into_iter().for_each(|text| self.events.changed(text));

        let mut midi = self.inputs.keys().filter(|(backend, ..)| *backend != "osc").count();
        inputs
            .iter()
            .map(|resolved| {
                let key = key(&resolved.port);
                let counts = resolved.port.protocol == Protocol::Midi;
                let state = if self.inputs.contains_key(&key) {
                    PortState::Open
                } else if let Some(alias) = &resolved.contested {
                    PortState::Contested(alias.clone())
                } else if !still.contains_key(&key) {
                    PortState::Idle
                } else if let Some(reason) = self.failure(&key) {
                    PortState::Failed(reason)
                } else if counts && midi >= self.plan.max_midi_ports {
                    PortState::OverLimit
                } else {
                    let state = self.open_input(resolved);
                    midi += usize::from(counts && state == PortState::Open);
                    state
                };
                self.status_of(resolved, state)
            })
            .collect()
    }

    fn open_input(&mut self, resolved: &Resolved) -> PortState {
        let counters: Arc<PortCounters> = Arc::default();
        let sink = EventSink::new(resolved.device.clone(), self.queue.clone(), self.clock, Arc::clone(&counters));
        let opened = self.backend(resolved.port.backend).map(|backend| backend.open_input(&resolved.port, sink));
        match opened {
            Some(Ok(connection)) => {
                self.failed.remove(&key(&resolved.port));
                self.events.changed(format!("opened {} ({})", resolved.device, resolved.port.name));
                let open = OpenInput { device: resolved.device.clone(), counters, _connection: connection };
                self.inputs.insert(key(&resolved.port), open);
                PortState::Open
            }
            Some(Err(error)) => self.fail(resolved, error.to_string()),
            None => self.fail(resolved, "its backend is gone".into()),
        }
    }

    /// Why the port could not be opened, as long as it is left alone for that.
    fn failure(&self, key: &PortKey) -> Option<String> {
        self.failed.get(key).filter(|(_, again)| Instant::now() < *again).map(|(reason, _)| reason.clone())
    }

    fn fail(&mut self, resolved: &Resolved, reason: String) -> PortState {
        let before = self.failed.insert(key(&resolved.port), (reason.clone(), Instant::now() + TRY_AGAIN));
        if before.is_none_or(|(known, _)| known != reason) {
            self.events.trouble(format!("skipped {}: {reason}", resolved.device));
        }
        PortState::Failed(reason)
    }

    fn look_at_outputs(&mut self, outputs: &[Resolved]) -> Vec<PortStatus> {
        let targets = self.plan.targets.clone();
        let mut states: HashMap<PortKey, PortState> = HashMap::new();
        for target in &targets {
            let port =
                outputs.iter().find(|resolved| resolved.device.as_str() == target || resolved.port.name == *target);
            match port {
                Some(resolved) if self.outputs.get(target) == Some(&key(&resolved.port)) => {
                    states.insert(key(&resolved.port), PortState::Open);
                }
                Some(resolved) => {
                    let state = match self.failure(&key(&resolved.port)) {
                        Some(reason) => PortState::Failed(reason),
                        None => self.open_output(target, resolved),
                    };
                    states.insert(key(&resolved.port), state);
                }
                None => self.close_output(target),
            }
        }
        let unwanted: Vec<String> = self.outputs.keys().filter(|target| !targets.contains(target)).cloned().collect();
        unwanted.iter().for_each(|target| self.close_output(target));
        outputs
            .iter()
            .map(|resolved| {
                let state = states.remove(&key(&resolved.port)).unwrap_or(PortState::Idle);
                self.status_of(resolved, state)
            })
            .collect()
    }

    fn open_output(&mut self, target: &str, resolved: &Resolved) -> PortState {
        let opened = self.backend(resolved.port.backend).map(|backend| backend.open_output(&resolved.port));
        match opened {
            Some(Ok(port)) => {
                self.failed.remove(&key(&resolved.port));
                self.events.changed(format!("opened output {target} ({})", resolved.port.name));
                self.events.output(target, port);
                self.outputs.insert(target.to_owned(), key(&resolved.port));
                PortState::Open
            }
            Some(Err(error)) => self.fail(resolved, error.to_string()),
            None => self.fail(resolved, "its backend is gone".into()),
        }
    }

    fn close_output(&mut self, target: &str) {
        if self.outputs.remove(target).is_some() {
            self.events.changed(format!("closed output {target}"));
            self.events.output_gone(target);
        }
    }

    fn backend(&mut self, name: &str) -> Option<&mut Box<dyn PortBackend>> {
        self.backends.iter_mut().find(|backend| backend.name() == name)
    }

    fn status_of(&self, resolved: &Resolved, state: PortState) -> PortStatus {
        let counters = self.inputs.get(&key(&resolved.port)).map(|open| Arc::clone(&open.counters)).unwrap_or_default();
        PortStatus {
            port: resolved.port.clone(),
            device: resolved.device.to_string(),
            binding: resolved.binding.clone(),
            state,
            events: counters.events.load(Ordering::Relaxed),
            dropped: counters.dropped.load(Ordering::Relaxed),
            malformed: counters.malformed.load(Ordering::Relaxed),
        }
    }
}
