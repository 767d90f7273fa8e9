//! `conductor lock` and `conductor unlock`: while the show is locked, only its owner changes anything.

use clap::Args;

use super::{CommandResult, Paths};
use conductor_api::client::Client;
use conductor_api::types::SetLock;
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
    let asked = SetLock { locked: true, persistent: arguments.persist };
    let state = Client::new(&places.home).set_lock(asked)?;
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
    let state = Client::new(&places.home).set_lock(SetLock { locked: false, persistent: false })?;
    if as_json {
        terminal::json(&state)?;
    } else {
        outln!("unlocked");
    }
    Ok(())
}
