//! One running instance in the real-time lane: actions, timers and event hooks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use conductor_event::Nanos;
use conductor_package::capability::CapabilityKind;
use conductor_package::descriptor::{Descriptor, HookPoint};
use wasmtime::{Store, StoreContextMut, Trap, UpdateDeadline};

use crate::bindings::realtime_exports::{actions, event_hooks, lifecycle, timer_events};
use crate::bindings::{Error, Event, Lane};
use crate::cpu::{CpuBudget, thread_time};
use crate::event_details::EventDetails;
use crate::limits;
use crate::linked::Pre;
use crate::outcome::{CallError, InstallError, explain};
use crate::pending_calls::PendingCall;
use crate::registrations::RegisteredAction;
use crate::state::{FeatureFacts, InstanceState};

/// An instance with its store: one at a time may call into it.
pub struct ActionInstance {
    store: Store<InstanceState>,
    /// Keeps the component loaded.
    _pre: Arc<Pre>,
    /// Where the descriptor declares actions.
    actions: Option<actions::Guest>,
    /// Where the descriptor requests timers.
    timers: Option<timer_events::Guest>,
    /// Where the descriptor declares a hook on events.
    events: Option<event_hooks::Guest>,
}

impl std::fmt::Debug for ActionInstance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActionInstance").field("state", self.store.data()).finish_non_exhaustive()
    }
}

impl ActionInstance {
    /// Instantiates and installs.
    pub(super) fn new(pre: Arc<Pre>, facts: Arc<FeatureFacts>) -> Result<Self, InstallError> {
        let instantiate = |error: wasmtime::Error| InstallError::instantiate(&error);
        let descriptor = &facts.descriptor;
        let (has_actions, has_events) = (!descriptor.actions.is_empty(), descriptor.hooks_at(HookPoint::Events));
        let has_timers = Self::may_have_pending(descriptor);
        let mut store = InstanceState::store(pre.engine(), facts, Lane::RealTime);
        store.epoch_deadline_callback(on_tick);
        begin(&mut store, limits::INSTALL_BUDGET);
        let instance = pre.instantiate(&mut store).map_err(instantiate)?;
        // What the descriptor declares is there: the type was checked against it.
        macro_rules! export {
            ($module:ident) => {
                $module::GuestIndices::new(&pre)
                    .and_then(|indices| indices.load(&mut store, &instance))
                    .map_err(instantiate)?
            };
        }
        let lifecycle = export!(lifecycle);
        let actions = if has_actions { Some(export!(actions)) } else { None };
        let timers = if has_timers { Some(export!(timer_events)) } else { None };
        let events = if has_events { Some(export!(event_hooks)) } else { None };

        let lent = store.data_mut().lend_context().map_err(instantiate)?;
        let context = lent.rep();
        let installed = lifecycle.call_install(&mut store, lent);
        store.data_mut().end_context(context).map_err(instantiate)?;
        let mut this = Self { store, _pre: pre, actions, timers, events };
        this.outcome(installed, limits::INSTALL_BUDGET)?;
        this.store.data().registered.all_there(&this.store.data().facts.descriptor)?;
        Ok(this)
    }

    /// Whether an instance of this feature may have calls pending.
    pub fn may_have_pending(descriptor: &Descriptor) -> bool {
        descriptor.requests(CapabilityKind::Timers)
    }

    /// The actions that `install` registered.
    pub fn registered(&self) -> &[RegisteredAction] {
        &self.store.data().registered.actions
    }

