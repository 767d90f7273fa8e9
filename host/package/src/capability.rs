//! A capability: what a feature asks for, how wide, and how much of it another one covers.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::program::Program;
use conductor_net::endpoint::EndpointPattern;
use conductor_net::http_scope::HostPattern;
use conductor_terminal::excerpt;

/// One entry of `[[capabilities]]` in a descriptor: something the feature asks to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityRequest {
    /// What it asks for, at the widest.
    pub capability: Capability,
    /// Whether the feature is useless without it.
    pub required: bool,
    /// Why, in a sentence for the person who grants it.
    pub reason: String,
}

/// Something that can be asked for, and given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Capability {
    /// Datagrams to UDP targets, requests to HTTP hosts. The grant is opened by `purpose`.
    Network {
        /// A short name for what the feature does with it, such as `osc`. Unique in a descriptor.
        purpose: String,
        /// UDP targets.
        #[serde(default)]
        udp: Vec<EndpointPattern>,
        /// HTTP hosts.
        #[serde(default)]
        http: Vec<HostPattern>,
    },
    /// A secret, for the host to put into requests to these hosts.
    Secret {
        /// Which.
        id: String,
        /// Where it may go to.
        hosts: Vec<HostPattern>,
    },
    /// A place for its own data.
    Store {
        /// Bytes, keys and values together.
        quota: u64,
    },
    /// The files of one folder, which the grant names.
    Files {
        /// A short name for what the feature does with it. Unique in a descriptor.
        purpose: String,
        /// Whether it makes, replaces and removes files there.
        #[serde(default)]
        write: bool,
        /// Which folder. Only in a grant: a descriptor can't name one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<PathBuf>,
    },
    /// What was committed to a git repository, which the grant names.
    GitSnapshot {
        /// A short name for what the feature does with it. Unique in a descriptor.
        purpose: String,
        /// Which folder. Only in a grant: a descriptor can't name one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<PathBuf>,
    },
    /// Programs of this machine, each run apart from everything. The grant names them.
    RunProgram {
        /// Which. Only in a grant: a descriptor can't name one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        programs: Vec<Program>,
    },
    /// MIDI to the outputs of bindings.
    MidiOut {
        /// Aliases; `*` for every one.
        bindings: Vec<String>,
        /// System exclusive messages, too.
        #[serde(default)]
        sysex: bool,
    },
    /// Events, as they come.
    ObserveEvents {
        /// Aliases; `*` for every one.
        bindings: Vec<String>,
    },
    /// The configuration in force.
    ConfigRead {},
    /// Plans for a person to apply.
    ConfigPropose {},
    /// The ports that there are.
    DiscoverPorts {},
    /// Work beside calls.
    BackgroundTask {},
    /// Asking models.
    UseModel {
        /// Names under `[models]` in the configuration; `*` for every one.
        models: Vec<String>,
        /// Tokens per minute, read and written together.
        tokens: u32,
    },
    /// Being called on the event path at a time.
    Timers {},
    /// Short messages to the person.
    Alert {},
    /// Durable facts that a model may see.
    Notify {},
}

/// The kind of a capability, by which interfaces and host functions ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the kind of the variant of `Capability` with its name")]
pub enum CapabilityKind {
    Network,
    Secret,
    Store,
    Files,
    GitSnapshot,
    RunProgram,
    MidiOut,
    ObserveEvents,
    ConfigRead,
    ConfigPropose,
    DiscoverPorts,
    BackgroundTask,
    UseModel,
    Timers,
    Alert,
    Notify,
}

impl CapabilityKind {
    /// Every kind.
    pub const ALL: [Self; 16] = [
        Self::Network,
        Self::Secret,
        Self::Store,
        Self::Files,
        Self::GitSnapshot,
        Self::RunProgram,
        Self::MidiOut,
        Self::ObserveEvents,
        Self::ConfigRead,
        Self::ConfigPropose,
        Self::DiscoverPorts,
        Self::BackgroundTask,
        Self::UseModel,
        Self::Timers,
        Self::Alert,
        Self::Notify,
    ];

