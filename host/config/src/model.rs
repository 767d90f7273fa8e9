//! What a configuration file holds: the types that TOML is read into, and that the JSON Schema comes from.
//!
//! The attributes are the rules: a range, a default or a format stands here once, and the schema, the
//! checker and `conductor config schema` follow. Doc comments on fields are read by users.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::action::{Action, MidiMessage};
use super::api::{Api, Mcp};
use super::binding::Binding;
use super::chat::Chat;
use super::clock::{CLOCK_VARIABLES, Clock, Quantize};
use super::condition::Condition;
use super::light::Light;
use super::llm::Llm;
use super::shared;
use super::trigger::Trigger;
use super::variable::Variable;
use conductor_package::{Contributions, Grants};

/// The configuration of Conductor: which devices there are, and what happens when they are played.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Conductor configuration")]
pub struct Config {
    /// Other files of this configuration, up to 64, each by its path from the folder of the file that names it; `*` in the
    /// file's name stands for any text. Lists go on in them, and no key is set in two. Default: none. No plan changes this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 1024)))]
    pub include: Vec<String>,

    /// Settings of the host itself.
    #[serde(default)]
    pub advanced_settings: AdvancedSettings,

    /// Names for devices. Where several match one port, the one whose matcher is the most specific has it,
    /// and of equals the first in the file. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<Binding>,

    /// Named sets of mappings. One mode is active at a time, for all devices. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<Mode>,

    /// What mappings set, ask and follow, up to 1024. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub variables: Vec<Variable>,

    /// The clock that beats and bars go by. Default: none. No plan changes this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,

    /// Lights, rings and motor faders that show what variables hold, up to 1024. Default: none. No plan changes this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub lights: Vec<Light>,

    /// Which mode applies for which application in front. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<Profile>,

    /// Mappings that apply in every mode. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "shared")]
    #[schemars(with = "Vec<Mapping>")]
    pub global_mappings: Vec<Arc<Mapping>>,

    /// Installed features by name (ASCII letters, digits, `-` and `_`). Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("propertyNames" = { "type": "string", "format": "feature-name" }))]
    pub features: BTreeMap<String, Feature>,

    /// Models that can be asked, by names of your own. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("propertyNames" = { "type": "string", "format": "feature-name" }))]
    pub models: BTreeMap<String, Model>,

    /// Which models conversations ask, and how far a turn may go. No plan changes this.
    #[serde(default)]
    pub chat: Chat,

    /// Whether models and agents may be asked at all, and where models may be. No plan changes this.
    #[serde(default)]
    pub llm: Llm,

    /// Which tools may be called, and how often. No plan changes this.
    #[serde(default)]
    pub tools: Tools,

    /// The API over HTTP, on this computer only.
    #[serde(default)]
    pub api: Api,

    /// What agents may bring about over MCP.
    #[serde(default)]
    pub mcp: Mcp,
}

impl Config {
    /// The names of all variables: its own, and those that come with a clock.
    pub fn variable_names(&self) -> impl Iterator<Item = &str> {
        let of_clock = CLOCK_VARIABLES.into_iter().filter(|_| self.clock.is_some());
        self.variables.iter().map(|variable| variable.name.as_str()).chain(of_clock)
    }
}

/// Which tools may be called, by whomever, and how often.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tools {
    /// The tools that may be called; `*` stands for any text: `"conductor_get_*"`. Default: every tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(inner(length(min = 1, max = 128)))]
    pub allowed: Option<Vec<String>>,

    /// What agents may do, by the tools' tiers, and what their user is asked about first.
    pub agents: AgentAccess,

    /// How often one caller may call tools of each tier, and features may ask models.
    pub per_minute: CallsPerMinute,
}

/// What agents may do over MCP and in conversations, by the tools' tiers. The home's owner may do all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentAccess {
    /// Tools that change what holds until the host stops: another mode, a device that is not heard. Default: `ask` in
    /// conversations, where a person is there to be asked, and `allow` over MCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stateful: Option<Access>,

    /// Tools that propose plans. Default: `allow`; a plan itself always waits for a person.
    pub config_change: Access,

    /// Tools that send to devices. Default: `ask`.
    pub hardware_io: ConfirmedAccess,

    /// Tools that reach as far, and those that propose to remove much. Default: `ask`.
    pub privileged: ConfirmedAccess,
}

