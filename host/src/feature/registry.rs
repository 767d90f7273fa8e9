//! The registry: which features are installed, and who owns which action.
//!
//! A registry does not change. [`Registry::with`] makes the next one: what is the same in both is
//! shared, so a reload that is refused in the end leaves everything as it was.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::package::{Package, PackageError};
use super::sandbox::state::{FeatureFacts, RegisteredAction};
use super::sandbox::{InstallError, PrepareError, Sandbox};
use super::{Descriptor, Grants};
use crate::dispatch::feature_worker::FeatureQueue;
use crate::observer::Observer;

/// A feature that should be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureSource {
    /// What configuration calls it.
    pub name: String,
    /// The package.
    pub path: PathBuf,
    /// Whether it came with the host.
    pub bundled: bool,
    /// What it was granted.
    pub grants: Grants,
    /// The digest that the package must have (SHA-256, lower-case hex); none where any will do.
    pub digest: Option<String>,
}

/// Why a feature is not installed. Everything else goes on.
#[derive(Debug, thiserror::Error)]
pub enum RefusedFeature {
    /// Its package was not taken.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// It is not the package that was installed.
    #[error(
        "{}: was altered: its digest is sha256:{found}, and sha256:{wanted} was installed; install it anew",
        path.display()
    )]
    Altered {
        /// The package.
        path: PathBuf,
        /// The digest that was installed.
        wanted: String,
        /// The digest of the bytes that are there.
        found: String,
    },
    /// It can't be prepared to run.
    #[error("{}: {source}", path.display())]
    Prepare {
        /// The package.
        path: PathBuf,
        /// Why.
        source: PrepareError,
    },
    /// It did not install itself.
    #[error("{}: {source}", path.display())]
    Install {
        /// The package.
        path: PathBuf,
        /// Why.
        source: InstallError,
    },
    /// Its id says that it is bundled, but it is not; or the other way round.
    #[error("{}: calls itself {id}; only features that come with the host are `builtin:`", path.display())]
    FalseSource {
        /// The package.
        path: PathBuf,
        /// What it says.
        id: String,
    },
    /// Configuration calls it otherwise than it does itself.
    #[error("{}: is called {id:?} in its descriptor; write it as [features.{id}]", path.display())]
    OtherName {
        /// The package.
        path: PathBuf,
        /// What it says.
        id: String,
    },
    /// Another feature has an action of this name.
    #[error("{}: its action {action} belongs to {owner} already", path.display())]
    ActionTaken {
        /// The package.
        path: PathBuf,
        /// The action.
        action: String,
        /// The feature that has it.
        owner: String,
    },
}

/// An installed feature. Dropping the last one ends its worker.
#[derive(Debug)]
struct Installed {
    source: FeatureSource,
    descriptor: Descriptor,
    digest: String,
    size: usize,
    registered: Vec<RegisteredAction>,
    queue: FeatureQueue,
    thread: JoinHandle<()>,
    facts: Arc<FeatureFacts>,
    /// Whether its worker was ended while rules still name it.
    withdrawn: AtomicBool,
}

impl Drop for Installed {
    fn drop(&mut self) {
        self.queue.abandon();
    }
}

#[derive(Debug, Clone)]
enum Entry {
    Installed(Arc<Installed>),
    Refused { source: FeatureSource, reason: String },
}

/// The features of one configuration.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    entries: BTreeMap<String, Entry>,
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

/// What listings show of a feature.
#[derive(Debug, Clone, Serialize)]
pub struct FeatureReport {
    /// What configuration calls it.
    pub name: String,
    /// The package.
    pub path: PathBuf,
    /// Whether it came with the host.
    pub bundled: bool,
    /// Its source-qualified id, version, digest and size; none where it was refused.
    pub package: Option<PackageReport>,
    /// Why it is not installed.
    pub refused: Option<String>,
    /// What it was granted.
    pub grants: Grants,
    /// Actions done, failed, and of those trapped and without room in the queue.
    pub performed: u64,
    /// Actions that failed.
    pub failed: u64,
    /// Of the failed ones: traps and overruns.
    pub trapped: u64,
    /// Of the failed ones: no room in the queue.
    pub queue_full: u64,
    /// Why the last action that failed did.
    pub last_failure: Option<String>,
}