    /// As descriptors write it under `kind`, and errors and listings show it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Secret => "secret",
            Self::Store => "store",
            Self::Files => "files",
            Self::GitSnapshot => "git-snapshot",
            Self::RunProgram => "run-program",
            Self::MidiOut => "midi-out",
            Self::ObserveEvents => "observe-events",
            Self::ConfigRead => "config-read",
            Self::ConfigPropose => "config-propose",
            Self::DiscoverPorts => "discover-ports",
            Self::BackgroundTask => "background-task",
            Self::UseModel => "use-model",
            Self::Timers => "timers",
            Self::Alert => "alert",
            Self::Notify => "notify",
        }
    }
}

impl CapabilityKind {
    /// The capability of this kind, and what it opens, as a person reads it; `None` for a kind that names targets or
    /// an amount.
    pub const fn as_whole(self) -> Option<(Capability, &'static str)> {
        Some(match self {
            Self::ConfigRead => (Capability::ConfigRead {}, "read the configuration in force"),
            Self::ConfigPropose => (Capability::ConfigPropose {}, "propose plans, which a person applies"),
            Self::DiscoverPorts => (Capability::DiscoverPorts {}, "see which ports there are"),
            Self::BackgroundTask => (Capability::BackgroundTask {}, "work in the background"),
            Self::Timers => (Capability::Timers {}, "act at times of its own, after an event"),
            Self::Alert => (Capability::Alert {}, "show short messages to you"),
            Self::Notify => (Capability::Notify {}, "tell models facts, which stay"),
            Self::Network
            | Self::Secret
            | Self::Store
            | Self::Files
            | Self::GitSnapshot
            | Self::RunProgram
            | Self::MidiOut
            | Self::ObserveEvents
            | Self::UseModel => return None,
        })
    }
}

impl fmt::Display for CapabilityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A text that is no kind of capability.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no kind of capability; there are {all}", all = CapabilityKind::ALL.map(CapabilityKind::as_str).join(", "))]
pub struct UnknownKind(String);

impl FromStr for CapabilityKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| UnknownKind(excerpt(text, 64)))
    }
}

impl Capability {
    /// Its kind.
    pub const fn kind(&self) -> CapabilityKind {
        match self {
            Self::Network { .. } => CapabilityKind::Network,
            Self::Secret { .. } => CapabilityKind::Secret,
            Self::Store { .. } => CapabilityKind::Store,
            Self::Files { .. } => CapabilityKind::Files,
            Self::GitSnapshot { .. } => CapabilityKind::GitSnapshot,
            Self::RunProgram { .. } => CapabilityKind::RunProgram,
            Self::MidiOut { .. } => CapabilityKind::MidiOut,
            Self::ObserveEvents { .. } => CapabilityKind::ObserveEvents,
            Self::ConfigRead {} => CapabilityKind::ConfigRead,
            Self::ConfigPropose {} => CapabilityKind::ConfigPropose,
            Self::DiscoverPorts {} => CapabilityKind::DiscoverPorts,
            Self::BackgroundTask {} => CapabilityKind::BackgroundTask,
            Self::UseModel { .. } => CapabilityKind::UseModel,
            Self::Timers {} => CapabilityKind::Timers,
            Self::Alert {} => CapabilityKind::Alert,
            Self::Notify {} => CapabilityKind::Notify,
        }
    }

    /// What tells it from others of its kind in one descriptor, where there may be several.
    pub fn purpose(&self) -> Option<&str> {
        match self {
            Self::Network { purpose, .. } | Self::Files { purpose, .. } | Self::GitSnapshot { purpose, .. } => {
                Some(purpose)
            }
            Self::Secret { id, .. } => Some(id),
            _ => None,
        }
    }

    /// The kind, and the purpose where there is one: `alert`, `network:osc`.
    pub fn key(&self) -> String {
        match self.purpose() {
            Some(purpose) => format!("{}:{purpose}", self.kind()),
            None => self.kind().to_string(),
        }
    }

