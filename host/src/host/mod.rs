//! The host itself: everything started in the right order, reloaded as a whole, stopped clean.

mod apply;
mod asked;
pub(crate) mod bindings;
mod changes;
mod rollback;
pub mod status;
mod view;
mod workshop;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use conductor_engine::{DeviceId, FactsHandle, RuleSet, RuleSetHandle};
use crossbeam_channel::{Receiver, Sender, TrySendError};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use self::apply::{Applied, PlanView};
pub use self::asked::{ReloadError, UnknownMode};
use self::changes::Told;
use self::view::View;
use self::workshop::Workshop;
pub use self::workshop::{check, installed, try_out};
use crate::chat::Models;
use crate::clock::Clock;
use crate::config::reader::Reader;
use crate::config::{self, Config, Diagnostics, Elicitation, Loaded, Severity};
use crate::control::audit::{Audit, Entry, Kind};
use crate::control::caller::Caller;
use crate::control::gate::{Gate, ToolError, ToolRequest, ToolResult, ToolView};
use crate::control::limit::Policy;
use crate::control::plan::desk::{self, Desk};
use crate::control::plan::state_hash;
use crate::dispatch::desktop::{self, Connect};
use crate::dispatch::feature_worker::PreparedAction;
use crate::dispatch::outputs::Outputs;
use crate::dispatch::script::ChangeMode;
use crate::dispatch::workers::Workers;
use crate::dispatch::{Action, Reason};
use crate::event_loop::{self, Input};
use crate::facts::{self, FactsOf};
use crate::feature::registry::{Lookup, Registry, Skill};
use crate::feature::sandbox::control::Change;
use crate::feature::sandbox::{CallError, Refusal, Sandbox};
use crate::front::{self, FrontWatch};
use crate::news::{Listener, New, News};
use crate::observer::{self, Observation, Observed, Observer};
use crate::package::store::Store;
use crate::ports::supervisor::{PortEvents, Supervisor, UnknownDevice};
use crate::ports::{MidiOut, PortBackend};
use crate::rules::Compiled;
use crate::service::Services;
use crate::service::host_state::HostView;
use crate::service::http::HttpClient;
use crate::service::invocation::OnProgress;
use crate::service::models::ModelView;
use crate::service::notification_log::NotificationLog;
use crate::service::sinks::SinkQueue;
use crate::service::udp::{Datagrams, SystemDatagrams};

/// How long a stop waits for features to finish what they were asked to do.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// What a host is made of. See [`Host::builder`].
pub struct HostBuilder {
    home: Option<PathBuf>,
    features: Option<PathBuf>,
    backends: Vec<Box<dyn PortBackend>>,
    datagrams: Box<dyn Datagrams>,
    http: Option<HttpClient>,
    listen_to_all: bool,
    clock: Option<Clock>,
    desktop: Option<Connect>,
    front: Option<Box<dyn FrontWatch>>,
    end_all_notes: bool,
    subscriber: Option<Sender<Observation>>,
    config_file: Option<PathBuf>,
    plans_expire: Duration,
}

impl std::fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostBuilder")
            .field("home", &self.home)
            .field("features", &self.features)
            .finish_non_exhaustive()
    }
}

impl HostBuilder {
    /// The folder for what the host keeps between starts: the code cache with its key, and the
    /// notifications of features.
    #[must_use]
    pub fn home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// The folder with the bundled features, one `.wasm` file each. None are bundled without it.
    #[must_use]
    pub fn features(mut self, folder: impl Into<PathBuf>) -> Self {
        self.features = Some(folder.into());
        self
    }

    /// One more way to reach ports. A host without any has no ports.
    #[must_use]
    pub fn backend(mut self, backend: Box<dyn PortBackend>) -> Self {
        self.backends.push(backend);
        self
    }

