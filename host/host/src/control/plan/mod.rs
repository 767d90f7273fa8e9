//! Plans: proposed changes of the configuration that wait for a person, and their outcomes.
//!
//! ```text
//! propose ─▶ waiting ─▶ a person looks (diff, risk, rehearsal) ─▶ apply ─▶ a revision ─▶ undo ─▶ redo
//!                  └─▶ rejected, withdrawn by its proposer, or expired
//! ```
//!
//! [`store`] keeps them across restarts, [`risk`] says what a person should know before deciding, by the
//! [effects](risk::effect) that a configuration has with the plan and without, and [`rehearsal`] what would have fired
//! differently. The host applies (`host/apply.rs`): nothing here touches the configuration file or the rules.

pub mod rehearsal;
pub mod store;

pub use conductor_plan_risk as risk;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lock::Locked;
use conductor_audit::AuditError;
use conductor_audit::caller::{self, Caller};
use conductor_config_text::diff;
use conductor_config_text::edit::{Change, EditError, edited};
use conductor_sandbox::bindings::Error;
use conductor_stdx::digest::sha256;
use conductor_stdx::hidden::{hide, hide_json, hide_line, mentions_hidden};
use conductor_terminal::{MAX_TEXT, excerpt_lines};
use risk::Risk;

/// The configuration that plans are made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// Its file, as messages show it.
    pub file: String,
    /// Its text, which is in force.
    pub text: String,
}

/// What somebody proposes.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// The feature that hands it in, by its id.
    pub proposer: String,
    /// Who called the feature's tool; `None` if the feature proposes by itself.
    pub caller: Option<Caller>,
    /// A sentence for the person who decides.
    pub description: String,
    /// Whether it was proposed by a tool of the tier `privileged`.
    pub privileged: bool,
    /// The changes, made one after the other.
    pub changes: Vec<Change>,
}

/// A plan, as a person sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// A UUID (version 4) as 32 hex digits, without hyphens.
    pub id: String,
    /// The feature that proposed it, by its id.
    pub proposer: String,
    /// Who called the feature's tool, and through which door; the feature's id if it proposes by itself.
    pub caller: String,
    /// A sentence for the person who decides.
    pub description: String,
    /// The changes, made one after the other.
    pub changes: Vec<Change>,
    /// When it was proposed, in milliseconds since 1970.
    pub created: u64,
    /// When it stops waiting, in milliseconds since 1970.
    pub expires: u64,
    /// The [`state_hash`] of the configuration that it changes.
    pub base: String,
    /// The files that it changes when it is applied.
    pub touched_files: Vec<String>,
    /// What it changes in the file, as a unified diff.
    pub diff: String,
    /// What to know before deciding.
    pub risk: Risk,
}

impl Plan {
    /// Who proposed it, as a person says it: who called the tool, and the feature whose tool it was.
    pub fn proposed_by(&self) -> String {
        let caller = caller::in_words(&self.caller).unwrap_or_else(|| self.caller.clone());
        if self.caller == self.proposer { caller } else { format!("{caller}, with {}", self.proposer) }
    }
}

/// A plan as lists show it, without what it changes: that can be long, and is shown with the plan alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanSummary {
    /// A UUID (version 4) as 32 hex digits, without hyphens.
    pub id: String,
    /// The feature that proposed it, by its id.
    pub proposer: String,
    /// Who called the feature's tool, and through which door; the feature's id if it proposes by itself.
    pub caller: String,
    /// A sentence for the person who decides, in one line and cut after 500 bytes.
    pub description: String,
    /// How many changes it makes.
    pub changes: u64,
    /// When it was proposed, in milliseconds since 1970.
    pub created: u64,
    /// When it stops waiting, in milliseconds since 1970.
    pub expires: u64,
    /// The [`state_hash`] of the configuration that it changes.
    pub base: String,
    /// Whether the configuration is another one than it changes: it can't be applied, unless that is undone.
    #[serde(default)]
    pub stale: bool,
    /// Bytes of the diff that the plan has.
    pub diff_bytes: u64,
    /// How much to look at before deciding.
    pub risk: RiskSummary,
}

/// A plan's risk as lists show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RiskSummary {
    /// How far it reaches.
    pub level: risk::Level,
    /// How many notes there are on it.
    pub notes: usize,
}

/// Digits of its id that a person writes to apply a privileged plan.
const REPEATED_DIGITS: usize = 6;

impl Plan {
    /// The first digits of its id, which a person writes to apply it where it is privileged: more than a yes by habit.
    pub fn digits(&self) -> &str {
        self.id.get(..REPEATED_DIGITS).unwrap_or(&self.id)
    }

