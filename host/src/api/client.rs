//! The client: asks the host that runs in a home.

use std::path::Path;

use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;

use super::socket;
use super::view::ObservationView;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No host runs in this home.
    #[error("no host is running in {0}; start one with `conductor run`")]
    NotRunning(String),
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
    block_on(async {
        let response = get(home, "/v1/status").await?;
        let body = response.into_body().collect().await.map_err(failed)?.to_bytes();
        serde_json::from_slice(&body).map_err(failed)
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
    tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(failed)?.block_on(work)
}

async fn get(home: &Path, path: &str) -> Result<Response<Incoming>, AskError> {
    let stream = tokio::net::UnixStream::connect(socket(home))
        .await
        .map_err(|_| AskError::NotRunning(home.display().to_string()))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    tokio::spawn(connection);
    let request = Request::get(path).header("host", "conductor").body(Empty::<Bytes>::new()).map_err(failed)?;
    let response = sender.send_request(request).await.map_err(failed)?;
    if response.status().is_success() { Ok(response) } else { Err(failed(response.status())) }
}
