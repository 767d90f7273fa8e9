//! Plans: what waits, and what a person decides about it.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{change, look};
use crate::door::Client;
use crate::error::{Body, Code, ErrorResponse, Named};
use crate::route::{Route, get, post};
use crate::scope::{By, Scope};
use conductor_config_text::edit::Change;
use conductor_host::control::plan::{Plan, PlanSummary};
use conductor_host::host::{Applied, Host, PlanView};

/// Places that one plan changes at most.
const MAX_CHANGES: usize = 256;

pub(super) fn routes() -> Vec<Route> {
    const DECIDED: &[u16] = &[404, 409, 410, 422, 423, 503];
    vec![
        get::<Vec<PlanSummary>>(
            "/v1/plans",
            "listPlans",
            "The plans that wait for a person, oldest first, without what they change",
        )
        .by(plans),
        post::<Plan>(
            "/v1/plans",
            "proposePlan",
            "Propose changes of the configuration, for a person to look at and apply",
        )
        .scope(Scope::Owner)
        .body::<ProposePlan>()
        .refuses(&[403, 409, 422, 429, 503])
        .by(propose),
        get::<PlanView>("/v1/plans/{id}", "getPlan", "A plan, with what would have fired differently")
            .refuses(&[404, 410, 422])
            .by(plan),
        post::<Applied>("/v1/plans/{id}/apply", "applyPlan", "Apply a plan that a person has agreed to")
            .scope(Scope::Owner)
            .refuses(DECIDED)
            .by(apply),
        post::<()>("/v1/plans/{id}/reject", "rejectPlan", "Take a plan off the list, undone")
            .refuses(&[404, 423])
            .by(reject),
        get::<NextStep>("/v1/undo", "nextUndo", "What an undo would take back")
            .scope(Scope::Owner)
            .refuses(&[409, 503])
            .by(next_undo),
        post::<Applied>("/v1/undo", "undo", "Take the last applied plan back")
            .scope(Scope::Owner)
            .refuses(DECIDED)
            .by(undo),
        get::<NextStep>("/v1/redo", "nextRedo", "What a redo would apply again")
            .scope(Scope::Owner)
            .refuses(&[409, 503])
            .by(next_redo),
        post::<Applied>("/v1/redo", "redo", "Apply again what was undone last")
            .scope(Scope::Owner)
            .refuses(DECIDED)
            .by(redo),
    ]
}

/// The plan that an undo or a redo is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NextStep {
    /// What it does, as it was proposed.
    pub description: String,
}

/// What a person proposes in a shell.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProposePlan {
    /// What the changes are for, in a line.
    pub description: String,
    /// What is to stand where, 1 to 256 places.
    pub changes: Vec<Change>,
}

async fn propose(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Body(ProposePlan { description, changes }): Body<ProposePlan>,
) -> Result<Json<Plan>, ErrorResponse> {
    if changes.is_empty() || changes.len() > MAX_CHANGES {
        let error = format!("a plan has 1 to {MAX_CHANGES} changes, not {}", changes.len());
        return Err(ErrorResponse::new(StatusCode::UNPROCESSABLE_ENTITY, Code::Invalid, error));
    }
    Ok(Json(look(&client, move || host.propose_plan(&caller, &description, changes)).await?))
}

async fn plans(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
) -> Result<Json<Vec<PlanSummary>>, ErrorResponse> {
    Ok(Json(look(&client, move || host.plan_summaries()).await?))
}

async fn plan(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Named(id): Named,
) -> Result<Json<PlanView>, ErrorResponse> {
    Ok(Json(look(&client, move || host.plan_for(&caller, &id)).await?))
}

async fn apply(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Named(id): Named,
) -> Result<Json<Applied>, ErrorResponse> {
    Ok(Json(change(&client, move || host.apply_plan(&caller, &id)).await?))
}

async fn reject(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Named(id): Named,
) -> Result<Json<()>, ErrorResponse> {
    Ok(Json(change(&client, move || host.reject_plan(&caller, &id)).await?))
}

async fn next_undo(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
) -> Result<Json<NextStep>, ErrorResponse> {
    let description = look(&client, move || host.next_undo()).await?;
    Ok(Json(NextStep { description }))
}

async fn next_redo(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
) -> Result<Json<NextStep>, ErrorResponse> {
    let description = look(&client, move || host.next_redo()).await?;
    Ok(Json(NextStep { description }))
}

async fn undo(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
) -> Result<Json<Applied>, ErrorResponse> {
    Ok(Json(change(&client, move || host.undo(&caller)).await?))
}

async fn redo(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
) -> Result<Json<Applied>, ErrorResponse> {
    Ok(Json(change(&client, move || host.redo(&caller)).await?))
}
