//! The server: one router on the Unix socket, on a thread of its own.

use std::convert::Infallible;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{self, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use crossbeam_channel::RecvTimeoutError;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use super::socket;
use super::view::ObservationView;
use crate::control::gate::{ToolError, ToolRequest};
use crate::host::Host;

/// How often an event stream looks whether its client is still there.
const LOOK: std::time::Duration = std::time::Duration::from_millis(250);

/// A running server. Dropping it closes the socket.
#[derive(Debug)]
pub struct Server {
    socket: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another host has this home.
    #[error("a host is running in {} already; stop it first, or give this one another home (--home)", home.display())]
    Running {
        /// The home.
        home: PathBuf,
    },
    /// The socket can't be made.
    #[error("{}: {source}", socket.display())]
    Socket {
        /// The socket.
        socket: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Makes sure that no other host answers in this home.
///
/// # Errors
/// [`ServeError::Running`].
pub fn claim(home: &path::Path) -> Result<(), ServeError> {
    match UnixStream::connect(socket(home)) {
        Ok(_) => Err(ServeError::Running { home: home.to_owned() }),
        Err(_) => Ok(()),
    }
}

impl Server {
    /// Serves `host` in `home`.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn start(home: &path::Path, host: Arc<Host>) -> Result<Self, ServeError> {
        claim(home)?;
        let path = socket(home);
        let error = |source| ServeError::Socket { socket: path.clone(), source };
        // Nobody answers there, so it is what a killed host left behind.
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(error(source)),
            _ => {}
        }
        let listener = std::os::unix::net::UnixListener::bind(&path).map_err(error)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(error)?;
        listener.set_nonblocking(true).map_err(error)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().map_err(error)?;
        let (stop, stopped) = oneshot::channel();
        let router = Router::new()
            .route("/v1/status", get(status))
            .route("/v1/events", get(events))
            .route("/v1/plans", get(plans))
            .route("/v1/tools", get(tools))
            .route("/v1/tools/{name}", post(call_tool))
            .with_state(host);
        let thread = std::thread::Builder::new().name("api".into()).spawn(move || {
            runtime.block_on(async move {
                let listener = match tokio::net::UnixListener::from_std(listener) {
                    Ok(listener) => listener,
                    Err(error) => return tracing::error!("the API can't listen: {error}"),
                };
                tokio::select! {
                    served = axum::serve(listener, router).into_future() => {
                        if let Err(error) = served {
                            tracing::error!("the API ended: {error}");
                        }
                    }
                    _ = stopped => {}
                }
            });
            // Streams that are still open end with the runtime.
            runtime.shutdown_background();
        });
        Ok(Self { thread: Some(thread.map_err(error)?), socket: path, stop: Some(stop) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.socket);
    }
}

async fn status(State(host): State<Arc<Host>>) -> impl IntoResponse {
    Json(host.status())
}

async fn plans(State(host): State<Arc<Host>>) -> impl IntoResponse {
    Json(host.plans())
}

async fn tools(State(host): State<Arc<Host>>) -> impl IntoResponse {
    Json(host.tools())
}

/// Answers with the result, or with `error` and a status that says whose fault it was. A client that leaves takes
/// its call with it.
async fn call_tool(
    State(host): State<Arc<Host>>,
    Path(name): Path<String>,
    Json(request): Json<ToolRequest>,
) -> Response {
    let cancelled = CancellationToken::new();
    let _leaving = cancelled.clone().drop_guard();
    match host.call_tool(&name, request, cancelled, Arc::new(|_, _| {})).await {
        Ok(result) => Json(result).into_response(),
        Err(error) => {
            let status = match &error {
                ToolError::Unknown { .. } => StatusCode::NOT_FOUND,
                ToolError::NeedsConfirmation(_) => StatusCode::PRECONDITION_REQUIRED,
                ToolError::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
                ToolError::Denied { .. } => StatusCode::FORBIDDEN,
                ToolError::Failed { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            };
            (status, Json(serde_json::json!({ "error": error.to_string() }))).into_response()
        }
    }
}

async fn events(State(host): State<Arc<Host>>) -> impl IntoResponse {
    let (sender, lines) = mpsc::channel::<Result<String, Infallible>>(1024);
    let observations = host.subscribe();
    // Weak, so that an open stream does not keep a stopping host alive.
    let host = Arc::downgrade(&host);
    std::thread::spawn(move || {
        loop {
            let observation = match observations.recv_timeout(LOOK) {
                Ok(observation) => Some(observation),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let Some(host) = host.upgrade() else { return };
            let Some(observation) = observation else {
                if sender.is_closed() {
                    return;
                }
                continue;
            };
            let view = host.view(&observation);
            let Ok(mut line) = serde_json::to_string(&view) else { continue };
            line.push('\n');
            if sender.blocking_send(Ok(line)).is_err() {
                return;
            }
        }
    });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(ReceiverStream::new(lines)))
}

impl Host {
    /// An observation in words.
    pub fn view(&self, observation: &crate::observer::Observation) -> ObservationView {
        self.with_rules(|rules, generation| ObservationView::new(observation, rules, generation))
    }
}
