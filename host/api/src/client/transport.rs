//! How a request of the client gets to the host, and its answer back: HTTP/1.1 over the socket of the home.

use std::path::Path;

use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::http::request::Builder;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{AskError, failed};
use crate::error::ApiError;

/// Bytes of an answer, or of a line of the event stream, that are read. The longest that a host sends is a tool's
/// result or a configuration, a few MiB.
const MAX_ANSWER: usize = 256 * 1024 * 1024;

/// Asks with GET.
pub(super) async fn get<T: DeserializeOwned>(home: &Path, path: &str) -> Result<T, AskError> {
    answer(send(home, Request::get(path), Bytes::new()).await?, MAX_ANSWER).await
}

/// Asks with POST and a body of JSON.
pub(super) async fn post<T: DeserializeOwned>(home: &Path, path: &str, body: &impl Serialize) -> Result<T, AskError> {
    let body = serde_json::to_vec(body).map_err(failed)?;
    let request = Request::post(path).header("content-type", "application/json");
    answer(send(home, request, body.into()).await?, MAX_ANSWER).await
}

/// Calls `each` with every line of an answer that has no end, until it returns false or the host stops. It is called
/// outside of the runtime, so that it may ask the host, too.
pub(super) fn lines<T: DeserializeOwned>(
    home: &Path,
    path: &str,
    mut each: impl FnMut(T) -> bool,
) -> Result<(), AskError> {
    let runtime = runtime()?;
    let mut lines = runtime.block_on(Lines::open(home, path))?;
    while let Some(line) = runtime.block_on(lines.next())? {
        if !each(serde_json::from_slice(&line).map_err(failed)?) {
            break;
        }
    }
    Ok(())
}

/// The lines of an answer as they come.
struct Lines {
    body: Incoming,
    pending: Vec<u8>,
}

impl Lines {
    async fn open(home: &Path, path: &str) -> Result<Self, AskError> {
        let response = send(home, Request::get(path), Bytes::new()).await?;
        if !response.status().is_success() {
            return Err(refusal(response, MAX_ANSWER).await);
        }
        Ok(Self { body: response.into_body(), pending: Vec::new() })
    }

    /// The next line. `None` if the host stops.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, AskError> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                return Ok(Some(self.pending.drain(..=end).collect()));
            }
            if self.pending.len() > MAX_ANSWER {
                return Err(too_long(MAX_ANSWER));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            if let Ok(data) = frame.map_err(failed)?.into_data() {
                self.pending.extend_from_slice(&data);
            }
        }
    }
}

/// Waits for what the host answers, on this thread.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, AskError>>) -> Result<T, AskError> {
    runtime()?.block_on(work)
}

fn runtime() -> Result<tokio::runtime::Runtime, AskError> {
    tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().map_err(failed)
}

/// A name as a part of a path or a query: what is no letter, digit, `-`, `_` or `.` is percent-encoded.
pub(super) fn segment(name: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let part = |byte: u8| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(part).collect()
}

/// A path, and behind a `?` those parts of a query that have a value.
pub(super) fn with_query(path: &str, parts: &[(&str, Option<String>)]) -> String {
    let parts = parts.iter().filter_map(|(name, value)| Some(format!("{name}={}", segment(value.as_ref()?))));
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { path.to_owned() } else { format!("{path}?{}", parts.join("&")) }
}

/// A response's JSON, or the host's own words if it says no.
async fn answer<T, B>(response: Response<B>, max: usize) -> Result<T, AskError>
where
    T: DeserializeOwned,
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let status = response.status();
    if !status.is_success() {
        return Err(refusal(response, max).await);
    }
    let body = whole(response.into_body(), max).await?;
    serde_json::from_slice(&body).map_err(|error| failed(format!("{status}, and what came is not understood: {error}")))
}

/// Why the host says no.
async fn refusal<B>(response: Response<B>, max: usize) -> AskError
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let status = response.status();
    let body = match whole(response.into_body(), max).await {
        Ok(body) => body,
        Err(error) => return error,
    };
    match serde_json::from_slice(&body) {
        Ok(ApiError { confirmation: Some(asked), .. }) => AskError::Confirm(asked),
        Ok(ApiError { error, .. }) => AskError::ApiError(error),
        Err(_) => failed(format!("{status}: {}", String::from_utf8_lossy(&body))),
    }
}

async fn whole<B>(body: B, max: usize) -> Result<Bytes, AskError>
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let whole = Limited::new(body, max).collect().await;
    whole
        .map(|body| body.to_bytes())
        .map_err(|error| if error.is::<LengthLimitError>() { too_long(max) } else { failed(error) })
}

fn too_long(max: usize) -> AskError {
    failed(format!("its answer is longer than {max} bytes"))
}

#[cfg(unix)]
async fn connect(home: &Path) -> Result<tokio::net::UnixStream, AskError> {
    tokio::net::UnixStream::connect(crate::socket(home))
        .await
        .map_err(|_| AskError::NotRunning(home.display().to_string()))
}

#[cfg(not(unix))]
async fn connect(_: &Path) -> Result<tokio::io::DuplexStream, AskError> {
    Err(AskError::NoDoor)
}

async fn send(home: &Path, request: Builder, body: Bytes) -> Result<Response<Incoming>, AskError> {
    let stream = connect(home).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    tokio::spawn(connection);
    let request = request.header("host", "conductor").header("user-agent", "conductor-cli");
    sender.send_request(request.body(Full::new(body)).map_err(failed)?).await.map_err(failed)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_path() {
        assert_eq!(segment("osc-output"), "osc-output");
        assert_eq!(segment("a/b?c\nd%"), "a%2Fb%3Fc%0Ad%25");
    }

    #[test]
    fn a_query_has_what_is_asked_for() {
        assert_eq!(with_query("/v1/audit", &[("after", None), ("limit", None)]), "/v1/audit");
        let parts = [("after", Some("a&b.1".to_owned())), ("kinds", Some("mode,plan".to_owned()))];
        assert_eq!(with_query("/v1/events", &parts), "/v1/events?after=a%26b.1&kinds=mode%2Cplan");
    }

    fn response(status: u16, body: &Value) -> Response<Full<Bytes>> {
        Response::builder().status(status).body(Full::new(body.to_string().into())).unwrap()
    }

    fn answered(status: u16, body: &Value, max: usize) -> Result<Value, AskError> {
        block_on(answer(response(status, body), max))
    }

    #[test]
    fn an_answer_is_read_up_to_a_limit() {
        let body = json!(["a", 1]);
        assert_eq!(answered(200, &body, 7).unwrap(), body);
        for status in [200, 409] {
            let error = answered(status, &body, 6).unwrap_err().to_string();
            assert!(error.contains("longer than 6 bytes"), "{status}: {error}");
        }
    }

    #[test]
    fn a_refusal_is_what_the_host_says() {
        let refused = json!({ "error": "there is no mode \"Mixx\"", "code": "not_found" });
        let error = answered(404, &refused, 1000).unwrap_err();
        assert!(matches!(&error, AskError::ApiError(said) if said == "there is no mode \"Mixx\""), "{error:?}");
        let error = answered(500, &json!("oh"), 1000).unwrap_err();
        assert!(matches!(&error, AskError::Failed(said) if said.contains("500") && said.contains("oh")), "{error:?}");
    }
}
