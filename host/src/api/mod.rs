//! The API: what other processes of the same user may ask a running host.
//!
//! HTTP over a Unix socket that only its owner can open, in the host's home; and beside it, for agents, MCP. Where a
//! person wants it, both over TCP too, on this computer only, for whoever has a token (see `tcp`).
//!
//! | path | gives |
//! |---|---|
//! | `GET /v1/status` | a [`crate::host::status::Status`] |
//! | `GET /v1/config` | the configuration in force: `file`, `text`, `state` (its hash), and `refused` |
//! | `POST /v1/mute` | `muted`, for `device` and `muted`: stops hearing a device until the host ends, or hears it again |
//! | `GET /v1/tools` | every [`crate::control::gate::ToolView`] |
//! | `POST /v1/tools/NAME` | a [`crate::control::gate::ToolResult`], for a [`crate::control::gate::ToolRequest`] |
//! | `POST /v1/features/NAME/lift` | ends the feature's quarantine; `lifted`: whether it was in one |
//! | `GET /v1/plans` | every [`crate::control::plan::Plan`] that waits |
//! | `GET /v1/plans/ID` | a [`crate::host::PlanView`] |
//! | `POST /v1/plans/ID/apply`, `/v1/undo`, `/v1/redo` | a [`crate::host::Applied`] |
//! | `POST /v1/plans/ID/reject` | nothing |
//! | `GET /v1/events` | one [`view::ObservationView`] a line, from now on, until the client leaves |

use std::path::{Path, PathBuf};

#[cfg(unix)]
pub mod client;
#[cfg(unix)]
mod lines;
#[cfg(unix)]
pub mod mcp;
#[cfg(unix)]
pub mod server;
#[cfg(unix)]
pub mod tcp;
#[cfg(unix)]
pub mod token;
pub mod view;

/// Where agents connect, in this home: MCP, one message a line.
pub fn mcp_socket(home: &Path) -> PathBuf {
    home.join("mcp.sock")
}

/// Where the socket is, in this home.
pub fn socket(home: &Path) -> PathBuf {
    home.join("conductor.sock")
}
