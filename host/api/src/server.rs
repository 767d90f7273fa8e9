//! The server: one router, on a thread for the owner and a few for everybody else.
//!
//! The owner's socket has a thread of its own, with threads of its own for long jobs: the owner's commands are
//! answered under any load from agents and lent tokens. Agents on the MCP socket share up to four, each
//! on one of them for as long as it is connected, so that one message wakes one thread.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{self, PathBuf};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::{Extension, Router};
use chrono::{DateTime, Local};
use tokio::net::UnixListener;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::door::{Client, Entrance};
use super::holder::Holder;
use super::quota::{Limits, Quota};
use super::routes::conversations::Chat;
use super::tcp::HttpListener;
use super::{client, connection, exchange, mcp_socket, socket};
use conductor_audit::caller::Door;
use conductor_chat::Conversations;
use conductor_chat::store::StoreError;
use conductor_control_names::ControlNames;
use conductor_host::host::Host;
use conductor_host::host::status::Status;
use conductor_mcp as mcp;
use conductor_skills::library::Library;

/// Threads for long jobs of the owner.
const MAX_OWNER_JOBS: usize = 16;
/// Threads for long jobs of everybody else: more than all quotas together, for what else waits for the disk.
const MAX_JOBS: usize = 24;
/// Threads that serve agents, if there are as many processors.
const MAX_AGENT_THREADS: usize = 4;

/// A running server. Dropping it closes the socket.
#[derive(Debug)]
pub struct Server {
    /// The sockets, and what says where the HTTP door is.
    files: Vec<PathBuf>,
    stop: CancellationToken,
    threads: Vec<JoinHandle<()>>,
    /// `None` if they can't be kept.
    chat: Option<Arc<Conversations>>,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another host has this home.
    #[error(
        "a host is running in {} already{}; stop it first, or give this one another home (--home)",
        home.display(),
        who.as_ref().map(|who| format!(": {who}")).unwrap_or_default()
    )]
    Running {
        /// The home.
        home: PathBuf,
        /// Which process, since when, with which configuration; `None` if it does not report that.
        who: Option<String>,
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
        Ok(_) => Err(ServeError::Running { home: home.to_owned(), who: who(home) }),
        Err(_) => Ok(()),
    }
}

/// Who runs in this home, as they say themselves.
fn who(home: &path::Path) -> Option<String> {
    // On a thread of its own: the embedding program may be in a runtime already.
    let status = std::thread::scope(|scope| scope.spawn(|| client::Client::new(home).status()).join()).ok()?.ok()?;
    let started = DateTime::from_timestamp_millis(i64::try_from(status.started).ok()?)?.with_timezone(&Local);
    let Status { pid, config, .. } = status;
    Some(format!("process {pid}, since {}, with {config}", started.format("%Y-%m-%d %H:%M:%S")))
}

/// Whether the last host in `home` ended without putting its socket away, as one does that is killed. To be
/// asked after [`claim`] and before [`Server::start`].
pub fn was_cut_off(home: &path::Path) -> bool {
    socket(home).exists()
}

impl Server {
    /// Serves `host` in `home` with the skills of a library, and on the TCP port `http` too, where there is one: 0 takes
    /// one that is free.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn start(home: &path::Path, host: Arc<Host>, skills: Library, http: Option<u16>) -> Result<Self, ServeError> {
        let skills = Arc::new(skills);
        claim(home)?;
        let sockets = [socket(home), mcp_socket(home)];
        let [path, agents_path] = &sockets;
        let error = |source| ServeError::Socket { socket: path.clone(), source };
        let (listener, agents) = (listen(path)?, listen(agents_path)?);
        // Who asks over the socket can do without it.
        let unbound = |error: &io::Error| tracing::error!("the API can't be served over HTTP: {error}");
        let door = http.and_then(|port| HttpListener::bind(home, port).inspect_err(unbound).ok());
        let address = door.as_ref().map(|door| door.file().to_owned());
        let unkept = |error: &StoreError| tracing::error!("there are no conversations: {error}");
        let chat = conductor_conversation::open(home, &host, Arc::clone(&skills)).inspect_err(unkept).ok();
        let router = super::router().with_state(Arc::clone(&host)).layer(Extension(Chat(chat.clone())));
        let router = router.layer(Extension(Arc::clone(&skills)));
        let router = router.layer(Extension(Arc::new(ControlNames::new(home))));
        let host = Arc::downgrade(&host);
        let owner = serve_owner(listener, router.clone(), Weak::clone(&host));
        let files = sockets.iter().cloned().chain(address).collect();
        let mut server = Self { files, stop: CancellationToken::new(), threads: Vec::new(), chat };
        let mut more = Vec::new();
        for number in 2..=std::thread::available_parallelism().map_or(1, usize::from).min(MAX_AGENT_THREADS) {
            more.push(server.serve_on(&format!("agents {number}"), MAX_JOBS, std::future::pending()).map_err(error)?);
        }
        let others = async move {
            let agents = match UnixListener::from_std(agents) {
                Ok(agents) => agents,
                Err(error) => return tracing::error!("agents can't be listened to: {error}"),
            };
            let http = async {
                match door {
                    Some(door) => {
                        let mcp = mcp::http::router(mcp::server(Weak::clone(&host), Arc::clone(&skills)));
                        door.serve(router.merge(mcp), Weak::clone(&host)).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::join!(mcp::socket::serve(agents, Weak::clone(&host), Arc::clone(&skills), more), http);
        };
        server.serve_on("api", MAX_OWNER_JOBS, owner).map_err(error)?;
        server.serve_on("agents", MAX_JOBS, others).map_err(error)?;
        Ok(server)
    }

    /// Runs `work` until it ends or the server is dropped, on a thread of its own with this many threads beside it for
    /// long jobs. The handle spawns more on that thread.
    fn serve_on(
        &mut self,
        name: &str,
        jobs: usize,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<Handle> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_io().enable_time().max_blocking_threads(jobs).build()?;
        let (handle, stop) = (runtime.handle().clone(), self.stop.clone());
        self.threads.push(std::thread::Builder::new().name(name.into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = work => {}
                    () = stop.cancelled() => {}
                }
            });
            // Streams that are still open end with the runtime.
            runtime.shutdown_background();
        })?);
        Ok(handle)
    }

    /// The conversations that this home keeps. `None` if they can't be kept.
    pub fn chat(&self) -> Option<&Arc<Conversations>> {
        self.chat.as_ref()
    }
}

/// Serves the owner's socket, which only the owner can open.
async fn serve_owner(listener: std::os::unix::net::UnixListener, router: Router, host: Weak<Host>) {
    let listener = match UnixListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!("the API can't listen: {error}"),
    };
    let door = Entrance::new(Door::Socket, host);
    let client = Client::new(Holder::Owner, Quota::new(Limits::OWNER_SOCKET), Arc::clone(&door));
    let of_owner = client.clone();
    let metered = middleware::from_fn(move |mut request: Request, next: Next| {
        request.extensions_mut().insert(of_owner.clone());
        exchange::metered(of_owner.clone(), request, next)
    });
    let router = router.layer(metered);
    connection::serve(listener, router, door, Some(client)).await;
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(chat) = &self.chat {
            chat.stop();
        }
        for thread in self.threads.drain(..) {
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
    // Nothing answers there, so it is the stale socket of a host that was killed.
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(error(source)),
        _ => {}
    }
    let listener = std::os::unix::net::UnixListener::bind(path).map_err(error)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(error)?;
    listener.set_nonblocking(true).map_err(error)?;
    Ok(listener)
}
