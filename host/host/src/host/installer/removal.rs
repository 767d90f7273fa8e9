//! Uninstalling a feature, and what of it is left: data, grants in the configuration, secrets, mappings.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Installer, InstallerError};
use crate::host::assembler::configured_grants;
use conductor_config::{Config, Loaded};
use conductor_install::installation::{self, Change, ChangeError, InstallPlan};
use conductor_install::receipt::FeatureInstallReport;
use conductor_install::store::{Installed, InstalledFeature};
use conductor_package::capability::CapabilityKind;
use conductor_package::descriptor::Descriptor;
use conductor_services::store::files::{self, StoreFile};
use conductor_stdx::plural::{plural, plural_u64};

/// What a removal did.
#[derive(Debug, Clone)]
pub enum Removed {
    /// The feature is taken out; what is left of it is in the report's diagnostics.
    Feature(Box<FeatureInstallReport>),
    /// No feature of this name is installed, and what one had left was deleted: not empty.
    Data(Vec<LeftData>),
}

/// Data that a feature had left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftData {
    /// The file.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
}

impl LeftData {
    /// The length with its unit.
    pub fn size(&self) -> String {
        plural_bytes(self.bytes)
    }
}

impl Installer {
    /// Takes a feature out; with `data` deletes what it keeps, too, and of one that is not installed any more what it has
    /// left.
    ///
    /// # Errors
    /// [`InstallerError::Change`]; [`InstallerError::Data`] and [`InstallerError::Delete`], also if the feature is out already.
    pub fn remove(&self, name: &str, data: bool) -> Result<Removed, InstallerError> {
        let installed = self.store.installed()?;
        let feature = match installation::find(&installed, name) {
            Ok(feature) => feature.clone(),
            Err(error) if data => return self.remove_left_data(&installed, name, error),
            // Asked for in vain, which is on record like any other change.
            Err(_) => return Ok(Removed::Feature(Box::new(self.change(name, Change::Remove)?))),
        };
        // While the package is still there.
        let descriptor = installation::describe(&self.store, &feature).ok().map(|package| package.info.descriptor);
        let mut report = self.change(name, Change::Remove)?;
        let key = feature.data();
        let kept =
            files::list(&self.home).map_err(InstallerError::Data)?.into_iter().find(|file| file.key == key.as_str());
        report.diagnostics.extend(match kept {
            Some(file) if data => Some(match files::remove(&self.home, &file.key) {
                Ok(()) => format!("its data is deleted: {}", plural_bytes(file.bytes)),
                Err(error) => {
                    format!("its data is not deleted: {error}; repeat `conductor feature remove {name} --data`")
                }
            }),
            Some(file) => Some(format!(
                "its data is left: {} in {}; no other package gets it. `conductor feature remove {name} --data` deletes it",
                plural_bytes(file.bytes),
                file.path.display()
            )),
            None => None,
        });
        report.diagnostics.extend(left_in_configuration(self.loaded().as_ref(), name, &feature, descriptor.as_ref()));
        Ok(Removed::Feature(Box::new(report)))
    }

    /// Deletes what features of this name left that are not installed any more.
    fn remove_left_data(
        &self,
        installed: &Installed,
        name: &str,
        unknown: ChangeError,
    ) -> Result<Removed, InstallerError> {
        let in_use: Vec<String> =
            installed.features.values().map(|feature| feature.data().as_str().to_owned()).collect();
        let left: Vec<StoreFile> = files::list(&self.home)
            .map_err(InstallerError::Data)?
            .into_iter()
            .filter(|file| file.is_from_elsewhere() && file.feature_name() == Some(name) && !in_use.contains(&file.key))
            .collect();
        if left.is_empty() {
            return Err(unknown.into());
        }
        left.iter().try_for_each(|file| files::remove(&self.home, &file.key))?;
        Ok(Removed::Data(left.into_iter().map(|file| LeftData { path: file.path, bytes: file.bytes }).collect()))
    }
}

/// What in the configuration and in the host is about a feature that went.
fn left_in_configuration(
    loaded: Option<&Loaded>,
    name: &str,
    feature: &InstalledFeature,
    descriptor: Option<&Descriptor>,
) -> Vec<String> {
    let mut left = Vec::new();
    if feature.replaces_bundled {
        left.push(format!("builtin:{name} is loaded again"));
    }
    let Some(loaded) = loaded else { return left };
    let file = loaded.source.file();
    if let Some(section) = loaded.config.features.get(name)
        && configured_grants(name, section).is_some_and(|grants| grants.id == feature.id)
    {
        left.push(format!("{file} still has [features.{name}.grants]; remove it, if the feature does not come back"));
    }
    let Some(descriptor) = descriptor else { return left };
    for secret in descriptor.capabilities.iter().filter(|request| request.kind() == CapabilityKind::Secret) {
        let id = secret.capability.purpose().unwrap_or_default();
        left.push(format!("the secret {id} is kept; `conductor secret remove {id}` deletes it"));
    }
    let actions: Vec<&str> = descriptor.actions.iter().map(|action| action.name.as_str()).collect();
    let uses = mappings_with(&loaded.config, &actions);
    // What comes with Conductor may have the same actions.
    if uses > 0 && !feature.replaces_bundled {
        let lead = if uses == 1 { "leads" } else { "lead" };
        left.push(format!(
            "{} in {file} {lead} nowhere now; `conductor config validate` says which",
            plural(uses, "mapping")
        ));
    }
    left
}

/// The number of mappings that do one of these actions of features, at any depth.
fn mappings_with(config: &Config, actions: &[&str]) -> usize {
    fn does(value: &Value, actions: &[&str]) -> bool {
        match value {
            Value::Object(entries) => {
                let name =
                    entries.get("type").and_then(Value::as_str).map(|name| name.rsplit(':').next().unwrap_or(name));
                name.is_some_and(|name| actions.contains(&name)) || entries.values().any(|inner| does(inner, actions))
            }
            Value::Array(items) => items.iter().any(|inner| does(inner, actions)),
            _ => false,
        }
    }
    let mappings = config.modes.iter().flat_map(|mode| &mode.mappings).chain(&config.global_mappings);
    mappings.filter(|mapping| serde_json::to_value(&mapping.action).is_ok_and(|action| does(&action, actions))).count()
}

/// What to say where packages of the same id have left data that this one does not get.
pub(super) fn data_of_others(home: &Path, plan: &InstallPlan) -> Vec<String> {
    let id = &plan.package.info.descriptor.id;
    let key = plan.data();
    let Ok(files) = files::list(home) else { return Vec::new() };
    let of_id = files.into_iter().filter(|file| !id.is_builtin() && file.belongs_to(id));
    of_id
        .map(|file| {
            let (bytes, path) = (plural_bytes(file.bytes), file.path.display());
            if file.key == key.as_str() {
                format!("it gets the existing data: {bytes} in {path}")
            } else {
                format!("another package of the id {id} left {bytes} in {path}; this one does not get them")
            }
        })
        .collect()
}

fn plural_bytes(bytes: u64) -> String {
    plural_u64(bytes, "byte")
}
