//! One running instance of a feature that contributes actions.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::{InstancePre, ResourceTableError};
use wasmtime::{Store, Trap};

use super::bindings::exports::{actions, lifecycle};
use super::bindings::{Error, Event};
use super::cpu::{self, CpuBudget};
use super::limits::{self, plain};
use super::state::{FeatureFacts, InstanceState, RegisteredAction};
use crate::service::install::Context;

/// Why a call into a guest gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The guest, or a service that it called, refused. The instance is fine.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// The guest trapped, or was stopped. The instance can't be entered again.
    #[error("{0}")]
    Trapped(String),
}

/// The contract's error, in the host's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No grant.
    #[error("denied: {0}")]
    Denied(String),
    /// Not there now.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// A wrong request.
    #[error("{0}")]
    Invalid(String),
    /// A limit.
    #[error("limit reached: {0}")]
    Exhausted(String),
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let text = |text| plain(text, limits::MAX_TEXT);
        match error {
            Error::Denied(t) => Self::Denied(text(t)),
            Error::Unavailable(t) => Self::Unavailable(text(t)),
            Error::Invalid(t) => Self::Invalid(text(t)),
            Error::Exhausted(t) => Self::Exhausted(text(t)),
            Error::Failed(t) => Self::Failed(text(t)),
        }
    }
}

/// Why a feature could not be installed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    /// No instance could be made.
    #[error("can't be instantiated: {0}")]
    Instantiate(String),
    /// Its `install` gave an error or trapped.
    #[error("its install failed: {0}")]
    Install(#[from] CallError),
    /// It declares an action that it did not register.
    #[error("declares the action {0}, but did not register it")]
    NotRegistered(String),
}

/// An instance with its store: one at a time may call into it.
pub struct ActionInstance {
    store: Store<InstanceState>,
    actions: actions::Guest,
}

impl std::fmt::Debug for ActionInstance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActionInstance").field("state", self.store.data()).finish_non_exhaustive()
    }
}

impl ActionInstance {
    /// Instantiates and installs.
    pub(super) fn new(pre: &InstancePre<InstanceState>, facts: Arc<FeatureFacts>) -> Result<Self, InstallError> {
        let instantiate =
            |error: wasmtime::Error| InstallError::Instantiate(plain(format!("{error:#}"), limits::MAX_TEXT));
        let mut store = Store::new(pre.engine(), InstanceState::new(facts));
        store.limiter(|state| &mut state.limiter);
        store.epoch_deadline_callback(cpu::on_tick);
        begin(&mut store, limits::INSTALL_BUDGET);
        let instance = pre.instantiate(&mut store).map_err(instantiate)?;
        let lifecycle = lifecycle::GuestIndices::new(pre)
            .and_then(|indices| indices.load(&mut store, &instance))
            .map_err(instantiate)?;
        let actions = actions::GuestIndices::new(pre)
            .and_then(|indices| indices.load(&mut store, &instance))
            .map_err(instantiate)?;

        let context = store.data_mut().table.push(Context).map_err(|error| instantiate(error.into()))?;
        let lent = wasmtime::component::Resource::new_borrow(context.rep());
        let installed = lifecycle.call_install(&mut store, lent);
        // The context dies with the call, whatever the guest still holds.
        store.data_mut().table.delete(context).map_err(|error| instantiate(error.into()))?;
        let mut this = Self { store, actions };
        this.outcome(installed, limits::INSTALL_BUDGET)?;

        let state = this.store.data();
        for declared in &state.facts.descriptor.actions {
            if !state.registered.iter().any(|action| action.name == declared.name) {
                return Err(InstallError::NotRegistered(declared.name.clone()));
            }
        }
        Ok(this)
    }

    /// The actions that `install` registered.
    pub fn registered(&self) -> &[RegisteredAction] {
        &self.store.data().registered
    }

    /// Prepares one use of an action; `params` is a JSON object.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn prepare(&mut self, name: &str, params: &str) -> Result<u32, CallError> {
        begin(&mut self.store, limits::PREPARE_BUDGET);
        let result = self.actions.call_prepare(&mut self.store, name, params);
        self.outcome(result, limits::PREPARE_BUDGET)
    }

    /// Performs a prepared action. Called on the event path.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn perform(&mut self, action: u32, event: Event) -> Result<(), CallError> {
        // The first time its code is still on its way from the disk, and that is not its fault.
        let budget = if self.store.data().facts.is_warm() { limits::PERFORM_BUDGET } else { limits::PREPARE_BUDGET };
        begin(&mut self.store, budget);
        let result = self.actions.call_perform(&mut self.store, action, event);
        self.outcome(result, budget)
    }

    /// Gives a prepared action back.
    ///
    /// # Errors
    /// [`CallError::Trapped`] only.
    pub fn release(&mut self, action: u32) -> Result<(), CallError> {
        begin(&mut self.store, limits::PREPARE_BUDGET);
        let result = self.actions.call_release(&mut self.store, action).map(Ok);
        self.outcome(result, limits::PREPARE_BUDGET)
    }

    fn outcome<T>(&mut self, result: wasmtime::Result<Result<T, Error>>, budget: Duration) -> Result<T, CallError> {
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

/// Gives the call that comes its CPU time.
fn begin(store: &mut Store<InstanceState>, budget: Duration) {
    store.data_mut().cpu = CpuBudget::new(budget);
    store.set_epoch_deadline(1);
}

/// A trap in words that say what to do about it.
fn explain(error: &wasmtime::Error, reached: Option<&str>, budget: Duration) -> String {
    if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) {
        return format!("trapped: it reached its limit of {} handles", limits::MAX_HANDLES);
    }
    let trap = error.downcast_ref::<Trap>();
    match (trap, reached) {
        (Some(Trap::Interrupt), _) => format!("stopped: it ran longer than its {} ms", budget.as_millis()),
        (Some(Trap::StackOverflow), _) => {
            format!("trapped: it used up its stack of {} KiB", limits::STACK_BYTES / 1024)
        }
        (_, Some(limit)) => format!("trapped: it reached {limit}"),
        (Some(trap), None) => format!("trapped: {}", trap.to_string().trim_start_matches("wasm trap: ")),
        (None, None) => plain(format!("trapped: {}", error.root_cause()), limits::MAX_TEXT),
    }
}
