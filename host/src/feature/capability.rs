//! Capabilities: what a feature asks for, what a person gave, and what holds in the end.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use crate::service::http::scope::{HostPattern, SecretGrant};

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Short messages to the person.
    Alert {},
    /// Durable facts that a model may see.
    Notify {},
}

impl Capability {
    /// The word that descriptors, errors and listings use.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Network { .. } => "network",
            Self::Secret { .. } => "secret",
            Self::Store { .. } => "store",
            Self::Files { .. } => "files",
            Self::MidiOut { .. } => "midi-out",
            Self::ObserveEvents { .. } => "observe-events",
            Self::ConfigRead {} => "config-read",
            Self::ConfigPropose {} => "config-propose",
            Self::DiscoverPorts {} => "discover-ports",
            Self::BackgroundTask {} => "background-task",
            Self::UseModel { .. } => "use-model",
            Self::Alert {} => "alert",
            Self::Notify {} => "notify",
        }
    }

    /// What tells it from others of its kind in one descriptor, where there may be several.
    pub fn purpose(&self) -> Option<&str> {
        match self {
            Self::Network { purpose, .. } | Self::Files { purpose, .. } => Some(purpose),
            Self::Secret { id, .. } => Some(id),
            _ => None,
        }
    }

    /// The kind, and the purpose where there is one: `alert`, `network:osc`.
    pub fn key(&self) -> String {
        match self.purpose() {
            Some(purpose) => format!("{}:{purpose}", self.kind()),
            None => self.kind().to_owned(),
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
            Self::Files { path, .. } => path.iter().map(|path| path.display().to_string()).collect(),
            Self::MidiOut { bindings, sysex } => {
                bindings.iter().cloned().chain(sysex.then(|| SYSEX.to_owned())).collect()
            }
            Self::ObserveEvents { bindings } => bindings.clone(),
            Self::UseModel { models, .. } => models.clone(),
            _ => Vec::new(),
        }
    }

    /// The same, limited to these words. Words that can't be read are left out.
    fn with_scope(&self, words: &[String]) -> Self {
        let mut narrow = self.clone();
        match &mut narrow {
            Self::Network { udp, http, .. } => {
                *http = words.iter().filter_map(|word| word.strip_prefix(HTTP)?.parse().ok()).collect();
                *udp = words.iter().filter_map(|word| word.parse().ok()).collect();
            }
            Self::Secret { hosts, .. } => *hosts = words.iter().filter_map(|word| word.parse().ok()).collect(),
            Self::Files { path, .. } => *path = words.first().map(PathBuf::from),
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
            Self::Files { path: Some(path), .. } => path == std::path::Path::new(word),
            // The descriptor asks for some folder; which one is the person's to say.
            Self::Files { path: None, .. } => std::path::Path::new(word).is_absolute(),
            Self::MidiOut { sysex, .. } if word == SYSEX => *sysex,
            Self::MidiOut { bindings, .. } | Self::ObserveEvents { bindings } => names(bindings, word),
            Self::UseModel { models, .. } => names(models, word),
            _ => false,
        }
    }

    /// Whether a person has to say which thing is meant: it can't be granted as it is asked for.
    pub fn must_be_named(&self) -> bool {
        match self {
            Self::Files { path, .. } => path.is_none(),
            Self::Network { http: hosts, .. } | Self::Secret { hosts, .. } => hosts.iter().any(HostPattern::is_any),
            _ => false,
        }
    }

    /// What a person has to say before it can be granted, as a question.
    pub const fn question(&self) -> &'static str {
        match self {
            Self::Network { .. } => "which host, written http:HOST?",
            Self::Secret { .. } => "for which host?",
            _ => "which folder?",
        }
    }

    /// What a person could say.
    pub const fn example(&self) -> &'static str {
        match self {
            Self::Network { .. } => "http:api.example.com",
            Self::Secret { .. } => "api.example.com",
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
    /// What it asks for instead, in words.
    pub fn narrowed(&self, word: &str) -> Result<Self, String> {
        if self.covers(word) {
            return Ok(self.with_scope(&[word.to_owned()]));
        }
        let scope = self.scope();
        Err(if self.must_be_named() && !matches!(self, Self::Files { .. }) {
            format!("{} is granted with a host, not {word:?}", self.key())
        } else if self.must_be_named() {
            format!("{} is granted with the whole path of a folder, not {word:?}", self.key())
        } else if scope.is_empty() {
            format!("{} is granted as a whole; write it without ={word}", self.key())
        } else {
            format!("{} does not ask for {word}, only for {}", self.key(), scope.join(", "))
        })
    }

    /// The part of it that `granted` allows; none where that is nothing.
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

    /// The part of it that `granted` does not allow; none where it allows everything.
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
            // One folder for a purpose: the one that was named last.
            (Self::Files { .. }, Self::Files { .. }) => more.clone(),
            _ => {
                let mut words = self.scope();
                words.extend(more.scope().into_iter().filter(|word| !self.covers(word)));
                self.with_scope(&words)
            }
        }
    }

    /// The part of it that features which come with the host get without being asked for.
    fn preapproved(&self) -> Option<Self> {
        let policy = Grants::bundled();
        match self {
            Self::Network { .. } => {
                let policy: Vec<String> = policy.udp.iter().map(ToString::to_string).collect();
                self.within(&[&self.with_scope(&policy)])
            }
            _ => policy.answers(self).then(|| self.clone()),
        }
    }
}

