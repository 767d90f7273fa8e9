//! `conductor models add`: from the name of a provider to a model that answers. The key goes to where secrets are kept,
//! the API is asked which models there are, and the model is written by a plan that the person applies there and then.

use serde_json::json;

use super::super::plan::{self, Agreed};
use super::super::{CommandResult, Failure, Paths, secret};
use super::LOCAL;
use conductor_api::client::{AskError, Client};
use conductor_api::types::{GrantRequest, SetSecret};
use conductor_chat::listing::{AvailableModel, Endpoint};
use conductor_chat::model_setup::{ModelAccess, NewModel};
use conductor_terminal::{self as terminal, Table, errln, outln};

/// Models that are shown at once.
const MAX_SHOWN: usize = 30;

#[derive(Debug, clap::Args)]
pub(in super::super) struct AddArguments {
    /// The provider, such as anthropic, gemini, openai, openrouter, litellm or openai-compatible [default: you are asked]
    provider: Option<String>,
    /// The model, as the API calls it [default: the API is asked, and then you are]
    model: Option<String>,
    /// Its name under [models] [default: the provider's]
    #[arg(long)]
    name: Option<String>,
    /// The base URL of the API, such as http://localhost:11434/v1 [default: the provider's own]
    #[arg(long)]
    url: Option<String>,
    /// The id of the key [default: the provider's own at its own address, none at one of this computer, else model-key]
    #[arg(long, value_name = "ID")]
    secret: Option<String>,
    /// Keep no key: have the host read it from this variable of its environment each time
    #[arg(long, value_name = "VARIABLE")]
    env: Option<String>,
    /// Ask for the key, even if one is kept
    #[arg(long, conflicts_with = "env")]
    new_key: bool,
    #[command(flatten)]
    agreed: Agreed,
}

pub(super) fn run(places: &Paths, arguments: &AddArguments) -> CommandResult {
    let client = Client::new(&places.home);
    let provider = provider(&client, arguments.provider.as_deref())?;
    let (secret, env) = (arguments.secret.clone(), arguments.env.clone());
    let access = client
        .model_access(&provider, &Endpoint { url: arguments.url.clone(), secret, api_key_env: env })
        .map_err(unfit)?;
    if let Some(id) = &access.secret {
        keep_key(&client, id, &access.site, arguments)?;
    }
    if !allow(&client, &provider, &access, &arguments.agreed)? {
        outln!("nothing is added");
        return Ok(());
    }
    let added = add(places, &client, &provider, &access, arguments);
    if !matches!(added, Ok(Some(_))) && !access.capabilities.is_empty() {
        // Nothing needs it.
        client.revoke(&access.feature, &GrantRequest { capabilities: access.capabilities })?;
    }
    let Some(Added { name, model, in_conversations }) = added? else { return Ok(()) };
    // It may take long, where the model has to be loaded first.
    errln!("asking {name} for a word, to see whether it answers");
    let health = client.check_model(&name)?;
    if arguments.agreed.json {
        terminal::json(&json!({ "name": name, "provider": provider, "model": model, "check": health }))?;
    } else if health.error.is_none() {
        outln!("{name} answers, after {} ms; talk with it: conductor chat --model {name}", health.took_ms);
    }
    if !in_conversations {
        errln!("`models` under [chat] does not list {name}: conversations ask it with --model {name} only");
    }
    match health.error {
        None => Ok(()),
        Some(error) => Err(Failure::Failed(anyhow::anyhow!("{name} is added, but gives no answer: {error}"))),
    }
}

/// A model that was added.
struct Added {
    /// Its name under `[models]`.
    name: String,
    /// What the API calls it.
    model: String,
    /// Whether conversations ask it without its name.
    in_conversations: bool,
}

