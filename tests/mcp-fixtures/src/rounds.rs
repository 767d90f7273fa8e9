//! Tools of the suite that want something of the client before they answer, as 2026-07-28 does it.

use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, InputRequiredResult};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value, json};

/// Their names.
pub const TOOLS: &[&str] = &[
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
];

/// One elicitation of one text.
pub fn ask(key: &str, message: &str, field: &str) -> Value {
    let kind = if field == "ok" { "boolean" } else { "string" };
    let schema = json!({ "type": "object", "properties": { field: { "type": kind } }, "required": [field] });
    json!({ key: { "method": "elicitation/create", "params": { "mode": "form", "message": message, "requestedSchema": schema } } })
}

fn sampling(key: &str, text: &str) -> Value {
    let messages = json!([{ "role": "user", "content": { "type": "text", "text": text } }]);
    json!({ key: { "method": "sampling/createMessage", "params": { "messages": messages, "maxTokens": 100 } } })
}

fn roots(key: &str) -> Value {
    json!({ key: { "method": "roots/list", "params": {} } })
}

fn all(parts: &[Value]) -> Value {
    let parts = parts.iter().filter_map(Value::as_object).flat_map(|part| part.clone());
    Value::Object(parts.collect::<Map<_, _>>())
}

fn wants(requests: Value, state: Option<&str>) -> Result<Option<CallToolResponse>, ErrorData> {
    let mut result = json!({ "resultType": "input_required", "inputRequests": requests });
    if let Some(state) = state {
        result["requestState"] = state.into();
    }
    let result: InputRequiredResult =
        serde_json::from_value(result).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(Some(result.into()))
}

fn says(text: String) -> Result<Option<CallToolResponse>, ErrorData> {
    Ok(Some(CallToolResult::success(vec![ContentBlock::text(text)]).into()))
}

/// The answer of one of them; `None` if it is none of them.
pub fn answer(
    name: &str,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Option<CallToolResponse>, ErrorData> {
    let said =
        |key: &str| request.input_responses.as_ref().and_then(|all| all.get(key)).filter(|said| said.is_object());
    let state = request.request_state.as_deref();
    let wrong = || Err(ErrorData::invalid_params("this requestState is not one that was handed out", None));
    match name {
        "test_input_required_result_elicitation" => {
            match said("user_name").and_then(|said| said["content"]["name"].as_str()) {
                Some(name) => says(format!("Hello, {name}!")),
                None => wants(ask("user_name", "What is your name?", "name"), None),
            }
        }
        "test_input_required_result_sampling" => match said("capital_question") {
            Some(said) => says(said["content"]["text"].as_str().unwrap_or_default().to_owned()),
            None => wants(sampling("capital_question", "What is the capital of France?"), None),
        },
        "test_input_required_result_list_roots" => match said("client_roots") {
            Some(said) => says(format!("roots: {}", said["roots"])),
            None => wants(roots("client_roots"), None),
        },
        "test_input_required_result_request_state" => match (state, said("confirm")) {
            (Some("state-of-round-1"), Some(_)) => says("state-ok".into()),
            (None, _) => wants(ask("confirm", "Please confirm", "ok"), Some("state-of-round-1")),
            _ => wrong(),
        },
        "test_input_required_result_tampered_state" => match (state, said("confirm")) {
            (Some("only-this-one-is-right"), Some(_)) => says("state-ok".into()),
            (None, _) => wants(ask("confirm", "Please confirm", "ok"), Some("only-this-one-is-right")),
            _ => wrong(),
        },
        "test_input_required_result_multiple_inputs" => {
            match ["user_name", "greeting", "client_roots"].iter().all(|key| said(key).is_some()) {
                true => says("all there".into()),
                false => wants(
                    all(&[
                        ask("user_name", "What is your name?", "name"),
                        sampling("greeting", "Generate a greeting"),
                        roots("client_roots"),
                    ]),
                    Some("several"),
                ),
            }
        }
        "test_input_required_result_multi_round" => match (state, said("step1"), said("step2")) {
            (Some("round-2"), _, Some(_)) => says("after three rounds".into()),
            (Some("round-1"), Some(_), _) => {
                wants(ask("step2", "Step 2: What is your favorite color?", "color"), Some("round-2"))
            }
            _ => wants(ask("step1", "Step 1: What is your name?", "name"), Some("round-1")),
        },
        "test_input_required_result_capabilities" => {
            if request.input_responses.is_some() {
                return says("all there".into());
            }
            let declared = context.client_capabilities().unwrap_or_default();
            let mut asked = Vec::new();
            if declared.elicitation.is_some() {
                asked.push(ask("user_name", "What is your name?", "name"));
            }
            if declared.sampling.is_some() {
                asked.push(sampling("capital_question", "What is the capital of France?"));
            }
            if asked.is_empty() { says("nothing to ask".into()) } else { wants(all(&asked), None) }
        }
        _ => Ok(None),
    }
}
