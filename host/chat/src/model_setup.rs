//! Adding and removing models: what the feature of a provider has to be granted for requests to an API, the change of the
//! configuration that adds a model or removes one, and what no other model needs then. Nothing is changed here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::completion::is_here;
use super::listing::Endpoint;
use super::models::{Models, ProviderView};
use conductor_config::{self as config, nearest};
use conductor_config_text::edit::Change;
use conductor_package::Grants;
use conductor_sandbox::bindings::Error;
use conductor_services::http::{self, HostPattern};

/// The secret for a server that a person names.
const ANY_SERVER: &str = "model-key";
/// Bytes of a name under `[models]` that is made of a model's.
const MAX_NAME: usize = 60;

/// What requests to an API of models take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelAccess {
    /// The name of the provider's feature.
    pub feature: String,
    /// The host that requests go to, with its port if it is not the scheme's own: `api.example.com`, `localhost:8080`.
    pub site: String,
    /// The id of the key that is sent along; `null` if none is.
    pub secret: Option<String>,
    /// What the feature lacks of it, as words of `POST /v1/features/{name}/grant`.
    pub capabilities: Vec<String>,
}

/// A model to be added.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewModel {
    /// The provider, such as `anthropic`.
    pub provider: String,
    /// The model, as the API calls it.
    pub model: String,
    /// Its name under `[models]`. Default: the provider's; if that is taken, or `url` is not the provider's own address,
    /// one made of the model's.
    #[serde(default)]
    pub name: Option<String>,
    /// The base URL of the API. Default: the provider's own.
    #[serde(default)]
    pub url: Option<String>,
    /// The id of the key. Default: the provider's own at its own address, none at any other.
    #[serde(default)]
    pub secret: Option<String>,
    /// Tokens of a question and its answer together, where the API said so and the feature does not know.
    #[serde(default)]
    pub context: Option<u32>,
}

/// A change of the models, to be proposed as a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelChange {
    /// The name under `[models]`.
    pub name: String,
    /// What it does, in a line.
    pub description: String,
    /// The change of the configuration.
    pub change: Change,
}

/// What only one model needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// The id of its key.
    pub secret: Option<String>,
    /// The name of its provider's feature.
    pub feature: Option<String>,
    /// What that feature has been granted for its API alone, as words of `POST /v1/features/{name}/revoke`.
    pub capabilities: Vec<String>,
}

impl Models {
    /// What requests to the API of `provider` at `at` take, and what of it its feature lacks.
    ///
    /// # Errors
    /// `Invalid`: no such provider, no address is known, or it is not the address of an API.
    pub fn access(&self, provider: &str, at: &Endpoint) -> Result<ModelAccess, Error> {
        let view = self.provider_view(provider)?;
        let site = site(&view, at.url.as_deref())?;
        let secret = secret_of(&view, at);
        let capabilities = lacking(&self.provider_grants(&view.name), &view.network, &site, secret.as_deref());
        Ok(ModelAccess { feature: feature_of(&view).to_owned(), site: site.to_string(), secret, capabilities })
    }

    /// The change that adds a model.
    ///
    /// # Errors
    /// `Invalid`: no such provider, its address is not one of an API, or the name is taken.
    pub fn adding(&self, new: &NewModel) -> Result<ModelChange, Error> {
        let view = self.provider_view(&new.provider)?;
        if new.url.is_some() {
            site(&view, new.url.as_deref())?;
        }
        let name = match &new.name {
            Some(name) if self.configured().contains_key(name) => {
                return Err(Error::Invalid(format!(
                    "there is a model {name:?} already; choose another name, or `conductor models remove {name}`"
                )));
            }
            Some(name) => name.clone(),
            None => {
                let of_provider = is_own(&view, new.url.as_deref()).then_some(view.name.as_str());
                free_name(of_provider, &new.model, |name| self.configured().contains_key(name))
            }
        };
        // The provider's own key at its own address needs no line in the configuration.
        let secret = new.secret.as_ref().filter(|id| new.url.is_some() || view.secret.as_ref() != Some(id));
        let mut value = json!({ "provider": view.name, "model": new.model });
        for (key, field) in [("url", new.url.as_ref()), ("secret", secret)] {
            if let Some(field) = field {
                value[key] = json!(field);
            }
        }
        if let Some(context) = new.context {
            value["context"] = json!(context);
        }
        let description = format!("Add the model {} of {} as {name}", new.model, view.name);
        let change = Change { path: vec!["models".into(), name.clone()], value: Some(value) };
        Ok(ModelChange { name, description, change })
    }

