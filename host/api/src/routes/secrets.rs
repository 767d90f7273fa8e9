//! Secrets: which there are, and where each is kept. No answer ever has a value in it.

use std::collections::BTreeMap;
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
use conductor_host::host::Host;
use conductor_host::host::secrets::{SecretChangeError, SecretHome};
use conductor_services::keychain::Keychain;
use conductor_services::secret_store::{Place, StoreError};

pub(super) fn routes() -> Vec<Route> {
    const REFUSES: &[u16] = &[404, 409, 422, 503];
    vec![
        get::<BTreeMap<String, Place>>("/v1/secrets", "listSecrets", "The ids of secrets, and where each is kept")
            .scope(Scope::Owner)
            .refuses(&[409])
            .by(list),
        post::<SecretSet>("/v1/secrets/{id}", "setSecret", "Keep a secret, or say in which variable it is")
            .scope(Scope::Owner)
            .body::<SetSecret>()
            .refuses(REFUSES)
            .by(set),
        post::<()>("/v1/secrets/{id}/remove", "removeSecret", "Forget a secret")
            .scope(Scope::Owner)
            .refuses(REFUSES)
            .by(remove),
    ]
}

/// Either a value or a variable.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetSecret {
    /// The value, which is kept in a keychain of the system.
    #[serde(default)]
    pub value: Option<String>,
    /// Which keychain. Default: the desktop's keyring if there is one that answers.
    #[serde(default)]
    pub r#in: Option<Keychain>,
    /// The variable of the host's environment that has the value; nothing is kept then.
    #[serde(default)]
    pub env: Option<String>,
}

/// Where a secret is from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretSet {
    /// The place.
    pub place: Place,
}

async fn list(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
) -> Result<Json<BTreeMap<String, Place>>, ErrorResponse> {
    Ok(Json(look(&client, move || host.secrets(&caller)?.list()).await?))
}

async fn set(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Named(id): Named,
    Body(SetSecret { value, r#in, env }): Body<SetSecret>,
) -> Result<Json<SecretSet>, ErrorResponse> {
    let work = move || {
        let secrets: SecretHome = host.secrets(&caller)?;
        match (value, env) {
            (Some(value), None) => secrets.set(&id, &value, r#in),
            (None, Some(variable)) if r#in.is_none() => secrets.refer(&id, &variable),
            _ => Err(SecretChangeError::Which),
        }
    };
    Ok(Json(SecretSet { place: change(&client, work).await? }))
}

async fn remove(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Named(id): Named,
) -> Result<Json<()>, ErrorResponse> {
    Ok(Json(change(&client, move || host.secrets(&caller)?.remove(&id)).await?))
}

impl From<SecretChangeError> for ErrorResponse {
    fn from(error: SecretChangeError) -> Self {
        let (status, code) = match &error {
            SecretChangeError::NoHome => (StatusCode::CONFLICT, Code::Conflict),
            SecretChangeError::Which => (StatusCode::UNPROCESSABLE_ENTITY, Code::BadRequest),
            SecretChangeError::Unrecorded(_) => (StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable),
            SecretChangeError::Store(StoreError::Unknown(_)) => (StatusCode::NOT_FOUND, Code::NotFound),
            SecretChangeError::Store(StoreError::Id(_) | StoreError::Variable(_) | StoreError::Value(_)) => {
                (StatusCode::UNPROCESSABLE_ENTITY, Code::BadRequest)
            }
            SecretChangeError::Store(StoreError::Keychain(_) | StoreError::List { .. }) => {
                (StatusCode::INTERNAL_SERVER_ERROR, Code::Internal)
            }
        };
        Self::new(status, code, error)
    }
}
