//! What an instance registered in its `install`, held against what the descriptor declares.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits;
use crate::outcome::InstallError;
use conductor_package::descriptor::{Descriptor, Doors, HookPoint, Skipped, Tier};
use conductor_schema::{ResultSchema, SchemaText, bounds, references};
use conductor_terminal::excerpt;

/// An action that an instance has registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredAction {
    /// Its name.
    pub name: String,
    /// JSON Schema of its parameters.
    pub schema: String,
}

/// A tool that an instance has registered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegisteredTool {
    /// Its name.
    pub name: String,
    /// How much it can do, as declared.
    pub tier: Tier,
    /// Whether it only proposes, as declared, although its tier may do more.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub proposes: bool,
    /// What it does, as declared.
    pub summary: String,
    /// JSON Schema of its arguments.
    pub input: SchemaText,
    /// JSON Schema of its result.
    pub output: Option<SchemaText>,
    /// The command and the route that lead to it, as declared.
    #[serde(flatten, default)]
    pub doors: Doors,
    /// How long a call may take, as declared.
    #[serde(skip)]
    pub timeout: Duration,
}

/// The coarse order of hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Band {
    /// First.
    Early,
    /// In between.
    Normal,
    /// Last.
    Late,
}

/// A skill that an instance has registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredSkill {
    /// Its name.
    pub name: String,
    /// Its SKILL.md.
    pub text: String,
}

/// Everything that an instance has registered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Registrations {
    /// Actions.
    pub actions: Vec<RegisteredAction>,
    /// Tools.
    pub tools: Vec<RegisteredTool>,
    /// Hooks.
    pub hooks: Vec<(HookPoint, Band)>,
    /// Background tasks.
    pub tasks: Vec<String>,
    /// Providers.
    pub providers: Vec<String>,
    /// Skills.
    pub skills: Vec<RegisteredSkill>,
    /// What results are checked against, by the tool's name.
    pub(super) results: HashMap<String, Arc<ResultSchema>>,
    /// What may be registered, and is left out.
    skipped: Vec<Skipped>,
    /// Bytes of schemas and skills so far.
    text: usize,
}

impl Registrations {
    /// None so far; these are taken and left out.
    pub(super) fn without(skipped: &[Skipped]) -> Self {
        Self { skipped: skipped.to_vec(), ..Self::default() }
    }

    /// The same without what results are checked against, which instances have.
    pub(super) fn without_checks(&self) -> Self {
        Self { results: HashMap::new(), ..self.clone() }
    }

    fn skips(&self, kind: &str, name: &str) -> bool {
        self.skipped.iter().any(|skipped| skipped.is(kind, name))
    }

    /// Counts a text that is kept.
    fn keep(&mut self, text: &str) -> Result<(), String> {
        self.text += text.len();
        if self.text > limits::MAX_REGISTERED {
            return Err(format!("its schemas and skills have more than {} bytes together", limits::MAX_REGISTERED));
        }
        Ok(())
    }

    pub(crate) fn action(&mut self, declared: &Descriptor, name: String, schema: &str) -> Result<(), String> {
        if self.skips("action", &name) {
            return Ok(());
        }
        once("actions", &name, declared.actions.iter().map(|action| &action.name), |name| {
            self.actions.iter().any(|action| action.name == name)
        })?;
        parse_schema(&name, schema)?;
        self.keep(schema)?;
        self.actions.push(RegisteredAction { name, schema: schema.to_owned() });
        Ok(())
    }

    pub(crate) fn tool(
        &mut self,
        declared: &Descriptor,
        name: String,
        input: &str,
        output: Option<&str>,
    ) -> Result<(), String> {
        if self.skips("tool", &name) {
            return Ok(());
        }
        once("tools", &name, declared.tools.iter().map(|tool| &tool.name), |name| {
            self.tools.iter().any(|tool| tool.name == name)
        })?;
        self.keep(input)?;
        self.keep(output.unwrap_or_default())?;
        let input = parse_schema(&name, input)?;
        let output = output.map(|output| parse_schema(&name, output)).transpose()?;
        if let Some(schema) = &output {
            let compiled =
                ResultSchema::compile(schema).map_err(|why| format!("the output schema of {name}: {why}"))?;
            self.results.insert(name.clone(), Arc::new(compiled));
        }
        let Some(tool) = declared.tools.iter().find(|tool| tool.name == name) else { return Ok(()) };
        let (tier, proposes, summary, timeout) = (tool.tier, tool.proposes, tool.summary.clone(), tool.timeout());
        let (input, output) = (SchemaText::new(&input), output.as_ref().map(SchemaText::new));
        self.tools.push(RegisteredTool { name, tier, proposes, summary, input, output, doors: tool.doors(), timeout });
        Ok(())
    }

