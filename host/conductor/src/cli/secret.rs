//! `conductor secret`: credentials for APIs. Values are never passed on the command line.

use std::io::{IsTerminal as _, Read as _};

use clap::Subcommand;

use super::{CommandResult, Failure, Output, Paths, make_home};
use conductor_audit::caller::Caller;
use conductor_host::host::secrets::{SecretChangeError, SecretHome};
use conductor_services::keychain::Keychain;
use conductor_services::secret_store::StoreError;
use conductor_terminal::{self as terminal, Table, outln};

#[derive(Debug, Subcommand)]
pub(super) enum SecretCommand {
    /// Keep a secret: asked for on the terminal, or read from standard input
    Set {
        /// Its id, as features and the configuration call it
        id: String,
        /// Where to keep it [default: the desktop's keyring if there is one]
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
    let secrets = SecretHome::new(&places.home, Caller::cli());
    match command {
        SecretCommand::Set { id, env: Some(variable), .. } => {
            make_home(&places.home);
            secrets.refer(id, variable).map_err(failed)?;
            outln!("{id} is read from {variable} of the environment that the host is started in");
        }
        SecretCommand::Set { id, keychain, env: None } => {
            make_home(&places.home);
            let place = secrets.set(id, &value(id)?, *keychain).map_err(failed)?;
            outln!("{id} is kept in {place}");
        }
        SecretCommand::List(output) => list(&secrets, output.json)?,
        SecretCommand::Remove { id } => {
            secrets.remove(id).map_err(failed)?;
            outln!("{id} is forgotten");
        }
    }
    Ok(())
}

/// The value, from the terminal without showing it, or from standard input.
pub(super) fn value(id: &str) -> Result<String, Failure> {
    if std::io::stdin().is_terminal() {
        return Ok(terminal::ask_secret(format_args!("{id}:"))?);
    }
    let mut text = String::new();
    std::io::stdin().take(MAX_VALUE).read_to_string(&mut text)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn list(secrets: &SecretHome, as_json: bool) -> CommandResult {
    let list = secrets.list().map_err(failed)?;
    if as_json {
        terminal::json(&list)?;
        return Ok(());
    }
    if list.is_empty() {
        outln!("no secrets");
        return Ok(());
    }
    let mut table = Table::new(["SECRET", "KEPT IN"]);
    list.iter().for_each(|(id, place)| table.row([id, place]));
    terminal::print_table(&table);
    Ok(())
}

fn failed(error: SecretChangeError) -> Failure {
    match error {
        SecretChangeError::Store(
            StoreError::Id(_) | StoreError::Variable(_) | StoreError::Value(_) | StoreError::Unknown(_),
        ) => Failure::Wrong(format!("conductor: {error}")),
        other => Failure::Failed(other.into()),
    }
}
