//! `conductor lock` and `conductor unlock`: while the show is locked, only its owner changes anything.

use clap::Args;
use serde_json::{Value, json};

use super::{CommandResult, Paths};
use conductor_api::client::Client;
use conductor_terminal::{self as terminal, outln};

#[derive(Debug, Args)]
pub(super) struct LockArguments {
    /// Stay locked when the host starts again
    #[arg(long)]
    persist: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn lock(places: &Paths, arguments: &LockArguments) -> CommandResult {
    let asked = json!({ "locked": true, "persistent": arguments.persist });
    let state: Value = Client::new(&places.home).post("/v1/lock", &asked)?;
    let until =
        if arguments.persist { "until `conductor unlock`" } else { "until `conductor unlock`, or the host stops" };
    if arguments.json {
        terminal::json(&state)?;
    } else {
        outln!("locked: agents and lent tokens change nothing {until}");
    }
    Ok(())
}

pub(super) fn unlock(places: &Paths, as_json: bool) -> CommandResult {
    let state: Value = Client::new(&places.home).post("/v1/lock", &json!({ "locked": false }))?;
    if as_json {
        terminal::json(&state)?;
    } else {
        outln!("unlocked");
    }
    Ok(())
}
