//! Models: those of the configuration, whether one answers, and what it takes to add one.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conversations::Chat;
use super::look;
use crate::door::Client;
use crate::error::{Body, Code, ErrorResponse, Named};
use crate::route::{Route, get, post};
use crate::scope::{By, Scope};
use conductor_chat::conversations::{ModelHealth, NO_ANSWER};
use conductor_chat::listing::{AvailableModel, Endpoint};
use conductor_chat::model_setup::{ModelAccess, ModelChange, NewModel};
use conductor_chat::models::{ModelSummary, Models, ProviderView};
use conductor_host::control::plan::Plan;
use conductor_host::host::Host;
use conductor_services::error::ServiceError;

pub(super) fn routes() -> Vec<Route> {
    const PLAN: &[u16] = &[403, 404, 409, 422, 429, 503];
    let listing = "Ask the API of a provider which models there are, under the grants of its feature";
    let check = "Ask a model for a word, to see whether it answers; its API may charge for that";
    vec![
        get::<Vec<ModelSummary>>(
            "/v1/models",
            "listModels",
            "The models of the configuration, and what is known of them",
        )
        .refuses(&[503])
        .by(models),
        get::<Vec<ProviderView>>("/v1/providers", "listProviders", "The providers of models, and where their APIs are")
            .refuses(&[503])
            .by(providers),
        post::<Vec<AvailableModel>>("/v1/providers/{name}/models", "askForModels", listing)
            .scope(Scope::Owner)
            .body::<Endpoint>()
            .refuses(&[404, 409, 422, 502, 503])
            .by(available),
        post::<ModelAccess>(
            "/v1/providers/{name}/access",
            "accessToModels",
            "What requests to the API of a provider take, and what of it its feature has not been granted",
        )
        .scope(Scope::Owner)
        .body::<Endpoint>()
        .refuses(&[404, 422, 503])
        .by(access),
        post::<ProposedModel>("/v1/models", "proposeModel", "Propose to add a model, as a plan")
            .scope(Scope::Owner)
            .body::<NewModel>()
            .refuses(PLAN)
            .by(propose),
        post::<ProposedRemoval>(
            "/v1/models/{name}/remove",
            "proposeModelRemoval",
            "Propose to remove a model, as a plan, and say what no other model needs then",
        )
        .scope(Scope::Owner)
        .refuses(PLAN)
        .by(propose_removal),
        // It costs money, which no limit of conversations holds.
        post::<ModelHealth>("/v1/models/{name}/check", "checkModel", check)
            .scope(Scope::Owner)
            .refuses(&[404, 503])
            .by(checked),
    ]
}

/// A plan that adds a model.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ProposedModel {
    /// Its name under `[models]`.
    pub name: String,
    /// Whether conversations ask it without its name; else `models` under `[chat]` lists others.
    pub in_conversations: bool,
    /// The plan, which waits for a person.
    pub plan: Plan,
}

/// A plan that removes a model.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ProposedRemoval {
    /// The plan, which waits for a person.
    pub plan: Plan,
    /// The id of the key that is kept and that no other model needs; `null` if there is none.
    pub secret: Option<String>,
    /// The name of the feature that may send requests to an API that no other model needs; `null` if there is none.
    pub feature: Option<String>,
    /// What that feature was granted for it, as words of `POST /v1/features/{name}/revoke`.
    pub capabilities: Vec<String>,
}

async fn models(
    Extension(chat): Extension<Chat>,
    Extension(client): Extension<Client>,
) -> Result<Json<Vec<ModelSummary>>, ErrorResponse> {
    let chat = chat.get()?;
    let health = chat.health();
    let mut models = chat.models().map(|models| models.views()).unwrap_or_default();
    for model in &mut models {
        let shown = |why: String| if client.is_owner() { why } else { NO_ANSWER.to_owned() };
        model.error = health.get(&model.name).cloned().flatten().map(shown);
    }
    Ok(Json(models))
}

async fn providers(Extension(chat): Extension<Chat>) -> Result<Json<Vec<ProviderView>>, ErrorResponse> {
    Ok(Json(chat.get()?.models().map(|models| models.providers()).unwrap_or_default()))
}