/// Has a person choose a model, and apply the plan that adds it. `None` if they don't.
fn add(
    places: &Paths,
    client: &Client,
    provider: &str,
    access: &ModelAccess,
    arguments: &AddArguments,
) -> Result<Option<Added>, Failure> {
    let at = Endpoint { url: arguments.url.clone(), secret: access.secret.clone(), api_key_env: None };
    let model = model(client, provider, &at, arguments)?;
    let new = NewModel {
        provider: provider.to_owned(),
        model: model.name.clone(),
        name: arguments.name.clone(),
        url: at.url,
        secret: at.secret,
        context: model.context.filter(|_| !model.declared),
    };
    let proposed = client.propose_model(&new).map_err(unfit)?;
    if !plan::decided(places, &proposed.plan.id, &arguments.agreed)? {
        return Ok(None);
    }
    Ok(Some(Added { name: proposed.name, model: model.name, in_conversations: proposed.in_conversations }))
}

/// The provider that is meant, or that a person chooses, checked so that a misspelt one is named before anything is asked.
fn provider(client: &Client, named: Option<&str>) -> Result<String, Failure> {
    let providers = client.providers()?;
    let names: Vec<&str> = providers.iter().map(|provider| provider.name.as_str()).collect();
    let there = if names.is_empty() { "there is none".into() } else { format!("there are {}", names.join(", ")) };
    let name = match named {
        Some(name) => name.to_owned(),
        None if terminal::is_interactive() => {
            let mut table = Table::new(["NUMBER", "PROVIDER", "WHAT IT IS"]);
            for (number, provider) in providers.iter().enumerate() {
                table.row([&(number + 1), &provider.name, &provider.summary]);
            }
            terminal::eprint_table(&table);
            errln!("for one on this computer: {LOCAL}");
            let answer = terminal::ask(format_args!("Which provider? [its NUMBER in the list, or its name]"))?;
            numbered(&answer, &names).map_or(answer.clone(), |name| (*name).to_owned())
        }
        None => {
            return Err(Failure::Wrong(format!("conductor: name the provider; {there}; on this computer: {LOCAL}")));
        }
    };
    if name.is_empty() {
        return Err(Failure::Wrong("conductor: nothing is added".into()));
    }
    if names.contains(&name.as_str()) {
        return Ok(name);
    }
    let near = conductor_config::nearest(&name, names.iter().copied());
    let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    Err(Failure::Wrong(format!("conductor: there is no provider {name:?}; {there}{near}")))
}

/// Has the host keep the key, unless it has one.
fn keep_key(client: &Client, id: &str, site: &str, arguments: &AddArguments) -> CommandResult {
    if let Some(variable) = &arguments.env {
        client.set_secret(id, &SetSecret { env: Some(variable.clone()), ..SetSecret::default() })?;
        errln!("{id} is read from {variable} of the environment that the host was started in");
        return Ok(());
    }
    if let Some(place) = client.secrets()?.get(id).filter(|_| !arguments.new_key) {
        errln!("{id} already exists: {place} (--new-key asks for another one)");
        return Ok(());
    }
    let value = secret::value(&format!("The key for {site}, which is not shown"))?;
    let set = client.set_secret(id, &SetSecret { value: Some(value), ..SetSecret::default() })?;
    errln!("{id} is kept in {}", set.place);
    Ok(())
}

/// Lets the provider's feature send requests to the API, with the key, after a person agreed. Returns whether it may.
fn allow(client: &Client, provider: &str, access: &ModelAccess, agreed: &Agreed) -> Result<bool, Failure> {
    let ModelAccess { feature, site, secret, capabilities } = access;
    if capabilities.is_empty() {
        return Ok(true);
    }
    let with = secret.as_ref().map(|id| format!(", with the key {id}")).unwrap_or_default();
    let of = if feature == provider { String::new() } else { format!(" for {provider}") };
    if !plan::agrees(&format!("Let {feature} send requests to {site}{of}{with}?"), agreed)? {
        return Ok(false);
    }
    client.grant(feature, &GrantRequest { capabilities: capabilities.clone() })?;
    Ok(true)
}

