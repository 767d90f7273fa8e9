//! The descriptor: what a feature says about itself, as its author wrote it in `feature.toml`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::capability::{Capability, CapabilityKind, CapabilityRequest};
pub use crate::contributions::{SkipReason, Skipped};
pub use crate::doors::{CommandDeclaration, Doors, RESERVED_OPTIONS, RouteDeclaration, is_door_name};
pub use crate::id::FeatureId;
pub use crate::provider::{MAX_MODELS, ModelDeclaration, Price, Prices, ProviderDeclaration, Tokens};
pub use crate::task::{MAX_STOP_TIMEOUT, Restart, TaskDeclaration, TaskStart};
pub use crate::tool::{CALL_TIMEOUT, MAX_CALL_TIMEOUT, Tier, ToolDeclaration};
use crate::{Contributions, Grants, tool};
use conductor_terminal::{MAX_TEXT, excerpt, is_hidden};

/// The version of the contract that this host serves.
pub const CONTRACT: &str = "0.1";

/// Name of the custom section that carries the descriptor.
pub const SECTION: &str = "conductor:feature";

/// The largest descriptor that is read, in bytes.
pub const MAX_DESCRIPTOR: usize = 64 * 1024;

/// Contributions of one kind that a descriptor may declare.
pub const MAX_DECLARATIONS: usize = 128;

/// Capabilities that a descriptor may request.
pub const MAX_CAPABILITIES: usize = 32;

/// Targets that one capability may name: hosts, bindings, models.
pub const MAX_TARGETS: usize = 64;

/// The longest target, in bytes: the longest name of a host, with a port.
pub const MAX_TARGET: usize = 260;

/// The longest reason, licence or summary of a feature, in bytes. A person reads them whole.
pub const MAX_SENTENCE: usize = 500;

/// Background tasks that a descriptor may declare: each takes one of the lane's instances for as
/// long as it runs.
pub const MAX_TASKS: usize = 8;

/// Names of tools that one hook may have.
const MAX_HOOKED_TOOLS: usize = 64;

/// The keys of capabilities of which one is enough.
fn either(need: &str) -> impl Iterator<Item = &str> {
    need.split(" or ")
}

/// An action that the feature contributes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionDeclaration {
    /// The name that mappings write under `type`: a letter, then letters and digits.
    pub name: String,
    /// What it does, in a sentence.
    pub summary: String,
    /// Keys of the capabilities without which it is left out, such as `store` or `files:notes`; `alert or notify` where
    /// either is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
}

/// A hook point of the feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookPoint {
    /// Before a tool runs.
    PreToolCall,
    /// After it ran.
    PostToolCall,
    /// Events, in batches.
    Events,
    /// Ports came or went.
    PortChange,
    /// Another mode is in force.
    ModeChange,
    /// Another configuration is in force.
    ConfigApplied,
    /// Before a model is asked.
    PreRequest,
    /// After it answered.
    PostAssistant,
    /// After all that one thing that somebody said has led to.
    TurnEnd,
}

impl HookPoint {
    /// As descriptors write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PreToolCall => "pre-tool-call",
            Self::PostToolCall => "post-tool-call",
            Self::Events => "events",
            Self::PortChange => "port-change",
            Self::ModeChange => "mode-change",
            Self::ConfigApplied => "config-applied",
            Self::PreRequest => "pre-request",
            Self::PostAssistant => "post-assistant",
            Self::TurnEnd => "turn-end",
        }
    }

    /// Whether it concerns requests to models: such hooks have a registrar of their own.
    pub const fn is_chat(self) -> bool {
        matches!(self, Self::PreRequest | Self::PostAssistant | Self::TurnEnd)
    }
}

/// A hook that the feature contributes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookDeclaration {
    /// Where.
    pub point: HookPoint,
    /// What it does there, in a sentence.
    pub summary: String,
    /// The tools whose calls it sees, by name; one that ends in `*` stands for all names that begin so. Empty for all
    /// tools. Hooks around tool calls only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Keys of the capabilities without which it is left out, such as `store` or `files:notes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
}

