//! One running instance in the control lane: tools, hooks, background tasks, skills.
//!
//! Calls here may wait. Each has processor time ([`meter`]), and a timeout, whatever it waits for; a call that
//! is given up leaves the instance in the middle of something, so that instance is done with.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use wasmtime::Store;
use wasmtime::component::{Instance, Resource};

use crate::bindings::control_exports::{
    change_hooks, chat_hooks, config_change_tools, hardware_io_tools, lifecycle, privileged_tools, read_only_tools,
    state_handover, stateful_tools, tasks, tool_hooks,
};
use crate::bindings::{Error, Lane};
use crate::handles::{Authority, Controls, HardwareAccess, Invocation, OnProgress, PlanIds, Planner, Reader, Run};
use crate::limits;
use crate::linked::Pre;
use crate::meter::{self, Call, Limits};
use crate::outcome::{CallError, InstallError, ServiceError, ToolOutput, explain};
use crate::registrations::Registrations;
use crate::share::Class;
use crate::state::{FeatureFacts, InstanceState};
use conductor_audit::caller::Caller;
use conductor_call_args::Named;
use conductor_package::descriptor::{HookPoint, TaskDeclaration, Tier, ToolDeclaration};
use conductor_schema::ResultSchema;
use conductor_terminal::excerpt;

pub use crate::bindings::control_exports::chat_hooks::{
    Answer as ShownAnswer, Decision as ChatDecision, Request as ShownRequest, Turn as ShownTurn,
};
pub use crate::bindings::control_exports::tool_hooks::{Decision, ToolCall};

/// What hooks around models are asked, or told.
#[derive(Debug, Clone)]
pub enum ChatHook {
    /// Before a request.
    Request(Arc<ShownRequest>),
    /// After its answer.
    Answer(Arc<ShownRequest>, Arc<ShownAnswer>),
    /// After a turn.
    Turn(Arc<ShownTurn>),
}

impl ChatHook {
    /// The point at which features are asked.
    pub const fn point(&self) -> HookPoint {
        match self {
            Self::Request(_) => HookPoint::PreRequest,
            Self::Answer(..) => HookPoint::PostAssistant,
            Self::Turn(_) => HookPoint::TurnEnd,
        }
    }
}

/// A change, as hooks receive it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Ports came or went.
    Ports,
    /// Another mode is in force.
    Mode(String),
    /// Another configuration is in force.
    Config,
}

impl Change {
    /// The hook point.
    pub const fn point(&self) -> HookPoint {
        match self {
            Self::Ports => HookPoint::PortChange,
            Self::Mode(_) => HookPoint::ModeChange,
            Self::Config => HookPoint::ConfigApplied,
        }
    }
}

const INSTALL: Limits = of_call(limits::INSTALL_BUDGET, limits::INSTALL_TIMEOUT);
const CALL: Limits = of_call(limits::CALL_BUDGET, limits::CALL_TIMEOUT);
pub(super) const EXCHANGE: Limits = of_call(limits::CALL_BUDGET, limits::EXCHANGE_CALL_TIMEOUT);
const HOOK: Limits = of_call(limits::HOOK_BUDGET, limits::HOOK_TIMEOUT);
pub(super) const MIGRATION: Limits = of_call(limits::MIGRATION_BUDGET, limits::MIGRATION_TIMEOUT);
/// A task goes on for as long as it likes.
const TASK: Limits = Limits { cpu: limits::CALL_BUDGET, within: Duration::MAX, class: Class::Task };

const fn of_call(cpu: Duration, within: Duration) -> Limits {
    Limits { cpu, within, class: Class::Call }
}

/// An instance with its store: one at a time may call into it.
pub struct ControlInstance {
    /// Keeps the component loaded.
    pub(super) pre: Arc<Pre>,
    pub(super) store: Store<InstanceState>,
    pub(super) instance: Instance,
}

impl std::fmt::Debug for ControlInstance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlInstance").field("state", self.store.data()).finish_non_exhaustive()
    }
}

/// Finds an export. The descriptor declares it, and the type was checked against the descriptor.
macro_rules! export {
    ($this:ident, $module:ident) => {
        $module::GuestIndices::new(&$this.pre)
            .and_then(|indices| indices.load(&mut $this.store, &$this.instance))
            .map_err(|error| CallError::Trapped(format!("{error:#}")))?
    };
}
pub(super) use export;