/// What words for HTTP hosts begin with, in the scope of `network`.
const HTTP: &str = "http:";

/// Whether one of these patterns has room for `host`.
fn includes(patterns: &[HostPattern], host: &HostPattern) -> bool {
    patterns.iter().any(|pattern| pattern.includes(host))
}

/// The word for system exclusive messages, in the scope of `midi-out`.
const SYSEX: &str = "sysex";

impl CapabilityRequest {
    /// The word that descriptors, errors and listings use.
    pub const fn kind(&self) -> &'static str {
        self.capability.kind()
    }

    /// The kind, and the purpose where there is one.
    pub fn key(&self) -> String {
        self.capability.key()
    }

    fn with(&self, capability: Capability) -> Self {
        Self { capability, ..self.clone() }
    }

    /// The same request, limited to one thing that lies within its scope.
    ///
    /// # Errors
    /// What it asks for instead, in words.
    pub fn narrowed(&self, word: &str) -> Result<Self, String> {
        self.capability.narrowed(word).map(|capability| self.with(capability))
    }

    /// The part of it that `granted` allows; none where that is nothing.
    pub fn within(&self, granted: &[Self]) -> Option<Self> {
        self.capability.within(&capabilities(granted)).map(|capability| self.with(capability))
    }

    /// The part of it that `granted` does not allow; none where it allows everything.
    pub fn beyond(&self, granted: &[Self]) -> Option<Self> {
        self.capability.beyond(&capabilities(granted)).map(|capability| self.with(capability))
    }

    /// The part of it that features which come with the host get without being asked for.
    pub fn preapproved(&self) -> Option<Self> {
        self.capability.preapproved().map(|capability| self.with(capability))
    }

    /// Puts a grant into a list, together with one that is like it.
    pub fn merge(list: &mut Vec<Self>, grant: Self) {
        match list.iter_mut().find(|held| held.capability.is_like(&grant.capability)) {
            Some(held) => held.capability = held.capability.joined(&grant.capability),
            None => list.push(grant),
        }
    }

    /// This grant without one thing of its scope; none where nothing is left.
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

impl Serialize for CapabilityRequest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let mut value = serde_json::to_value(&self.capability).map_err(S::Error::custom)?;
        value["required"] = self.required.into();
        value["reason"] = self.reason.as_str().into();
        value.serialize(serializer)
    }
}

/// A set of network targets: `host:port`, where either side may be `*`.
///
/// A host is an IP address (IPv6 in brackets) or a name, compared without regard to case and never
/// resolved for comparison: a grant for a name does not cover the address it resolves to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointPattern {
    /// `None` for any host. Without brackets, lower case.
    host: Option<String>,
    /// `None` for any port.
    port: Option<u16>,
}

/// The text is not `host:port`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a target; write host:port, such as 127.0.0.1:9000, [::1]:9000, desk.local:8000{1}")]
pub struct EndpointError(String, &'static str);

impl EndpointPattern {
    /// Whether `endpoint` lies within this pattern.
    pub fn covers(&self, endpoint: &Endpoint) -> bool {
        self.host.as_ref().is_none_or(|host| *host == endpoint.host)
            && self.port.is_none_or(|port| port == endpoint.port)
    }

    /// Whether everything that `narrow` covers lies within this pattern.
    pub fn includes(&self, narrow: &Self) -> bool {
        (self.host.is_none() || self.host == narrow.host) && (self.port.is_none() || self.port == narrow.port)
    }

    /// The host, where the pattern names one.
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }
}

