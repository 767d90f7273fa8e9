//! From a configuration to what a host runs with: installed features, compiled rules, a plan for the
//! ports. Everything is made beside what is in use, so that a refusal changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{StartError, grant_warnings};
use conductor_config::{self as config, Config, Diagnostic, Diagnostics, Loaded};
use conductor_dispatch::workers::Workers;
use conductor_effects::{RecordedActions, Recorder};
use conductor_install::source::Origin;
use conductor_install::store::{Installed, InstalledFeature, PackageStore};
use conductor_observer::sink_message::SinkQueue;
use conductor_observer::{self as observer, Observer};
use conductor_package::admission::{ConfiguredGrants, Provenance};
use conductor_package::capability::CapabilityRequest;
use conductor_package::id::DataKey;
use conductor_package::{FeatureId, Grants};
use conductor_policy as policy;
use conductor_ports::supervisor::PortPlan;
use conductor_registry::{self as registry, FeatureReport, FeatureSource, Registry};
use conductor_rules::{self as rules, Compiled};
use conductor_rules::{bindings, ineffective};
use conductor_sandbox::datagrams::SystemDatagrams;
use conductor_sandbox::services::Services;
use conductor_sandbox::{Compiler, Sandbox};
use conductor_services::store::FeatureStores;
use conductor_stdx::clock::Clock;
use conductor_stdx::plural::plural;
use conductor_terminal as terminal;

/// Makes registries and rule sets of configurations.
#[derive(Debug)]
pub(super) struct Assembler {
    pub(super) sandbox: Sandbox,
    pub(super) observer: Observer,
    pub(super) workers: Workers,
    /// The folder of the bundled features.
    pub(super) bundled: Option<PathBuf>,
    /// The features that were installed at run time.
    pub(super) packages: Option<PackageStore>,
    /// Whether inputs without a binding are opened, whatever the configuration says.
    pub(super) listen_to_all: bool,
}

impl Assembler {
    /// An assembler without a host around it. One may run in the same home, so features find no data there and leave
    /// none behind; `live` are the stores of one that runs in this process.
    fn on_its_own(
        home: Option<&Path>,
        features: Option<&Path>,
        compiler: Compiler,
        live: Option<Arc<FeatureStores>>,
    ) -> Result<Self, StartError> {
        let services = |sinks| Services::new(sinks, Box::new(SystemDatagrams));
        Self::beside(home, features, compiler, live, services, Workers::idle)
    }

    /// The same around these services, with these workers.
    fn beside(
        home: Option<&Path>,
        features: Option<&Path>,
        compiler: Compiler,
        live: Option<Arc<FeatureStores>>,
        services: impl FnOnce(SinkQueue) -> Services,
        workers: impl FnOnce(Observer) -> Workers,
    ) -> Result<Self, StartError> {
        let (sinks, said) = SinkQueue::new();
        let (observer, _, _) = observer::start(said, None)?;
        let services = services(sinks).tried_out_in(home, live);
        let sandbox = Sandbox::new(home, Arc::new(services), compiler).map_err(StartError::Sandbox)?;
        let workers = workers(observer.clone());
        let (bundled, packages) = (features.map(Path::to_owned), home.map(PackageStore::at));
        Ok(Self { sandbox, observer, workers, bundled, packages, listen_to_all: false })
    }

    /// Builds what a configuration describes, beside what is in use.
    pub(super) fn make(&self, loaded: &Loaded, before: &Registry) -> Result<(Registry, Compiled), Diagnostics> {
        let sources = self.feature_sources(loaded);
        self.announce(&sources);
        let doubts = ineffective::warnings(loaded, Some(&sources));
        let registry = before.with(sources, &self.sandbox, &self.observer);
        // Mistakes of one kind do not hide those of another.
        let mut compiled = match (bindings::check(loaded), rules::compile(loaded, &registry, &self.workers)) {
            (Ok(()), Ok(compiled)) => compiled,
            (in_bindings, in_rules) => {
                let mut all = in_rules.map_or_else(|wrong| wrong, |compiled| compiled.warnings);
                all.extend(in_bindings.err().iter().flat_map(Diagnostics::iter).cloned());
                all.extend(doubts);
                return Err(all);
            }
        };
        compiled.warnings.extend(doubts);
        compiled.warnings.extend(ineffective::models(loaded, &registry));
        warn_of_tools(loaded, &registry, &mut compiled.warnings);
        grant_warnings::push(loaded, &registry, &mut compiled.warnings);
        registry.log_refused();
        Ok((registry, compiled))
    }

    /// Says that it will take some time, where everything has to be compiled.
    fn announce(&self, sources: &[FeatureSource]) {
        if !sources.is_empty() && !self.sandbox.is_warm() {
            let count = plural(sources.len(), "feature");
            tracing::info!(target: terminal::log::NOTICE, "preparing {count} (first time) ...");
        }
    }

