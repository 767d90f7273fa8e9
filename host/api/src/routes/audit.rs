//! Routes of the audit log.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::look;
use crate::door::Client;
use crate::error::{Code, ErrorResponse, Query};
use crate::route::{Route, get};
use crate::scope::Scope;
use conductor_audit::{AuditError, Row};
use conductor_host::host::Host;

/// Rows that are returned at once by default.
const DEFAULT_ROWS: u32 = 100;
/// Rows that are returned at once, at most.
const MAX_ROWS: u32 = 1000;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get::<Vec<AuditRow>>("/v1/audit", "listAudit", "Entries of the audit log, oldest first")
            .scope(Scope::Control)
            .query::<AuditQuery>()
            .by(audit),
    ]
}

/// Which rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditQuery {
    /// Only those after this number. Default: the last ones.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub after: Option<u64>,
    /// At most this many, 1 to 1000. Default: 100.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u32>,
}

/// Something that is on record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRow {
    /// From 1, without gaps.
    pub number: i64,
    /// Milliseconds since 1970.
    pub at: i64,
    /// `tool`, `prompt`, `resource`, `model`, `plan`, `grant`, `package`, `secret`, `host` or `audit`.
    pub kind: String,
    /// What was done, or should have been.
    pub what: String,
    /// Who wanted it, as text: `socket:owner "conductor-cli"`.
    pub who: String,
    /// The door that they came through: `socket`, `tcp`, `mcp-socket`, `mcp-http`, `chat`, `cli`, `library`,
    /// `configuration`, `feature` or `host`. `None` in a row that an older host wrote.
    pub door: Option<String>,
    /// How much the door let them do: `owner`, `control`, `read` or `agent`. `None` for what is no client.
    pub scope: Option<String>,
    /// What the client calls itself, or a feature's id, with escapes.
    pub client: Option<String>,
    /// Whether an agent's program says that its user has answered.
    pub elicited: Option<bool>,
    /// The subject: a tool, a plan, a feature, a secret.
    pub subject: String,
    /// `begun`, `done`, `refused` or `failed`.
    pub outcome: String,
    /// Microseconds; `null` if nothing was waited for.
    pub took_us: Option<i64>,
    /// More, by kind.
    pub detail: Value,
    /// The row's hash in the chain, 64 hex digits.
    pub hash: String,
}

impl From<Row> for AuditRow {
    fn from(row: Row) -> Self {
        let detail = serde_json::from_str(&row.detail).unwrap_or_default();
        let Row { number, at, kind, what, who, door, scope, client, elicited, subject, outcome, took, hash, .. } = row;
        let elicited = elicited.map(|elicited| elicited != 0);
        Self {
            number,
            at,
            kind,
            what,
            who,
            door,
            scope,
            client,
            elicited,
            subject,
            outcome,
            took_us: took,
            detail,
            hash,
        }
    }
}

async fn audit(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    Query(which): Query<AuditQuery>,
) -> Result<Json<Vec<AuditRow>>, ErrorResponse> {
    let limit = which.limit.unwrap_or(DEFAULT_ROWS);
    if !(1..=MAX_ROWS).contains(&limit) {
        return Err(ErrorResponse::bad_request(format!("limit is {limit}; 1 to {MAX_ROWS} rows are returned at once")));
    }
    let after = which.after.map(|after| i64::try_from(after).unwrap_or(i64::MAX));
    let rows = look(&client, move || host.audit_rows(after, limit)).await?;
    Ok(Json(rows.into_iter().map(AuditRow::from).collect()))
}

impl From<AuditError> for ErrorResponse {
    fn from(error: AuditError) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Code::Internal, error)
    }
}
