//! Doors: a command of the program and a route of the API that lead to a tool.
//!
//! Both are named under the name that the person gave the feature, so that no feature can take the name of another one,
//! of a command or of a route. They let in who may call the tool, and nothing more.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Options of every contributed command, which no argument takes.
pub const RESERVED_OPTIONS: [&str; 7] = ["args", "config", "confirm", "help", "home", "json", "version"];

/// The longest name of a command, a route or an option, in bytes.
pub const MAX_DOOR_NAME: usize = 40;

/// Options and defaults that a command may have, each.
pub const MAX_OPTIONS: usize = 32;

/// What leads to a tool beside its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doors {
    /// `conductor FEATURE NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandDeclaration>,
    /// `POST /v1/FEATURE/NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<RouteDeclaration>,
}

/// A command of the program. Each argument of the tool is an option of the same name, with `-` for `_`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandDeclaration {
    /// Its name: a letter, then a-z, 0-9 and `-`.
    pub name: String,
    /// The argument that words without an option are for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operand: Option<String>,
    /// Other names of options, with the argument of each: `rubric = "rubric_focus"` is `--rubric`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// The arguments that the command passes unless the command line says otherwise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub defaults: BTreeMap<String, Value>,
    /// The field of the result that is the exit code, 0 to 99. Without a result, such a command exits with 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<String>,
    /// The fields of the result that are printed, in this order; all if it is empty. `--json` prints the whole result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shows: Vec<String>,
}

/// A route of the API: its body is the tool's arguments, and its answer the tool's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteDeclaration {
    /// Its name: a letter, then a-z, 0-9 and `-`.
    pub name: String,
    /// The field of the result that is the answer's status, 200 to 599; 200 if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// Whether a command, a route or an option may have this name.
pub fn is_door_name(name: &str) -> bool {
    name.len() <= MAX_DOOR_NAME
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

#[cfg(test)]
mod tests {
    use crate::descriptor::Descriptor;

    fn tried(tools: &str) -> Result<(), String> {
        let text = format!("id = 'project:x'\nname = 'X'\nversion = '1'\ncontract = '0.1'\n{tools}");
        Descriptor::parse(text.as_bytes()).map(drop).map_err(|error| error.to_string())
    }

    fn tool(name: &str, tier: &str, doors: &str) -> String {
        format!("[[tools]]\nname = '{name}'\ntier = '{tier}'\nsummary = ''\n{doors}\n")
    }

    #[test]
    fn doors_have_names_of_their_own() {
        let good =
            "command = { name = 'look', operand = 'path', options = { deep = 'depth' } }\nroute = { name = 'look' }";
        assert_eq!(tried(&tool("a", "read-only", good)), Ok(()));
        for (doors, why) in [
            ("command = { name = 'Look' }", "no name"),
            ("command = { name = '--json' }", "no name"),
            ("command = { name = 'look', options = { json = 'x' } }", "every command has its own"),
            ("command = { name = 'look', options = { 'a b' = 'x' } }", "no name"),
            ("command = { name = 'look', exits = 'x' }", "unknown field"),
            ("route = { name = 'a/b' }", "no name"),
        ] {
            let error = tried(&tool("a", "read-only", doors)).unwrap_err();
            assert!(error.contains(why), "{doors}: {error}");
        }
        for doors in ["command = { name = 'look' }", "route = { name = 'look' }"] {
            let twice = tool("a", "read-only", doors) + &tool("b", "read-only", doors);
            assert!(tried(&twice).unwrap_err().contains("declared twice"), "{doors}");
        }
    }

    #[test]
    fn what_asks_a_person_has_no_route() {
        for tier in ["config-change", "hardware-io", "privileged"] {
            assert_eq!(tried(&tool("a", tier, "command = { name = 'look' }")), Ok(()), "{tier}");
            assert!(tried(&tool("a", tier, "route = { name = 'look' }")).unwrap_err().contains(tier), "{tier}");
        }
        assert_eq!(tried(&tool("a", "stateful", "route = { name = 'look' }")), Ok(()));
    }
}
