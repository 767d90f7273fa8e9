//! How much a request may do: the door says it by a [`Client`] in the request, each route asks for it.
//!
//! A request in which no door has said anything is refused.

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::door::{self, Client};
use super::error::{Code, ErrorResponse};
use conductor_audit::caller::Caller;
pub use conductor_audit::caller::Scope;

fn client(extensions: &Extensions) -> Result<&Client, ErrorResponse> {
    let no_caller = || ErrorResponse::new(StatusCode::FORBIDDEN, Code::Forbidden, "this request has no caller");
    extensions.get::<Client>().ok_or_else(no_caller)
}

/// Who asks: the door and the scope that let the request in, and the name in `user-agent`.
#[derive(Debug)]
pub(super) struct By(pub(super) Caller);

impl<S: Send + Sync> FromRequestParts<S> for By {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ErrorResponse> {
        Ok(Self(client(&parts.extensions)?.caller(door::name(&parts.headers))))
    }
}

/// Passes a request on if its scope is at least `needed`.
pub(super) async fn at_least(needed: Scope, request: Request, next: Next) -> Response {
    match client(request.extensions()).map(|client| client.holder.scope()) {
        Ok(scope) if scope >= needed => next.run(request).await,
        Ok(scope) => {
            let error = format!(
                "this asks for the scope `{needed}`, and the token has `{scope}`; a person does it with `conductor`, \
                 or lends a token that may"
            );
            ErrorResponse::new(StatusCode::FORBIDDEN, Code::Forbidden, error).into_response()
        }
        Err(refusal) => refusal.into_response(),
    }
}