    /// Hides private values in what it changes, for others than the home's owner. `text` is the configuration in force,
    /// and `hidden` the same without private values.
    pub fn hide(&mut self, text: &str, hidden: &str) {
        let changes = self.changes.clone();
        for Change { path, value } in &mut self.changes {
            value.iter_mut().for_each(|value| hide_json(path, value));
        }
        self.risk.notes.iter_mut().for_each(|note| *note = hide_line(note));
        if text == hidden && changes == self.changes {
            return;
        }
        let after = (state_hash(text) == self.base).then(|| edited(text, &changes).ok()).flatten();
        let Some(after) = after else {
            self.diff = "(not shown: the configuration is another one by now)\n".to_owned();
            return;
        };
        let hidden_after = hide(&after);
        // Its first two lines name the file.
        let file = self.diff.lines().next().and_then(|line| line.strip_prefix("--- ")).unwrap_or_default();
        let shown = diff::unified(file, hidden, &hidden_after);
        // Lines that differ in what is not shown would seem to be alike.
        let count = |diff: &str| diff.lines().filter(|line| line.starts_with(['+', '-'])).count();
        let note = if count(&shown) == count(&self.diff) { "" } else { HIDDEN_CHANGES };
        self.diff = format!("{shown}{note}");
    }

    /// Whether it changes private values, which were hidden.
    pub fn has_hidden_changes(&self) -> bool {
        self.diff.ends_with(HIDDEN_CHANGES)
            || self.changes.iter().any(|change| change.value.as_ref().is_some_and(mentions_hidden))
    }
}

/// Stands below a diff that does not show everything.
const HIDDEN_CHANGES: &str = "(it changes values that are not shown here, too; `conductor plan show` shows them)\n";

/// An applied plan, which can be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// Its number; later ones are greater.
    pub number: i64,
    /// What it did.
    pub description: String,
    /// The configuration without it.
    pub before: String,
    /// The configuration with it.
    pub after: String,
}

/// Why there is no plan, or why it was not applied. Then the file and the rules are as they were.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// No such plan, or one that was decided about.
    #[error("there is no plan {0:?} that waits; `conductor plan list` shows those that do")]
    NotFound(String),
    /// It was proposed for another caller.
    #[error("the plan {0} is not one that you proposed; a person rejects it, with `conductor plan reject {0}`")]
    NotOwn(String),
    /// It waited too long.
    #[error("the plan {0} has expired; have it proposed again")]
    Expired(String),
    /// The configuration is another one by now.
    #[error("the configuration has changed since (it was {plan:.12}, it is {current:.12}); have the plan made again")]
    StaleState {
        /// The configuration's [`state_hash`] when the plan was made.
        plan: String,
        /// Its hash now.
        current: String,
    },
    /// The configuration would be wrong with it.
    #[error("the configuration would not be valid:\n{0}")]
    Invalid(String),
    /// Its changes can't be made.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// Its changes make no difference.
    #[error("the plan changes nothing: the configuration says all of that already")]
    NoChange,
    /// The file is not what is in force, so that a plan could not be applied.
    #[error(
        "{file} was changed and is not in force, so no plan can be made; `conductor reload` puts it in force, then have \
         the plan made again"
    )]
    NotInForce {
        /// The configuration file.
        file: String,
    },
    /// The file has mistakes, so that a plan could not be applied.
    #[error(
        "{file} has mistakes, so no plan can be made; correct it (`conductor config validate` shows where), then have the \
         plan made again. {first}"
    )]
    FileInvalid {
        /// The configuration file.
        file: String,
        /// The first mistake, in a line.
        first: String,
    },
    /// The file is no text.
    #[error("{file} is not UTF-8 text from byte {at} on; save it as UTF-8, then try again")]
    NotText {
        /// The configuration file.
        file: String,
        /// The first byte that is not valid UTF-8, from 0.
        at: usize,
    },
    /// Too many configurations are looked at already.
    #[error("the host is looking at other configurations; try again in a few seconds")]
    Busy,
    /// It asks for what only a person may do without a plan.
    #[error(transparent)]
    Denied(#[from] risk::Denied),
    /// Too much waits.
    #[error("{0}")]
    Full(String),
    /// The show is locked, and the caller is not its owner.
    #[error(transparent)]
    Locked(#[from] Locked),
    /// There is nothing to undo, or nothing to redo.
    #[error("there is nothing to {0}")]
    Nothing(&'static str),
    /// It has to be on record before it is done, and can't be.
    #[error(transparent)]
    Unrecorded(#[from] AuditError),
    /// The record of plans was written by a later version.
    #[error(
        "the record of plans has layout {found}, and this version knows those up to {known}; use the newer version"
    )]
    Layout {
        /// The layout's version.
        found: i64,
        /// The latest that is known.
        known: i64,
    },
    /// The host's own records can't be read or written.
    #[error("the record of plans can't be kept: {0}")]
    Record(#[from] rusqlite::Error),
    /// The file can't be read or written.
    #[error("{file}: {source}")]
    File {
        /// The configuration file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// The host was started without a configuration file.
    #[error("this host has no configuration file that a plan could change")]
    NoFile,
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        let text = excerpt_lines(&error.to_string(), MAX_TEXT);
        match error {
            PlanError::Denied(_) => Self::Denied(text),
            PlanError::Full(_) | PlanError::Busy => Self::Exhausted(text),
            PlanError::Record(_) => Self::Unavailable(text),
            _ => Self::Invalid(text),
        }
    }
}

/// SHA-256 of a configuration's text, lower-case hex: what a plan is made for.
pub fn state_hash(text: &str) -> String {
    sha256(text.as_bytes())
}