/// Whether agents may call tools of a tier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Without a confirmation.
    #[default]
    Allow,
    /// After a person confirmed the call: the agent's user if `elicitation` under `[mcp]` is `all`; else no one can
    /// confirm, and a person makes the call with `conductor tool call`.
    Ask,
    /// Not at all.
    Deny,
}

/// Whether agents may call tools of a tier that a person has to agree to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmedAccess {
    /// After a person agreed to the call, twice.
    #[default]
    Ask,
    /// Not at all.
    Deny,
}

impl From<ConfirmedAccess> for Access {
    fn from(access: ConfirmedAccess) -> Self {
        match access {
            ConfirmedAccess::Ask => Self::Ask,
            ConfirmedAccess::Deny => Self::Deny,
        }
    }
}

/// Calls per minute that one caller may make, by the tools' tiers. A sixth of them may come at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallsPerMinute {
    /// Tools that look and answer; 1 to 10000000 calls. Default: 6000.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub read_only: u32,

    /// Tools that change what holds until the host stops; 1 to 10000000 calls. Default: 1200.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub stateful: u32,

    /// Tools that propose plans; 1 to 10000000 calls. Default: 600.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub config_change: u32,

    /// Tools that send to devices; 1 to 10000000 calls. Default: 600.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub hardware_io: u32,

    /// Tools that a person confirms each time; 1 to 10000000 calls. Default: 60.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub privileged: u32,

    /// Requests to the models of one provider, by all features together; 1 to 10000000 requests. Default: 120.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub model_requests: u32,
}

impl Default for CallsPerMinute {
    fn default() -> Self {
        Self {
            read_only: 6000,
            stateful: 1200,
            config_change: 600,
            hardware_io: 600,
            privileged: 60,
            model_requests: 120,
        }
    }
}

/// Settings of the host itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdvancedSettings {
    /// Which MIDI ports are opened. Ignored, and `all`, if there is no binding.
    pub listen_mode: ListenMode,

    /// The most MIDI input ports that are open at once, 1 to 256 ports. Default: 32.
    #[schemars(range(min = 1, max = 256))]
    pub max_midi_ports: u16,

    /// Names of ports that are ignored, in both directions, even if something else matches them; `*` stands for any
    /// text, `?` for any character, and case does not count: `"IAC Driver*"`. At most 256 names. Default: none.
    #[schemars(length(max = 256), inner(length(min = 1, max = 256)))]
    pub ignore_ports: Vec<String>,

    /// Whether MIDI devices are asked who they are, by a SysEx identity request, when they are plugged in.
    /// Every MIDI port is opened for that. Default: false.
    pub probe_identity: bool,

    /// Whether threads that wait for events ask Linux for short time slices, so that they are woken soon beside busy
    /// programs. Read when the host starts. Default: true.
    pub short_time_slices: bool,

    /// Whether threads that wait for events ask Linux for real-time priority, so that they go before all ordinary programs:
    /// true by the right of the user (`rtprio` in limits.conf) or else from rtkit, false not at all. A thread that is busy
    /// for 100 ms without a pause loses it. Read when the host starts. Default: by the right of the user in `conductor run`,
    /// not at all in other programs that load the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub realtime_priority: Option<bool>,
}

impl Default for AdvancedSettings {
    fn default() -> Self {
        let (listen_mode, ignore_ports) = (ListenMode::default(), Vec::new());
        Self {
            listen_mode,
            max_midi_ports: 32,
            ignore_ports,
            probe_identity: false,
            short_time_slices: true,
            realtime_priority: None,
        }
    }
}

/// Which MIDI ports are opened. Default: `configured`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ListenMode {
    /// Only ports that a binding matches.
    #[default]
    Configured,
    /// Every port; one that no binding matches goes by its own name.
    All,
}

