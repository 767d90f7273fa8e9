//! Changes of what a feature may use and which of its contributions are left out, for a person who decided so.
//!
//! Of an installed feature this is kept with its package, and [`Installer`] changes it. Of a feature that comes with the
//! host, or that the configuration names with `path`, it is kept in the configuration: [`ConfiguredFeature`] says which
//! changes of the text that takes. These changes are a person's: no plan can make those of grants.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::Host;
use super::assembler::section_grants;
use super::installer::{Installer, InstallerError};
use crate::control::plan::state_hash;
use conductor_audit::caller::Caller;
use conductor_config::{self as config, Config, PathStep, Source};
use conductor_config_text::edit::Change;
use conductor_install::installation::{self, ChangeError, GrantWords};
use conductor_install::receipt::{FeatureInstallReport, What};
use conductor_install::signature::{self, PublicKey, TrustedSigners};
use conductor_install::source::Origin;
use conductor_install::store::{Installed, InstalledFeature, PackageStore, Release};
use conductor_package::capability::CapabilityRequest;
use conductor_package::{Contributions, Grants, Package};

/// What a person changes about one feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeatureChange {
    /// It may use more.
    Grant(Vec<GrantWords>),
    /// It may use less; nothing that was granted, without words.
    Revoke(Vec<GrantWords>),
    /// Hosts load it, or don't.
    Enable(bool),
    /// These contributions are left out.
    Refuse(Contributions),
    /// These contributions are left out no longer.
    Accept(Contributions),
}

impl FeatureChange {
    /// Has hosts load a feature, or single contributions of it if some are named.
    pub fn enable(contributions: Contributions) -> Self {
        if contributions.is_empty() { Self::Enable(true) } else { Self::Accept(contributions) }
    }

    /// Has hosts load a feature no longer, or leave out single contributions if some are named.
    pub fn disable(contributions: Contributions) -> Self {
        if contributions.is_empty() { Self::Enable(false) } else { Self::Refuse(contributions) }
    }

    fn what(&self) -> What {
        match self {
            Self::Grant(_) => What::Grant,
            Self::Revoke(_) => What::Revoke,
            Self::Enable(true) => What::Enable,
            Self::Enable(false) => What::Disable,
            Self::Refuse(_) => What::Refuse,
            Self::Accept(_) => What::Accept,
        }
    }
}

/// A feature whose grants and switches are kept in the configuration, and the package that it is now.
#[derive(Debug)]
pub struct ConfiguredFeature {
    name: String,
    package: Package,
    origin: Origin,
}

impl ConfiguredFeature {
    /// The feature `name` of this configuration. `None` if it is installed instead, or there is none of this name.
    ///
    /// # Errors
    /// [`ChangeError::Package`]: its file can't be read, or is no package.
    pub fn find(
        name: &str,
        config: &Config,
        source: &Source,
        bundled: Option<&Path>,
        installed: Option<&Installed>,
    ) -> Result<Option<Self>, InstallerError> {
        let path = config.features.get(name).and_then(|feature| feature.path.as_deref());
        let (file, origin) = match path {
            Some(path) => {
                let file = source.folder_of(&["features".into(), name.into()]).join(path);
                (file.clone(), Origin::File { path: file })
            }
            None if installed.is_some_and(|installed| installed.features.contains_key(name)) => return Ok(None),
            None => match bundled.map(|folder| folder.join(format!("{name}.wasm"))).filter(|file| file.is_file()) {
                Some(file) => (file, Origin::Bundled { name: name.to_owned() }),
                None => return Ok(None),
            },
        };
        let package = Package::read(&file).map_err(ChangeError::from)?;
        Ok(Some(Self { name: name.to_owned(), package, origin }))
    }

