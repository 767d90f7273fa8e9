//! Tool calls of agents, with elicitation.
//!
//! ```text
//! call ─▶ gate ─▶ a result ─▶ a plan proposed? ─▶ the user is asked ─▶ applied, rejected, or it waits on
//!           └─▶ needs a person ─▶ the user is asked, twice ─▶ gate, confirmed
//! ```
//!
//! Clients before 2026-07-28 are asked while the call waits. Those since get the question as the call's answer, and
//! send the call again with what their user said. The pending call is kept here meanwhile, under an
//! unguessable number that serves once: what comes back from a client decides nothing but yes or no.

use std::sync::{Arc, Weak};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateTaskResult, ElicitRequest,
    ElicitResult, InputRequest, InputRequests, InputRequiredResult, ProgressNotificationParam, ProtocolVersion, Task,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::ask::{About, Answer, Decision};
use super::questions::{ANSWER_TIMEOUT, PendingCall};
use super::tasks::{Running, TASK_AFTER};
use super::{ClientKey, Server};
use conductor_audit::caller::Caller;
use conductor_config::Elicitation;
use conductor_host::control::gate::{ToolError, ToolRequest, ToolResult};
use conductor_host::control::plan::risk::Level;
use conductor_host::control::trouble::Misconduct;
use conductor_host::host::Host;
use conductor_sandbox::{CallError, ServiceError};
use conductor_stdx::plural::plural;

/// A call under way.
pub(super) struct Call<'c> {
    server: &'c Server,
    host: &'c Arc<Host>,
    context: &'c RequestContext<RoleServer>,
    tool: String,
    args: Map<String, Value>,
    caller: Caller,
    /// The agent's name, as its user sees it.
    agent: String,
}

/// How a client can be asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ElicitationMode {
    /// While its call waits.
    Meanwhile,
    /// By the answer of its call.
    ByAnswer,
}

impl<'c> Call<'c> {
    pub(super) fn new(
        server: &'c Server,
        host: &'c Arc<Host>,
        context: &'c RequestContext<RoleServer>,
        caller: Caller,
        tool: &str,
        args: Map<String, Value>,
    ) -> Self {
        let agent = caller.claim();
        Self { server, host, context, tool: tool.to_owned(), args, caller, agent }
    }

    /// Does what a request wants: makes the call, or goes on with one whose user was asked.
    pub(super) async fn answer(self, request: CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
        if let Some(number) = &request.request_state {
            return self.resume(number, request.input_responses.unwrap_or_default()).await;
        }
        let called = match self.context.client_capabilities() {
            Some(client) if client.supports_tasks() => match self.patiently().await {
                Ok(called) => called,
                Err(task) => return Ok(CallToolResponse::Task(CreateTaskResult::new(task))),
            },
            _ => self.through_the_gate(&self.caller, None).await,
        };
        match called {
            Ok(answer) => self.proposed(answer).await,
            Err(ref error @ ToolError::NeedsConfirmation { ref confirmation, .. }) => {
                let matter = confirmation.as_ref().and_then(|asked| Decision::call(asked, &self.agent));
                match matter.filter(|_| self.host.elicitation() == Elicitation::All) {
                    Some(matter) => self.ask(matter, None).await,
                    None => Ok(self.unconfirmed(&error.to_string()).into()),
                }
            }
            Err(error) => refused(error),
        }
    }

