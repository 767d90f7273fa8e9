//! From a configuration to what a host runs with: installed features, compiled rules, a plan for the
//! ports. Everything is made beside what is in use, so that a refusal changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use regex::Regex;

use super::StartError;
use crate::config::{self, Config, Diagnostic, Diagnostics, ListenMode, Loaded};
use crate::dispatch::outputs::Outputs;
use crate::feature::Grants;
use crate::feature::capability::{FolderGrant, SecretGrant};
use crate::feature::registry::{self, FeatureReport, FeatureSource, Registry};
use crate::feature::sandbox::Sandbox;
use crate::observer::{self, Observer};
use crate::ports::Protocol;
use crate::ports::binding::{BindingSpec, NameMatcher};
use crate::ports::supervisor::PortPlan;
use crate::rules::{self, Compiled};
use crate::service::Services;
use crate::service::sinks::SinkQueue;
use crate::service::udp::SystemDatagrams;

/// Makes registries and rule sets of configurations.
#[derive(Debug)]
pub(super) struct Workshop {
    pub(super) sandbox: Sandbox,
    pub(super) observer: Observer,
    pub(super) outputs: Outputs,
    /// The folder of the bundled features.
    pub(super) bundled: Option<PathBuf>,
    /// Whether inputs without a binding are opened, whatever the configuration says.
    pub(super) listen_to_all: bool,
}

impl Workshop {
    /// A workshop without a host around it.
    fn on_its_own(home: Option<&Path>, features: Option<&Path>) -> Result<Self, StartError> {
        let (sinks, said) = SinkQueue::new();
        let (observer, _, _) = observer::start(said, None)?;
        let services = Arc::new(Services::new(sinks, Box::new(SystemDatagrams)).home(home));
        let sandbox = Sandbox::new(home, services).map_err(StartError::Sandbox)?;
        let outputs = Outputs::new(observer.clone());
        Ok(Self { sandbox, observer, outputs, bundled: features.map(Path::to_owned), listen_to_all: false })
    }

    /// Builds what a configuration describes, beside what is in use.
    pub(super) fn make(&self, loaded: &Loaded, before: &Registry) -> Result<(Registry, Compiled), Diagnostics> {
        bindings(loaded)?;
        let registry = before.with(feature_sources(loaded, self.bundled.as_deref()), &self.sandbox, &self.observer);
        let compiled = rules::compile(loaded, &registry, &self.outputs)?;
        Ok((registry, compiled))
    }

    pub(super) fn port_plan(&self, config: &Config, compiled: &Compiled, registry: &Registry) -> PortPlan {
        for target in registry.midi_targets() {
            // An output that no rule sends to is there for features all the same.
            if let Err(error) = self.outputs.queue(target) {
                tracing::error!("the output {target} has no worker: {error}");
            }
        }
        PortPlan {
            // Without any binding, listening only to bindings would be silence.
            open_unbound: self.listen_to_all
                || config.bindings.is_empty()
                || config.advanced_settings.listen_mode == ListenMode::All,
            max_midi_ports: usize::from(config.advanced_settings.max_midi_ports),
            targets: compiled.targets.iter().chain(registry.midi_targets()).cloned().collect(),
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
    let udp = configured.udp.iter().filter_map(|destination| destination.to_string().parse().ok());
    let hosts = |written: &[config::HttpHost]| written.iter().map(|host| host.pattern().clone()).collect();
    let secret = |secret: &config::SecretGrant| SecretGrant { id: secret.id.clone(), hosts: hosts(&secret.hosts) };
    let folder = |folder: &config::FolderGrant| FolderGrant {
        purpose: folder.purpose.clone(),
        path: folder.path.clone().into(),
        write: folder.write,
    };
    Grants {
        udp: udp.collect(),
        http: hosts(&configured.http),
        secrets: configured.secrets.iter().map(secret).collect(),
        files: configured.files.iter().map(folder).collect(),
        store: configured.store,
        midi_out: configured.midi_out.clone(),
        sysex: configured.sysex,
        observe_events: configured.observe_events.clone(),
        config_read: configured.config_read,
        config_propose: configured.config_propose,
        discover_ports: configured.discover_ports,
        background_task: configured.background_task,
        alert: configured.alert,
        notify: configured.notify,
    }
}

/// Checks a configuration as [`HostBuilder::start`](super::HostBuilder::start) would, without opening a port: features are
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
