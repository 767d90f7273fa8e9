//! Where guests are tried: a sandbox around a network, a home and a host that only record.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use conductor_audit::caller::Caller;
use conductor_chat::{Models, Question};
use conductor_config as config;
use conductor_config_text::edit::Change;
use conductor_dispatch::Envelope;
use conductor_event::{Answers, DeviceId, Event, MidiMessage, Nanos, RuleId};
use conductor_host::control::plan::risk;
use conductor_host::control::plan::store::{PLAN_TIMEOUT, PlanStore};
use conductor_host::control::plan::{Base, PlanError, Proposal};
use conductor_observer::sink_message::{SinkMessage, SinkQueue};
use conductor_observer::{self as observer, Observed, Observer};
use conductor_package::descriptor::Tier;
use conductor_package::grants::{FolderGrant, RepositoryGrant};
use conductor_package::{Grants, Package};
use conductor_ports::SysExIdentity;
use conductor_registry::{FeatureSource, Registry};
use conductor_sandbox::actor::Actor;
use conductor_sandbox::bindings::Error;
use conductor_sandbox::bindings::imports::{hardware, host_state, planning, types};
use conductor_sandbox::datagrams::{DatagramSender, Datagrams};
use conductor_sandbox::host_view::{Captured, HostView, MidiRefusal, ProposedPlan};
use conductor_sandbox::model_view::{Answer as ModelAnswer, Later, ModelView};
use conductor_sandbox::services::Services;
use conductor_sandbox::{CallError, Compiler, PreparedFeature, Sandbox, ToolOutput};
use conductor_services::http::network::{Answer, Incoming, Network, NetworkError, Outgoing};
use conductor_services::http::secrets::{Secret, SecretError, Secrets};
use conductor_services::http::{HttpClient, SecretGrant};
use conductor_stdx::clock::Clock;
use crossbeam_channel::Receiver;
use tokio_util::sync::CancellationToken;

/// The secret that no guest may ever see.
pub const SECRET: &str = "Hunter2-hunter2";

/// Where the guests are: `cargo xtask test` says so, else beside the build of this test.
pub fn features() -> PathBuf {
    std::env::var_os("CONDUCTOR_FEATURES")
        .map_or_else(|| std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("features"), PathBuf::from)
}

pub fn path(guest: &str) -> PathBuf {
    features().join(format!("{guest}.wasm"))
}

pub fn guest(name: &str) -> Package {
    Package::read(&path(name)).unwrap_or_else(|error| panic!("{error}; build the guests with `cargo xtask features`"))
}

/// The bytes of a guest with other words in the same place; the new ones are filled up with blanks.
pub fn bytes_with(name: &str, changes: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = std::fs::read(path(name)).unwrap();
    for (from, to) in changes {
        assert!(to.len() <= from.len(), "{to:?} is longer than {from:?}");
        let places: Vec<usize> =
            bytes.windows(from.len()).enumerate().filter(|(_, w)| *w == from.as_bytes()).map(|(at, _)| at).collect();
        assert!(!places.is_empty(), "{from:?} is not in {name}");
        for at in places {
            bytes[at..at + from.len()].fill(b' ');
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        }
    }
    bytes
}

/// The lines of `[features.NAME]` that bind its grants to this file.
pub fn pins(file: &Path) -> String {
    let info = Package::read(file).unwrap().info;
    format!("path = '{}'\nid = '{}'\ndigest = 'sha256:{}'\n", file.display(), info.descriptor.id, info.digest)
}

pub fn guest_with(name: &str, changes: &[(&str, &str)]) -> Package {
    Package::from_bytes(Path::new("hostile.wasm"), bytes_with(name, changes)).unwrap()
}

/// A guest of `tests` under another id, with other words in other places as well.
pub fn renamed(name: &str, id: &str, changes: &[(&str, &str)]) -> Package {
    let (own, other) = (format!("\"project:{}\"", name.trim_start_matches("tests/")), format!("\"{id}\""));
    let changes: Vec<_> = changes.iter().copied().chain([(own.as_str(), other.as_str())]).collect();
    guest_with(name, &changes)
}

/// A folder of its own, removed in the end.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("conductor-hostile-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Counts what would have been sent.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    pub dialled: Arc<Mutex<Vec<SocketAddr>>>,
    pub sent: Arc<AtomicU64>,
    /// Datagrams that hold the word `flood`; the others are not the hostile feature's.
    pub floods: Arc<AtomicU64>,
}

impl Datagrams for Recorded {
    fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn DatagramSender>> {
        self.dialled.lock().unwrap().push(address);
        Ok(Box::new(self.clone()))
    }