impl HookDeclaration {
    /// Whether it sees calls of this tool.
    pub fn sees(&self, tool: &str) -> bool {
        let is_tool = |name: &String| match name.strip_suffix('*') {
            Some(beginning) => tool.starts_with(beginning),
            None => tool == name,
        };
        self.tools.is_empty() || self.tools.iter().any(is_tool)
    }

    fn check(&self) -> Result<(), String> {
        let point = self.point.as_str();
        if !self.tools.is_empty() && !matches!(self.point, HookPoint::PreToolCall | HookPoint::PostToolCall) {
            return Err(format!(
                "the hook {point} has `tools`; only pre-tool-call and post-tool-call see calls of tools"
            ));
        }
        if self.tools.len() > MAX_HOOKED_TOOLS {
            let count = self.tools.len();
            return Err(format!("the hook {point} names {count} tools; at most {MAX_HOOKED_TOOLS} are allowed"));
        }
        let is_wrong = |name: &&String| name.is_empty() || name.strip_suffix('*').unwrap_or(name).contains('*');
        match self.tools.iter().find(is_wrong) {
            Some(name) => Err(format!(
                "the hook {point} names the tool {name:?}; a name is allowed, and one that ends in `*` for all that begin so"
            )),
            None => Ok(()),
        }
    }
}

/// A skill that the feature contributes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillDeclaration {
    /// Its name: lower-case letters, digits and `-`.
    pub name: String,
    /// When it is of use, in a sentence.
    pub summary: String,
    /// Keys of the capabilities without which it is left out, such as `store` or `files:notes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
}

/// The feature's own data, in its store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreDeclaration {
    /// The version of the data that the package works with, from 1. Data of a lower one is migrated when the package
    /// first starts; see the contract's `migration`.
    pub version: u32,
}

/// What a feature says about itself. Nothing in it is believed: [`crate::check`] compares it with
/// the component's type, and grants cut down what it asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Descriptor {
    /// Who it is.
    pub id: FeatureId,
    /// What listings call it.
    pub name: String,
    /// The feature's own version.
    pub version: String,
    /// SPDX expression.
    #[serde(default)]
    pub license: Option<String>,
    /// What it is for, in a sentence.
    #[serde(default)]
    pub summary: Option<String>,
    /// The version of the contract that it was written for, such as `0.1`.
    pub contract: String,
    /// Whether its instance in the control lane hands its state over to the one that replaces it while the host runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub state_handover: bool,
    /// Whether its tools and hooks find nothing in memory that an earlier call left there: the host then makes its calls
    /// side by side, each in an instance that no other call is in, and drops instances that idle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stateless: bool,
    /// What it asks to use.
    #[serde(default)]
    pub capabilities: Vec<CapabilityRequest>,
    /// Its data; the default is version 1. For those that request the capability `store`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreDeclaration>,
    /// The actions that it contributes.
    #[serde(default)]
    pub actions: Vec<ActionDeclaration>,
    /// The tools that it contributes.
    #[serde(default)]
    pub tools: Vec<ToolDeclaration>,
    /// The hooks that it contributes.
    #[serde(default)]
    pub hooks: Vec<HookDeclaration>,
    /// The background tasks that it contributes.
    #[serde(default)]
    pub tasks: Vec<TaskDeclaration>,
    /// The providers that it contributes.
    #[serde(default)]
    pub providers: Vec<ProviderDeclaration>,
    /// The skills that it contributes.
    #[serde(default)]
    pub skills: Vec<SkillDeclaration>,
}

/// Why a descriptor was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorError {
    /// It is not UTF-8.
    #[error("the descriptor is not UTF-8 text")]
    NotText,
    /// It is longer than [`MAX_DESCRIPTOR`].
    #[error("the descriptor has {0} bytes; at most {MAX_DESCRIPTOR} are read")]
    TooLong(usize),
    /// It is not TOML, or not of a descriptor's shape.
    #[error("the descriptor is wrong: {0}")]
    Invalid(String),
    /// It was written for another version of the contract.
    #[error("the feature was written for contract {0}; this host serves {CONTRACT}")]
    Contract(String),
}

