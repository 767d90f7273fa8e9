//! The registry: the features in force, and which of them registered what.
//!
//! A registry does not change. [`Registry::with`] makes the next one: what is the same in both is
//! shared, so a reload that is refused in the end leaves everything as it was.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

mod failure;
mod installed;
mod report;

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

pub use self::failure::{InstallFailure, TaskError};
use self::installed::{Actions, Installed};
use self::report::report;
pub use self::report::{FeatureReport, PackageReport, ToolReport};
use conductor_dispatch::feature_queue::FeatureQueue;
use conductor_observer::{Observed, Observer};
use conductor_package::admission::{Admission, ConfiguredGrants, Provenance};
use conductor_package::capability::{CapabilityKind, CapabilityRequest};
use conductor_package::descriptor::{Descriptor, HookDeclaration, HookPoint};
use conductor_package::file::{Package, PackageError, PackageInfo};
use conductor_package::{Contributions, FeatureId, Grants};
use conductor_sandbox::actor::Actor;
use conductor_sandbox::bindings::imports::host_state;
use conductor_sandbox::control::Change;
use conductor_sandbox::registrations::{Band, RegisteredSkill};
use conductor_sandbox::runnable::record_trap;
use conductor_sandbox::task::StillEnding;
pub use conductor_sandbox::task::TaskReport;
use conductor_sandbox::{Compiled, InstallError, PreparedFeature, RegisteredTool, Sandbox};
use conductor_skills::library::Contributed;

/// A feature that should be installed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeatureSource {
    /// What configuration calls it. A name gives no rights.
    pub name: String,
    /// The package.
    pub path: PathBuf,
    /// What messages call the package; `None` for its path.
    pub label: Option<String>,
    /// Whether it came with the host.
    pub bundled: bool,
    /// What it was granted, whatever the package at `path` is: by the policy for bundled features, or for the
    /// bytes that `digest` names.
    pub grants: Grants,
    /// The contributions that a person refused, whatever the package at `path` is.
    pub refused: Contributions,
    /// What the configuration grants besides, if the package is the one that is meant there.
    pub configured: Option<ConfiguredGrants>,
    /// The digest that the package must have (SHA-256, lower-case hex); `None` if any will do.
    pub digest: Option<String>,
    /// How it came to be loaded.
    pub provenance: Provenance,
    /// Whose data it works with; see [`Admission::owner`].
    pub owner: Option<String>,
    /// Whether a feature that comes with the host has this name, and is not loaded because of this one.
    pub displaces_bundled: bool,
}

impl FeatureSource {
    /// Everything that a package of this id and digest gets, if it is loaded from here.
    fn grants_for(&self, id: &FeatureId, digest: &str) -> Grants {
        let configured = self.configured.as_ref().filter(|configured| configured.meant_for(id, digest).is_ok());
        configured.map_or_else(|| self.grants.clone(), |configured| self.grants.clone().union(&configured.grants))
    }

    /// The terms on which a package is loaded from here.
    fn admission(&self, package: &PackageInfo) -> Admission {
        Admission {
            grants: self.grants_for(&package.descriptor.id, &package.digest),
            refused: self.refused.clone(),
            provenance: self.provenance,
            owner: self.owner.clone(),
        }
    }

    fn shown(&self) -> String {
        self.label.clone().unwrap_or_else(|| self.path.display().to_string())
    }
}

#[derive(Debug, Clone)]
enum Entry {
    Installed(Arc<Installed>),
    /// With what it says it is, if it could be read.
    Refused {
        source: Box<FeatureSource>,
        identity: Option<Identity>,
        reason: String,
    },
}

/// What tells a package from all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// What it calls itself.
    pub id: FeatureId,
    /// SHA-256 of its bytes, lower-case hex.
    pub digest: String,
}

impl Entry {
    fn source(&self) -> &FeatureSource {
        match self {
            Self::Installed(installed) => &installed.source,
            Self::Refused { source, .. } => source,
        }
    }
}

/// What is at the place of a feature.
enum Found {
    /// The package of the feature that runs.
    Same(Arc<Installed>),
    /// Another one, or none.
    New(Result<Box<NewPackage>, PackageError>),
}

/// A package that was read, with its code if it was compiled ahead.
struct NewPackage {
    package: Package,
    compiled: Option<Compiled>,
}

