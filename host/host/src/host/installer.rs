//! Installing features and changing what is installed, as every shell does it.
//!
//! ```text
//! fetch ─▶ InstallPlan ─▶ a person sees what it asks for, and decides ─▶ stage ─▶ Staged ─▶ try out ─▶ TriedOut ─▶ commit
//! ```
//!
//! Each step takes what the step before gave, so that nothing is put in use that was not tried out with just those
//! grants, beside all other features. A shell shows the plan, asks, and prints the report; what is decided is here.
//! A host that runs in the home notices the change by itself.

mod removal;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::removal::{LeftData, Removed};
use super::assembler::{adopt_data, installed_source, try_out};
use super::{Host, StartError};
use crate::control::plan::PlanError;
use conductor_audit::caller::Caller;
use conductor_config::{self as config, Loaded};
use conductor_install::installation::{self, Change, ChangeError, GrantWords, InstallPlan, InstallRequest};
use conductor_install::receipt::{FeatureInstallReport, What};
use conductor_install::signature::{PublicKey, SignatureError, TrustedSigners};
use conductor_install::source::{Origin, Source, SourceError};
use conductor_install::store::{PackageStore, StoreError};
use conductor_package::admission::Provenance;
use conductor_package::capability::CapabilityRequest;
use conductor_package::{Contributions, FeatureId, Grants, consent};
use conductor_registry::FeatureSource;
use conductor_sandbox::Compiler;
use conductor_services::error::ServiceError;
use conductor_services::store::FeatureStores;
use conductor_stdx::plain_file;

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum InstallerError {
    /// The host keeps nothing.
    #[error("this host has no home, so nothing can be installed")]
    NoHome,
    /// The package, the grants or the set of installed features.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// Where the package should come from is not understood.
    #[error(transparent)]
    NoSource(SourceError),
    /// The package can't be fetched.
    #[error(transparent)]
    Fetch(SourceError),
    /// The installed package came from where there is only that one.
    #[error("{name} came from {origin}, which stands for just that package; name the new one")]
    OnePackage {
        /// The feature.
        name: String,
        /// Where it came from.
        origin: Box<Origin>,
    },
    /// The file of trusted signers can't be read.
    #[error(transparent)]
    Signers(#[from] SignatureError),
    /// Features that hosts would not load any more, or not load: the one itself, or another one because of it.
    #[error("nothing was changed: {}", listed(.0))]
    Refused(Vec<RefusedFeature>),
    /// There is no sandbox to try it out in.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The data of features can't be listed.
    #[error("the data of features can't be listed: {0}")]
    Data(std::io::Error),
    /// The data of a feature can't be deleted.
    #[error(transparent)]
    Delete(#[from] ServiceError),
    /// The configuration, in which this is kept, can't be changed so.
    #[error(transparent)]
    Configuration(#[from] PlanError),
    /// The section of the configuration in which this is kept is in a file that it includes, which hosts don't write.
    #[error("[features.{name}] is written in {file}, which the configuration includes: change it there")]
    Included {
        /// The feature.
        name: String,
        /// The file.
        file: String,
    },
}

impl From<StoreError> for InstallerError {
    fn from(error: StoreError) -> Self {
        Self::Change(error.into())
    }
}

/// A feature that hosts would not load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedFeature {
    /// Its name.
    pub name: String,
    /// Why, in a sentence.
    pub reason: String,
}

fn listed(refused: &[RefusedFeature]) -> String {
    refused.iter().map(|one| format!("{}: {}", one.name, one.reason)).collect::<Vec<_>>().join("\n")
}

/// How to fetch and look at a package.
#[derive(Debug, Clone, Default)]
pub struct FetchOptions {
    /// What it has to call itself.
    pub name: Option<String>,
    /// The digest that it has to have: 64 hex digits, perhaps after `sha256:`.
    pub digest: Option<String>,
    /// Whether it may take the place of a feature that comes with the host.
    pub replace_bundled: bool,
}

/// A plan as a person sees it before they decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstallView {
    /// What would be done.
    pub what: What,
    /// The feature's name.
    pub name: String,
    /// Its source-qualified id.
    pub id: FeatureId,
    /// The author's version of the package.
    pub version: String,
    /// What it does, in its author's words; `null` if the package does not say.
    pub summary: Option<String>,
    /// SHA-256 of the package, lower-case hex.
    pub digest: String,
    /// Where the package came from.
    pub source: Origin,
    /// Who signed the package: the names of trusted signers, the keys of unknown ones.
    pub signers: Vec<String>,
    /// What it may use without a question.
    pub kept: Vec<CapabilityRequest>,
    /// What it asks for beyond that.
    pub asked: Vec<AskedCapability>,
    /// What a person should know before they decide, in sentences.
    pub notes: Vec<String>,
}

/// A capability that a package asks for, as a person is asked about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskedCapability {
    /// The request.
    pub request: CapabilityRequest,
    /// What it means, a line for each target.
    pub lines: Vec<String>,
    /// The words that grant it as `lines` show it. Empty if a person has to name what they grant of it.
    pub words: Vec<String>,
    /// Words that grant a part of it, as a person may write them, with an example or a placeholder in them:
    /// `files:notes=/a/folder`, `network:osc=10.0.0.5:9000`.
    pub examples: Vec<String>,
}