    /// The change that removes a model, and what no other model needs after it.
    ///
    /// # Errors
    /// `Invalid`: there is no such model, or `[chat]` names it, which no plan changes.
    pub fn removing(&self, name: &str) -> Result<(ModelChange, Leftovers), Error> {
        let Some(model) = self.configured().get(name) else {
            let near = did_you_mean(name, self.configured().keys());
            return Err(Error::Invalid(format!("there is no model {name:.64?} under [models]{near}")));
        };
        if self.chat().models.iter().any(|one| one == name) {
            return Err(Error::Invalid(format!(
                "`models` under [chat] names {name}; take it out there first: no plan changes [chat]"
            )));
        }
        let path = std::iter::once("models").chain((self.configured().len() > 1).then_some(name));
        let change = Change { path: path.map(str::to_owned).collect(), value: None };
        let description = format!("Remove the model {name}");
        Ok((ModelChange { name: name.to_owned(), description, change }, self.leftovers(name, model)))
    }

    /// What of a model's access no other model needs.
    fn leftovers(&self, name: &str, model: &config::Model) -> Leftovers {
        let others = self.configured().iter().filter(|(other, _)| *other != name);
        let others: Vec<Known<'_>> = others.map(|(_, other)| self.known(other)).collect();
        left_by(&self.known(model), &others, &self.provider_grants(&model.provider))
    }

    fn known<'m>(&self, model: &'m config::Model) -> Known<'m> {
        Known { model, provider: self.provider_view(&model.provider).ok() }
    }

    /// A provider by its name.
    ///
    /// # Errors
    /// `Invalid`, with the names that there are, and the one that was probably meant.
    pub fn provider_view(&self, name: &str) -> Result<ProviderView, Error> {
        let all = self.providers();
        let names: Vec<String> = all.iter().map(|provider| provider.name.clone()).collect();
        all.into_iter().find(|provider| provider.name == name).ok_or_else(|| {
            let near = did_you_mean(name, &names);
            let there =
                if names.is_empty() { "there is none".into() } else { format!("there are {}", names.join(", ")) };
            Error::Invalid(format!("there is no provider {name:.64?}; {there}{near}"))
        })
    }
}

/// A model of the configuration, and its provider. `None` if no feature in force has it.
struct Known<'m> {
    model: &'m config::Model,
    provider: Option<ProviderView>,
}

impl Known<'_> {
    /// The id of the key that it is asked with.
    fn key(&self) -> Option<String> {
        let own = || {
            let provider = self.provider.as_ref()?;
            provider.secret.clone().filter(|_| is_own(provider, self.model.url.as_deref()))
        };
        self.model.secret.clone().or_else(own)
    }

    /// The feature that asks it, and where.
    fn place(&self) -> Option<(&ProviderView, HostPattern)> {
        let provider = self.provider.as_ref()?;
        Some((provider, site(provider, self.model.url.as_deref()).ok()?))
    }
}

/// What no other model needs when one is removed. `grants` are those of its provider's feature.
fn left_by(removed: &Known<'_>, others: &[Known<'_>], grants: &Grants) -> Leftovers {
    let secret = removed.key().filter(|id| !others.iter().any(|other| other.key().as_ref() == Some(id)));
    let mut left = Leftovers { secret, ..Leftovers::default() };
    let Some((provider, site)) = removed.place() else { return left };
    let is_there =
        |other: &Known<'_>| other.place().is_some_and(|(other, at)| other.feature == provider.feature && at == site);
    if grants.http.contains(&site) && !others.iter().any(is_there) {
        left.capabilities.push(network_word(&provider.network, &site));
        let of_site = grants.secrets.iter().filter(|secret| secret.hosts.contains(&site));
        left.capabilities.extend(of_site.map(|secret| secret_word(&secret.id, &site)));
        left.feature = Some(feature_of(provider).to_owned());
    }
    left
}

fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a String>) -> String {
    let near = nearest(name, known.into_iter().map(String::as_str));
    near.map(|near| format!("; did you mean {near}?")).unwrap_or_default()
}

