//! A route and its description, in one place: the router and the OpenAPI document are both made of these, so
//! neither has what the other has not.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request};
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::error::{Code, ErrorResponse};
use super::scope::{Scope, at_least};
use conductor_host::host::Host;

/// Bytes of a body that a route does not ask for.
const MAX_UNASKED: usize = 64 * 1024;

/// Writes down a type's schema.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The methods that routes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
}

/// What a route answers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Answer {
    /// JSON.
    Json(SchemaOf),
    /// One JSON value a line, for as long as the client stays.
    Lines(SchemaOf),
    /// A WebSocket, with one JSON value a message.
    Socket(SchemaOf),
}

/// A route, described, without the handler.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// Unique; programs that are made from the document call it so.
    pub(super) id: &'static str,
    /// What it does, in a line.
    pub(super) summary: &'static str,
    pub(super) scope: Scope,
    pub(super) query: Option<SchemaOf>,
    pub(super) body: Option<SchemaOf>,
    pub(super) answer: Answer,
    /// The statuses that it refuses with, beside those of every route.
    pub(super) refuses: &'static [u16],
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn described<T: JsonSchema>(method: Method, path: &'static str, id: &'static str, summary: &'static str) -> Described {
    let answer = Answer::Json(schema_of::<T>);
    let scope = if method == Method::Get { Scope::Read } else { Scope::Control };
    Described { method, path, id, summary, scope, query: None, body: None, answer, refuses: &[] }
}

/// A route that looks, and answers a `T`.
pub(super) fn get<T: JsonSchema>(path: &'static str, id: &'static str, summary: &'static str) -> Described {
    described::<T>(Method::Get, path, id, summary)
}

/// A route that does something, and answers a `T`.
pub(super) fn post<T: JsonSchema>(path: &'static str, id: &'static str, summary: &'static str) -> Described {
    described::<T>(Method::Post, path, id, summary)
}

impl Described {
    /// Asks for more than looking, or calling tools.
    pub(super) fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Takes these behind the `?`.
    pub(super) fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(schema_of::<T>);
        self
    }

    /// Takes this as JSON.
    pub(super) fn body<T: JsonSchema>(mut self) -> Self {
        self.body = Some(schema_of::<T>);
        self
    }

    /// Answers a line at a time.
    pub(super) fn lines(mut self) -> Self {
        if let Answer::Json(schema) = self.answer {
            self.answer = Answer::Lines(schema);
        }
        self
    }

    /// Becomes a WebSocket.
    pub(super) fn socket(mut self) -> Self {
        if let Answer::Json(schema) = self.answer {
            self.answer = Answer::Socket(schema);
        }
        self
    }

    /// Refuses with these statuses, too.
    pub(super) fn refuses(mut self, statuses: &'static [u16]) -> Self {
        self.refuses = statuses;
        self
    }

    /// Is done by this.
    pub(super) fn by<H, T>(self, handler: H) -> Route
    where
        H: Handler<T, Arc<Host>>,
        T: 'static,
    {
        let filter = match self.method {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
        };
        let needed = self.scope;
        let guard = axum::middleware::from_fn(move |request, next| at_least(needed, request, next));
        let mut handler = on(filter, handler);
        if self.method == Method::Post && self.body.is_none() {
            handler = handler.route_layer(axum::middleware::from_fn(whole));
        }
        Route { described: self, handler: handler.route_layer(guard) }
    }
}

/// Reads the body that a route does not ask for: who sends one all the same would else be hung up on in the middle
/// of it, and miss the answer.
async fn whole(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match axum::body::to_bytes(body, MAX_UNASKED).await {
        Ok(_) => next.run(Request::from_parts(parts, Body::empty())).await,
        Err(_) => {
            let error = format!("this takes no body; at most {MAX_UNASKED} bytes are read of one");
            ErrorResponse::new(StatusCode::PAYLOAD_TOO_LARGE, Code::TooLong, error).into_response()
        }
    }
}

/// A route.
pub(super) struct Route {
    pub(super) described: Described,
    handler: MethodRouter<Arc<Host>>,
}

/// The router of these routes. The server says by a
/// [`Client`](super::door::Client) in the request how much may be done.
pub(super) fn router(routes: Vec<Route>) -> Router<Arc<Host>> {
    let router = routes
        .into_iter()
        .fold(Router::new(), |router, Route { described, handler }| router.route(described.path, handler));
    router
        .fallback(async || {
            ErrorResponse::not_found("there is no such path; GET /v1/openapi.json lists those there are")
        })
        .method_not_allowed_fallback(async || {
            ErrorResponse::new(StatusCode::METHOD_NOT_ALLOWED, Code::BadRequest, "this path does not take this method")
        })
        // Doors read bodies, and say how long they may be.
        .layer(DefaultBodyLimit::disable())
}
