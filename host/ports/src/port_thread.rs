//! The supervisor's thread, which handles hot-plug: which ports are listed, which are open, and why others are not.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use conductor_event::DeviceId;
use conductor_listening::Listening;
use conductor_scheduling::take_overruns;
use conductor_stdx::clock::Clock;
use conductor_stdx::device_defaults::{USUAL_DEAD_ZONE, USUAL_RATE};
use conductor_stdx::doorbell;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use parking_lot::Mutex;

use super::backend_thread::{BackendThread, NoAnswer};
use super::binding::Channels;
use super::coalescing::Pacer;
use super::plan::PortPlan;
use super::resolve::{Labels, PortKey, Resolution, Resolved, key, resolve};
use super::sink::{InputRouting, PortCounters, RoutedDevice};
use super::{
    Connection, Direction, EventSink, MidiOut, PortBackend, PortError, PortInfo, Protocol, SysExIdentity, UsbDevice,
    status::{DiscoveredPort, PortState, PortsStatus},
};
use crate::engine_input::Input;

/// How often ports are listed. A new port is open within this time and what opening takes.
pub const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How long a device may be away without what it has begun being given up.
pub const RECONNECT_GRACE: Duration = Duration::from_secs(5);

/// How long a port that could not be opened is left alone.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// What the supervisor reports to its owner.
pub trait PortEvents: Send {
    /// A port was opened or closed, as text.
    fn changed(&mut self, text: String);
    /// A port or a backend can't be had, as text.
    fn trouble(&mut self, text: String);
    /// Nothing more is to be expected of what the device has begun: it is gone, muted, or not listened to
    /// any more.
    fn gone(&mut self, device: &DeviceId);
    /// An output that rules send to has appeared.
    fn output(&mut self, target: &str, port: Box<dyn MidiOut>);
    /// An output that rules send to is gone.
    fn output_gone(&mut self, target: &str);
}

/// Commands to the thread, and where it reports that they are done.
pub(super) enum Command {
    Apply(PortPlan, Sender<()>),
    CloseInputs(Sender<()>),
    Mute(String, bool, Sender<()>),
    /// Devices that are grabbed are let go until the next [`Apply`](Self::Apply).
    ReleaseGrabs(Sender<()>),
    /// Learning has begun or ended.
    Listen(Sender<()>),
    Stop,
}

/// A port as it was plugged in. One that is pulled out and put back between two looks has its old key and, of a USB
/// device, a new address, or else a new number; and what was open of it is dead.
type Plugged = (PortKey, Option<UsbDevice>, u64);

fn plugged(port: &PortInfo) -> Plugged {
    (key(port), port.metadata.usb.clone(), port.metadata.plugging)
}

struct OpenInput {
    routing: InputRouting,
    plugged: Plugged,
    counters: Arc<PortCounters>,
    connection: Box<dyn Connection>,
}

/// A device that was unplugged.
struct UnpluggedDevice {
    device: DeviceId,
    until: Instant,
}

pub(super) struct PortThread {
    backends: Vec<BackendThread>,
    queue: doorbell::Sender<Input>,
    clock: Clock,
    events: Box<dyn PortEvents>,
    pacer: Pacer,
    plan: PortPlan,
    /// What each backend listed last.
    listed: HashMap<&'static str, Vec<PortInfo>>,
    labels: Labels,
    inputs: HashMap<PortKey, OpenInput>,
    /// Open outputs, by the target that rules call them.
    outputs: HashMap<String, Plugged>,
    /// Ports that could not be opened, why, and when to try again.
    failed: HashMap<PortKey, (String, Instant)>,
    /// Devices that went away a short while ago.
    away: Vec<UnpluggedDevice>,
    muted: HashSet<String>,
    /// Whether no device may be grabbed.
    grabs_released: bool,
    /// What devices answered when they were asked who they are.
    identities: HashMap<PortKey, SysExIdentity>,
    /// Devices that were asked.
    probed: HashSet<PortKey>,
    /// While something is learned, every port is open.
    listening: Arc<Listening>,
    status: Arc<Mutex<PortsStatus>>,
}