    /// The file that applied plans are written to. Without one none can be applied.
    #[must_use]
    pub fn config_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.config_file = Some(file.into());
        self
    }

    /// How long a plan waits for a person; 300 s if not said.
    #[must_use]
    pub fn plans_expire(mut self, after: Duration) -> Self {
        self.plans_expire = after;
        self
    }

    /// Sends datagrams another way than through the system's sockets.
    #[must_use]
    pub fn datagrams(mut self, datagrams: Box<dyn Datagrams>) -> Self {
        self.datagrams = datagrams;
        self
    }

    /// Sends features' HTTP requests another way than over the network.
    #[must_use]
    pub fn http(mut self, http: HttpClient) -> Self {
        self.http = Some(http);
        self
    }

    /// Goes by another clock than the system's: events, and what features are told.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Tells each output to end all notes when it is first opened: a host before this one may have been
    /// killed while some sounded. A device that does not know of this goes on.
    #[must_use]
    pub fn end_all_notes(mut self) -> Self {
        self.end_all_notes = true;
        self
    }

    /// Acts on another desktop than the system's.
    #[must_use]
    pub fn desktop(mut self, connect: Connect) -> Self {
        self.desktop = Some(connect);
        self
    }

    /// Knows another way which application is in front than the system's.
    #[must_use]
    pub fn front(mut self, front: Box<dyn FrontWatch>) -> Self {
        self.front = Some(front);
        self
    }

    /// Sends everything that happens there, from before the features are installed.
    #[must_use]
    pub fn subscriber(mut self, sender: Sender<Observation>) -> Self {
        self.subscriber = Some(sender);
        self
    }

    /// Listens to every input, whatever the configuration says.
    #[must_use]
    pub fn listen_to_all(mut self) -> Self {
        self.listen_to_all = true;
        self
    }

    /// Starts with a configuration: installs the features, compiles the rules, opens the ports.
    ///
    /// A feature or a port that can't be had is reported and skipped.
    ///
    /// # Errors
    /// [`StartError`]; nothing keeps running.
    pub fn start(self, loaded: &Loaded) -> Result<Host, StartError> {
        let (sinks, said) = SinkQueue::new();
        let (observer, observed, observer_thread) =
            observer::start(said, self.home.as_deref().map(NotificationLog::new))?;
        if let Some(subscriber) = self.subscriber {
            observed.subscriber(subscriber);
        }
        let mut services = Services::new(sinks, self.datagrams).home(self.home.as_deref());
        services.clock = self.clock.unwrap_or(services.clock);
        services.plans = Arc::new(desk(self.home.as_deref(), services.clock, self.plans_expire)?);
        services.audit = match &self.home {
            Some(home) => Audit::start(home, services.clock)?,
            None => Audit::none(),
        };
        services.http = self.http.unwrap_or(services.http).witnessed(Arc::new(services.audit.clone()));
        let services = Arc::new(services);
        let gate = Gate::new(services.audit.clone());
        gate.set(Policy::new(&loaded.config.tools));
        let sandbox = Sandbox::new(self.home.as_deref(), Arc::clone(&services)).map_err(StartError::Sandbox)?;
        let (queue, inputs) = event_loop::queue();
        let workers = Workers::new(
            observer.clone(),
            self.desktop.unwrap_or_else(|| Box::new(desktop::connect)),
            change_mode_by(queue.clone()),
        );
        if self.end_all_notes {
            workers.outputs.end_all_notes();
        }

        // Opening it sweeps it; without one that can be written, what is there is read.
        let packages = self.home.as_deref().map(|home| {
            let store = Store::open(home).unwrap_or_else(|error| {
                tracing::warn!("the package store can't be tidied: {error}");
                Store::at(home)
            });
            store.by("host")
        });
        let workshop = Workshop {
            sandbox,
            observer: observer.clone(),
            workers: workers.clone(),
            bundled: self.features,
            packages,
            listen_to_all: self.listen_to_all,
        };
        let (registry, compiled) = workshop.make(loaded, &Registry::default())?;
        let plan = workshop.port_plan(&loaded.config, &compiled, &registry);

        workers.outputs.show(&compiled.lights);
        let rules = Arc::new(RuleSetHandle::new(compiled.rules));
        let clock = services.clock;
        let facts = Arc::new(FactsHandle::new());
        let engine_thread = event_loop::start(
            Arc::clone(&rules),
            Arc::clone(&facts),
            clock,
            inputs,
            workers.releases(),
            observer.clone(),
        )?;
        let facts_of = FactsOf {
            handle: Arc::clone(&facts),
            rules: Arc::clone(&rules),
            clock,
            queue: queue.clone(),
            profiles: compiled.profiles,
        };
        let watch = facts::start(facts_of, self.front.unwrap_or_else(front::system))?;
        let events = PortReports {
            news: services.news.clone(),
            observer: observer.clone(),
            outputs: workers.outputs.clone(),
            queue: queue.clone(),
        };
        let supervisor = Supervisor::start(self.backends, queue.clone(), clock, Box::new(events))?;
        let view = Arc::new(View {
            rules: Arc::clone(&rules),
            observer: observer.clone(),
            observed: observed.clone(),
            ports: supervisor.reader(),
            mutes: supervisor.mutes(),
            workers: workers.clone(),
            facts: Arc::clone(&facts),
            clock,
            queue: queue.clone(),
            registry: RwLock::new(registry.clone()),
            refused: RwLock::default(),
            config: RwLock::new((loaded.source.text().to_owned(), loaded.source.file().to_owned())),
        });
        let models = Arc::new(Models::default());
        models.set(loaded.config.models.clone(), registry.clone());
        let _ = services.models.set(Arc::clone(&models) as Arc<dyn ModelView>);
        let _ = services.view.set(Arc::clone(&view) as Arc<dyn HostView>);
        supervisor.apply(plan);
        registry.begin(&observed);
        let told = Told::start(&observed)?;
        told.set(registry.clone());

        let host = Host {
            rules,
            queue,
            supervisor,
            workers,
            observer,
            observed,
            services,
            view,
            models,
            told,
            gate,
            elicitation: Mutex::new(loaded.config.mcp.elicitation),
            warnings: compiled.warnings,
            home: self.home,
            clock,
            engine_thread,
            _observer_thread: observer_thread,
            facts,
            watch,
            stop_asked: crossbeam_channel::bounded(1),
            state: Mutex::new(State {
                reader: Reader::default(),
                workshop,
                registry,
                text: loaded.source.text().to_owned(),
                file_name: loaded.source.file().to_owned(),
                refused: None,
                taken_back: HashSet::new(),
                granted: BTreeMap::new(),
                config_file: self.config_file,
            }),
        };
        let started = Entry::new(Kind::Host, "start", "host", loaded.source.file());
        host.services
            .audit
            .note(started.with("version", env!("CARGO_PKG_VERSION")).with("state", state_hash(loaded.source.text())));
        host.state().tell_grants(&loaded.config, &host.services.audit);
        host.settle_plans();
        Ok(host)
    }
}