/// What the host said no to is what the command line said.
pub(super) fn unfit(error: AskError) -> Failure {
    match error {
        AskError::ApiError(why) => Failure::Wrong(format!("conductor: {why}")),
        other => other.into(),
    }
}

/// The model: what was named, or what a person chooses of what the API has.
fn model(client: &Client, provider: &str, at: &Endpoint, arguments: &AddArguments) -> Result<AvailableModel, Failure> {
    let listed = client.available_models(provider, at);
    let all = match (listed, &arguments.model) {
        (Ok(all), _) => all,
        (Err(error), Some(name)) => {
            errln!("which models there are is not known: {error}");
            return Ok(AvailableModel { name: name.clone(), context: None, declared: false });
        }
        (Err(error), None) => return Err(error.into()),
    };
    if let Some(name) = &arguments.model {
        if let Some(found) = all.iter().find(|model| model.name == *name) {
            return Ok(found.clone());
        }
        let near = conductor_config::nearest(name, all.iter().map(|model| model.name.as_str()));
        let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        errln!("the API does not list {name}{near}");
        return match plan::agrees("Add it all the same?", &arguments.agreed)? {
            true => Ok(AvailableModel { name: name.clone(), context: None, declared: false }),
            false => Err(Failure::Wrong("conductor: nothing is added".into())),
        };
    }
    if !terminal::is_interactive() {
        let names: Vec<&str> = all.iter().take(MAX_SHOWN).map(|model| model.name.as_str()).collect();
        return Err(Failure::Wrong(format!("conductor: name the model; the API has {}", names.join(", "))));
    }
    choose(&all)
}

/// Has a person choose, where there is more than one: by number, by name, or by a part of names, which shows those that
/// have it.
fn choose(all: &[AvailableModel]) -> Result<AvailableModel, Failure> {
    if let [only] = all {
        errln!("the API has one model, {}", only.name);
        return Ok(only.clone());
    }
    // Those that are known first: their limits and prices are declared.
    let sorted = |part: &str| {
        let mut shown: Vec<&AvailableModel> = all.iter().filter(|model| model.name.contains(part)).collect();
        shown.sort_by_key(|model| !model.declared);
        shown
    };
    let mut shown = sorted("");
    loop {
        let mut table = Table::new(["NUMBER", "MODEL", "CONTEXT", ""]);
        for (number, model) in shown.iter().enumerate().take(MAX_SHOWN) {
            let context = model.context.map_or(String::new(), |tokens| tokens.to_string());
            let known = if model.declared { "limits and prices are known" } else { "" };
            table.row([&(number + 1), &model.name, &context, &known]);
        }
        terminal::eprint_table(&table);
        if shown.len() > MAX_SHOWN {
            errln!("and {} more; type a part of a name to see those that have it", shown.len() - MAX_SHOWN);
        }
        let answer =
            terminal::ask(format_args!("Which one? [its NUMBER in the list, its name, or a part of its name]"))?;
        if answer.is_empty() {
            return Err(Failure::Wrong("conductor: nothing is added".into()));
        }
        // A model may be called by a number.
        if let Some(model) = all.iter().find(|model| model.name == answer) {
            return Ok(model.clone());
        }
        if let Some(model) = numbered(&answer, &shown) {
            return Ok((*model).clone());
        }
        match sorted(&answer) {
            found if found.is_empty() => errln!("no model has {answer:?} in its name"),
            found => shown = found,
        }
    }
}

/// What has this number in a list. `None` if the answer is no number, or that of none.
fn numbered<'l, T>(answer: &str, list: &'l [T]) -> Option<&'l T> {
    let number = answer.parse::<usize>().ok()?.checked_sub(1)?;
    list.get(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_the_list_stands_for_what_is_there() {
        let list = ["anthropic", "gemini"];
        let found = ["1", "2", "0", "3", "gemini", ""].map(|answer| numbered(answer, &list).copied());
        assert_eq!(found, [Some("anthropic"), Some("gemini"), None, None, None, None]);
    }
}