    pub(crate) fn hook(&mut self, declared: &Descriptor, point: HookPoint, band: Band) -> Result<(), String> {
        if self.skips("hook", point.as_str()) {
            return Ok(());
        }
        let points: Vec<String> = declared.hooks.iter().map(|hook| hook.point.as_str().to_owned()).collect();
        once("hooks", point.as_str(), points.iter(), |_| self.hooks.iter().any(|(other, _)| *other == point))?;
        self.hooks.push((point, band));
        Ok(())
    }

    pub(crate) fn task(&mut self, declared: &Descriptor, name: String) -> Result<(), String> {
        if self.skips("task", &name) {
            return Ok(());
        }
        once("tasks", &name, declared.tasks.iter().map(|task| &task.name), |name| {
            self.tasks.iter().any(|task| task == name)
        })?;
        self.tasks.push(name);
        Ok(())
    }

    pub(crate) fn provider(&mut self, declared: &Descriptor, name: String) -> Result<(), String> {
        if self.skips("provider", &name) {
            return Ok(());
        }
        once("providers", &name, declared.providers.iter().map(|provider| &provider.name), |name| {
            self.providers.iter().any(|provider| provider == name)
        })?;
        self.providers.push(name);
        Ok(())
    }

    pub(crate) fn skill(&mut self, declared: &Descriptor, name: String, text: String) -> Result<(), String> {
        if self.skips("skill", &name) {
            return Ok(());
        }
        once("skills", &name, declared.skills.iter().map(|skill| &skill.name), |name| {
            self.skills.iter().any(|skill| skill.name == name)
        })?;
        if text.len() > limits::MAX_SKILL {
            return Err(format!("the skill {name} has {} bytes; at most {} are taken", text.len(), limits::MAX_SKILL));
        }
        self.keep(&text)?;
        self.skills.push(RegisteredSkill { name, text });
        Ok(())
    }

    /// Whether everything that the descriptor declares was registered.
    pub(super) fn all_there(&self, declared: &Descriptor) -> Result<(), InstallError> {
        let missing = |kind: &str, name: &str| Err(InstallError::NotRegistered(format!("the {kind} {name}")));
        if let Some(action) = declared.actions.iter().find(|d| !self.actions.iter().any(|r| r.name == d.name)) {
            return missing("action", &action.name);
        }
        if let Some(tool) = declared.tools.iter().find(|d| !self.tools.iter().any(|r| r.name == d.name)) {
            return missing("tool", &tool.name);
        }
        if let Some(hook) = declared.hooks.iter().find(|d| !self.hooks.iter().any(|(r, _)| *r == d.point)) {
            return missing("hook", hook.point.as_str());
        }
        if let Some(task) = declared.tasks.iter().find(|d| !self.tasks.contains(&d.name)) {
            return missing("task", &task.name);
        }
        if let Some(provider) = declared.providers.iter().find(|d| !self.providers.contains(&d.name)) {
            return missing("provider", &provider.name);
        }
        if let Some(skill) = declared.skills.iter().find(|d| !self.skills.iter().any(|r| r.name == d.name)) {
            return missing("skill", &skill.name);
        }
        Ok(())
    }
}

/// Refuses names that the descriptor does not declare, and names that are there already.
fn once<'a>(
    section: &str,
    name: &str,
    mut declared: impl Iterator<Item = &'a String> + Clone,
    registered: impl Fn(&str) -> bool,
) -> Result<(), String> {
    if !declared.clone().any(|declared| declared == name) {
        let names: Vec<&str> = declared.by_ref().map(String::as_str).collect();
        return Err(format!(
            "{:?} is not declared under [[{section}]] in the descriptor, which has {}",
            excerpt(name, 64),
            names.join(", ")
        ));
    }
    if registered(name) { Err(format!("{name} is registered already")) } else { Ok(()) }
}

fn parse_schema(name: &str, schema: &str) -> Result<Value, String> {
    if schema.len() > limits::MAX_SCHEMA {
        return Err(format!(
            "the schema of {name} has {} bytes; at most {} are taken",
            schema.len(),
            limits::MAX_SCHEMA
        ));
    }
    match serde_json::from_str::<Value>(schema) {
        Ok(value) if value.is_object() => {
            bounds::check(&value)
                .and_then(|()| references::check(&value))
                .map_err(|why| format!("the schema of {name} {why}"))?;
            Ok(value)
        }
        Ok(_) => Err(format!("the schema of {name} is not a JSON object")),
        Err(error) => Err(format!("the schema of {name} is not JSON: {error}")),
    }
}