    /// What it is limited to, as words that a person may grant one by one: `10.0.0.5:9000`,
    /// `http:api.example.com`, an alias, a folder, `sysex`. Empty for what is granted as a whole.
    pub fn scope(&self) -> Vec<String> {
        match self {
            Self::Network { udp, http, .. } => {
                let http = http.iter().map(|host| format!("{HTTP}{host}"));
                udp.iter().map(ToString::to_string).chain(http).collect()
            }
            Self::Secret { hosts, .. } => hosts.iter().map(ToString::to_string).collect(),
            Self::Files { path, .. } | Self::GitSnapshot { path, .. } => {
                path.iter().map(|path| path.display().to_string()).collect()
            }
            Self::RunProgram { programs } => programs.iter().map(ToString::to_string).collect(),
            Self::MidiOut { bindings, sysex } => {
                bindings.iter().cloned().chain(sysex.then(|| SYSEX.to_owned())).collect()
            }
            Self::ObserveEvents { bindings } => bindings.clone(),
            Self::UseModel { models, .. } => models.clone(),
            _ => Vec::new(),
        }
    }

    /// The same, limited to these words. Words that can't be read are left out.
    pub(crate) fn with_scope(&self, words: &[String]) -> Self {
        let mut narrow = self.clone();
        match &mut narrow {
            Self::Network { udp, http, .. } => {
                *http = words.iter().filter_map(|word| word.strip_prefix(HTTP)?.parse().ok()).collect();
                *udp = words.iter().filter_map(|word| word.parse().ok()).collect();
            }
            Self::Secret { hosts, .. } => *hosts = words.iter().filter_map(|word| word.parse().ok()).collect(),
            Self::Files { path, .. } | Self::GitSnapshot { path, .. } => *path = words.first().map(PathBuf::from),
            Self::RunProgram { programs } => *programs = words.iter().filter_map(|word| word.parse().ok()).collect(),
            Self::MidiOut { bindings, sysex } => {
                *sysex = words.iter().any(|word| word == SYSEX);
                *bindings = words.iter().filter(|word| *word != SYSEX).cloned().collect();
            }
            Self::ObserveEvents { bindings } => *bindings = words.to_vec(),
            Self::UseModel { models, .. } => *models = words.to_vec(),
            _ => {}
        }
        narrow
    }

    /// Whether the thing that this word names lies within the scope.
    fn covers(&self, word: &str) -> bool {
        match self {
            Self::Network { udp, http, .. } => match word.strip_prefix(HTTP) {
                Some(host) => host.parse().is_ok_and(|host| includes(http, &host)),
                None => word.parse().is_ok_and(|narrow| udp.iter().any(|pattern| pattern.includes(&narrow))),
            },
            Self::Secret { hosts, .. } => word.parse().is_ok_and(|host| includes(hosts, &host)),
            Self::Files { path: Some(path), .. } | Self::GitSnapshot { path: Some(path), .. } => {
                path == std::path::Path::new(word)
            }
            // The descriptor asks for some folder; which one is the person's to say.
            Self::Files { path: None, .. } | Self::GitSnapshot { path: None, .. } => {
                std::path::Path::new(word).is_absolute()
            }
            // So it is with programs.
            Self::RunProgram { programs } => {
                word.parse().is_ok_and(|program| programs.is_empty() || programs.contains(&program))
            }
            Self::MidiOut { sysex, .. } if word == SYSEX => *sysex,
            Self::MidiOut { bindings, .. } | Self::ObserveEvents { bindings } => names(bindings, word),
            Self::UseModel { models, .. } => names(models, word),
            _ => false,
        }
    }

    /// Whether a person has to say which thing is meant: it can't be granted as it is asked for.
    pub fn must_be_named(&self) -> bool {
        match self {
            Self::Files { path, .. } | Self::GitSnapshot { path, .. } => path.is_none(),
            Self::RunProgram { programs } => programs.is_empty(),
            Self::Network { http: hosts, .. } | Self::Secret { hosts, .. } => hosts.iter().any(HostPattern::is_any),
            _ => false,
        }
    }

