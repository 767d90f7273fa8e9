//! Composite actions: sequences, repeats, delays and conditionals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Action;
use crate::condition::Condition;

/// Does actions one after the other. Each is handed to its worker before the next; what takes its
/// time, such as a `Shell`, is not waited for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sequence {
    /// The actions, 1 to 256.
    #[schemars(length(min = 1, max = 256))]
    pub actions: Vec<Action>,

    /// How long to wait between two of them, in milliseconds, 0 to 3600000. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000))]
    pub delay_between_ms: u32,

    /// What ends it early. Default: nothing but the end of Conductor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cancel_on: Vec<CancelOn>,
}

/// Does an action several times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// The action.
    pub action: Box<Action>,

    /// How often, 1 to 10000.
    #[schemars(range(min = 1, max = 10_000))]
    pub count: u16,

    /// How long to wait between two of them, in milliseconds, 0 to 3600000. Default: 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3_600_000))]
    pub delay_ms: u32,

    /// What ends it early. Default: nothing but the end of Conductor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cancel_on: Vec<CancelOn>,
}

/// Does one action or another. The condition is asked when the mapping fires, also where this stands in a
/// `Sequence` or `Repeat` that comes to it later. The release of a note, a button or a pedal is decided as its
/// press was, so that what was begun is ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conditional {
    /// What is asked. An action asks at most 32 conditions in all.
    pub condition: Condition,

    /// What is done where it holds.
    pub then: Box<Action>,

    /// What is done where it does not. Default: nothing.
    #[serde(default, rename = "else", skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<Box<Action>>,
}

/// Waits: for use in a `Sequence`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delay {
    /// How long, in milliseconds, 0 to 3600000. Either this or `beats`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 3_600_000))]
    pub ms: Option<u32>,

    /// How long, in beats of the clock, 0 to 1000, by its tempo when the delay begins. Either this or `ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub beats: Option<f64>,
}

/// What cancels an action with several steps or delays. Only the setting of the outermost action of a mapping counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelOn {
    /// Another mode becomes the active one.
    ModeChange,
    /// The configuration is reloaded.
    Reload,
}
