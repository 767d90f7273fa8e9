//! A mock of the network for HTTP: requests are recorded, and responses come from a script.

use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use conductor_services::http::network::{Answer, Incoming, NetworkError, Outgoing};
use conductor_services::http::secrets::{Secret, SecretError};
use conductor_services::http::{Network, Secrets};

/// What a host would answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptedAnswer {
    /// The whole URL that it answers.
    url: String,
    /// 200-599.
    status: u16,
    /// Names in lower case, and values.
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// The body.
    #[serde(default)]
    body: String,
}

/// A request that was not sent.
#[derive(Debug, Clone, Serialize)]
pub(super) struct RecordedRequest {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// Answers as configured, and records the requests.
#[derive(Debug, Clone, Default)]
pub(super) struct ScriptedHttp {
    answers: Arc<Vec<ScriptedAnswer>>,
    asked: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl ScriptedHttp {
    pub(super) fn new(answers: Vec<ScriptedAnswer>) -> Self {
        Self { answers: Arc::new(answers), asked: Arc::default() }
    }

    /// Everything that was asked, secrets included: they are made up.
    pub(super) fn asked(&self) -> Vec<RecordedRequest> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RecordedRequest>> {
        self.asked.lock()
    }
}

impl Network for ScriptedHttp {
    fn resolve<'a>(&'a self, host: &'a str) -> Answer<'a, io::Result<Vec<IpAddr>>> {
        // Where `localhost` leads is known; any other name stands for a made-up public address.
        let address = if host == "localhost" { Ipv4Addr::LOCALHOST } else { Ipv4Addr::new(8, 8, 8, 8) };
        Box::pin(async move { Ok(vec![address.into()]) })
    }

    fn exchange(&self, request: Outgoing) -> Answer<'_, Result<Incoming, NetworkError>> {
        let text = |value: &reqwest::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        self.lock().push(RecordedRequest {
            method: request.method.to_string(),
            url: request.url.to_string(),
            headers: request.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
            body: String::from_utf8_lossy(&request.body).into_owned(),
        });
        let answer = self.answers.iter().find(|answer| answer.url == request.url.as_str()).cloned();
        Box::pin(async move {
            let Some(answer) = answer else {
                return Err(NetworkError::Unreachable(format!("no answer was scripted for {}", request.url)));
            };
            let header = |(name, value): &(String, String)| Some((name.parse().ok()?, value.parse().ok()?));
            Ok(Incoming {
                status: answer.status,
                headers: answer.headers.iter().filter_map(header).collect(),
                body: Box::pin(tokio_stream::once(Ok(answer.body.into()))),
            })
        })
    }
}

/// Every secret is set, to something made up.
#[derive(Debug)]
pub(super) struct FakeSecrets;

impl Secrets for FakeSecrets {
    fn get(&self, id: &str) -> Result<Secret, SecretError> {
        Secret::new(id, format!("made-up-{id}"))
    }
}
