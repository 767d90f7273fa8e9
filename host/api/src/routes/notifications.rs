//! The route of the notifications of features.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use schemars::JsonSchema;
use serde::Deserialize;

use super::look;
use crate::door::Client;
use crate::error::{ErrorResponse, Query};
use crate::route::{Route, get};
use conductor_host::host::Host;
use conductor_observer::notification_log::{MAX_PAGE, NotificationPage, NotificationQuery, Order};

/// Notifications that are returned at once by default.
const DEFAULT_LIMIT: usize = 100;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get::<NotificationPage>(
            "/v1/notifications",
            "listNotifications",
            "What features notified agents of, as it is kept",
        )
        .query::<Which>()
        .refuses(&[400])
        .by(notifications),
    ]
}

/// Which notifications.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Which {
    /// Only those with a larger number. Default: 0, all.
    #[serde(default)]
    #[schemars(range(min = 0))]
    after: u64,
    /// At most this many, 1 to 1000. Default: 100. There are fewer where they have more than 2 MiB; `more` says so.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 1000))]
    limit: usize,
    /// Only those of the feature with this name or whole id.
    #[serde(default)]
    feature: Option<String>,
    /// The oldest or the newest first. Default: the oldest, those right after `after`.
    #[serde(default)]
    order: Order,
}

fn default_limit() -> usize {
    DEFAULT_LIMIT
}

async fn notifications(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    Query(Which { after, limit, feature, order }): Query<Which>,
) -> Result<Json<NotificationPage>, ErrorResponse> {
    if !(1..=MAX_PAGE).contains(&limit) {
        let error = format!("limit is {limit}; 1 to {MAX_PAGE} notifications are returned at once");
        return Err(ErrorResponse::bad_request(error));
    }
    let query = NotificationQuery { after, limit, feature, order, ..NotificationQuery::default() };
    Ok(Json(look(&client, move || host.notifications(&query).map_err(ErrorResponse::internal)).await?))
}
