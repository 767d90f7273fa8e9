//! Routes of ports, bindings, and muted devices.

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
use conductor_host::host::{ChangeError, Host};
use conductor_ports::status::{BindingStatus, DiscoveredPort};

pub(super) fn routes() -> Vec<Route> {
    vec![
        get::<Ports>("/v1/ports", "listPorts", "Every port of every protocol, with what became of it").by(ports),
        get::<Vec<BindingStatus>>("/v1/bindings", "listBindings", "Every binding of the configuration, and its health")
            .by(bindings),
        post::<Muted>("/v1/mute", "mute", "Stop hearing a device until the host ends, or hear it again")
            .body::<Mute>()
            .refuses(&[404, 423])
            .by(mute),
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

impl From<ChangeError> for ErrorResponse {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Locked(locked) => locked.into(),
            ChangeError::Mode(_) | ChangeError::Device(_) => Self::not_found(error),
        }
    }
}
