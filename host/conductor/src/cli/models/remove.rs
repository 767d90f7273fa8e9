//! `conductor models remove`: takes a model out, and what only it needed: its key, and where its provider may send to.

use serde_json::json;

use super::super::plan::{self, Agreed};
use super::super::{CommandResult, Failure, Paths};
use super::add::unfit;
use conductor_api::client::Client;
use conductor_api::types::{GrantRequest, ProposedRemoval};
use conductor_terminal::{self as terminal, outln};

#[derive(Debug, clap::Args)]
pub(in super::super) struct RemoveArguments {
    /// Its name under [models]
    name: String,
    /// Forget its key, too, and take back what its provider was granted for it, where no other model needs them
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    agreed: Agreed,
}

pub(super) fn run(places: &Paths, arguments: &RemoveArguments) -> CommandResult {
    let (name, client) = (&arguments.name, Client::new(&places.home));
    let ProposedRemoval { plan, secret, feature, capabilities } = client.propose_model_removal(name).map_err(unfit)?;
    if !plan::decided(places, &plan.id, &arguments.agreed)? {
        return Ok(());
    }
    let mut forgotten = None;
    if let Some(id) = secret
        && wanted(arguments, &format!("Forget the key {id}, which no other model needs?"))?
    {
        client.remove_secret(&id)?;
        if !arguments.agreed.json {
            outln!("{id} is forgotten");
        }
        forgotten = Some(id);
    }
    let mut taken_back = Vec::new();
    if let Some(feature) = feature
        && wanted(arguments, &format!("Take back what {feature} was granted for it: {}?", capabilities.join(", ")))?
    {
        client.revoke(&feature, &GrantRequest { capabilities: capabilities.clone() })?;
        taken_back = capabilities;
    }
    if arguments.agreed.json {
        terminal::json(&json!({ "removed": name, "forgotten": forgotten, "taken_back": taken_back }))?;
    }
    Ok(())
}

/// Whether what only this model needed is to go, too.
fn wanted(arguments: &RemoveArguments, question: &str) -> Result<bool, Failure> {
    match arguments.all {
        true => Ok(true),
        // Without a terminal it stays.
        false if !terminal::is_interactive() => Ok(false),
        false => plan::agrees(question, &Agreed::asked()),
    }
}
