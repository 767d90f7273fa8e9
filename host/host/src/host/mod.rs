//! The host itself: what runs, reloaded as a whole, stopped clean.

mod apply;
mod assembler;
mod builder;
mod changes;
mod contract_types;
mod effects_of;
pub mod feature_change;
mod generation;
mod grant_warnings;
pub mod installer;
mod look;
mod planned;
mod play;
mod requests;
mod rollback;
mod rule_names;
mod secret_audit;
pub mod secrets;
pub mod status;
mod view;

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use conductor_engine::{EnvironmentHandle, RuleSet, RuleSetHandle};
use crossbeam_channel::{Receiver, Sender};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use self::apply::{Applied, PlanView};
use self::assembler::Assembler;
pub use self::assembler::{Rehearsal, check, configured_grants, installed, rehearse};
pub use self::builder::{HostBuilder, StartError};
pub use self::effects_of::EffectsError;
use self::generation::{Generation, InForce};
pub use self::play::PlayError;
pub use self::requests::{ChangeError, LockError, ReloadError, UnknownMode};
use self::view::View;
use crate::control::gate::{Gate, ToolError, ToolRequest, ToolResult, ToolView};
use crate::control::lock::ShowLock;
use crate::control::plan::state_hash;
use crate::control::plan::store::PlanStore;
use crate::control::trouble::{Misconduct, TroubleLog};
use crate::environment;
use conductor_audit::caller::{Caller, Door};
use conductor_audit::{Audit, Entry, Kind};
use conductor_chat::Models;
use conductor_config::include::Included;
use conductor_config::reader::Reader;
use conductor_config::{Config, Diagnostics, Elicitation, Loaded, Severity, ToolList};
use conductor_dispatch::Action;
use conductor_dispatch::prepared_action::PreparedAction;
use conductor_dispatch::workers::Workers;
pub use conductor_effects::shown;
use conductor_event::RuleId;
use conductor_observer::{Observation, Observed, Observer};
use conductor_package::Grants;
use conductor_ports::engine_input::Input;
use conductor_ports::supervisor::{Supervisor, UnknownDevice};
use conductor_registry::{Lookup, Registry, TaskError, TaskReport};
use conductor_rules::Compiled;
use conductor_sandbox::control::Change;
use conductor_sandbox::handles::OnProgress;
use conductor_sandbox::services::Services;
use conductor_sandbox::{CallError, Compiler, ServiceError};
use conductor_skills::library::Contributed;
use conductor_stdx::changes::{ChangeBroadcast, ChangeListener, HostChange};
use conductor_stdx::clock::Clock;
use conductor_stdx::doorbell;
use conductor_stdx::plural::plural;
use conductor_terminal::excerpt;

/// How long a stop waits for features to finish what they were asked to do.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// What only those need who put another configuration in force; its lock is what makes them wait for each other.
#[derive(Debug, Default)]
struct State {
    /// What reads it again.
    reader: Reader,
    /// Digests of upgrades that went wrong.
    taken_back: HashSet<String>,
    /// What the configuration grants, by the whole id that it is meant for, as it is on record.
    granted: BTreeMap<String, Value>,
}

/// What a configuration was made into, beside what is in use.
#[derive(Debug)]
struct Made {
    loaded: Loaded,
    registry: Registry,
    compiled: Compiled,
}

impl State {
    /// Puts on record what the configuration grants otherwise than before: only a person writes it, and
    /// has done so already.
    fn record_grants(&mut self, config: &Config, audit: &Audit) {
        let nothing = serde_json::to_value(Grants::default()).unwrap_or_default();
        let grants = config.features.iter().filter_map(|(name, feature)| {
            let grants = serde_json::to_value(&feature.grants).ok()?;
            let id = feature.id.clone().unwrap_or_else(|| format!("builtin:{name}"));
            let record = serde_json::json!({
                "id": id, "digest": feature.digest, "grants": only_what_differs(grants.clone(), &nothing),
            });
            (grants != nothing).then_some((id, record))
        });
        let grants: BTreeMap<String, Value> = grants.collect();
        let entry = |what, id: &str| Entry::new(Kind::Grant, what, &Caller::configuration(), id);
        for (id, now) in grants.iter().filter(|(id, now)| self.granted.get(*id) != Some(now)) {
            let entry = entry("grant", id).with("grants", now["grants"].clone());
            audit.note(match now["digest"].as_str() {
                Some(digest) => entry.with("digest", digest),
                None => entry,
            });
        }
        for name in self.granted.keys().filter(|name| !grants.contains_key(*name)) {
            audit.note(entry("revoke", name));
        }
        self.granted = grants;
    }
}

