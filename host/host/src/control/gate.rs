//! The gate, which every tool call passes: rate limit, allow-list, lock, confirmation, hooks, audit.
//!
//! Calls of all callers come through here: how often it called, whether the tool is allowed and the show
//! is not locked, the arguments are looked at, the tier decides whether a person has to agree first (see
//! [`confirmation`](super::confirmation)), hooks may deny, and only then is the feature asked. The host's own refusals
//! come before the hooks of features, so that no feature sees what was refused, or could approve it. Every
//! outcome is put on record.

use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::confirmation::{ConfirmError, Confirmation, Confirmations};
use super::lock::{Locked, ShowLock};
use conductor_audit::caller::{Caller, Scope};
use conductor_audit::{Audit, AuditError, Entry, Kind, Pending};
use conductor_package::descriptor::{HookPoint, Tier};
use conductor_policy::{Consent, Policy, RateDecision};
use conductor_registry::{Registry, Tool};
use conductor_sandbox::actor::hook_answer;
use conductor_sandbox::control::{Decision, ToolCall};
use conductor_sandbox::handles::OnProgress;
use conductor_sandbox::limits;
use conductor_sandbox::{CallError, RegisteredTool, ServiceError, ToolOutput};
use conductor_terminal::excerpt;

/// Bytes of arguments that hooks get to see.
const MAX_SHOWN_ARGS: usize = 16 * 1024;

/// What somebody asks for.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolRequest {
    /// The tool's arguments, an object.
    #[serde(default)]
    pub args: serde_json::Map<String, Value>,
    /// Whether a person agreed to this one call, having seen what `confirmation` stands for.
    #[serde(default)]
    pub confirmed: bool,
    /// The id of the confirmation that the same call was answered with before. Without it nothing is confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<String>,
}

/// Why a call gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// There is no such tool.
    #[error("there is no tool {name:?}{}", instead(nearest))]
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
    /// A person has to agree to this call.
    #[error("a person has to agree to each call of {tool}{}", effect(confirmation))]
    NeedsConfirmation {
        /// The tool.
        tool: String,
        /// What they agree to, and the id to present then. `None` if this caller can't have a person agree, or the
        /// arguments are too long to be shown.
        confirmation: Option<Box<Confirmation>>,
    },
    /// The confirmation that was presented is not one of this call.
    #[error(transparent)]
    NotConfirmed(#[from] ConfirmError),
    /// The configuration does not let agents call tools of this tier.
    #[error("agents may not call {tier} tools here; a person changes `{key}` under [tools.agents]")]
    NotForAgents {
        /// The tool's tier.
        tier: &'static str,
        /// The setting.
        key: &'static str,
    },
    /// The show is locked.
    #[error(transparent)]
    Locked(#[from] Locked),
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

/// What may have been meant, or why it may be missing.
fn instead(nearest: &Option<String>) -> String {
    match nearest {
        Some(near) => format!("; did you mean {near:?}?"),
        None => ": no feature that runs has it (`conductor feature list`)".to_owned(),
    }
}

fn effect(confirmation: &Option<Box<Confirmation>>) -> String {
    confirmation.as_ref().map(|asked| format!(", which {}", asked.effect)).unwrap_or_default()
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The tool's answer.
    pub result: Value,
    /// The ids of the plans that this call proposed, in the order of the proposals, as the host gave them. What
    /// `result` says of plans is the feature's word.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub plans: Vec<String>,
    /// What hooks remarked.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub remarks: Vec<String>,
}

impl ToolResult {
    /// The id of the plan that this call proposed last, as the host gave it.
    pub fn plan(&self) -> Option<&str> {
        self.plans.last().map(String::as_str)
    }
}

/// A tool as listings show it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ToolView {
    /// The feature that has it.
    pub feature: String,
    /// Name, tier, summary, schemas.
    #[serde(flatten)]
    pub tool: RegisteredTool,
}

impl ToolView {
    fn of(tool: Tool<'_>) -> Self {
        Self { feature: tool.feature.to_owned(), tool: tool.registered.clone() }
    }
}

/// The tools of one configuration, and who may call them how often: both of the same generation, so that no call is
/// judged by one and made by another.
#[derive(Debug, Clone, Copy)]
pub struct ToolSet<'a> {
    /// The features that have them.
    pub registry: &'a Registry,
    /// Who may call them.
    pub policy: &'a Policy,
}