impl PortThread {
    pub(super) fn new(
        backends: Vec<Box<dyn PortBackend>>,
        queue: doorbell::Sender<Input>,
        clock: Clock,
        events: Box<dyn PortEvents>,
        listening: Arc<Listening>,
        status: Arc<Mutex<PortsStatus>>,
    ) -> std::io::Result<Self> {
        Ok(Self {
            backends: backends.into_iter().map(BackendThread::start).collect::<Result<_, _>>()?,
            queue,
            clock,
            events,
            pacer: Pacer::start()?,
            plan: PortPlan::default(),
            listed: HashMap::new(),
            labels: Labels::default(),
            inputs: HashMap::new(),
            outputs: HashMap::new(),
            failed: HashMap::new(),
            away: Vec::new(),
            muted: HashSet::new(),
            grabs_released: false,
            identities: HashMap::new(),
            probed: HashSet::new(),
            listening,
            status,
        })
    }

    pub(super) fn run(mut self, commands: &Receiver<Command>) {
        let mut next = Instant::now() + POLL_INTERVAL;
        loop {
            match commands.recv_deadline(next) {
                Ok(Command::Apply(plan, done)) => {
                    for backend in &self.backends {
                        let bindings = plan.bindings.clone();
                        // One that hangs is reported when it is back: its ports are then listed as before.
                        let _ = backend.ask(move |backend| backend.configure(&bindings));
                    }
                    self.plan = plan;
                    self.grabs_released = false;
                    self.close_what_let_go();
                    self.failed.clear();
                    self.look();
                    let _ = done.send(());
                }
                Ok(Command::Mute(device, muted, done)) => {
                    self.mute(device, muted);
                    self.look();
                    let _ = done.send(());
                }
                Ok(Command::ReleaseGrabs(done)) => {
                    self.grabs_released = true;
                    self.look();
                    let _ = done.send(());
                }
                Ok(Command::Listen(done)) => {
                    self.look();
                    let _ = done.send(());
                }
                Ok(Command::CloseInputs(done)) => {
                    let open: Vec<PortKey> = self.inputs.keys().cloned().collect();
                    open.iter().for_each(|key| drop(self.close_input(key)));
                    self.backends.iter().for_each(BackendThread::finish);
                    let _ = done.send(());
                    // Nothing is opened any more: only the end can come.
                    loop {
                        match commands.recv() {
                            Ok(
                                Command::Apply(_, done)
                                | Command::Mute(_, _, done)
                                | Command::ReleaseGrabs(done)
                                | Command::Listen(done)
                                | Command::CloseInputs(done),
                            ) => {
                                let _ = done.send(());
                            }
                            Ok(Command::Stop) | Err(_) => return,
                        }
                    }
                }
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => self.look(),
            }
            next = Instant::now() + POLL_INTERVAL;
        }
    }

    /// Lists all ports, opens what is wanted, closes what is not or is gone.
    fn look(&mut self) {
        if take_overruns() > 0 {
            let what =
                "a thread for events was busy for too long and has no real-time priority any more: is a port flooded?";
            self.events.trouble(what.to_owned());
        }
        let (ports, unreachable) = self.list();
        self.report_backends(&unreachable);
        let (ignored, ports) = self.plan.without_ignored(ports);
        let resolution = resolve(&ports, &self.plan.bindings, &self.labels);
        self.labels = resolution.labels.clone();
        let there: HashSet<PortKey> = ports.iter().map(key).collect();
        self.failed.retain(|key, _| there.contains(key));
        self.identities.retain(|key, _| there.contains(key));
        self.probed.retain(|key| there.contains(key));

        let mut status: Vec<DiscoveredPort> = (0..ports.len())
            .map(|place| DiscoveredPort::closed(&resolution, place, self.is_muted(&resolution.ports[place])))
            .collect();
        self.look_at_inputs(&resolution, &mut status);
        self.look_at_outputs(&resolution, &mut status);
        self.give_up_what_stays_away();

        *self.status.lock() = PortsStatus::new(&self.plan, &resolution, status, ignored, unreachable, &self.muted);
    }

