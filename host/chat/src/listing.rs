//! Which models an API has: asked as the provider declares it, with the guarded request of every exchange.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use conductor_package::provider::{Listing, ProviderDeclaration};
use conductor_registry::Provider;
use conductor_sandbox::bindings::Error;
use conductor_services::http::{Request, Response, SecretUse};
use conductor_terminal::excerpt;

/// Models of one API that are taken.
pub const MAX_LISTED: usize = 2000;
/// Bytes of a model's name.
const MAX_NAME: usize = 128;
/// Bytes of what a server says of why it does not answer.
const MAX_SAID: usize = 300;

/// Where an API is, and with which key it is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// The base URL. Default: the provider's own.
    #[serde(default)]
    pub url: Option<String>,
    /// The id of the secret. Default: the provider's own at its own address, none at any other.
    #[serde(default)]
    pub secret: Option<String>,
    /// The variable of the host's environment that has the secret's value. Default: it is where secrets are kept.
    #[serde(default)]
    pub api_key_env: Option<String>,
}

/// A model that an API has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AvailableModel {
    /// As the API calls it.
    pub name: String,
    /// Tokens of a question and its answer together, as the API says. `None` if it does not.
    pub context: Option<u32>,
    /// Whether the provider's feature declares it: its limits and prices are known.
    pub declared: bool,
}

/// Asks which models there are.
pub(crate) async fn available(
    provider: &Provider,
    declared: &ProviderDeclaration,
    at: &Endpoint,
) -> Result<Vec<AvailableModel>, Error> {
    let name = &declared.name;
    let Some(listing) = &declared.listing else {
        return Err(Error::Unavailable(format!("the provider {name} does not say how its API lists models; name one")));
    };
    let facts = provider.feature.facts();
    let scope = facts.http_scope(&provider.network)?;
    let request = request(listing, at);
    let url = request.url.clone();
    // On the threads of every exchange, so that connections can be used again.
    let feature = provider.feature.clone();
    let asked = feature.runtime().clone().spawn(async move {
        let facts = feature.facts();
        facts.services.http.send(&facts.http_account, &scope, request, facts.ended()).await
    });
    let answer = asked.await.map_err(|_| Error::Failed("it could not be asked".into()))??;
    let models = read(listing, &answer).map_err(|why| Error::Failed(format!("{url}: {why}")))?;
    let models = models.into_iter().map(|(name, context)| AvailableModel {
        declared: declared.model(&name).is_some(),
        name,
        context,
    });
    Ok(models.collect())
}

fn request(listing: &Listing, at: &Endpoint) -> Request {
    let base = at.url.as_deref().unwrap_or(&listing.url).trim_end_matches('/');
    // `/v1` may stand in both.
    let version = listing.path.get(..3).filter(|version| *version == "/v1");
    let base = version.and_then(|version| base.strip_suffix(version)).unwrap_or(base);
    let own = listing.secret.clone().filter(|_| is_own(listing, at));
    let secret = at.secret.clone().or(own).map(|id| SecretUse {
        id,
        header: listing.header.clone(),
        prefix: listing.prefix.clone(),
    });
    let headers = listing.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
    Request {
        method: "GET".into(),
        url: format!("{base}{}", listing.path),
        headers: headers.chain([("accept".to_owned(), "application/json".to_owned())]).collect(),
        body: Vec::new(),
        secret,
        variable: at.api_key_env.clone(),
    }
}

/// Whether the API itself is asked, and no other server that speaks like it.
fn is_own(listing: &Listing, at: &Endpoint) -> bool {
    let host = |url: &str| url.split('/').nth(2).unwrap_or_default().to_ascii_lowercase();
    at.url.as_deref().is_none_or(|url| url.starts_with("https://") && host(url) == host(&listing.url))
}