impl ControlInstance {
    /// Instantiates and installs.
    pub(super) async fn new(pre: Arc<Pre>, facts: Arc<FeatureFacts>) -> Result<Self, InstallError> {
        let instantiate = |error: wasmtime::Error| InstallError::instantiate(&error);
        let mut store = InstanceState::store(pre.engine(), facts, Lane::Control);
        store.epoch_deadline_callback(meter::on_tick);
        let call = Call::begin(&mut store, INSTALL);
        // Core modules may have code that runs at their start.
        let instance = call.within(pre.instantiate_async(&mut store)).await?.map_err(instantiate)?;
        let mut this = Self { pre, store, instance };
        let lifecycle = export!(this, lifecycle);
        let lent = this.store.data_mut().lend_context().map_err(instantiate)?;
        let context = lent.rep();
        let installed = call.within(lifecycle.call_install(&mut this.store, lent)).await?;
        this.store.data_mut().end_context(context).map_err(instantiate)?;
        this.outcome(installed, INSTALL)?;
        this.store.data().registered.all_there(&this.store.data().facts.descriptor)?;
        Ok(this)
    }

    /// What `install` registered.
    pub fn registered(&self) -> &Registrations {
        &self.store.data().registered
    }

    /// Calls a tool. `cancelled` signals that the caller has given up; a while later the call is
    /// stopped.
    ///
    /// # Errors
    /// See [`CallError`]. Plans that the tool proposed before wait all the same.
    pub async fn call_tool(
        &mut self,
        caller: Caller,
        tier: Tier,
        name: &str,
        args: &str,
        cancelled: &CancellationToken,
        progress: OnProgress,
    ) -> Result<ToolOutput, CallError> {
        let proposed = PlanIds::default();
        let invocation = self.lend(Invocation::new(cancelled.clone(), progress))?;
        let state = self.lend(Reader { in_call: true })?;
        let (invoked, looked) = (invocation.rep(), state.rep());
        let declared = self.store.data().facts.descriptor.tools.iter().find(|tool| tool.name == name);
        let within = declared.map_or(CALL.within, ToolDeclaration::timeout);
        let schema = self.store.data().registered.results.get(name).cloned();
        let schema = schema.as_deref();
        let call = Call::begin(&mut self.store, Limits { within, ..CALL });
        // One arm a tier: the tool is handed what its tier is, and that dies with the call.
        let result = match tier {
            Tier::ReadOnly => {
                let tools = export!(self, read_only_tools);
                let work = tools.call_call(&mut self.store, name, args, invocation, state);
                wanted(&call, checked(work, name, schema), cancelled).await
            }
            Tier::Stateful => {
                let tools = export!(self, stateful_tools);
                let controls = self.lend(Controls { by_owner: caller.is_owner() })?;
                let rep = controls.rep();
                let work = tools.call_call(&mut self.store, name, args, invocation, state, controls);
                let result = wanted(&call, checked(work, name, schema), cancelled).await;
                self.end::<Controls>(rep);
                result
            }
            Tier::ConfigChange => {
                let tools = export!(self, config_change_tools);
                let planner = self.lend(Planner::for_call(caller, false, proposed.clone()))?;
                let rep = planner.rep();
                let work = tools.call_call(&mut self.store, name, args, invocation, state, planner);
                let result = wanted(&call, checked(work, name, schema), cancelled).await;
                self.end::<Planner>(rep);
                result
            }
            Tier::HardwareIo => {
                let tools = export!(self, hardware_io_tools);
                let named = Named::of(&serde_json::from_str(args).unwrap_or_default());
                let access = self.lend(HardwareAccess(named))?;
                let rep = access.rep();
                let work = tools.call_call(&mut self.store, name, args, invocation, state, access);
                let result = wanted(&call, checked(work, name, schema), cancelled).await;
                self.end::<HardwareAccess>(rep);
                result
            }
            Tier::Privileged => {
                let tools = export!(self, privileged_tools);
                let declared = self.store.data().facts.descriptor.tools.iter().find(|tool| tool.name == name);
                let is_confirmed = !declared.is_some_and(|tool| tool.proposes);
                let planner = self.lend(Planner::for_call(caller, true, proposed.clone()))?;
                let authority = self.lend(Authority { is_confirmed })?;
                let (planned, allowed) = (planner.rep(), authority.rep());
                let work = tools.call_call(&mut self.store, name, args, invocation, state, planner, authority);
                let result = wanted(&call, checked(work, name, schema), cancelled).await;
                self.end::<Planner>(planned);
                self.end::<Authority>(allowed);
                result
            }
        };
        self.end::<Invocation>(invoked);
        self.end::<Reader>(looked);
        let result = self.outcome(result?, CALL)??;
        Ok(ToolOutput { result, plans: proposed.take() })
    }

