//! What a conversation consists of: events, in the order in which they were kept.
//!
//! Everything else is made from them: what a person is shown, what the model is sent, what an export has. An event is on
//! the disk before anybody is shown it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that happened in a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ChatEvent {
    /// A person said something. A turn begins.
    Message {
        /// The text.
        text: String,
    },
    /// A model is asked.
    Asked {
        /// Its name under `[models]`.
        model: String,
    },
    /// More of what the model says.
    Text {
        /// A piece of it.
        text: String,
    },
    /// More of what the model thinks, as far as its API shows that.
    Reasoning {
        /// A piece of it.
        text: String,
    },
    /// The thought is whole.
    ReasoningEnded {
        /// What the API wants back unchanged with the next question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mark: Option<String>,
    },
    /// The model begins to ask for a tool.
    CallBegun {
        /// The id of the call, unique in this answer.
        call: String,
        /// The tool.
        tool: String,
    },
    /// The model wants a tool called.
    Call {
        /// The id of the call.
        call: String,
        /// The tool.
        tool: String,
        /// The arguments as the model wrote them: a JSON object unless it made a mistake.
        args: String,
        /// What the API wants back unchanged with the next question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mark: Option<String>,
    },
    /// The model's answer is whole.
    Answered {
        /// The model's name under `[models]`.
        model: String,
        /// Why it ended: `done`, `tools`, `length`, `filtered`, or the API's own word.
        stop: String,
        /// What it took, as the API counts.
        usage: Tokens,
        /// What it cost, in billionths of a US dollar. `None` if unknown.
        cost: Option<u64>,
        /// Whether the API did not say what it took, so that `usage` is estimated.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
        /// The day of the prices that `cost` was calculated by: `2026-11-24`. `None` if the API said the cost, it is not
        /// known, or the configuration has the prices.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prices_as_of: Option<String>,
        /// What went otherwise than it was asked for, a sentence each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// The model gave no whole answer. What it has said of it is not part of the conversation.
    ModelFailed {
        /// The model's name under `[models]`.
        model: String,
        /// Why.
        error: String,
    },
    /// A person has to agree before a tool is called.
    Approval {
        /// The id of the call.
        call: String,
        /// To what.
        #[serde(flatten)]
        asked: Approval,
    },
    /// Whether a person agreed.
    ApprovalDecided {
        /// The id of the call.
        call: String,
        /// The id of the approval.
        id: String,
        /// Whether they did. Without an answer in time they did not.
        agreed: bool,
    },
    /// A tool has ended.
    CallEnded {
        /// The id of the call.
        call: String,
        /// The tool.
        tool: String,
        /// Its result, JSON text; or why it failed.
        result: String,
        /// Whether it failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
    },
    /// A call proposed a plan. It waits for a person.
    Plan {
        /// The id of the call.
        call: String,
        /// The id of the plan, as the host gave it.
        plan: String,
        /// The plan's description. Empty if the plan was decided before the call had ended, and in conversations that
        /// older versions kept.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        description: String,
    },
    /// What became of a plan.
    PlanDecided {
        /// The id of the plan.
        plan: String,
        /// What.
        outcome: PlanOutcome,
    },
    /// A feature notified agents of something since the conversation began. The model reads it with the next question.
    Notification {
        /// Its number in the host's log of notifications.
        sequence: u64,
        /// The whole id of the feature that said it: `builtin:work-items`.
        feature: String,
        /// What the feature said, at most 4096 bytes: data, never instructions.
        text: String,
        /// How many notifications right before it are not in the conversation.
        #[serde(default, skip_serializing_if = "is_zero")]
        left_out: u64,
    },
    /// From now on the model is sent a digest of the events up to there.
    Compacted {
        /// The number of the last event that is in the digest only.
        through: u64,
    },
    /// The turn is over.
    TurnEnded {
        /// How it ended.
        outcome: Outcome,
        /// Why, for people. `None` if there is nothing to say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What a person has to agree to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// What the answer names. It serves once.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// What the call does: `sends to "synth"`.
    pub effect: String,
    /// What is sent or done, line by line: devices, bytes in hex, the arguments.
    pub shown: String,
    /// What a person types, after a first yes, to agree. `None` if one yes is enough.
    pub phrase: Option<String>,
    /// How long it waits, in milliseconds.
    pub expires_in_ms: u64,
}

/// What became of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanOutcome {
    /// A person had it applied.
    Applied,
    /// A person rejected it.
    Rejected,
    /// It expired.
    Expired,
    /// It does not wait any longer, and what was decided is not known: the host was not running.
    Gone,
}

impl PlanOutcome {
    /// The word that texts use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Gone => "gone",
        }
    }
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The model has said it all.
    Done,
    /// The answer was cut short by the model's own limit, or its API held the rest back.
    Short,
    /// A person cancelled it.
    Cancelled,
    /// A limit of `[chat]` was reached, or the same call came again and again.
    Limit,
    /// No model gave an answer.
    Failed,
    /// The host ended in the middle of it.
    CutOff,
}

/// Tokens of one exchange, as its API counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    /// Read.
    pub input: u64,
    /// Of those: from a cache.
    pub cached: u64,
    /// Written, thoughts included.
    pub output: u64,
}

/// An event with its place in the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recorded {
    /// Its number, from 1; what `after` takes.
    pub number: u64,
    /// When it was kept, in milliseconds since 1970.
    pub at: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: ChatEvent,
}
