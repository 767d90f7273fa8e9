//! What requests to all APIs share: addresses, headers, secrets, ids.

use std::borrow::Cow;

use conductor_feature::Error;
use conductor_feature::chat::{Part, Question};
use conductor_feature::provider::{Endpoint, Outgoing, Secret};
use serde_json::Value;

/// Bytes of a request's body; the host sends no more.
const MAX_BODY: usize = 4 * 1024 * 1024;

/// An API that is asked where nothing else is configured.
#[derive(Debug, Clone, Copy)]
pub struct Home {
    /// The base URL, without `/` at its end.
    pub url: &'static str,
    /// The secret that it is asked with. `None` if it needs none.
    pub secret: Option<&'static str>,
    /// The header for the secret, in lower case.
    pub header: &'static str,
    /// What stands before the secret in the header.
    pub prefix: &'static str,
}

impl Home {
    /// The base URL of `endpoint`, without `/` at its end.
    pub fn base(self, endpoint: &Endpoint) -> &str {
        endpoint.url.as_deref().unwrap_or(self.url).trim_end_matches('/')
    }

    /// Whether `endpoint` is this API itself, and no other server that speaks like it.
    pub fn is_asked(self, endpoint: &Endpoint) -> bool {
        let host = |url: &str| url.split('/').nth(2).unwrap_or_default().to_ascii_lowercase();
        endpoint.url.as_deref().is_none_or(|url| url.starts_with("https://") && host(url) == host(self.url))
    }

    /// The request. The API's own secret goes to the API alone; another server gets one that the configuration names.
    ///
    /// # Errors
    /// `Invalid` if the body has more than 4 MiB.
    pub fn post(
        self,
        endpoint: &Endpoint,
        url: String,
        headers: &[(&str, &str)],
        stream: bool,
        body: &Value,
    ) -> Result<Outgoing, Error> {
        let own = self.secret.filter(|_| self.is_asked(endpoint)).map(str::to_owned);
        let secret = endpoint.secret.clone().or(own);
        let accept = if stream { "text/event-stream" } else { "application/json" };
        let all = [("content-type", "application/json"), ("accept", accept)];
        let body = body.to_string().into_bytes();
        if body.len() > MAX_BODY {
            return Err(Error::Invalid(format!(
                "the question has {} bytes; at most {MAX_BODY} can be sent: begin another conversation, or leave pictures out",
                body.len()
            )));
        }
        Ok(Outgoing {
            method: "POST".into(),
            url,
            headers: all.iter().chain(headers).map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            body,
            secret: secret.map(|id| Secret { id, header: self.header.into(), prefix: self.prefix.into() }),
        })
    }
}

/// Tool calls in the conversation so far: ids that are made up count on from there, so that each is unique in it.
pub fn calls_before(question: &Question) -> usize {
    let is_call = |part: &&Part| matches!(part, Part::ToolCall(_));
    question.messages.iter().map(|message| message.parts.iter().filter(is_call).count()).sum()
}

/// The id for a call of an API that gives none: the `number`-th in the conversation.
pub fn made_up_id(number: usize) -> String {
    format!("call-{number}")
}

/// Whether an id is from [`made_up_id`].
pub fn is_made_up(id: &str) -> bool {
    id.strip_prefix("call-")
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// An id of letters, digits, `_` and `-` alone, which every API takes; the same for the same id.
pub fn plain_id(id: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !id.is_empty() && id.chars().all(is_plain) {
        return Cow::Borrowed(id);
    }
    let plain: String = id.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    Cow::Owned(if plain.is_empty() { "_".into() } else { plain })
}

/// The part of a mark after `prefix`. A mark of another provider is not handed to this one: the model may have been
/// changed in the middle of a conversation.
pub fn own_mark<'m>(mark: &'m Option<String>, prefix: &str) -> Option<&'m str> {
    mark.as_deref()?.strip_prefix(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: Home =
        Home { url: "https://api.example/v1", secret: Some("example-key"), header: "authorization", prefix: "Bearer " };

    fn endpoint(url: &str) -> Endpoint {
        Endpoint { url: Some(url.into()), secret: None }
    }

    #[test]
    fn an_apis_own_secret_goes_to_the_api_alone() {
        let secret = |endpoint: &Endpoint| {
            let sent = HOME.post(endpoint, String::new(), &[], true, &Value::Null).unwrap();
            sent.secret.map(|secret| secret.id)
        };
        assert_eq!(secret(&Endpoint { url: None, secret: None }).as_deref(), Some("example-key"));
        assert_eq!(secret(&endpoint("https://API.example/v2/")).as_deref(), Some("example-key"));
        for other in [
            "http://api.example/v1",
            "https://api.example.evil/v1",
            "https://evil/api.example",
            "http://localhost:1/v1",
        ] {
            assert_eq!(secret(&endpoint(other)), None, "{other}");
        }
        let told = Endpoint { secret: Some("mine".into()), ..endpoint("http://localhost:1") };
        assert_eq!(secret(&told).as_deref(), Some("mine"));
    }

    #[test]
    fn a_question_that_is_too_large_is_refused_before_it_is_sent() {
        let body = Value::String("x".repeat(MAX_BODY));
        let refused = HOME.post(&endpoint("https://api.example"), String::new(), &[], true, &body);
        assert!(matches!(refused, Err(Error::Invalid(_))));
    }

    #[test]
    fn ids_are_plain_and_unique() {
        assert!(is_made_up(&made_up_id(3)) && !is_made_up("call-") && !is_made_up("call-x") && !is_made_up("call_3"));
        assert_eq!((plain_id("a-b_1"), plain_id("a:b/ü")), (Cow::from("a-b_1"), Cow::from("a_b__")));
        assert_eq!(plain_id(""), "_");
    }
}