    fn list(&mut self) -> (Vec<PortInfo>, Vec<(String, String)>) {
        let (mut ports, mut unreachable) = (Vec::new(), Vec::new());
        for backend in &self.backends {
            let name = backend.name();
            match backend.ask(|backend| backend.list()) {
                Ok(Ok(listed)) => {
                    self.listed.insert(name, listed);
                }
                Ok(Err(error)) | Err(NoAnswer::Failed(error)) => {
                    self.listed.remove(name);
                    unreachable.push((name.to_owned(), error.to_string()));
                }
                // What is open stays so: closing would hang, too.
                Err(NoAnswer::Hangs) => unreachable.push((name.to_owned(), format!("{name} does not answer"))),
            }
            ports.extend(self.listed.get(name).into_iter().flatten().cloned());
        }
        for port in &mut ports {
            port.metadata.sysex_identity = port.metadata.sysex_identity.or(self.identities.get(&key(port)).copied());
        }
        (ports, unreachable)
    }

    fn report_backends(&mut self, unreachable: &[(String, String)]) {
        let before = self.status.lock().unreachable.clone();
        for (name, reason) in unreachable {
            if !before.iter().any(|(known, _)| known == name) {
                self.events.trouble(format!("{reason}. The rest works."));
            }
        }
    }

    /// The devices on an input; `None` if it is not to be opened. An ambiguous port is opened and its events are
    /// discarded, so that status can show which of the twins is touched. While something is learned every port is opened,
    /// for that alone if no device on it is heard; but no keyboard and no mouse is, unless a binding matches it.
    fn routing(&self, resolved: &Resolved) -> Option<InputRouting> {
        let spec = |binding: usize| &self.plan.bindings[binding];
        let mut rest = Channels::ALL;
        let mut devices: Vec<RoutedDevice> = Vec::new();
        for claim in &resolved.claims {
            rest = rest.without(claim.channels);
            devices.push(RoutedDevice {
                device: claim.alias.clone(),
                channels: claim.channels,
                max_events_per_sec: spec(claim.binding).max_events_per_sec,
            });
        }
        if !self.plan.hear_ambiguous {
            resolved.ambiguous.iter().for_each(|claim| rest = rest.without(claim.channels));
        }
        let is_private = resolved.port.protocol.is_private();
        if self.plan.open_unbound && rest != Channels::NONE && !is_private {
            let device = resolved.label.clone();
            devices.push(RoutedDevice { device, channels: rest, max_events_per_sec: USUAL_RATE });
        }
        let probed = self.plan.probe_identity && resolved.port.protocol == Protocol::Midi;
        let dead_zone = resolved.claims.first().map_or(USUAL_DEAD_ZONE, |claim| spec(claim.binding).dead_zone);
        let grab = resolved.claims.iter().any(|claim| spec(claim.binding).grab);
        // With other routing it is opened anew, and so let go: other programs get its keys as long as it is muted.
        let grab = grab && !self.is_muted(resolved) && !self.grabs_released;
        let listens = self.listening.is_on() && !is_private;
        let wanted = !devices.is_empty() || !resolved.ambiguous.is_empty() || probed || listens;
        wanted.then_some(InputRouting { devices, dead_zone, grab })
    }