    /// The features that a host with this configuration has.
    pub(super) fn feature_sources(&self, loaded: &Loaded) -> Vec<FeatureSource> {
        let installed = self.packages.as_ref().map(PackageStore::installed).transpose().unwrap_or_else(|error| {
            tracing::error!("installed features are left out: {error}");
            None
        });
        feature_sources(loaded, self.bundled.as_deref(), self.packages.as_ref().zip(installed.as_ref()))
    }

    pub(super) fn port_plan(&self, config: &Config, compiled: &Compiled, registry: &Registry) -> PortPlan {
        for target in registry.midi_targets() {
            // An output that no rule sends to is there for features all the same.
            if let Err(error) = self.workers.outputs.queue(target) {
                tracing::error!("the output {target} has no worker: {error}");
            }
        }
        let mut plan = bindings::plan(config);
        plan.open_unbound |= self.listen_to_all;
        plan.hear_ambiguous = self.listen_to_all;
        plan.targets = compiled.targets.iter().chain(registry.midi_targets()).cloned().collect();
        plan
    }
}

/// Warns of names among the tools that may be called that no tool has.
pub(super) fn warn_of_tools(loaded: &Loaded, registry: &Registry, warnings: &mut Diagnostics) {
    let Some(allowed) = &loaded.config.tools.allowed else { return };
    let tools: Vec<String> = registry.tools().map(|tool| tool.registered.name.clone()).collect();
    for (at, name) in policy::without_tool(allowed, &tools) {
        let place = loaded.source.place(&["tools".into(), "allowed".into(), at.into()]);
        let warning = Diagnostic::warning(place, format!("there is no tool {name:?}"))
            .with_nearest(config::nearest(name, tools.iter().map(String::as_str)))
            .with_help(
                "`conductor tool list` shows those that there are; a feature may bring this one later".to_owned(),
            );
        warnings.push(warning);
    }
}

/// The features that a host has: the bundled ones, the installed ones, and those of the configuration.
/// Of the same name, the later counts; and the configuration can switch any of them off, or single contributions of
/// them. A name gives no grants: see [`ConfiguredGrants`].
pub(super) fn feature_sources(
    loaded: &Loaded,
    bundled: Option<&Path>,
    installed: Option<(&PackageStore, &Installed)>,
) -> Vec<FeatureSource> {
    let configured = &loaded.config.features;
    let given = |name: &str| configured.get(name).and_then(|feature| configured_grants(name, feature));
    let mut sources: BTreeMap<String, FeatureSource> = BTreeMap::new();
    for path in bundled.map(registry::bundled).unwrap_or_default() {
        let Some(name) = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned) else { continue };
        sources.insert(name.clone(), bundled_source(&name, path, given(&name)));
    }
    for (store, (name, feature)) in
        installed.into_iter().flat_map(|(store, installed)| std::iter::repeat(store).zip(&installed.features))
    {
        let displaces_bundled = sources.contains_key(name) && !feature.id.is_builtin();
        if displaces_bundled && !feature.replaces_bundled {
            tracing::warn!(
                "{} is installed and not loaded, for builtin:{name} has its name; remove one of the two, or install it \
                 anew with --replace-bundled",
                feature.id
            );
            continue;
        }
        sources.remove(name);
        if feature.enabled {
            let mut source = installed_source(store, name, feature, &feature.current.grants);
            (source.configured, source.displaces_bundled) = (given(name), displaces_bundled);
            sources.insert(name.clone(), source);
        }
    }
    for (name, feature) in configured {
        let is_installed = installed.is_some_and(|(_, installed)| installed.features.contains_key(name));
        if !feature.enabled {
            sources.remove(name);
        } else if let Some(path) = &feature.path {
            if is_installed {
                tracing::warn!(
                    "feature {name} is installed, but [features.{name}] names another file with `path`, and that counts; \
                     remove `path` there, or `conductor feature remove {name}`"
                );
            }
            let source = FeatureSource {
                name: name.clone(),
                path: loaded.source.folder_of(&["features".into(), name.as_str().into()]).join(path),
                configured: given(name),
                provenance: Provenance::File,
                displaces_bundled: bundled.is_some_and(|folder| folder.join(format!("{name}.wasm")).is_file()),
                ..FeatureSource::default()
            };
            sources.insert(name.clone(), source);
        } else if !is_installed && !sources.contains_key(name) {
            // Reported as refused: there is no such file.
            let path = bundled.unwrap_or(Path::new("")).join(format!("{name}.wasm"));
            sources.insert(name.clone(), bundled_source(name, path, given(name)));
        }
    }
    for (name, source) in &mut sources {
        if let Some(feature) = configured.get(name) {
            source.refused = std::mem::take(&mut source.refused).union(&feature.refused);
        }
    }
    sources.into_values().collect()
}

