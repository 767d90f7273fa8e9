//! Background tasks as a descriptor declares them: when they start, when they are started again, how they end.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The longest time that a task may take to end, in seconds.
pub const MAX_STOP_TIMEOUT: u64 = 30;

/// What the host does when a task ends by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Nothing.
    #[default]
    Never,
    /// Starts it again when it failed, after a while that doubles each time.
    OnFailure,
}

/// When the host starts a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskStart {
    /// As soon as the feature is in force.
    #[default]
    WithFeature,
    /// When the feature or a person says so.
    OnDemand,
}

/// A background task that the feature contributes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskDeclaration {
    /// Its name: letters, digits, `-` and `_`.
    pub name: String,
    /// What it does, in a sentence.
    pub summary: String,
    /// When it is started.
    #[serde(default)]
    pub start: TaskStart,
    /// What happens when it ends by itself.
    #[serde(default)]
    pub restart: Restart,
    /// Seconds that it may go on when it should end, 1 to [`MAX_STOP_TIMEOUT`]; then it is stopped. Default: 2.
    #[serde(default = "default_stop_timeout")]
    pub stop_timeout_seconds: u64,
    /// Keys of the capabilities without which it is left out, such as `store` or `files:notes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
}

const fn default_stop_timeout() -> u64 {
    2
}

impl TaskDeclaration {
    /// How long it may go on when it should end.
    pub const fn stop_timeout(&self) -> Duration {
        Duration::from_secs(self.stop_timeout_seconds)
    }
}