    fn resolve(&self, _: &str) -> io::Result<IpAddr> {
        Ok(Ipv4Addr::new(192, 0, 2, 7).into())
    }
}

impl DatagramSender for Recorded {
    fn send(&self, data: &[u8]) -> io::Result<()> {
        let counter = if data == b"flood" { &self.floods } else { &self.sent };
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// What a server does.
#[derive(Debug, Clone)]
pub enum Play {
    Answer(u16, Vec<(&'static str, String)>, String),
    /// Never answers.
    Hang,
}

/// A network with scripted responses; `200` without a body where the script has none.
#[derive(Debug, Clone, Default)]
pub struct Stage {
    pub plays: Arc<Mutex<VecDeque<Play>>>,
    pub dialled: Arc<Mutex<Vec<Outgoing>>>,
}

impl Network for Stage {
    fn resolve<'a>(&'a self, host: &'a str) -> Answer<'a, io::Result<Vec<IpAddr>>> {
        let address: IpAddr = match host {
            "sly.example" => Ipv4Addr::LOCALHOST.into(),
            _ => Ipv4Addr::new(192, 0, 2, 1).into(),
        };
        Box::pin(async move { Ok(vec![address]) })
    }

    fn exchange(&self, request: Outgoing) -> Answer<'_, Result<Incoming, NetworkError>> {
        self.dialled.lock().unwrap().push(request);
        let play = self.plays.lock().unwrap().pop_front().unwrap_or(Play::Answer(200, vec![], String::new()));
        Box::pin(async move {
            match play {
                Play::Answer(status, list, body) => {
                    let mut headers = reqwest::header::HeaderMap::new();
                    for (name, value) in list {
                        headers.append(name, value.parse().unwrap());
                    }
                    let body: Pin<Box<_>> = Box::pin(tokio_stream::iter([Ok(body.into_bytes().into())]));
                    Ok(Incoming { status, headers, body })
                }
                Play::Hang => std::future::pending().await,
            }
        })
    }
}

#[derive(Debug)]
struct OneSecret;

impl Secrets for OneSecret {
    fn get(&self, id: &str) -> Result<Secret, SecretError> {
        Secret::new(id, SECRET.into())
    }
}

/// A host that has two modes and one output, and remembers what was done to it.
#[derive(Debug)]
pub struct View {
    pub plans: PlanStore,
    pub modes: Mutex<Vec<String>>,
    pub midi: Mutex<Vec<Vec<u8>>>,
    pub muted: Mutex<Vec<String>>,
    pub performed: Mutex<Vec<serde_json::Value>>,
    /// How often it was asked for what takes it long: a tenth of a second of a processor.
    pub toiled: AtomicU64,
}

impl Default for View {
    fn default() -> Self {
        Self {
            plans: PlanStore::in_memory(Clock::start(), PLAN_TIMEOUT).unwrap(),
            modes: Mutex::default(),
            midi: Mutex::default(),
            muted: Mutex::default(),
            performed: Mutex::default(),
            toiled: AtomicU64::default(),
        }
    }
}

impl View {
    fn toil(&self) {
        self.toiled.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(100) {
            std::hint::spin_loop();
        }
    }
}

impl HostView for View {
    fn mode(&self) -> String {
        "one".into()
    }

    fn config(&self) -> String {
        "[[modes]]\nname = \"one\"\n".into()
    }

    fn findings(&self, text: &str) -> Vec<host_state::Finding> {
        if text == "slow" {
            self.toil();
        }
        Vec::new()
    }

    fn ports(&self) -> Vec<host_state::Port> {
        Vec::new()
    }

    fn bindings(&self) -> Vec<host_state::Binding> {
        Vec::new()
    }

    fn status(&self) -> host_state::Status {
        host_state::Status {
            version: String::new(),
            uptime: 0,
            mode: None,
            modes: Vec::new(),
            rules: 0,
            refused: None,
            events: 0,
            failures: 0,
            last_failure: None,
        }
    }

    fn features(&self) -> Vec<host_state::Feature> {
        Vec::new()
    }

    fn actions(&self) -> Vec<host_state::Action> {
        Vec::new()
    }

    fn plans(&self) -> Result<Vec<host_state::WaitingPlan>, Error> {
        Ok(Vec::new())
    }

    fn propose(&self, plan: ProposedPlan) -> Result<planning::Proposal, Error> {
        let ProposedPlan { proposer, caller, description, privileged, changes } = plan;
        let changes = changes.into_iter().map(|change| Change { path: change.path, value: change.value }).collect();
        let proposal = Proposal { proposer, caller, description, privileged, changes };
        let read =
            |text: &str| config::parse(text, "config.toml").map_err(|wrong| PlanError::Invalid(wrong.to_string()));
        let base = Base { file: "config.toml".into(), text: self.config() };
        let judge = |after: &str| Ok(risk::assess(&read(&base.text)?.config, &read(after)?.config)?);
        let plan = self.plans.propose(proposal, &base, judge)?;
        let risk = match plan.risk.level {
            risk::Level::Usual => types::Risk::Usual,
            risk::Level::Raised => types::Risk::Raised,
            risk::Level::Privileged => types::Risk::Privileged,
        };
        let notes = plan.risk.notes;
        Ok(planning::Proposal { id: plan.id, risk, notes, diff: plan.diff })
    }

    fn explain(&self, device: &str, _: &str, _: Option<&str>) -> Result<Vec<host_state::Explanation>, String> {
        if device == "slow" {
            self.toil();
        }
        Ok(Vec::new())
    }

    fn captured(&self, limit: usize) -> Vec<Captured> {
        let one = || Captured { at: 0, device: DeviceId::new("pads"), event: envelope().event, fired: Vec::new() };
        (0..limit.min(5000)).map(|_| one()).collect()
    }

    fn mute(&self, device: &str, _: bool) -> Result<(), String> {
        self.muted.lock().unwrap().push(device.to_owned());
        Ok(())
    }

    fn probe(&self, target: &str) -> Result<Option<hardware::Identity>, MidiRefusal> {
        self.send_midi(target, &SysExIdentity::REQUEST).map(|()| None)
    }

    fn perform(&self, action: serde_json::Value) -> Result<String, String> {
        self.performed.lock().unwrap().push(action);
        Ok("performed".into())
    }

    fn events(&self, _: usize) -> Vec<(Nanos, DeviceId, Event)> {
        Vec::new()
    }

    fn switch_mode(&self, mode: &str) -> Result<(), String> {
        self.modes.lock().unwrap().push(mode.to_owned());
        Ok(())
    }

    fn send_midi(&self, _: &str, message: &[u8]) -> Result<(), MidiRefusal> {
        self.midi.lock().unwrap().push(message.to_vec());
        Ok(())
    }
}

/// The models that features find, which a test may replace.
#[derive(Debug, Default)]
pub struct LabModels(Mutex<Arc<Models>>);

impl LabModels {
    pub fn set(&self, models: Models) {
        *self.0.lock().unwrap() = Arc::new(models);
    }

    fn current(&self) -> Arc<Models> {
        Arc::clone(&self.0.lock().unwrap())
    }
}

impl ModelView for LabModels {
    fn names(&self) -> Vec<String> {
        self.current().names()
    }

    fn ask<'a>(&'a self, asker: &'a str, model: &'a str, question: Question) -> Later<'a, Result<ModelAnswer, Error>> {
        let models = self.current();
        Box::pin(async move { models.ask(asker, model, question).await })
    }
}

pub struct Lab {
    pub sandbox: Sandbox,
    pub services: Arc<Services>,
    pub datagrams: Recorded,
    pub stage: Stage,
    pub view: Arc<View>,
    pub models: Arc<LabModels>,
    pub said: Receiver<SinkMessage>,
    pub sinks: SinkQueue,
    pub home: Folder,
    pub look: Folder,
    pub work: Folder,
}

/// The compiler of every case: a worker of its own for each package.
pub fn compiler() -> Compiler {
    Compiler::program(env!("CARGO_BIN_EXE_conductor"))
}

impl Lab {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// A lab whose services are a little different.
    pub fn with(change: impl FnOnce(&mut Services)) -> Self {
        let (datagrams, stage, home) = (Recorded::default(), Stage::default(), Folder::new());
        let (sinks, said) = SinkQueue::new();
        let mut services = Services::new(sinks.clone(), Box::new(datagrams.clone())).home(Some(home.path()));
        services.http = HttpClient::new(Arc::new(stage.clone()), Arc::new(OneSecret));
        change(&mut services);
        let view = Arc::<View>::default();
        services.view.set(Arc::clone(&view) as Arc<dyn HostView>).unwrap();
        let models = Arc::<LabModels>::default();
        services.models.set(Arc::clone(&models) as Arc<dyn ModelView>).unwrap();
        let services = Arc::new(services);
        // Compiled code is shared by all tests: it is the same for all.
        let code = std::env::temp_dir().join(format!("conductor-hostile-code-{}", std::process::id()));
        std::fs::create_dir_all(&code).unwrap();
        let sandbox = Sandbox::new(Some(&code), Arc::clone(&services), compiler()).unwrap();
        let (look, work) = (Folder::new(), Folder::new());
        Self { sandbox, services, datagrams, stage, view, models, said, sinks, home, look, work }
    }