    /// What a person has to say before it can be granted, as a question.
    pub const fn question(&self) -> &'static str {
        match self {
            Self::Network { .. } => "which host, written http:HOST?",
            Self::Secret { .. } => "for which host?",
            Self::RunProgram { .. } => "which program, with its whole path and its arguments?",
            _ => "which folder?",
        }
    }

    /// What a person could say.
    pub const fn example(&self) -> &'static str {
        match self {
            Self::Network { .. } => "http:api.example.com",
            Self::Secret { .. } => "api.example.com",
            Self::RunProgram { .. } => "/usr/bin/PROGRAM ARGUMENT",
            _ => "/a/folder",
        }
    }

    /// Whether both ask for the same, however wide.
    pub fn is_like(&self, other: &Self) -> bool {
        self.kind() == other.kind() && self.purpose() == other.purpose()
    }

    /// The same, limited to one thing that lies within its scope.
    ///
    /// # Errors
    /// What it asks for instead, as text.
    pub fn narrowed(&self, word: &str) -> Result<Self, String> {
        if self.covers(word) {
            return Ok(self.with_scope(&[word.to_owned()]));
        }
        let scope = self.scope();
        let named = match self {
            Self::Files { .. } | Self::GitSnapshot { .. } => "the whole path of a folder",
            Self::RunProgram { .. } => "the whole path of a program and its arguments",
            _ => "a host",
        };
        Err(if self.must_be_named() {
            format!("{} is granted with {named}, not {word:?}", self.key())
        } else if scope.is_empty() {
            format!("{} is granted as a whole; write it without ={word}", self.key())
        } else {
            format!("{} does not ask for {word}, only for {}", self.key(), scope.join(", "))
        })
    }

    /// The part of it that `granted` allows; `None` if that is nothing.
    pub fn within(&self, granted: &[&Self]) -> Option<Self> {
        let alike: Vec<&&Self> = granted.iter().filter(|grant| grant.is_like(self)).collect();
        let first = alike.first()?;
        match (self, first) {
            (Self::Store { quota: asked }, Self::Store { quota }) => {
                return Some(Self::Store { quota: *asked.min(quota) });
            }
            (Self::UseModel { models, tokens: asked }, Self::UseModel { models: granted, tokens }) => {
                let both = |of: &[String], within: &[String]| -> Vec<String> {
                    of.iter().filter(|name| names(within, name)).cloned().collect()
                };
                let mut named = both(models, granted);
                join(&mut named, &both(granted, models));
                let tokens = *asked.min(tokens);
                return (!named.is_empty()).then_some(Self::UseModel { models: named, tokens });
            }
            (Self::Files { purpose, write: asked, path: None }, Self::Files { write, path: path @ Some(_), .. }) => {
                let (purpose, write) = (purpose.clone(), *asked && *write);
                return Some(Self::Files { purpose, write, path: path.clone() });
            }
            (Self::GitSnapshot { path: None, .. }, granted @ Self::GitSnapshot { path: Some(_), .. }) => {
                return Some((**granted).clone());
            }
            (Self::RunProgram { programs }, Self::RunProgram { .. }) if programs.is_empty() => {
                let all: Vec<String> = alike.iter().flat_map(|grant| grant.scope()).collect();
                return (!all.is_empty()).then(|| self.with_scope(&all));
            }
            _ => {}
        }
        let scope = self.scope();
        if scope.is_empty() {
            return (!self.must_be_named()).then(|| self.clone());
        }
        let mut words: Vec<String> = Vec::new();
        for grant in alike {
            let ours = scope.iter().filter(|word| grant.covers(word)).cloned();
            let theirs = grant.scope().into_iter().filter(|word| self.covers(word));
            for word in ours.chain(theirs) {
                if !words.contains(&word) {
                    words.push(word);
                }
            }
        }
        (!words.is_empty()).then(|| self.with_scope(&words))
    }

    /// The part of it that `granted` does not allow; `None` if it allows everything.
    pub fn beyond(&self, granted: &[&Self]) -> Option<Self> {
        let alike: Vec<&&Self> = granted.iter().filter(|grant| grant.is_like(self)).collect();
        let Some(first) = alike.first() else { return Some(self.clone()) };
        match (self, first) {
            (Self::Store { quota: asked }, Self::Store { quota }) => return (asked > quota).then(|| self.clone()),
            (Self::Files { write: asked, .. }, Self::Files { write, .. }) => {
                return (*asked && !*write).then(|| self.clone());
            }
            (Self::UseModel { tokens: asked, .. }, Self::UseModel { tokens, .. }) if asked > tokens => {
                return Some(self.clone());
            }
            // Which hosts it gets was the person's to say, and was said.
            _ if self.must_be_named() => return None,
            _ => {}
        }
        let missing: Vec<String> =
            self.scope().into_iter().filter(|word| !alike.iter().any(|grant| grant.covers(word))).collect();
        (!missing.is_empty()).then(|| self.with_scope(&missing))
    }

    /// Both together, where they are alike.
    fn joined(&self, more: &Self) -> Self {
        match (self, more) {
            (Self::Store { quota }, Self::Store { quota: other }) => Self::Store { quota: *quota.max(other) },
            (Self::UseModel { tokens, .. }, Self::UseModel { models, tokens: other }) => {
                let Self::UseModel { models: mut held, .. } = self.clone() else { return more.clone() };
                join(&mut held, models);
                Self::UseModel { models: held, tokens: *tokens.max(other) }
            }
            (Self::RunProgram { programs }, Self::RunProgram { programs: more }) => {
                let mut held = programs.clone();
                join(&mut held, more);
                Self::RunProgram { programs: held }
            }
            // One folder for a purpose: the one that was named last.
            (Self::Files { .. }, Self::Files { .. }) | (Self::GitSnapshot { .. }, Self::GitSnapshot { .. }) => {
                more.clone()
            }
            _ => {
                let mut words = self.scope();
                words.extend(more.scope().into_iter().filter(|word| !self.covers(word)));
                self.with_scope(&words)
            }
        }
    }
}

