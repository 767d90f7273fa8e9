//! How the host is.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use crate::api::route::{Route, get};
use crate::host::Host;
use crate::host::status::Status;

pub(super) fn routes() -> Vec<Route> {
    vec![get::<Status>("/v1/status", "getStatus", "Everything there is to know about the host").by(status)]
}

async fn status(State(host): State<Arc<Host>>) -> Json<Status> {
    Json(host.status())
}
