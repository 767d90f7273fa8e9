//! Outcomes of a call into a guest, with texts for people.

use std::time::Duration;

use serde_json::Value;
use wasmtime::Trap;
use wasmtime::component::ResourceTableError;

use crate::bindings::Error;
use crate::limits;
pub use conductor_services::error::ServiceError;
use conductor_terminal::{excerpt, excerpt_lines};

/// What a tool call returned.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// The tool's own answer. It fits the output schema that the tool registered, if any.
    pub result: Value,
    /// The ids of the plans that were proposed with the planner lent to this call, in the order of the proposals.
    /// They come from the host, whatever `result` says.
    pub plans: Vec<String>,
}

/// Why a call into a guest gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The guest, or a service that it called, refused. The instance is fine.
    #[error("{0}")]
    Refused(#[from] ServiceError),
    /// The guest trapped, or was stopped. The instance can't be entered again.
    #[error("{0}")]
    Trapped(String),
}

impl From<Error> for ServiceError {
    fn from(error: Error) -> Self {
        let text = |text: String| excerpt(&text, limits::MAX_TEXT);
        match error {
            Error::Denied(t) => Self::Denied(text(t)),
            Error::Unavailable(t) => Self::Unavailable(text(t)),
            // May list several mistakes, one a line.
            Error::Invalid(t) => Self::Invalid(excerpt_lines(&t, limits::MAX_TEXT)),
            Error::Exhausted(t) => Self::Exhausted(text(t)),
            Error::Failed(t) => Self::Failed(text(t)),
        }
    }
}

impl From<ServiceError> for Error {
    fn from(refusal: ServiceError) -> Self {
        match refusal {
            ServiceError::Denied(text) => Self::Denied(text),
            ServiceError::Unavailable(text) => Self::Unavailable(text),
            ServiceError::Invalid(text) => Self::Invalid(text),
            ServiceError::Exhausted(text) => Self::Exhausted(text),
            ServiceError::Failed(text) => Self::Failed(text),
        }
    }
}

/// Why a feature could not be installed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    /// No instance could be made.
    #[error("can't be instantiated: {0}")]
    Instantiate(String),
    /// It trapped while an instance was made: core modules may have code that runs at their start.
    #[error("can't be instantiated: {0}")]
    Start(String),
    /// Its `install` gave an error or trapped.
    #[error("its install failed: {0}")]
    Install(#[from] CallError),
    /// It declares something that it did not register.
    #[error("declares {0}, but did not register it")]
    NotRegistered(String),
}

impl InstallError {
    pub(super) fn instantiate(error: &wasmtime::Error) -> Self {
        let text = excerpt(&one_line(&format!("{error:#}")), limits::MAX_TEXT);
        if error.is::<Trap>() { Self::Start(text) } else { Self::Instantiate(text) }
    }

    /// Whether the guest trapped or was stopped.
    pub fn is_trap(&self) -> bool {
        matches!(self, Self::Start(_) | Self::Install(CallError::Trapped(_)))
    }
}

impl From<InstallError> for CallError {
    /// What a call comes to for which no instance could be made.
    fn from(error: InstallError) -> Self {
        let text = error.to_string();
        match error {
            InstallError::Start(_) | InstallError::Install(Self::Trapped(_)) => Self::Trapped(text),
            InstallError::Install(Self::Refused(_)) | InstallError::NotRegistered(_) => {
                Self::Refused(ServiceError::Failed(text))
            }
            InstallError::Instantiate(_) => Self::Refused(ServiceError::Unavailable(text)),
        }
    }
}

/// A trap as a text that says what to do about it; `reached` is the memory or table limit that it
/// ran into before, if any.
pub(super) fn explain(error: &wasmtime::Error, reached: Option<String>, budget: Duration) -> String {
    if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) {
        return format!("trapped: it reached its limit of {} handles", limits::MAX_HANDLES);
    }
    // wasmtime has no public type for it.
    if error.root_cause().to_string().contains("fuel allocated for hostcalls has been exhausted") {
        return format!(
            "trapped: it handed over too much at once: at most {} MiB, or {} MiB where it has files, requests or models",
            limits::MAX_HANDED_OVER >> 20,
            limits::MAX_HANDED_OVER_LARGE >> 20
        );
    }
    let trap = error.downcast_ref::<Trap>();
    match (trap, reached) {
        (Some(Trap::Interrupt), _) => format!("stopped: it ran longer than its {} ms", budget.as_millis()),
        (Some(Trap::StackOverflow), _) => {
            format!("trapped: it used up its stack of {} KiB", limits::STACK_BYTES / 1024)
        }
        (_, Some(limit)) => format!("trapped: it reached {limit}"),
        (Some(trap), None) => format!("trapped: {}", trap.to_string().trim_start_matches("wasm trap: ")),
        (None, None) => excerpt(&one_line(&format!("trapped: {}", error.root_cause())), limits::MAX_TEXT),
    }
}

/// What the runtime says, whose lines are sentences.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}
