//! `conductor models remove`: takes a model out, and what only it needed: its key, and where its provider may send to.

use serde_json::json;

use super::super::config_file;
use super::super::plan::{self, Agreed};
use super::super::{CommandResult, Failure, Paths, load};
use super::add::feature_of;
use super::grants::changes;
use conductor_api::client::Client;
use conductor_api::types::ProposePlan;
use conductor_config::{Config, Model};
use conductor_config_text::edit::Change;
use conductor_services::http::HostPattern;
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
    let loaded = load(&places.config)?;
    let Some(model) = loaded.config.models.get(name).cloned() else {
        let near = conductor_config::nearest(name, loaded.config.models.keys().map(String::as_str));
        let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        return Err(Failure::Wrong(format!("conductor: there is no model {name:?} under [models]{near}")));
    };
    if loaded.config.chat.models.contains(name) {
        return Err(Failure::Wrong(format!(
            "conductor: `models` under [chat] names {name}; take it out there first: no plan changes [chat]"
        )));
    }
    let description = format!("Remove the model {name}");
    let is_last = loaded.config.models.len() == 1;
    let path = std::iter::once("models").chain((!is_last).then_some(name.as_str()));
    let change = Change { path: path.map(str::to_owned).collect(), value: None };
    let plan = client.propose_plan(&ProposePlan { description, changes: vec![change] })?;
    if !plan::decided(places, &plan.id, &arguments.agreed)? {
        return Ok(());
    }
    let provider = client.providers()?.into_iter().find(|provider| provider.name == model.provider);
    let loaded = load(&places.config)?;
    let rest = &loaded.config;
    let secret = model.secret.clone().or_else(|| provider.as_ref()?.secret.clone().filter(|_| model.url.is_none()));
    let mut forgotten = None;
    if let Some(id) = secret.filter(|id| !needs_secret(rest, &model, id))
        && client.secrets()?.contains_key(&id)
        && wanted(arguments, &format!("Forget the key {id}, which no other model needs?"))?
    {
        client.remove_secret(&id)?;
        if !arguments.agreed.json {
            outln!("{id} is forgotten");
        }
        forgotten = Some(id);
    }
    let mut taken_back = None;
    if let Some(provider) = provider
        && let Some(site) = model.url.as_deref().or(provider.url.as_deref()).and_then(site)
        && !rest.models.values().any(|other| other.provider == model.provider && other.url == model.url)
        && let Some(feature) = rest.features.get(feature_of(&provider))
        && feature.grants.http.contains(&site)
        && wanted(arguments, &format!("Take back that {} may send requests to {site}?", provider.feature))?
    {
        let mut grants = feature.grants.clone();
        grants.http.retain(|host| *host != site);
        grants.secrets.iter_mut().for_each(|secret| secret.hosts.retain(|host| *host != site));
        grants.secrets.retain(|secret| !secret.hosts.is_empty());
        config_file::write(&loaded, &changes(rest, feature_of(&provider), &grants))?;
        client.reload()?;
        taken_back = Some(site.to_string());
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

/// Whether another model is asked with the secret `id`.
fn needs_secret(rest: &Config, model: &Model, id: &str) -> bool {
    let own = model.secret.is_none();
    rest.models.values().any(|other| {
        other.secret.as_deref() == Some(id)
            || (own && other.provider == model.provider && other.url.is_none() && other.secret.is_none())
    })
}

fn site(url: &str) -> Option<HostPattern> {
    url.split("://").nth(1)?.split(['/', '?', '#']).next()?.parse().ok()
}
