//! `conductor feature enable` and `disable`, with single contributions or without.
//!
//! What a person refuses of an installed feature is kept with its grants. Of one that comes with Conductor, or that the
//! configuration names with `path`, it is kept in the configuration, under `[features.NAME.refused]`.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::{CommandResult, Failure, Paths, config_file, load};
use super::pin;
use conductor_config_text::edit::Change;
use conductor_install::store::PackageStore;
use conductor_package::Contributions;
use conductor_terminal::{self as terminal, outln};

/// One feature, or contributions of it.
#[derive(Debug, clap::Args)]
pub(in super::super) struct Switched {
    /// The feature
    pub(super) name: String,
    /// An action of it. Can be given several times, as those that follow
    #[arg(long, value_name = "NAME")]
    action: Vec<String>,
    /// A tool of it
    #[arg(long, value_name = "NAME")]
    tool: Vec<String>,
    /// A hook of it
    #[arg(long, value_name = "POINT")]
    hook: Vec<String>,
    /// A background task of it
    #[arg(long, value_name = "NAME")]
    task: Vec<String>,
    /// A provider of it
    #[arg(long, value_name = "NAME")]
    provider: Vec<String>,
    /// A skill of it
    #[arg(long, value_name = "NAME")]
    skill: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Switched {
    /// The contributions that are named; none if the whole feature is meant.
    pub(super) fn contributions(&self) -> Contributions {
        let Self { action, tool, hook, task, provider, skill, .. } = self;
        Contributions {
            actions: action.clone(),
            tools: tool.clone(),
            hooks: hook.clone(),
            tasks: task.clone(),
            providers: provider.clone(),
            skills: skill.clone(),
        }
    }

    /// Whether contributions are named, and the configuration is the place where they are refused.
    pub(super) fn is_configured(&self, places: &Paths) -> Result<bool, Failure> {
        if self.contributions().is_empty() {
            return Ok(false);
        }
        let configured = if places.config.exists() { load(&places.config)?.config.features } else { BTreeMap::new() };
        let has_path = configured.get(&self.name).is_some_and(|feature| feature.path.is_some());
        let is_installed = PackageStore::at(&places.home).installed()?.features.contains_key(&self.name);
        let folder = places.features.as_ref();
        let is_bundled = folder.is_some_and(|folder| folder.join(format!("{}.wasm", self.name)).is_file());
        Ok(has_path || !is_installed && is_bundled)
    }

    /// Writes into the configuration that the contributions are refused, or are not any more.
    pub(super) fn write(&self, places: &Paths, refuse: bool) -> CommandResult {
        if !places.config.exists() {
            return Err(Failure::Wrong(format!(
                "conductor: there is no configuration {} to write this into; make the file, it may be empty",
                places.config.display()
            )));
        }
        let loaded = load(&places.config)?;
        let feature = loaded.config.features.get(&self.name);
        let before = feature.map(|feature| feature.refused.clone()).unwrap_or_default();
        let (only, descriptor) = (self.contributions(), pin::package(places, &self.name, feature)?.info.descriptor);
        only.check_known(&descriptor, &before).map_err(|error| Failure::Wrong(format!("conductor: {error}")))?;
        let after = if refuse { before.clone().union(&only) } else { before.clone().without(&only) };
        let mut changes = Vec::new();
        for ((_, key, was), (_, _, is)) in before.kinds().into_iter().zip(after.kinds()) {
            if was != is {
                let path = ["features", &self.name, "refused", key].map(str::to_owned).to_vec();
                changes.push(Change { path, value: (!is.is_empty()).then(|| json!(is)) });
            }
        }
        let changed = !changes.is_empty();
        if changed {
            config_file::write(&loaded, &changes)?;
        }
        if self.json {
            terminal::json(&json!({ "feature": self.name, "refused": after, "changed": changed }))?;
            return Ok(());
        }
        let file = places.config.display();
        outln!("{}: {} in {file}", self.name, if changed { "written" } else { "it was so already" });
        for (kind, name) in after.iter() {
            outln!("  leaves out   {kind} {name}");
        }
        Ok(())
    }
}