impl FromStr for EndpointPattern {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let error = || EndpointError(text.to_owned(), ", or * on either side");
        let (host, port) = split(text).ok_or_else(error)?;
        let port =
            if port == "*" { None } else { Some(port.parse().ok().filter(|port| *port != 0).ok_or_else(error)?) };
        let host = if host == "*" { None } else { Some(checked_host(host).ok_or_else(error)?) };
        Ok(Self { host, port })
    }
}

impl fmt::Display for EndpointPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            None => f.write_str("*")?,
            Some(host) if host.contains(':') => write!(f, "[{host}]")?,
            Some(host) => f.write_str(host)?,
        }
        match self.port {
            None => f.write_str(":*"),
            Some(port) => write!(f, ":{port}"),
        }
    }
}

impl Serialize for EndpointPattern {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EndpointPattern {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// One network target, as a guest names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Without brackets, lower case.
    pub host: String,
    /// 1-65535.
    pub port: u16,
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let error = || EndpointError(text.to_owned(), "");
        let (host, port) = split(text).ok_or_else(error)?;
        let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(error)?;
        Ok(Self { host: checked_host(host).ok_or_else(error)?, port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Splits at the colon before the port; brackets around an IPv6 address go.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    let (host, port) = text.rsplit_once(':')?;
    match host.strip_prefix('[') {
        Some(inner) => Some((inner.strip_suffix(']')?, port)),
        None if host.contains(':') => None,
        None => Some((host, port)),
    }
}

/// Addresses in their one spelling, names in lower case. Anything else that a resolver might read
/// as something different (`127.1`, `0x7f000001`, user parts, blanks) is refused.
pub(crate) fn checked_host(host: &str) -> Option<String> {
    if let Ok(address) = host.parse::<std::net::IpAddr>() {
        return Some(address.to_string());
    }
    let valid = !host.is_empty()
        && host.len() <= 253
        && host.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        })
        && host.rsplit('.').next().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_alphabetic()));
    valid.then(|| host.to_ascii_lowercase())
}

/// A folder that was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderGrant {
    /// For which of the descriptor's requests.
    pub purpose: String,
    /// The folder.
    pub path: PathBuf,
    /// Whether files may be made, replaced and removed.
    #[serde(default)]
    pub write: bool,
}

/// What a person (or the policy for bundled features) gave to one feature.
///
/// What holds is what is both in here and in the descriptor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Grants {
    /// UDP targets, for every purpose that the descriptor requests.
    pub udp: Vec<EndpointPattern>,
    /// HTTP hosts, for every purpose that the descriptor requests.
    pub http: Vec<HostPattern>,
    /// Secrets.
    pub secrets: Vec<SecretGrant>,
    /// Folders.
    pub files: Vec<FolderGrant>,
    /// Bytes of its store; 0 for none.
    pub store: u64,
    /// Aliases of bindings to whose outputs it may send; `*` for every one.
    pub midi_out: Vec<String>,
    /// Whether it may send SysEx there.
    pub sysex: bool,
    /// Aliases of bindings whose events it may see; `*` for every one.
    pub observe_events: Vec<String>,
    /// The configuration in force.
    pub config_read: bool,
    /// Plans.
    pub config_propose: bool,
    /// The ports that there are.
    pub discover_ports: bool,
    /// Background tasks.
    pub background_task: bool,
    /// Models that it may ask, by their names in the configuration; `*` for every one.
    pub models: Vec<String>,
    /// Tokens per minute that it may have them read and write, together.
    pub model_tokens: u32,
    /// Alerts.
    pub alert: bool,
    /// Notifications.
    pub notify: bool,
}

/// The store that bundled features get: 1 MiB.
const BUNDLED_STORE: u64 = 1024 * 1024;

/// Appends what is not there yet.
fn join<T: PartialEq + Clone>(to: &mut Vec<T>, more: &[T]) {
    for one in more {
        if !to.contains(one) {
            to.push(one.clone());
        }
    }
}

