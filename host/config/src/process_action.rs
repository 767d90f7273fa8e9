//! Actions that start programs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Starts a program and leaves it to itself: it goes on when Conductor ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// The program: a path, or a name that is looked for as a shell would. On macOS the name of an
    /// application will do, too.
    #[schemars(length(min = 1))]
    pub app: String,

    /// What it is given. In each, expressions in braces stand for numbers of the event: `{n}`, `{value -> 0..100 %}`.
    /// Default: nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,

    /// The folder that it starts in. Default: Conductor's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub working_dir: Option<String>,

    /// What is added to Conductor's environment for it. Default: nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// Runs a command to its end, which counts: it fails where the command does.
///
/// The command finds the event in its environment: `CONDUCTOR_DEVICE`, `CONDUCTOR_VALUE`,
/// `CONDUCTOR_NOTE`, `CONDUCTOR_CHANNEL` and `CONDUCTOR_N`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shell {
    /// The program: a path, or a name that is looked for as a shell would. With `shell = true` a command
    /// line.
    #[schemars(length(min = 1))]
    pub command: String,

    /// What it is given. In each, expressions in braces stand for numbers of the event: `{n}`, `{value -> 0..100 %}`.
    /// Default: nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,

    /// Whether `command` is given to the system's shell (`sh -c`, on Windows `cmd /C`), which understands
    /// pipes and variables; `args` are then the shell's `$1`, `$2` and so on. Default: false.
    #[serde(default)]
    pub shell: bool,

    /// The folder that it runs in. Default: Conductor's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub working_dir: Option<String>,

    /// What is added to Conductor's environment for it. Default: nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,

    /// How long it may take, in milliseconds, 1 to 3600000; then it is killed with everything that it
    /// started. Default: 10000.
    #[serde(default = "ten_seconds")]
    #[schemars(range(min = 1, max = 3_600_000))]
    pub timeout_ms: u32,
}

fn ten_seconds() -> u32 {
    10_000
}
