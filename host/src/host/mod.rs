//! The host itself: everything started in the right order, reloaded as a whole, stopped clean.

mod changes;
mod rollback;
pub mod status;
mod view;
mod workshop;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use conductor_engine::{RuleSet, RuleSetHandle};
use crossbeam_channel::{Receiver, Sender};
use tokio_util::sync::CancellationToken;

use self::changes::Told;
use self::view::View;
use self::workshop::Workshop;
pub(crate) use self::workshop::binding_specs;
pub use self::workshop::{check, installed, try_out};
use crate::clock::Clock;
use crate::config::{self, Diagnostics, Loaded, Severity};
use crate::control::gate::{self, ToolError, ToolRequest, ToolResult, ToolView};
use crate::dispatch::Action;
use crate::dispatch::feature_worker::PreparedAction;
use crate::dispatch::outputs::Outputs;
use crate::event_loop::{self, Input};
use crate::feature::registry::{Lookup, Registry};
use crate::feature::sandbox::control::Change;
use crate::feature::sandbox::{CallError, Refusal, Sandbox};
use crate::observer::{self, Observation, Observed, Observer};
use crate::package::store::Store;
use crate::ports::supervisor::{PortEvents, Supervisor};
use crate::ports::{MidiOut, PortBackend};
use crate::service::Services;
use crate::service::host_state::HostView;
use crate::service::http::HttpClient;
use crate::service::invocation::OnProgress;
use crate::service::notification_log::NotificationLog;
use crate::service::planning::Plan;
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
    subscriber: Option<Sender<Observation>>,
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
        services.http = self.http.unwrap_or(services.http);
        let services = Arc::new(services);
        let sandbox = Sandbox::new(self.home.as_deref(), Arc::clone(&services)).map_err(StartError::Sandbox)?;
        let outputs = Outputs::new(observer.clone());

        // Opening it sweeps it; without one that can be written, what is there is read.
        let packages = self.home.as_deref().map(|home| {
            Store::open(home).unwrap_or_else(|error| {
                tracing::warn!("the package store can't be tidied: {error}");
                Store::at(home)
            })
        });
        let workshop = Workshop {
            sandbox,
            observer: observer.clone(),
            outputs: outputs.clone(),
            bundled: self.features,
            packages,
            listen_to_all: self.listen_to_all,
        };
        let (registry, compiled) = workshop.make(loaded, &Registry::default())?;
        let plan = workshop.port_plan(&loaded.config, &compiled, &registry);

        let rules = Arc::new(RuleSetHandle::new(compiled.rules));
        let (queue, engine_thread) = event_loop::start(Arc::clone(&rules), observer.clone())?;
        let clock = services.clock;
        let events = PortReports { observer: observer.clone(), outputs: outputs.clone() };
        let supervisor = Supervisor::start(self.backends, queue.clone(), clock, Box::new(events))?;
        let view = Arc::new(View {
            rules: Arc::clone(&rules),
            observed: observed.clone(),
            ports: supervisor.reader(),
            outputs: outputs.clone(),
            queue: queue.clone(),
            config: RwLock::new(loaded.source.text().to_owned()),
        });
        let _ = services.view.set(Arc::clone(&view) as Arc<dyn HostView>);
        supervisor.apply(plan);
        registry.begin(&observed);
        let told = Told::start(&observed)?;
        told.set(registry.clone());

        Ok(Host {
            rules,
            queue,
            supervisor,
            outputs,
            observer,
            observed,
            services,
            view,
            told,
            home: self.home,
            clock,
            engine_thread,
            _observer_thread: observer_thread,
            state: Mutex::new(State {
                workshop,
                registry,
                text: loaded.source.text().to_owned(),
                file_name: loaded.source.file().to_owned(),
                refused: None,
                taken_back: HashSet::new(),
            }),
        })
    }
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
    /// The system refused a thread.
    #[error("the system refused a thread: {0}")]
    Thread(#[from] std::io::Error),
}

impl From<Diagnostics> for StartError {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Config(diagnostics)
    }
}

struct PortReports {
    observer: Observer,
    outputs: Outputs,
}

impl PortEvents for PortReports {
    fn changed(&mut self, text: String) {
        self.observer.put(Observation::Port(text));
    }