    /// How a call ends that ends soon; of another one the task that it has become.
    async fn patiently(&self) -> Result<Result<ToolResult, ToolError>, Task> {
        let (progress, steps) = tokio::sync::mpsc::unbounded_channel();
        let on_progress = move |done: f32, message: String| {
            let _ = progress.send((done, message));
        };
        let cancel = CancellationToken::new();
        let (host, caller, tool) = (Arc::clone(self.host), self.caller.clone(), self.tool.clone());
        let (request, cancelled) =
            (ToolRequest { args: self.args.clone(), confirmed: false, confirmation: None }, cancel.clone());
        let work = async move { host.call_tool(&caller, &tool, request, cancelled, Arc::new(on_progress)).await };
        let mut running = Running { call: tokio::spawn(work), steps, cancel };
        // A client that is gone takes its call with it.
        let guard = running.cancel.clone().drop_guard();
        let patience = tokio::time::sleep(TASK_AFTER);
        tokio::pin!(patience);
        let mut is_patient = true;
        loop {
            tokio::select! {
                ended = &mut running.call => {
                    return Ok(ended.unwrap_or_else(|_| Err(stopping())));
                }
                Some(step) = running.steps.recv() => self.report(step).await,
                () = self.context.ct.cancelled(), if !running.cancel.is_cancelled() => running.cancel.cancel(),
                () = &mut patience, if is_patient => {
                    is_patient = false;
                    let key = self.server.key(&self.caller);
                    let host = Arc::downgrade(self.host);
                    match self.server.shared.tasks.adopt(key, running, move |ended| finished(&host, ended)) {
                        Ok(task) => {
                            guard.disarm();
                            return Err(task);
                        }
                        Err(kept) => running = kept,
                    }
                }
            }
        }
    }

    /// Sends a client that wants to know how far its call is.
    async fn report(&self, (done, message): (f32, String)) {
        if let Some(token) = self.context.meta.get_progress_token() {
            let step = ProgressNotificationParam::new(token, f64::from(done)).with_total(1.0);
            // A client that is gone takes its call with it.
            let _ = self.context.peer.notify_progress(step.with_message(message)).await;
        }
    }

    async fn through_the_gate(&self, caller: &Caller, confirmation: Option<String>) -> Result<ToolResult, ToolError> {
        let asked = ToolRequest { args: self.args.clone(), confirmed: confirmation.is_some(), confirmation };
        let cancelled = self.context.ct.clone();
        if self.context.meta.get_progress_token().is_none() {
            return self.host.call_tool(caller, &self.tool, asked, cancelled, Arc::new(|_, _| {})).await;
        }
        let (progress, mut steps) = tokio::sync::mpsc::unbounded_channel();
        let on_progress = move |done: f32, message: String| {
            let _ = progress.send((done, message));
        };
        let call = self.host.call_tool(caller, &self.tool, asked, cancelled, Arc::new(on_progress));
        let forward_progress = async {
            while let Some(step) = steps.recv().await {
                self.report(step).await;
            }
        };
        // The call owns the sender, so the steps end with it.
        let (answer, ()) = tokio::join!(call, forward_progress);
        answer
    }

    /// Passes on what a tool has answered. If the call proposed one plan, the user is asked about it; of several, each
    /// waits for a person, who should see them together.
    async fn proposed(self, answer: ToolResult) -> Result<CallToolResponse, ErrorData> {
        let plans = answer.plans.clone();
        let mut result = call_result(answer);
        if let [plan] = &plans[..] {
            match self.plan(plan).await {
                Some(Ok(matter)) => return self.ask(matter, Some(result)).await,
                Some(Err(why)) => result.content.push(ContentBlock::text(waits(self.host, plan, why))),
                None => {}
            }
            return Ok(result.into());
        }
        result.content.extend(plans.iter().map(|plan| ContentBlock::text(waits(self.host, plan, ""))));
        Ok(result.into())
    }

