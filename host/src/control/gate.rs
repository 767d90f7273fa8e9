//! The gate: the one way to a tool.
//!
//! Every call comes through here, whoever asks: arguments are looked at, the tier decides whether a
//! person has to agree first, hooks may deny, and only then is the feature asked. The host's own
//! refusals come before the hooks of features, so that no feature sees what was refused, or could
//! approve it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::feature::descriptor::{HookPoint, Tier};
use crate::feature::registry::{Registry, Tool};
use crate::feature::sandbox::control::{Decision, ToolCall};
use crate::feature::sandbox::limits::{self, plain};
use crate::feature::sandbox::{CallError, Refusal, RegisteredTool};
use crate::service::invocation::OnProgress;

/// Bytes of arguments that hooks get to see.
const SHOWN_ARGS: usize = 16 * 1024;

/// What somebody asks for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRequest {
    /// The tool's arguments, an object.
    #[serde(default)]
    pub args: serde_json::Map<String, Value>,
    /// Whether a person agreed to this one call, having seen its arguments.
    #[serde(default)]
    pub confirmed: bool,
}

/// Why a call gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// There is no such tool.
    #[error("there is no tool {name:?}{}", nearest.as_ref().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default())]
    Unknown {
        /// What was asked for.
        name: String,
        /// The most like it.
        nearest: Option<String>,
    },
    /// It sends to devices, and no person agreed.
    #[error("{0} sends to devices: a person has to agree to each call")]
    NeedsConfirmation(String),
    /// The arguments are too long.
    #[error("the arguments have {0} bytes; at most {most} are taken", most = limits::MAX_RESULT)]
    TooLong(usize),
    /// A feature's hook denied it.
    #[error("{feature} denied it: {reason}")]
    Denied {
        /// The feature's id.
        feature: String,
        /// Its reason.
        reason: String,
    },
    /// The tool did not do it.
    #[error("{feature}: {error}")]
    Failed {
        /// The feature's id.
        feature: String,
        /// What went wrong.
        error: CallError,
    },
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The tool's answer.
    pub result: Value,
    /// What hooks remarked.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub remarks: Vec<String>,
}

/// A tool as listings show it.
#[derive(Debug, Clone, Serialize)]
pub struct ToolView {
    /// The feature that has it.
    pub feature: String,
    /// Name, tier, summary, schemas.
    #[serde(flatten)]
    pub tool: RegisteredTool,
}

/// Every tool.
pub fn tools(registry: &Registry) -> Vec<ToolView> {
    registry.tools().map(|tool| ToolView { feature: tool.feature, tool: tool.registered }).collect()
}

/// Calls a tool, for somebody who may drop `cancelled` when the answer is no longer wanted.
///
/// # Errors
/// See [`ToolError`].
pub async fn call(
    registry: &Registry,
    name: &str,
    request: ToolRequest,
    cancelled: CancellationToken,
    progress: OnProgress,
) -> Result<ToolResult, ToolError> {
    let Some(tool) = registry.tools().find(|tool| tool.registered.name == name) else {
        let names: Vec<String> = registry.tools().map(|tool| tool.registered.name).collect();
        let nearest = crate::config::nearest(name, names.iter().map(String::as_str));
        return Err(ToolError::Unknown { name: plain(name.to_owned(), 64), nearest });
    };
    if tool.registered.tier == Tier::HardwareIo && !request.confirmed {
        return Err(ToolError::NeedsConfirmation(name.to_owned()));
    }
    let args = Value::Object(request.args).to_string();
    if args.len() > limits::MAX_RESULT {
        return Err(ToolError::TooLong(args.len()));
    }
    let mut remarks = Vec::new();
    let seen = Arc::new(ToolCall {
        tool: name.to_owned(),
        feature: tool.feature.clone(),
        tier: tool.registered.tier.as_str().to_owned(),
        args: plain(args.clone(), SHOWN_ARGS),
    });
    for (feature, actor) in registry.hooks(HookPoint::PreToolCall) {
        match asked(actor.before(Arc::clone(&seen))).await {
            Ok(Decision::Proceed) => {}
            Ok(Decision::Annotate(remark)) => remarks.push(format!("{feature}: {}", plain(remark, limits::MAX_TEXT))),
            Ok(Decision::Deny(reason)) => {
                return Err(ToolError::Denied { feature, reason: plain(reason, limits::MAX_TEXT) });
            }
            // A hook that can't be asked might have denied it.
            Err(error) => {
                return Err(ToolError::Denied { feature, reason: format!("its hook gave no answer: {error}") });
            }
        }
    }
    let answer = answer(&tool, name, args, cancelled, progress).await;
    let failed = answer.as_ref().err().map(ToString::to_string);
    for (feature, actor) in registry.hooks(HookPoint::PostToolCall) {
        match asked(actor.after(Arc::clone(&seen), failed.clone())).await {
            Ok(Some(remark)) => remarks.push(format!("{feature}: {remark}")),
            Ok(None) => {}
            Err(error) => remarks.push(format!("{feature}: its hook gave no answer: {error}")),
        }
    }
    match &failed {
        None => tracing::info!(tool = name, feature = %tool.feature, "called"),
        Some(reason) => tracing::info!(tool = name, feature = %tool.feature, "failed: {reason}"),
    }
    let result = answer.map_err(|error| ToolError::Failed { feature: tool.feature, error })?;
    Ok(ToolResult { result, remarks })
}

/// A hook's answer, or none in time: a hook's own limit does not count what waits before it in its mailbox.
pub(crate) async fn asked<T>(answer: impl Future<Output = Result<T, CallError>>) -> Result<T, CallError> {
    let late = |_| Err(CallError::Refused(Refusal::Exhausted("it is busy".into())));
    tokio::time::timeout(limits::HOOK_WITHIN * 2, answer).await.unwrap_or_else(late)
}

async fn answer(
    tool: &Tool,
    name: &str,
    args: String,
    cancelled: CancellationToken,
    progress: OnProgress,
) -> Result<Value, CallError> {
    let call = tool.actor.call(tool.registered.tier, name, args, cancelled, progress);
    // The actor's own limits are tighter; this one is for calls that wait in its mailbox.
    let Ok(answer) = tokio::time::timeout(limits::CALL_WITHIN + Duration::from_secs(5), call).await else {
        return Err(CallError::Refused(Refusal::Exhausted("the feature is busy".into())));
    };
    let text = answer?;
    serde_json::from_str(&text)
        .map_err(|error| CallError::Refused(Refusal::Failed(format!("its result is not JSON: {error}"))))
}