/// The desk of a home; where there is none, or it can't be written, one that forgets.
fn desk(home: Option<&Path>, clock: Clock, expires: Duration) -> Result<Desk, StartError> {
    let kept = home.map(|home| Desk::open(home, clock, expires));
    match kept {
        Some(Ok(desk)) => return Ok(desk),
        Some(Err(error)) => tracing::warn!("{error}; plans are forgotten when the host stops"),
        None => {}
    }
    Desk::in_memory(clock, expires).map_err(|error| StartError::Desk(error.to_string()))
}

/// Why a host did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is wrong.
    #[error("{}", .0.render(false))]
    Config(Diagnostics),
    /// The sandbox can't run on this machine.
    #[error(transparent)]
    Sandbox(anyhow::Error),
    /// There is no memory for plans.
    #[error("{0}")]
    Desk(String),
    /// The system refused a thread.
    #[error("the system refused a thread: {0}")]
    Thread(#[from] std::io::Error),
}

impl From<Diagnostics> for StartError {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Config(diagnostics)
    }
}

/// The way for scripts to change the mode: like everybody else they wait for nobody.
fn change_mode_by(queue: Sender<Input>) -> ChangeMode {
    Box::new(move |mode| match queue.try_send(Input::SetMode(Arc::clone(mode))) {
        Ok(()) => Ok(()),
        Err(TrySendError::Full(_)) => Err(Reason::QueueFull),
        Err(TrySendError::Disconnected(_)) => Err(Reason::Gone),
    })
}