    /// Everything that the hostile features ask for.
    pub fn grants(&self) -> Grants {
        let hosts = ["granted.example", "other.example", "sly.example", "localhost"];
        let folder = |purpose: &str, folder: &Folder| FolderGrant {
            purpose: purpose.into(),
            path: folder.path().to_owned(),
            write: true,
        };
        Grants {
            udp: vec!["127.0.0.1:*".parse().unwrap()],
            http: hosts.iter().map(|host| host.parse().unwrap()).collect(),
            secrets: vec![SecretGrant { id: "key".into(), hosts: vec!["granted.example".parse().unwrap()] }],
            files: vec![folder("look", &self.look), folder("work", &self.work)],
            git: vec![RepositoryGrant { purpose: "look".into(), path: self.look.path().to_owned() }],
            programs: ["/bin/echo exactly 'this and that'", "/bin/sleep 600", "/bin/sh -c 'exit 3'"]
                .map(|program| program.parse().unwrap())
                .to_vec(),
            store: 65_536,
            models: vec!["*".into()],
            model_tokens: 20_000,
            observe_events: vec!["*".into()],
            background_task: true,
            config_read: true,
            config_propose: true,
            alert: true,
            notify: true,
            ..Grants::default()
        }
    }

    pub fn prepare(&self, name: &str) -> PreparedFeature {
        self.sandbox.prepare(&guest(name), self.grants()).unwrap()
    }

