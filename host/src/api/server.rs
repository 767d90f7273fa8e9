//! The server: one router on the Unix socket, on a thread of its own.

use std::convert::Infallible;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{self, PathBuf};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use axum::body::Body;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use crossbeam_channel::RecvTimeoutError;
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use super::tcp::Door;
use super::view::ObservationView;
use super::{mcp, mcp_socket, socket};
use crate::control::caller::Caller;
use crate::control::gate::{ToolError, ToolRequest};
use crate::control::plan::{PlanError, state_hash};
use crate::host::Host;

/// How often an event stream looks whether its client is still there.
const LOOK: std::time::Duration = std::time::Duration::from_millis(250);

/// Bytes of a request's body: the most that a tool takes, however much of it JSON has to escape.
pub(super) const MAX_BODY: usize = 2 * 1024 * 1024;

/// A running server. Dropping it closes the socket.
#[derive(Debug)]
pub struct Server {
    /// The sockets, and what says where the HTTP door is.
    files: Vec<PathBuf>,
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

/// Whether the last host in `home` ended without putting its socket away, as one does that is killed. To be
/// asked after [`claim`] and before [`Server::start`].
pub fn was_cut_off(home: &path::Path) -> bool {
    socket(home).exists()
}

impl Server {
    /// Serves `host` in `home`, and on the TCP port `http` too, where there is one: 0 takes one that is free.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn start(home: &path::Path, host: Arc<Host>, http: Option<u16>) -> Result<Self, ServeError> {
        claim(home)?;
        let sockets = [socket(home), mcp_socket(home)];
        let [path, agents_path] = &sockets;
        let error = |source| ServeError::Socket { socket: path.clone(), source };
        let (listener, agents) = (listen(path)?, listen(agents_path)?);
        // Who asks over the socket can do without it.
        let unbound = |error: &io::Error| tracing::error!("the API can't be served over HTTP: {error}");
        let door = http.and_then(|port| Door::bind(home, port).inspect_err(unbound).ok());
        let address = door.as_ref().map(|door| door.file().to_owned());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().map_err(error)?;
        let (stop, stopped) = oneshot::channel();
        let router = Router::new()
            .route("/v1/status", get(status))
            .route("/v1/config", get(config))
            .route("/v1/events", get(events))
            .route("/v1/mute", post(mute))
            .route("/v1/features/{name}/lift", post(lift))
            .route("/v1/plans", get(plans))
            .route("/v1/plans/{id}", get(plan))
            .route("/v1/plans/{id}/apply", post(apply_plan))
            .route("/v1/plans/{id}/reject", post(reject_plan))
            .route("/v1/undo", post(undo))
            .route("/v1/redo", post(redo))
            .route("/v1/skills", get(skills))
            .route("/v1/tools", get(tools))
            .route("/v1/tools/{name}", post(call_tool))
            .layer(DefaultBodyLimit::max(MAX_BODY))
            .with_state(Arc::clone(&host));
        let host = Arc::downgrade(&host);
        let thread = std::thread::Builder::new().name("api".into()).spawn(move || {
            runtime.block_on(async move {
                let listeners = (UnixListener::from_std(listener), UnixListener::from_std(agents));
                let (listener, agents) = match listeners {
                    (Ok(listener), Ok(agents)) => (listener, agents),
                    (Err(error), _) | (_, Err(error)) => return tracing::error!("the API can't listen: {error}"),
                };
                let http = {
                    let (router, host) =
                        (router.clone().merge(mcp::http::router(mcp::server(Weak::clone(&host)))), Weak::clone(&host));
                    async move {
                        match door {
                            Some(door) => door.serve(router, host).await,
                            None => std::future::pending().await,
                        }
                    }
                };
                tokio::select! {
                    served = axum::serve(listener, router).into_future() => {
                        if let Err(error) = served {
                            tracing::error!("the API ended: {error}");
                        }
                    }
                    () = mcp::socket::serve(agents, host) => {}
                    () = http => {}
                    _ = stopped => {}
                }
            });
            // Streams that are still open end with the runtime.
            runtime.shutdown_background();
        });
        let thread = Some(thread.map_err(error)?);
        Ok(Self { thread, files: sockets.into_iter().chain(address).collect(), stop: Some(stop) })
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
        for file in &self.files {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// A socket that only its owner can open.
fn listen(path: &path::Path) -> Result<std::os::unix::net::UnixListener, ServeError> {
    let error = |source| ServeError::Socket { socket: path.to_owned(), source };
    // Nobody answers there, so it is what a killed host left behind.
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(error(source)),
        _ => {}
    }
    let listener = std::os::unix::net::UnixListener::bind(path).map_err(error)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(error)?;
    listener.set_nonblocking(true).map_err(error)?;
    Ok(listener)
}

async fn status(State(host): State<Arc<Host>>) -> impl IntoResponse {
    Json(host.status())
}

/// Which device, and whether it is to be muted.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Mute {
    device: String,
    muted: bool,
}

/// Answers when it is done: ports may have to be looked at, which takes a moment.
async fn mute(State(host): State<Arc<Host>>, Json(Mute { device, muted }): Json<Mute>) -> Response {
    match tokio::task::spawn_blocking(move || host.mute(&device, muted)).await {
        Ok(Ok(())) => Json(serde_json::json!({ "muted": muted })).into_response(),
        Ok(Err(unknown)) => {
            (StatusCode::NOT_FOUND, Json(serde_json::json!({ "error": unknown.to_string() }))).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn lift(State(host): State<Arc<Host>>, headers: HeaderMap, Path(name): Path<String>) -> Response {
    match host.lift_quarantine(&caller(&headers), &name) {
        Some(lifted) => Json(serde_json::json!({ "lifted": lifted })).into_response(),
        None => {
            let error = format!("no feature {name:?} runs");
            (StatusCode::NOT_FOUND, Json(serde_json::json!({ "error": error }))).into_response()
        }
    }
}

async fn plans(State(host): State<Arc<Host>>) -> Response {
    decided(move || host.plans()).await
}

async fn plan(State(host): State<Arc<Host>>, Path(id): Path<String>) -> Response {
    decided(move || host.plan(&id)).await
}

async fn apply_plan(State(host): State<Arc<Host>>, headers: HeaderMap, Path(id): Path<String>) -> Response {
    decided(move || host.apply_plan(&caller(&headers), &id)).await
}

async fn reject_plan(State(host): State<Arc<Host>>, headers: HeaderMap, Path(id): Path<String>) -> Response {
    decided(move || host.reject_plan(&caller(&headers), &id)).await
}

async fn undo(State(host): State<Arc<Host>>, headers: HeaderMap) -> Response {
    decided(move || host.undo(&caller(&headers))).await
}

async fn redo(State(host): State<Arc<Host>>, headers: HeaderMap) -> Response {
    decided(move || host.redo(&caller(&headers))).await
}

/// Who asks, by the name in `user-agent`.
fn caller(headers: &HeaderMap) -> Caller {
    Caller::api(headers.get(header::USER_AGENT).and_then(|name| name.to_str().ok()))
}

/// Answers with what came of work on plans, which compiles rules and waits for the disk: elsewhere, so that
/// other clients need not wait.
async fn decided<T>(work: impl FnOnce() -> Result<T, PlanError> + Send + 'static) -> Response
where
    T: serde::Serialize + Send + 'static,
{
    let error = match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => return Json(done).into_response(),
        Ok(Err(error)) => error,
        Err(_) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    };
    let status = match &error {
        PlanError::NotFound(_) => StatusCode::NOT_FOUND,
        PlanError::Expired(_) => StatusCode::GONE,
        PlanError::StaleState { .. } | PlanError::Nothing(_) | PlanError::NoFile => StatusCode::CONFLICT,
        PlanError::Invalid(_) | PlanError::Edit(_) => StatusCode::UNPROCESSABLE_ENTITY,
        PlanError::Denied(_) => StatusCode::FORBIDDEN,
        PlanError::Full(_) => StatusCode::TOO_MANY_REQUESTS,
        PlanError::Unrecorded(_) => StatusCode::SERVICE_UNAVAILABLE,
        PlanError::Record(_) | PlanError::File { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, Json(serde_json::json!({ "error": error.to_string() }))).into_response()
}

/// The configuration in force, and what was said of the last one where that was refused.
async fn config(State(host): State<Arc<Host>>) -> impl IntoResponse {
    let (file, text, refused) = host.config_in_force();
    Json(serde_json::json!({ "file": file, "state": state_hash(&text), "text": text, "refused": refused }))
}

async fn skills(State(host): State<Arc<Host>>) -> impl IntoResponse {
    Json(host.skills())
}

async fn tools(State(host): State<Arc<Host>>) -> impl IntoResponse {
    Json(host.tools())
}

/// Answers with the result, or with `error` and a status that says whose fault it was. A client that leaves takes
/// its call with it.
async fn call_tool(
    State(host): State<Arc<Host>>,
    headers: HeaderMap,
    Path(name): Path<String>,
    request: Result<Json<ToolRequest>, JsonRejection>,
) -> Response {
    let caller = caller(&headers);
    let Json(request) = match request {
        Ok(request) => request,
        Err(rejection) => {
            let error = match &rejection {
                JsonRejection::BytesRejection(_) => {
                    format!("the request is too long; at most {MAX_BODY} bytes are taken")
                }
                _ => format!("the request is not understood: {}", rejection.body_text()),
            };
            host.refuse_call(&caller, &name, &error).await;
            return (rejection.status(), Json(serde_json::json!({ "error": error }))).into_response();
        }
    };
    let cancelled = CancellationToken::new();
    let _leaving = cancelled.clone().drop_guard();
    match host.call_tool(&caller, &name, request, cancelled, Arc::new(|_, _| {})).await {
        Ok(result) => Json(result).into_response(),
        Err(error) => {
            let status = match &error {
                ToolError::Unknown { .. } => StatusCode::NOT_FOUND,
                ToolError::NotAllowed(_) => StatusCode::FORBIDDEN,
                ToolError::TooOften { .. } => StatusCode::TOO_MANY_REQUESTS,
                ToolError::Unrecorded(_) => StatusCode::SERVICE_UNAVAILABLE,
                ToolError::NeedsConfirmation(_) => StatusCode::PRECONDITION_REQUIRED,
                ToolError::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
                ToolError::Denied { .. } => StatusCode::FORBIDDEN,
                ToolError::Failed { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            };
            let answer = Json(serde_json::json!({ "error": error.to_string() }));
            match &error {
                // In whole seconds, and not before there is one.
                ToolError::TooOften { left, .. } => {
                    (status, [(header::RETRY_AFTER, (left.as_secs() + 1).to_string())], answer).into_response()
                }
                _ => (status, answer).into_response(),
            }
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