impl Descriptor {
    /// Reads the text of a `feature.toml`.
    ///
    /// # Errors
    /// See [`DescriptorError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, DescriptorError> {
        if bytes.len() > MAX_DESCRIPTOR {
            return Err(DescriptorError::TooLong(bytes.len()));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| DescriptorError::NotText)?;
        // People read its sentences on terminals before they grant anything.
        let value: toml::Value = toml::from_str(text).map_err(invalid)?;
        if let Some(text) = unprintable(&value) {
            return Err(DescriptorError::Invalid(format!("\"{text}\" holds characters that can't be seen")));
        }
        let descriptor: Self = toml::from_str(text).map_err(invalid)?;
        if descriptor.contract != CONTRACT {
            return Err(DescriptorError::Contract(descriptor.contract));
        }
        descriptor.validate().map_err(DescriptorError::Invalid)?;
        Ok(descriptor)
    }

    fn validate(&self) -> Result<(), String> {
        for (what, text) in [("name", &self.name), ("version", &self.version)] {
            if text.is_empty() || text.len() > 128 || text.chars().any(char::is_control) {
                return Err(format!("`{what}` must be 1 to 128 printable characters"));
            }
        }
        let letters = |c: char| c.is_ascii_alphanumeric();
        names("action", "a letter, then letters and digits", self.actions.iter().map(|action| &action.name), letters)?;
        let rule = "a letter, then letters, digits and _";
        names("tool", rule, self.tools.iter().map(|tool| &tool.name), |c| letters(c) || c == '_')?;
        if let Some(tool) = self.tools.iter().find(|tool| tool.proposes && tool.tier != Tier::Privileged) {
            return Err(format!(
                "the tool {} has `proposes`, which is for tools of the tier privileged only",
                tool.name
            ));
        }
        for ToolDeclaration { name, timeout_seconds: seconds, .. } in &self.tools {
            if !(1..=MAX_CALL_TIMEOUT).contains(seconds) {
                return Err(format!(
                    "the tool {name} has `timeout_seconds = {seconds}`; 1 to {MAX_CALL_TIMEOUT} are allowed"
                ));
            }
        }
        tool::validate_doors(&self.tools)?;
        let rule = "a letter, then letters, digits, - and _";
        names("task", rule, self.tasks.iter().map(|task| &task.name), |c| letters(c) || c == '_' || c == '-')?;
        let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        names("skill", "a letter, then a-z, 0-9 and -", self.skills.iter().map(|skill| &skill.name), lower)?;
        let rule = "a letter, then a-z, 0-9 and -";
        names("provider", rule, self.providers.iter().map(|provider| &provider.name), lower)?;
        for provider @ ProviderDeclaration { name, network, .. } in &self.providers {
            provider.validate_models()?;
            if self.network(network).is_none() {
                return Err(format!(
                    "the provider {name} is sent for by the network purpose {network:?}, which is not requested under \
                     [[capabilities]]"
                ));
            }
        }
        if self.tasks.len() > MAX_TASKS {
            return Err(format!("{} background tasks are declared; at most {MAX_TASKS} are run", self.tasks.len()));
        }
        for TaskDeclaration { name, stop_timeout_seconds: seconds, .. } in &self.tasks {
            if !(1..=MAX_STOP_TIMEOUT).contains(seconds) {
                return Err(format!(
                    "the task {name} has `stop_timeout_seconds = {seconds}`; 1 to {MAX_STOP_TIMEOUT} are allowed"
                ));
            }
        }
        for (index, hook) in self.hooks.iter().enumerate() {
            if self.hooks[..index].iter().any(|other| other.point == hook.point) {
                return Err(format!("the hook {} is declared twice", hook.point.as_str()));
            }
            hook.check()?;
        }
        for (what, text) in [("license", &self.license), ("summary", &self.summary)] {
            if text.as_ref().is_some_and(|text| text.len() > MAX_SENTENCE) {
                return Err(format!("`{what}` has more than {MAX_SENTENCE} bytes"));
            }
        }
        if self.capabilities.len() > MAX_CAPABILITIES {
            let count = self.capabilities.len();
            return Err(format!("{count} capabilities are requested; at most {MAX_CAPABILITIES} can be"));
        }
        let mut seen = Vec::new();
        for request in &self.capabilities {
            let key = request.key();
            showable(request)?;
            if let Capability::Files { path: Some(_), .. } | Capability::GitSnapshot { path: Some(_), .. } =
                request.capability
            {
                return Err(format!("{key} names a folder; which one is for the person who grants it"));
            }
            if matches!(&request.capability, Capability::RunProgram { programs } if !programs.is_empty()) {
                return Err(format!("{key} names a program; which one is for the person who grants it"));
            }
            if seen.contains(&key) {
                return Err(format!("the capability {key} is requested twice"));
            }
            seen.push(key);
        }
        for (kind, name, needs) in self.needs() {
            if let Some(need) =
                needs.iter().flat_map(|need| either(need)).find(|need| !seen.iter().any(|key| key == need))
            {
                return Err(format!(
                    "the {kind} {name} needs {need:?}, which is not requested under [[capabilities]]; requested are {}",
                    seen.join(", ")
                ));
            }
        }
        if self.state_handover && !self.has_control() {
            return Err("`state_handover` is for features with tools, or with hooks other than on events".to_owned());
        }
        if self.stateless && self.state_handover {
            return Err("has `stateless` and `state_handover`; what keeps nothing in memory has nothing to hand over"
                .to_owned());
        }
        match self.store {
            Some(StoreDeclaration { version: 0 }) => {
                return Err("[store] has `version = 0`; versions of data begin with 1".to_owned());
            }
            Some(_) if !self.requests(CapabilityKind::Store) => {
                return Err("has [store], but does not request the capability \"store\"".to_owned());
            }
            _ => {}
        }
        for (declared, kind, what) in [
            (!self.tasks.is_empty(), CapabilityKind::BackgroundTask, "background tasks"),
            (self.hooks_at(HookPoint::Events), CapabilityKind::ObserveEvents, "a hook on events"),
        ] {
            if declared && !self.requests(kind) {
                return Err(format!("declares {what}, but does not request the capability \"{kind}\""));
            }
        }
        Ok(())
    }

    /// What every contribution needs: its kind, its name, the keys of capabilities. Tasks and hooks on events need
    /// those by which they are run, said or not.
    fn needs(&self) -> impl Iterator<Item = (&'static str, &str, Vec<String>)> {
        let with = |needs: &[String], more: Option<String>| needs.iter().cloned().chain(more).collect();
        let actions = self.actions.iter().map(move |it| ("action", it.name.as_str(), with(&it.needs, None)));
        let tools = self.tools.iter().map(move |it| ("tool", it.name.as_str(), with(&it.needs, None)));
        let hooks = self.hooks.iter().map(move |it| {
            let more = (it.point == HookPoint::Events).then(|| CapabilityKind::ObserveEvents.to_string());
            ("hook", it.point.as_str(), with(&it.needs, more))
        });
        let tasks = self.tasks.iter().map(move |it| {
            ("task", it.name.as_str(), with(&it.needs, Some(CapabilityKind::BackgroundTask.to_string())))
        });
        let providers = self.providers.iter().map(move |it| ("provider", it.name.as_str(), with(&it.needs, None)));
        let skills = self.skills.iter().map(move |it| ("skill", it.name.as_str(), with(&it.needs, None)));
        actions.chain(tools).chain(hooks).chain(tasks).chain(providers).chain(skills)
    }

    /// The same without the contributions that a person refused or for which a capability was not granted, and what
    /// those are.
    pub fn granted(&self, grants: &Grants, refused: &Contributions) -> (Self, Vec<Skipped>) {
        let is_granted = |key: &str| {
            self.capabilities.iter().any(|request| request.key() == key && grants.answers(&request.capability))
        };
        let is_denied = |need: &String| !either(need).any(is_granted);
        let skipped: Vec<Skipped> = self
            .needs()
            .filter_map(|(kind, name, needs)| {
                let reason = if refused.has(kind, name) {
                    SkipReason::Refused(self.id.name().to_owned())
                } else {
                    SkipReason::NotGranted(needs.into_iter().find(is_denied)?)
                };
                Some(Skipped { kind, name: name.to_owned(), reason })
            })
            .collect();
        let mut rest = self.clone();
        let stays = |kind: &str, name: &str| !skipped.iter().any(|it| it.is(kind, name));
        rest.actions.retain(|it| stays("action", &it.name));
        rest.tools.retain(|it| stays("tool", &it.name));
        rest.hooks.retain(|it| stays("hook", it.point.as_str()));
        rest.tasks.retain(|it| stays("task", &it.name));
        rest.providers.retain(|it| stays("provider", &it.name));
        rest.skills.retain(|it| stays("skill", &it.name));
        (rest, skipped)
    }

    /// The version of the data that it works with.
    pub fn data_version(&self) -> u32 {
        self.store.as_ref().map_or(1, |store| store.version)
    }

    /// The network request with this purpose.
    pub fn network(&self, purpose: &str) -> Option<&CapabilityRequest> {
        self.capabilities
            .iter()
            .find(|request| matches!(&request.capability, Capability::Network { purpose: p, .. } if p == purpose))
    }

    /// The first request of this kind.
    pub fn request(&self, kind: CapabilityKind) -> Option<&CapabilityRequest> {
        self.capabilities.iter().find(|request| request.kind() == kind)
    }

    /// Whether it contributes anything that runs in the real-time lane.
    pub fn has_realtime(&self) -> bool {
        !self.actions.is_empty() || self.hooks_at(HookPoint::Events)
    }

    /// Whether it contributes anything that runs in the control lane, or nothing at all.
    pub fn has_control(&self) -> bool {
        let hooks = self.hooks.iter().any(|hook| hook.point != HookPoint::Events);
        hooks
            || !self.tools.is_empty()
            || !self.tasks.is_empty()
            || !self.providers.is_empty()
            || !self.skills.is_empty()
            || !self.has_realtime()
    }

    /// Whether it declares a hook at `point`.
    pub fn hooks_at(&self, point: HookPoint) -> bool {
        self.hooks.iter().any(|hook| hook.point == point)
    }

    /// What is declared of the model that `provider` calls `model`. `None` if nothing is.
    pub fn model(&self, provider: &str, model: &str) -> Option<&ModelDeclaration> {
        self.providers.iter().find(|declared| declared.name == provider)?.model(model)
    }

    /// The ids of the secrets that it asks for.
    pub fn secrets(&self) -> Vec<String> {
        let id = |request: &CapabilityRequest| match &request.capability {
            Capability::Secret { id, .. } => Some(id.clone()),
            _ => None,
        };
        self.capabilities.iter().filter_map(id).collect()
    }

    /// Whether a provider exports the contract's `exchange-details`.
    pub fn has_exchange_details(&self) -> bool {
        self.providers.iter().any(|provider| provider.details)
    }

    /// Whether it declares a hook around what models are asked.
    pub fn has_chat_hooks(&self) -> bool {
        self.hooks.iter().any(|hook| hook.point.is_chat())
    }

    /// What the feature adds, by kind: the names of its actions, and so on. Kinds that it does not
    /// add are left out.
    pub fn contributions(&self) -> BTreeMap<&'static str, Vec<String>> {
        let mut contributions = BTreeMap::from([
            ("actions", self.actions.iter().map(|action| action.name.clone()).collect::<Vec<_>>()),
            ("tools", self.tools.iter().map(|tool| format!("{} ({})", tool.name, tool.tier.as_str())).collect()),
            ("hooks", self.hooks.iter().map(|hook| hook.point.as_str().to_owned()).collect()),
            ("tasks", self.tasks.iter().map(|task| task.name.clone()).collect()),
            ("providers", self.providers.iter().map(|provider| provider.name.clone()).collect()),
            ("skills", self.skills.iter().map(|skill| skill.name.clone()).collect()),
        ]);
        contributions.retain(|_, names| !names.is_empty());
        contributions
    }

    /// Whether a capability of this kind is requested.
    pub fn requests(&self, kind: CapabilityKind) -> bool {
        self.capabilities.iter().any(|request| request.kind() == kind)
    }
}