    /// The changes of the configuration's text that make `change`; none if it says so already.
    ///
    /// # Errors
    /// [`ChangeError::Words`]: what the feature does not ask for or has not, or grants that are for another package.
    pub fn changes(&self, config: &Config, change: &FeatureChange) -> Result<Vec<Change>, InstallerError> {
        let known = config.features.get(&self.name);
        let before = known.map(Section::of).unwrap_or_default();
        let after = self.after(known, change)?;
        let mut changes = Vec::new();
        if after.enabled != before.enabled {
            changes.push(self.set(&["enabled"], (!after.enabled).then(|| json!(false))));
        }
        let none = Grants::default();
        if after.grants == none && before.grants != none {
            changes.push(self.set(&["grants"], None));
        } else if after.grants != before.grants {
            let (had, has, none) = (fields(&before.grants), fields(&after.grants), fields(&none));
            let differ = has.into_iter().filter(|(key, value)| had.get(key) != Some(value));
            changes.extend(differ.map(|(key, value)| {
                let is_none = none.get(&key) == Some(&value);
                self.set(&["grants", &key], (!is_none).then_some(value))
            }));
        }
        for ((_, key, was), (_, _, is)) in before.refused.kinds().into_iter().zip(after.refused.kinds()) {
            if was != is {
                changes.push(self.set(&["refused", key], (!is.is_empty()).then(|| json!(is))));
            }
        }
        let is_all = known.is_some_and(|known| known.path.is_none() && known.id.is_none() && known.digest.is_none());
        if is_all && !changes.is_empty() && after == Section::default() {
            // No empty table stays.
            let path = std::iter::once("features").chain((config.features.len() > 1).then_some(self.name.as_str()));
            return Ok(vec![Change { path: path.map(str::to_owned).collect(), value: None }]);
        }
        Ok(changes)
    }

    /// What the configuration says of the feature after the change.
    fn after(&self, known: Option<&config::Feature>, change: &FeatureChange) -> Result<Section, InstallerError> {
        let descriptor = &self.package.info.descriptor;
        let mut section = known.map(Section::of).unwrap_or_default();
        match change {
            FeatureChange::Grant(words) => {
                self.check_grants(known)?;
                let given = GrantWords::select(words, &descriptor.capabilities).map_err(words_error)?;
                section.grants = section.grants.union(&Grants::of(&given));
            }
            FeatureChange::Revoke(words) if words.is_empty() => section.grants = Grants::default(),
            FeatureChange::Revoke(words) => {
                self.check_grants(known)?;
                let held = section.grants.held(&descriptor.capabilities);
                let mut rest = held.clone();
                installation::take_away(&mut rest, words);
                let after = replaced(&section.grants, &held, &rest);
                if after == section.grants {
                    let keys: Vec<String> = held.iter().map(CapabilityRequest::key).collect();
                    let keys = if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") };
                    let why =
                        format!("[features.{}.grants] has nothing to take away by that; it grants {keys}", self.name);
                    return Err(ChangeError::Words(why).into());
                }
                section.grants = after;
            }
            FeatureChange::Enable(enabled) => section.enabled = *enabled,
            FeatureChange::Refuse(more) => {
                more.check_known(descriptor, &section.refused).map_err(ChangeError::Words)?;
                section.refused = section.refused.union(more);
            }
            FeatureChange::Accept(gone) => {
                gone.check_known(descriptor, &section.refused).map_err(ChangeError::Words)?;
                section.refused = section.refused.without(gone);
            }
        }
        Ok(section)
    }

    /// Checks that what the configuration grants is for this package: what comes with the host, or the bytes that a person
    /// was shown when they pinned it. Grants for others, or for bytes that no person approved, would come to it unseen.
    fn check_grants(&self, known: Option<&config::Feature>) -> Result<(), ChangeError> {
        let info = &self.package.info;
        let written = known.and_then(|known| section_grants(&self.name, known));
        match written.map(|written| written.meant_for(&info.descriptor.id, &info.digest)) {
            None | Some(Ok(())) => Ok(()),
            Some(Err(_)) => Err(ChangeError::Words(format!(
                "[features.{0}] does not say that its grants are for this package, {1} sha256:{2}; `conductor feature pin \
                 {0}` shows the package and what they give to it, and binds them to it",
                self.name, info.descriptor.id, info.digest
            ))),
        }
    }

    fn set(&self, path: &[&str], value: Option<Value>) -> Change {
        let path = ["features", &self.name].iter().chain(path).map(|&step| step.to_owned()).collect();
        Change { path, value }
    }

    /// What was done, and how the feature stands under this configuration.
    ///
    /// # Errors
    /// [`InstallerError::Signers`].
    pub fn report(
        &self,
        change: &FeatureChange,
        config: &Config,
        trusted: &TrustedSigners,
        notes: Vec<String>,
    ) -> Result<FeatureInstallReport, InstallerError> {
        let info = &self.package.info;
        let section = config.features.get(&self.name).map(Section::of).unwrap_or_default();
        let is_bundled = matches!(self.origin, Origin::Bundled { .. });
        let grants = if is_bundled { Grants::bundled().union(&section.grants) } else { section.grants };
        let signers: Vec<PublicKey> = signature::verify(&self.package.bytes)?;
        let feature = InstalledFeature {
            id: info.descriptor.id.clone(),
            enabled: section.enabled,
            current: Release {
                version: info.descriptor.version.clone(),
                digest: info.digest.clone(),
                installed_at: 0,
                signers,
                origin: self.origin.clone(),
                grants: grants.held(&info.descriptor.capabilities),
                owner: None,
            },
            previous: None,
            replaces_bundled: false,
            refused: section.refused,
        };
        let descriptor = Some(&info.descriptor);
        Ok(installation::report(change.what(), &self.name, &feature, descriptor, trusted, notes))
    }
}