/// What words for HTTP hosts begin with, in the scope of `network`.
pub(super) const HTTP: &str = "http:";

/// Whether a word of a scope stands for more than one thing that can be named.
pub fn is_wildcard(word: &str) -> bool {
    let word = word.strip_prefix(HTTP).unwrap_or(word);
    word == "*" || word.starts_with("*:") || word.ends_with(":*")
}

/// Whether one of these patterns has room for `host`.
fn includes(patterns: &[HostPattern], host: &HostPattern) -> bool {
    patterns.iter().any(|pattern| pattern.includes(host))
}

/// The word for system exclusive messages, in the scope of `midi-out`.
pub(super) const SYSEX: &str = "sysex";

impl CapabilityRequest {
    /// The kind of the capability.
    pub const fn kind(&self) -> CapabilityKind {
        self.capability.kind()
    }

    /// The kind, and the purpose where there is one.
    pub fn key(&self) -> String {
        self.capability.key()
    }

    pub(crate) fn with(&self, capability: Capability) -> Self {
        Self { capability, ..self.clone() }
    }

    /// The same request, limited to one thing that lies within its scope.
    ///
    /// # Errors
    /// What it asks for instead, as text.
    pub fn narrowed(&self, word: &str) -> Result<Self, String> {
        self.capability.narrowed(word).map(|capability| self.with(capability))
    }

    /// The part of it that `granted` allows; `None` if that is nothing.
    pub fn within(&self, granted: &[Self]) -> Option<Self> {
        self.capability.within(&capabilities(granted)).map(|capability| self.with(capability))
    }

    /// The part of it that `granted` does not allow; `None` if it allows everything.
    pub fn beyond(&self, granted: &[Self]) -> Option<Self> {
        self.capability.beyond(&capabilities(granted)).map(|capability| self.with(capability))
    }

    /// Puts a grant into a list, together with one that is like it.
    pub fn merge(list: &mut Vec<Self>, grant: Self) {
        match list.iter_mut().find(|held| held.capability.is_like(&grant.capability)) {
            Some(held) => held.capability = held.capability.joined(&grant.capability),
            None => list.push(grant),
        }
    }

    /// This grant without one thing of its scope; `None` if nothing is left.
    pub fn without(&self, word: &str) -> Option<Self> {
        let words: Vec<String> = self.capability.scope().into_iter().filter(|held| held != word).collect();
        (!words.is_empty()).then(|| self.with(self.capability.with_scope(&words)))
    }
}

fn capabilities(requests: &[CapabilityRequest]) -> Vec<&Capability> {
    requests.iter().map(|request| &request.capability).collect()
}

