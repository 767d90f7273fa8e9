//! `conductor devices suggest`: a first setup for a device that is there, as a plan that a person decides about.

use conductor_api::client::Client;
use conductor_control_names::setup::{FirstSetup, SetupError};
use conductor_device_profile::Library;
use conductor_terminal::{self as terminal, outln};
use serde_json::json;

use super::tool::{asked, proposed};
use super::{CommandResult, Failure, Paths, plan, ports};

pub(super) fn run(places: &Paths, library: &Library, name: &str, json: bool) -> CommandResult {
    let status = ports::running(places)?
        .ok_or_else(|| Failure::Failed(anyhow::anyhow!("no host is running; `conductor run` starts one")))?;
    let written: toml::Table = toml::from_str(&Client::new(&places.home).config()?.text)?;
    let setup = FirstSetup::of(library, &status, name, &written).map_err(|error| match error {
        SetupError::NoInput { .. } => Failure::Wrong(format!("conductor: {error}")),
        SetupError::NoProfile { .. } | SetupError::Nothing { .. } => Failure::Failed(error.into()),
    })?;
    let FirstSetup { profile, description, parts, changes } = setup;
    let called = asked(places, "conductor_batch_changes", &json!({ "description": description, "changes": changes }))?;
    let id = proposed(&called)?;
    if json {
        terminal::json(&json!({ "profile": profile, "suggested": parts, "plan": id }))?;
        return Ok(());
    }
    for part in &parts {
        outln!("{} ({} confidence)", part.reason, part.confidence);
    }
    if terminal::is_interactive() { plan::offer(places, id, plan::APPLY) } else { Ok(()) }
}