    /// Prepares one use of an action; `params` is a JSON object.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn prepare(&mut self, name: &str, params: &str) -> Result<u32, CallError> {
        let budget = self.store.data().facts.prepare_budget();
        begin(&mut self.store, budget);
        let Some(actions) = &self.actions else { return Err(no_actions()) };
        let result = actions.call_prepare(&mut self.store, name, params);
        self.outcome(result, budget)
    }

    /// Performs a prepared action. Called on the event path.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn perform(&mut self, action: u32, event: Event) -> Result<(), CallError> {
        self.perform_for(0, action, event, EventDetails::default())
    }

    /// The same for one of several owners: the calls that are asked for belong to it. `owner` is any number of the
    /// caller's. The guest may ask for `details` while it runs.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn perform_for(
        &mut self,
        owner: u32,
        action: u32,
        event: Event,
        details: EventDetails,
    ) -> Result<(), CallError> {
        let budget = self.begin_on_event_path(owner, action, event.at);
        let Some(actions) = &self.actions else { return Err(no_actions()) };
        self.store.data_mut().event = details;
        let result = actions.call_perform(&mut self.store, action, event);
        let state = self.store.data_mut();
        state.event = EventDetails::default();
        state.pending.end();
        self.outcome(result, budget)
    }

    /// When the next pending call is due, on the host's clock. `None` if none is pending.
    pub fn next_pending(&self) -> Option<Nanos> {
        self.store.data().pending.next()
    }

    /// Takes the next pending call out, for [`due`](Self::due) or to leave it at that.
    pub fn take_pending(&mut self) -> Option<PendingCall> {
        self.store.data_mut().pending.take()
    }

    /// Makes a call that was pending, as at its deadline. Called on the event path.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn due(&mut self, call: PendingCall) -> Result<(), CallError> {
        let budget = self.begin_on_event_path(call.owner, call.action, call.deadline);
        let Some(timers) = &self.timers else { return Ok(()) };
        let result = timers.call_due(&mut self.store, call.action, call.id, call.deadline);
        self.store.data_mut().pending.end();
        self.outcome(result, budget)
    }

    /// Cancels the pending calls of those owners of which this is true.
    pub fn cancel_pending(&mut self, goes: impl Fn(u32) -> bool) {
        self.store.data_mut().pending.cancel(|call| goes(call.owner));
    }

    /// Whether a call is pending for this owner.
    pub fn has_pending_of(&self, owner: u32) -> bool {
        self.store.data().pending.has_owner(owner)
    }

    /// Gives a call for an event or at a deadline its CPU time, which counts from its first tick, and lets it ask for
    /// others.
    fn begin_on_event_path(&mut self, owner: u32, action: u32, at: Nanos) -> Duration {
        let state = self.store.data_mut();
        let budget = state.facts.perform_budget();
        state.cpu = CpuBudget::of_perform(budget, state.facts.shared.at_work.ticks());
        state.pending.begin(action, owner, at);
        self.store.set_epoch_deadline(1);
        budget
    }

    /// Gives a prepared action back. Its pending calls are cancelled.
    ///
    /// # Errors
    /// [`CallError::Trapped`] only.
    pub fn release(&mut self, action: u32) -> Result<(), CallError> {
        self.store.data_mut().pending.cancel(|call| call.action == action);
        begin(&mut self.store, limits::PREPARE_BUDGET);
        let Some(actions) = &self.actions else { return Err(no_actions()) };
        let result = actions.call_release(&mut self.store, action).map(Ok);
        self.outcome(result, limits::PREPARE_BUDGET)
    }

    /// Shows a batch of events to the feature's hook; `missed` were left out before them.
    ///
    /// # Errors
    /// [`CallError::Trapped`] only.
    pub fn events(&mut self, batch: &[Event], missed: u64) -> Result<(), CallError> {
        let Some(events) = &self.events else { return Ok(()) };
        begin(&mut self.store, limits::EVENTS_BUDGET);
        let result = events.call_events(&mut self.store, batch, missed).map(Ok);
        let state = self.store.data();
        state.facts.shared.lane_share.charge(Instant::now(), charge(&state.facts, &state.cpu));
        self.outcome_uncharged(result, limits::EVENTS_BUDGET)
    }

    fn outcome<T>(&mut self, result: wasmtime::Result<Result<T, Error>>, budget: Duration) -> Result<T, CallError> {
        let state = self.store.data();
        charge(&state.facts, &state.cpu);
        self.outcome_uncharged(result, budget)
    }

    fn outcome_uncharged<T>(
        &mut self,
        result: wasmtime::Result<Result<T, Error>>,
        budget: Duration,
    ) -> Result<T, CallError> {
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(CallError::Refused(error.into())),
            Err(error) => {
                let reached = self.store.data_mut().limiter.take_refusal();
                Err(CallError::Trapped(explain(&error, reached, budget)))
            }
        }
    }
}

fn no_actions() -> CallError {
    CallError::Trapped("the feature has no actions".into())
}

/// Gives the call that comes, which is not for an event, its CPU time. It asks for no others.
fn begin(store: &mut Store<InstanceState>, budget: Duration) {
    let state = store.data_mut();
    state.pending.end();
    state.cpu = CpuBudget::new(budget, state.facts.shared.at_work.ticks());
    store.set_epoch_deadline(1);
}

/// Charges a call that ends now.
fn charge(facts: &FeatureFacts, budget: &CpuBudget) -> Duration {
    let taken = budget.taken(facts.shared.at_work.ticks());
    if !taken.is_zero() {
        facts.shared.at_work.note();
        facts.cpu_share.charge(Instant::now(), taken);
    }
    taken
}

/// Called at every tick of a call: go on, or trap.
fn on_tick(mut store: StoreContextMut<'_, InstanceState>) -> wasmtime::Result<UpdateDeadline> {
    let state = store.data_mut();
    state.facts.shared.at_work.note();
    if state.cpu.is_spent(thread_time()) {
        return Err(Trap::Interrupt.into());
    }
    Ok(UpdateDeadline::Continue(1))
}
