//! What the agent loop needs of a host: tools through its gate, skills, models, notifications, and which plans wait.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::Models;
use crate::record::Approval;
use conductor_audit::caller::{Caller, Door, Scope};
pub use conductor_sandbox::model_view::Later;

/// A tool that may be called, as its feature describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolFacts {
    /// Its name.
    pub name: String,
    /// What it does.
    pub summary: String,
    /// The JSON Schema of its arguments.
    pub input: Value,
}

/// A skill by its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFacts {
    /// Its name.
    pub name: String,
    /// What it does and when it is of use.
    pub summary: String,
}

/// A notification of a feature, as the host's log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationFacts {
    /// Its number: larger than that of every notification before it.
    pub sequence: u64,
    /// The whole id of the feature that said it.
    pub feature: String,
    /// What it said.
    pub text: String,
    /// How many right before it were left out.
    pub left_out: u64,
}

/// A call that is to pass the gate.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub args: Map<String, Value>,
    /// The id of the approval that a person gave to this very call. `None` if none was asked for yet.
    pub approved: Option<String>,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Called {
    /// It was made.
    Done {
        /// The tool's result.
        result: Value,
        /// The ids of the plans that it proposed, as the host gave them.
        plans: Vec<String>,
        /// What hooks remarked.
        remarks: Vec<String>,
    },
    /// A person has to agree first. The same call with the approval's id is made then, once.
    Asks(Box<Approval>),
    /// It was not made, or failed: why.
    Failed(String),
}

/// The host, as conversations see it.
pub trait Tools: fmt::Debug + Send + Sync {
    /// The models in force. `None` if the host is stopping.
    fn models(&self) -> Option<Arc<Models>>;

    /// The tools that may be called.
    fn list(&self) -> Vec<ToolFacts>;

    /// The skills that there are.
    fn skills(&self) -> Vec<SkillFacts>;

    /// The text of a skill, or of one of its files.
    ///
    /// # Errors
    /// Why it can't be read, as a sentence for the model.
    fn read_skill(&self, name: &str, file: Option<&str>) -> Result<String, String>;

    /// The last notifications with a number larger than `after` that were kept at `since` (milliseconds since 1970) or later,
    /// oldest first. May wait for the disk.
    fn notifications(&self, after: u64, since: u64) -> Vec<NotificationFacts>;

    /// Calls a tool through the gate, as `caller`, which is not a person. Ends soon after `cancelled`.
    fn call<'a>(&'a self, caller: &'a Caller, call: ToolCall, cancelled: CancellationToken) -> Later<'a, Called>;

    /// What a plan is described as. `None` if no plan of this id waits for a person.
    fn plan_description(&self, plan: &str) -> Option<String>;
}

/// The caller of a conversation's tools: an agent at a door of its own. Only a person may confirm its calls.
pub fn caller(conversation: u64) -> Caller {
    Caller::client(Door::Chat, Scope::Agent, Some(&format!("conversation {conversation}")))
}