/// What listings show of an installed package.
#[derive(Debug, Clone, Serialize)]
pub struct PackageReport {
    /// Source-qualified.
    pub id: String,
    /// The author's.
    pub version: String,
    /// SHA-256, lower-case hex.
    pub digest: String,
    /// In bytes.
    pub size: usize,
    /// The actions that it registered.
    pub actions: Vec<String>,
}

impl Registry {
    /// The registry with just these features: the ones that are the same as here are kept running,
    /// the others are installed.
    pub fn with(&self, sources: Vec<FeatureSource>, sandbox: &Sandbox, observer: &Observer) -> Self {
        let mut next = Self::default();
        for source in sources {
            let package = Package::read(&source.path);
            let kept = match (self.entries.get(&source.name), &package) {
                (Some(Entry::Installed(installed)), Ok(package))
                    if installed.source == source
                        && installed.digest == package.info.digest
                        && !installed.withdrawn.load(Ordering::Relaxed) =>
                {
                    Some(Arc::clone(installed))
                }
                _ => None,
            };
            let installed = match kept {
                Some(kept) => Ok(kept),
                None => package
                    .map_err(RefusedFeature::from)
                    .and_then(|package| next.install(&source, &package, sandbox, observer)),
            };
            let name = source.name.clone();
            let entry = match installed {
                Ok(installed) => Entry::Installed(installed),
                Err(reason) => {
                    tracing::warn!("feature {name} is not installed: {reason}");
                    Entry::Refused { source, reason: reason.to_string() }
                }
            };
            next.entries.insert(name, entry);
        }
        next
    }

    fn install(
        &self,
        source: &FeatureSource,
        package: &Package,
        sandbox: &Sandbox,
        observer: &Observer,
    ) -> Result<Arc<Installed>, RefusedFeature> {
        let path = || source.path.clone();
        if let Some(wanted) = source.digest.as_ref().filter(|wanted| **wanted != package.info.digest) {
            return Err(RefusedFeature::Altered {
                path: path(),
                wanted: wanted.clone(),
                found: package.info.digest.clone(),
            });
        }
        let descriptor = &package.info.descriptor;
        if (descriptor.id.source() == "builtin") != source.bundled {
            return Err(RefusedFeature::FalseSource { path: path(), id: descriptor.id.to_string() });
        }
        if descriptor.id.name() != source.name {
            return Err(RefusedFeature::OtherName { path: path(), id: descriptor.id.name().to_owned() });
        }
        for action in &descriptor.actions {
            if let Some(owner) = self.owner(&action.name) {
                return Err(RefusedFeature::ActionTaken {
                    path: path(),
                    action: action.name.clone(),
                    owner: owner.descriptor.id.to_string(),
                });
            }
        }
        let prepared = sandbox
            .prepare(package, source.grants.clone())
            .map_err(|source| RefusedFeature::Prepare { path: path(), source })?;
        let facts = Arc::clone(prepared.facts());
        let (queue, thread, registered) = FeatureQueue::start(prepared, observer.clone())
            .map_err(|source| RefusedFeature::Install { path: path(), source })?;
        Ok(Arc::new(Installed {
            source: source.clone(),
            descriptor: descriptor.clone(),
            digest: package.info.digest.clone(),
            size: package.info.size,
            registered,
            queue,
            thread,
            facts,
            withdrawn: AtomicBool::new(false),
        }))
    }

    fn installed(&self) -> impl Iterator<Item = &Arc<Installed>> {
        self.entries.values().filter_map(|entry| match entry {
            Entry::Installed(installed) => Some(installed),
            Entry::Refused { .. } => None,
        })
    }

    fn owner(&self, action: &str) -> Option<&Arc<Installed>> {
        self.installed().find(|installed| installed.registered.iter().any(|registered| registered.name == action))
    }

