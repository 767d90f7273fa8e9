//! The client: asks the host that runs in a home.

use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::http::request::Builder;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::Deserialize as _;
use serde_json::Value;

use super::error::ApiError;
use conductor_host::control::confirmation::Confirmation;
use conductor_host::observation::ObservationView;

/// How long a host may take to answer a question about its status.
const STATUS_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No host runs in this home.
    #[error("no host is running in {0}; start one with `conductor run`")]
    NotRunning(String),
    /// There is no door to it here.
    #[error("a running host can't be asked on this system yet")]
    NoDoor,
    /// It said no.
    #[error("{0}")]
    ApiError(String),
    /// A person has to agree first.
    #[error("a person has to agree to it: {} {}", .0.tool, .0.effect)]
    Confirm(Box<Confirmation>),
    /// It did not answer as it should.
    #[error("the host did not answer: {0}")]
    Failed(String),
}

fn failed(error: impl std::fmt::Display) -> AskError {
    AskError::Failed(error.to_string())
}

/// The status of the host that runs in `home`, as JSON.
///
/// # Errors
/// See [`AskError`].
pub fn status(home: &Path) -> Result<Value, AskError> {
    let asked = async { answer(send(home, Request::get("/v1/status"), Full::new(Bytes::new())).await?).await };
    let late = |_| failed(format!("nothing came within {} s", STATUS_TIMEOUT.as_secs()));
    block_on(async { tokio::time::timeout(STATUS_TIMEOUT, asked).await.unwrap_or_else(|elapsed| Err(late(elapsed))) })
}

/// What the host that runs in `home` answers at `path`, as JSON.
///
/// # Errors
/// See [`AskError`].
pub fn json(home: &Path, path: &str) -> Result<Value, AskError> {
    block_on(async { answer(send(home, Request::get(path), Full::new(Bytes::new())).await?).await })
}

/// A response's JSON; the host's own words where it says no.
async fn answer(response: Response<Incoming>) -> Result<Value, AskError> {
    let status = response.status();
    let body = response.into_body().collect().await.map_err(failed)?.to_bytes();
    let answer: Value =
        serde_json::from_slice(&body).map_err(|_| failed(format!("{status}: {}", String::from_utf8_lossy(&body))))?;
    if status.is_success() {
        return Ok(answer);
    }
    if let Ok(ApiError { confirmation: Some(asked), .. }) = ApiError::deserialize(&answer) {
        return Err(AskError::Confirm(asked));
    }
    Err(AskError::ApiError(answer["error"].as_str().map_or_else(|| status.to_string(), str::to_owned)))
}

/// Posts JSON to `path` of the host that runs in `home`.
///
/// # Errors
/// [`AskError::ApiError`] with the host's own words, where it says no; else see [`AskError`].
pub fn post(home: &Path, path: &str, body: &Value) -> Result<Value, AskError> {
    block_on(async {
        let request = Request::post(path).header("content-type", "application/json");
        answer(send(home, request, Full::new(Bytes::from(body.to_string()))).await?).await
    })
}

/// Calls `each` with everything that happens in the host that runs in `home`, until it returns
/// false or the host stops.
///
/// # Errors
/// See [`AskError`].
pub fn events(home: &Path, mut each: impl FnMut(ObservationView) -> bool) -> Result<(), AskError> {
    block_on(async {
        let mut body = get(home, "/v1/events").await?.into_body();
        let mut pending = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(failed)?.into_data() else { continue };
            pending.extend_from_slice(&data);
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                if !each(serde_json::from_slice(&line).map_err(failed)?) {
                    return Ok(());
                }
            }
        }
        Ok(())
    })
}

fn block_on<T>(work: impl Future<Output = Result<T, AskError>>) -> Result<T, AskError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().map_err(failed)?;
    runtime.block_on(work)
}

async fn get(home: &Path, path: &str) -> Result<Response<Incoming>, AskError> {
    let response = send(home, Request::get(path), Full::new(Bytes::new())).await?;
    if response.status().is_success() { Ok(response) } else { Err(failed(response.status())) }
}

#[cfg(unix)]
async fn connect(home: &Path) -> Result<tokio::net::UnixStream, AskError> {
    tokio::net::UnixStream::connect(super::socket(home))
        .await
        .map_err(|_| AskError::NotRunning(home.display().to_string()))
}

#[cfg(not(unix))]
async fn connect(_: &Path) -> Result<tokio::io::DuplexStream, AskError> {
    Err(AskError::NoDoor)
}

async fn send(home: &Path, request: Builder, body: Full<Bytes>) -> Result<Response<Incoming>, AskError> {
    let stream = connect(home).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    tokio::spawn(connection);
    let request =
        request.header("host", "conductor").header("user-agent", "conductor-cli").body(body).map_err(failed)?;
    sender.send_request(request).await.map_err(failed)
}