impl AskedCapability {
    fn new(request: &CapabilityRequest) -> Self {
        let capability = &request.capability;
        let is_whole = !capability.must_be_named() && consent::whole(capability).is_ok();
        Self {
            lines: consent::lines(capability),
            words: is_whole.then(|| request.key()).into_iter().collect(),
            examples: consent::examples(capability),
            request: request.clone(),
        }
    }
}

impl InstallView {
    /// The view of a plan, with the names of signers that a person trusts.
    pub fn new(plan: &InstallPlan, trusted: &TrustedSigners) -> Self {
        let info = &plan.package.info;
        let signer = |key: &PublicKey| {
            let signer = trusted.signer(*key);
            signer.name.unwrap_or_else(|| signer.key.to_string())
        };
        Self {
            what: plan.what,
            name: plan.name.clone(),
            id: info.descriptor.id.clone(),
            version: info.descriptor.version.clone(),
            summary: info.descriptor.summary.clone(),
            digest: info.digest.clone(),
            source: plan.origin.clone(),
            signers: plan.signers.iter().map(signer).collect(),
            kept: plan.kept.clone(),
            asked: plan.asked.iter().map(AskedCapability::new).collect(),
            notes: plan.notes.clone(),
        }
    }
}

/// The configuration that features are tried out under.
#[derive(Debug, Clone)]
enum Under {
    /// An empty one.
    Nothing,
    /// What this file says then.
    File(PathBuf),
    Loaded(Box<Loaded>),
}

/// Changes the features of a home.
#[derive(Debug, Clone)]
pub struct Installer {
    home: PathBuf,
    features: Option<PathBuf>,
    config: Under,
    store: PackageStore,
    trusted: TrustedSigners,
    compiler: Compiler,
    /// The stores of the host that runs in this process, for migrations to be tried on copies of.
    live: Option<Arc<FeatureStores>>,
}

/// A package that lies in the store and is not in use, with what it is to be granted.
#[derive(Debug)]
#[must_use = "nothing is installed before `commit`"]
pub struct Staged {
    plan: InstallPlan,
    grants: Vec<CapabilityRequest>,
    /// How a host would load it; `None` if hosts would not, since the feature is disabled.
    source: Option<FeatureSource>,
}

/// A package that hosts would load.
#[derive(Debug)]
#[must_use = "nothing is installed before `commit`"]
pub struct TriedOut {
    plan: InstallPlan,
    grants: Vec<CapabilityRequest>,
}

impl Installer {
    /// Opens the package store of `home`, which has to exist, for changes by `who`, as the audit names them.
    ///
    /// # Errors
    /// The store or the file of trusted signers can't be read or made.
    pub fn open(home: &Path, who: Caller) -> Result<Self, InstallerError> {
        let store = PackageStore::open(home)?.by(who);
        adopt_data(home, &store);
        let trusted = TrustedSigners::read(home)?;
        let compiler = Compiler::find();
        Ok(Self { home: home.to_owned(), features: None, config: Under::Nothing, store, trusted, compiler, live: None })
    }