    fn look_at_inputs(&mut self, resolution: &Resolution, status: &mut [DiscoveredPort]) {
        let inputs = || {
            let ports = resolution.ports.iter().enumerate();
            ports.filter(|(_, resolved)| resolved.port.direction == Direction::Input)
        };
        let wanted: HashMap<PortKey, InputRouting> =
            inputs().filter_map(|(_, resolved)| Some((key(&resolved.port), self.routing(resolved)?))).collect();
        // A port that is gone, not wanted any more, or heard as something else now, is closed.
        let there: HashSet<Plugged> = inputs().map(|(_, resolved)| plugged(&resolved.port)).collect();
        let open: Vec<(PortKey, bool)> = self
            .inputs
            .iter()
            .map(|(key, open)| (key.clone(), there.contains(&open.plugged)))
            .filter(|(key, is_there)| !is_there || self.inputs.get(key).map(|open| &open.routing) != wanted.get(key))
            .collect();
        for (key, is_there) in open {
            self.close_input_and_say(&key, !is_there);
        }

        let mut midi = self.inputs.keys().filter(|key| self.speaks_midi(key)).count();
        for (place, resolved) in inputs() {
            let key = key(&resolved.port);
            let counts = resolved.port.protocol == Protocol::Midi;
            if let Some(routing) = wanted.get(&key)
                && !self.inputs.contains_key(&key)
            {
                if let Some(reason) = self.failure(&key) {
                    status[place].state = PortState::Failed(reason);
                } else if counts && midi >= self.plan.max_midi_ports {
                    status[place].state = PortState::OverLimit;
                } else {
                    match self.open_input(resolved, routing) {
                        Ok(()) => midi += usize::from(counts),
                        Err(reason) => status[place].state = PortState::Failed(reason),
                    }
                }
            }
            if self.inputs.contains_key(&key) {
                self.probe(resolved, resolution);
                self.show_open(&key, &mut status[place]);
            }
        }
    }

    fn speaks_midi(&self, (backend, _, key): &PortKey) -> bool {
        let listed = self.listed.get(&**backend).into_iter().flatten();
        listed.filter(|port| port.key == *key).any(|port| port.protocol == Protocol::Midi)
    }

    fn show_open(&mut self, key: &PortKey, status: &mut DiscoveredPort) {
        let Some(open) = self.inputs.get(key) else { return };
        let counters = &open.counters;
        let mut muted = 0;
        for heard in open.routing.devices.iter().filter(|heard| self.muted.contains(heard.device.as_str())) {
            (0..Channels::SLOTS).filter(|slot| heard.channels.has(*slot)).for_each(|slot| muted |= 1 << slot);
        }
        counters.muted.store(muted, Ordering::Relaxed);
        if let Some(identity) = counters.identity.get() {
            self.identities.insert(key.clone(), *identity);
        }
        status.connected = true;
        if status.state == PortState::Idle {
            status.state = PortState::Open;
        }
        status.events = counters.events.load(Ordering::Relaxed);
        status.dropped = counters.dropped.load(Ordering::Relaxed);
        status.malformed = counters.malformed.load(Ordering::Relaxed);
        status.lost = counters.lost.load(Ordering::Relaxed);
        status.unheard = counters.unheard.load(Ordering::Relaxed);
    }

    fn open_input(&mut self, resolved: &Resolved, routing: &InputRouting) -> Result<(), String> {
        let counters: Arc<PortCounters> = Arc::default();
        let sink = EventSink::new(routing, self.queue.clone(), self.clock, Arc::clone(&counters), &self.pacer);
        let sink = sink.heard_by(&self.listening, &resolved.label);
        let port = resolved.port.clone();
        let connection = self
            .ask(&resolved.port.backend, move |backend| backend.open_input(&port, sink))
            .map_err(|reason| self.fail(resolved, reason))?;
        self.failed.remove(&key(&resolved.port));
        let names = names(routing, resolved);
        self.events.changed(format!("opened {names} ({})", resolved.port.name));
        // Back in time: what it has begun goes on.
        self.away.retain(|away| !routing.devices.iter().any(|heard| heard.device == away.device));
        let routing = routing.clone();
        let plugged = plugged(&resolved.port);
        self.inputs.insert(key(&resolved.port), OpenInput { routing, plugged, counters, connection });
        Ok(())
    }

