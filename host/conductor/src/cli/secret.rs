//! `conductor secret`: credentials for APIs. Values are never passed on the command line.

use std::io::{IsTerminal as _, Read as _};

use clap::Subcommand;

use super::{CommandResult, Failure, Output, Paths, make_home};
use conductor_audit::caller::Caller;
use conductor_audit::{Chain, Entry, Kind, Outcome};
use conductor_services::keychain::Keychain;
use conductor_services::secret_store::{SecretStore, StoreError};
use conductor_terminal::{self as terminal, outln};

#[derive(Debug, Subcommand)]
pub(super) enum SecretCommand {
    /// Keep a secret: asked for on the terminal, or read from standard input
    Set {
        /// Its id, as features and the configuration call it
        id: String,
        /// Where to keep it; the desktop's keyring where there is one, if not said
        #[arg(long = "in", value_name = "KEYCHAIN", value_enum, conflicts_with = "env")]
        keychain: Option<Keychain>,
        /// Keep nothing; read this environment variable of the host each time
        #[arg(long, value_name = "VARIABLE")]
        env: Option<String>,
    },
    /// List ids, and where their values are
    List(Output),
    /// Forget a secret
    Remove {
        /// Its id
        id: String,
    },
}

/// Bytes of a value that are read.
const MAX_VALUE: u64 = 16 * 1024;

pub(super) fn run(places: &Paths, command: &SecretCommand) -> CommandResult {
    let store = SecretStore::at(&places.home);
    match command {
        SecretCommand::Set { id, env: Some(variable), .. } => {
            make_home(&places.home);
            let entry = Entry::new(Kind::Secret, "set", &Caller::cli(), id).with("in", "the environment");
            on_record(places, entry.with("variable", variable.as_str()), || store.refer(id, variable))?;
            outln!("{id} is read from {variable} of the environment that the host is started in");
        }
        SecretCommand::Set { id, keychain, env: None } => {
            make_home(&places.home);
            let value = value(id)?;
            let keychain = keychain.unwrap_or_else(Keychain::of_this_system);
            let entry = Entry::new(Kind::Secret, "set", &Caller::cli(), id).with("in", keychain.to_string());
            on_record(places, entry, || store.set(id, &value, keychain))?;
            outln!("{id} is kept in the {keychain}");
        }
        SecretCommand::List(output) => list(&store, output.json)?,
        SecretCommand::Remove { id } => {
            on_record(places, Entry::new(Kind::Secret, "remove", &Caller::cli(), id), || store.remove(id))?;
            outln!("{id} is forgotten");
        }
    }
    Ok(())
}

/// Does something with a secret: not before it is on record that it is about to be done.
fn on_record(places: &Paths, entry: Entry, work: impl FnOnce() -> Result<(), StoreError>) -> CommandResult {
    let chain = Chain::at(&places.home);
    chain.append(&[entry.clone().outcome(Outcome::Begun)])?;
    let result = work();
    let came = match &result {
        Ok(()) => entry,
        Err(error) => entry.failed(error),
    };
    if let Err(error) = chain.append(&[came]) {
        tracing::warn!("{error}");
    }
    result.map_err(failed)
}

/// The value, from the terminal without showing it, or from standard input.
fn value(id: &str) -> Result<String, Failure> {
    if std::io::stdin().is_terminal() {
        return Ok(terminal::ask_secret(format_args!("{id}:"))?);
    }
    let mut text = String::new();
    std::io::stdin().take(MAX_VALUE).read_to_string(&mut text)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn list(store: &SecretStore, as_json: bool) -> CommandResult {
    let list = store.list().map_err(failed)?;
    if as_json {
        terminal::json(&list)?;
        return Ok(());
    }
    for (id, place) in list {
        outln!("{id:<28} {place}");
    }
    Ok(())
}

fn failed(error: StoreError) -> Failure {
    match error {
        StoreError::Id(_) | StoreError::Variable(_) | StoreError::Value(_) | StoreError::Unknown(_) => {
            Failure::Wrong(format!("conductor: {error}"))
        }
        other => Failure::Failed(other.into()),
    }
}
