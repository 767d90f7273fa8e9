//! The host's builder: the parts of a host, and the order in which they start.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use conductor_active_window::{self as active_window, ActiveWindowWatch};
use conductor_audit::caller::Caller;
use conductor_audit::{Audit, Entry, Kind};
use conductor_chat::Models;
use conductor_config::{Diagnostics, Loaded};
use conductor_dispatch::Reason;
use conductor_dispatch::desktop::Connect;
use conductor_dispatch::outputs::Outputs;
use conductor_dispatch::script::{ChangeMode, ToEngine};
use conductor_dispatch::workers::Workers;
use conductor_engine::{EnvironmentHandle, RuleSetHandle};
use conductor_event::DeviceId;
use conductor_install::store::PackageStore;
use conductor_observer::notification_log::NotificationLog;
use conductor_observer::sink_message::SinkQueue;
use conductor_observer::{self as observer, Observation, Observer};
use conductor_policy::Policy;
use conductor_ports::engine_input::{self, Input};
use conductor_ports::supervisor::{PortEvents, Supervisor};
use conductor_ports::{MidiOut, PortBackend};
use conductor_registry::Registry;
use conductor_sandbox::datagrams::{Datagrams, SystemDatagrams};
use conductor_sandbox::host_view::HostView;
use conductor_sandbox::model_view::ModelView;
use conductor_sandbox::services::Services;
use conductor_sandbox::{Compiler, Sandbox};
use conductor_scheduling::{self as scheduling, RealtimePriority};
use conductor_services::http::HttpClient;
use conductor_stdx::changes::{ChangeBroadcast, HostChange};
use conductor_stdx::clock::Clock;
use conductor_stdx::doorbell;
use crossbeam_channel::{Sender, TrySendError};
use parking_lot::Mutex;