/// Gives data that older hosts kept by short names to the features that it belongs to, as far as that is certain.
pub(super) fn adopt_data(home: &Path, store: &PackageStore) {
    let Ok(installed) = store.installed() else { return };
    let known: Vec<(FeatureId, DataKey)> =
        installed.features.values().map(|feature| (feature.id.clone(), feature.data())).collect();
    if let Err(error) = conductor_services::store::files::adopt(home, &known) {
        tracing::warn!("data of features from before can't be taken over: {error}");
    }
}

/// A package that comes with the host, as the registry takes it.
fn bundled_source(name: &str, path: PathBuf, configured: Option<ConfiguredGrants>) -> FeatureSource {
    FeatureSource {
        name: name.to_owned(),
        path,
        bundled: true,
        grants: Grants::bundled(),
        configured,
        provenance: Provenance::Bundled,
        ..FeatureSource::default()
    }
}

/// A package of the store with these grants, as the registry takes it.
pub(super) fn installed_source(
    store: &PackageStore,
    name: &str,
    feature: &InstalledFeature,
    grants: &[CapabilityRequest],
) -> FeatureSource {
    let release = &feature.current;
    FeatureSource {
        name: name.to_owned(),
        path: store.blob(&release.digest),
        label: Some(release.origin.to_string()),
        bundled: matches!(release.origin, Origin::Bundled { .. }),
        grants: Grants::of(grants),
        refused: feature.refused.clone(),
        digest: Some(release.digest.clone()),
        provenance: Provenance::Installed,
        owner: feature.owner(),
        ..FeatureSource::default()
    }
}

/// What the configuration grants under this name; `None` if it grants nothing, or the name is no feature's.
pub fn configured_grants(name: &str, feature: &config::Feature) -> Option<ConfiguredGrants> {
    section_grants(name, feature).filter(|configured| configured.grants != Grants::default())
}

/// What the section of this name grants, which may be nothing yet, and to which package. `None` if the name is no
/// feature's.
pub(super) fn section_grants(name: &str, feature: &config::Feature) -> Option<ConfiguredGrants> {
    let id = match &feature.id {
        Some(id) => FeatureId::try_from(id.clone()).ok(),
        None => FeatureId::builtin(name),
    }?;
    let digest = feature.digest.as_ref().map(|digest| digest.trim_start_matches("sha256:").to_owned());
    Some(ConfiguredGrants { id, digest, grants: feature.grants.clone() })
}

/// What compiles packages where no host runs.
fn compiler(features: Option<&Path>) -> Compiler {
    Compiler::find().with_released(features)
}

/// Checks a configuration as [`HostBuilder::start`](super::HostBuilder::start) would, without opening a port: features
/// are installed and every action is prepared.
///
/// # Errors
/// See [`StartError`].
pub fn check(loaded: &Loaded, home: Option<&Path>, features: Option<&Path>) -> Result<Compiled, StartError> {
    let (_, compiled) =
        Assembler::on_its_own(home, features, compiler(features), None)?.make(loaded, &Registry::default())?;
    Ok(compiled)
}

/// A configuration whose actions are performed on recorded sinks.
#[derive(Debug)]
pub struct Rehearsal {
    /// Its rules, and what is doubtful in it.
    pub compiled: Compiled,
    /// What performs their actions.
    pub actions: RecordedActions,
}

/// Checks a configuration as [`check`] does, and prepares its actions so that they are performed without anything going
/// out: neither datagrams nor MIDI messages, keys or programs.
///
/// # Errors
/// See [`StartError`].
pub fn rehearse(loaded: &Loaded, home: Option<&Path>, features: Option<&Path>) -> Result<Rehearsal, StartError> {
    rehearse_beside(loaded, home, features, compiler(features), None).map(|(rehearsal, ..)| rehearsal)
}