    /// The question about a plan that this call proposed, or why its user is not asked. `None` if the plan does not
    /// wait any longer.
    async fn plan(&self, id: &str) -> Option<Result<Decision, &'static str>> {
        let (caller, id) = (self.caller.clone(), id.to_owned());
        let view = self.server.look(move |host| host.plan_for(&caller, &id)).await.ok()?.ok()?;
        let allowed = match view.plan.risk.level {
            Level::Privileged => Elicitation::All,
            _ => Elicitation::Plans,
        };
        if self.host.elicitation() < allowed {
            return Some(Err(""));
        }
        if view.plan.has_hidden_changes() {
            return Some(Err("It changes values that are not shown to agents. "));
        }
        Some(Decision::plan(&view, &self.agent).ok_or("It is too long to be shown here. "))
    }

    fn way(&self) -> Option<ElicitationMode> {
        let form = self.context.client_capabilities()?.elicitation?;
        // Without either, a client of an older revision means forms.
        if form.form.is_none() && form.url.is_some() {
            return None;
        }
        let modern = self.context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        Some(if modern { ElicitationMode::ByAnswer } else { ElicitationMode::Meanwhile })
    }

    fn note_questions(&self) {
        self.host.note_misconduct(&self.caller, Misconduct::Questions);
    }

    async fn ask(self, matter: Decision, result: Option<CallToolResult>) -> Result<CallToolResponse, ErrorData> {
        match self.way() {
            Some(ElicitationMode::Meanwhile) => {
                let answer = self.ask_meanwhile(&matter).await;
                self.decided(&matter, answer, result).await
            }
            Some(ElicitationMode::ByAnswer) => self.ask_by_answer(matter, 0, result).await,
            None => self.decided(&matter, Answer::Open, result).await,
        }
    }

    async fn ask_meanwhile(&self, matter: &Decision) -> Answer {
        let Some(place) = self.server.shared.questions.ask(ClientKey::Server(self.server.number)) else {
            self.note_questions();
            return Answer::Open;
        };
        let mut answered = 0;
        while let Some(question) = matter.question(answered) {
            let Some(params) = question.params() else { return Answer::Open };
            let asked = self.context.peer.create_elicitation_with_timeout(params, Some(ANSWER_TIMEOUT));
            let said = tokio::select! {
                said = asked => said,
                () = self.context.ct.cancelled() => return Answer::Open,
                () = place.gave_way() => return Answer::Open,
            };
            match said.map(|said| question.means(&said)) {
                Ok(Answer::Yes) => answered += 1,
                Ok(other) => return other,
                Err(error) => {
                    tracing::debug!("an agent's user gave no answer: {error}");
                    return Answer::Open;
                }
            }
        }
        Answer::Yes
    }

    async fn ask_by_answer(
        self,
        matter: Decision,
        answered: usize,
        result: Option<CallToolResult>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(question) = matter.question(answered) else {
            return self.decided(&matter, Answer::Yes, result).await;
        };
        let Some(question) = question.params() else {
            return self.decided(&matter, Answer::Open, result).await;
        };
        let kept = PendingCall {
            caller: self.caller.clone(),
            tool: self.tool.clone(),
            args: self.args.clone(),
            matter: matter.clone(),
            answered,
            result: result.clone(),
        };
        let Some(number) = self.server.shared.questions.keep(self.server.key(&self.caller), kept) else {
            self.note_questions();
            return self.decided(&matter, Answer::Open, result).await;
        };
        let question = InputRequest::Elicitation(ElicitRequest::new(question));
        let questions = InputRequests::from([(key(answered), question)]);
        Ok(InputRequiredResult::new(Some(questions), Some(number)).into())
    }

    /// Goes on with a call whose user was asked.
    async fn resume(
        self,
        number: &str,
        mut said: std::collections::BTreeMap<String, Value>,
    ) -> Result<CallToolResponse, ErrorData> {
        let kept = self.server.shared.questions.take(number, &self.caller);
        let own = kept.filter(|kept| kept.tool == self.tool && kept.args == self.args);
        let Some(PendingCall { matter, answered, result, .. }) = own else {
            let why = "no question waits under this requestState: it was answered, has expired, or is another call's";
            self.host.refuse_call(&self.caller, &self.tool, why).await;
            return Err(ErrorData::invalid_params(why, None));
        };
        let Some(question) = matter.question(answered) else {
            return self.decided(&matter, Answer::Open, result).await;
        };
        let Some(said) = said.remove(&key(answered)) else {
            return self.ask_by_answer(matter, answered, result).await;
        };
        let said: ElicitResult = serde_json::from_value(said)
            .map_err(|error| ErrorData::invalid_params(format!("this is no answer to a form: {error}"), None))?;
        match question.means(&said) {
            Answer::Yes => self.ask_by_answer(matter, answered + 1, result).await,
            other => self.decided(&matter, other, result).await,
        }
    }

    /// Does what the user has decided.
    async fn decided(
        self,
        matter: &Decision,
        answer: Answer,
        result: Option<CallToolResult>,
    ) -> Result<CallToolResponse, ErrorData> {
        let user = self.caller.clone().by_elicitation();
        let plan = match &matter.about {
            About::Call(id) if answer == Answer::Yes => {
                return match self.through_the_gate(&user, Some(id.clone())).await {
                    Ok(answer) => Box::pin(self.proposed(answer)).await,
                    Err(error) => refused(error),
                };
            }
            About::Call(_) => return Ok(self.unconfirmed("the user did not agree to it").into()),
            About::Plan(plan) => plan.clone(),
        };
        let mut result = result.unwrap_or_default();
        let (host, id) = (Arc::clone(self.host), plan.clone());
        let done = self.server.jobs.write(move || match answer {
            Answer::Yes => match host.apply_plan(&user, &id) {
                Ok(applied) => Ok(format!("The user applied the plan; {} in force.", plural(applied.rules, "rule"))),
                Err(error) => Err(format!("The user wanted the plan to be applied, but it was not: {error}")),
            },
            Answer::No => match host.reject_plan(&user, &id) {
                Ok(()) => Ok("The user rejected the plan. Nothing has changed.".to_owned()),
                Err(error) => Err(error.to_string()),
            },
            Answer::Open => Ok(waits(&host, &id, "")),
        });
        let outcome = done.await.unwrap_or_else(|_| Err("the host is stopping".into()));
        result.is_error = Some(outcome.is_err());
        result.content.push(ContentBlock::text(outcome.unwrap_or_else(|error| error)));
        Ok(result.into())
    }

    fn unconfirmed(&self, why: &str) -> CallToolResult {
        let how = format!("{why}; a person can call it with `conductor tool call {}`", self.tool);
        CallToolResult::error(vec![ContentBlock::text(how)])
    }
}