impl<'a> ToolSet<'a> {
    fn allowed(self) -> impl Iterator<Item = Tool<'a>> {
        self.registry.tools().filter(move |tool| self.policy.allows(&tool.registered.name))
    }

    /// Every tool that may be called.
    pub fn list(self) -> Vec<ToolView> {
        self.allowed().map(ToolView::of).collect()
    }

    /// The tool of this name; `None` if there is none, or it may not be called.
    pub fn get(self, name: &str) -> Option<ToolView> {
        self.allowed().find(|tool| tool.registered.name == name).map(ToolView::of)
    }
}

/// The gate of one host.
#[derive(Debug, Default)]
pub struct Gate {
    audit: Audit,
    confirmations: Confirmations,
    lock: ShowLock,
}

impl Gate {
    /// A gate that lets tools be called while the show is not locked, and puts on record there what was.
    pub fn new(audit: Audit, lock: ShowLock) -> Self {
        Self { audit, lock, ..Self::default() }
    }

    /// Calls a tool, for somebody who may drop `cancelled` when the answer is no longer wanted.
    ///
    /// # Errors
    /// See [`ToolError`].
    pub async fn call(
        &self,
        tools: ToolSet<'_>,
        caller: &Caller,
        name: &str,
        request: ToolRequest,
        cancelled: CancellationToken,
        progress: OnProgress,
    ) -> Result<ToolResult, ToolError> {
        let began = Instant::now();
        let ToolSet { registry, policy } = tools;
        let tool = registry.tools().find(|tool| tool.registered.name == name);
        // What is not there is asked for as cheaply as what only looks.
        let tier = tool.as_ref().map_or(Tier::ReadOnly, |tool| tool.registered.tier);
        let entry = || {
            let entry = Entry::new(Kind::Tool, "call", caller, name).with("tier", tier.as_str());
            match &tool {
                Some(tool) => entry.with("feature", tool.feature),
                None => entry,
            }
        };
        match policy.take(caller, tier, began) {
            RateDecision::Go { refused: 0 } => {}
            RateDecision::Go { refused } => {
                let more = entry().refused("called too often").with("more", refused);
                self.audit.record(more).await;
            }
            RateDecision::Wait { left, first } => {
                let error = ToolError::TooOften { tier: tier.as_str(), per_minute: policy.per_minute(tier), left };
                // Of those that follow in a row only the number goes on record: a flood must not fill the disk.
                if first {
                    self.audit.record(entry().refused(&error)).await;
                }
                return Err(error);
            }
        }
        // Dropped before it ends, because the caller has left, it is on record all the same.
        let mut record = Pending::new(&self.audit, entry(), began);
        let result = self.pass(tools, caller, tool, &mut record, request, cancelled, progress, name).await;
        record
            .end(|entry| match result.as_ref().err() {
                None => entry,
                Some(error @ ToolError::Failed { .. }) => entry.failed(error),
                Some(error) => entry.refused(error),
            })
            .await;
        result
    }