use super::assembler::{Assembler, adopt_data};
use super::changes;
use super::generation::{Generation, InForce};
use super::look::PreviewSlots;
use super::planned::PlannedCache;
use super::secret_audit::AuditedSecrets;
use super::view::View;
use super::{Host, State};
use crate::control::gate::Gate;
use crate::control::lock::ShowLock;
use crate::control::plan::state_hash;
use crate::control::plan::store::{self, PlanStore};
use crate::control::trouble::TroubleLog;
use crate::environment::{self, EnvironmentSources};
use crate::event_loop;

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
    active_window: Option<Box<dyn ActiveWindowWatch>>,
    end_all_notes: bool,
    subscriber: Option<Sender<Observation>>,
    config_file: Option<PathBuf>,
    plans_expire: Duration,
    compiler: Option<Compiler>,
    realtime_priority: RealtimePriority,
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
    /// One with nothing but what the system has.
    pub(super) fn new() -> Self {
        Self {
            home: None,
            features: None,
            backends: Vec::new(),
            datagrams: Box::new(SystemDatagrams),
            http: None,
            listen_to_all: false,
            clock: None,
            desktop: None,
            active_window: None,
            end_all_notes: false,
            subscriber: None,
            config_file: None,
            plans_expire: store::PLAN_TIMEOUT,
            compiler: None,
            realtime_priority: RealtimePriority::Never,
        }
    }

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

    /// Goes by another clock than the system's, in events and for features.
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
    pub fn active_window(mut self, active_window: Box<dyn ActiveWindowWatch>) -> Self {
        self.active_window = Some(active_window);
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

    /// Compiles packages with this compiler; if not said, with [`Compiler::find`], which has the code of the release.
    #[must_use]
    pub fn compiler(mut self, compiler: Compiler) -> Self {
        self.compiler = Some(compiler);
        self
    }

    /// Takes real-time priority for the threads that wait for events if the user has a right to it and the configuration does
    /// not say whether to. For a program that is this host and nothing else: `SIGXCPU` and the limit `RLIMIT_RTTIME` are of
    /// the whole process. If this isn't called, only a configuration that asks for it gets it.
    #[must_use]
    pub fn realtime_priority_by_right(mut self) -> Self {
        self.realtime_priority = RealtimePriority::ByRight;
        self
    }

    /// Starts with a configuration: installs the features, compiles the rules, opens the ports.
    ///
    /// A feature or a port that can't be had is reported and skipped.
    ///
    /// # Errors
    /// [`StartError`]; nothing keeps running.
    pub fn start(self, loaded: &Loaded) -> Result<Host, StartError> {
        // Of the process: before any thread that it concerns.
        let settings = &loaded.config.advanced_settings;
        scheduling::configure(scheduling::Settings {
            short_time_slices: settings.short_time_slices,
            realtime_priority: RealtimePriority::wanted(settings.realtime_priority, self.realtime_priority),
        });
        let (sinks, said) = SinkQueue::new();
        let (observer, observed, observer_thread) =
            observer::start(said, self.home.as_deref().map(NotificationLog::new))?;
        if let Some(subscriber) = self.subscriber {
            observed.subscriber(subscriber);
        }
        if let Some(home) = &self.home {
            adopt_data(home, &PackageStore::at(home));
        }
        let mut services = Services::new(sinks, self.datagrams).home(self.home.as_deref());
        services.clock = self.clock.unwrap_or(services.clock);
        let plans = Arc::new(desk(self.home.as_deref(), services.clock, self.plans_expire)?);
        let (audit, changes) = (
            match &self.home {
                Some(home) => Audit::start(home, services.clock)?,
                None => Audit::none(),
            },
            ChangeBroadcast::default(),
        );
        services.http = self.http.unwrap_or(services.http).witnessed(Arc::new(AuditedSecrets(audit.clone())));
        let services = Arc::new(services);
        let lock = ShowLock::of(self.home.as_deref());
        let gate = Gate::new(audit.clone(), lock.clone());
        let released = || Compiler::find().with_released(self.features.as_deref());
        let compiler = self.compiler.unwrap_or_else(released);
        let sandbox =
            Sandbox::new(self.home.as_deref(), Arc::clone(&services), compiler.clone()).map_err(StartError::Sandbox)?;
        let (queue, inputs) = engine_input::queue();
        let workers = Workers::new(observer.clone(), self.desktop, change_mode_by(queue.clone()));
        if let Some(home) = &self.home {
            workers.keep_variables(home);
        }
        if self.end_all_notes {
            workers.outputs.end_all_notes();
        }

        // Opening it sweeps it; without one that can be written, what is there is read.
        let packages = self.home.as_deref().map(|home| {
            let store = PackageStore::open(home).unwrap_or_else(|error| {
                tracing::warn!("the package store can't be tidied: {error}");
                PackageStore::at(home)
            });
            store.by(Caller::host())
        });
        let assembler = Assembler {
            sandbox,
            observer: observer.clone(),
            workers: workers.clone(),
            bundled: self.features,
            packages,
            listen_to_all: self.listen_to_all,
        };
        let (registry, compiled) = assembler.make(loaded, &Registry::default())?;
        let plan = assembler.port_plan(&loaded.config, &compiled, &registry);

        workers.outputs.follow(&compiled.outputs);
        let rules = Arc::new(RuleSetHandle::new(compiled.rules));
        let clock = services.clock;
        let environment = Arc::new(EnvironmentHandle::new());
        let engine_thread = event_loop::start(
            Arc::clone(&rules),
            Arc::clone(&environment),
            clock,
            inputs,
            workers.releases(),
            observer.clone(),
        )?;
        let environment_sources = EnvironmentSources {
            handle: Arc::clone(&environment),
            rules: Arc::clone(&rules),
            clock,
            queue: queue.clone(),
            profiles: compiled.profiles,
        };
        let watch = environment::start(environment_sources, self.active_window.unwrap_or_else(active_window::system))?;
        let events = PortReports {
            changes: changes.clone(),
            observer: observer.clone(),
            outputs: workers.outputs.clone(),
            queue: queue.clone(),
        };
        let supervisor = Supervisor::start(self.backends, queue.clone(), clock, Box::new(events))?;
        let in_force = InForce::new(Generation {
            registry: registry.clone(),
            source: loaded.source.clone(),
            config: Arc::new(loaded.config.clone()),
            rules: rules.snapshot(),
            policy: Arc::new(Policy::new(&loaded.config.tools)),
            models: Arc::new(Models::of(&loaded.config, registry.clone(), audit.clone())),
            refused: None,
            warnings: compiled.warnings.summaries(),
        });
        let view = Arc::new(View {
            observer: observer.clone(),
            observed: observed.clone(),
            ports: supervisor.reader(),
            mutes: supervisor.mutes(),
            workers: workers.clone(),
            environment: Arc::clone(&environment),
            clock,
            queue: queue.clone(),
            in_force: in_force.clone(),
            config_file: self.config_file.clone(),
            plans: Arc::clone(&plans),
            audit: audit.clone(),
            changes: changes.clone(),
            turns: PreviewSlots::new(),
            planned: PlannedCache::default(),
            changing: Mutex::default(),
        });
        let _ = services.models.set(Arc::new(in_force.clone()) as Arc<dyn ModelView>);
        let _ = services.view.set(Arc::clone(&view) as Arc<dyn HostView>);
        supervisor.apply(plan);
        registry.begin(&observed);
        changes::start(&observed, in_force.clone())?;

        let host = Host {
            rules,
            queue,
            supervisor,
            workers,
            observer,
            observed,
            services,
            audit,
            plans,
            changes,
            view,
            compiler,
            gate,
            lock,
            assembler,
            in_force,
            troubles: TroubleLog::default(),
            config_file: self.config_file,
            warnings: compiled.warnings,
            home: self.home,
            clock,
            engine_thread: Some(engine_thread),
            _observer_thread: observer_thread,
            environment,
            watch,
            stop_asked: crossbeam_channel::bounded(1),
            state: Mutex::new(State::default()),
        };
        let started = Entry::new(Kind::Host, "start", &Caller::host(), loaded.source.file());
        let started = if host.lock.held().is_some() { started.with("locked", true) } else { started };
        host.audit
            .note(started.with("version", env!("CARGO_PKG_VERSION")).with("state", state_hash(loaded.source.text())));
        host.state().record_grants(&loaded.config, &host.audit);
        host.settle_plans();
        Ok(host)
    }
}