/// As it is written: the capability's fields, with `required` and `reason` among them.
impl<'de> Deserialize<'de> for CapabilityRequest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let mut fields = serde_json::Map::deserialize(deserializer)?;
        let required = match fields.remove("required") {
            None => false,
            Some(serde_json::Value::Bool(required)) => required,
            Some(other) => return Err(D::Error::custom(format!("`required` is true or false, not {other}"))),
        };
        let reason = match fields.remove("reason") {
            Some(serde_json::Value::String(reason)) if !reason.trim().is_empty() => reason,
            _ => {
                return Err(D::Error::custom(
                    "a capability needs its `reason`: a sentence for the person who grants it",
                ));
            }
        };
        let capability = Capability::deserialize(serde_json::Value::Object(fields)).map_err(D::Error::custom)?;
        Ok(Self { capability, required, reason })
    }
}

impl JsonSchema for CapabilityRequest {
    fn schema_name() -> Cow<'static, str> {
        "CapabilityRequest".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        /// A capability that a feature asks for, or was granted.
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is of use")]
        struct Written {
            #[serde(flatten)]
            capability: Capability,
            /// Whether the feature is useless without it.
            required: bool,
            /// Why, in a sentence for the person who grants it.
            reason: String,
        }
        Written::json_schema(generator)
    }
}

impl Serialize for CapabilityRequest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let mut value = serde_json::to_value(&self.capability).map_err(S::Error::custom)?;
        value["required"] = self.required.into();
        value["reason"] = self.reason.as_str().into();
        value.serialize(serializer)
    }
}

/// Whether a list of aliases, where `*` stands for every one, covers `alias`.
pub fn names(list: &[String], alias: &str) -> bool {
    list.iter().any(|name| name == "*" || name == alias)
}

/// Appends what is not there yet.
pub(super) fn join<T: PartialEq + Clone>(to: &mut Vec<T>, more: &[T]) {
    for one in more {
        if !to.contains(one) {
            to.push(one.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_granted_one_by_one_with_all_of_their_arguments() {
        let asked = Capability::RunProgram { programs: Vec::new() };
        assert!(asked.must_be_named());
        let (echo, cat) = ("network read=/x /bin/echo 'a b'", "/bin/cat");
        let (one, two) = (asked.narrowed(echo).unwrap(), asked.narrowed(cat).unwrap());
        let both = one.joined(&two);
        assert_eq!(both.scope(), [echo, cat]);
        assert_eq!(asked.within(&[&one, &two]), Some(both.clone()));
        assert_eq!((asked.within(&[]), asked.beyond(&[&one])), (None, None));
        assert_eq!(both.within(&[&two]), Some(two));
        for other in
            ["/bin/echo", "/bin/echo 'a b'", "network /bin/echo 'a b'", "network read=/x /bin/echo a b", "echo"]
        {
            assert!(!one.covers(other), "{other}");
        }
        assert_eq!(
            asked.narrowed("cat").unwrap_err(),
            "run-program is granted with the whole path of a program and its arguments, not \"cat\""
        );
    }

    #[test]
    fn a_kind_is_spelled_as_a_descriptor_spells_it() {
        let whole = serde_json::json!({
            "purpose": "p", "id": "i", "hosts": [], "quota": 1, "bindings": [], "models": [], "tokens": 1
        });
        for kind in CapabilityKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
            // Only the fields of its kind are taken, so each is tried with those that it takes.
            let fields: &[&str] = match kind {
                CapabilityKind::Network | CapabilityKind::Files | CapabilityKind::GitSnapshot => &["purpose"],
                CapabilityKind::Secret => &["id", "hosts"],
                CapabilityKind::Store => &["quota"],
                CapabilityKind::MidiOut | CapabilityKind::ObserveEvents => &["bindings"],
                CapabilityKind::UseModel => &["models", "tokens"],
                _ => &[],
            };
            let mut written: serde_json::Map<_, _> =
                fields.iter().map(|field| ((*field).to_owned(), whole[*field].clone())).collect();
            written.insert("kind".into(), kind.to_string().into());
            let capability: Capability = serde_json::from_value(written.into()).unwrap();
            assert_eq!(capability.kind(), kind);
        }
        let error = "use_model".parse::<CapabilityKind>().unwrap_err().to_string();
        assert!(error.starts_with("\"use_model\" is no kind of capability; there are network, secret,"), "{error}");
    }
}
