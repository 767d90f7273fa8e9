//! Modes, and the profiles that choose them.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change;
use crate::door::Client;
use crate::error::{Body, ErrorResponse};
use crate::route::{Route, get, post};
use crate::scope::By;
use conductor_host::host::Host;
use conductor_rules::profile::ProfileView;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get::<Modes>("/v1/modes", "listModes", "The modes there are, and the active one").by(modes),
        post::<ModeBody>("/v1/mode", "switchMode", "Make another mode active; the event stream says when it is")
            .body::<ModeBody>()
            .refuses(&[404, 423])
            .by(switch),
        get::<Profiles>(
            "/v1/profiles",
            "listProfiles",
            "Which mode applies for which application, and what is in front",
        )
        .by(profiles),
    ]
}

/// The modes of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Modes {
    /// The active one; `null` if there are no modes.
    pub mode: Option<String>,
    /// All of them, in the configuration's order.
    pub modes: Vec<String>,
}

async fn modes(State(host): State<Arc<Host>>) -> Json<Modes> {
    let (mode, modes) = host.modes();
    Json(Modes { mode, modes })
}

/// The mode that is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModeBody {
    /// Its name.
    pub mode: String,
}

async fn switch(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Body(asked): Body<ModeBody>,
) -> Result<Json<ModeBody>, ErrorResponse> {
    let mode = asked.mode.clone();
    change(&client, move || host.switch_mode(&caller, &mode)).await?;
    Ok(Json(asked))
}

/// Profiles, and what they go by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Profiles {
    /// In the configuration's order.
    pub profiles: Vec<ProfileView>,
    /// The application in front (the active window); `null` if there is none or it is unknown.
    pub front: Option<String>,
    /// Why it is not known which one is in front.
    pub front_unknown: Option<String>,
    /// The active mode.
    pub mode: Option<String>,
}

async fn profiles(State(host): State<Arc<Host>>) -> Json<Profiles> {
    let status = host.status();
    let (profiles, front, front_unknown) = (status.profiles, status.front, status.front_unknown);
    Json(Profiles { profiles, front, front_unknown, mode: status.mode })
}