impl Grants {
    /// What bundled features get without being asked for: this machine's own targets and hosts,
    /// and what stays within the host.
    pub fn bundled() -> Self {
        let local = |host: &str| EndpointPattern { host: Some(host.to_owned()), port: None };
        let here = vec![local("127.0.0.1"), local("::1"), local("localhost")];
        Self {
            udp: here,
            store: BUNDLED_STORE,
            observe_events: vec!["*".into()],
            config_read: true,
            config_propose: true,
            discover_ports: true,
            background_task: true,
            alert: true,
            notify: true,
            ..Self::default()
        }
    }

    /// What a list of grants comes to.
    pub fn of(granted: &[CapabilityRequest]) -> Self {
        let mut grants = Self::default();
        for grant in granted {
            match &grant.capability {
                Capability::Network { udp, http, .. } => {
                    join(&mut grants.udp, udp);
                    join(&mut grants.http, http);
                }
                Capability::Secret { id, hosts } => {
                    grants.secrets.push(SecretGrant { id: id.clone(), hosts: hosts.clone() });
                }
                Capability::Store { quota } => grants.store = grants.store.max(*quota),
                Capability::Files { purpose, write, path: Some(path) } => {
                    let (purpose, path) = (purpose.clone(), path.clone());
                    grants.files.push(FolderGrant { purpose, path, write: *write });
                }
                Capability::Files { path: None, .. } => {}
                Capability::MidiOut { bindings, sysex } => {
                    join(&mut grants.midi_out, bindings);
                    grants.sysex |= sysex;
                }
                Capability::ObserveEvents { bindings } => join(&mut grants.observe_events, bindings),
                Capability::ConfigRead {} => grants.config_read = true,
                Capability::ConfigPropose {} => grants.config_propose = true,
                Capability::DiscoverPorts {} => grants.discover_ports = true,
                Capability::BackgroundTask {} => grants.background_task = true,
                Capability::UseModel { models, tokens } => {
                    join(&mut grants.models, models);
                    grants.model_tokens = grants.model_tokens.max(*tokens);
                }
                Capability::Alert {} => grants.alert = true,
                Capability::Notify {} => grants.notify = true,
            }
        }
        grants
    }

    /// Both grants together.
    pub fn union(mut self, more: &Self) -> Self {
        join(&mut self.udp, &more.udp);
        join(&mut self.http, &more.http);
        join(&mut self.secrets, &more.secrets);
        join(&mut self.files, &more.files);
        join(&mut self.midi_out, &more.midi_out);
        join(&mut self.observe_events, &more.observe_events);
        join(&mut self.models, &more.models);
        self.model_tokens = self.model_tokens.max(more.model_tokens);
        self.store = self.store.max(more.store);
        self.sysex |= more.sysex;
        self.config_read |= more.config_read;
        self.config_propose |= more.config_propose;
        self.discover_ports |= more.discover_ports;
        self.background_task |= more.background_task;
        self.alert |= more.alert;
        self.notify |= more.notify;
        self
    }

    /// What of it is for these requests: a policy may give more than a feature asks for.
    #[must_use]
    pub fn asked_for(mut self, requests: &[CapabilityRequest]) -> Self {
        let asks = |kind| requests.iter().any(|request| request.kind() == kind);
        let network = |wanted: fn(&Capability) -> bool| requests.iter().any(|request| wanted(&request.capability));
        if !network(|it| matches!(it, Capability::Network { udp, .. } if !udp.is_empty())) {
            self.udp.clear();
        }
        if !network(|it| matches!(it, Capability::Network { http, .. } if !http.is_empty())) {
            self.http.clear();
        }
        let names = |kind, name: &str| {
            requests.iter().any(|request| request.kind() == kind && request.capability.purpose() == Some(name))
        };
        self.secrets.retain(|secret| names("secret", &secret.id));
        self.files.retain(|folder| names("files", &folder.purpose));
        if !asks("store") {
            self.store = 0;
        }
        if !asks("midi-out") {
            self.midi_out.clear();
            self.sysex = false;
        }
        if !asks("observe-events") {
            self.observe_events.clear();
        }
        if !asks("use-model") {
            self.models.clear();
            self.model_tokens = 0;
        }
        self.config_read &= asks("config-read");
        self.config_propose &= asks("config-propose");
        self.discover_ports &= asks("discover-ports");
        self.background_task &= asks("background-task");
        self.alert &= asks("alert");
        self.notify &= asks("notify");
        self
    }

