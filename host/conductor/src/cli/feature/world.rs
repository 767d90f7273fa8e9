//! An isolated host in which a feature can be tried: nothing leaves the process.
//!
//! Its ports are simulated, its datagrams are recorded instead of sent, its clock moves by hand, and its
//! home is a folder that goes away with it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io};

use conductor_audit::caller::Caller;
use conductor_chat::{Message, Parameters, Part, Question, Speaker, ToolChoice};
use conductor_config as config;
use conductor_dispatch::prepared_action::PreparedAction;
use conductor_dispatch::{Action, Envelope};
use conductor_event::{Answers, Cause, DeviceEvent, DeviceId, RuleId};
use conductor_host::control::gate::{ToolError, ToolRequest, ToolResult};
use conductor_host::host::{Host, StartError};
use conductor_observer::Observation;
use conductor_observer::sink_message::{Severity, SinkKind};
use conductor_package::capability::{self, Capability};
use conductor_package::descriptor::HookPoint;
use conductor_package::{Descriptor, Grants, Package};
use conductor_ports::Direction;
use conductor_ports::engine_input::Input;
use conductor_ports::simulated::SimulatedPorts;
use conductor_registry::FeatureReport;
use conductor_sandbox::ActionInstance;
use conductor_sandbox::datagrams::{DatagramSender, Datagrams};
use conductor_sandbox::handles::OnProgress;
use conductor_sandbox::model_view::ModelView as _;
use conductor_services::error::ServiceError;
use conductor_services::http::HttpClient;
use conductor_stdx::clock::{Clock, ManualClock};
use conductor_timeline::{Timeline, TimelineEntry};
use crossbeam_channel::Receiver;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::scripted_http::{FakeSecrets, ScriptedAnswer, ScriptedHttp};
use super::shared_code;

/// The timeout of a call of a feature.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// What a world is like at its beginning.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Setup {
    /// The configuration, in TOML, without the feature.
    pub(super) config: String,
    /// What stands under the feature's grants, in TOML.
    pub(super) grants: String,
    /// Whether everything is granted that the feature asks for, beside that.
    pub(super) grant_all: bool,
    /// The names of MIDI outputs that are plugged in.
    pub(super) outputs: Vec<String>,
    /// What hosts answer to HTTP requests.
    pub(super) http: Vec<ScriptedAnswer>,
    /// The folder of compiled code that it shares with others, if any.
    #[serde(skip)]
    pub(super) code: Option<PathBuf>,
}

/// A datagram that was not sent.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Datagram {
    to: String,
    bytes: Vec<u8>,
}

/// Records what would have been sent. A host name stands for a made-up address.
#[derive(Debug, Clone, Default)]
struct Recorded {
    sent: Arc<Mutex<Vec<Datagram>>>,
    names: Arc<Mutex<Vec<String>>>,
}

#[derive(Debug)]
struct RecordedSender {
    to: String,
    sent: Arc<Mutex<Vec<Datagram>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

impl Datagrams for Recorded {
    fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn DatagramSender>> {
        let name = match address.ip() {
            IpAddr::V4(ip) if ip.octets()[..2] == [198, 18] => {
                lock(&self.names).get(usize::from(u16::from_be_bytes([ip.octets()[2], ip.octets()[3]]))).cloned()
            }
            _ => None,
        };
        let to = name.map_or_else(|| address.to_string(), |name| format!("{name}:{}", address.port()));
        Ok(Box::new(RecordedSender { to, sent: Arc::clone(&self.sent) }))
    }