/// A named set of mappings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mode {
    /// The name. Not empty, and of this mode alone.
    #[schemars(length(min = 1), extend("x-names" = "mode"))]
    pub name: String,

    /// A colour for user interfaces, in any form that they understand. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,

    /// The mode that this one lies over: what no mapping of this mode fires for goes on to those of that one, and so on,
    /// up to 16 deep. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-refers-to" = "mode"))]
    pub over: Option<String>,

    /// What happens while this mode is active. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "shared")]
    #[schemars(with = "Vec<Mapping>")]
    pub mappings: Vec<Arc<Mapping>>,
}

impl Config {
    /// A mode, and those that lie over it.
    pub fn modes_over<'c>(&'c self, mode: &'c str) -> impl Iterator<Item = &'c str> {
        let below = |name: &str| self.modes.iter().find(|mode| mode.name == name)?.over.as_deref();
        let lies_over = move |upper: &str| {
            let lower = std::iter::successors(below(upper), |lower| below(lower));
            lower.take(self.modes.len()).any(|lower| lower == mode)
        };
        let upper = self.modes.iter().map(|mode| mode.name.as_str());
        std::iter::once(mode).chain(upper.filter(move |upper| *upper != mode && lies_over(upper)))
    }
}

/// A mode for applications: it is active while one of them is in front. When none is, the mode from before
/// is active again, unless another was chosen meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name. Not empty, and of this profile alone.
    #[schemars(length(min = 1), extend("x-names" = "profile"))]
    pub name: String,

    /// The applications, 1 to 32, each by one of its names, in upper or lower case: the class or the instance
    /// of its windows, or its program.
    #[schemars(length(min = 1, max = 32), inner(length(min = 1, max = 256)))]
    pub apps: Vec<String>,

    /// What the title of the window contains, in upper or lower case. Default: any title. A profile with a
    /// title goes before those without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub title: Option<String>,

    /// The mode, by its name in this configuration.
    #[schemars(length(min = 1), extend("x-refers-to" = "mode"))]
    pub mode: String,
}

/// An action and the event that triggers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// A short name, for lists and logs. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// What a person wants to remember about the mapping. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,

    /// The event that is waited for.
    pub trigger: Trigger,

    /// What else must be so. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Box<Condition>>,

    /// What is done.
    pub action: Action,

    /// Mappings with a higher priority are tried first; -2147483648 to 2147483647. Default: 0.
    #[serde(default)]
    #[schemars(range(min = i32::MIN, max = i32::MAX))]
    pub priority: i32,

    /// Whether no further mapping is tried after this one has fired, or while it waits (`defer`): what it waited
    /// for in vain is not given to others. Default: false.
    #[serde(default)]
    pub consume: bool,

    /// What the lights or motor faders of the device show of it. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Box<Feedback>>,

    /// Whether it waits until it is clear that its press is no part of another mapping's long press, double
    /// tap or chord. For presses, and for these gestures themselves. Default: false.
    #[serde(default)]
    pub defer: bool,

    /// How often the action is tried again where it fails. Default: not at all. For actions of features, `Launch`, `Shell` and
    /// `SendMidi` without a note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,

    /// The place of the clock's grid that the action waits for when the mapping fires, such as `"bar"` or `"1/16"`. The end
    /// of a press waits behind it. While the clock does not play, nothing waits. Default: it does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantize: Option<Quantize>,
}

/// How an action is tried again that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// How often at most, 1 to 10.
    #[schemars(range(min = 1, max = 10))]
    pub times: u8,

    /// How long after it failed, in milliseconds, 1 to 60000. Default: 200.
    #[serde(default = "soon")]
    #[schemars(range(min = 1, max = 60_000))]
    pub after_ms: u16,
}

fn soon() -> u16 {
    200
}