    /// Whether `capability` was granted in any part.
    pub fn answers(&self, capability: &Capability) -> bool {
        match capability {
            Capability::Network { udp, http, .. } => {
                !udp.is_empty() && !self.udp.is_empty() || !http.is_empty() && !self.http.is_empty()
            }
            Capability::Secret { id, .. } => self.secrets.iter().any(|secret| secret.id == *id),
            Capability::Store { .. } => self.store > 0,
            Capability::Files { purpose, .. } => self.files.iter().any(|folder| folder.purpose == *purpose),
            Capability::MidiOut { .. } => !self.midi_out.is_empty(),
            Capability::ObserveEvents { .. } => !self.observe_events.is_empty(),
            Capability::ConfigRead {} => self.config_read,
            Capability::ConfigPropose {} => self.config_propose,
            Capability::DiscoverPorts {} => self.discover_ports,
            Capability::BackgroundTask {} => self.background_task,
            Capability::UseModel { .. } => !self.models.is_empty() && self.model_tokens > 0,
            Capability::Alert {} => self.alert,
            Capability::Notify {} => self.notify,
        }
    }

    /// What to write under `[features.NAME.grants]` for `capability`.
    pub fn advice(capability: &Capability) -> String {
        match capability {
            Capability::Network { udp, .. } if !udp.is_empty() => "udp = [\"host:port\"]".into(),
            Capability::Network { .. } => "http = [\"host\"]".into(),
            Capability::Secret { id, .. } => format!("secrets = [{{ id = \"{id}\", hosts = [\"host\"] }}]"),
            Capability::Store { quota } => format!("store = {quota}"),
            Capability::Files { purpose, write, .. } => {
                format!("files = [{{ purpose = \"{purpose}\", path = \"/folder\", write = {write} }}]")
            }
            Capability::MidiOut { bindings, .. } => format!("midi_out = {bindings:?}"),
            Capability::ObserveEvents { bindings } => format!("observe_events = {bindings:?}"),
            Capability::UseModel { models, tokens } => format!("models = {models:?}, model_tokens = {tokens}"),
            other => format!("{} = true", other.kind().replace('-', "_")),
        }
    }
}

/// Whether a list of aliases, where `*` stands for every one, covers `alias`.
pub fn names(list: &[String], alias: &str) -> bool {
    list.iter().any(|name| name == "*" || name == alias)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn covers(pattern: &str, endpoint: &str) -> bool {
        pattern.parse::<EndpointPattern>().unwrap().covers(&endpoint.parse().unwrap())
    }

    #[test]
    fn a_pattern_covers_what_it_names_and_nothing_else() {
        assert!(covers("127.0.0.1:9000", "127.0.0.1:9000"));
        assert!(covers("127.0.0.1:*", "127.0.0.1:1"));
        assert!(covers("*:9000", "desk.local:9000"));
        assert!(covers("Desk.Local:8000", "desk.LOCAL:8000"));
        assert!(covers("[::1]:*", "[0:0::1]:5"));
        assert!(!covers("127.0.0.1:9000", "127.0.0.1:9001"));
        assert!(!covers("127.0.0.1:*", "127.0.0.2:9000"));
        assert!(!covers("localhost:*", "127.0.0.1:9000"), "a name does not stand for its address");
    }

    #[test]
    fn spellings_that_a_resolver_might_read_differently_are_refused() {
        for text in [
            "127.1:80",
            "0x7f000001:80",
            "2130706433:80",
            "a b:1",
            "user@host:1",
            "host:0",
            "host:65536",
            "host",
            "::1:80",
            "[::1:80",
            ":80",
            "a..b:1",
        ] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
        assert!("*:1".parse::<Endpoint>().is_err(), "a target is one target");
    }

    #[test]
    fn what_nobody_asks_for_is_not_given() {
        let request = |capability| CapabilityRequest { capability, required: false, reason: "Why.".into() };
        let asked = [request(Capability::Store { quota: 1 }), request(Capability::Notify {})];
        let given = Grants::bundled().asked_for(&asked);
        assert_eq!(given, Grants { store: BUNDLED_STORE, notify: true, ..Grants::default() });
        assert_eq!(Grants::bundled().asked_for(&[]), Grants::default());
    }

    #[test]
    fn patterns_print_as_they_are_read() {
        for text in ["127.0.0.1:9000", "*:*", "[::1]:*", "desk.local:8000"] {
            assert_eq!(text.parse::<EndpointPattern>().unwrap().to_string(), text);
        }
    }
}