/// The name of a question in an answer. Each has its own: an answer to one does not answer another.
fn key(answered: usize) -> String {
    format!("question_{}", answered + 1)
}

fn waits(host: &Host, plan: &str, why: &str) -> String {
    format!(
        "{why}Nothing has changed yet: the plan waits for a person, who looks at it with `conductor plan show {plan}` \
         and decides with `conductor plan apply {plan}`, within {} s.",
        host.plans_wait().as_secs()
    )
}

fn refused(error: ToolError) -> Result<CallToolResponse, ErrorData> {
    match error {
        ToolError::Unknown { .. } => Err(ErrorData::invalid_params(error.to_string(), None)),
        _ => Ok(CallToolResult::error(vec![ContentBlock::text(error.to_string())]).into()),
    }
}

/// The result of a call that became a task. A plan in it waits for a person: tasks have no elicitation.
fn finished(host: &Weak<Host>, ended: Result<ToolResult, ToolError>) -> CallToolResult {
    match ended {
        Ok(answer) => {
            let plans = answer.plans.clone();
            let mut result = call_result(answer);
            if let Some(host) = host.upgrade() {
                result.content.extend(plans.iter().map(|plan| ContentBlock::text(waits(&host, plan, ""))));
            }
            result
        }
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
    }
}

fn stopping() -> ToolError {
    let error = CallError::Refused(ServiceError::Unavailable("it is stopping".to_owned()));
    ToolError::Failed { feature: "the host".to_owned(), error }
}

fn call_result(answer: ToolResult) -> CallToolResult {
    let mut result = match answer.result {
        Value::Object(object) => CallToolResult::structured(Value::Object(object)),
        other => CallToolResult::success(vec![ContentBlock::text(other.to_string())]),
    };
    result.content.extend(answer.remarks.into_iter().map(ContentBlock::text));
    result
}
