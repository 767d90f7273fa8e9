//! Models: those of the configuration, and whether one answers.

use axum::Json;
use axum::extract::Extension;

use super::conversations::Chat;
use crate::error::{ErrorResponse, Named};
use crate::route::{Route, get, post};
use conductor_chat::conversations::ModelHealth;
use conductor_chat::models::ModelSummary;

pub(super) fn routes() -> Vec<Route> {
    let check = "Ask a model for a word, to see whether it answers; its API may charge for that";
    vec![
        get::<Vec<ModelSummary>>(
            "/v1/models",
            "listModels",
            "The models of the configuration, and what is known of them",
        )
        .refuses(&[503])
        .by(models),
        post::<ModelHealth>("/v1/models/{name}/check", "checkModel", check).refuses(&[404, 503]).by(checked),
    ]
}

async fn models(Extension(chat): Extension<Chat>) -> Result<Json<Vec<ModelSummary>>, ErrorResponse> {
    Ok(Json(chat.get()?.models().map(|models| models.views()).unwrap_or_default()))
}

async fn checked(Extension(chat): Extension<Chat>, Named(name): Named) -> Result<Json<ModelHealth>, ErrorResponse> {
    let chat = chat.get()?;
    let known = chat.models().is_some_and(|models| models.views().iter().any(|model| model.name == name));
    if !known {
        return Err(ErrorResponse::not_found(format!("there is no model {name:.64?} under [models]")));
    }
    Ok(Json(chat.check(&name).await))
}
