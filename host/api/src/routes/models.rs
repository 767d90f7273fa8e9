//! Models: those of the configuration, and whether one answers.

use axum::Json;
use axum::extract::Extension;
use axum::http::StatusCode;

use super::conversations::Chat;
use crate::error::{Body, Code, ErrorResponse, Named};
use crate::route::{Route, get, post};
use crate::scope::Scope;
use conductor_chat::conversations::ModelHealth;
use conductor_chat::listing::{AvailableModel, Endpoint};
use conductor_chat::models::{ModelSummary, ProviderView};
use conductor_services::error::ServiceError;

pub(super) fn routes() -> Vec<Route> {
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
        post::<ModelHealth>("/v1/models/{name}/check", "checkModel", check).refuses(&[404, 503]).by(checked),
    ]
}

async fn models(Extension(chat): Extension<Chat>) -> Result<Json<Vec<ModelSummary>>, ErrorResponse> {
    let chat = chat.get()?;
    let health = chat.health();
    let mut models = chat.models().map(|models| models.views()).unwrap_or_default();
    for model in &mut models {
        model.error = health.get(&model.name).cloned().flatten();
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
    let stopping = || ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, "the host is stopping");
    let models = chat.get()?.models().ok_or_else(stopping)?;
    if !models.providers().iter().any(|provider| provider.name == name) {
        let there: Vec<String> = models.providers().into_iter().map(|provider| provider.name).collect();
        let error = format!("there is no provider {name:.64?}; there are {}", there.join(", "));
        return Err(ErrorResponse::not_found(error));
    }
    Ok(Json(models.available(&name, &at).await.map_err(|error| not_listed(error.into()))?))
}

/// Why a provider's API lists no models.
fn not_listed(why: ServiceError) -> ErrorResponse {
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
