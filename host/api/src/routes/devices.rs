//! Routes of ports, bindings, and muted devices.

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
use conductor_host::host::{ChangeError, Host, PlayError};
use conductor_observer::light::DeviceLights;
use conductor_ports::status::{BindingStatus, DiscoveredPort};

pub(super) fn routes() -> Vec<Route> {
    vec![
        get::<Ports>("/v1/ports", "listPorts", "Every port of every protocol, with its state").by(ports),
        get::<Vec<BindingStatus>>("/v1/bindings", "listBindings", "Every binding of the configuration, and its health")
            .by(bindings),
        get::<Vec<DeviceLights>>(
            "/v1/lights",
            "listLights",
            "What the lights of each MIDI output show; the event stream says when that changes",
        )
        .by(lights),
        post::<Muted>("/v1/mute", "mute", "Stop hearing a device until the host ends, or hear it again")
            .body::<Mute>()
            .refuses(&[404, 423])
            .by(mute),
        post::<Played>("/v1/play", "play", "Have an event come from a device, as if its port had sent it")
            .scope(Scope::Owner)
            .body::<Play>()
            .refuses(&[404, 422, 423])
            .by(play),
    ]
}

/// What the system and the network offer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Ports {
    /// Every port of every backend.
    pub ports: Vec<DiscoveredPort>,
    /// Backends as a whole, with the reason why they can't be used.
    pub unreachable: Vec<(String, String)>,
}

async fn ports(State(host): State<Arc<Host>>) -> Json<Ports> {
    let status = host.ports();
    Json(Ports { ports: status.ports, unreachable: status.unreachable })
}

async fn bindings(State(host): State<Arc<Host>>) -> Json<Vec<BindingStatus>> {
    Json(host.ports().bindings)
}

async fn lights(State(host): State<Arc<Host>>) -> Json<Vec<DeviceLights>> {
    Json(host.lights())
}

/// Which device, and whether it is to be muted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mute {
    /// A binding's alias, or a port's own name.
    pub device: String,
    /// Whether it is not to be heard.
    pub muted: bool,
}

/// How the device is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Muted {
    /// Whether it is not heard.
    pub muted: bool,
}

/// Answers when it is done: ports may have to be looked at, which takes a moment.
async fn mute(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Body(Mute { device, muted }): Body<Mute>,
) -> Result<Json<Muted>, ErrorResponse> {
    change(&client, move || host.mute_for(&caller, &device, muted)).await?;
    Ok(Json(Muted { muted }))
}

/// An event that no port sent. Mappings fire for it, and what they do is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Play {
    /// A binding's alias, whether its port is there or not, or a port's own name.
    pub device: String,
    /// One event of the line language, such as `note-on 36 100` or `osc /fader 0.5`.
    pub event: String,
}

/// The event is on its way; the event stream shows it with what fired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Played {}

async fn play(
    State(host): State<Arc<Host>>,
    By(caller): By,
    Body(Play { device, event }): Body<Play>,
) -> Result<Json<Played>, ErrorResponse> {
    host.play_for(&caller, &device, &event)?;
    Ok(Json(Played {}))
}

impl From<PlayError> for ErrorResponse {
    fn from(error: PlayError) -> Self {
        match error {
            PlayError::Locked(locked) => locked.into(),
            PlayError::Device(_) => Self::not_found(error),
            PlayError::Event(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, Code::Invalid, error),
            PlayError::Busy => Self::new(StatusCode::TOO_MANY_REQUESTS, Code::TooMany, error),
        }
    }
}

impl From<ChangeError> for ErrorResponse {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Locked(locked) => locked.into(),
            ChangeError::Mode(_) | ChangeError::Device(_) => Self::not_found(error),
        }
    }
}
