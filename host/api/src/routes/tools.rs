//! Tools: what there is, and calling one, by its name or by the route that its feature declares.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::error::{Body, Code, ErrorResponse, Named, NamedIn};
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
        post::<Value>(
            "/v1/{feature}/{route}",
            "callRoute",
            "Call the tool behind a route that a feature declares: its arguments in, its result out",
        )
        .body::<Map<String, Value>>()
        .refuses(&[404, 413, 422, 423, 429, 502, 503])
        .by(call_route),
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

/// The status of the answer is what the tool's result says, where the route's declaration names a field for it.
async fn call_route(
    State(host): State<Arc<Host>>,
    By(caller): By,
    NamedIn(feature, route): NamedIn,
    request: Result<Body<Map<String, Value>>, ErrorResponse>,
) -> Result<(StatusCode, Json<Value>), ErrorResponse> {
    let declared = |tool: &ToolView| {
        let name = tool.feature.rsplit(':').next();
        tool.tool.doors.route.clone().filter(|declared| name == Some(&*feature) && declared.name == route)
    };
    let tools = host.tools();
    let Some((tool, declared)) = tools.iter().find_map(|tool| Some((&tool.tool.name, declared(tool)?))) else {
        return Err(ErrorResponse::not_found(format!(
            "there is no route /v1/{feature}/{route}; the API's own are in /v1/openapi.json, those of features in \
             /v1/tools under `route`"
        )));
    };
    let args = match request {
        Ok(Body(args)) => args,
        Err(refusal) => {
            host.refuse_call(&caller, tool, refusal.text()).await;
            return Err(refusal);
        }
    };
    let request = ToolRequest { args, confirmed: false, confirmation: None };
    let ToolResult { result, .. } = called(&host, &caller, tool, request).await?;
    let Some(field) = declared.status else { return Ok((StatusCode::OK, Json(result))) };
    let said = result[&field].as_u64().and_then(|status| u16::try_from(status).ok());
    let status = said.filter(|status| (200..=599).contains(status)).and_then(|it| StatusCode::from_u16(it).ok());
    let wrong = || {
        let error = format!("{tool} of {feature} declares that `{field}` is the answer's status, and it is no status");
        ErrorResponse::new(StatusCode::BAD_GATEWAY, Code::Failed, error)
    };
    Ok((status.ok_or_else(wrong)?, Json(result)))
}

/// Calls a tool for a client with this scope.
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
