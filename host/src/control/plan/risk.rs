//! What a person should know before a plan is applied: what it can reach beyond the show.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PlanError;
use crate::config::edit::Change;

/// How far a plan reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Which control does what.
    Usual,
    /// It removes something, or changes which ports are used.
    Raised,
    /// It makes the host start programs, or a privileged tool proposes it.
    Privileged,
}

/// How far a plan reaches, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Risk {
    /// The farthest that it reaches.
    pub level: Level,
    /// What to look at, a sentence each.
    pub notes: Vec<String>,
}

/// The actions that start programs.
const PROGRAMS: [&str; 2] = ["Shell", "Launch"];

/// What there is to know about changes of the configuration `before`, a table.
///
/// # Errors
/// [`PlanError::Denied`] for changes of what a feature may use, of which tools may be called, and of who may ask the
/// host: a person decides that, never a plan.
pub fn assess(changes: &[Change], before: &Value) -> Result<Risk, PlanError> {
    let mut risk = Risk { level: Level::Usual, notes: Vec::new() };
    for change in changes {
        if grants(change) {
            return Err(PlanError::Denied(format!(
                "{} is what a feature may use: a person grants that, with `conductor feature grant`",
                change.path.join("/")
            )));
        }
        if change.path.first().is_some_and(|first| first == "tools") {
            return Err(PlanError::Denied(format!(
                "{} says which tools may be called, and how often: a person writes that into the file",
                change.path.join("/")
            )));
        }
        if change.path.first().is_some_and(|first| first == "api" || first == "mcp") {
            return Err(PlanError::Denied(format!(
                "{} says who may ask this host, and for what: a person writes that into the file",
                change.path.join("/")
            )));
        }
        let place = change.path.join("/");
        let old = change.path.iter().try_fold(before, |at, step| match at {
            Value::Array(list) => list.get(step.parse::<usize>().ok()?),
            other => other.get(step),
        });
        if let (None, Some(old)) = (&change.value, old) {
            risk.raise(Level::Raised, format!("removes {place}{}", inside(old)));
        }
        for program in programs(change.value.as_ref(), change.path.last().map(String::as_str)) {
            risk.raise(Level::Privileged, format!("{place} starts programs on this computer ({program})"));
        }
        if matches!(change.path[..], [ref first, ..] if first == "bindings" || first == "devices" || first == "osc") {
            risk.raise(Level::Raised, format!("{place} changes which ports are used"));
        }
    }
    Ok(risk)
}

impl Risk {
    pub(super) fn raise(&mut self, level: Level, note: String) {
        self.level = self.level.max(level);
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// Whether it touches what a feature may use.
fn grants(change: &Change) -> bool {
    let [first, rest @ ..] = &change.path[..] else { return false };
    let said = |value: &Value| mentions(value, "grants");
    first == "features" && (rest.iter().any(|step| step == "grants") || change.value.as_ref().is_some_and(said))
}

/// Whether a key of this name is anywhere in it.
fn mentions(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(object) => object.contains_key(key) || object.values().any(|inner| mentions(inner, key)),
        Value::Array(list) => list.iter().any(|inner| mentions(inner, key)),
        _ => false,
    }
}

/// The actions in it that start programs; `key` is what the value is for.
fn programs<'a>(value: Option<&'a Value>, key: Option<&str>) -> Vec<&'a str> {
    match value {
        Some(Value::String(text)) if key == Some("type") => {
            // They may be written in lower case, too.
            PROGRAMS.iter().filter(|name| name.eq_ignore_ascii_case(text)).copied().collect()
        }
        Some(Value::Object(object)) => {
            object.iter().flat_map(|(key, inner)| programs(Some(inner), Some(key))).collect()
        }
        Some(Value::Array(list)) => list.iter().flat_map(|inner| programs(Some(inner), None)).collect(),
        _ => Vec::new(),
    }
}

/// What goes with something that is removed.
fn inside(old: &Value) -> String {
    let count = |key: &str| old.get(key).and_then(Value::as_array).map_or(0, Vec::len);
    let name = ["name", "alias", "description"].iter().find_map(|key| old.get(key)?.as_str());
    let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
    match count("mappings") {
        0 => name,
        1 => format!("{name} with 1 mapping"),
        mappings => format!("{name} with {mappings} mappings"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn change(path: &str, value: impl Into<Option<Value>>) -> Change {
        Change { path: path.split('/').map(str::to_owned).collect(), value: value.into() }
    }

    fn assessed(change: Change) -> Risk {
        let before = json!({ "modes": [{ "name": "Play", "mappings": [{}, {}] }] });
        assess(&[change], &before).expect("no grants")
    }

    #[test]
    fn what_is_removed_is_named_with_what_goes_with_it() {
        let risk = assessed(change("modes/0", None));
        assert_eq!(risk, Risk { level: Level::Raised, notes: vec!["removes modes/0 (Play) with 2 mappings".into()] });
    }

    #[test]
    fn programs_are_found_however_deep_they_are() {
        let sequence = json!({ "type": "Sequence", "actions": [{ "type": "Shell", "command": "x" }] });
        for hidden in [
            change("modes/0/mappings/0", json!({ "action": sequence })),
            change("modes/0/mappings/0/action/type", json!("Launch")),
            change("modes/0/mappings/0/action/else", json!({ "type": "shell", "command": "x" })),
            change(
                "modes/0/mappings/0",
                json!({ "action": { "type": "conditional", "then_action": { "type": "launch" } } }),
            ),
        ] {
            assert_eq!(assessed(hidden).level, Level::Privileged);
        }
        let text = change("modes/0/mappings/0/action", json!({ "type": "Text", "text": "Shell" }));
        assert_eq!(assessed(text).level, Level::Usual);
    }

    #[test]
    fn no_plan_grants_anything_or_opens_the_gate() {
        for change in [
            change("features/osc-output/grants/udp", json!(["*:*"])),
            change("features/osc-output", json!({ "grants": {} })),
            change("features", json!({ "x": { "grants": {} } })),
            change("features/x/grants", None),
            change("tools/allowed", json!(["*"])),
            change("tools", None),
            change("api/http_port", json!(0)),
            change("api", None),
            change("mcp", json!({ "elicitation": "all" })),
        ] {
            assert!(matches!(assess(&[change], &json!({})), Err(PlanError::Denied(_))));
        }
    }
}
