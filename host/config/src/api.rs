//! The settings of the API beyond the Unix socket, and of what agents may do over MCP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The API over HTTP, on this computer only. Read when the host starts. No plan changes this.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Api {
    /// The TCP port on 127.0.0.1, 0 to 65535; 0 takes one that is free. Default: none, and the API is only on the
    /// Unix socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_port: Option<u16>,
}

/// What agents may bring about over MCP. No plan changes this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Mcp {
    /// Whether agents may work here at all. Default: true.
    pub enabled: bool,

    /// What the user of an agent may agree to in the agent's own window, when the agent's program can ask.
    pub elicitation: Elicitation,

    /// Which tools an agent's list holds from the start. What may be called is under `[tools]`.
    pub tools: ToolList,
}

impl Default for Mcp {
    fn default() -> Self {
        Self { enabled: true, elicitation: Elicitation::default(), tools: ToolList::default() }
    }
}

/// Which tools are listed from the start. Default: `groups`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolList {
    /// Those to look and to map. The others form groups, one for each feature, which an agent opens with
    /// `conductor_open_tools`; so the list stays short with any number of features.
    #[default]
    Groups,
    /// All of them, for agents whose program reads the list only once.
    All,
}

/// What may be agreed to over MCP. The program that the agent runs in passes on the question and the answer: allow
/// it only where that program shows both to a person. Default: `off`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Elicitation {
    /// Nothing: plans wait for `conductor plan apply`, and tools that send to devices for `conductor tool call`.
    #[default]
    Off,
    /// Plans that start no programs.
    Plans,
    /// All plans, and single calls of tools that send to devices.
    All,
}
