//! The API: what other processes of the same user may ask a running host.
//!
//! HTTP over a Unix socket that only its owner can open, in the host's home.
//!
//! | path | gives |
//! |---|---|
//! | `GET /v1/status` | a [`crate::host::status::Status`] |
//! | `GET /v1/tools` | every [`crate::control::gate::ToolView`] |
//! | `POST /v1/tools/NAME` | a [`crate::control::gate::ToolResult`], for a [`crate::control::gate::ToolRequest`] |
//! | `GET /v1/plans` | every [`crate::service::planning::Plan`] that waits |
//! | `GET /v1/events` | one [`view::ObservationView`] a line, from now on, until the client leaves |

use std::path::{Path, PathBuf};

#[cfg(unix)]
pub mod client;
#[cfg(unix)]
pub mod server;
pub mod view;

/// Where the socket is, in this home.
pub fn socket(home: &Path) -> PathBuf {
    home.join("conductor.sock")
}
