//! What a configuration file holds: the types that TOML is read into, and that the JSON Schema comes from.
//!
//! The attributes are the rules: a range, a default or a format stands here once, and the schema, the
//! checker and `conductor config schema` follow. Doc comments on fields are read by users.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::action::Action;
use super::text::{HttpHost, UdpDestination};
use super::trigger::Trigger;

/// The configuration of Conductor: which devices there are, and what happens when they are played.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Conductor configuration")]
pub struct Config {
    /// Settings of the host itself.
    #[serde(default)]
    pub advanced_settings: AdvancedSettings,

    /// Names for devices. Where several match one port, the first in the file has it. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<Binding>,

    /// Named sets of mappings. One mode is active at a time, for all devices. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<Mode>,

    /// Mappings that apply in every mode. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub global_mappings: Vec<Mapping>,

    /// Installed features by name (ASCII letters, digits, `-` and `_`). Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("propertyNames" = { "type": "string", "format": "feature-name" }))]
    pub features: BTreeMap<String, Feature>,
}

/// Settings of the host itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdvancedSettings {
    /// Which MIDI ports are opened. Without any binding, `all` is used whatever is written here.
    pub listen_mode: ListenMode,

    /// The most MIDI input ports that are open at once, 1 to 256 ports. Default: 32.
    #[schemars(range(min = 1, max = 256))]
    pub max_midi_ports: u16,
}

impl Default for AdvancedSettings {
    fn default() -> Self {
        Self { listen_mode: ListenMode::default(), max_midi_ports: 32 }
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

/// A name for a device, by which mappings and actions refer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Binding {
    /// The name. Not empty, and of this binding alone.
    #[schemars(length(min = 1), extend("x-names" = "binding"))]
    pub alias: String,

    /// What a person wants to remember about the device. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,

    /// Whether the binding is used; `false` mutes its device for good. Default: true.
    #[serde(default = "yes")]
    pub enabled: bool,

    /// How the device is reached.
    #[serde(flatten)]
    pub connection: Connection,
}

/// How a bound device is reached, by `protocol`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "protocol", rename_all = "snake_case")]
#[schemars(transform = midi_unless_said)]
pub enum Connection {
    /// A MIDI port of this machine, told by its name.
    Midi {
        /// What the port's name has to be; any one of these is enough. Default: none, which matches no
        /// port.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        matchers: Vec<Matcher>,

        /// A short form: without `matchers`, the port's name has to contain this text. Default: none.
        /// Reading adds the matcher that it stands for, so that only `matchers` need be looked at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1))]
        name: Option<String>,
    },

    /// An OSC endpoint of this machine.
    Osc {
        /// Where OSC packets are received.
        input: OscInput,
    },
}

impl<'de> Deserialize<'de> for Connection {
    /// Serde knows no default for the tag of an enum, so the fields of both protocols are read side by side.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Protocol {
            Midi,
            Osc,
        }

        #[derive(Deserialize)]
        struct Fields {
            protocol: Option<Protocol>,
            #[serde(default)]
            matchers: Vec<Matcher>,
            name: Option<String>,
            input: Option<OscInput>,
        }

        let fields = Fields::deserialize(deserializer)?;
        match fields.protocol.unwrap_or(Protocol::Midi) {
            Protocol::Midi => {
                let (mut matchers, name) = (fields.matchers, fields.name);
                if let (true, Some(name)) = (matchers.is_empty(), &name) {
                    let value = name.clone();
                    matchers.push(Matcher::NameContains { value });
                }
                Ok(Self::Midi { matchers, name })
            }
            Protocol::Osc => match fields.input {
                Some(input) => Ok(Self::Osc { input }),
                None => Err(D::Error::missing_field("input")),
            },
        }
    }
}

/// Says in the schema that a binding without `protocol` is a MIDI one.
fn midi_unless_said(schema: &mut Schema) {
    let midi = schema.get_mut("oneOf").and_then(|protocols| protocols.get_mut(0));
    if let Some(midi) = midi {
        if let Some(required) = midi.get_mut("required").and_then(|keys| keys.as_array_mut()) {
            required.retain(|key| key != "protocol");
        }
        if let Some(tag) = midi.pointer_mut("/properties/protocol") {
            tag["default"] = "midi".into();
        }
    }
}