struct PortReports {
    news: News,
    observer: Observer,
    outputs: Outputs,
    queue: Sender<Input>,
}

impl PortEvents for PortReports {
    fn changed(&mut self, text: String) {
        self.observer.put(Observation::Port(text));
        self.news.tell(New::Ports);
    }

    fn trouble(&mut self, text: String) {
        self.observer.put(Observation::PortTrouble(text));
    }

    fn gone(&mut self, device: &DeviceId) {
        // Fails only while the host stops.
        let _ = self.queue.send(Input::Gone(device.clone()));
    }

    fn output(&mut self, target: &str, port: Box<dyn MidiOut>) {
        self.outputs.attach(target, port);
    }

    fn output_gone(&mut self, target: &str) {
        self.outputs.detach(target);
    }
}

#[derive(Debug)]
struct State {
    workshop: Workshop,
    registry: Registry,
    /// What reads it again.
    reader: Reader,
    /// The configuration in force.
    text: String,
    /// Its file, as messages show it.
    file_name: String,
    /// What was said of the last configuration, where it was refused.
    refused: Option<String>,
    /// Digests of upgrades that went wrong.
    taken_back: HashSet<String>,
    /// What the configuration grants, by feature, as it is on record.
    granted: BTreeMap<String, Value>,
    /// The file that applied plans are written to.
    config_file: Option<PathBuf>,
}

/// What a configuration was made into, beside what is in use.
#[derive(Debug)]
struct Made {
    loaded: Loaded,
    registry: Registry,
    compiled: Compiled,
}

impl State {
    /// Puts on record what the configuration grants otherwise than before: whoever writes it is a person, and
    /// has done so already.
    fn tell_grants(&mut self, config: &Config, audit: &Audit) {
        let nothing = serde_json::to_value(config::Grants::default()).unwrap_or_default();
        let grants = config.features.iter().filter_map(|(name, feature)| {
            let grants = serde_json::to_value(&feature.grants).ok()?;
            (grants != nothing).then(|| (name.clone(), only_what_differs(grants, &nothing)))
        });
        let grants: BTreeMap<String, Value> = grants.collect();
        let entry = |what, name: &str| Entry::new(Kind::Grant, what, "configuration", name);
        for (name, now) in grants.iter().filter(|(name, now)| self.granted.get(*name) != Some(now)) {
            audit.note(entry("grant", name).with("grants", now.clone()));
        }
        for name in self.granted.keys().filter(|name| !grants.contains_key(*name)) {
            audit.note(entry("revoke", name));
        }
        self.granted = grants;
    }

    fn make(&self, loaded: Loaded) -> Result<Made, Diagnostics> {
        let (registry, compiled) = self.workshop.make(&loaded, &self.registry)?;
        Ok(Made { loaded, registry, compiled })
    }
}

/// The entries of an object that are not as they are in another.
fn only_what_differs(mut value: Value, from: &Value) -> Value {
    if let Value::Object(entries) = &mut value {
        entries.retain(|key, inner| from.get(key) != Some(inner));
    }
    value
}

