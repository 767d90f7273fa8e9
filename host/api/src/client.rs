//! The client: asks the host that runs in a home.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::http::request::Builder;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::ApiError;
use super::routes::features::Lifted;
use conductor_host::control::confirmation::Confirmation;
use conductor_host::control::gate::{ToolRequest, ToolResult, ToolView};
use conductor_host::control::plan::PlanSummary;
use conductor_host::host::status::Status;
use conductor_host::host::{Applied, PlanView};
use conductor_host::observation::ObservationView;
use conductor_registry::{FeatureReport, Skill};

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

/// The host that runs in a home, as its owner asks it over the socket there. Answers have the types that the host
/// makes them of, so that a program and the document of the API can't disagree.
///
/// It connects for each request, and blocks until the answer is there.
#[derive(Debug, Clone)]
pub struct Client {
    home: PathBuf,
}

impl Client {
    /// A client of the host in `home`. Nothing is asked yet.
    pub fn new(home: &Path) -> Self {
        Self { home: home.to_owned() }
    }

    /// Returns what the host answers at `path`, for what has no method here.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, AskError> {
        block_on(async { answer(send(&self.home, Request::get(path), Full::new(Bytes::new())).await?).await })
    }

    /// Posts `body` to `path`, for what has no method here.
    ///
    /// # Errors
    /// [`AskError::ApiError`] and [`AskError::Confirm`] if the host does not do it; else see [`AskError`].
    pub fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, AskError> {
        let body = serde_json::to_vec(body).map_err(failed)?;
        block_on(async {
            let request = Request::post(path).header("content-type", "application/json");
            answer(send(&self.home, request, Full::new(Bytes::from(body))).await?).await
        })
    }

    /// How the host is. It has 10 s to answer.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn status(&self) -> Result<Status, AskError> {
        let asked =
            async { answer(send(&self.home, Request::get("/v1/status"), Full::new(Bytes::new())).await?).await };
        let late = |_| failed(format!("nothing came within {} s", STATUS_TIMEOUT.as_secs()));
        block_on(async {
            tokio::time::timeout(STATUS_TIMEOUT, asked).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
        })
    }

    /// The plans that wait, oldest first.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn plans(&self) -> Result<Vec<PlanSummary>, AskError> {
        self.get("/v1/plans")
    }

    /// A plan with its rehearsal, by its whole id.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn plan(&self, id: &str) -> Result<PlanView, AskError> {
        self.get(&format!("/v1/plans/{}", segment(id)))
    }

    /// Applies a plan that a person has agreed to.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn apply_plan(&self, id: &str) -> Result<Applied, AskError> {
        self.post(&format!("/v1/plans/{}/apply", segment(id)), &())
    }

    /// Takes a plan off the list.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn reject_plan(&self, id: &str) -> Result<(), AskError> {
        self.post(&format!("/v1/plans/{}/reject", segment(id)), &())
    }

    /// Takes the last applied plan back.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn undo(&self) -> Result<Applied, AskError> {
        self.post("/v1/undo", &())
    }

    /// Applies again what was undone last.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn redo(&self) -> Result<Applied, AskError> {
        self.post("/v1/redo", &())
    }

    /// Every feature, installed or refused.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn features(&self) -> Result<Vec<FeatureReport>, AskError> {
        self.get("/v1/features")
    }

    /// Ends the quarantine of a feature that runs.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn lift_quarantine(&self, feature: &str) -> Result<Lifted, AskError> {
        self.post(&format!("/v1/features/{}/lift", segment(feature)), &())
    }

    /// What features tell agents to read.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn skills(&self) -> Result<Vec<Skill>, AskError> {
        self.get("/v1/skills")
    }

    /// The tools that may be called.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn tools(&self) -> Result<Vec<ToolView>, AskError> {
        self.get("/v1/tools")
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn call_tool(&self, name: &str, request: &ToolRequest) -> Result<ToolResult, AskError> {
        self.post(&format!("/v1/tools/{}", segment(name)), request)
    }
}

/// A name as a part of a path: what is no letter, digit, `-`, `_` or `.` is percent-encoded.
fn segment(name: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let part = |byte: u8| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(part).collect()
}

/// A response's JSON; the host's own words where it says no.
async fn answer<T: DeserializeOwned>(response: Response<Incoming>) -> Result<T, AskError> {
    let status = response.status();
    let body = response.into_body().collect().await.map_err(failed)?.to_bytes();
    if status.is_success() {
        return serde_json::from_slice(&body)
            .map_err(|error| failed(format!("{status}, and what came is not understood: {error}")));
    }
    match serde_json::from_slice(&body) {
        Ok(ApiError { confirmation: Some(asked), .. }) => Err(AskError::Confirm(asked)),
        Ok(ApiError { error, .. }) => Err(AskError::ApiError(error)),
        Err(_) => Err(failed(format!("{status}: {}", String::from_utf8_lossy(&body)))),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_path() {
        assert_eq!(segment("osc-output"), "osc-output");
        assert_eq!(segment("a/b?c\nd%"), "a%2Fb%3Fc%0Ad%25");
    }
}