    /// Asks before a tool runs.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn before_call(&mut self, asked: &ToolCall) -> Result<Decision, CallError> {
        let hooks = export!(self, tool_hooks);
        let call = Call::begin(&mut self.store, HOOK);
        let result = call.within(hooks.call_before_call(&mut self.store, asked)).await?.map(Ok);
        self.outcome(result, HOOK)
    }

    /// Tells after a tool ran; `failed` says why, where it did. A remark may come back.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn after_call(&mut self, done: &ToolCall, failed: Option<&str>) -> Result<Option<String>, CallError> {
        let hooks = export!(self, tool_hooks);
        let call = Call::begin(&mut self.store, HOOK);
        let result = call.within(hooks.call_after_call(&mut self.store, done, failed)).await?.map(Ok);
        Ok(self.outcome(result, HOOK)?.map(|remark| excerpt(&remark, limits::MAX_TEXT)))
    }

    /// Asks or tells its hooks around what models are asked.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn chat_hook(&mut self, hook: &ChatHook) -> Result<ChatDecision, CallError> {
        let hooks = export!(self, chat_hooks);
        let call = Call::begin(&mut self.store, HOOK);
        let result = match hook {
            ChatHook::Request(request) => call.within(hooks.call_before_request(&mut self.store, request)).await?,
            ChatHook::Answer(request, answer) => {
                call.within(hooks.call_after_answer(&mut self.store, request, answer)).await?
            }
            ChatHook::Turn(turn) => {
                let remark = call.within(hooks.call_turn_ended(&mut self.store, turn)).await?;
                remark.map(|remark| remark.map_or(ChatDecision::Proceed, ChatDecision::Annotate))
            }
        };
        let cut = |text: String| excerpt(&text, limits::MAX_TEXT);
        Ok(match self.outcome(result.map(Ok), HOOK)? {
            ChatDecision::Proceed => ChatDecision::Proceed,
            ChatDecision::Annotate(remark) => ChatDecision::Annotate(cut(remark)),
            ChatDecision::Deny(reason) => ChatDecision::Deny(cut(reason)),
        })
    }

    /// Tells of a change.
    ///
    /// # Errors
    /// [`CallError::Trapped`] only.
    pub async fn changed(&mut self, change: &Change) -> Result<(), CallError> {
        let hooks = export!(self, change_hooks);
        let call = Call::begin(&mut self.store, HOOK);
        let result = match change {
            Change::Ports => call.within(hooks.call_ports_changed(&mut self.store)).await,
            Change::Mode(mode) => call.within(hooks.call_mode_changed(&mut self.store, mode)).await,
            Change::Config => call.within(hooks.call_config_applied(&mut self.store)).await,
        }?;
        self.outcome(result.map(Ok), HOOK)
    }

    /// Has it export its state, for the instance that replaces it.
    ///
    /// # Errors
    /// See [`CallError`]; `Exhausted` if the state is too large.
    pub async fn export_state(&mut self) -> Result<Vec<u8>, CallError> {
        let handover = export!(self, state_handover);
        let call = Call::begin(&mut self.store, HOOK);
        let result = call.within(handover.call_export_state(&mut self.store)).await?;
        let state = self.outcome(result, HOOK)?;
        if state.len() > limits::MAX_STATE {
            let text = format!("its state has {} bytes; at most {} are handed over", state.len(), limits::MAX_STATE);
            return Err(CallError::Refused(ServiceError::Exhausted(text)));
        }
        Ok(state)
    }

    /// Hands it the state of the instance that it replaces.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn import_state(&mut self, state: &[u8]) -> Result<(), CallError> {
        let handover = export!(self, state_handover);
        let call = Call::begin(&mut self.store, HOOK);
        let result = call.within(handover.call_import_state(&mut self.store, state)).await?;
        self.outcome(result, HOOK)
    }

    /// Runs a background task until it is done, or `ending` tells it to end; then it has as long as it declares.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn run_task(&mut self, name: &str, ending: &CancellationToken) -> Result<(), CallError> {
        let tasks = export!(self, tasks);
        let run = self.lend(Run { ending: ending.clone() })?;
        let rep = run.rep();
        let declared = self.store.data().facts.descriptor.tasks.iter().find(|task| task.name == name);
        let timeout = declared.map_or(limits::CANCEL_TIMEOUT, TaskDeclaration::stop_timeout);
        let call = Call::begin(&mut self.store, TASK);
        let started = call.metered(tasks.call_start(&mut self.store, name, run));
        let result = tokio::select! {
            result = started => result,
            () = async { ending.cancelled().await; tokio::time::sleep(timeout).await } => {
                return Err(CallError::Trapped(format!("stopped: it did not end within {} s", timeout.as_secs())));
            }
        };
        self.end::<Run>(rep);
        self.outcome(result, TASK)
    }

    /// Puts a handle into the table and lends it for the call that comes.
    pub(super) fn lend<T: Send + 'static>(&mut self, handle: T) -> Result<Resource<T>, CallError> {
        let owned = self.store.data_mut().table.push(handle).map_err(|error| CallError::Trapped(error.to_string()))?;
        Ok(Resource::new_borrow(owned.rep()))
    }

    /// The handle dies with its call.
    pub(super) fn end<T: 'static>(&mut self, rep: u32) {
        let _ = self.store.data_mut().table.delete(Resource::<T>::new_own(rep));
    }

    pub(super) fn outcome<T>(
        &mut self,
        result: wasmtime::Result<Result<T, Error>>,
        limits: Limits,
    ) -> Result<T, CallError> {
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(CallError::Refused(error.into())),
            Err(error) => {
                let reached = self.store.data_mut().limiter.take_refusal();
                Err(CallError::Trapped(explain(&error, reached, limits.cpu)))
            }
        }
    }
}