    #[expect(clippy::too_many_arguments, reason = "they are those of the call, and what was found for it")]
    async fn pass(
        &self,
        tools: ToolSet<'_>,
        caller: &Caller,
        tool: Option<Tool<'_>>,
        record: &mut Pending<'_>,
        request: ToolRequest,
        cancelled: CancellationToken,
        progress: OnProgress,
        name: &str,
    ) -> Result<ToolResult, ToolError> {
        let Some(tool) = tool else {
            let names = || tools.allowed().map(|tool| tool.registered.name.as_str());
            // Lists leave the prefix out.
            let whole = names().find(|known| known.strip_suffix(name).is_some_and(|before| before.ends_with('_')));
            let nearest = whole.map(str::to_owned).or_else(|| conductor_config::nearest(name, names()));
            return Err(ToolError::Unknown { name: excerpt(name, 64), nearest });
        };
        let ToolSet { registry, policy } = tools;
        if !policy.allows(name) {
            return Err(ToolError::NotAllowed(name.to_owned()));
        }
        let changes = tool.registered.tier > Tier::ReadOnly;
        if changes {
            self.lock.check(caller)?;
        }
        let ToolRequest { args, confirmed, confirmation } = request;
        let args = Value::Object(args);
        let text = args.to_string();
        if text.len() > limits::MAX_RESULT {
            record.with("bytes", text.len());
            return Err(ToolError::TooLong(text.len()));
        }
        record.with("args", self.audit.redacted(args.clone()));
        let tier = tool.registered.tier;
        let consent = policy.consent(caller, tier);
        if let Consent::Denied(key) = consent {
            return Err(ToolError::NotForAgents { tier: tier.as_str(), key });
        }
        if consent == Consent::Confirmation && !tool.registered.proposes {
            self.confirm(caller, tool, &args, confirmation.filter(|_| confirmed))?;
        }
        if tier.is_confirmed() && !tool.registered.proposes {
            // What can't be taken back is on record before it is done.
            let (audit, begun) = (self.audit.clone(), record.begun());
            let require = move || begun.map_or(Ok(()), |begun| audit.require(begun));
            let written = tokio::task::spawn_blocking(require).await;
            let lost = |_| AuditError::Unwritable { file: "audit.sqlite".into(), why: "the host is stopping".into() };
            written.unwrap_or_else(|error| Err(lost(error)))?;
        }
        let mut remarks = Vec::new();
        let seen = Arc::new(ToolCall {
            tool: name.to_owned(),
            feature: tool.feature.to_owned(),
            tier: tier.into(),
            args: excerpt(&text, MAX_SHOWN_ARGS),
        });
        for (feature, actor) in registry.tool_hooks(HookPoint::PreToolCall, name) {
            match hook_answer(actor.before(Arc::clone(&seen))).await {
                Ok(Decision::Proceed) => {}
                Ok(Decision::Annotate(remark)) => {
                    let remark = excerpt(&remark, limits::MAX_TEXT);
                    record.with(&format!("before:{feature}"), self.audit.redacted(remark.as_str().into()));
                    remarks.push(format!("{feature}: {remark}"));
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
        if changes {
            // Hooks took their time.
            self.lock.check(caller)?;
        }
        let answer = answer(tool, caller, name, text, cancelled, progress).await;
        let failed = answer.as_ref().err().map(ToString::to_string);
        for (feature, actor) in registry.tool_hooks(HookPoint::PostToolCall, name) {
            match hook_answer(actor.after(Arc::clone(&seen), failed.clone())).await {
                Ok(Some(remark)) => {
                    record.with(&format!("after:{feature}"), self.audit.redacted(remark.as_str().into()));
                    remarks.push(format!("{feature}: {remark}"));
                }
                Ok(None) => {}
                Err(error) => remarks.push(format!("{feature}: its hook gave no answer: {error}")),
            }
        }
        match &failed {
            // The audit has each call: a line for all that agents ask would cost as much as the guest does.
            None => tracing::debug!(tool = name, feature = %tool.feature, "called"),
            Some(reason) => tracing::info!(tool = name, feature = %tool.feature, "failed: {reason}"),
        }
        let output = answer.map_err(|error| ToolError::Failed { feature: tool.feature.to_owned(), error })?;
        let ToolOutput { result, plans } = output;
        if !plans.is_empty() {
            record.with("plans", plans.clone());
        }
        Ok(ToolResult { result, plans, remarks })
    }

    /// Whether a person agreed to this very call: each goes through here twice, and the first time only asks.
    fn confirm(&self, caller: &Caller, tool: Tool<'_>, args: &Value, agreed: Option<String>) -> Result<(), ToolError> {
        let Tool { registered, feature, .. } = tool;
        let (name, tier) = (registered.name.as_str(), registered.tier);
        // Not the holder of a lent token, and no agent for itself.
        let by_person = caller.is_owner() || caller.is_by_elicitation();
        match agreed {
            Some(id) if by_person => Ok(self.confirmations.take(&id, caller, feature, tier, name, args)?),
            _ => {
                let may_ask = caller.is_owner() || caller.scope() == Some(Scope::Agent);
                let confirmation = may_ask.then(|| self.confirmations.ask(caller, feature, tier, name, args)).flatten();
                Err(ToolError::NeedsConfirmation { tool: name.to_owned(), confirmation: confirmation.map(Box::new) })
            }
        }
    }

    /// Counts what the host itself answers among the calls that only look, by `policy`, and puts it on record: `kind` and
    /// `verb` are of the record's row.
    ///
    /// # Errors
    /// What `fill` says, and [`ToolError::TooOften`].
    pub async fn answer_itself<T, E: std::fmt::Display + From<ToolError>>(
        &self,
        policy: &Policy,
        caller: &Caller,
        (kind, verb): (Kind, &'static str),
        name: &str,
        fill: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.read_itself(policy, caller, (kind, verb), name, async { fill() }, |_, entry| entry).await
    }

    /// The same for an answer that takes time; `shown` adds to the row what is in it.
    ///
    /// # Errors
    /// What `read` says, and [`ToolError::TooOften`].
    pub async fn read_itself<T, E: std::fmt::Display + From<ToolError>>(
        &self,
        policy: &Policy,
        caller: &Caller,
        (kind, verb): (Kind, &'static str),
        name: &str,
        read: impl Future<Output = Result<T, E>>,
        shown: impl FnOnce(&T, Entry) -> Entry,
    ) -> Result<T, E> {
        let tier = Tier::ReadOnly;
        let entry = || Entry::new(kind, verb, caller, name);
        match policy.take(caller, tier, Instant::now()) {
            RateDecision::Go { .. } => {
                let answer = read.await;
                let row = match &answer {
                    Ok(answer) => shown(answer, entry()),
                    Err(error) => entry().refused(error),
                };
                self.audit.record(row).await;
                answer
            }
            RateDecision::Wait { left, first } => {
                let error = ToolError::TooOften { tier: tier.as_str(), per_minute: policy.per_minute(tier), left };
                if first {
                    self.audit.record(entry().refused(&error)).await;
                }
                Err(error.into())
            }
        }
    }

    /// Puts on record that somebody asked for a tool in a way that can't be understood.
    pub async fn refuse(&self, policy: &Policy, caller: &Caller, name: &str, reason: &str) {
        if let RateDecision::Wait { first: false, .. } = policy.take(caller, Tier::ReadOnly, Instant::now()) {
            return;
        }
        self.audit.record(Entry::new(Kind::Tool, "call", caller, name).refused(reason)).await;
    }
}

async fn answer(
    tool: Tool<'_>,
    caller: &Caller,
    name: &str,
    args: String,
    cancelled: CancellationToken,
    progress: OnProgress,
) -> Result<ToolOutput, CallError> {
    let call = tool.actor.call(caller.clone(), tool.registered.tier, name, args, cancelled, progress);
    // The actor's own limits are tighter; this one is for calls that wait in its mailbox.
    let Ok(answer) = tokio::time::timeout(tool.registered.timeout + Duration::from_secs(5), call).await else {
        return Err(CallError::Refused(ServiceError::Exhausted("the feature is busy".into())));
    };
    answer
}