async fn available(
    Extension(chat): Extension<Chat>,
    Named(name): Named,
    Body(at): Body<Endpoint>,
) -> Result<Json<Vec<AvailableModel>>, ErrorResponse> {
    let models = with_provider(chat, &name)?;
    Ok(Json(models.available(&name, &at).await.map_err(|error| refused(error.into()))?))
}

async fn access(
    Extension(chat): Extension<Chat>,
    Named(name): Named,
    Body(at): Body<Endpoint>,
) -> Result<Json<ModelAccess>, ErrorResponse> {
    let models = with_provider(chat, &name)?;
    Ok(Json(models.access(&name, &at).map_err(|error| refused(error.into()))?))
}

async fn propose(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    Extension(chat): Extension<Chat>,
    By(caller): By,
    Body(new): Body<NewModel>,
) -> Result<Json<ProposedModel>, ErrorResponse> {
    let models = in_force(chat)?;
    let ModelChange { name, description, change } = models.adding(&new).map_err(|error| refused(error.into()))?;
    let plan = look(&client, move || host.propose_plan(&caller, &description, vec![change])).await?;
    let asked = &models.chat().models;
    let in_conversations = asked.is_empty() || asked.contains(&name);
    Ok(Json(ProposedModel { name, in_conversations, plan }))
}

async fn propose_removal(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    Extension(chat): Extension<Chat>,
    By(caller): By,
    Named(name): Named,
) -> Result<Json<ProposedRemoval>, ErrorResponse> {
    let models = in_force(chat)?;
    if !models.views().iter().any(|model| model.name == name) {
        // With the name that was meant, if one is near.
        let why = models.removing(&name).err().map_or_else(String::new, |error| ServiceError::from(error).to_string());
        return Err(ErrorResponse::not_found(why));
    }
    let (change, left) = models.removing(&name).map_err(|error| refused(error.into()))?;
    let ModelChange { description, change, .. } = change;
    let secrets = host.secrets(&caller)?;
    let plan = look(&client, move || host.propose_plan(&caller, &description, vec![change])).await?;
    let kept = look(&client, move || secrets.list()).await?;
    Ok(Json(ProposedRemoval {
        plan,
        secret: left.secret.filter(|id| kept.contains_key(id)),
        feature: left.feature,
        capabilities: left.capabilities,
    }))
}

fn in_force(chat: Chat) -> Result<Arc<Models>, ErrorResponse> {
    let stopping = || ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, "the host is stopping");
    chat.get()?.models().ok_or_else(stopping)
}

/// The models in force, if there is a provider of this name.
fn with_provider(chat: Chat, name: &str) -> Result<Arc<Models>, ErrorResponse> {
    let models = in_force(chat)?;
    match models.provider_view(name) {
        Ok(_) => Ok(models),
        Err(error) => Err(ErrorResponse::not_found(ServiceError::from(error).to_string())),
    }
}

/// Why a model or an API can't be had.
fn refused(why: ServiceError) -> ErrorResponse {
    let (status, code) = match &why {
        ServiceError::Denied(_) => (StatusCode::CONFLICT, Code::Conflict),
        ServiceError::Unavailable(_) | ServiceError::Exhausted(_) => {
            (StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable)
        }
        ServiceError::Invalid(_) => (StatusCode::UNPROCESSABLE_ENTITY, Code::Invalid),
        ServiceError::Failed(_) => (StatusCode::BAD_GATEWAY, Code::Failed),
    };
    ErrorResponse::new(status, code, why)
}

async fn checked(Extension(chat): Extension<Chat>, Named(name): Named) -> Result<Json<ModelHealth>, ErrorResponse> {
    let chat = chat.get()?;
    let known = chat.models().is_some_and(|models| models.views().iter().any(|model| model.name == name));
    if !known {
        return Err(ErrorResponse::not_found(format!("there is no model {name:.64?} under [models]")));
    }
    Ok(Json(chat.check(&name).await))
}
