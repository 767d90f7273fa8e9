//! MCP at the HTTP door, by rmcp's streamable HTTP: with sessions for clients of 2025-11-25 and before, without for
//! those since.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api::MAX_BODY;
use crate::api::tcp::MCP;

/// Sessions and requests without one, at once.
const MAX_CLIENTS: usize = 128;
/// How long a session stays that is not used: an agent's user may be away for a while.
const IDLE: Duration = Duration::from_secs(60 * 60);

/// What is served there: a server for each client, by what makes them. Whose request gets here has the token, and
/// means this door.
pub fn router<S: ServerHandler>(servers: Servers<S>) -> Router {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(IDLE);
    let config = StreamableHttpServerConfig::default().with_max_request_body_bytes(MAX_BODY);
    let service = StreamableHttpService::new(move || servers.next(), Arc::new(sessions), config);
    Router::new().route_service(MCP, service)
}

/// Makes a server for each client, while there is a place.
pub struct Servers<S> {
    make: Box<dyn Fn(OwnedSemaphorePermit) -> S + Send + Sync>,
    places: Arc<Semaphore>,
}

impl<S: 'static> Servers<S> {
    pub(super) fn new(make: impl Fn(OwnedSemaphorePermit) -> S + Send + Sync + 'static) -> Self {
        Self { make: Box::new(make), places: Arc::new(Semaphore::new(MAX_CLIENTS)) }
    }

    /// Makes something else of each server.
    pub fn map<T: 'static>(self, into: impl Fn(S) -> T + Send + Sync + 'static) -> Servers<T> {
        let Self { make, places } = self;
        Servers { make: Box::new(move |place| into(make(place))), places }
    }

    fn next(&self) -> io::Result<S> {
        let full = || io::Error::other(format!("{MAX_CLIENTS} agents are here already; try again later"));
        Ok((self.make)(Arc::clone(&self.places).try_acquire_owned().map_err(|_| full())?))
    }
}

impl<S> std::fmt::Debug for Servers<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Servers").field("places", &self.places.available_permits()).finish_non_exhaustive()
    }
}
