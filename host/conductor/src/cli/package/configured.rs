//! Changes of features whose grants and switches are in the configuration: those that come with Conductor, and those that
//! `[features.NAME]` names with `path`. A host that runs makes them; else they are written into the file.

use super::super::{CommandResult, Failure, Paths, config_file, load, wrong};
use super::{failed, print};
use conductor_api::client::{Client, if_running};
use conductor_api::types::GrantRequest;
use conductor_config::{self as config, Loaded};
use conductor_host::host::feature_change::{ConfiguredFeature, FeatureChange};
use conductor_install::installation::GrantWords;
use conductor_install::receipt::FeatureInstallReport;
use conductor_install::signature::TrustedSigners;
use conductor_install::store::PackageStore;

/// The feature of this name, if its grants are in the configuration, and the configuration. `None` if they are not.
pub(super) fn find(places: &Paths, name: &str) -> Result<Option<(ConfiguredFeature, Loaded)>, Failure> {
    let loaded = loaded(places)?;
    let installed = PackageStore::at(&places.home).installed()?;
    let (config, source, bundled) = (&loaded.config, &loaded.source, places.features.as_deref());
    let feature = ConfiguredFeature::find(name, config, source, bundled, Some(&installed));
    Ok(feature.map_err(|error| failed(places, error))?.map(|feature| (feature, loaded)))
}

/// The configuration; an empty one while there is no file.
fn loaded(places: &Paths) -> Result<Loaded, Failure> {
    match places.config.exists() {
        true => load(&places.config),
        false => config::read("", &places.config.display().to_string()).map_err(wrong),
    }
}

/// Changes such a feature, and prints how it stands then.
pub(super) fn change(
    places: &Paths,
    name: &str,
    (feature, before): &(ConfiguredFeature, Loaded),
    what: &FeatureChange,
    json: bool,
) -> CommandResult {
    if let Some(report) = changed_by_host(places, name, before, what)? {
        return print(&report, json);
    }
    let changes = feature.changes(&before.config, what).map_err(|error| failed(places, error))?;
    if !changes.is_empty() {
        if !places.config.exists() {
            return Err(Failure::Wrong(format!(
                "conductor: there is no configuration {} to write this into; make the file, it may be empty",
                places.config.display()
            )));
        }
        config_file::write(before, &changes)?;
    }
    let (after, trusted) = (loaded(places)?, TrustedSigners::read(&places.home)?);
    let notes = vec![match changes.is_empty() {
        true => format!("{} says so already", before.source.file()),
        false => format!("written into {}", before.source.file()),
    }];
    let report = feature.report(what, &after.config, &trusted, notes);
    print(&report.map_err(|error| failed(places, error))?, json)
}

/// Has the running host make the change. `None` if none runs, or one with another configuration.
fn changed_by_host(
    places: &Paths,
    name: &str,
    before: &Loaded,
    what: &FeatureChange,
) -> Result<Option<FeatureInstallReport>, Failure> {
    let client = Client::new(&places.home);
    let is_same = |file: &str| match (std::fs::canonicalize(file), std::fs::canonicalize(before.source.file())) {
        (Ok(theirs), Ok(ours)) => theirs == ours,
        _ => file == before.source.file(),
    };
    // A section of a file that is included is for the command to write: hosts write the configuration itself alone.
    let is_included = before.source.file_of(&["features".into(), name.into()]).0 != before.source.file();
    match if_running(client.status())? {
        Some(status) if is_same(&status.config) && !is_included => {}
        _ => return Ok(None),
    }
    let capabilities =
        |words: &[GrantWords]| GrantRequest { capabilities: words.iter().map(ToString::to_string).collect() };
    Ok(Some(match what {
        FeatureChange::Grant(words) => client.grant(name, &capabilities(words)),
        FeatureChange::Revoke(words) => client.revoke(name, &capabilities(words)),
        FeatureChange::Enable(true) => client.enable(name, &Default::default()),
        FeatureChange::Enable(false) => client.disable(name, &Default::default()),
        FeatureChange::Accept(contributions) => client.enable(name, contributions),
        FeatureChange::Refuse(contributions) => client.disable(name, contributions),
    }?))
}