/// The entries of an object that are not as they are in another.
fn only_what_differs(mut value: Value, from: &Value) -> Value {
    if let Value::Object(entries) = &mut value {
        entries.retain(|key, inner| from.get(key) != Some(inner));
    }
    value
}

/// How much is wrong.
fn mistakes(found: &Diagnostics) -> String {
    plural(found.count(Severity::Error), "mistake")
}

/// A running host.
#[derive(Debug)]
pub struct Host {
    rules: Arc<RuleSetHandle<Action>>,
    queue: doorbell::Sender<Input>,
    supervisor: Supervisor,
    workers: Workers,
    observer: Observer,
    observed: Observed,
    services: Arc<Services>,
    audit: Audit,
    /// The plans that wait.
    plans: Arc<PlanStore>,
    changes: ChangeBroadcast,
    view: Arc<View>,
    compiler: Compiler,
    gate: Gate,
    lock: ShowLock,
    assembler: Assembler,
    in_force: InForce,
    troubles: TroubleLog,
    /// The file that applied plans are written to.
    config_file: Option<PathBuf>,
    warnings: Diagnostics,
    home: Option<PathBuf>,
    clock: Clock,
    /// `None` while it is dropped.
    engine_thread: Option<JoinHandle<()>>,
    _observer_thread: JoinHandle<()>,
    /// What the system says, as conditions see it.
    environment: Arc<EnvironmentHandle>,
    /// Who keeps them fresh, and finds the profile that applies.
    watch: environment::EnvironmentMonitor,
    /// Whether somebody asks for a stop.
    stop_asked: (Sender<()>, Receiver<()>),
    /// What only those who change it look at, one after the other: making a new one may take minutes. Everybody else
    /// looks at `view`.
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
        HostBuilder::new()
    }

    /// Held while another configuration is made and put in force. Reads go by [`Host::in_force`] instead.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Builds what a configuration describes, beside what is in force.
    fn make(&self, loaded: Loaded) -> Result<Made, Diagnostics> {
        let (registry, compiled) = self.assembler.make(&loaded, &self.in_force.load().registry)?;
        Ok(Made { loaded, registry, compiled })
    }

    /// Puts another configuration in force. No event is lost: those that come in between meet the
    /// old rules or the new ones, whole.
    ///
    /// `file_name` is the file's name as messages show it, and what paths in it are relative to; files that it includes
    /// are read.
    ///
    /// # Errors
    /// What is wrong with it; then everything stays as it was, and the status says so.
    pub fn reload(&self, text: &str, file_name: &str) -> Result<Reloaded, Diagnostics> {
        self.put_in_force(&mut self.state(), text, file_name)
    }

    /// As [`reload`](Self::reload), with the text that is read while no plan can be applied: one that was read before
    /// would take back what a plan has written since.
    ///
    /// # Errors
    /// That of `read`; inside, what is wrong with the text.
    pub fn reload_read<E>(
        &self,
        file_name: &str,
        read: impl FnOnce() -> Result<String, E>,
    ) -> Result<Result<Reloaded, Diagnostics>, E> {
        let mut state = self.state();
        let text = read()?;
        Ok(self.put_in_force(&mut state, &text, file_name))
    }

    fn put_in_force(&self, state: &mut State, text: &str, file_name: &str) -> Result<Reloaded, Diagnostics> {
        let included = Included::read(text, file_name);
        let made = state.reader.parse(text, file_name, &included).and_then(|loaded| self.make(loaded));
        let result = made.map(|made| self.swap_in(state, made));
        // Not on a thread beside: where there are two processors, that would take the one that events have.
        let entry =
            Entry::new(Kind::Host, "reload", &Caller::configuration(), file_name).with("state", state_hash(text));
        self.audit.note(match &result {
            Ok(_) => entry,
            Err(wrong) => entry.refused(mistakes(wrong)),
        });
        match &result {
            Ok(reloaded) => {
                self.observer
                    .put(Observation::Reload(format!("reloaded {file_name}: {}", plural(reloaded.rules, "rule"))));
            }
            Err(diagnostics) => {
                // The person who mends the file has to be able to type.
                self.supervisor.release_grabs();
                let text = format!("{file_name} was refused; the old rules stay ({})", mistakes(diagnostics));
                self.in_force.set_refused(Some(text.clone()));
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
        self.put_features_in_force(&mut self.state())
    }

    fn put_features_in_force(&self, state: &mut State) -> Result<Reloaded, Diagnostics> {
        let before = self.in_force.load();
        let loaded = state.reader.parse(before.source.text(), before.source.file(), before.source.included())?;
        let sources = self.assembler.feature_sources(&loaded);
        let result = self.make(loaded).map(|made| self.swap_in(state, made));
        // That a configuration was refused is none the less so for other features.
        self.in_force.set_refused(before.refused.clone());
        match &result {
            Ok(reloaded) => {
                let text = format!("took over what is installed: {}", plural(reloaded.rules, "rule"));
                self.observer.put(Observation::Reload(text));
            }
            Err(diagnostics) => {
                let mistakes = mistakes(diagnostics);
                let text = format!("rules don't fit what is installed now; the old ones stay ({mistakes})");
                self.observer.put(Observation::Refused(text));
                before.registry.withdraw(&sources);
            }
        }
        result
    }

    /// Makes what was made the thing in use. Nothing can fail any more.
    fn swap_in(&self, state: &mut State, made: Made) -> Reloaded {
        let Made { loaded, registry, compiled } = made;
        let plan = self.assembler.port_plan(&loaded.config, &compiled, &registry);
        let rules = compiled.rules.rules().len();
        let generation = self.rules.swap(compiled.rules);
        let _ = self.queue.send(Input::Reloaded);
        self.workers.outputs.follow(&compiled.outputs);
        self.watch.set_profiles(compiled.profiles);
        let Loaded { config, source, .. } = loaded;
        state.record_grants(&config, &self.audit);
        let previous = self.in_force.load();
        registry.take_over(&previous.registry);
        self.in_force.replace(Generation {
            rules: self.rules.snapshot(),
            policy: previous.policy.following(&config.tools),
            models: Arc::new(previous.models.following(&config, registry.clone())),
            registry,
            source,
            config: Arc::new(config),
            refused: None,
            warnings: compiled.warnings.summaries(),
        });
        let current = self.in_force.load();
        previous.registry.give_way(&current.registry);
        self.supervisor.apply(plan);
        current.registry.begin(&self.observed);
        current.registry.changed(&Change::Config);
        self.changes.send(HostChange::Config);
        drop(previous);
        self.rules.reclaim();
        Reloaded { generation, rules, warnings: compiled.warnings }
    }

    /// What is doubtful in the configuration that it was started with.
    pub fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }

    /// Whether this is the configuration in force, and no other was refused since.
    pub fn is_in_force(&self, text: &str, included: &Included) -> bool {
        let current = self.in_force.load();
        current.refused.is_none() && current.source.text() == text && current.source.included() == included
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
        self.in_force.load().tools().list()
    }

    /// The tool of this name; `None` if there is none, or it may not be called.
    pub fn tool(&self, name: &str) -> Option<ToolView> {
        self.in_force.load().tools().get(name)
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
        // This one to the end: what is installed may change while the tool works.
        let current = self.in_force.load();
        self.gate.call(current.tools(), caller, name, request, cancelled, progress).await
    }

    /// Sends a change to every listener.
    pub fn send_change(&self, change: HostChange) {
        self.changes.send(change);
    }

    /// Changes from now on.
    pub fn changes(&self) -> ChangeListener {
        self.changes.subscribe()
    }

    /// Whether agents may work here over MCP, as the configuration says.
    pub fn allows_agents(&self) -> bool {
        let current = self.in_force.load();
        current.config.llm.enabled && current.config.mcp.enabled
    }

    /// What may be agreed to over MCP, as the configuration says.
    pub fn elicitation(&self) -> Elicitation {
        self.in_force.load().config.mcp.elicitation
    }

    /// Which tools agents are listed from the start.
    pub fn tool_list(&self) -> ToolList {
        self.in_force.load().config.mcp.tools
    }

    /// Answers a call of a tool that is the host's own. It counts as one that only looks. See [`Gate::read_itself`].
    ///
    /// # Errors
    /// What `answer` says, and [`ToolError::TooOften`].
    pub async fn own_tool<T, E: std::fmt::Display + From<ToolError>>(
        &self,
        caller: &Caller,
        name: &str,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let policy = Arc::clone(&self.in_force.load().policy);
        self.gate.read_itself(&policy, caller, (Kind::Tool, "call"), name, answer, |_, entry| entry).await
    }

    /// Has a prompt filled in for an agent. See [`Gate::answer_itself`].
    ///
    /// # Errors
    /// What `fill` says, and [`ToolError::TooOften`].
    pub async fn prompt<T, E: std::fmt::Display + From<ToolError>>(
        &self,
        caller: &Caller,
        name: &str,
        fill: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let policy = Arc::clone(&self.in_force.load().policy);
        self.gate.answer_itself(&policy, caller, (Kind::Prompt, "get"), name, fill).await
    }

    /// Has an agent read what features said, which `read` returns; `shown` adds to the row on record what of whom that
    /// is. See [`Gate::read_itself`].
    ///
    /// # Errors
    /// What `read` says, and [`ToolError::TooOften`].
    pub async fn read_resource<T, E: std::fmt::Display + From<ToolError>>(
        &self,
        caller: &Caller,
        verb: &'static str,
        name: &str,
        read: impl Future<Output = Result<T, E>>,
        shown: impl FnOnce(&T, Entry) -> Entry,
    ) -> Result<T, E> {
        let policy = Arc::clone(&self.in_force.load().policy);
        self.gate.read_itself(&policy, caller, (Kind::Resource, verb), name, read, shown).await
    }

    /// Puts on record that somebody asked for a tool in a way that can't be understood.
    pub async fn refuse_call(&self, caller: &Caller, name: &str, reason: &str) {
        let policy = Arc::clone(&self.in_force.load().policy);
        self.gate.refuse(&policy, caller, name, reason).await;
    }

    /// Records in the audit log that a client was refused at a door, and that `more` others were since the last one
    /// recorded.
    pub fn note_refused_client(&self, door: Door, asked: &str, why: &str, more: u64) {
        tracing::warn!(door = door.as_str(), asked = excerpt(asked, 128), "refused: {why}");
        let entry = Entry::new(Kind::Host, "connect", &Caller::refused(door), asked).refused(why);
        self.audit.note(if more == 0 { entry } else { entry.with("more", more) });
    }

    /// Lists a client in the status that was slowed, turned away or cut off. See [`TroubleLog::note`].
    pub fn note_misconduct(&self, who: &Caller, what: Misconduct) {
        self.troubles.note(self.clock.wall(), who, what);
    }

    /// Ends a feature's quarantine, because a person says so. Whether it was in one; `None` if no such
    /// feature runs.
    pub fn lift_quarantine(&self, caller: &Caller, feature: &str) -> Option<bool> {
        let lifted = self.in_force.load().registry.lift_quarantine(feature)?;
        if lifted {
            self.audit.note(Entry::new(Kind::Package, "lift", caller, feature));
            tracing::info!(feature, "a person ended its quarantine");
        }
        Some(lifted)
    }

    /// Starts or stops a background task of a feature, because a person says so. Returns how it is then.
    ///
    /// # Errors
    /// See [`TaskError`].
    pub fn switch_task(
        &self,
        caller: &Caller,
        feature: &str,
        task: &str,
        start: bool,
    ) -> Result<TaskReport, TaskError> {
        let report = self.in_force.load().registry.switch_task(feature, task, start)?;
        let what = if start { "start-task" } else { "stop-task" };
        self.audit.note(Entry::new(Kind::Package, what, caller, &format!("{feature}/{task}")));
        Ok(report)
    }

    /// Has a feature prepare an action, as a mapping would. It may be performed until it is dropped.
    ///
    /// # Errors
    /// What the feature says, or that there is no such action.
    pub fn prepare_action(&self, name: &str, params: &str) -> Result<Arc<PreparedAction>, CallError> {
        let found = self.in_force.load().registry.find(name);
        let refused = match found {
            Lookup::Found { queue, action } => return queue.prepare(&action, params),
            Lookup::LeftOut { feature, reason } => format!("{feature} leaves out the {reason}"),
            Lookup::Refused { feature, reason } => format!("{feature} is not installed: {reason}"),
            Lookup::Unknown => format!("no feature has the action {name:?}"),
        };
        Err(CallError::Refused(ServiceError::Invalid(refused)))
    }

    /// Waits until what features have said so far was passed on, until `deadline` at most. True when it was.
    pub fn flush(&self, deadline: Instant) -> bool {
        let said = self.services.sinks.taken();
        while self.observed.messages_passed() < said {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// The skills that features contribute.
    pub fn skills(&self) -> Vec<Contributed> {
        self.in_force.load().registry.skills()
    }

    /// The models that can be asked, as they are in force now.
    pub fn models(&self) -> Arc<Models> {
        Arc::clone(&self.in_force.load().models)
    }

    /// The configuration in force, as its author wrote it.
    pub fn config(&self) -> String {
        self.in_force.load().source.text().to_owned()
    }

    /// The same as others than the home's owner see it, without private values. See [`conductor_stdx::hidden`].
    pub fn hidden_config(&self) -> String {
        self.in_force.load().source.hidden().to_owned()
    }

    /// Everything that happens from now on.
    pub fn subscribe(&self) -> Receiver<Observation> {
        self.observed.subscribe()
    }

    /// The rules in use and their generation, for explaining what fired.
    pub fn with_rules<T>(&self, look: impl FnOnce(&RuleSet<Action>, u64) -> T) -> T {
        let rules = &self.in_force.load().rules;
        look(rules, rules.generation())
    }

    /// What a rule of this generation is called, also after another one came into force; its number if that is not known
    /// any more.
    pub fn rule_name(&self, rule: RuleId, generation: u64) -> String {
        self.in_force.rule_name(rule, generation)
    }

    /// Tells everybody who watches of what happened.
    pub fn observe(&self, observation: Observation) {
        self.observer.put(observation);
    }

    /// What has been observed so far.
    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// The way into the engine, for ports that are not the supervisor's.
    pub fn queue(&self) -> doorbell::Sender<Input> {
        self.queue.clone()
    }

    /// The clock that events are stamped with.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Ends the compilation of packages, so that a reload which is under way ends soon. To be called before
    /// [`stop`](Self::stop), if others still hold this host.
    pub fn cancel_compilation(&self) {
        self.compiler.cancel();
    }

    /// Stops: closes the inputs, lets the workers finish, switches off what is on. Dropping the host does the same.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let last = self.in_force.load();
        let nothing = (Registry::default(), Arc::<Models>::default());
        self.in_force.replace(Generation { registry: nothing.0, models: nothing.1, ..(*last).clone() });
        // First the inputs, so that nothing new comes; the outputs close last, when the workers
        // have ended the notes that they began.
        self.supervisor.close_inputs();
        let _ = self.queue.send(Input::Stop);
        if let Some(thread) = self.engine_thread.take() {
            let _ = thread.join();
        }
        if !self.workers.stop(Instant::now() + STOP_TIMEOUT) {
            tracing::warn!("something that does actions did not end within {} s", STOP_TIMEOUT.as_secs());
        }
        if !last.registry.stop(Instant::now() + STOP_TIMEOUT) {
            tracing::warn!("a feature did not finish within {} s", STOP_TIMEOUT.as_secs());
        }
        self.audit.note(Entry::new(Kind::Host, "stop", &Caller::host(), ""));
        self.audit.flush(STOP_TIMEOUT);
    }
}
