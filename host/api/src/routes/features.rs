//! Features, and their background tasks.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Code, ErrorResponse, Named, NamedIn};
use crate::route::{Route, get, post};
use crate::scope::{By, Scope};
use conductor_host::host::Host;
use conductor_registry::{FeatureReport, TaskError, TaskReport};

pub(super) fn routes() -> Vec<Route> {
    vec![
        get::<Vec<FeatureReport>>(
            "/v1/features",
            "listFeatures",
            "Every feature: grants, counters, what it contributes",
        )
        .by(features),
        post::<Lifted>("/v1/features/{name}/lift", "liftQuarantine", "End a feature's quarantine")
            .scope(Scope::Owner)
            .refuses(&[404])
            .by(lift),
        post::<TaskReport>(
            "/v1/features/{name}/tasks/{task}/start",
            "startTask",
            "Start a background task of a feature; without effect if it runs",
        )
        .scope(Scope::Owner)
        .refuses(&[404, 409])
        .by(start_task),
        post::<TaskReport>(
            "/v1/features/{name}/tasks/{task}/stop",
            "stopTask",
            "Have a background task of a feature end; without effect if it does not run",
        )
        .scope(Scope::Owner)
        .refuses(&[404])
        .by(stop_task),
    ]
}

async fn features(State(host): State<Arc<Host>>) -> Json<Vec<FeatureReport>> {
    Json(host.features())
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lifted {
    /// Whether it was in quarantine.
    pub lifted: bool,
}

async fn lift(
    State(host): State<Arc<Host>>,
    By(caller): By,
    Named(name): Named,
) -> Result<Json<Lifted>, ErrorResponse> {
    match host.lift_quarantine(&caller, &name) {
        Some(lifted) => Ok(Json(Lifted { lifted })),
        None => Err(ErrorResponse::not_found(format!("no feature {name:?} runs"))),
    }
}

async fn start_task(
    State(host): State<Arc<Host>>,
    By(caller): By,
    NamedIn(feature, task): NamedIn,
) -> Result<Json<TaskReport>, ErrorResponse> {
    Ok(Json(host.switch_task(&caller, &feature, &task, true)?))
}

async fn stop_task(
    State(host): State<Arc<Host>>,
    By(caller): By,
    NamedIn(feature, task): NamedIn,
) -> Result<Json<TaskReport>, ErrorResponse> {
    Ok(Json(host.switch_task(&caller, &feature, &task, false)?))
}

impl From<TaskError> for ErrorResponse {
    fn from(error: TaskError) -> Self {
        let (status, code) = match error {
            TaskError::NoFeature(_) | TaskError::NoTask { .. } => (StatusCode::NOT_FOUND, Code::NotFound),
            TaskError::StillEnding { .. } => (StatusCode::CONFLICT, Code::Conflict),
        };
        Self::new(status, code, error)
    }
}
