//! MCP at the HTTP door, by rmcp's streamable HTTP: with sessions for clients of 2025-11-25 and before, without for
//! those since.

use std::sync::Arc;

use axum::Router;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::sessions::{Note, Sessions};
use crate::lines::MAX_LINE;
use conductor_audit::caller::Door;

/// Where it is at the HTTP door.
pub const PATH: &str = "/mcp";

/// This door, as the status calls it.
pub const DOOR: Door = Door::McpHttp;

/// What is served there: a server for each session and each request without one, by what makes them. Whose request
/// gets here has the token, and means this door; its quota bounds the requests that have no session.
pub fn router<S: ServerHandler>(servers: Servers<S>) -> Router {
    let config = StreamableHttpServerConfig::default().with_max_request_body_bytes(MAX_LINE);
    let Servers { make, note } = servers;
    let service = StreamableHttpService::new(move || Ok(make()), Arc::new(Sessions::new(note)), config);
    Router::new().route_service(PATH, service)
}

/// Makes a server for each client.
pub struct Servers<S> {
    make: Box<dyn Fn() -> S + Send + Sync>,
    note: Note,
}

impl<S: 'static> Servers<S> {
    pub(super) fn new(make: impl Fn() -> S + Send + Sync + 'static, note: Note) -> Self {
        Self { make: Box::new(make), note }
    }

    /// Makes something else of each server.
    pub fn map<T: 'static>(self, into: impl Fn(S) -> T + Send + Sync + 'static) -> Servers<T> {
        let Self { make, note } = self;
        Servers { make: Box::new(move || into(make())), note }
    }
}

impl<S> std::fmt::Debug for Servers<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Servers").finish_non_exhaustive()
    }
}
