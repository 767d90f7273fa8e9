//! The API of a running host for other processes: HTTP, the event stream, MCP.
//!
//! HTTP over a Unix socket that only its owner can open, in the host's home; and beside it, for agents, MCP. Where a
//! person wants it, both over TCP too, on this computer only, for clients with a token (see `tcp`).
//!
//! Every route is in `routes`, described beside what it does; the description is at `GET /v1/openapi.json`. What a
//! route does not do it says in one shape, [`ApiError`]. Who may ask for what is a `Scope`.
//!
//! For programs, [`client::Client`] has a method for each route, which takes and returns the types that the route is
//! made of: [`types`], and types of the host.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]
// There is a client everywhere, and a server where there are Unix sockets.
#![cfg_attr(not(unix), allow(dead_code))]

use std::path::{Path, PathBuf};

pub mod client;
#[cfg(unix)]
mod connection;
mod door;
mod error;
#[cfg(unix)]
mod exchange;
mod holder;
mod quota;
mod route;
mod routes;
mod scope;
#[cfg(unix)]
pub mod server;
mod socket;
mod stream;
#[cfg(unix)]
pub mod tcp;
#[cfg(unix)]
pub mod token;
pub mod types;

pub use error::{ApiError, Code};
pub use routes::features::Lifted;
pub use routes::openapi;
pub use stream::StreamItem;

/// Bytes of a request's body: the most that a tool takes, however much of it JSON has to escape.
const MAX_BODY: usize = 2 * 1024 * 1024;

/// The one router of every door. The door says by a [`Client`](door::Client) in the request how much may be done.
fn router() -> axum::Router<std::sync::Arc<conductor_host::Host>> {
    route::router(routes::all())
}

/// Where agents connect, in this home: MCP, one message a line.
pub fn mcp_socket(home: &Path) -> PathBuf {
    home.join("mcp.sock")
}

/// Where the socket is, in this home.
pub fn socket(home: &Path) -> PathBuf {
    home.join("conductor.sock")
}
