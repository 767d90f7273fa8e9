//! MCP at the HTTP door, by rmcp's streamable HTTP: with sessions for clients of 2025-11-25 and before, without for
//! those since.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::sync::Semaphore;

use super::Server;
use crate::api::MAX_BODY;
use crate::api::tcp::MCP;
use crate::host::Host;

/// Sessions and requests without one, at once.
const MAX_CLIENTS: usize = 128;
/// How long a session stays that is not used: an agent's user may be away for a while.
const IDLE: Duration = Duration::from_secs(60 * 60);

/// What is served there. Whose request gets here has the token, and means this door.
pub(in crate::api) fn router(host: Weak<Host>) -> Router {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(IDLE);
    let places = Arc::new(Semaphore::new(MAX_CLIENTS));
    let server = move || {
        let full = || io::Error::other(format!("{MAX_CLIENTS} agents are here already; try again later"));
        let place = Arc::clone(&places).try_acquire_owned().map_err(|_| full())?;
        Ok(Server::new(Weak::clone(&host), Some(place)))
    };
    let config = StreamableHttpServerConfig::default().with_max_request_body_bytes(MAX_BODY);
    Router::new().route_service(MCP, StreamableHttpService::new(server, Arc::new(sessions), config))
}