    /// Asks the backend. Its error, or its silence, is returned as a message.
    fn ask<T: Send + 'static>(
        &self,
        backend: &str,
        work: impl FnOnce(&mut dyn PortBackend) -> Result<T, PortError> + Send + 'static,
    ) -> Result<T, String> {
        let Some(backend) = self.backends.iter().find(|known| known.name() == backend) else {
            return Err("its backend is gone".into());
        };
        match backend.ask(work) {
            Ok(done) => done.map_err(|error| error.to_string()),
            Err(NoAnswer::Failed(error)) => Err(error.to_string()),
            Err(NoAnswer::Hangs) => Err(format!("{} does not answer", backend.name())),
        }
    }

    /// Closes devices that have let go by themselves, so that they are grabbed when they are opened anew.
    fn close_what_let_go(&mut self) {
        let let_go = self.inputs.iter().filter(|(_, open)| open.connection.has_let_go());
        let let_go: Vec<PortKey> = let_go.map(|(key, _)| key.clone()).collect();
        let_go.iter().for_each(|key| self.close_input_and_say(key, false));
    }

    /// Closes an input, and says what was heard on it.
    fn close_input(&mut self, key: &PortKey) -> Option<InputRouting> {
        let OpenInput { routing, connection, .. } = self.inputs.remove(key)?;
        match self.backends.iter().find(|backend| backend.name() == key.0) {
            Some(backend) => backend.put_away(connection),
            None => drop(connection),
        }
        Some(routing)
    }

    fn close_input_and_say(&mut self, key: &PortKey, vanished: bool) {
        let Some(routing) = self.close_input(key) else { return };
        for heard in routing.devices {
            self.events.changed(format!("closed {}", heard.device));
            if vanished {
                self.away.push(UnpluggedDevice { device: heard.device, until: Instant::now() + RECONNECT_GRACE });
            } else {
                self.events.gone(&heard.device);
            }
        }
    }

    fn give_up_what_stays_away(&mut self) {
        let now = Instant::now();
        for away in self.away.extract_if(.., |away| away.until <= now) {
            self.events.gone(&away.device);
        }
    }

    /// Asks the device behind an input who it is, once for every time that it is plugged in.
    fn probe(&mut self, input: &Resolved, resolution: &Resolution) {
        if !self.plan.probe_identity || input.port.protocol != Protocol::Midi || !self.probed.insert(key(&input.port)) {
            return;
        }
        let is_its_output = |resolved: &&Resolved| {
            let port = &resolved.port;
            port.direction == Direction::Output
                && (&port.backend, &port.name) == (&input.port.backend, &input.port.name)
                && port.metadata.usb == input.port.metadata.usb
        };
        // With two outputs it could be anyone's.
        let mut outputs = resolution.ports.iter().filter(is_its_output);
        if let (Some(output), None) = (outputs.next(), outputs.next()) {
            let port = output.port.clone();
            let asked = self.ask(&output.port.backend, move |backend| match backend.has_sysex() {
                true => backend.open_output(&port)?.send(&SysExIdentity::REQUEST),
                false => Ok(()),
            });
            if let Err(reason) = asked {
                self.events.trouble(format!("{} can't be asked who it is: {reason}", input.label));
            }
        }
    }

    fn is_muted(&self, resolved: &Resolved) -> bool {
        let claimed = resolved.claims.iter().any(|claim| self.muted.contains(claim.alias.as_str()));
        claimed || self.muted.contains(resolved.label.as_str())
    }

    fn mute(&mut self, device: String, muted: bool) {
        if !muted {
            self.muted.remove(&device);
        } else if self.muted.insert(device.clone()) {
            // Its ports learn of it before what it has begun is given up, so that nothing new begins.
            let keys: Vec<PortKey> = self.inputs.keys().cloned().collect();
            for key in keys {
                if let Some(open) = self.inputs.get(&key) {
                    let heard = open.routing.devices.iter().filter(|heard| *heard.device.as_str() == device);
                    let slots = heard.flat_map(|heard| (0..Channels::SLOTS).filter(|slot| heard.channels.has(*slot)));
                    let bits = slots.fold(0, |bits, slot| bits | 1 << slot);
                    open.counters.muted.fetch_or(bits, Ordering::Relaxed);
                }
            }
            self.events.gone(&DeviceId::new(&device));
        }
    }

    /// Why the port could not be opened, as long as it is left alone for that.
    fn failure(&self, key: &PortKey) -> Option<String> {
        self.failed.get(key).filter(|(_, again)| Instant::now() < *again).map(|(reason, _)| reason.clone())
    }

    fn fail(&mut self, resolved: &Resolved, reason: String) -> String {
        let before = self.failed.insert(key(&resolved.port), (reason.clone(), Instant::now() + RETRY_INTERVAL));
        if before.is_none_or(|(known, _)| known != reason) {
            self.events.trouble(format!("skipped {}: {reason}", resolved.device()));
        }
        reason
    }

    fn look_at_outputs(&mut self, resolution: &Resolution, status: &mut [DiscoveredPort]) {
        let targets = self.plan.targets.clone();
        for target in &targets {
            let outputs = resolution.ports.iter().enumerate();
            let mut outputs = outputs.filter(|(_, resolved)| resolved.port.direction == Direction::Output);
            let found = outputs
                .clone()
                .find(|(_, resolved)| resolved.is_bound_to(target))
                .or_else(|| outputs.find(|(_, resolved)| is_called(resolved, target)));
            let Some((place, resolved)) = found.filter(|(_, resolved)| resolved.port.protocol == Protocol::Midi) else {
                self.close_output(target);
                continue;
            };
            let port = key(&resolved.port);
            let opened = if self.outputs.get(target) == Some(&plugged(&resolved.port)) {
                Ok(())
            } else if let Some(reason) = self.failure(&port) {
                Err(reason)
            } else {
                self.open_output(target, resolved)
            };
            status[place].connected = opened.is_ok();
            status[place].state = opened.map_or_else(PortState::Failed, |()| PortState::Open);
        }
        let unwanted: Vec<String> = self.outputs.keys().filter(|target| !targets.contains(target)).cloned().collect();
        unwanted.iter().for_each(|target| self.close_output(target));
    }

    fn open_output(&mut self, target: &str, resolved: &Resolved) -> Result<(), String> {
        let port = resolved.port.clone();
        let opened = self
            .ask(&resolved.port.backend, move |backend| backend.open_output(&port))
            .map_err(|reason| self.fail(resolved, reason))?;
        self.failed.remove(&key(&resolved.port));
        self.events.changed(format!("opened output {target} ({})", resolved.port.name));
        self.events.output(target, opened);
        self.outputs.insert(target.to_owned(), plugged(&resolved.port));
        Ok(())
    }

    fn close_output(&mut self, target: &str) {
        if self.outputs.remove(target).is_some() {
            self.events.changed(format!("closed output {target}"));
            self.events.output_gone(target);
        }
    }
}

/// Whether an output that no binding has goes by this name. One that two bindings could mean does not.
fn is_called(resolved: &Resolved, target: &str) -> bool {
    resolved.ambiguous.is_empty() && resolved.label.as_str() == target
}

/// The devices on a port, as text.
fn names(routing: &InputRouting, resolved: &Resolved) -> String {
    let names: Vec<&str> = routing.devices.iter().map(|heard| heard.device.as_str()).collect();
    if names.is_empty() { format!("{}, without hearing it,", resolved.label) } else { names.join(" and ") }
}