    fn trouble(&mut self, text: String) {
        self.observer.put(Observation::PortTrouble(text));
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
    /// The configuration in force.
    text: String,
    /// Its file, as messages show it.
    file_name: String,
    /// What was said of the last configuration, where it was refused.
    refused: Option<String>,
    /// Digests of upgrades that went wrong.
    taken_back: HashSet<String>,
}

/// A running host.
#[derive(Debug)]
pub struct Host {
    rules: Arc<RuleSetHandle<Action>>,
    queue: Sender<Input>,
    supervisor: Supervisor,
    outputs: Outputs,
    observer: Observer,
    observed: Observed,
    services: Arc<Services>,
    view: Arc<View>,
    told: Told,
    home: Option<PathBuf>,
    clock: Clock,
    engine_thread: JoinHandle<()>,
    _observer_thread: JoinHandle<()>,
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
            subscriber: None,
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
        let result = config::parse(text, file_name).and_then(|loaded| self.put_in_force(&mut state, &loaded));
        match &result {
            Ok(reloaded) => {
                state.refused = None;
                text.clone_into(&mut state.text);
                file_name.clone_into(&mut state.file_name);
                self.observer.put(Observation::Reload(format!("reloaded {file_name}: {} rules", reloaded.rules)));
            }
            Err(diagnostics) => {
                let errors = diagnostics.count(Severity::Error);
                let text = format!("{file_name} was refused; the old rules stay ({errors} mistakes)");
                state.refused = Some(text.clone());
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
        let loaded = config::parse(&state.text, &state.file_name)?;
        let result = self.put_in_force(&mut state, &loaded);
        match &result {
            Ok(reloaded) => {
                let text = format!("took over what is installed: {} rules", reloaded.rules);
                self.observer.put(Observation::Reload(text));
            }
            Err(diagnostics) => {
                let errors = diagnostics.count(Severity::Error);
                let text = format!("rules don't fit what is installed now; the old ones stay ({errors} mistakes)");
                self.observer.put(Observation::Refused(text));
                state.registry.withdraw(&state.workshop.feature_sources(&loaded));
            }
        }
        result
    }

    fn put_in_force(&self, state: &mut State, loaded: &Loaded) -> Result<Reloaded, Diagnostics> {
        let (next, compiled) = state.workshop.make(loaded, &state.registry)?;
        let plan = state.workshop.port_plan(&loaded.config, &compiled, &next);
        let rules = compiled.rules.rules().len();
        let generation = self.rules.swap(compiled.rules);
        state.registry = next;
        self.supervisor.apply(plan);
        self.view.set_config(loaded.source.text());
        self.told.set(state.registry.clone());
        state.registry.begin(&self.observed);
        state.registry.changed(&Change::Config);
        Ok(Reloaded { generation, rules, warnings: compiled.warnings })
    }

    /// Makes another mode active, as a `ModeChange` would. Unknown modes are left alone.
    pub fn set_mode(&self, mode: &str) {
        let _ = self.queue.send(Input::SetMode(mode.into()));
    }

    /// Every tool that features contribute.
    pub fn tools(&self) -> Vec<ToolView> {
        gate::tools(&self.state().registry)
    }

    /// Calls a tool. See [`gate::call`].
    ///
    /// # Errors
    /// See [`ToolError`].
    pub async fn call_tool(
        &self,
        name: &str,
        request: ToolRequest,
        cancelled: CancellationToken,
        progress: OnProgress,
    ) -> Result<ToolResult, ToolError> {
        // A copy: what is installed may change while the tool works.
        let registry = self.state().registry.clone();
        gate::call(&registry, name, request, cancelled, progress).await
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

    /// Plans that wait for a person.
    pub fn plans(&self) -> Vec<Plan> {
        self.services.plans.list()
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
        let Self { queue, supervisor, outputs, engine_thread, state, rules, told, .. } = self;
        told.set(Registry::default());
        // First the inputs, so that nothing new comes; the outputs close last, when the workers
        // have ended the notes that they began.
        supervisor.close_inputs();
        let _ = queue.send(Input::Stop);
        let _ = engine_thread.join();
        outputs.stop();
        drop(rules);
        let registry = state.into_inner().unwrap_or_else(PoisonError::into_inner).registry;
        if !registry.stop(Instant::now() + STOP_WITHIN) {
            tracing::warn!("a feature did not finish within {} s", STOP_WITHIN.as_secs());
        }
        drop(supervisor);
    }
}