/// The features of one configuration.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    entries: BTreeMap<String, Entry>,
    /// Features that a configuration has and this registry does not, so that nothing is known of their actions.
    absent: Vec<String>,
}

/// What a mapping's action name leads to.
#[derive(Debug)]
pub enum Lookup {
    /// This action of this feature.
    Found {
        /// The feature.
        queue: FeatureQueue,
        /// The action's own name.
        action: String,
    },
    /// A feature of this name has it, and it is left out for this reason.
    LeftOut {
        /// The feature.
        feature: String,
        /// Why.
        reason: String,
    },
    /// A feature of this name was refused, for this reason.
    Refused {
        /// The feature.
        feature: String,
        /// Why.
        reason: String,
    },
    /// No feature has it.
    Unknown,
}

/// A tool, and the way to it.
#[derive(Debug, Clone, Copy)]
pub struct Tool<'r> {
    /// What its feature registered.
    pub registered: &'r RegisteredTool,
    /// The feature's id.
    pub feature: &'r str,
    /// The feature.
    pub actor: &'r Actor,
}

/// A provider, and the way to it.
#[derive(Debug, Clone)]
pub struct Provider {
    /// The feature that has it.
    pub feature: PreparedFeature,
    /// The purpose of the grant that its requests are sent by.
    pub network: String,
}

impl Registry {
    /// The registry with just these features: the ones that are the same as here are kept running,
    /// the others are installed. Those that come with the host go first, so that none from elsewhere takes a
    /// contribution of theirs.
    pub fn with(&self, mut sources: Vec<FeatureSource>, sandbox: &Sandbox, observer: &Observer) -> Self {
        let mut next = Self::default();
        sources.sort_by_key(|source| !source.bundled);
        self.find_each(&sources, sandbox, |source, found| {
            let entry = next.entry(source, found, self.running(source), sandbox, observer);
            next.entries.insert(source.name.clone(), entry);
        });
        next
    }

    /// Hands over what is at each of these places, in their order. Several threads read and compile ahead of `take`, each
    /// of them up to two packages.
    fn find_each(&self, sources: &[FeatureSource], sandbox: &Sandbox, mut take: impl FnMut(&FeatureSource, Found)) {
        let threads = sandbox.parallel_compiles().min(sources.len());
        if threads < 2 {
            return sources.iter().for_each(|source| take(source, self.find_package(source, None)));
        }
        std::thread::scope(|scope| {
            let start = |first| {
                let (sender, found) = mpsc::sync_channel(1);
                let work = move || {
                    let mut own = sources.iter().skip(first).step_by(threads);
                    // It ends early if `take` panicked.
                    own.all(|source| sender.send(self.find_package(source, Some(sandbox))).is_ok());
                };
                // Without this thread it takes longer.
                std::thread::Builder::new().name("compile".into()).spawn_scoped(scope, work).ok().map(|_| found)
            };
            let working: Vec<_> = (0..threads).map(start).collect();
            for (source, found) in sources.iter().zip(working.iter().cycle()) {
                let found = found.as_ref().and_then(|found| found.recv().ok());
                take(source, found.unwrap_or_else(|| self.find_package(source, None)));
            }
        });
    }

    /// What this registry is to have for a place: the feature that is found there, installed; else the one that runs, if
    /// there is one; else the reason.
    fn entry(
        &self,
        source: &FeatureSource,
        found: Found,
        running: Option<Arc<Installed>>,
        sandbox: &Sandbox,
        observer: &Observer,
    ) -> Entry {
        let identity = match &found {
            Found::Same(installed) => Some(installed.identity()),
            Found::New(new) => new.as_ref().ok().map(|new| Identity {
                id: new.package.info.descriptor.id.clone(),
                digest: new.package.info.digest.clone(),
            }),
        };
        let installed = match found {
            Found::Same(installed) => self.check_taken(source, installed.descriptor()).map(|()| installed),
            Found::New(new) => {
                new.map_err(InstallFailure::from).and_then(|new| self.install(source, *new, sandbox, observer))
            }
        };
        let running = running.filter(|it| self.check_taken(source, it.descriptor()).is_ok());
        match (installed, running) {
            (Ok(installed), _) => Entry::Installed(installed),
            // Its file is spoilt, or the new one can't run: what runs is better than nothing.
            (Err(reason), Some(running)) => {
                let name = &source.name;
                tracing::warn!("feature {name}: the one that runs stays, for the new one is not installed: {reason}");
                Entry::Installed(running)
            }
            (Err(reason), None) => {
                Entry::Refused { source: Box::new(source.clone()), identity, reason: reason.to_string() }
            }
        }
    }