/// The same in a process in which a host runs, whose stores are `live`. The workers and the features that are returned
/// beside have to be stopped when the rehearsal is over.
///
/// # Errors
/// See [`StartError`].
pub(super) fn rehearse_beside(
    loaded: &Loaded,
    home: Option<&Path>,
    features: Option<&Path>,
    compiler: Compiler,
    live: Option<Arc<FeatureStores>>,
) -> Result<(Rehearsal, Workers, Registry), StartError> {
    let recorder = Recorder::default();
    let (clock, hand) = Clock::manual();
    let rehearsing = |observer| Workers::rehearsing(observer, recorder.desktop());
    let services = |sinks| Services {
        clock,
        midi: Some(Box::new(recorder.clone())),
        ..Services::new(sinks, Box::new(recorder.clone()))
    };
    let assembler = Assembler::beside(home, features, compiler, live, services, rehearsing)?;
    let (registry, compiled) = assembler.make(loaded, &Registry::default())?;
    let workers = assembler.workers;
    for target in &compiled.targets {
        workers.outputs.queue(target)?;
        workers.outputs.attach(target, recorder.output(target));
    }
    workers.outputs.follow(&compiled.outputs);
    let actions = RecordedActions::new(workers.clone(), recorder, clock, hand, Box::new(registry.clone()));
    Ok((Rehearsal { compiled, actions }, workers, registry))
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
    let assembler = Assembler::on_its_own(home, features, compiler(features), None)?;
    let sources = assembler.feature_sources(loaded);
    assembler.announce(&sources);
    Ok(Registry::default().with(sources, &assembler.sandbox, &assembler.observer).reports())
}

/// What would be refused if `candidate` took the place of the feature of its name: the names of
/// features with the reasons. What is refused without it is left out. No host is started, but
/// features install themselves as they would in one.
///
/// # Errors
/// See [`StartError`].
pub(super) fn try_out(
    loaded: &Loaded,
    home: &Path,
    features: Option<&Path>,
    compiler: Compiler,
    live: Option<Arc<FeatureStores>>,
    candidate: FeatureSource,
) -> Result<Vec<(String, String)>, StartError> {
    let assembler = Assembler::on_its_own(Some(home), features, compiler, live)?;
    let mut sources = assembler.feature_sources(loaded);
    assembler.announce(&sources);
    let before = Registry::default().with(sources.clone(), &assembler.sandbox, &assembler.observer);
    let refused_before = before.refused();
    sources.retain(|source| source.name != candidate.name);
    let name = candidate.name.clone();
    sources.push(candidate);
    sources.sort_by(|one, other| one.name.cmp(&other.name));
    let mut refused = before.with(sources, &assembler.sandbox, &assembler.observer).refused();
    refused.retain(|(other, _)| *other == name || !refused_before.iter().any(|(before, _)| before == other));
    Ok(refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_install::store::Release;
    use conductor_package::Contributions;
    use conductor_package::capability::{Capability, CapabilityRequest};

    fn sources(config: &str, enabled: bool) -> Vec<FeatureSource> {
        let mut installed = Installed::default();
        let current = Release {
            version: "1".into(),
            digest: "ab".into(),
            installed_at: 0,
            signers: Vec::new(),
            origin: Origin::File { path: "/lamp.wasm".into() },
            grants: vec![CapabilityRequest {
                capability: Capability::Notify {},
                required: false,
                reason: "Tell.".into(),
            }],
            owner: None,
        };
        let id = "project:lamp".to_owned().try_into().unwrap();
        let feature = InstalledFeature {
            id,
            enabled,
            current,
            previous: None,
            replaces_bundled: false,
            refused: Contributions::default(),
        };
        installed.features.insert("lamp".into(), feature);
        let loaded = config::parse(config, "/c/config.toml").unwrap();
        feature_sources(&loaded, None, Some((&PackageStore::at(Path::new("/home")), &installed)))
    }

    #[test]
    fn the_configuration_decides_about_installed_features() {
        let [lamp] = &sources("", true)[..] else { panic!() };
        assert_eq!(
            (lamp.path.as_path(), lamp.digest.as_deref()),
            (Path::new("/home/features/blobs/ab.wasm"), Some("ab"))
        );
        assert_eq!(lamp.grants, Grants { notify: true, ..Grants::default() });

        let more = "[features.lamp]\nid = 'project:lamp'\ngrants = { alert = true }";
        let [lamp] = &sources(more, true)[..] else { panic!() };
        let configured = lamp.configured.as_ref().unwrap();
        assert_eq!((configured.id.as_str(), &configured.digest), ("project:lamp", &None));
        assert!(configured.grants.alert && !lamp.grants.alert, "it may give more, if the package is the one meant");
        let [lamp] = &sources("[features.lamp]\ngrants = { alert = true }", true)[..] else { panic!() };
        assert_eq!(lamp.configured.as_ref().unwrap().id.as_str(), "builtin:lamp", "a name is none of the package's");
        let [lamp] = &sources("[features.lamp]\npath = 'mine.wasm'", true)[..] else { panic!() };
        assert_eq!((lamp.path.as_path(), lamp.digest.as_deref()), (Path::new("/c/mine.wasm"), None));
        assert_eq!(lamp.grants, Grants::default(), "another package has other grants");
        assert!(sources("[features.lamp]\nenabled = false", true).is_empty());
        assert!(sources("[features.lamp]", false).is_empty(), "disabled is disabled");
    }
}