/// The name of a provider's feature, as the configuration has it.
fn feature_of(provider: &ProviderView) -> &str {
    provider.feature.rsplit(':').next().unwrap_or(&provider.feature)
}

/// The host and port that requests go to.
fn site(provider: &ProviderView, url: Option<&str>) -> Result<HostPattern, Error> {
    let Some(url) = url.or(provider.url.as_deref()) else {
        return Err(Error::Invalid(format!("no address of {} is known; name its base URL", provider.name)));
    };
    let site =
        http::site_of(url).map_err(|error| Error::Invalid(format!("{url:.200?} is no address of an API: {error}")))?;
    Ok(HostPattern::from(&site))
}

/// The id of the key that is sent along: the one that is named, else the provider's own at its own address, else the one
/// for any server. `None` for a server on this computer, unless a variable holds its key.
fn secret_of(provider: &ProviderView, at: &Endpoint) -> Option<String> {
    if at.secret.is_some() {
        return at.secret.clone();
    }
    match at.url.as_deref() {
        Some(url) if !is_own(provider, Some(url)) => {
            let is_asked = !is_here(url) || at.api_key_env.is_some();
            provider.secrets.iter().find(|id| *id == ANY_SERVER).filter(|_| is_asked).cloned()
        }
        _ => provider.secret.clone(),
    }
}

/// Whether requests go to the API itself, however its address is written: its provider sends its own key there.
fn is_own(provider: &ProviderView, url: Option<&str>) -> bool {
    let to_own = |url| matches!((site(provider, Some(url)), site(provider, None)), (Ok(to), Ok(own)) if to == own);
    url.is_none_or(to_own)
}

fn network_word(purpose: &str, site: &HostPattern) -> String {
    format!("network:{purpose}=http:{site}")
}

fn secret_word(id: &str, site: &HostPattern) -> String {
    format!("secret:{id}={site}")
}

/// What a feature lacks: requests to the API, and the key in them.
fn lacking(grants: &Grants, purpose: &str, site: &HostPattern, secret: Option<&str>) -> Vec<String> {
    let sends = grants.http.contains(site);
    let mut words: Vec<String> = (!sends).then(|| network_word(purpose, site)).into_iter().collect();
    if let Some(id) = secret
        && !grants.secrets.iter().any(|grant| grant.id == id && grant.hosts.contains(site))
    {
        words.push(secret_word(id, site));
    }
    words
}

