//! `conductor models add`: from the name of a provider to a model that answers. The key goes to where secrets are kept,
//! the API is asked which models there are, and the model is written by a plan that the person applies there and then.

use std::net::IpAddr;

use serde_json::json;

use super::super::config_file;
use super::super::plan::{self, Agreed};
use super::super::{CommandResult, Failure, Paths, load, secret};
use super::grants;
use conductor_api::client::Client;
use conductor_api::types::{GrantRequest, ProposePlan, SetSecret};
use conductor_chat::listing::{AvailableModel, Endpoint};
use conductor_chat::models::ProviderView;
use conductor_config_text::edit::Change;
use conductor_install::store::PackageStore;
use conductor_package::Grants;
use conductor_package::capability::{Capability, CapabilityRequest};
use conductor_services::http::{HostPattern, SecretGrant};
use conductor_terminal::{self as terminal, Table, errln, outln};

/// The secret for a server that a person names.
const ANY_SERVER: &str = "model-key";
/// Models that are shown at once.
const MAX_SHOWN: usize = 30;
/// Bytes of a name under `[models]`.
const MAX_NAME: usize = 64;

#[derive(Debug, clap::Args)]
pub(in super::super) struct AddArguments {
    /// The provider, such as anthropic, gemini, openai, openrouter, litellm or openai-compatible
    provider: String,
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
    let provider = provider(&client, &arguments.provider)?;
    let site = site(&provider, arguments.url.as_deref())?;
    let secret = secret_of(&provider, arguments, &site);
    if let Some(id) = &secret {
        keep_key(&client, id, &site, arguments)?;
    }
    let Some(undo) = allow(places, &client, &provider, &site, secret.as_deref(), &arguments.agreed)? else {
        outln!("nothing is added");
        return Ok(());
    };
    let added = add(places, &client, &provider, secret, arguments);
    if !matches!(added, Ok(Some(_))) {
        // Nothing needs it.
        undo.run(places, &client, feature_of(&provider))?;
    }
    let Some(Added { name, model, is_listed }) = added? else { return Ok(()) };
    let health = client.check_model(&name)?;
    if arguments.agreed.json {
        terminal::json(&json!({ "name": name, "provider": provider.name, "model": model, "check": health }))?;
    } else if health.error.is_none() {
        outln!("{name} answers, after {} ms; talk with it: conductor chat --model {name}", health.took_ms);
    }
    if !is_listed {
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
    /// Whether conversations ask it by default.
    is_listed: bool,
}

/// Has a person choose a model, and apply the plan that adds it. `None` if they don't.
fn add(
    places: &Paths,
    client: &Client,
    provider: &ProviderView,
    secret: Option<String>,
    arguments: &AddArguments,
) -> Result<Option<Added>, Failure> {
    // The provider's own key at its own address needs no word in the configuration.
    let named = secret.filter(|id| arguments.url.is_some() || provider.secret.as_ref() != Some(id));
    let at = Endpoint { url: arguments.url.clone(), secret: named.clone(), api_key_env: None };
    let model = model(client, provider, &at, arguments)?;
    let config = load(&places.config)?.config;
    let is_taken = |name: &str| config.models.contains_key(name);
    let name = match &arguments.name {
        Some(name) if is_taken(name) => {
            return Err(Failure::Wrong(format!(
                "conductor: there is a model {name:?} already; choose another --name, or `conductor models remove {name}`"
            )));
        }
        Some(name) => name.clone(),
        None => free_name(&provider.name, &model.name, is_taken),
    };
    let fields = [("url", &at.url), ("secret", &named)];
    let mut value = json!({ "provider": provider.name, "model": model.name });
    for (key, field) in fields.into_iter().filter_map(|(key, field)| Some((key, field.as_ref()?))) {
        value[key] = json!(field);
    }
    if let Some(context) = model.context.filter(|_| !model.declared) {
        value["context"] = json!(context);
    }
    let description = format!("Add the model {} of {} as {name}", model.name, provider.name);
    let change = Change { path: vec!["models".into(), name.clone()], value: Some(value) };
    let plan = client.propose_plan(&ProposePlan { description, changes: vec![change] })?;
    if !plan::decided(places, &plan.id, &arguments.agreed)? {
        return Ok(None);
    }
    let is_listed = config.chat.models.is_empty() || config.chat.models.contains(&name);
    Ok(Some(Added { name, model: model.name, is_listed }))
}

fn provider(client: &Client, name: &str) -> Result<ProviderView, Failure> {
    let mut all = client.providers()?;
    match all.iter().position(|provider| provider.name == name) {
        Some(at) => Ok(all.swap_remove(at)),
        None => {
            let names: Vec<String> = all.into_iter().map(|provider| provider.name).collect();
            let near = conductor_config::nearest(name, names.iter().map(String::as_str));
            let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            let there =
                if names.is_empty() { "there is none".into() } else { format!("there are {}", names.join(", ")) };
            Err(Failure::Wrong(format!("conductor: there is no provider {name:?}; {there}{near}")))
        }
    }
}

/// The host and port that requests go to.
fn site(provider: &ProviderView, url: Option<&str>) -> Result<HostPattern, Failure> {
    let Some(url) = url.or(provider.url.as_deref()) else {
        return Err(Failure::Wrong(format!("conductor: where {} is asked is not known; say --url", provider.name)));
    };
    let wrong = || Failure::Wrong(format!("conductor: {url:?} is no address of an API; write https://host/path"));
    let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
    if !matches!(scheme, "https" | "http") {
        return Err(wrong());
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.parse().map_err(|_| wrong())
}

/// The id of the key that is sent along. `None` if none is.
fn secret_of(provider: &ProviderView, arguments: &AddArguments, site: &HostPattern) -> Option<String> {
    let host = site.host();
    let is_here = host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
    let own = || {
        provider.secret.clone().filter(|_| arguments.url.as_ref().is_none_or(|url| Some(url) == provider.url.as_ref()))
    };
    let other = || (!is_here || arguments.env.is_some()).then(|| ANY_SERVER.to_owned());
    let any = || provider.secrets.iter().any(|id| id == ANY_SERVER).then(other).flatten();
    arguments.secret.clone().or_else(own).or_else(|| arguments.url.as_ref().and_then(|_| any()))
}

/// Has the host keep the key, unless it has one.
fn keep_key(client: &Client, id: &str, site: &HostPattern, arguments: &AddArguments) -> CommandResult {
    if let Some(variable) = &arguments.env {
        client.set_secret(id, &SetSecret { env: Some(variable.clone()), ..SetSecret::default() })?;
        errln!("{id} is read from {variable} of the environment that the host was started in");
        return Ok(());
    }
    if let Some(place) = client.secrets()?.get(id).filter(|_| !arguments.new_key) {
        errln!("{id} is there already: {place} (--new-key asks for another one)");
        return Ok(());
    }
    let value = secret::value(&format!("The key for {site}, which is not shown"))?;
    let set = client.set_secret(id, &SetSecret { value: Some(value), ..SetSecret::default() })?;
    errln!("{id} is kept in {}", set.place);
    Ok(())
}

/// What takes back a grant.
enum Undo {
    /// The grants that the feature had in the configuration.
    Configuration(Box<Grants>),
    /// What is new for an installed feature, as words of `feature revoke`.
    Installed(Vec<String>),
}

impl Undo {
    fn run(self, places: &Paths, client: &Client, feature: &str) -> CommandResult {
        match self {
            Self::Configuration(before) => {
                let loaded = load(&places.config)?;
                let changes = grants::changes(&loaded.config, feature, &before);
                if !changes.is_empty() {
                    config_file::write(&loaded, &changes)?;
                    client.reload()?;
                }
            }
            Self::Installed(capabilities) if capabilities.is_empty() => {}
            Self::Installed(capabilities) => {
                client.revoke(feature, &GrantRequest { capabilities })?;
            }
        }
        Ok(())
    }
}

/// Lets the provider's feature send requests to the API, with the key, after a person agreed. `None` if the person did not
/// agree.
fn allow(
    places: &Paths,
    client: &Client,
    provider: &ProviderView,
    site: &HostPattern,
    secret: Option<&str>,
    agreed: &Agreed,
) -> Result<Option<Undo>, Failure> {
    let feature = feature_of(provider);
    let with = secret.map(|id| format!(", with the key {id}")).unwrap_or_default();
    let question = format!("Let {} send requests to {site}{with}?", provider.feature);
    if let Some(installed) = PackageStore::at(&places.home).installed()?.features.get(feature) {
        let capabilities = lacking(&installed.current.grants, &provider.network, site, secret);
        if !capabilities.is_empty() {
            if !plan::agrees(&question, agreed)? {
                return Ok(None);
            }
            client.grant(feature, &GrantRequest { capabilities: capabilities.clone() })?;
        }
        return Ok(Some(Undo::Installed(capabilities)));
    }
    let loaded = load(&places.config)?;
    let before = loaded.config.features.get(feature).map(|feature| feature.grants.clone()).unwrap_or_default();
    let mut wanted = before.clone();
    if !wanted.http.contains(site) {
        wanted.http.push(site.clone());
    }
    if let Some(id) = secret {
        match wanted.secrets.iter_mut().find(|grant| grant.id == id) {
            Some(grant) if grant.hosts.contains(site) => {}
            Some(grant) => grant.hosts.push(site.clone()),
            None => wanted.secrets.push(SecretGrant { id: id.to_owned(), hosts: vec![site.clone()] }),
        }
    }
    let changes = grants::changes(&loaded.config, feature, &wanted);
    if !changes.is_empty() {
        if !plan::agrees(&question, agreed)? {
            return Ok(None);
        }
        config_file::write(&loaded, &changes)?;
        client.reload()?;
    }
    Ok(Some(Undo::Configuration(Box::new(before))))
}

/// What an installed feature has to be granted still, as words of `feature grant`: requests to the API, and the key in them.
fn lacking(granted: &[CapabilityRequest], purpose: &str, site: &HostPattern, secret: Option<&str>) -> Vec<String> {
    let mut words = Vec::new();
    let sends = |capability: &Capability| matches!(capability, Capability::Network { purpose: known, http, .. } if known == purpose && http.contains(site));
    if !granted.iter().any(|request| sends(&request.capability)) {
        words.push(format!("network:{purpose}=http:{site}"));
    }
    if let Some(id) = secret {
        let has = |capability: &Capability| matches!(capability, Capability::Secret { id: known, hosts } if known == id && hosts.contains(site));
        if !granted.iter().any(|request| has(&request.capability)) {
            words.push(format!("secret:{id}={site}"));
        }
    }
    words
}

/// The name of a provider's feature, as the configuration has it.
pub(super) fn feature_of(provider: &ProviderView) -> &str {
    provider.feature.rsplit(':').next().unwrap_or(&provider.feature)
}

/// The model: what was named, or what a person chooses of what the API has.
fn model(
    client: &Client,
    provider: &ProviderView,
    at: &Endpoint,
    arguments: &AddArguments,
) -> Result<AvailableModel, Failure> {
    let listed = client.available_models(&provider.name, at);
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

/// Has a person choose: by number, by name, or by a part of names, which shows those that have it.
fn choose(all: &[AvailableModel]) -> Result<AvailableModel, Failure> {
    // Those that are known first: their limits and prices are declared.
    let sorted = |part: &str| {
        let mut shown: Vec<&AvailableModel> = all.iter().filter(|model| model.name.contains(part)).collect();
        shown.sort_by_key(|model| !model.declared);
        shown
    };
    let mut shown = sorted("");
    loop {
        let mut table = Table::new(["", "MODEL", "CONTEXT", ""]);
        for (number, model) in shown.iter().enumerate().take(MAX_SHOWN) {
            let context = model.context.map_or(String::new(), |tokens| tokens.to_string());
            let known = if model.declared { "limits and prices are known" } else { "" };
            table.row([&(number + 1), &model.name, &context, &known]);
        }
        terminal::eprint_table(&table);
        if shown.len() > MAX_SHOWN {
            errln!("and {} more; type a part of a name to see those that have it", shown.len() - MAX_SHOWN);
        }
        let answer = terminal::ask(format_args!("Which one? [number, name, or a part of a name]"))?;
        if answer.is_empty() {
            return Err(Failure::Wrong("conductor: nothing is added".into()));
        }
        let number = answer.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        if let Some(model) = number.and_then(|number| shown.get(number)) {
            return Ok((*model).clone());
        }
        if let Some(model) = all.iter().find(|model| model.name == answer) {
            return Ok(model.clone());
        }
        match sorted(&answer) {
            found if found.is_empty() => errln!("no model has {answer:?} in its name"),
            found => shown = found,
        }
    }
}

/// A name under `[models]` that is not taken: the provider's, else the model's.
fn free_name(provider: &str, model: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let short: String = model.rsplit('/').next().unwrap_or(model).chars().map(plain).take(MAX_NAME - 4).collect();
    let numbered = (2..).map(|number| format!("{short}-{number}"));
    let mut names = [provider.to_owned(), short.clone()].into_iter().chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> ProviderView {
        ProviderView {
            name: "anthropic".into(),
            summary: String::new(),
            feature: "builtin:anthropic".into(),
            network: "chat".into(),
            url: Some("https://api.anthropic.com".into()),
            secret: Some("anthropic-key".into()),
            secrets: vec!["anthropic-key".into(), ANY_SERVER.into()],
        }
    }

    fn arguments(line: &[&str]) -> AddArguments {
        #[derive(Debug, clap::Parser)]
        struct Line {
            #[command(flatten)]
            arguments: AddArguments,
        }
        <Line as clap::Parser>::parse_from([&["add"], line].concat()).arguments
    }

    #[test]
    fn the_apis_own_key_goes_to_its_own_address_and_none_to_this_computer_unless_it_is_named() {
        let of = |line: &[&str]| {
            let arguments = arguments(line);
            let site = site(&view(), arguments.url.as_deref()).map_err(|_| "no address").unwrap();
            (site.to_string(), secret_of(&view(), &arguments, &site))
        };
        let is = |site: &str, secret: Option<&str>| (site.to_owned(), secret.map(str::to_owned));
        assert_eq!(of(&["anthropic"]), is("api.anthropic.com", Some("anthropic-key")));
        assert_eq!(of(&["anthropic", "--url", "http://localhost:1234/v1"]), is("localhost:1234", None));
        let named = ["anthropic", "--url", "http://localhost:1234", "--secret", "model-key"];
        assert_eq!(of(&named), is("localhost:1234", Some("model-key")));
        assert_eq!(of(&["anthropic", "--url", "https://llm.example.com"]), is("llm.example.com", Some("model-key")));
        for wrong in ["localhost", "ftp://x", "https://", "https://a b"] {
            assert!(site(&view(), Some(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_is_the_providers_then_the_models_then_a_number() {
        let free = |taken: &[&str]| free_name("openrouter", "vendor/model.1:free", |name| taken.contains(&name));
        assert_eq!(free(&[]), "openrouter");
        assert_eq!(free(&["openrouter"]), "model-1-free");
        assert_eq!(free(&["openrouter", "model-1-free"]), "model-1-free-2");
    }
}
