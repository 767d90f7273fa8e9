//! Features, and what they tell agents to read.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{ErrorResponse, Named};
use crate::route::{Route, get, post};
use crate::scope::{By, Scope};
use conductor_host::host::Host;
use conductor_registry::{FeatureReport, Skill};

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
        get::<Vec<Skill>>("/v1/skills", "listSkills", "What features tell agents to read").by(skills),
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

async fn skills(State(host): State<Arc<Host>>) -> Json<Vec<Skill>> {
    Json(host.skills())
}
