//! Routes of the host's status, and of the API's own description.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::Value;

use super::openapi::{self, Document};
use crate::route::{Route, get};
use conductor_host::host::Host;
use conductor_host::host::status::Status;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get::<Status>("/v1/status", "getStatus", "Everything there is to know about the host").by(status),
        get::<Document>("/v1/openapi.json", "getDocument", "This document").by(document),
    ]
}

async fn status(State(host): State<Arc<Host>>) -> Json<Status> {
    Json(host.status())
}

async fn document() -> Json<Value> {
    Json(openapi::document())
}
