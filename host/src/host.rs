//! The host itself: everything started in the right order, reloaded as a whole, stopped clean.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use conductor_engine::{Nanos, RuleSet, RuleSetHandle};
use crossbeam_channel::{Receiver, Sender};
use regex::Regex;
use serde::Serialize;

use crate::clock::Clock;
use crate::config::{self, Config, Diagnostic, Diagnostics, ListenMode, Loaded};
use crate::dispatch::Action;
use crate::dispatch::outputs::Outputs;
use crate::event_loop::{self, Input};
use crate::feature::Grants;
use crate::feature::capability::EndpointPattern;
use crate::feature::registry::{self, FeatureReport, FeatureSource, Registry};
use crate::feature::sandbox::Sandbox;
use crate::observer::{self, Observation, Observed, Observer};
use crate::ports::binding::{BindingSpec, NameMatcher};
use crate::ports::supervisor::{PortEvents, PortPlan, PortsStatus, Supervisor};
use crate::ports::{MidiOut, PortBackend, Protocol};
use crate::rules::{self, Compiled};
use crate::service::Services;
use crate::service::devices::DeviceTable;
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
    listen_to_all: bool,
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
        let devices = Arc::new(DeviceTable::default());
        let services = Arc::new(Services { devices, sinks, datagrams: self.datagrams });
        let sandbox = Sandbox::new(self.home.as_deref(), Arc::clone(&services)).map_err(StartError::Sandbox)?;
        let outputs = Outputs::new(observer.clone());

        let mut workshop = Workshop {
            sandbox,
            observer: observer.clone(),
            outputs: outputs.clone(),
            bundled: self.features,
            listen_to_all: self.listen_to_all,
        };
        let (registry, compiled) = workshop.make(loaded, &Registry::default())?;
        let plan = workshop.port_plan(&loaded.config, &compiled);

        let rules = Arc::new(RuleSetHandle::new(compiled.rules));
        let (queue, engine_thread) = event_loop::start(Arc::clone(&rules), observer.clone())?;
        let clock = Clock::start();
        let events = PortReports { observer: observer.clone(), outputs: outputs.clone() };
        let supervisor = Supervisor::start(self.backends, queue.clone(), clock, Box::new(events))?;
        supervisor.apply(plan);

        Ok(Host {
            rules,
            queue,
            supervisor,
            outputs,
            observer,
            observed,
            services,
            clock,
            engine_thread,
            _observer_thread: observer_thread,
            state: Mutex::new(State { workshop, registry }),
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

/// Makes registries and rule sets of configurations.
#[derive(Debug)]
struct Workshop {
    sandbox: Sandbox,
    observer: Observer,
    outputs: Outputs,
    bundled: Option<PathBuf>,
    listen_to_all: bool,
}

impl Workshop {
    /// A workshop without a host around it.
    fn on_its_own(home: Option<&Path>, features: Option<&Path>) -> Result<Self, StartError> {
        let (sinks, said) = SinkQueue::new();
        let (observer, _, _) = observer::start(said, None)?;
        let services = Arc::new(Services { devices: Arc::default(), sinks, datagrams: Box::new(SystemDatagrams) });
        let sandbox = Sandbox::new(home, services).map_err(StartError::Sandbox)?;
        let outputs = Outputs::new(observer.clone());
        Ok(Self { sandbox, observer, outputs, bundled: features.map(Path::to_owned), listen_to_all: false })
    }

    /// Builds what a configuration describes, beside what is in use.
    fn make(&mut self, loaded: &Loaded, before: &Registry) -> Result<(Registry, Compiled), Diagnostics> {
        bindings(loaded)?;
        let registry = before.with(feature_sources(loaded, self.bundled.as_deref()), &self.sandbox, &self.observer);
        let compiled = rules::compile(loaded, &registry, &self.outputs)?;
        Ok((registry, compiled))
    }

    fn port_plan(&self, config: &Config, compiled: &Compiled) -> PortPlan {
        PortPlan {
            // Without any binding, listening only to bindings would be silence.
            open_unbound: self.listen_to_all
                || config.bindings.is_empty()
                || config.advanced_settings.listen_mode == ListenMode::All,
            max_midi_ports: usize::from(config.advanced_settings.max_midi_ports),
            targets: compiled.targets.iter().cloned().collect(),
            bindings: binding_specs(config),
        }
    }
}

/// The enabled bindings as the ports side needs them; those with a wrong matcher are left out.
pub(crate) fn binding_specs(config: &Config) -> Vec<BindingSpec> {
    config.bindings.iter().filter(|binding| binding.enabled).filter_map(|configured| binding(configured).ok()).collect()
}

/// Regular expressions are the one part of bindings that can still be wrong.
fn bindings(loaded: &Loaded) -> Result<(), Diagnostics> {
    let mut diagnostics = Diagnostics::new(loaded.source.clone());
    for (index, configured) in loaded.config.bindings.iter().enumerate() {
        if let Err((matcher, error)) = binding(configured) {
            let path = ["bindings".into(), index.into(), "matchers".into(), matcher.into(), "value".into()];
            diagnostics.push(Diagnostic::error(loaded.source.place(&path), error));
        }
    }
    diagnostics.into_result().map(drop)
}

/// The binding as the ports side needs it, or the matcher that is wrong, and why.
fn binding(configured: &config::Binding) -> Result<BindingSpec, (usize, String)> {
    let alias = configured.alias.clone();
    Ok(match &configured.connection {
        config::Connection::Midi { matchers, .. } => {
            let matchers = matchers.iter().enumerate().map(|(index, matcher)| {
                Ok(match matcher {
                    config::Matcher::ExactName { value } => NameMatcher::Exact(value.clone()),
                    config::Matcher::NameContains { value } => NameMatcher::Contains(value.clone()),
                    config::Matcher::NameRegex { value } => {
                        NameMatcher::Regex(Regex::new(value).map_err(|error| (index, error.to_string()))?)
                    }
                })
            });
            BindingSpec { alias, protocol: Protocol::Midi, matchers: matchers.collect::<Result<_, _>>()?, listen: None }
        }
        config::Connection::Osc { input } => BindingSpec {
            alias,
            protocol: Protocol::Osc,
            matchers: Vec::new(),
            listen: Some((input.host.clone(), input.port)),
        },
    })
}

/// The features that a configuration wants: the bundled ones unless switched off, and its own.
fn feature_sources(loaded: &Loaded, bundled: Option<&Path>) -> Vec<FeatureSource> {
    let configured = &loaded.config.features;
    let mut sources: BTreeMap<String, FeatureSource> = BTreeMap::new();
    for path in bundled.map(registry::bundled).unwrap_or_default() {
        let Some(name) = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned) else { continue };
        let given = configured.get(&name).map(|feature| grants(&feature.grants)).unwrap_or_default();
        let source = FeatureSource { name: name.clone(), path, bundled: true, grants: Grants::bundled().union(&given) };
        sources.insert(name, source);
    }
    let folder = Path::new(loaded.source.file()).parent().unwrap_or(Path::new("."));
    for (name, feature) in configured {
        if !feature.enabled {
            sources.remove(name);
        } else if let Some(path) = &feature.path {
            let source = FeatureSource {
                name: name.clone(),
                path: folder.join(path),
                bundled: false,
                grants: grants(&feature.grants),
            };
            sources.insert(name.clone(), source);
        } else if !sources.contains_key(name) {
            // Reported as refused: there is no such file.
            let path = bundled.unwrap_or(Path::new("")).join(format!("{name}.wasm"));
            sources.insert(
                name.clone(),
                FeatureSource { name: name.clone(), path, bundled: true, grants: grants(&feature.grants) },
            );
        }
    }
    sources.into_values().collect()
}

fn grants(configured: &config::Grants) -> Grants {
    let udp = configured.udp.iter().filter_map(|destination| destination.to_string().parse::<EndpointPattern>().ok());
    Grants { udp: udp.collect(), alert: configured.alert, notify: configured.notify }
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

/// Everything there is to know about a running host.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// The version of the host.
    pub version: &'static str,
    /// Its process.
    pub pid: u32,
    /// Nanoseconds since it started.
    pub uptime: Nanos,
    /// The active mode; none where the configuration has no modes.
    pub mode: Option<String>,
    /// The modes there are.
    pub modes: Vec<String>,
    /// Rules in use.
    pub rules: usize,
    /// How often the rules were replaced.
    pub generation: u64,
    /// Events that reached the rules.
    pub events: u64,
    /// Actions that failed.
    pub failures: u64,
    /// The last of them.
    pub last_failure: Option<String>,
    /// Observations that nobody saw because the observer was behind.
    pub unobserved: u64,
    /// Messages of features that were left out: too many, or too fast.
    pub dropped_messages: u64,
    /// Ports.
    #[serde(flatten)]
    pub ports: PortsStatus,
    /// MIDI outputs.
    pub outputs: Vec<OutputStatus>,
    /// Features.
    pub features: Vec<FeatureReport>,
}

/// What there is to know about a MIDI output that rules send to.
#[derive(Debug, Clone, Serialize)]
pub struct OutputStatus {
    /// What rules call it.
    pub target: String,
    /// Messages sent.
    pub sent: u64,
    /// Messages that could not be sent.
    pub failed: u64,
    /// Why the last of those could not.
    pub last_failure: Option<String>,
}

impl Host {
    /// What to make a host of. Nothing is started before [`HostBuilder::start`].
    pub fn builder() -> HostBuilder {
        HostBuilder {
            home: None,
            features: None,
            backends: Vec::new(),
            datagrams: Box::new(SystemDatagrams),
            listen_to_all: false,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts another configuration in force. No event is lost: those that come in between meet the
    /// old rules or the new ones, whole.
    ///
    /// # Errors
    /// What is wrong with it; then everything stays as it was.
    pub fn reload(&self, loaded: &Loaded) -> Result<Reloaded, Diagnostics> {
        let mut state = self.state();
        let State { workshop, registry } = &mut *state;
        let (next, compiled) = match workshop.make(loaded, registry) {
            Ok(made) => made,
            Err(diagnostics) => {
                self.observer.put(Observation::Reload("the new configuration was refused; the old rules stay".into()));
                return Err(diagnostics);
            }
        };
        let plan = workshop.port_plan(&loaded.config, &compiled);
        let rules = compiled.rules.rules().len();
        let generation = self.rules.swap(compiled.rules);
        *registry = next;
        self.supervisor.apply(plan);
        self.observer.put(Observation::Reload(format!("{rules} rules in use")));
        Ok(Reloaded { generation, rules, warnings: compiled.warnings })
    }

    /// Makes another mode active, as a `ModeChange` would. Unknown modes are left alone.
    pub fn set_mode(&self, mode: &str) {
        let _ = self.queue.send(Input::SetMode(mode.into()));
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

    /// How things are.
    pub fn status(&self) -> Status {
        let (rules, modes, generation) = {
            let rules = self.rules.load();
            (
                rules.rules().len(),
                rules.modes().iter().map(|mode| mode.to_string()).collect::<Vec<_>>(),
                rules.generation(),
            )
        };
        let (failures, last_failure) = self.observed.failures();
        let mode = self.observed.mode().map(|mode| mode.to_string()).filter(|mode| modes.contains(mode));
        let outputs = self.outputs.queues().into_iter().map(|queue| OutputStatus {
            target: queue.target().to_string(),
            sent: queue.counters().done.load(Ordering::Relaxed),
            failed: queue.counters().failed.load(Ordering::Relaxed),
            last_failure: queue.counters().last_failure(),
        });
        Status {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            uptime: self.clock.now(),
            mode: mode.or_else(|| modes.first().cloned()),
            modes,
            rules,
            generation,
            events: self.observed.recorded(),
            failures,
            last_failure: last_failure.map(|failure| format!("{}: {}", failure.worker, failure.reason)),
            unobserved: self.observer.missed(),
            dropped_messages: self.services.sinks.dropped(),
            ports: self.supervisor.status(),
            outputs: outputs.collect(),
            features: self.state().registry.reports(),
        }
    }

    /// Stops: closes the inputs, lets the workers finish, switches off what is on.
    pub fn stop(self) {
        let Self { queue, supervisor, outputs, engine_thread, state, rules, .. } = self;
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

/// Checks a configuration as [`HostBuilder::start`] would, without opening a port: features are
/// installed and every action is prepared.
///
/// # Errors
/// See [`StartError`].
pub fn check(loaded: &Loaded, home: Option<&Path>, features: Option<&Path>) -> Result<Compiled, StartError> {
    let (_, compiled) = Workshop::on_its_own(home, features)?.make(loaded, &Registry::default())?;
    Ok(compiled)
}

/// The features that a configuration installs, without starting a host.
///
/// # Errors
/// See [`StartError`].
pub fn installed(
    loaded: &Loaded,
    home: Option<&Path>,
    features: Option<&Path>,
) -> Result<Vec<FeatureReport>, StartError> {
    let workshop = Workshop::on_its_own(home, features)?;
    let sources = feature_sources(loaded, workshop.bundled.as_deref());
    Ok(Registry::default().with(sources, &workshop.sandbox, &workshop.observer).reports())
}