    /// The folder of the features that come with the host, one `.wasm` file each. Default: there are none.
    #[must_use]
    pub fn features(mut self, folder: Option<&Path>) -> Self {
        self.features = folder.map(Path::to_owned);
        self.compiler = self.compiler.with_released(folder);
        self
    }

    /// The configuration file under which features are tried out. One that is missing or has mistakes counts as empty.
    #[must_use]
    pub fn config_file(mut self, file: &Path) -> Self {
        self.config = Under::File(file.to_owned());
        self
    }

    /// The configuration under which features are tried out.
    #[must_use]
    pub fn config(mut self, loaded: Loaded) -> Self {
        self.config = Under::Loaded(Box::new(loaded));
        self
    }

    /// Compiles what is tried out with this compiler. Default: [`Compiler::find`].
    #[must_use]
    pub fn compiler(mut self, compiler: Compiler) -> Self {
        self.compiler = compiler;
        self
    }

    /// The package store.
    pub fn store(&self) -> &PackageStore {
        &self.store
    }

    /// Whose signatures count.
    pub fn trusted(&self) -> &TrustedSigners {
        &self.trusted
    }

    /// Fetches a package that is to be installed, and looks at it: from a file, `https://…#sha256=HEX`,
    /// `oci://host/repository:tag`, or by the name of a feature that comes with the host. Nothing changes.
    ///
    /// # Errors
    /// [`InstallerError::NoSource`], [`InstallerError::Fetch`], [`InstallerError::Change`].
    pub fn fetch(&self, source: &str, options: &FetchOptions) -> Result<InstallPlan, InstallerError> {
        self.look(&self.parsed(source, options)?, options, false)
    }

    /// The same for a package that is to take the place of the one that is installed; from where that one came, if no
    /// source is named.
    ///
    /// # Errors
    /// As [`fetch`](Self::fetch), and [`InstallerError::OnePackage`].
    pub fn fetch_upgrade(
        &self,
        name: &str,
        source: Option<&str>,
        options: &FetchOptions,
    ) -> Result<InstallPlan, InstallerError> {
        let installed = self.store.installed()?;
        let origin = &installation::find(&installed, name)?.current.origin;
        let source = match source {
            Some(source) => self.parsed(source, options)?,
            None => Source::again(origin, self.features.as_deref()).ok_or_else(|| InstallerError::OnePackage {
                name: name.to_owned(),
                origin: Box::new(origin.clone()),
            })?,
        };
        let options = FetchOptions { name: Some(name.to_owned()), ..options.clone() };
        self.look(&source, &options, true)
    }

    /// The package before the last upgrade, with the grants that it had. Nothing changes.
    ///
    /// # Errors
    /// [`InstallerError::Change`].
    pub fn previous(&self, name: &str) -> Result<InstallPlan, InstallerError> {
        Ok(InstallPlan::back(&self.store, name, self.trusted.clone())?)
    }

    fn parsed(&self, source: &str, options: &FetchOptions) -> Result<Source, InstallerError> {
        Source::parse(source, options.digest.as_deref(), self.features.as_deref()).map_err(InstallerError::NoSource)
    }

    fn look(&self, source: &Source, options: &FetchOptions, upgrade: bool) -> Result<InstallPlan, InstallerError> {
        let FetchOptions { name, digest, replace_bundled } = options.clone();
        let wanted = InstallRequest {
            name,
            digest,
            trusted: self.trusted.clone(),
            bundled: self.features.clone(),
            replace_bundled,
        };
        let fetched = source.fetch().map_err(InstallerError::Fetch)?;
        let mut plan = InstallPlan::new(&self.store, fetched, wanted, upgrade)?;
        plan.notes.extend(removal::data_of_others(&self.home, &plan));
        Ok(plan)
    }

