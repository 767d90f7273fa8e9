//! Capabilities: what a feature asks for, what a person gave, and what holds in the end.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One entry of `[[capabilities]]` in a descriptor: something the feature asks to use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CapabilityRequest {
    /// Datagrams to UDP targets. The grant is opened by `purpose`.
    Network {
        /// A short name for what the feature does with it, such as `osc`. Unique in a descriptor.
        purpose: String,
        /// The widest set of targets that the feature may ever be given.
        udp: Vec<EndpointPattern>,
        /// Whether the feature is useless without it.
        #[serde(default = "yes")]
        required: bool,
        /// Why, in a sentence for the person who grants it.
        reason: String,
    },
    /// Short messages to the person.
    Alert {
        /// Whether the feature is useless without it.
        #[serde(default)]
        required: bool,
        /// Why, in a sentence for the person who grants it.
        reason: String,
    },
    /// Durable facts that a model may see.
    Notify {
        /// Whether the feature is useless without it.
        #[serde(default)]
        required: bool,
        /// Why, in a sentence for the person who grants it.
        reason: String,
    },
}

const fn yes() -> bool {
    true
}

impl CapabilityRequest {
    /// The word that descriptors, errors and listings use.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Network { .. } => "network",
            Self::Alert { .. } => "alert",
            Self::Notify { .. } => "notify",
        }
    }

    /// Whether the feature can't be installed without a grant for it.
    pub const fn required(&self) -> bool {
        match self {
            Self::Network { required, .. } | Self::Alert { required, .. } | Self::Notify { required, .. } => *required,
        }
    }

    /// Why the feature asks, in its author's words.
    pub fn reason(&self) -> &str {
        match self {
            Self::Network { reason, .. } | Self::Alert { reason, .. } | Self::Notify { reason, .. } => reason,
        }
    }

    /// What tells it from others of its kind in one descriptor, where there may be several.
    pub fn purpose(&self) -> Option<&str> {
        match self {
            Self::Network { purpose, .. } => Some(purpose),
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

    /// What it is limited to, as words that a person may grant one by one. Empty for what is
    /// granted as a whole.
    pub fn scope(&self) -> Vec<String> {
        match self {
            Self::Network { udp, .. } => udp.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    }

    /// The same request, limited to these words. Words that can't be read are left out.
    fn with_scope(&self, words: &[String]) -> Self {
        let mut narrow = self.clone();
        match &mut narrow {
            Self::Network { udp, .. } => *udp = words.iter().filter_map(|word| word.parse().ok()).collect(),
            Self::Alert { .. } | Self::Notify { .. } => {}
        }
        narrow
    }

    /// Whether the thing that this word names lies within this request's scope.
    fn covers(&self, word: &str) -> bool {
        match self {
            Self::Network { udp, .. } => {
                word.parse().is_ok_and(|narrow| udp.iter().any(|pattern| pattern.includes(&narrow)))
            }
            Self::Alert { .. } | Self::Notify { .. } => false,
        }
    }

    /// The part of it that features which come with the host get without being asked for.
    pub fn preapproved(&self) -> Option<Self> {
        let policy = Grants::bundled();
        match self {
            Self::Network { .. } => {
                let policy: Vec<String> = policy.udp.iter().map(ToString::to_string).collect();
                self.within(&[self.with_scope(&policy)])
            }
            _ => policy.answers(self).then(|| self.clone()),
        }
    }

    /// The same request, limited to one thing that lies within its scope.
    ///
    /// # Errors
    /// What it asks for instead, in words.
    pub fn narrowed(&self, word: &str) -> Result<Self, String> {
        if self.covers(word) {
            return Ok(self.with_scope(&[word.to_owned()]));
        }
        let scope = self.scope();
        Err(if scope.is_empty() {
            format!("{} is granted as a whole; write it without ={word}", self.key())
        } else {
            format!("{} does not ask for {word}, only for {}", self.key(), scope.join(", "))
        })
    }

    /// Whether both ask for the same, however wide.
    pub fn is_like(&self, other: &Self) -> bool {
        self.kind() == other.kind() && self.purpose() == other.purpose()
    }

    /// The part of it that `granted` allows; none where that is nothing.
    pub fn within(&self, granted: &[Self]) -> Option<Self> {
        let scope = self.scope();
        let mut alike = granted.iter().filter(|grant| grant.is_like(self)).peekable();
        alike.peek()?;
        if scope.is_empty() {
            return Some(self.clone());
        }
        let mut words = Vec::new();
        for grant in alike {
            words.extend(scope.iter().filter(|word| grant.covers(word)).cloned());
            words.extend(grant.scope().into_iter().filter(|word| self.covers(word)));
        }
        let mut seen = Vec::new();
        words.retain(|word| {
            !seen.contains(word) && {
                seen.push(word.clone());
                true
            }
        });
        (!words.is_empty()).then(|| self.with_scope(&words))
    }

    /// The part of it that `granted` does not allow; none where it allows everything.
    pub fn beyond(&self, granted: &[Self]) -> Option<Self> {
        let alike: Vec<&Self> = granted.iter().filter(|grant| grant.is_like(self)).collect();
        let scope = self.scope();
        if alike.is_empty() {
            return Some(self.clone());
        }
        let missing: Vec<String> =
            scope.into_iter().filter(|word| !alike.iter().any(|grant| grant.covers(word))).collect();
        (!missing.is_empty()).then(|| self.with_scope(&missing))
    }

    /// Puts a grant into a list, together with one that is like it.
    pub fn merge(list: &mut Vec<Self>, grant: Self) {
        match list.iter_mut().find(|held| held.is_like(&grant)) {
            Some(held) => {
                let mut words = held.scope();
                words.extend(grant.scope().into_iter().filter(|word| !held.covers(word)));
                *held = held.with_scope(&words);
            }
            None => list.push(grant),
        }
    }

    /// This grant without one thing of its scope; none where nothing is left.
    pub fn without(&self, word: &str) -> Option<Self> {
        let words: Vec<String> = self.scope().into_iter().filter(|held| held != word).collect();
        (!words.is_empty()).then(|| self.with_scope(&words))
    }
}

/// A set of UDP targets: `host:port`, where either side may be `*`.
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

    /// Whether every endpoint within `narrow` lies within this pattern.
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

/// One UDP target, as a guest names it.
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
fn split(text: &str) -> Option<(&str, &str)> {
    let (host, port) = text.rsplit_once(':')?;
    match host.strip_prefix('[') {
        Some(inner) => Some((inner.strip_suffix(']')?, port)),
        None if host.contains(':') => None,
        None => Some((host, port)),
    }
}

/// Addresses in their one spelling, names in lower case. Anything else that a resolver might read
/// as something different (`127.1`, `0x7f000001`, user parts, blanks) is refused.
fn checked_host(host: &str) -> Option<String> {
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

/// What a person (or the policy for bundled features) gave to one feature.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Grants {
    /// UDP targets, for every purpose that the descriptor requests.
    pub udp: Vec<EndpointPattern>,
    /// Alerts.
    pub alert: bool,
    /// Notifications.
    pub notify: bool,
}

impl Grants {
    /// What bundled features get without being asked for: targets on this machine.
    pub fn bundled() -> Self {
        let local = |host: &str| EndpointPattern { host: Some(host.to_owned()), port: None };
        Self { udp: vec![local("127.0.0.1"), local("::1"), local("localhost")], alert: true, notify: true }
    }

    /// What a list of granted requests comes to.
    pub fn of(granted: &[CapabilityRequest]) -> Self {
        let mut grants = Self::default();
        for grant in granted {
            match grant {
                CapabilityRequest::Network { udp, .. } => grants.udp.extend(udp.iter().cloned()),
                CapabilityRequest::Alert { .. } => grants.alert = true,
                CapabilityRequest::Notify { .. } => grants.notify = true,
            }
        }
        grants
    }

    /// Both grants together.
    pub fn union(mut self, more: &Self) -> Self {
        for pattern in &more.udp {
            if !self.udp.contains(pattern) {
                self.udp.push(pattern.clone());
            }
        }
        self.alert |= more.alert;
        self.notify |= more.notify;
        self
    }

    /// Whether `request` was granted in any part.
    pub fn answers(&self, request: &CapabilityRequest) -> bool {
        match request {
            CapabilityRequest::Network { .. } => !self.udp.is_empty(),
            CapabilityRequest::Alert { .. } => self.alert,
            CapabilityRequest::Notify { .. } => self.notify,
        }
    }
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

    fn network(udp: &[&str]) -> CapabilityRequest {
        CapabilityRequest::Network {
            purpose: "lamp".into(),
            udp: udp.iter().map(|pattern| pattern.parse().unwrap()).collect(),
            required: true,
            reason: "Talk.".into(),
        }
    }

    #[test]
    fn only_what_goes_beyond_the_grants_is_asked_for() {
        let alert = CapabilityRequest::Alert { required: false, reason: "Shout.".into() };
        let wider = network(&["10.0.0.1:5", "10.0.0.2:*", "*:9"]);
        assert_eq!(wider.beyond(&[]), Some(wider.clone()));
        assert_eq!(wider.beyond(std::slice::from_ref(&alert)), Some(wider.clone()));
        assert_eq!(wider.beyond(&[network(&["10.0.0.1:*", "10.0.0.2:7"])]), Some(network(&["10.0.0.2:*", "*:9"])));
        assert_eq!(wider.beyond(&[network(&["*:*"])]), None);
        assert_eq!(alert.beyond(std::slice::from_ref(&alert)), None);
    }

    #[test]
    fn a_grant_holds_only_as_far_as_it_is_asked_for() {
        let asked = network(&["10.0.0.1:*", "10.0.0.2:5"]);
        assert_eq!(asked.within(&[network(&["10.0.0.1:7", "*:5"])]), Some(network(&["10.0.0.2:5", "10.0.0.1:7"])));
        assert_eq!(asked.within(&[network(&["10.0.0.9:*"])]), None);
        assert_eq!(asked.narrowed("10.0.0.1:80").unwrap(), network(&["10.0.0.1:80"]));
        assert!(asked.narrowed("10.0.0.9:80").unwrap_err().contains("only for 10.0.0.1:*, 10.0.0.2:5"));
        let local = network(&["*:*"]).preapproved().unwrap();
        assert_eq!(local.scope(), ["127.0.0.1:*", "[::1]:*", "localhost:*"]);
    }

    #[test]
    fn grants_come_together_and_apart() {
        let mut list = vec![network(&["10.0.0.1:*"])];
        CapabilityRequest::merge(&mut list, network(&["10.0.0.1:5", "10.0.0.2:5"]));
        assert_eq!(list, [network(&["10.0.0.1:*", "10.0.0.2:5"])]);
        assert_eq!(list[0].without("10.0.0.1:*"), Some(network(&["10.0.0.2:5"])));
        assert_eq!(Grants::of(&list).udp.len(), 2);
    }

    #[test]
    fn patterns_print_as_they_are_read() {
        for text in ["127.0.0.1:9000", "*:*", "[::1]:*", "desk.local:8000"] {
            assert_eq!(text.parse::<EndpointPattern>().unwrap().to_string(), text);
        }
    }
}
