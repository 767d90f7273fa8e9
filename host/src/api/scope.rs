//! How much whoever asks may do: the door says it, each route asks for it.
//!
//! A request in which no door has said anything is refused.

use std::fmt;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::refusal::{Code, Refusal};

/// How much may be done; each also what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// To look.
    Read,
    /// To call tools, and to change what holds until the host stops.
    Control,
    /// What a person decides: to apply, undo and confirm. Whoever has the Unix socket is the home's owner.
    Owner,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Control => "control",
            Self::Owner => "owner",
        })
    }
}

/// Passes a request on if its door lets whoever came through do so much.
pub(super) async fn at_least(needed: Scope, request: Request, next: Next) -> Response {
    match request.extensions().get::<Scope>() {
        Some(scope) if *scope >= needed => next.run(request).await,
        Some(scope) => {
            let error = format!(
                "this asks for the scope `{needed}`, and the token has `{scope}`; a person does it with `conductor`, \
                 or lends a token that may"
            );
            Refusal::new(StatusCode::FORBIDDEN, Code::Forbidden, error).into_response()
        }
        None => Refusal::new(StatusCode::FORBIDDEN, Code::Forbidden, "nobody let this request in").into_response(),
    }
}
