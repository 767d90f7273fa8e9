//! The tool by which an agent takes back a plan of its own that waits. It is the host's own: the contract lets features
//! propose plans, and nothing else.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::described::{schema, titled};
use super::{AnswerError, Server, own_result};
use conductor_host::host::Host;

/// The tool's name.
pub const WITHDRAW_PLAN: &str = "conductor_withdraw_plan";

/// The tool as MCP describes it. It destroys nothing: what it takes back has changed nothing yet.
pub(super) fn tool() -> Tool {
    let input = json!({
        "type": "object",
        "properties": { "plan": { "type": "string", "description": "Its id." } },
        "required": ["plan"],
        "additionalProperties": false,
    });
    let output = json!({
        "type": "object",
        "properties": { "withdrawn": { "type": "string" } },
        "required": ["withdrawn"],
    });
    let description = "Take back a plan that you proposed, while it waits for a person.";
    let annotations = ToolAnnotations::new().read_only(false).destructive(false).idempotent(false).open_world(false);
    let tool = Tool::new(WITHDRAW_PLAN, description, schema(input)).with_annotations(annotations);
    titled(tool.with_raw_output_schema(schema(output)))
}

/// Takes a plan of the client back that asks.
pub(super) async fn withdraw(
    server: &Server,
    host: &Arc<Host>,
    context: &RequestContext<RoleServer>,
    args: JsonObject,
) -> CallToolResult {
    let caller = server.caller(context);
    let answer = async {
        let (Some(Value::String(plan)), 1) = (args.get("plan"), args.len()) else {
            return Err(AnswerError::wrong("`plan` is wanted, the id of a plan that waits, and nothing else"));
        };
        let (store, whose, id) = (Arc::clone(host), caller.clone(), plan.clone());
        // It is written to the disk.
        let withdraw = move || store.withdraw_plan(&whose, &id).map_err(|error| error.to_string());
        let done = server.jobs.write(withdraw).await.map_err(|error| AnswerError::wrong(error.to_string()))?;
        done.map(|()| json!({ "withdrawn": plan })).map_err(AnswerError::wrong)
    };
    own_result(host.own_tool(&caller, WITHDRAW_PLAN, answer).await)
}
