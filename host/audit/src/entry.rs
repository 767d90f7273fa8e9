//! An entry of the audit log: bounded, plain text, and without the value of any secret.

use std::fmt::Display;
use std::time::Duration;

use conductor_terminal::excerpt;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::caller::Caller;

/// Bytes that are kept of the subject.
pub const MAX_NAME: usize = 128;
/// Bytes that are kept of each detail.
pub const MAX_DETAIL: usize = 2048;

/// What an entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A call of a tool
    Tool,
    /// A prompt that was filled in for an agent
    Prompt,
    /// A resource with what features said, which an agent read: which notifications, of which features
    Resource,
    /// A question to a language model: which one, tokens, what came of it; never what was said
    Model,
    /// A plan: proposed, applied, rejected, expired, undone, redone
    Plan,
    /// What a feature may use: granted, revoked, configured
    Grant,
    /// What is installed
    Package,
    /// What agents read: a skill that was installed, replaced, removed
    Skill,
    /// A secret: kept, forgotten, sent along
    Secret,
    /// The host itself: its start, its configuration
    Host,
    /// The audit itself: rows that are missing, a chain that was found altered
    Audit,
}

impl Kind {
    /// The word that rows and the command line use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Model => "model",
            Self::Plan => "plan",
            Self::Grant => "grant",
            Self::Package => "package",
            Self::Skill => "skill",
            Self::Secret => "secret",
            Self::Host => "host",
            Self::Audit => "audit",
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It is about to be done; a later row says what came of it.
    Begun,
    /// It was done.
    Done,
    /// The host did not let it be done.
    Refused,
    /// It was tried, and not done.
    Failed,
}

impl Outcome {
    /// The word that rows use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// Something that is to be put on record.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub(super) at: u64,
    pub(super) kind: Kind,
    pub(super) what: String,
    pub(super) who: Caller,
    pub(super) subject: String,
    pub(super) outcome: Outcome,
    pub(super) took: Option<u64>,
    pub(super) detail: Map<String, Value>,
}

impl Entry {
    /// That `who` did `what` (`call`, `apply`) to the `subject`: a tool, a plan, a feature. It is
    /// [`Outcome::Done`] and has no time yet; the writer adds the time of day.
    pub fn new(kind: Kind, what: &str, who: &Caller, subject: &str) -> Self {
        let name = |text: &str| excerpt(text, MAX_NAME);
        let (what, who, subject) = (name(what), who.clone(), name(subject));
        Self { at: 0, kind, what, who, subject, outcome: Outcome::Done, took: None, detail: Map::new() }
    }

    /// The same with another outcome.
    #[must_use]
    pub fn outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome;
        self
    }

    /// The same, but the host did not let it be done.
    #[must_use]
    pub fn refused(self, reason: impl Display) -> Self {
        self.outcome(Outcome::Refused).with("reason", reason.to_string())
    }

    /// The same, but it was not done.
    #[must_use]
    pub fn failed(self, reason: impl Display) -> Self {
        self.outcome(Outcome::Failed).with("reason", reason.to_string())
    }

    /// The same with the time that it took.
    #[must_use]
    pub fn took(mut self, took: Duration) -> Self {
        self.took = Some(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        self
    }

    /// The same with one more detail. Of a text at most [`MAX_DETAIL`] bytes are kept; anything that is neither
    /// text nor a number nor a boolean is kept as the text of its JSON.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        let value = match value.into() {
            Value::String(text) => Value::String(excerpt(&text, MAX_DETAIL)),
            plain_value @ (Value::Number(_) | Value::Bool(_) | Value::Null) => plain_value,
            nested => Value::String(excerpt(&nested.to_string(), MAX_DETAIL)),
        };
        self.detail.insert(key.to_owned(), value);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::{Door, Scope};

    #[test]
    fn what_is_kept_is_bounded_and_on_one_line() {
        let entry = Entry::new(
            Kind::Tool,
            "call",
            &Caller::client(Door::Tcp, Scope::Read, Some(&"x".repeat(1000))),
            "look\n\u{1b}[2K",
        )
        .with("args", serde_json::json!({ "a": "y".repeat(100_000) }))
        .failed("z".repeat(100_000));
        assert!(entry.who.to_string().len() <= MAX_NAME && !entry.subject.contains(char::is_control), "{entry:?}");
        assert_eq!(entry.outcome, Outcome::Failed);
        let size: usize = entry.detail.values().map(|value| value.to_string().len()).sum();
        assert!(size < 2 * MAX_DETAIL + 64, "{size}");
    }
}
