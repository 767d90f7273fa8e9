//! The errors of services and guests: the contract's `error`, independent of the sandbox.

/// One variant for each of the contract's. The text is for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// No grant covers this.
    #[error("denied: {0}")]
    Denied(String),
    /// Granted, but not there now.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// The request itself is wrong.
    #[error("{0}")]
    Invalid(String),
    /// A limit was reached; trying again later may succeed.
    #[error("limit reached: {0}")]
    Exhausted(String),
    /// It was tried and it failed.
    #[error("{0}")]
    Failed(String),
}

/// A guest's text as errors show it: quoted, without control characters, at most 80 characters.
pub fn shown(text: &str) -> String {
    match text.char_indices().nth(80) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}...", &text[..end]),
    }
}