/// Rejects a request that a person could not read as what it is.
fn showable(request: &CapabilityRequest) -> Result<(), String> {
    let key = excerpt(&request.key(), 64);
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if request.capability.purpose().is_some_and(|purpose| {
        purpose.len() > 64 || !purpose.starts_with(|c: char| c.is_ascii_alphanumeric()) || !purpose.chars().all(is_word)
    }) {
        return Err(format!(
            "the capability {key:?} needs a purpose or id of 1 to 64 letters, digits, -, _ and ., a letter or digit first"
        ));
    }
    if request.reason.len() > MAX_SENTENCE || request.reason.chars().any(char::is_control) {
        return Err(format!("the reason of {key} must be one line of at most {MAX_SENTENCE} bytes"));
    }
    let scope = request.capability.scope();
    if scope.len() > MAX_TARGETS {
        return Err(format!("{key} names {} targets; at most {MAX_TARGETS} can be asked for", scope.len()));
    }
    if let Some(target) =
        scope.iter().find(|target| target.is_empty() || target.len() > MAX_TARGET || target.chars().any(is_hidden))
    {
        let shown = excerpt(target, 64);
        return Err(format!("{key} names {shown:?}; a target is one line of 1 to {MAX_TARGET} bytes that print"));
    }
    Ok(())
}