    /// Reads the package at a place, unless the feature that runs is of just that one. With `ahead`, has a new one
    /// compiled.
    fn find_package(&self, source: &FeatureSource, ahead: Option<&Sandbox>) -> Found {
        let running = self.running(source);
        if let Some(running) = running.as_ref().filter(|running| running.is_of_file_at(&source.path)) {
            return Found::Same(Arc::clone(running));
        }
        let is_compiled = |digest: &str| ahead.is_some_and(|sandbox| sandbox.is_compiled(digest));
        let package = match Package::read_compiled(&source.path, is_compiled) {
            Ok(package) => package,
            Err(error) => return Found::New(Err(error)),
        };
        let digest = &package.info.digest;
        if let Some(running) = running.filter(|running| running.facts.digest == *digest) {
            return Found::Same(running);
        }
        // One that was altered is refused without asking the compiler.
        let ahead = ahead.filter(|_| source.digest.as_ref().is_none_or(|wanted| wanted == digest));
        let compiled = ahead.and_then(|sandbox| sandbox.compile_ahead(&package, source.admission(&package.info)));
        Found::New(Ok(Box::new(NewPackage { package, compiled })))
    }

    fn install(
        &self,
        source: &FeatureSource,
        NewPackage { package, compiled }: NewPackage,
        sandbox: &Sandbox,
        observer: &Observer,
    ) -> Result<Arc<Installed>, InstallFailure> {
        let named = || source.shown();
        if let Some(wanted) = source.digest.as_ref().filter(|wanted| **wanted != package.info.digest) {
            return Err(InstallFailure::Altered {
                package: named(),
                wanted: wanted.clone(),
                found: package.info.digest.clone(),
            });
        }
        let descriptor = &package.info.descriptor;
        if descriptor.id.is_builtin() != source.bundled {
            return Err(InstallFailure::FalseSource { package: named(), id: descriptor.id.to_string() });
        }
        if descriptor.id.name() != source.name {
            return Err(InstallFailure::OtherName { package: named(), id: descriptor.id.name().to_owned() });
        }
        let admission = source.admission(&package.info);
        // What is left out takes no name.
        self.check_taken(source, &descriptor.granted(&admission.grants, &admission.refused).0)?;
        let prepared = match compiled {
            Some(compiled) => sandbox.prepare_compiled(&package, compiled),
            None => sandbox.prepare(&package, admission),
        };
        let prepared = prepared.map_err(|source| InstallFailure::Prepare { package: named(), source })?;
        let failed = |source: InstallError| {
            if source.is_trap() {
                record_trap(prepared.facts());
            }
            InstallFailure::Install { package: named(), source }
        };
        let migrated = prepared.migrate().map_err(|source| {
            if source.is_trap() {
                record_trap(prepared.facts());
            }
            InstallFailure::Migrate { package: named(), source }
        })?;
        let actor = prepared.has_control().then(|| Actor::start(prepared.clone()).map_err(failed)).transpose()?;
        let both = !descriptor.tools.is_empty() && !descriptor.hooks.is_empty();
        let hooks = actor.as_ref().filter(|_| both).map(Actor::for_hooks);
        let actions = if !descriptor.actions.is_empty() {
            let (queue, registered) = FeatureQueue::new(prepared.clone(), observer.clone()).map_err(failed)?;
            Some(Actions { registered, queue })
        } else {
            None
        };
        if descriptor.hooks_at(HookPoint::Events) && actions.is_none() {
            // Nothing else has tried whether it installs in that lane.
            prepared.instantiate().map_err(failed)?;
        }
        prepared.unload();
        Ok(Arc::new(Installed {
            source: source.clone(),
            file: package.file.clone(),
            size: package.info.size,
            facts: Arc::clone(prepared.facts()),
            prepared,
            actions,
            actor,
            hooks,
            background: Mutex::new(None),
            migrated: Mutex::new(migrated),
        }))
    }

    /// Rejects a feature one of whose contributions another one of this registry has.
    fn check_taken(&self, source: &FeatureSource, descriptor: &Descriptor) -> Result<(), InstallFailure> {
        for (kind, name) in Installed::contributes(descriptor) {
            let has = |owner: &&Arc<Installed>| Installed::contributes(owner.descriptor()).any(|it| it == (kind, name));
            if let Some(owner) = self.installed().find(has) {
                let (what, owner) = (format!("{kind} {name}"), owner.descriptor().id.to_string());
                return Err(InstallFailure::Taken { package: source.shown(), what, owner });
            }
        }
        Ok(())
    }