    /// Puts the package of a plan into the store, with what a person has granted of what it asks for. Hosts don't see
    /// it there.
    ///
    /// # Errors
    /// [`ChangeError::NotGranted`], and what the store refuses.
    pub fn stage(&self, plan: InstallPlan, given: Vec<CapabilityRequest>) -> Result<Staged, InstallerError> {
        let grants = plan.grants(given)?;
        let source = if plan.enabled() {
            Some(FeatureSource {
                name: plan.name.clone(),
                path: self.store.stage(&plan.package.bytes)?,
                label: Some(plan.origin.to_string()),
                bundled: matches!(plan.origin, Origin::Bundled { .. }),
                grants: Grants::of(&grants),
                refused: plan.refused(),
                digest: Some(plan.package.info.digest.clone()),
                provenance: Provenance::Installed,
                owner: plan.owner().map(str::to_owned),
                displaces_bundled: plan.replaces_bundled(),
                ..FeatureSource::default()
            })
        } else {
            None
        };
        Ok(Staged { plan, grants, source })
    }

    /// Has a staged package install itself beside all other features, as in a host. No host is started, and features
    /// find no data and leave none; a migration of data is tried on a copy, if no other process has the data open. A package that hosts would not load, because its feature is disabled, is not run.
    ///
    /// # Errors
    /// [`InstallerError::Refused`], [`InstallerError::Start`].
    pub fn try_out(&self, staged: Staged) -> Result<TriedOut, InstallerError> {
        let Staged { plan, grants, source } = staged;
        source.map_or(Ok(()), |source| self.would_be_loaded(source))?;
        Ok(TriedOut { plan, grants })
    }

    /// Puts a package in use that was tried out.
    ///
    /// # Errors
    /// [`InstallerError::Change`]: the feature was changed meanwhile, or the store refuses it.
    pub fn commit(&self, tried: TriedOut) -> Result<FeatureInstallReport, InstallerError> {
        Ok(tried.plan.commit(&self.store, tried.grants)?)
    }

    /// The steps from the decision to the report: stages the package of a plan, tries it out and puts it in use.
    ///
    /// # Errors
    /// Those of the steps.
    pub fn install(
        &self,
        plan: InstallPlan,
        given: Vec<CapabilityRequest>,
    ) -> Result<FeatureInstallReport, InstallerError> {
        let staged = self.stage(plan, given)?;
        self.commit(self.try_out(staged)?)
    }

    /// Lets a feature use more, after it was tried out with that.
    ///
    /// # Errors
    /// [`InstallerError::Change`], [`InstallerError::Refused`], [`InstallerError::Start`].
    pub fn grant(&self, name: &str, words: &[GrantWords]) -> Result<FeatureInstallReport, InstallerError> {
        let installed = self.store.installed()?;
        let feature = installation::find(&installed, name)?;
        let grants = installation::granted(&self.store, feature, words)?;
        if feature.enabled {
            self.would_be_loaded(installed_source(&self.store, name, feature, &grants))?;
        }
        self.change(name, Change::Grant(feature.current.clone(), grants))
    }

    /// Lets a feature use less; nothing, if there are no words.
    ///
    /// # Errors
    /// [`InstallerError::Change`].
    pub fn revoke(&self, name: &str, words: &[GrantWords]) -> Result<FeatureInstallReport, InstallerError> {
        self.change(name, Change::Revoke(words.to_vec()))
    }

    /// Has hosts load a feature, after it was tried out.
    ///
    /// # Errors
    /// [`InstallerError::Change`], [`InstallerError::Refused`], [`InstallerError::Start`].
    pub fn enable(&self, name: &str) -> Result<FeatureInstallReport, InstallerError> {
        let installed = self.store.installed()?;
        let feature = installation::find(&installed, name)?;
        self.would_be_loaded(installed_source(&self.store, name, feature, &feature.current.grants))?;
        self.change(name, Change::Enable(true))
    }

    /// Keeps a feature installed, but has no host load it.
    ///
    /// # Errors
    /// [`InstallerError::Change`].
    pub fn disable(&self, name: &str) -> Result<FeatureInstallReport, InstallerError> {
        self.change(name, Change::Enable(false))
    }

