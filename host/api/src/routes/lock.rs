//! The lock for the show: looking at it, locking, unlocking.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change;
use crate::door::Client;
use crate::error::{Body, Code, ErrorResponse};
use crate::route::{Route, get, post};
use crate::scope::{By, Scope};
use conductor_host::control::lock::Lock;
use conductor_host::host::{Host, LockError};

pub(super) fn routes() -> Vec<Route> {
    vec![
        get::<LockState>("/v1/lock", "getLock", "Whether the show is locked: only its owner can change anything then")
            .by(lock),
        post::<LockState>("/v1/lock", "setLock", "Lock the show, or unlock it")
            .scope(Scope::Owner)
            .body::<SetLock>()
            .by(set),
    ]
}

/// Whether the show is locked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LockState {
    /// Whether it is.
    pub locked: bool,
    /// Who locked it, and since when; `null` if it is not locked.
    pub lock: Option<Lock>,
}

impl From<Option<Lock>> for LockState {
    fn from(lock: Option<Lock>) -> Self {
        Self { locked: lock.is_some(), lock }
    }
}

async fn lock(State(host): State<Arc<Host>>) -> Json<LockState> {
    Json(host.held_lock().into())
}

/// What the lock should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetLock {
    /// Whether the show is to be locked.
    pub locked: bool,
    /// Whether it stays locked when the host starts again. Default: false.
    #[serde(default)]
    pub persistent: bool,
}

async fn set(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Body(SetLock { locked, persistent }): Body<SetLock>,
) -> Result<Json<LockState>, ErrorResponse> {
    let lock = change(&client, move || host.set_lock(&caller, locked, persistent)).await?;
    Ok(Json(lock.into()))
}

impl From<LockError> for ErrorResponse {
    fn from(error: LockError) -> Self {
        match error {
            LockError::NotOwner => Self::new(StatusCode::FORBIDDEN, Code::Forbidden, error),
            LockError::File(_) => Self::internal(error),
        }
    }
}