/// What a tool says, checked: what is left to do when the guest is done is done for it, and a part of its call.
async fn checked(
    said: impl Future<Output = wasmtime::Result<Result<String, Error>>>,
    tool: &str,
    schema: Option<&ResultSchema>,
) -> wasmtime::Result<Result<Result<Value, CallError>, Error>> {
    Ok(said.await?.map(|text| result_of(tool, &text, schema)))
}

/// The result of a tool as JSON.
///
/// # Errors
/// [`ServiceError::Exhausted`] if it is too long; [`ServiceError::Failed`] if it is not JSON, or does not match its
/// schema.
fn result_of(tool: &str, text: &str, schema: Option<&ResultSchema>) -> Result<Value, CallError> {
    if text.len() > limits::MAX_RESULT {
        let most = limits::MAX_RESULT;
        let text = format!("the result of {tool} has {} bytes; at most {most} are taken", text.len());
        return Err(CallError::Refused(ServiceError::Exhausted(text)));
    }
    let wrong = |what: String| CallError::Refused(ServiceError::Failed(excerpt(&what, limits::MAX_TEXT)));
    let result = serde_json::from_str(text).map_err(|error| wrong(format!("its result is not JSON: {error}")))?;
    if let Some(schema) = schema {
        // The caller relies on it.
        schema.check(&result).map_err(|why| wrong(format!("its result is not what its output schema says: {why}")))?;
    }
    Ok(result)
}

/// A tool call, until its timeout, or until it goes on for too long after it was cancelled.
async fn wanted<T>(call: &Call, work: impl Future<Output = T>, cancelled: &CancellationToken) -> Result<T, CallError> {
    let given_up = async {
        cancelled.cancelled().await;
        tokio::time::sleep(limits::CANCEL_TIMEOUT).await;
    };
    tokio::select! {
        // In this order: a call that ends in its first step has not to register for its cancellation.
        biased;
        result = call.within(work) => result,
        () = given_up => Err(CallError::Trapped("stopped: it was cancelled and did not end".into())),
    }
}