    /// Leaves out single contributions of a feature, also after upgrades; the rest of it works.
    ///
    /// # Errors
    /// [`InstallerError::Change`].
    pub fn refuse(&self, name: &str, contributions: &Contributions) -> Result<FeatureInstallReport, InstallerError> {
        self.change(name, Change::Refuse(contributions.clone()))
    }

    /// Leaves out single contributions no longer, after the feature was tried out with them.
    ///
    /// # Errors
    /// [`InstallerError::Change`], [`InstallerError::Refused`], [`InstallerError::Start`].
    pub fn accept(&self, name: &str, contributions: &Contributions) -> Result<FeatureInstallReport, InstallerError> {
        let installed = self.store.installed()?;
        let feature = installation::find(&installed, name)?;
        if feature.enabled {
            let mut source = installed_source(&self.store, name, feature, &feature.current.grants);
            source.refused = source.refused.without(contributions);
            self.would_be_loaded(source)?;
        }
        self.change(name, Change::Accept(contributions.clone()))
    }

    fn change(&self, name: &str, change: Change) -> Result<FeatureInstallReport, InstallerError> {
        Ok(installation::change(&self.store, name, change, &self.trusted)?)
    }

    /// The configuration; `None` if there is none that can be read.
    fn loaded(&self) -> Option<Loaded> {
        match &self.config {
            Under::Nothing => None,
            Under::File(file) => {
                let text = plain_file::read_text(file, plain_file::MAX_TEXT).ok()?;
                config::read(&text, &file.display().to_string()).ok()
            }
            Under::Loaded(loaded) => Some(Loaded::clone(loaded)),
        }
    }

    /// Has a candidate install itself beside all others, as in a host.
    fn would_be_loaded(&self, candidate: FeatureSource) -> Result<(), InstallerError> {
        // A configuration that is wrong is another matter, which `config::parse` and its callers report.
        let loaded = match self.loaded() {
            Some(loaded) => loaded,
            None => config::parse("", "nothing").map_err(StartError::Config)?,
        };
        let section = loaded.config.features.get(&candidate.name);
        if section.is_some_and(|feature| feature.path.is_some() || !feature.enabled) {
            tracing::warn!(
                "[features.{0}] in {1} takes precedence over the installed {0}",
                candidate.name,
                loaded.source.file()
            );
        }
        let refused = try_out(
            &loaded,
            &self.home,
            self.features.as_deref(),
            self.compiler.clone(),
            self.live.clone(),
            candidate,
        )?;
        if refused.is_empty() {
            return Ok(());
        }
        let refused = refused.into_iter().map(|(name, reason)| RefusedFeature { name, reason });
        Err(InstallerError::Refused(refused.collect()))
    }
}

impl Host {
    /// Changes what is installed in this host's home, for `who`, under the configuration in force. What was changed is put
    /// in force by [`Host::reload_features`].
    ///
    /// # Errors
    /// [`InstallerError::NoHome`], and those of [`Installer::open`].
    pub fn installer(&self, who: &Caller) -> Result<Installer, InstallerError> {
        let home = self.home.as_deref().ok_or(InstallerError::NoHome)?;
        let source = self.in_force.load().source.clone();
        let installer = Installer::open(home, who.clone())?.features(self.assembler.bundled.as_deref());
        let mut installer = installer.compiler(self.compiler.clone());
        installer.live.clone_from(&self.services.stores);
        Ok(match source.parse(source.text()) {
            Ok(loaded) => installer.config(loaded),
            Err(_) => installer,
        })
    }

    /// What was installed and changed in this host's home, oldest first.
    ///
    /// # Errors
    /// [`InstallerError::NoHome`], [`InstallerError::Change`].
    pub fn receipts(&self) -> Result<Vec<FeatureInstallReport>, InstallerError> {
        let home = self.home.as_deref().ok_or(InstallerError::NoHome)?;
        Ok(PackageStore::at(home).read_receipts()?)
    }
}