    /// Finds `Action`, or `feature:Action`.
    pub fn find(&self, type_name: &str) -> Lookup {
        let (feature, action) = match type_name.split_once(':') {
            Some((feature, action)) => (Some(feature), action),
            None => (None, type_name),
        };
        let owner = self.owner(action).filter(|owner| feature.is_none_or(|feature| feature == owner.source.name));
        if let Some(owner) = owner {
            return Lookup::Found { queue: owner.queue.clone(), action: action.to_owned() };
        }
        match feature.and_then(|feature| self.entries.get(feature)) {
            Some(Entry::Refused { source, reason }) => {
                Lookup::Refused { feature: source.name.clone(), reason: reason.clone() }
            }
            _ => Lookup::Unknown,
        }
    }

    /// Every action that mappings can name.
    pub fn action_names(&self) -> Vec<String> {
        self.installed().flat_map(|installed| installed.registered.iter().map(|action| action.name.clone())).collect()
    }

    /// Features that are not installed, with the reason.
    pub fn refused(&self) -> Vec<(String, String)> {
        let refused = |entry: &Entry| match entry {
            Entry::Refused { source, reason } => Some((source.name.clone(), reason.clone())),
            Entry::Installed(_) => None,
        };
        self.entries.values().filter_map(refused).collect()
    }

    /// What there is to say about every feature.
    pub fn reports(&self) -> Vec<FeatureReport> {
        self.entries.values().map(report).collect()
    }

    /// Ends the features from the package store that `sources` does not have any more, or has with
    /// less granted. What they contribute fails from now on.
    pub fn withdraw(&self, sources: &[FeatureSource]) {
        for installed in self.installed().filter(|installed| installed.source.digest.is_some()) {
            let held = &installed.source.grants;
            let still = sources.iter().find(|source| source.name == installed.source.name);
            if still.is_none_or(|source| source.grants.clone().union(held) != source.grants) {
                tracing::warn!("feature {} is ended: it was disabled, removed or lost a grant", installed.source.name);
                installed.withdrawn.store(true, Ordering::Relaxed);
                installed.facts.revoke();
                installed.queue.abandon();
            }
        }
    }

    /// Has every worker do what is in its queue and end; waits until `deadline` at most. True when
    /// all have ended.
    pub fn stop(&self, deadline: Instant) -> bool {
        self.installed().for_each(|installed| installed.queue.finish());
        loop {
            if self.installed().all(|installed| installed.thread.is_finished()) {
                return true;
            }
            if Instant::now() >= deadline {
                self.installed().for_each(|installed| installed.queue.abandon());
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn report(entry: &Entry) -> FeatureReport {
    let (source, refused) = match entry {
        Entry::Installed(installed) => (&installed.source, None),
        Entry::Refused { source, reason } => (source, Some(reason.clone())),
    };
    let mut report = FeatureReport {
        name: source.name.clone(),
        path: source.path.clone(),
        bundled: source.bundled,
        package: None,
        refused,
        grants: source.grants.clone(),
        performed: 0,
        failed: 0,
        trapped: 0,
        queue_full: 0,
        last_failure: None,
    };
    if let Entry::Installed(installed) = entry {
        if installed.withdrawn.load(Ordering::Relaxed) {
            let why = "it was disabled, removed or lost a grant while rules name it; what they do with it fails";
            report.refused = Some(why.to_owned());
        }
        let counters = installed.queue.counters();
        report.performed = counters.done.load(Ordering::Relaxed);
        report.failed = counters.failed.load(Ordering::Relaxed);
        report.trapped = counters.trapped.load(Ordering::Relaxed);
        report.queue_full = counters.queue_full.load(Ordering::Relaxed);
        report.last_failure = counters.last_failure();
        report.package = Some(PackageReport {
            id: installed.descriptor.id.to_string(),
            version: installed.descriptor.version.clone(),
            digest: installed.digest.clone(),
            size: installed.size,
            actions: installed.registered.iter().map(|action| action.name.clone()).collect(),
        });
    }
    report
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