/// A condition on the name of a MIDI port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(transform = super::schema::also_in_pascal_case)]
pub enum Matcher {
    /// The whole name is `value`, with the same case.
    ExactName {
        /// The name, not empty.
        #[schemars(length(min = 1))]
        value: String,
    },
    /// The name contains `value`, whatever the case.
    NameContains {
        /// A part of the name, not empty.
        #[schemars(length(min = 1))]
        value: String,
    },
    /// The name matches the regular expression `value`, which may match anywhere in it.
    NameRegex {
        /// The expression, in the syntax of the Rust crate `regex`, 1 to 256 characters.
        #[schemars(length(min = 1, max = 256))]
        value: String,
    },
}

/// Where OSC packets are received, by UDP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OscInput {
    /// The local address to listen on; `0.0.0.0` lets other machines in. Default: `127.0.0.1`.
    #[serde(default = "loopback")]
    #[schemars(length(min = 1))]
    pub host: String,

    /// The UDP port to listen on, 1 to 65535.
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
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

    /// What happens while this mode is active. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mappings: Vec<Mapping>,
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

    /// What is done.
    pub action: Action,

    /// Mappings with a higher priority are tried first; -2147483648 to 2147483647. Default: 0.
    #[serde(default)]
    #[schemars(range(min = i32::MIN, max = i32::MAX))]
    pub priority: i32,

    /// Whether no further mapping is tried after this one has fired. Default: false.
    #[serde(default)]
    pub consume: bool,
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

    /// Whether the feature is loaded. Default: true.
    #[serde(default = "yes")]
    pub enabled: bool,

    /// What the feature may use. Default: nothing.
    #[serde(default)]
    pub grants: Grants,
}

/// What a feature may use beyond its own memory. Default: nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Grants {
    /// Where it may send UDP packets: `"host:port"`, or `"host:*"` for every port of the host.
    /// Default: nowhere.
    pub udp: Vec<UdpDestination>,

    /// Hosts that it may send HTTP requests to: `"api.example.com"`, `"localhost:8080"`. Default:
    /// nowhere.
    pub http: Vec<HttpHost>,

    /// Secrets that the host may put into its requests, and the hosts that they may go to.
    /// Default: none.
    pub secrets: Vec<SecretGrant>,

    /// Folders. Default: none.
    pub files: Vec<FolderGrant>,

    /// Bytes of its own store. Default: 0, for none.
    #[schemars(range(max = 1_073_741_824))]
    pub store: u64,

    /// Aliases of bindings to whose outputs it may send MIDI; `"*"` for every one. Default: none.
    pub midi_out: Vec<String>,

    /// Whether it may send system exclusive messages there. Default: false.
    pub sysex: bool,

    /// Aliases of bindings whose events it may see; `"*"` for every one. Default: none.
    pub observe_events: Vec<String>,

    /// Whether it may read the configuration. Default: false.
    pub config_read: bool,

    /// Whether it may propose changes to the configuration. Default: false.
    pub config_propose: bool,

    /// Whether it may see which ports there are. Default: false.
    pub discover_ports: bool,

    /// Whether it may work in the background. Default: false.
    pub background_task: bool,

    /// Whether it may show notifications. Default: false.
    pub notify: bool,

    /// Whether it may raise alerts. Default: false.
    pub alert: bool,
}

/// A secret that a feature may have put into its requests. It never sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretGrant {
    /// Which: the id that the feature asks for.
    pub id: String,

    /// Where it may go to; each has to be granted under `http`, too.
    pub hosts: Vec<HttpHost>,
}

/// A folder that a feature may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FolderGrant {
    /// Which of the feature's requests it answers.
    pub purpose: String,

    /// The folder.
    pub path: String,

    /// Whether the feature may make, replace and remove files there. Default: false.
    #[serde(default)]
    pub write: bool,
}

fn yes() -> bool {
    true
}

fn loopback() -> String {
    "127.0.0.1".to_owned()
}