/// What lights or motor faders show of a mapping. They show it again when the device comes back, and when
/// the mapping's mode becomes active again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Feedback {
    /// The device with the lights: the alias of a binding, or the name of a port. Default: the trigger's
    /// `device`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1), extend("x-mentions" = "binding"))]
    pub target: Option<String>,

    /// What is sent when the mapping has fired. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fired: Option<MidiMessage>,

    /// What is sent while the mapping waits: when its mode becomes active, and when the note that fired it
    /// ends, where the mapping is about that, too. It is sent for each number of the trigger's range, with
    /// `{value}` as 0. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<MidiMessage>,

    /// Whether `idle` is also sent when the control is let go, while the action is about its press alone: so a light is on for as
    /// long as the control is held. For a `Note`, `NoteRange`, `VelocityRange`, `GamepadButton` or `Key`. Default: false.
    #[serde(default)]
    pub while_held: bool,

    /// What the display in the key says, 1 to 64 characters; a line feed begins a new line. For a trigger that is a note, and a
    /// device with displays in its keys: a Stream Deck. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub text: Option<String>,
}

/// A language model, and where it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The provider, as a feature contributes it: `openai-compatible`.
    pub provider: String,

    /// What the provider calls the model.
    #[schemars(length(min = 1))]
    pub model: String,

    /// The base URL, such as `http://localhost:11434/v1`. Default: the provider's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub url: Option<String>,

    /// The id of the secret that the host sends along; never the key itself. Default: the provider's own,
    /// or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub secret: Option<String>,

    /// The variable of the host's environment that has the key, instead of a keychain. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub api_key_env: Option<String>,

    /// Tokens that one of its answers may have at most, 1 to 10000000. Default: what the provider declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000_000))]
    pub max_tokens: Option<u32>,

    /// How much chance is in its answers, 0.0 to 2.0. Default: what the API does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f32>,

    /// How much it thinks before it answers, where it can and its API lets that be asked for; what it thinks costs tokens.
    /// Default: what the API does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,

    /// Tokens that a question and its answer may have together, 1 to 100000000. Default: what the provider declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub context: Option<u32>,

    /// What it costs. Default: what the provider declares; nothing, if the model is on this computer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<ModelPrice>,

    /// Whether it takes tools; without, they are described to it in the instructions. Default: what the provider declares,
    /// or yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,

    /// Whether it answers piece by piece. Default: what the provider declares, or yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<bool>,

    /// Whether it takes a JSON Schema for its answer; without, the schema is in the instructions. Default: what the provider
    /// declares, or yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<bool>,
}

/// How much a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// As little as its API lets be asked for.
    Minimal,
    /// A little.
    Low,
    /// More.
    Medium,
    /// As much as helps.
    High,
}

/// What a model costs, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// What is read, 0 to 100000 US dollars.
    #[schemars(range(min = 0, max = 100_000))]
    pub input: f64,

    /// What is written, 0 to 100000 US dollars.
    #[schemars(range(min = 0, max = 100_000))]
    pub output: f64,

    /// What is read from a cache, 0 to 100000 US dollars. Default: as `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000))]
    pub cached: Option<f64>,
}

/// What a person decides about one feature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Feature {
    /// The component, a `.wasm` file; relative to the configuration file. Default: the bundled feature of
    /// this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "component-path"))]
    pub path: Option<String>,

    /// The whole id that `grants` are meant for: `"project:lamp"`. The name alone gives nothing: a package with
    /// another id gets none of them. Default: `builtin:NAME`, the bundled feature of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "feature-id"))]
    pub id: Option<String>,

    /// The SHA-256 of the package that `grants` are meant for: `"sha256:..."`. Packages from elsewhere get none of
    /// them without it; `conductor feature pin NAME` writes it. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "digest"))]
    pub digest: Option<String>,

    /// Whether the feature is loaded. Default: true.
    #[serde(default = "yes")]
    pub enabled: bool,

    /// What the feature may use, if it has the `id` and the `digest` above. Default: nothing.
    #[serde(default)]
    pub grants: Grants,

    /// Contributions that are left out, whatever package has this name: `{ tools = ["work_item_create"] }`.
    /// `conductor feature disable NAME --tool ...` writes it. Default: none.
    #[serde(default, skip_serializing_if = "Contributions::is_empty")]
    pub refused: Contributions,
}

fn yes() -> bool {
    true
}
