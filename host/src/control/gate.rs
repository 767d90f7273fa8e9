//! The gate: the one way to a tool.
//!
//! Every call comes through here, whoever asks: how often they did, whether the tool is allowed, the
//! arguments are looked at, the tier decides whether a person has to agree first, hooks may deny, and only
//! then is the feature asked. The host's own refusals come before the hooks of features, so that no feature
//! sees what was refused, or could approve it. Whatever comes of it is put on record.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::audit::{Audit, AuditError, Entry, Kind, Outcome};
use super::caller::Caller;
use super::fits::fits;
use super::limit::{Asked, Policy, Used};
use crate::feature::descriptor::{HookPoint, Tier};
use crate::feature::registry::{Registry, Tool};
use crate::feature::sandbox::control::{Decision, ToolCall};
use crate::feature::sandbox::limits;
use crate::feature::sandbox::{CallError, Refusal, RegisteredTool};
use crate::service::invocation::OnProgress;
use crate::terminal::excerpt;

/// Bytes of arguments that hooks get to see.
const SHOWN_ARGS: usize = 16 * 1024;

/// What somebody asks for.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
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
    /// The configuration does not allow it.
    #[error("{0} is not among the tools that may be called; a person adds it to `allowed` under [tools]")]
    NotAllowed(String),
    /// The caller calls too often.
    #[error(
        "too many calls: {tier} tools may be called {per_minute} times a minute; try again in {:.1} s",
        left.as_secs_f64().max(0.1)
    )]
    TooOften {
        /// The tool's tier.
        tier: &'static str,
        /// Calls that the configuration allows.
        per_minute: u32,
        /// How long until the next may be made.
        left: Duration,
    },
    /// It has to be on record before it is done, and can't be.
    #[error(transparent)]
    Unrecorded(#[from] AuditError),
    /// It sends to devices, or reaches as far, and no person agreed.
    #[error("{0} sends to devices or reaches as far: a person has to agree to each call")]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The tool's answer.
    pub result: Value,
    /// What hooks remarked.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub remarks: Vec<String>,
}

/// A tool as listings show it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ToolView {
    /// The feature that has it.
    pub feature: String,
    /// Name, tier, summary, schemas.
    #[serde(flatten)]
    pub tool: RegisteredTool,
}

/// The gate of one host.
#[derive(Debug, Default)]
pub struct Gate {
    policy: RwLock<Arc<Policy>>,
    used: Used,
    audit: Audit,
}

impl Gate {
    /// A gate that lets every tool be called, and puts on record there what was.
    pub fn new(audit: Audit) -> Self {
        Self { audit, ..Self::default() }
    }

    /// This holds from now on.
    pub fn set(&self, policy: Policy) {
        let mut current = self.policy.write().unwrap_or_else(PoisonError::into_inner);
        if !current.is_same(&policy) {
            *current = Arc::new(policy);
            self.used.clear();
        }
    }

    fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Every tool that may be called.
    pub fn tools(&self, registry: &Registry) -> Vec<ToolView> {
        let policy = self.policy();
        let allowed = registry.tools().filter(|tool| policy.allows(&tool.registered.name));
        allowed.map(|tool| ToolView { feature: tool.feature, tool: tool.registered }).collect()
    }

    /// Calls a tool, for somebody who may drop `cancelled` when the answer is no longer wanted.
    ///
    /// # Errors
    /// See [`ToolError`].
    pub async fn call(
        &self,
        registry: &Registry,
        caller: &Caller,
        name: &str,
        request: ToolRequest,
        cancelled: CancellationToken,
        progress: OnProgress,
    ) -> Result<ToolResult, ToolError> {
        let began = Instant::now();
        let tool = registry.tools().find(|tool| tool.registered.name == name);
        // What is not there is asked for as cheaply as what only looks.
        let tier = tool.as_ref().map_or(Tier::ReadOnly, |tool| tool.registered.tier);
        let entry = || {
            let entry = Entry::new(Kind::Tool, "call", &caller.to_string(), name).with("tier", tier.as_str());
            match &tool {
                Some(tool) => entry.with("feature", tool.feature.as_str()),
                None => entry,
            }
        };
        let policy = self.policy();
        match self.used.take(&policy, caller, tier, began) {
            Asked::Go { refused: 0 } => {}
            Asked::Go { refused } => {
                let more = entry().refused("called too often").with("more", refused);
                self.audit.record(more).await;
            }
            Asked::Wait { left, first } => {
                let error = ToolError::TooOften { tier: tier.as_str(), per_minute: policy.per_minute(tier), left };
                // Of those that follow in a row only the number goes on record: a flood must not fill the disk.
                if first {
                    self.audit.record(entry().refused(&error)).await;
                }
                return Err(error);
            }
        }
        // Dropped before it ends, because the caller has left, it is on record all the same.
        let mut record = OnRecord { audit: &self.audit, entry: Some(entry()), began };
        let result = self.pass(registry, tool.as_ref(), &policy, &mut record, request, cancelled, progress, name).await;
        record.end(result.as_ref().err()).await;
        result
    }