/// The names of an answer, each with its context.
fn read(listing: &Listing, answer: &Response) -> Result<Vec<(String, Option<u32>)>, String> {
    let said = || excerpt(&String::from_utf8_lossy(&answer.body), MAX_SAID);
    match answer.status {
        200..=299 => {}
        401 | 403 => return Err(format!("the key is refused (status {}): {}", answer.status, said())),
        status => return Err(format!("status {status}: {}", said())),
    }
    let body: Value =
        serde_json::from_slice(&answer.body).map_err(|_| format!("the answer is not JSON: {}", said()))?;
    let no_list = || format!("the answer has no list under {:?}: {}", listing.list, said());
    let list = body.get(&listing.list).and_then(Value::as_array).ok_or_else(no_list)?;
    let mut models: Vec<(String, Option<u32>)> = Vec::new();
    for entry in list.iter().take(MAX_LISTED) {
        if let Some((key, wanted)) = &listing.only
            && let Some(Value::Array(all)) = entry.get(key)
            && !all.iter().any(|one| one == wanted.as_str())
        {
            continue;
        }
        let Some(name) = entry.get(&listing.name).and_then(Value::as_str) else { continue };
        let name = name.strip_prefix(listing.strip.as_str()).unwrap_or(name);
        let is_plain = !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(|c| c.is_ascii_graphic());
        if is_plain && !models.iter().any(|(known, _)| known == name) {
            let context = listing.context.as_ref().and_then(|key| entry.get(key)).and_then(Value::as_u64);
            let context = context.and_then(|tokens| u32::try_from(tokens).ok()).filter(|tokens| *tokens > 0);
            models.push((name.to_owned(), context));
        }
    }
    if models.is_empty() {
        return Err("the API lists no model".to_owned());
    }
    models.sort();
    Ok(models)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing() -> Listing {
        serde_json::from_value(serde_json::json!({
            "url": "https://api.example.com", "path": "/v1/models?limit=1000", "secret": "example-key",
            "header": "x-api-key", "headers": { "version": "1" }, "list": "data", "name": "id", "strip": "models/",
            "context": "size", "only": ["does", "chat"],
        }))
        .unwrap()
    }

    fn answer(status: u16, body: &str) -> Response {
        Response { status, headers: Vec::new(), body: body.into() }
    }

    #[test]
    fn the_apis_own_key_goes_to_the_api_alone() {
        let own = request(&listing(), &Endpoint::default());
        assert_eq!(own.url, "https://api.example.com/v1/models?limit=1000");
        assert_eq!(
            own.secret.map(|secret| (secret.id, secret.header)),
            Some(("example-key".into(), "x-api-key".into()))
        );
        let at = |url: &str| Endpoint { url: Some(url.into()), ..Endpoint::default() };
        let other = request(&listing(), &at("http://localhost:1/v1/"));
        assert_eq!((&*other.url, other.secret), ("http://localhost:1/v1/models?limit=1000", None));
        let named = Endpoint { secret: Some("model-key".into()), ..at("http://localhost:1") };
        assert_eq!(request(&listing(), &named).secret.map(|secret| secret.id), Some("model-key".into()));
    }

    #[test]
    fn models_that_can_be_talked_with_are_listed_once_by_their_names() {
        let body = r#"{"data": [{"id": "models/b", "size": 9, "does": ["chat", "x"]}, {"id": "a"}, {"id": "b"},
            {"id": "embed", "does": ["embed"]}, {"id": 1}, {"id": "with blank"}, {}]}"#;
        let models = read(&listing(), &answer(200, body)).unwrap();
        assert_eq!(models, [("a".to_owned(), None), ("b".to_owned(), Some(9))]);
    }

    #[test]
    fn what_is_no_list_is_told_with_what_came() {
        let refused = |status, body: &str| read(&listing(), &answer(status, body)).unwrap_err();
        assert!(refused(401, "no").contains("the key is refused (status 401): no"));
        assert!(refused(500, "oh\u{1b}[2J").contains("status 500"));
        assert!(!refused(500, "oh\u{1b}[2J").contains('\u{1b}'));
        assert!(refused(200, "<html>").contains("not JSON: <html>"));
        assert!(refused(200, "{}").contains("no list under \"data\""));
        assert!(refused(200, r#"{"data": []}"#).contains("no model"));
    }
}
