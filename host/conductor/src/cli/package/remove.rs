//! `conductor feature remove`: uninstalls a feature, and lists what of it is left.

use serde_json::{Value, json};

use super::super::{CommandResult, Failure, Paths, load};
use super::{hint, print};
use conductor_config::Config;
use conductor_install::installation::{self, Change, ChangeError, Plan};
use conductor_install::signature::TrustedSigners;
use conductor_install::store::{InstalledFeature, PackageStore};
use conductor_package::FeatureId;
use conductor_package::capability::CapabilityKind;
use conductor_package::descriptor::Descriptor;
use conductor_services::store::files::{self, StoreFile};
use conductor_stdx::plural::{plural, plural_u64};
use conductor_terminal::{self as terminal, outln};

pub(super) fn run(
    places: &Paths,
    store: &PackageStore,
    trusted: &TrustedSigners,
    name: &str,
    data: bool,
    as_json: bool,
) -> CommandResult {
    let installed = store.installed()?;
    let feature = match installation::find(&installed, name) {
        Ok(feature) => feature.clone(),
        Err(error) if data => return left_data(places, &installed.features, name, as_json, error),
        // Asked for in vain, which is on record like any other change.
        Err(_) => {
            let report =
                installation::change(store, name, Change::Remove, trusted).map_err(|error| hint(places, error))?;
            return print(&report, as_json);
        }
    };
    // While the package is still there.
    let descriptor = installation::describe(store, &feature).ok().map(|package| package.info.descriptor);
    let mut report = installation::change(store, name, Change::Remove, trusted).map_err(|error| hint(places, error))?;
    let key = feature.data();
    let kept = files::list(&places.home)?.into_iter().find(|file| file.key == key.as_str());
    report.diagnostics.extend(match kept {
        Some(file) if data => Some(match files::remove(&places.home, &file.key) {
            Ok(()) => format!("its data is deleted: {}", plural_bytes(file.bytes)),
            Err(error) => format!("its data is not deleted: {error}; repeat `conductor feature remove {name} --data`"),
        }),
        Some(file) => Some(format!(
            "its data is left: {} in {}; no other package gets it. `conductor feature remove {name} --data` deletes it",
            plural_bytes(file.bytes),
            file.path.display()
        )),
        None => None,
    });
    report.diagnostics.extend(left_in_configuration(places, name, &feature, descriptor.as_ref()));
    print(&report, as_json)
}

/// What in the configuration and in the host is about a feature that went.
fn left_in_configuration(
    places: &Paths,
    name: &str,
    feature: &InstalledFeature,
    descriptor: Option<&Descriptor>,
) -> Vec<String> {
    let mut left = Vec::new();
    if feature.replaces_bundled {
        left.push(format!("builtin:{name} is loaded again"));
    }
    let Ok(loaded) = load(&places.config) else { return left };
    let file = loaded.source.file();
    if let Some(section) = loaded.config.features.get(name)
        && conductor_host::host::configured_grants(name, section).is_some_and(|grants| grants.id == feature.id)
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

/// Deletes what features of this name left that are not installed any more.
fn left_data(
    places: &Paths,
    installed: &std::collections::BTreeMap<String, InstalledFeature>,
    name: &str,
    as_json: bool,
    error: ChangeError,
) -> CommandResult {
    let in_use: Vec<String> = installed.values().map(|feature| feature.data().as_str().to_owned()).collect();
    let left: Vec<StoreFile> = files::list(&places.home)?
        .into_iter()
        .filter(|file| file.is_from_elsewhere() && file.feature_name() == Some(name) && !in_use.contains(&file.key))
        .collect();
    if left.is_empty() {
        return Err(hint(places, error));
    }
    for file in &left {
        files::remove(&places.home, &file.key).map_err(|error| Failure::Failed(anyhow::anyhow!("{error}")))?;
        if !as_json {
            outln!("deleted: {} in {}", plural_bytes(file.bytes), file.path.display());
        }
    }
    if as_json {
        let deleted: Vec<_> = left.iter().map(|file| json!({ "path": file.path, "bytes": file.bytes })).collect();
        terminal::json(&json!({ "feature": name, "deleted": deleted }))?;
    }
    Ok(())
}

/// What to say where packages of the same id have left data that this one does not get.
pub(super) fn data_of_others(places: &Paths, plan: &Plan) -> Vec<String> {
    let id: &FeatureId = &plan.package.info.descriptor.id;
    let key = plan.data();
    let Ok(files) = files::list(&places.home) else { return Vec::new() };
    let of_id = files.into_iter().filter(|file| !id.is_builtin() && file.belongs_to(id));
    of_id
        .map(|file| {
            let (bytes, path) = (plural_bytes(file.bytes), file.path.display());
            if file.key == key.as_str() {
                format!("it gets the data that is there: {bytes} in {path}")
            } else {
                format!("another package of the id {id} left {bytes} in {path}; this one does not get them")
            }
        })
        .collect()
}

fn plural_bytes(bytes: u64) -> String {
    plural_u64(bytes, "byte")
}