    /// The hostile tools, installed.
    pub fn tools(&self) -> Tools {
        Tools::new(self.prepare("tests/hostile-tools"))
    }

    /// These features and their paths, installed as a configuration would.
    pub fn registry(&self, names: &[&str]) -> (Registry, Observer, Observed) {
        let (_, silence) = SinkQueue::new();
        let (observer, observed, _) = observer::start(silence, None).unwrap();
        let source = |name: &&str| FeatureSource {
            name: name.rsplit('/').next().unwrap().to_owned(),
            path: path(name),
            bundled: false,
            grants: self.grants(),
            ..FeatureSource::default()
        };
        let registry = Registry::default().with(names.iter().map(source).collect(), &self.sandbox, &observer);
        (registry, observer, observed)
    }
}

/// One feature with tools.
pub struct Tools {
    pub feature: PreparedFeature,
    pub actor: Actor,
}

impl Tools {
    pub fn new(feature: PreparedFeature) -> Self {
        let actor = Actor::start(feature.clone()).unwrap();
        Self { feature, actor }
    }

    /// Calls the tool of a tier; `args` is JSON.
    pub fn call(&self, tier: Tier, args: &str) -> Result<String, CallError> {
        self.call_for(Caller::library(), tier, args)
    }

    /// Calls the tool of a tier for a caller; `args` is JSON.
    pub fn call_for(&self, caller: Caller, tier: Tier, args: &str) -> Result<String, CallError> {
        let name = ["look", "change", "propose", "send", "rule"][tier as usize];
        self.output(caller, tier, name, args).map(|output| output.result.to_string())
    }

    /// Calls a tool by its name for a caller; `args` is JSON.
    pub fn output(&self, caller: Caller, tier: Tier, name: &str, args: &str) -> Result<ToolOutput, CallError> {
        let call = self.actor.call(caller, tier, name, args.into(), CancellationToken::new(), Arc::new(|_, _| {}));
        self.feature.runtime().block_on(call)
    }

    /// Calls the read-only tool.
    pub fn look(&self, args: &str) -> Result<String, CallError> {
        self.call(Tier::ReadOnly, args)
    }

    /// Calls the read-only tool to do something in a way.
    pub fn how(&self, how: &str) -> Result<String, CallError> {
        self.look(&format!(r#"{{"how": "{how}"}}"#))
    }

    /// Why the read-only tool was refused, or stopped.
    pub fn refused(&self, args: &str) -> String {
        self.look(args).unwrap_err().to_string()
    }

    /// The feature does as it should after all that.
    #[track_caller]
    pub fn goes_on(&self) {
        assert_eq!(self.how("nothing").unwrap(), "\"done\"");
    }
}

/// Waits until something holds.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

/// A pad that was hit, for an action.
pub fn envelope() -> Envelope {
    Envelope {
        at: 0,
        device: DeviceId::new("pads"),
        event: MidiMessage::NoteOn { channel: 0, note: 36, velocity: 100 }.into(),
        position: 0,
        pattern: None,
        answers: Answers::default(),
        rule: RuleId(0),
        generation: 0,
        mode: None,
        tries: None,
    }
}