/// The parser's words, without the line that it shows where that is too long for a message.
fn invalid(error: toml::de::Error) -> DescriptorError {
    let text = error.to_string();
    DescriptorError::Invalid(if text.len() > MAX_TEXT { excerpt(error.message(), MAX_TEXT) } else { text })
}

/// A text or a key anywhere within that holds a character which can't be seen.
fn unprintable(value: &toml::Value) -> Option<String> {
    let check = |text: &str| text.chars().any(is_unwanted).then(|| excerpt(text, 64));
    match value {
        toml::Value::String(text) => check(text),
        toml::Value::Array(values) => values.iter().find_map(unprintable),
        toml::Value::Table(table) => table.iter().find_map(|(key, value)| check(key).or_else(|| unprintable(value))),
        _ => None,
    }
}

/// Whether a sentence of a descriptor may not have this character. Lines may break; joiners spell words of some
/// scripts, and variation selectors make emoji.
fn is_unwanted(c: char) -> bool {
    is_hidden(c) && !matches!(c, '\n' | '\r' | '\t' | '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
}

/// Names of one kind: shaped as its rule says, at most 64 characters, each once.
fn names<'a>(
    kind: &str,
    rule: &str,
    names: impl Iterator<Item = &'a String>,
    allowed: impl Fn(char) -> bool,
) -> Result<(), String> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        let shaped = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(&allowed);
        if !shaped || name.len() > 64 {
            return Err(format!("{kind} name {name:?} must be {rule}, at most 64 characters"));
        }
        if !seen.insert(name) {
            return Err(format!("{kind} {name} is declared twice"));
        }
        if seen.len() > MAX_DECLARATIONS {
            return Err(format!("more than {MAX_DECLARATIONS} of the kind \"{kind}\" are declared"));
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        id = "project:lamp"
        name = "Lamp"
        version = "1.0.0"
        contract = "0.1"
        [[capabilities]]
        kind = "network"
        purpose = "lamp"
        udp = ["192.168.1.5:*"]
        required = true
        reason = "Talk to the lamp."
        [[actions]]
        name = "LampOn"
        summary = "Switch it on."
    "#;

    #[test]
    fn a_descriptor_is_read_as_written() {
        let descriptor = Descriptor::parse(GOOD.as_bytes()).unwrap();
        assert_eq!(descriptor.id.name(), "lamp");
        assert_eq!(descriptor.id.source(), "project");
        assert!(descriptor.network("lamp").unwrap().required);
        assert!(descriptor.network("other").is_none());
    }

    #[test]
    fn what_does_not_fit_is_refused_with_a_sentence() {
        let refused =
            |from: &str, to: &str| Descriptor::parse(GOOD.replace(from, to).as_bytes()).unwrap_err().to_string();
        assert!(refused("project:lamp", "lamp").contains("no feature id"));
        assert!(refused("project:lamp", "project:LAMP").contains("no feature id"));
        assert!(refused("contract = \"0.1\"", "contract = \"9.9\"").contains("written for contract 9.9"));
        assert!(refused("LampOn", "Lamp-On").contains("must be a letter"));
        assert!(refused("LampOn", "Lamp\\u0007On").contains("can't be seen"));
        assert!(refused("Talk to the lamp.", "Talk\\u001b[2J").contains("can't be seen"));
        assert!(refused("Talk to the lamp.", "Talk\\u202eplease").contains("can't be seen"));
        assert!(refused("kind = \"network\"", "kind = \"root\"").contains("unknown variant"));
        assert!(refused("name = \"Lamp\"", "name = \"Lamp\"\nbogus = 1").contains("bogus"));
        assert!(refused("name = \"Lamp\"", "name = \"\"").contains("1 to 128"));
        assert_eq!(Descriptor::parse(&[0xff, 0xfe]).unwrap_err(), DescriptorError::NotText);
        assert_eq!(
            Descriptor::parse(&vec![b'#'; MAX_DESCRIPTOR + 1]).unwrap_err(),
            DescriptorError::TooLong(MAX_DESCRIPTOR + 1)
        );
    }

    #[test]
    fn what_needs_a_capability_that_was_not_granted_is_left_out() {
        let text = |needs: &str| {
            format!(
                "id = 'project:x'\nname = 'X'\nversion = '1'\ncontract = '0.1'\n\
                 [[capabilities]]\nkind = 'alert'\nreason = 'x'\n\
                 [[capabilities]]\nkind = 'background-task'\nreason = 'x'\n\
                 [[tools]]\nname = 'a'\ntier = 'read-only'\nsummary = ''\nneeds = {needs}\n\
                 [[tools]]\nname = 'b'\ntier = 'read-only'\nsummary = ''\n\
                 [[tasks]]\nname = 'c'\nsummary = ''\n"
            )
        };
        let descriptor = Descriptor::parse(text("['alert']").as_bytes()).unwrap();
        let none = Contributions::default();
        let (rest, skipped) = descriptor.granted(&Grants::default(), &none);
        assert_eq!(rest.contributions(), BTreeMap::from([("tools", vec!["b (read-only)".to_owned()])]));
        let skipped: Vec<String> = skipped.iter().map(ToString::to_string).collect();
        let sentences = [
            "tool a: needs \"alert\", which is not granted",
            "task c: needs \"background-task\", which is not granted",
        ];
        assert_eq!(skipped, sentences);
        let all = Grants { alert: true, background_task: true, ..Grants::default() };
        assert_eq!(descriptor.granted(&all, &none), (descriptor.clone(), Vec::new()));

        let either = Descriptor::parse(text("['alert or background-task']").as_bytes()).unwrap();
        let one = Grants { background_task: true, ..Grants::default() };
        assert_eq!(either.granted(&one, &none).1, []);
        assert_eq!(
            either.granted(&Grants::default(), &none).1[0].to_string(),
            "tool a: needs \"alert or background-task\", which is not granted"
        );
        let error = Descriptor::parse(text("['alert or store']").as_bytes()).unwrap_err().to_string();
        assert!(error.contains("the tool a needs \"store\", which is not requested"), "{error}");
        let refused = Contributions { tools: vec!["b".into(), "gone".into()], ..none };
        let (rest, skipped) = descriptor.granted(&all, &refused);
        assert_eq!(rest.contributions()["tools"], ["a (read-only)"]);
        let skipped: Vec<String> = skipped.iter().map(ToString::to_string).collect();
        assert_eq!(
            skipped,
            ["tool b: refused by a person; `conductor feature enable x --tool b` takes it back"],
            "what the package does not have is not left out"
        );
        let error = Descriptor::parse(text("['store']").as_bytes()).unwrap_err().to_string();
        assert!(error.contains("the tool a needs \"store\", which is not requested"), "{error}");
    }
}