/// A running host.
#[derive(Debug)]
pub struct Host {
    rules: Arc<RuleSetHandle<Action>>,
    queue: Sender<Input>,
    supervisor: Supervisor,
    workers: Workers,
    observer: Observer,
    observed: Observed,
    services: Arc<Services>,
    view: Arc<View>,
    models: Arc<Models>,
    told: Told,
    gate: Gate,
    /// What may be agreed to over MCP.
    elicitation: Mutex<Elicitation>,
    warnings: Diagnostics,
    home: Option<PathBuf>,
    clock: Clock,
    engine_thread: JoinHandle<()>,
    _observer_thread: JoinHandle<()>,
    /// What the system says, as conditions see it.
    facts: Arc<FactsHandle>,
    /// Who keeps them fresh, and finds the profile that applies.
    watch: facts::Watch,
    /// Whether somebody asks for a stop.
    stop_asked: (Sender<()>, Receiver<()>),
    state: Mutex<State>,
}

/// What a reload did.
#[derive(Debug, Clone)]
pub struct Reloaded {
    /// The generation of the rule set that is in use now.
    pub generation: u64,
    /// Its rules.
    pub rules: usize,
    /// What is doubtful in the configuration.
    pub warnings: Diagnostics,
}

impl Host {
    /// What to make a host of. Nothing is started before [`HostBuilder::start`].
    pub fn builder() -> HostBuilder {
        HostBuilder {
            home: None,
            features: None,
            backends: Vec::new(),
            datagrams: Box::new(SystemDatagrams),
            http: None,
            listen_to_all: false,
            clock: None,
            desktop: None,
            front: None,
            end_all_notes: false,
            subscriber: None,
            config_file: None,
            plans_expire: desk::EXPIRES,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts another configuration in force. No event is lost: those that come in between meet the
    /// old rules or the new ones, whole.
    ///
    /// `file_name` is the file's name as messages show it, and what paths in it are relative to.
    ///
    /// # Errors
    /// What is wrong with it; then everything stays as it was, and the status says so.
    pub fn reload(&self, text: &str, file_name: &str) -> Result<Reloaded, Diagnostics> {
        let mut state = self.state();
        let made = state.reader.parse(text, file_name).and_then(|loaded| state.make(loaded));
        let result = made.map(|made| self.swap_in(&mut state, made));
        let entry = Entry::new(Kind::Host, "reload", "configuration", file_name).with("state", state_hash(text));
        self.services.audit.note(match &result {
            Ok(_) => entry,
            Err(wrong) => entry.refused(format!("{} mistakes", wrong.count(Severity::Error))),
        });
        match &result {
            Ok(reloaded) => {
                self.observer.put(Observation::Reload(format!("reloaded {file_name}: {} rules", reloaded.rules)));
            }
            Err(diagnostics) => {
                let errors = diagnostics.count(Severity::Error);
                let text = format!("{file_name} was refused; the old rules stay ({errors} mistakes)");
                state.refused = Some(text.clone());
                self.view.set_refused(Some(text.clone()));
                self.observer.put(Observation::Refused(text));
            }
        }
        result
    }

    /// Puts what is installed now in force, under the configuration that is in force.
    ///
    /// # Errors
    /// Rules that can't be kept without what was there before. Then everything stays as it was,
    /// except that features end which were disabled, removed or lost a grant; what rules do with
    /// them fails.
    pub fn reload_features(&self) -> Result<Reloaded, Diagnostics> {
        let mut state = self.state();
        let State { reader, text, file_name, .. } = &mut *state;
        let loaded = reader.parse(text, file_name)?;
        let sources = state.workshop.feature_sources(&loaded);
        let refused = state.refused.take();
        let made = state.make(loaded);
        let result = made.map(|made| self.swap_in(&mut state, made));
        // That a configuration was refused is none the less so for other features.
        self.view.set_refused(refused.clone());
        state.refused = refused;
        match &result {
            Ok(reloaded) => {
                let text = format!("took over what is installed: {} rules", reloaded.rules);
                self.observer.put(Observation::Reload(text));
            }
            Err(diagnostics) => {
                let errors = diagnostics.count(Severity::Error);
                let text = format!("rules don't fit what is installed now; the old ones stay ({errors} mistakes)");
                self.observer.put(Observation::Refused(text));
                state.registry.withdraw(&sources);
            }
        }
        result
    }

    /// Makes what was made the thing in use. Nothing can fail any more.
    fn swap_in(&self, state: &mut State, made: Made) -> Reloaded {
        let Made { loaded, registry, compiled } = made;
        let plan = state.workshop.port_plan(&loaded.config, &compiled, &registry);
        let rules = compiled.rules.rules().len();
        let generation = self.rules.swap(compiled.rules);
        let _ = self.queue.send(Input::Reloaded);
        self.workers.outputs.show(&compiled.lights);
        self.watch.set_profiles(compiled.profiles);
        let previous = std::mem::replace(&mut state.registry, registry);
        previous.give_way(&state.registry);
        state.refused = None;
        self.view.set_refused(None);
        self.view.set_registry(state.registry.clone());
        loaded.source.text().clone_into(&mut state.text);
        loaded.source.file().clone_into(&mut state.file_name);
        self.supervisor.apply(plan);
        self.view.set_config(&loaded.source);
        self.told.set(state.registry.clone());
        self.models.set(loaded.config.models.clone(), state.registry.clone());
        self.gate.set(Policy::new(&loaded.config.tools));
        *self.elicitation.lock().unwrap_or_else(PoisonError::into_inner) = loaded.config.mcp.elicitation;
        state.tell_grants(&loaded.config, &self.services.audit);
        state.registry.begin(&self.observed);
        state.registry.changed(&Change::Config);
        self.services.news.tell(New::Config);
        Reloaded { generation, rules, warnings: compiled.warnings }
    }

    /// What is doubtful in the configuration that it was started with.
    pub fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// Whether this is the configuration in force, and no other was refused since.
    pub fn is_in_force(&self, text: &str) -> bool {
        let state = self.state();
        state.refused.is_none() && state.text == text
    }

    /// Makes another mode active, as a `ModeChange` would. Unknown modes are left alone.
    pub fn set_mode(&self, mode: &str) {
        let _ = self.queue.send(Input::SetMode(mode.into()));
    }

    /// Stops hearing a device, or hears it again, until the host ends.
    ///
    /// # Errors
    /// See [`UnknownDevice`].
    pub fn mute(&self, device: &str, muted: bool) -> Result<(), UnknownDevice> {
        self.supervisor.mute(device, muted)
    }

    /// Every tool that features contribute and that may be called.
    pub fn tools(&self) -> Vec<ToolView> {
        self.gate.tools(&self.state().registry)
    }

    /// Calls a tool for somebody. See [`Gate::call`].
    ///
    /// # Errors
    /// See [`ToolError`].
    pub async fn call_tool(
        &self,
        caller: &Caller,
        name: &str,
        request: ToolRequest,
        cancelled: CancellationToken,
        progress: OnProgress,
    ) -> Result<ToolResult, ToolError> {
        // A copy: what is installed may change while the tool works.
        let registry = self.state().registry.clone();
        self.gate.call(&registry, caller, name, request, cancelled, progress).await
    }

    /// Tells everybody who listens that something is different.
    pub fn tell(&self, new: New) {
        self.services.news.tell(new);
    }

    /// What is different from now on.
    pub fn news(&self) -> Listener {
        self.services.news.listen()
    }

    /// What may be agreed to over MCP, as the configuration says.
    pub fn elicitation(&self) -> Elicitation {
        *self.elicitation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts on record that somebody asked for a tool in a way that can't be understood.
    pub async fn refuse_call(&self, caller: &Caller, name: &str, reason: &str) {
        self.gate.refuse(caller, name, reason).await;
    }

    /// Puts on record that somebody was not let in at a door, and that so many others were not since the last that
    /// went on record.
    pub(crate) fn note_refused_client(&self, door: &str, asked: &str, why: &str, more: u64) {
        tracing::warn!(door, asked = crate::feature::sandbox::limits::plain(asked.to_owned(), 128), "refused: {why}");
        let entry = Entry::new(Kind::Host, "connect", door, asked).refused(why);
        self.services.audit.note(if more == 0 { entry } else { entry.with("more", more) });
    }

    /// Ends a feature's quarantine, because a person says so. Whether it was in one; none where no such
    /// feature runs.
    pub fn lift_quarantine(&self, caller: &Caller, feature: &str) -> Option<bool> {
        let lifted = self.state().registry.lift_quarantine(feature)?;
        if lifted {
            self.services.audit.note(Entry::new(Kind::Package, "lift", &caller.to_string(), feature));
            tracing::info!(feature, "a person ended its quarantine");
        }
        Some(lifted)
    }

    /// Has a feature prepare an action, as a mapping would. It may be performed until it is dropped.
    ///
    /// # Errors
    /// What the feature says, or that there is no such action.
    pub fn prepare_action(&self, name: &str, params: &str) -> Result<Arc<PreparedAction>, CallError> {
        let found = self.state().registry.find(name);
        let refused = match found {
            Lookup::Found { queue, action } => return queue.prepare(&action, params),
            Lookup::Refused { feature, reason } => format!("{feature} is not installed: {reason}"),
            Lookup::Unknown => format!("no feature has the action {name:?}"),
        };
        Err(CallError::Refused(Refusal::Invalid(refused)))
    }

    /// Waits until what features have said so far was passed on, until `deadline` at most. True when it was.
    pub fn flush(&self, deadline: Instant) -> bool {
        let said = self.services.sinks.taken();
        while self.observed.said() < said {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// The skills that features contribute.
    pub fn skills(&self) -> Vec<Skill> {
        self.state().registry.skills()
    }

    /// The models that can be asked.
    pub fn models(&self) -> &Models {
        &self.models
    }

    /// The configuration in force, as its author wrote it.
    pub fn config(&self) -> String {
        self.view.config()
    }

    /// The file of the configuration in force, as messages show it, its text, and what was said of the last one
    /// where that was refused.
    pub fn config_in_force(&self) -> (String, String, Option<String>) {
        let state = self.state();
        (state.file_name.clone(), state.text.clone(), state.refused.clone())
    }

    /// Everything that happens from now on.
    pub fn subscribe(&self) -> Receiver<Observation> {
        self.observed.subscribe()
    }

    /// The rules in use and their generation, for explaining what fired.
    pub fn with_rules<T>(&self, look: impl FnOnce(&RuleSet<Action>, u64) -> T) -> T {
        let rules = self.rules.load();
        look(&rules, rules.generation())
    }

    /// What has been observed so far.
    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// The way into the engine, for ports that are not the supervisor's.
    pub fn queue(&self) -> Sender<Input> {
        self.queue.clone()
    }

    /// The clock that events are stamped with.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Stops: closes the inputs, lets the workers finish, switches off what is on.
    pub fn stop(self) {
        let Self { queue, supervisor, workers, engine_thread, state, rules, told, models, services, view, .. } = self;
        told.set(Registry::default());
        view.set_registry(Registry::default());
        models.set(BTreeMap::new(), Registry::default());
        // First the inputs, so that nothing new comes; the outputs close last, when the workers
        // have ended the notes that they began.
        supervisor.close_inputs();
        let _ = queue.send(Input::Stop);
        let _ = engine_thread.join();
        if !workers.stop(Instant::now() + STOP_WITHIN) {
            tracing::warn!("something that does actions did not end within {} s", STOP_WITHIN.as_secs());
        }
        drop(rules);
        let registry = state.into_inner().unwrap_or_else(PoisonError::into_inner).registry;
        if !registry.stop(Instant::now() + STOP_WITHIN) {
            tracing::warn!("a feature did not finish within {} s", STOP_WITHIN.as_secs());
        }
        drop(supervisor);
        services.audit.note(Entry::new(Kind::Host, "stop", "host", ""));
        services.audit.flush(STOP_WITHIN);
    }
}