    fn resolve(&self, host: &str) -> io::Result<IpAddr> {
        let mut names = lock(&self.names);
        let index = names.iter().position(|name| name == host).unwrap_or_else(|| {
            names.push(host.to_owned());
            names.len() - 1
        });
        // 198.18.0.0/15 is reserved for benchmarks (RFC 2544).
        let [high, low] = u16::try_from(index).map_err(io::Error::other)?.to_be_bytes();
        Ok(Ipv4Addr::new(198, 18, high, low).into())
    }
}

impl DatagramSender for RecordedSender {
    fn send(&self, data: &[u8]) -> io::Result<()> {
        lock(&self.sent).push(Datagram { to: self.to.clone(), bytes: data.to_vec() });
        Ok(())
    }
}

/// A folder that goes away.
#[derive(Debug)]
struct Home(PathBuf);

impl Home {
    fn new() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("conductor-world-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// See the file's own words.
#[derive(Debug)]
pub(super) struct World {
    host: Option<Host>,
    descriptor: Descriptor,
    features: String,
    ports: SimulatedPorts,
    outputs: Vec<(String, Receiver<Vec<u8>>)>,
    midi: Vec<Value>,
    network: Recorded,
    http: ScriptedHttp,
    hand: ManualClock,
    observations: Receiver<Observation>,
    said: Vec<Value>,
    failures: Vec<String>,
    prepared: Vec<Arc<PreparedAction>>,
    runtime: tokio::runtime::Runtime,
    // Last, so that the host is gone before its home is.
    _home: Home,
}

impl World {
    /// Starts a host in which the package is installed.
    ///
    /// # Errors
    /// Why it is not installed, or what is wrong with the configuration or the grants.
    pub(super) fn new(package: &Package, setup: &Setup) -> Result<Self, String> {
        let home = Home::new().map_err(|error| format!("no folder for a home: {error}"))?;
        if let Some(code) = &setup.code {
            // Without it the package is compiled once more.
            let _ = shared_code::share(code, &home.0);
        }
        let descriptor = package.info.descriptor.clone();
        let name = descriptor.id.name().to_owned();
        let file = home.0.join("bundled").join(format!("{name}.wasm"));
        let bundled = descriptor.id.source() == "builtin";
        fs::create_dir_all(home.0.join("bundled"))
            .and_then(|()| if bundled { fs::write(&file, &package.bytes) } else { Ok(()) })
            .map_err(|error| format!("{}: {error}", file.display()))?;

        let mut feature = toml::Table::new();
        if !bundled {
            let path = package.path.canonicalize().unwrap_or_else(|_| package.path.clone());
            feature.insert("path".into(), path.display().to_string().into());
            feature.insert("id".into(), descriptor.id.to_string().into());
            feature.insert("digest".into(), format!("sha256:{}", package.info.digest).into());
        }
        feature.insert("grants".into(), grants(&descriptor, setup, &home.0)?.into());
        let section = toml::Table::from_iter([(
            "features".to_owned(),
            toml::Value::from(toml::Table::from_iter([(name, toml::Value::from(feature))])),
        )]);
        let features = toml::to_string(&section).map_err(|error| error.to_string())?;
        let text = format!("{}\n{features}", setup.config);
        let loaded = config::parse(&text, "configuration").map_err(|wrong| wrong.render(false))?;

        let ports = SimulatedPorts::new();
        let mut outputs = Vec::new();
        for output in &setup.outputs {
            ports.plug(output, Direction::Output);
            outputs.extend(ports.sent(output).map(|sent| (output.clone(), sent)));
        }
        let network = Recorded::default();
        let http = ScriptedHttp::new(setup.http.clone());
        let (clock, hand) = Clock::manual();
        let (sender, observations) = crossbeam_channel::unbounded();
        let host = Host::builder()
            .home(&home.0)
            .features(home.0.join("bundled"))
            .backend(ports.backend())
            .datagrams(Box::new(network.clone()))
            .http(HttpClient::new(Arc::new(http.clone()), Arc::new(FakeSecrets)))
            .clock(clock)
            .subscriber(sender)
            .start(&loaded)
            .map_err(|error| match error {
                StartError::Config(wrong) => wrong.render(false),
                other => other.to_string(),
            })?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| format!("no runtime: {error}"))?;
        let world = Self {
            host: Some(host),
            descriptor,
            features,
            ports,
            outputs,
            midi: Vec::new(),
            network,
            http,
            hand,
            observations,
            said: Vec::new(),
            failures: Vec::new(),
            prepared: Vec::new(),
            runtime,
            _home: home,
        };
        match world.report().refused {
            Some(refused) => Err(refused),
            None => Ok(world),
        }
    }

    fn host(&self) -> Result<&Host, String> {
        self.host.as_ref().ok_or_else(|| "the host has ended".to_owned())
    }

    /// The report about the feature; the default one if the host has ended.
    pub(super) fn report(&self) -> FeatureReport {
        let name = self.descriptor.id.name();
        let features = self.host.as_ref().map(|host| host.status().features).unwrap_or_default();
        features.into_iter().find(|feature| feature.name == name).unwrap_or_default()
    }

    /// Calls a tool, and records its progress reports. If the call needs a confirmation, it is given if
    /// `agrees`.
    pub(super) fn call(
        &self,
        tool: &str,
        args: serde_json::Map<String, Value>,
        agrees: bool,
    ) -> (Result<ToolResult, ToolError>, Vec<(f32, String)>) {
        let given = Arc::<Mutex<Vec<(f32, String)>>>::default();
        let noted = Arc::clone(&given);
        let progress = Arc::new(move |done, text| lock(&noted).push((done, text)));
        let Some(host) = &self.host else {
            return (Err(ToolError::Unknown { name: tool.to_owned(), nearest: None }), Vec::new());
        };
        let caller = Caller::library();
        let call = |confirmation: Option<String>| {
            let request = ToolRequest { args: args.clone(), confirmed: confirmation.is_some(), confirmation };
            let progress = Arc::clone(&progress) as OnProgress;
            self.runtime.block_on(host.call_tool(&caller, tool, request, CancellationToken::new(), progress))
        };
        let result = match call(None) {
            Err(ToolError::NeedsConfirmation { confirmation: Some(asked), .. }) if agrees => call(Some(asked.id)),
            answered => answered,
        };
        drop(progress);
        let given = std::mem::take(&mut *lock(&given));
        (result, given)
    }

    /// Asks a model of the configuration.
    pub(super) fn ask(&self, model: &str, text: String) -> Result<Value, String> {
        let how =
            Parameters { max_tokens: None, temperature: None, top_p: None, stop: vec![], schema: None, effort: None };
        let messages = vec![Message { speaker: Speaker::User, parts: vec![Part::Text(text)] }];
        let question = Question { instructions: String::new(), messages, tools: vec![], choice: ToolChoice::Auto, how };
        let models = self.host()?.models();
        let asked = models.ask("host", model, question);
        let answer = self.runtime.block_on(asked).map_err(|error| ServiceError::from(error).to_string())?;
        let (mut text, mut calls) = (String::new(), Vec::new());
        for part in answer.parts {
            match part {
                Part::Text(more) => text.push_str(&more),
                Part::ToolCall(call) => calls.push(json!({ "name": call.name, "args": call.args })),
                _ => {}
            }
        }
        let usage = json!({ "input": answer.usage.input, "output": answer.usage.output });
        Ok(json!({ "text": text, "calls": calls, "usage": usage }))
    }

    /// Has the feature prepare an action; the number stands for it.
    pub(super) fn prepare(&mut self, action: &str, params: &str) -> Result<usize, String> {
        let prepared = self.host()?.prepare_action(action, params).map_err(|error| error.to_string())?;
        self.prepared.push(prepared);
        Ok(self.prepared.len() - 1)
    }

    /// Performs a prepared action for one event: a device and what comes from it.
    pub(super) fn perform(&self, prepared: usize, event: &str) -> Result<(), String> {
        let action = self.prepared.get(prepared).ok_or_else(|| format!("nothing was prepared as {prepared}"))?;
        let entry = timeline(&format!("0ms {event}"))?.pop().ok_or("an event is a device and what comes from it")?;
        let (done, failed) = self.performed();
        let at = self.host()?.clock().now();
        let device = DeviceId::new(&entry.device);
        let envelope = Envelope {
            at,
            device,
            event: entry.event,
            position: 0,
            pattern: None,
            answers: Answers::default(),
            rule: RuleId(0),
            generation: 0,
            mode: None,
            tries: None,
        };
        // A refusal is counted like a failure.
        let _ = action.try_perform(envelope);
        self.wait(|| self.performed().0 + self.performed().1 > done + failed)?;
        if self.performed().1 == failed {
            return Ok(());
        }
        Err(self.report().last_failure.unwrap_or_else(|| "it failed".into()))
    }

    /// Plays a script: the clock moves as it says, and no time passes. Returns when the feature has done what
    /// the rules wanted of it.
    pub(super) fn play(&mut self, script: &str) -> Result<usize, String> {
        let entries = timeline(script)?;
        let host = self.host()?;
        let (events, (done, failed), (seen, missed)) = (host.observed().recorded(), self.performed(), self.watched());
        let queue = host.queue();
        let mut now = 0;
        let goes_on = ActionInstance::may_have_pending(&self.descriptor);
        for (index, TimelineEntry { at, device, event }) in (1..).zip(&entries) {
            self.hand.advance(Duration::from_nanos(at - now));
            now = *at;
            let event = DeviceEvent { device: DeviceId::new(device), event: event.clone() };
            queue.send(Input::Event { at: host.clock().now(), event }).map_err(|_| "the engine has ended")?;
            // Before the clock moves on: else calls of a later time might be due before it has reached the feature.
            if goes_on {
                self.wait(|| host.observed().recorded() >= events + index)?;
            }
        }
        let count = entries.len() as u64;
        self.wait(|| host.observed().recorded() >= events + count)?;
        self.take_observations();
        // Of an event that fires more than eight rules, the others are only counted: they are not waited for.
        let mut wanted = 0;
        let records = self.host()?.observed().records();
        self.host()?.with_rules(|rules, generation| {
            let inputs = records.iter().rev().filter(|record| record.cause == Cause::Input);
            for record in inputs.take(entries.len()).filter(|record| record.generation == generation) {
                wanted += rules
                    .rules()
                    .iter()
                    .filter(|rule| record.fired.ids().contains(&rule.id))
                    .filter(|rule| matches!(&rule.action, Action::Feature(action) if **action.feature() == *self.descriptor.id.name()))
                    .count() as u64;
            }
        });
        self.wait(|| self.performed().0 + self.performed().1 >= done + failed + wanted)?;
        if self.descriptor.hooks_at(HookPoint::Events) {
            let granted = self.report().grants.observe_events;
            let shown = entries.iter().filter(|entry| capability::names(&granted, &entry.device)).count() as u64;
            self.wait(|| self.watched().0 + self.watched().1 >= seen + missed + shown)?;
        }
        Ok(entries.len())
    }

    /// Moves the clock on. What wakes by that goes on beside.
    pub(super) fn advance(&self, by: Duration) {
        self.hand.advance(by);
        if let Ok(host) = self.host() {
            let _ = host.queue().send(Input::Moved);
        }
    }

    /// Makes another mode active.
    pub(super) fn mode(&self, mode: &str) -> Result<(), String> {
        self.host()?.set_mode(mode);
        Ok(())
    }

    /// Puts another configuration in force, with the feature as it was installed.
    pub(super) fn configure(&self, config: &str) -> Result<(), String> {
        let text = format!("{config}\n{}", self.features);
        self.host()?.reload(&text, "configuration").map(drop).map_err(|wrong| wrong.render(false))
    }

    /// Plugs a MIDI input in or pulls it out.
    pub(super) fn plug(&self, port: &str, plugged: bool) {
        if plugged {
            self.ports.plug(port, Direction::Input);
        } else {
            self.ports.unplug(port, Direction::Input);
        }
    }

    /// Everything that came of it so far.
    pub(super) fn seen(&mut self) -> Result<Value, String> {
        if !self.host()?.flush(Instant::now() + CALL_TIMEOUT) {
            return Err("what the feature said is still on its way".into());
        }
        self.take_observations();
        for (port, sent) in &self.outputs {
            self.midi.extend(sent.try_iter().map(|bytes| json!({ "port": port, "bytes": bytes })));
        }
        let plans = serde_json::to_value(self.host()?.plans().map_err(|error| error.to_string())?)
            .map_err(|error| error.to_string())?;
        let report = self.report();
        Ok(json!({
            "sent": *lock(&self.network.sent),
            "asked": self.http.asked(),
            "midi": self.midi,
            "said": self.said,
            "failures": self.failures,
            "plans": plans,
            "traps": report.trapped,
            "tasks": report.tasks,
            "mode": self.host()?.status().mode,
            "report": report,
        }))
    }

    fn take_observations(&mut self) {
        for observation in self.observations.try_iter() {
            match observation {
                Observation::Sink(message) => {
                    let (sink, severity) = match message.kind {
                        SinkKind::Diagnostic(Severity::Info) => ("diagnostic", Some("info")),
                        SinkKind::Diagnostic(Severity::Warning) => ("diagnostic", Some("warning")),
                        SinkKind::Diagnostic(Severity::Error) => ("diagnostic", Some("error")),
                        SinkKind::Alert => ("alert", None),
                        SinkKind::Notification => ("notification", None),
                    };
                    self.said.push(json!({ "sink": sink, "severity": severity, "text": message.text }));
                }
                Observation::Failure(failure) => self.failures.push(format!("{}: {}", failure.worker, failure.reason)),
                _ => {}
            }
        }
    }

    /// Actions done and failed.
    fn performed(&self) -> (u64, u64) {
        let report = self.report();
        (report.performed, report.failed)
    }

    /// Events that the hook has seen and missed.
    fn watched(&self) -> (u64, u64) {
        let report = self.report();
        (report.events_seen, report.events_missed)
    }

    fn wait(&self, until: impl Fn() -> bool) -> Result<(), String> {
        let deadline = Instant::now() + CALL_TIMEOUT;
        while !until() {
            if Instant::now() >= deadline {
                let report = json!(self.report());
                return Err(format!("the feature was not done within {} s: {report}", CALL_TIMEOUT.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.prepared.clear();
        if let Some(host) = self.host.take() {
            host.stop();
        }
    }
}

fn timeline(script: &str) -> Result<Vec<TimelineEntry>, String> {
    let timeline = Timeline::parse(script);
    let timeline = timeline.map_err(|wrong| wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    Ok(timeline.entries)
}

/// What stands under `[features.NAME.grants]`.
fn grants(descriptor: &Descriptor, setup: &Setup, home: &Path) -> Result<toml::Table, String> {
    let mut granted = toml::Table::new();
    if setup.grant_all {
        granted = toml::Table::try_from(everything(descriptor, home)?).map_err(|error| error.to_string())?;
    }
    let given: toml::Table = setup.grants.parse().map_err(|error| format!("the grants are wrong: {error}"))?;
    granted.extend(given);
    Ok(granted)
}

/// Everything that a descriptor asks for, with a folder of this home for each purpose. A repository can't be made up,
/// nor a host where it asks for any: a test that needs one grants it.
fn everything(descriptor: &Descriptor, home: &Path) -> Result<Grants, String> {
    let mut asked = descriptor.capabilities.clone();
    for request in &mut asked {
        match &mut request.capability {
            Capability::Network { http: hosts, .. } | Capability::Secret { hosts, .. } => {
                hosts.retain(|host| !host.is_any());
            }
            Capability::Files { purpose, path, .. } => {
                let folder = home.join("files").join(purpose);
                fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
                *path = Some(folder);
            }
            _ => {}
        }
    }
    Ok(Grants::of(&asked))
}
