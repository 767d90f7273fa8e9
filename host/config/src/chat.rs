//! The settings of conversations with models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which models conversations ask, and how far a turn may go. No plan changes this.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Chat {
    /// The models by their names under `[models]`, in the order in which they are asked: the next one where one gives no
    /// answer. Default: all of them, in the order of their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 128)))]
    pub models: Vec<String>,

    /// Questions to models in one turn, 1 to 200. Default: 25.
    #[schemars(range(min = 1, max = 200))]
    pub steps: u32,

    /// Seconds that a turn may take, 10 to 7200; while it waits for a person none go by. Default: 900.
    #[schemars(range(min = 10, max = 7200))]
    pub seconds: u32,

    /// Tokens that the questions and answers of one turn may have together, 1000 to 100000000. Default: 1000000.
    #[schemars(range(min = 1000, max = 100_000_000))]
    pub tokens_per_turn: u64,

    /// Tokens that all turns of one day (UTC) may have together, 1000 to 10000000000. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1000, max = 10_000_000_000u64))]
    pub tokens_per_day: Option<u64>,

    /// What one turn may cost in US dollars, 0 to 100000. With a limit only models are asked whose prices are known.
    /// Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000))]
    pub dollars_per_turn: Option<f64>,

    /// What all turns of one day (UTC) may cost in US dollars, 0 to 100000. With a limit only models are asked whose
    /// prices are known. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000))]
    pub dollars_per_day: Option<f64>,
}

impl Default for Chat {
    fn default() -> Self {
        Self {
            models: Vec::new(),
            steps: 25,
            seconds: 900,
            tokens_per_turn: 1_000_000,
            tokens_per_day: None,
            dollars_per_turn: None,
            dollars_per_day: None,
        }
    }
}