/// What a section `[features.NAME]` says that a person can change here.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Section {
    enabled: bool,
    grants: Grants,
    refused: Contributions,
}

impl Default for Section {
    fn default() -> Self {
        Self { enabled: true, grants: Grants::default(), refused: Contributions::default() }
    }
}

impl Section {
    fn of(feature: &config::Feature) -> Self {
        Self { enabled: feature.enabled, grants: feature.grants.clone(), refused: feature.refused.clone() }
    }
}

/// The grants of which `held` are those in effect, with `rest` in their place. What is not in effect stays.
fn replaced(grants: &Grants, held: &[CapabilityRequest], rest: &[CapabilityRequest]) -> Grants {
    let (was, mut after) = (fields(&Grants::of(held)), fields(grants));
    after.extend(fields(&Grants::of(rest)).into_iter().filter(|(key, value)| was.get(key) != Some(value)));
    serde_json::from_value(Value::Object(after)).unwrap_or_else(|_| Grants::of(rest))
}

/// The fields as the configuration writes them.
fn fields(grants: &Grants) -> Map<String, Value> {
    match serde_json::to_value(grants) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

fn words_error(error: installation::GrantWordsError) -> ChangeError {
    ChangeError::Words(error.to_string())
}

impl Installer {
    /// Changes one installed feature.
    ///
    /// # Errors
    /// [`InstallerError::Change`], [`InstallerError::Refused`], [`InstallerError::Start`].
    pub fn change_feature(&self, name: &str, change: &FeatureChange) -> Result<FeatureInstallReport, InstallerError> {
        match change {
            FeatureChange::Grant(words) => self.grant(name, words),
            FeatureChange::Revoke(words) => self.revoke(name, words),
            FeatureChange::Enable(true) => self.enable(name),
            FeatureChange::Enable(false) => self.disable(name),
            FeatureChange::Refuse(contributions) => self.refuse(name, contributions),
            FeatureChange::Accept(contributions) => self.accept(name, contributions),
        }
    }
}

impl Host {
    /// Changes what a feature may use or which of its contributions are left out, wherever that is kept, and puts it in
    /// force. In the configuration it is a revision like an applied plan, which can be undone.
    ///
    /// # Errors
    /// See [`InstallerError`]; then nothing has changed.
    pub fn change_feature(
        &self,
        who: &Caller,
        name: &str,
        change: &FeatureChange,
    ) -> Result<FeatureInstallReport, InstallerError> {
        let installed = self.home.as_deref().map(|home| PackageStore::at(home).installed()).transpose()?;
        let current = self.in_force.load();
        let bundled = self.assembler.bundled.as_deref();
        let Some(feature) =
            ConfiguredFeature::find(name, &current.config, &current.source, bundled, installed.as_ref())?
        else {
            let report = self.installer(who)?.change_feature(name, change)?;
            // Rules that don't fit any more are reported by the status; what was changed is changed.
            let _ = self.reload_features();
            return Ok(report);
        };
        let changes = feature.changes(&current.config, change)?;
        let mut notes = Vec::new();
        if changes.is_empty() {
            notes.push("the configuration says so already".to_owned());
        } else {
            let section: [PathStep<'_>; 2] = ["features".into(), name.into()];
            let file = current.source.file_of(&section).0;
            if current.config.features.contains_key(name) && file != current.source.file() {
                return Err(InstallerError::Included { name: name.to_owned(), file: file.to_owned() });
            }
            let base = state_hash(current.source.text());
            let description = format!("{} the feature {name}", change.what().word());
            self.write_changes(who, &format!("features/{name}"), &description, &base, &changes)?;
        }
        let trusted = self.home.as_deref().map(TrustedSigners::read).transpose()?.unwrap_or_default();
        feature.report(change, &self.in_force.load().config, &trusted, notes)
    }
}