    /// Logs which features are not installed, with the reason.
    pub fn log_refused(&self) {
        for (name, reason) in self.refused() {
            tracing::warn!("feature {name} is not installed: {reason}");
        }
    }

    /// What the package of this name says it is, whether it is installed or was refused; `None` if there is none
    /// that can be read.
    pub fn identity(&self, name: &str) -> Option<Identity> {
        match self.entries.get(name)? {
            Entry::Installed(installed) => Some(installed.identity()),
            Entry::Refused { identity, .. } => identity.clone(),
        }
    }

    /// The names of all features, installed or refused.
    pub fn names(&self) -> Vec<String> {
        self.entries.keys().cloned().collect()
    }

    /// Whether the feature of this name is there in the place of one that comes with the host.
    pub fn displaces(&self, name: &str) -> bool {
        self.entries.get(name).is_some_and(|entry| entry.source().displaces_bundled)
    }

    /// Whether there is a feature of this name, installed or refused.
    pub fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// What a configuration that is only looked at has of this registry: without the features in `left_out`, and
    /// without those in `absent`, whose packages are not in force. Nothing is read, compiled or installed.
    #[must_use]
    pub fn seen_by(&self, left_out: &BTreeSet<String>, absent: &BTreeSet<String>) -> Self {
        let stays = |name: &String| !left_out.contains(name) && !absent.contains(name);
        let entries = self.entries.iter().filter(|(name, _)| stays(name));
        Self {
            entries: entries.map(|(name, entry)| (name.clone(), entry.clone())).collect(),
            absent: absent.iter().cloned().collect(),
        }
    }

    /// Starts what features do by themselves. To be called when this registry is in force.
    pub fn begin(&self, observed: &Observed) {
        self.installed().for_each(|installed| installed.begin(observed));
    }

