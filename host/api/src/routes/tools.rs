//! Tools: what there is, and calling one.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use tokio_util::sync::CancellationToken;

use crate::error::{Body, Code, ErrorResponse, Named};
use crate::route::{Route, get, post};
use crate::scope::By;
use conductor_audit::caller::Caller;
use conductor_host::control::gate::{ToolRequest, ToolResult, ToolView};
use conductor_host::host::Host;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get::<Vec<ToolView>>("/v1/tools", "listTools", "The tools that may be called, with their schemas").by(tools),
        post::<ToolResult>("/v1/tools/{name}", "callTool", "Call a tool; a client that leaves takes its call with it")
            .body::<ToolRequest>()
            .refuses(&[404, 409, 413, 422, 423, 429, 503])
            .by(call),
    ]
}

async fn tools(State(host): State<Arc<Host>>) -> Json<Vec<ToolView>> {
    Json(host.tools())
}

async fn call(
    State(host): State<Arc<Host>>,
    By(caller): By,
    Named(name): Named,
    request: Result<Body<ToolRequest>, ErrorResponse>,
) -> Result<Json<ToolResult>, ErrorResponse> {
    match request {
        Ok(Body(request)) => Ok(Json(called(&host, &caller, &name, request).await?)),
        Err(refusal) => {
            host.refuse_call(&caller, &name, refusal.text()).await;
            Err(refusal)
        }
    }
}

/// Calls a tool for somebody who may do so much.
pub(crate) async fn called(
    host: &Host,
    caller: &Caller,
    name: &str,
    request: ToolRequest,
) -> Result<ToolResult, ErrorResponse> {
    // Only the owner may say that a person agreed.
    if request.confirmed && !caller.is_owner() {
        let error = "only a person confirms, with `conductor tool call`; this token may not";
        host.refuse_call(caller, name, error).await;
        return Err(ErrorResponse::new(StatusCode::FORBIDDEN, Code::Forbidden, error));
    }
    let cancelled = CancellationToken::new();
    let _leaving = cancelled.clone().drop_guard();
    Ok(host.call_tool(caller, name, request, cancelled, Arc::new(|_, _| {})).await?)
}