/// A name under `[models]` that is not taken: the provider's, where its own API is asked; else the model's, else the
/// model's with a number.
fn free_name(provider: Option<&str>, model: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let short: String = model.rsplit('/').next().unwrap_or(model).chars().map(plain).take(MAX_NAME).collect();
    // What of it can't stand in a name is a hyphen, and a name of hyphens alone says nothing.
    let short = if short.chars().all(|c| c == '-') { "model".to_owned() } else { short };
    let numbered = (2..).map(|number| format!("{short}-{number}"));
    let mut names = provider.map(str::to_owned).into_iter().chain([short.clone()]).chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_services::http::SecretGrant;

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

    #[test]
    fn the_apis_own_key_goes_to_its_own_address_and_none_to_this_computer_unless_it_is_named() {
        let of = |url: Option<&str>, secret: Option<&str>, env: Option<&str>| {
            let [url, secret, api_key_env] = [url, secret, env].map(|text| text.map(str::to_owned));
            let at = Endpoint { url, secret, api_key_env };
            (site(&view(), at.url.as_deref()).unwrap().to_string(), secret_of(&view(), &at))
        };
        let is = |site: &str, secret: Option<&str>| (site.to_owned(), secret.map(str::to_owned));
        assert_eq!(of(None, None, None), is("api.anthropic.com", Some("anthropic-key")));
        // However it is written: the provider goes by its host, too.
        for own in ["https://api.anthropic.com", "https://api.anthropic.com/", "https://API.anthropic.com/v1"] {
            assert_eq!(of(Some(own), None, None), is("api.anthropic.com", Some("anthropic-key")), "{own}");
        }
        let here = Some("http://localhost:1234/v1");
        assert_eq!(of(here, None, None), is("localhost:1234", None));
        assert_eq!(of(here, None, Some("KEY")), is("localhost:1234", Some("model-key")));
        assert_eq!(of(here, Some("model-key"), None), is("localhost:1234", Some("model-key")));
        let elsewhere = Some("https://llm.example.com");
        assert_eq!(of(elsewhere, None, None), is("llm.example.com", Some("model-key")));
        // The last two would be shown as a host that they don't lead to, and send a key where everybody reads it.
        let not_addresses = ["localhost", "ftp://x", "https://", "https://a b", "https://*"];
        let misleading = ["https://api.anthropic.com@example.com", "http://api.example.com"];
        for wrong in not_addresses.into_iter().chain(misleading) {
            let refused = format!("{:?}", site(&view(), Some(wrong)).unwrap_err());
            assert!(refused.contains("is no address of an API"), "{wrong}: {refused}");
        }
    }

    // LLM-6: no key and no grant is taken away that another model is asked with.
    #[test]
    fn what_another_model_needs_is_not_left_over() {
        fn known(model: &config::Model) -> Known<'_> {
            Known { model, provider: Some(view()) }
        }
        let model = |url: Option<&str>, secret: Option<&str>| {
            let [url, secret] = [url, secret].map(|text| text.map(str::to_owned));
            config::Model { provider: "anthropic".into(), model: "m".into(), url, secret, ..config::Model::default() }
        };
        let site: HostPattern = "api.anthropic.com".parse().unwrap();
        let mut grants = Grants::default();
        grants.http.push(site.clone());
        grants.secrets.push(SecretGrant { id: "anthropic-key".into(), hosts: vec![site] });
        let removed = model(None, None);
        let left = |other: &config::Model| left_by(&known(&removed), &[known(other)], &grants);
        let alone = left_by(&known(&removed), &[], &grants);
        let expected = Leftovers {
            secret: Some("anthropic-key".into()),
            feature: Some("anthropic".into()),
            capabilities: vec![
                "network:chat=http:api.anthropic.com".into(),
                "secret:anthropic-key=api.anthropic.com".into(),
            ],
        };
        assert_eq!(alone, expected);
        assert_eq!(left(&model(Some("https://llm.example.com"), None)), expected);
        for same in [None, Some("https://api.anthropic.com/"), Some("https://api.anthropic.com/v1")] {
            assert_eq!(left(&model(same, None)), Leftovers::default(), "{same:?}");
        }
        let with_the_key = left(&model(Some("https://llm.example.com"), Some("anthropic-key")));
        assert_eq!(with_the_key, Leftovers { secret: None, ..expected.clone() });
        // Its feature is switched off for now.
        let elsewhere = model(Some("https://llm.example.com"), Some("anthropic-key"));
        let without = Known { model: &elsewhere, provider: None };
        assert_eq!(left_by(&known(&removed), &[without], &grants).secret, None);
    }

    #[test]
    fn what_is_lacking_is_what_is_not_granted_for_just_this_site() {
        let site: HostPattern = "api.example.com".parse().unwrap();
        let (network, secret) = ("network:chat=http:api.example.com", "secret:key=api.example.com");
        let mut grants = Grants::default();
        assert_eq!(lacking(&grants, "chat", &site, Some("key")), [network, secret]);
        assert_eq!(lacking(&grants, "chat", &site, None), [network]);
        grants.http.push(site.clone());
        grants.secrets.push(SecretGrant { id: "key".into(), hosts: vec!["other.example.com".parse().unwrap()] });
        assert_eq!(lacking(&grants, "chat", &site, Some("key")), [secret]);
        grants.secrets[0].hosts.push(site.clone());
        assert!(lacking(&grants, "chat", &site, Some("key")).is_empty());
    }

    #[test]
    fn a_name_is_the_providers_then_the_models_then_a_number() {
        let free = |taken: &[&str]| free_name(Some("anthropic"), "vendor/model.1:free", |name| taken.contains(&name));
        assert_eq!(free(&[]), "anthropic");
        assert_eq!(free(&["anthropic"]), "model-1-free");
        assert_eq!(free(&["anthropic", "model-1-free"]), "model-1-free-2");
        for nameless in ["", "vendor/", "模型"] {
            assert_eq!(free_name(Some("anthropic"), nameless, |name| name == "anthropic"), "model");
        }
        // Who answers at another address than the provider's own, its name does not say.
        assert_eq!(free_name(None, "qwen3:8b", |_| false), "qwen3-8b");
        assert_eq!(free_name(None, "qwen3:8b", |name| name == "qwen3-8b"), "qwen3-8b-2");
    }
}
