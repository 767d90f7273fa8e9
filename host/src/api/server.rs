//! The server: one router on the Unix socket, on a thread of its own.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{self, PathBuf};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use axum::Extension;
use chrono::{DateTime, Local};
use tokio::net::UnixListener;
use tokio::sync::oneshot;

use super::scope::Scope;
use super::tcp::Door;
use super::{client, mcp, mcp_socket, socket};
use crate::host::Host;

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
    #[error(
        "a host is running in {} already{}; stop it first, or give this one another home (--home)",
        home.display(),
        who.as_ref().map(|who| format!(": {who}")).unwrap_or_default()
    )]
    Running {
        /// The home.
        home: PathBuf,
        /// Which process, since when, with which configuration; none where it does not say.
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
    // On a thread of its own: whoever embeds a host may be in a runtime already.
    let status = std::thread::scope(|scope| scope.spawn(|| client::status(home)).join()).ok()?.ok()?;
    let started = DateTime::from_timestamp_millis(status["started"].as_i64()?)?.with_timezone(&Local);
    let (pid, config) = (status["pid"].as_u64()?, status["config"].as_str()?);
    Some(format!("process {pid}, since {}, with {config}", started.format("%Y-%m-%d %H:%M:%S")))
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
        let router = super::router().with_state(Arc::clone(&host));
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
                    served = axum::serve(listener, router.layer(Extension(Scope::Owner))).into_future() => {
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