    #[expect(clippy::too_many_arguments, reason = "they are those of the call, and what was found for it")]
    async fn pass(
        &self,
        registry: &Registry,
        tool: Option<&Tool>,
        policy: &Policy,
        record: &mut OnRecord<'_>,
        request: ToolRequest,
        cancelled: CancellationToken,
        progress: OnProgress,
        name: &str,
    ) -> Result<ToolResult, ToolError> {
        let Some(tool) = tool else {
            let names: Vec<String> = self.tools(registry).into_iter().map(|view| view.tool.name).collect();
            let nearest = crate::config::nearest(name, names.iter().map(String::as_str));
            return Err(ToolError::Unknown { name: excerpt(name, 64), nearest });
        };
        if !policy.allows(name) {
            return Err(ToolError::NotAllowed(name.to_owned()));
        }
        let args = Value::Object(request.args);
        let text = args.to_string();
        if text.len() > limits::MAX_RESULT {
            record.with("bytes", text.len());
            return Err(ToolError::TooLong(text.len()));
        }
        record.with("args", self.audit.redacted(args));
        if tool.registered.tier.is_confirmed() {
            if !request.confirmed {
                return Err(ToolError::NeedsConfirmation(name.to_owned()));
            }
            // What can't be taken back is on record before it is done.
            let (audit, begun) = (self.audit.clone(), record.begun());
            let written = tokio::task::spawn_blocking(move || audit.require(begun)).await;
            let lost = |_| AuditError::Unwritable { file: "audit.sqlite".into(), why: "the host is stopping".into() };
            written.unwrap_or_else(|error| Err(lost(error)))?;
        }
        let mut remarks = Vec::new();
        let seen = Arc::new(ToolCall {
            tool: name.to_owned(),
            feature: tool.feature.clone(),
            tier: tool.registered.tier.as_str().to_owned(),
            args: excerpt(&text, SHOWN_ARGS),
        });
        for (feature, actor) in registry.hooks(HookPoint::PreToolCall) {
            match asked(actor.before(Arc::clone(&seen))).await {
                Ok(Decision::Proceed) => {}
                Ok(Decision::Annotate(remark)) => {
                    remarks.push(format!("{feature}: {}", excerpt(&remark, limits::MAX_TEXT)));
                }
                Ok(Decision::Deny(reason)) => {
                    return Err(ToolError::Denied { feature, reason: excerpt(&reason, limits::MAX_TEXT) });
                }
                // A hook that can't be asked might have denied it.
                Err(error) => {
                    return Err(ToolError::Denied { feature, reason: format!("its hook gave no answer: {error}") });
                }
            }
        }
        let answer = answer(tool, name, text, cancelled, progress).await;
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
        let result = answer.map_err(|error| ToolError::Failed { feature: tool.feature.clone(), error })?;
        Ok(ToolResult { result, remarks })
    }

    /// Puts on record that somebody asked for a tool in a way that can't be understood.
    pub async fn refuse(&self, caller: &Caller, name: &str, reason: &str) {
        let policy = self.policy();
        if let Asked::Wait { first: false, .. } = self.used.take(&policy, caller, Tier::ReadOnly, Instant::now()) {
            return;
        }
        self.audit.record(Entry::new(Kind::Tool, "call", &caller.to_string(), name).refused(reason)).await;
    }
}

/// A call's entry, which goes on record however the call ends.
struct OnRecord<'a> {
    audit: &'a Audit,
    entry: Option<Entry>,
    began: Instant,
}

impl OnRecord<'_> {
    fn with(&mut self, key: &str, value: impl Into<Value>) {
        self.entry = self.entry.take().map(|entry| entry.with(key, value));
    }

    fn begun(&self) -> Entry {
        let entry = self.entry.clone().unwrap_or_else(|| Entry::new(Kind::Tool, "call", "", ""));
        entry.outcome(Outcome::Begun)
    }

    async fn end(mut self, error: Option<&ToolError>) {
        let Some(entry) = self.entry.take() else { return };
        let entry = match error {
            None => entry,
            Some(error @ ToolError::Failed { .. }) => entry.failed(error),
            Some(error) => entry.refused(error),
        };
        self.audit.record(entry.took(self.began.elapsed())).await;
    }
}

impl Drop for OnRecord<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.audit.note(entry.failed("whoever called left before it ended").took(self.began.elapsed()));
        }
    }
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
    let wrong = |what: String| CallError::Refused(Refusal::Failed(excerpt(&what, limits::MAX_TEXT)));
    let result = serde_json::from_str(&text).map_err(|error| wrong(format!("its result is not JSON: {error}")))?;
    if let Some(schema) = &tool.registered.output {
        // Whoever called was told to rely on it.
        fits(&result, schema).map_err(|why| wrong(format!("its result is not what its output schema says: {why}")))?;
    }
    Ok(result)
}
