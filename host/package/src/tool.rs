//! Tools as a descriptor declares them: how much each can do, how long a call may take, and what leads to it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::doors::{
    CommandDeclaration, Doors, MAX_DOOR_NAME, MAX_OPTIONS, RESERVED_OPTIONS, RouteDeclaration, is_door_name,
};

/// How much a tool can do; see the contract's tool interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// Looks and answers.
    ReadOnly,
    /// Changes what holds until the host stops.
    Stateful,
    /// Proposes changes to the configuration.
    ConfigChange,
    /// Sends to devices.
    HardwareIo,
    /// Does what a person confirms each time, and proposes what a person confirms twice.
    Privileged,
}

impl Tier {
    /// Every tier.
    pub const ALL: [Self; 5] = [Self::ReadOnly, Self::Stateful, Self::ConfigChange, Self::HardwareIo, Self::Privileged];

    /// As descriptors write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Stateful => "stateful",
            Self::ConfigChange => "config-change",
            Self::HardwareIo => "hardware-io",
            Self::Privileged => "privileged",
        }
    }

    /// Whether a person has to agree to every single call.
    pub const fn is_confirmed(self) -> bool {
        matches!(self, Self::HardwareIo | Self::Privileged)
    }
}

/// A tool that the feature contributes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolDeclaration {
    /// The name that models call: a letter, then letters, digits and `_`.
    pub name: String,
    /// How much it can do.
    pub tier: Tier,
    /// Whether a tool of the tier `privileged` does nothing itself: a person agrees to the plans that it proposes, and
    /// not to each call before. The host then lets it perform nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proposes: bool,
    /// Seconds that a call may take, whatever it waits for, 1 to [`MAX_CALL_TIMEOUT`].
    #[serde(default = "call_timeout", skip_serializing_if = "is_call_timeout")]
    pub timeout_seconds: u64,
    /// What it does, for the model that chooses among tools.
    pub summary: String,
    /// Keys of the capabilities without which it is left out, such as `store` or `files:notes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// A command of the program that calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandDeclaration>,
    /// A route of the API that calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<RouteDeclaration>,
}

/// Seconds that a call of a tool may take whose declaration does not say.
pub const CALL_TIMEOUT: u64 = 60;
/// Seconds that a call of a tool may take at most.
pub const MAX_CALL_TIMEOUT: u64 = 300;

const fn call_timeout() -> u64 {
    CALL_TIMEOUT
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_call_timeout(seconds: &u64) -> bool {
    *seconds == CALL_TIMEOUT
}

impl ToolDeclaration {
    /// How long a call may take, whatever it waits for.
    pub const fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds)
    }

    /// What leads to it beside its name.
    pub fn doors(&self) -> Doors {
        Doors { command: self.command.clone(), route: self.route.clone() }
    }
}

/// Finds what is wrong with the doors of a feature's tools.
pub(crate) fn validate_doors(tools: &[ToolDeclaration]) -> Result<(), String> {
    let rule = format!("a lower-case letter, then a-z, 0-9 and -, at most {MAX_DOOR_NAME}");
    let (mut commands, mut routes) = (Vec::new(), Vec::new());
    for tool in tools {
        let of = &tool.name;
        if let Some(command) = &tool.command {
            let CommandDeclaration { name, options, defaults, .. } = command;
            if !is_door_name(name) {
                return Err(format!("the command {name:?} of the tool {of} is no name: {rule}"));
            }
            if commands.contains(&name) {
                return Err(format!("the command {name:?} is declared twice"));
            }
            if options.len() > MAX_OPTIONS || defaults.len() > MAX_OPTIONS {
                return Err(format!("the command {name:?} has more than {MAX_OPTIONS} options or defaults"));
            }
            if let Some(option) = options.keys().find(|option| !is_door_name(option)) {
                return Err(format!("the option {option:?} of the command {name} is no name: {rule}"));
            }
            if let Some(option) = options.keys().find(|option| RESERVED_OPTIONS.contains(&option.as_str())) {
                return Err(format!("the command {name} can't have the option {option}: every command has its own"));
            }
            commands.push(name);
        }
        if let Some(RouteDeclaration { name, .. }) = &tool.route {
            if !is_door_name(name) {
                return Err(format!("the route {name:?} of the tool {of} is no name: {rule}"));
            }
            if routes.contains(&name) {
                return Err(format!("the route {name:?} is declared twice"));
            }
            // Its answer is the result alone: there is no place in it for a question to a person, or for plans.
            if !matches!(tool.tier, Tier::ReadOnly | Tier::Stateful) {
                return Err(format!(
                    "the tool {of} has a route; only tools of the tiers read-only and stateful can, and it is {}",
                    tool.tier.as_str()
                ));
            }
            routes.push(name);
        }
    }
    Ok(())
}