    /// Every tool, in the order of features.
    pub fn tools(&self) -> impl Iterator<Item = Tool<'_>> {
        self.actors().flat_map(|(installed, actor)| {
            let feature = installed.descriptor().id.as_str();
            actor.registered().tools.iter().map(move |registered| Tool { registered, feature, actor })
        })
    }

    /// The provider of this name.
    pub fn provider(&self, name: &str) -> Option<Provider> {
        self.installed().filter(|installed| !installed.facts.is_revoked()).find_map(|installed| {
            let declared = installed.descriptor().providers.iter().find(|provider| provider.name == name)?;
            Some(Provider { feature: installed.prepared.clone(), network: declared.network.clone() })
        })
    }

    /// What the feature of this name asks for; `None` if none is installed.
    pub fn requests(&self, name: &str) -> Option<&[CapabilityRequest]> {
        match self.entries.get(name)? {
            Entry::Installed(installed) => Some(&installed.descriptor().capabilities),
            Entry::Refused { .. } => None,
        }
    }

    /// The id of the feature that has the provider of this name, and the secrets that it asks for; `None` if there is none.
    pub fn provider_secrets(&self, provider: &str) -> Option<(&str, Vec<&str>)> {
        let has = |descriptor: &&Descriptor| descriptor.providers.iter().any(|declared| declared.name == provider);
        let descriptor = self.installed().map(|installed| installed.descriptor()).find(has)?;
        let secrets = descriptor.capabilities.iter().filter(|request| request.kind() == CapabilityKind::Secret);
        Some((descriptor.id.as_str(), secrets.filter_map(|request| request.capability.purpose()).collect()))
    }

    /// The names of all providers.
    pub fn provider_names(&self) -> Vec<String> {
        let providers = self.installed().flat_map(|installed| &installed.descriptor().providers);
        providers.map(|provider| provider.name.clone()).collect()
    }

    /// The features that hook at `point`: by band, then in the order of features.
    pub fn hooks(&self, point: HookPoint) -> Vec<(String, Actor)> {
        self.hooks_of(point, |_| true)
    }

    /// The same of those that see calls of this tool.
    pub fn tool_hooks(&self, point: HookPoint, tool: &str) -> Vec<(String, Actor)> {
        self.hooks_of(point, |hook| hook.sees(tool))
    }

    fn hooks_of(&self, point: HookPoint, is_asked: impl Fn(&HookDeclaration) -> bool) -> Vec<(String, Actor)> {
        let mut hooks: Vec<(Band, String, Actor)> = self
            .actors()
            .filter_map(|(installed, actor)| {
                let (_, band) = actor.registered().hooks.iter().find(|(at, _)| *at == point)?;
                let declared = installed.descriptor().hooks.iter().find(|hook| hook.point == point)?;
                if !is_asked(declared) {
                    return None;
                }
                let asked = installed.hooks.as_ref().unwrap_or(actor);
                Some((*band, installed.descriptor().id.to_string(), asked.clone()))
            })
            .collect();
        hooks.sort_by_key(|(band, _, _)| *band);
        hooks.into_iter().map(|(_, feature, actor)| (feature, actor)).collect()
    }

    /// Tells the features that hook there of a change, without waiting.
    pub fn changed(&self, change: &Change) {
        for (_, actor) in self.hooks(change.point()) {
            actor.changed(change.clone());
        }
    }

    /// The skills that features contribute, in the order of features.
    pub fn skills(&self) -> Vec<Contributed> {
        let of = |(installed, actor): (&Arc<Installed>, &Actor)| {
            let descriptor = installed.descriptor();
            let skill = |registered: &RegisteredSkill| Contributed {
                name: registered.name.clone(),
                feature: descriptor.id.to_string(),
                summary: descriptor
                    .skills
                    .iter()
                    .find(|declared| declared.name == registered.name)
                    .map_or_else(String::new, |declared| declared.summary.clone()),
                text: registered.text.clone(),
            };
            actor.registered().skills.iter().map(skill).collect::<Vec<_>>()
        };
        self.actors().flat_map(of).collect()
    }

    /// Outputs that features may send to, by alias.
    pub fn midi_targets(&self) -> impl Iterator<Item = &String> {
        self.installed().flat_map(|installed| &installed.facts.grants.midi_out).filter(|alias| *alias != "*")
    }

    fn actors(&self) -> impl Iterator<Item = (&Arc<Installed>, &Actor)> {
        self.installed().filter_map(|installed| Some((installed, installed.actor.as_ref()?)))
    }

    /// The feature of this name that runs, where it may go on: from the same place, with the same grants.
    fn running(&self, source: &FeatureSource) -> Option<Arc<Installed>> {
        match self.entries.get(&source.name)? {
            Entry::Installed(installed) if installed.source == *source && !installed.facts.is_revoked() => {
                Some(Arc::clone(installed))
            }
            _ => None,
        }
    }

    fn installed(&self) -> impl Iterator<Item = &Arc<Installed>> {
        self.entries.values().filter_map(|entry| match entry {
            Entry::Installed(installed) => Some(installed),
            Entry::Refused { .. } => None,
        })
    }

    fn owner(&self, action: &str) -> Option<(&Arc<Installed>, &Actions)> {
        self.installed()
            .filter_map(|installed| Some((installed, installed.actions.as_ref()?)))
            .find(|(_, actions)| actions.registered.iter().any(|registered| registered.name == action))
    }

    /// Finds `Action`, or `feature:Action`.
    pub fn find(&self, type_name: &str) -> Lookup {
        let (feature, action) = match type_name.split_once(':') {
            Some((feature, action)) => (Some(feature), action),
            None => (None, type_name),
        };
        let owner = self.owner(action).filter(|(owner, _)| feature.is_none_or(|feature| feature == owner.source.name));
        if let Some((_, actions)) = owner {
            return Lookup::Found { queue: actions.queue.clone(), action: action.to_owned() };
        }
        let in_feature = |installed: &&Arc<Installed>| feature.is_none_or(|feature| feature == installed.source.name);
        let left_out = self.installed().filter(in_feature).find_map(|installed| {
            let skipped = installed.facts.skipped.iter().find(|skipped| skipped.is("action", action))?;
            Some(Lookup::LeftOut { feature: installed.source.name.clone(), reason: skipped.to_string() })
        });
        if let Some(left_out) = left_out {
            return left_out;
        }
        match feature.and_then(|feature| self.entries.get(feature)) {
            Some(Entry::Refused { source, reason, .. }) => {
                Lookup::Refused { feature: source.name.clone(), reason: reason.clone() }
            }
            _ => match self.absent.iter().find(|name| feature.is_none_or(|feature| feature == name.as_str())) {
                Some(absent) => Lookup::Refused {
                    feature: absent.clone(),
                    reason: "its package is not in force, and is not read to look at a configuration".to_owned(),
                },
                None => Lookup::Unknown,
            },
        }
    }

    /// The JSON Schema of an action's parameters. `None` if no feature has the action, or its schema is no JSON.
    pub fn action_schema(&self, action: &str) -> Option<serde_json::Value> {
        let (_, actions) = self.owner(action)?;
        let registered = actions.registered.iter().find(|registered| registered.name == action)?;
        serde_json::from_str(&registered.schema).ok()
    }

    /// Every action that mappings can name, with its schema. One whose schema is no JSON has none: `true`.
    pub fn actions(&self) -> impl Iterator<Item = host_state::Action> + '_ {
        let declared = |installed: &Arc<Installed>| installed.descriptor().actions.clone();
        self.installed().flat_map(move |installed| {
            let feature = installed.source.name.clone();
            declared(installed).into_iter().map(move |action| host_state::Action {
                schema: self.action_schema(&action.name).unwrap_or(serde_json::Value::Bool(true)).to_string(),
                name: action.name,
                feature: Some(feature.clone()),
                summary: action.summary,
            })
        })
    }

    /// Every action that mappings can name.
    pub fn action_names(&self) -> Vec<String> {
        let actions = self.installed().flat_map(|installed| &installed.descriptor().actions);
        actions.map(|action| action.name.clone()).collect()
    }

    /// Features that are not installed, with the reason.
    pub fn refused(&self) -> Vec<(String, String)> {
        let refused = |entry: &Entry| match entry {
            Entry::Refused { source, reason, .. } => Some((source.name.clone(), reason.clone())),
            Entry::Installed(_) => None,
        };
        self.entries.values().filter_map(refused).collect()
    }

    /// Why a feature is not doing well: it was refused, or it trapped at least `traps` times within the
    /// last minute.
    pub fn trouble(&self, name: &str, traps: usize) -> Option<String> {
        match self.entries.get(name)? {
            Entry::Refused { reason, .. } => Some(reason.clone()),
            Entry::Installed(installed) => {
                let recent = installed.facts.quarantine.recent(Instant::now());
                (recent >= traps).then(|| format!("it trapped {recent} times within a minute"))
            }
        }
    }

    /// Ends a feature's quarantine. Whether it was in one; `None` if no such feature runs.
    pub fn lift_quarantine(&self, name: &str) -> Option<bool> {
        let installed = self.installed().find(|installed| installed.source.name == name)?;
        let quarantine = &installed.facts.quarantine;
        let lifted = quarantine.left(Instant::now()).is_some();
        quarantine.lift();
        Some(lifted)
    }

    /// Starts or stops a background task of a feature that runs, and returns how it is then.
    ///
    /// # Errors
    /// See [`TaskError`].
    pub fn switch_task(&self, feature: &str, task: &str, start: bool) -> Result<TaskReport, TaskError> {
        let running = self.installed().find(|installed| installed.source.name == feature);
        let installed =
            running.filter(|it| !it.facts.is_revoked()).ok_or_else(|| TaskError::NoFeature(feature.to_owned()))?;
        let background = installed.background();
        let tasks = background.as_ref().map(|background| background.tasks.as_slice()).unwrap_or_default();
        let Some(found) = tasks.iter().find(|it| it.name() == task) else {
            let tasks = tasks.iter().map(|task| task.name().to_owned()).collect();
            return Err(TaskError::NoTask { feature: feature.to_owned(), task: task.to_owned(), tasks });
        };
        if start {
            found.run().map_err(|StillEnding| TaskError::StillEnding { task: task.to_owned() })?;
        } else {
            found.stop();
        }
        Ok(found.report())
    }

    /// What there is to say about every feature.
    pub fn reports(&self) -> Vec<FeatureReport> {
        self.entries.values().map(report).collect()
    }

    /// Ends the features from the package store that `sources` does not have any more, or has with
    /// less granted or more refused. What they contribute fails from now on.
    pub fn withdraw(&self, sources: &[FeatureSource]) {
        let from_store = self.installed().filter(|installed| installed.source.digest.is_some());
        for installed in from_store.filter(|installed| installed.lost_something(sources.iter())) {
            tracing::warn!(
                "feature {} is ended: it was disabled, removed, lost a grant or a contribution",
                installed.source.name
            );
            installed.end();
        }
    }

    /// Has features take over the state of those `before` that they replace. To be called before this registry is in
    /// force.
    pub fn take_over(&self, before: &Self) {
        for (name, entry) in &self.entries {
            if let (Entry::Installed(new), Some(Entry::Installed(old))) = (entry, before.entries.get(name))
                && !Arc::ptr_eq(new, old)
            {
                new.take_over(old);
            }
        }
    }

    /// Ends the features that `next`, which took this one's place, has not any more, or has with less
    /// granted or more refused: calls that are under way would else go on with what was taken back. An upgrade with the
    /// same grants lets them finish.
    pub fn give_way(&self, next: &Self) {
        let sources = || next.entries.values().map(Entry::source);
        self.installed().filter(|installed| installed.lost_something(sources())).for_each(|it| it.end());
    }

    /// Has tasks end, and every worker do what is in its queue and end; waits until `deadline` at
    /// most. True when all have ended.
    pub fn stop(&self, deadline: Instant) -> bool {
        let actions = || self.installed().filter_map(|installed| installed.actions.as_ref());
        let tasks: Vec<_> = self.installed().flat_map(|installed| installed.stop_tasks()).collect();
        actions().for_each(|actions| actions.queue.finish());
        loop {
            let tasks_ended = tasks.iter().all(CancellationToken::is_cancelled);
            if tasks_ended && actions().all(|actions| actions.queue.has_ended()) {
                return true;
            }
            if Instant::now() >= deadline {
                actions().for_each(|actions| actions.queue.abandon());
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The packages that come with the host: every `.wasm` file in `folder`, in the order of names.
pub fn bundled(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut packages: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "wasm"))
        .collect();
    packages.sort();
    packages
}

#[cfg(test)]
mod tests {
    use conductor_observer::sink_message::SinkQueue;
    use conductor_sandbox::Compiler;
    use conductor_sandbox::datagrams::SystemDatagrams;
    use conductor_sandbox::services::Services;
    use conductor_stdx::digest::sha256;

    use super::*;

    /// A component without anything in it, and the custom section that says what feature it is.
    fn package(id: &str) -> Vec<u8> {
        let descriptor = format!("id = '{id}'\nname = 'Lamp'\nversion = '1'\ncontract = '0.1'\n");
        let name = b"conductor:feature";
        let length = 1 + name.len() + descriptor.len();
        assert!(length < 128, "a length of one byte in LEB128");
        let section = [&[0, length as u8, name.len() as u8][..], name, descriptor.as_bytes()].concat();
        [&b"\0asm\x0d\0\x01\0"[..], &section].concat()
    }

    /// The registry with one feature, which is at `path`; nothing can be compiled.
    fn with(source: FeatureSource) -> Registry {
        let (sinks, said) = SinkQueue::new();
        let services = Arc::new(Services::new(sinks, Box::new(SystemDatagrams)));
        let sandbox = Sandbox::new(None, services, Compiler::program("/nonexistent/conductor")).unwrap();
        let (observer, _, _) = conductor_observer::start(said, None).unwrap();
        Registry::default().with(vec![source], &sandbox, &observer)
    }

    fn refused(name: &str, reason: &str) -> Entry {
        let source = FeatureSource { name: name.to_owned(), ..FeatureSource::default() };
        Entry::Refused { source: Box::new(source), identity: None, reason: reason.to_owned() }
    }

    #[test]
    fn what_a_package_calls_itself_has_to_fit_where_it_comes_from() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("lamp.wasm");
        let reason = |id: &str, source: FeatureSource| {
            std::fs::write(&path, package(id)).unwrap();
            let registry = with(FeatureSource { path: path.clone(), label: Some("it".to_owned()), ..source });
            let identity = registry.identity("lamp").unwrap();
            assert_eq!((identity.id.as_str(), identity.digest), (id, sha256(&package(id))));
            registry.refused().into_iter().map(|(name, reason)| format!("{name} {reason}")).collect::<String>()
        };
        let lamp = FeatureSource { name: "lamp".to_owned(), ..FeatureSource::default() };
        let false_source = "calls itself builtin:lamp; only features that come with the host are `builtin:`";
        assert_eq!(reason("builtin:lamp", lamp.clone()), format!("lamp it: {false_source}"));
        let bundled = FeatureSource { bundled: true, ..lamp.clone() };
        assert!(reason("project:lamp", bundled.clone()).contains("calls itself project:lamp"));
        assert!(reason("project:torch", lamp.clone()).ends_with("write it as [features.torch]"));
        let altered = FeatureSource { digest: Some("00".repeat(32)), ..lamp.clone() };
        assert!(reason("project:lamp", altered).contains("was altered"));
        // What fits gets as far as the compiler, which is not there.
        let source = FeatureSource { digest: Some(sha256(&package("project:lamp"))), ..lamp };
        for why in [reason("project:lamp", source), reason("builtin:lamp", bundled)] {
            assert!(!["altered", "calls itself", "write it as"].iter().any(|no| why.contains(no)), "{why}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_and_nothing_is_known_of_it() {
        let home = tempfile::tempdir().unwrap();
        let source = |path| FeatureSource { name: "lamp".to_owned(), path, ..FeatureSource::default() };
        let registry = with(source(home.path().join("nothing.wasm")));
        assert_eq!((registry.names(), registry.identity("lamp")), (vec!["lamp".to_owned()], None));
        assert!(registry.has("lamp") && registry.requests("lamp").is_none() && registry.trouble("lamp", 1).is_some());
        assert!(registry.tools().next().is_none() && registry.action_names().is_empty());
        assert_eq!(registry.lift_quarantine("lamp"), None, "it does not run");
        assert!(matches!(registry.switch_task("lamp", "any", true), Err(TaskError::NoFeature(name)) if name == "lamp"));
    }

    #[test]
    fn an_action_of_a_feature_that_is_not_in_force_says_why() {
        let entries = [("lamp", "it trapped"), ("torch", "it is gone")];
        let registry = Registry {
            entries: entries.into_iter().map(|(name, reason)| (name.to_owned(), refused(name, reason))).collect(),
            absent: Vec::new(),
        };
        let why = |registry: &Registry, action: &str| match registry.find(action) {
            Lookup::Refused { feature, reason } => Some((feature, reason)),
            Lookup::Unknown => None,
            other => panic!("{other:?}"),
        };
        let of = |feature: &str, reason: &str| Some((feature.to_owned(), reason.to_owned()));
        assert_eq!(why(&registry, "lamp:Light"), of("lamp", "it trapped"));
        assert_eq!((why(&registry, "Light"), why(&registry, "other:Light")), (None, None));

        // A configuration that is only looked at, without one feature and with one that is not in force.
        let set = |name: &str| BTreeSet::from([name.to_owned()]);
        let looked = registry.seen_by(&set("torch"), &set("fan"));
        assert_eq!(looked.names(), ["lamp"]);
        assert_eq!(why(&looked, "torch:Light"), None);
        for action in ["fan:Turn", "Turn"] {
            let (feature, reason) = why(&looked, action).unwrap();
            assert!(feature == "fan" && reason.contains("not in force"), "{action}: {feature} {reason}");
        }
    }

    #[test]
    fn a_source_grants_what_the_configuration_grants_to_these_very_bytes() {
        let id = FeatureId::try_from("project:lamp".to_owned()).unwrap();
        let configured = ConfiguredGrants {
            id: id.clone(),
            digest: Some("ab".repeat(32)),
            grants: Grants { alert: true, ..Grants::default() },
        };
        let policy = Grants { timers: true, ..Grants::default() };
        let source = FeatureSource { grants: policy.clone(), configured: Some(configured), ..FeatureSource::default() };
        let both = Grants { alert: true, timers: true, ..Grants::default() };
        assert_eq!(source.grants_for(&id, &"ab".repeat(32)), both);
        assert_eq!(source.grants_for(&id, &"cd".repeat(32)), policy);
        let other = FeatureId::try_from("project:torch".to_owned()).unwrap();
        assert_eq!(source.grants_for(&other, &"ab".repeat(32)), policy);
    }

    #[test]
    fn bundled_packages_are_found_by_their_ending_in_the_order_of_names() {
        let home = tempfile::tempdir().unwrap();
        for name in ["b.wasm", "a.wasm", "a.wasm.sig", "wasm", "readme.md"] {
            std::fs::write(home.path().join(name), "").unwrap();
        }
        assert_eq!(bundled(home.path()), ["a.wasm", "b.wasm"].map(|name| home.path().join(name)));
        assert_eq!(bundled(&home.path().join("none")), Vec::<PathBuf>::new());
    }
}