/// The store of a home; if there is none, or it can't be written, one that forgets.
fn desk(home: Option<&Path>, clock: Clock, expires: Duration) -> Result<PlanStore, StartError> {
    let kept = home.map(|home| PlanStore::open(home, clock, expires));
    match kept {
        Some(Ok(desk)) => return Ok(desk),
        Some(Err(error)) => tracing::warn!("{error}; plans are forgotten when the host stops"),
        None => {}
    }
    PlanStore::in_memory(clock, expires).map_err(|error| StartError::PlanStore(error.to_string()))
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
    PlanStore(String),
    /// The system refused a thread.
    #[error("the system refused a thread: {0}")]
    Thread(#[from] std::io::Error),
}

impl From<Diagnostics> for StartError {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Config(diagnostics)
    }
}

/// Lets scripts change the mode, and tell of variables that they changed, without waiting.
fn change_mode_by(queue: doorbell::Sender<Input>) -> ChangeMode {
    Box::new(move |to_engine| {
        let input = match to_engine {
            ToEngine::Mode(mode) => Input::SetMode(mode),
            ToEngine::Changed(at, event) => Input::Event { at, event },
        };
        queue.try_send(input).map_err(|error| match error {
            TrySendError::Full(_) => Reason::QueueFull,
            TrySendError::Disconnected(_) => Reason::Gone,
        })
    })
}

struct PortReports {
    changes: ChangeBroadcast,
    observer: Observer,
    outputs: Outputs,
    queue: doorbell::Sender<Input>,
}

impl PortEvents for PortReports {
    fn changed(&mut self, text: String) {
        self.observer.put(Observation::Port(text));
        self.changes.send(HostChange::Ports);
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
