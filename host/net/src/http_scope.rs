//! The HTTP allow-list of a grant: hosts, and secrets for some of them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::endpoint::{checked_host, split};

/// What one grant of HTTP allows. The default allows nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpScope {
    /// Where requests may go.
    pub hosts: Vec<HostPattern>,
    /// Secrets that requests may carry.
    pub secrets: Vec<SecretGrant>,
}

/// A secret that a feature may have put into its requests. It never sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretGrant {
    /// Which: the id that the feature asks for.
    pub id: String,
    /// Where it may go to; each has to be granted under `http`, too.
    pub hosts: Vec<HostPattern>,
}

/// `host` or `host:port`. Without a port it is the scheme's own: 443, or 80 for `http`.
///
/// A descriptor may write `*` where only a person can name the hosts. It covers no site by itself: a grant
/// has to name one.
///
/// A host is an IP address (IPv6 in brackets) or a name, compared without regard to case and never
/// resolved for comparison. Names beyond ASCII are written as they are resolved: `xn--...`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String", inline, extend("format" = "http-host"))]
pub struct HostPattern {
    /// Without brackets, lower case.
    host: String,
    /// `None` if it is the scheme's default port.
    port: Option<u16>,
}

/// The text is neither `host` nor `host:port`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a host; write host or host:port, such as api.example.com, localhost:8080, [::1]:8080")]
pub struct HostError(String);

/// Where one request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Without brackets, lower case.
    pub host: String,
    /// 1-65535.
    pub port: u16,
    /// Whether the scheme is `https`; `http` otherwise.
    pub secure: bool,
}

impl HttpScope {
    /// Whether requests may go to `site`.
    pub fn covers(&self, site: &Site) -> bool {
        self.hosts.iter().any(|pattern| pattern.covers(site))
    }

    /// Whether the grant names `address` itself, at the port and scheme of `site`.
    pub fn covers_address(&self, address: IpAddr, site: &Site) -> bool {
        self.covers(&Site { host: address.to_string(), ..site.clone() })
    }

    /// Whether the secret `id` may go to `site`.
    pub fn covers_secret(&self, id: &str, site: &Site) -> bool {
        self.secrets.iter().any(|secret| secret.id == id && secret.hosts.iter().any(|pattern| pattern.covers(site)))
    }
}

impl HostPattern {
    /// Whether `site` is what this names.
    pub fn covers(&self, site: &Site) -> bool {
        !self.is_any() && self.host == site.host && self.port_or(site.secure) == site.port
    }

    /// Whether it stands for hosts that a person has to name.
    pub fn is_any(&self) -> bool {
        self.host == "*"
    }

    /// Whether `granted` names a host within this one.
    pub fn includes(&self, granted: &Self) -> bool {
        !granted.is_any() && (self.is_any() || self == granted)
    }

    /// The host: without brackets, lower case.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port that it names, or the scheme's own.
    pub fn port_or(&self, secure: bool) -> u16 {
        self.port.unwrap_or(if secure { 443 } else { 80 })
    }
}

impl FromStr for HostPattern {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let error = || HostError(text.to_owned());
        if text == "*" {
            return Ok(Self { host: text.to_owned(), port: None });
        }
        let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let (host, port) = match inner {
            Some(host) => (host, None),
            None if !text.contains(':') => (text, None),
            None => {
                let (host, port) = split(text).ok_or_else(error)?;
                (host, Some(port.parse().ok().filter(|port| *port != 0).ok_or_else(error)?))
            }
        };
        Ok(Self { host: checked_host(host).ok_or_else(error)?, port })
    }
}

fn write_host(f: &mut fmt::Formatter<'_>, host: &str) -> fmt::Result {
    if host.contains(':') { write!(f, "[{host}]") } else { f.write_str(host) }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_host(f, &self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Without the port where it is the scheme's own.
impl From<&Site> for HostPattern {
    fn from(site: &Site) -> Self {
        let own = if site.secure { 443 } else { 80 };
        Self { host: site.host.clone(), port: (site.port != own).then_some(site.port) }
    }
}

/// As the grant for it is written.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HostPattern::from(self).fmt(f)
    }
}

impl Serialize for HostPattern {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HostPattern {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(pattern: &str, host: &str, port: u16, secure: bool) -> bool {
        pattern.parse::<HostPattern>().unwrap().covers(&Site { host: host.into(), port, secure })
    }

    #[test]
    fn a_host_stands_for_itself_at_the_schemes_port() {
        assert!(covers("api.example.com", "api.example.com", 443, true));
        assert!(covers("API.Example.com:8443", "api.example.com", 8443, true));
        assert!(covers("localhost", "localhost", 80, false));
        assert!(covers("[::1]:8080", "::1", 8080, false));
        assert!(covers("[0:0::1]", "::1", 443, true));
        assert!(!covers("api.example.com", "api.example.com", 8443, true));
        assert!(!covers("api.example.com:8443", "api.example.com", 443, true));
        assert!(!covers("example.com", "api.example.com", 443, true), "a name does not stand for what is below it");
        assert!(!covers("localhost", "127.0.0.1", 80, false), "a name does not stand for its address");
    }

    #[test]
    fn any_host_is_for_a_person_to_name() {
        let pattern = |text: &str| text.parse::<HostPattern>().unwrap();
        assert!(pattern("*").includes(&pattern("api.example.com")));
        assert!(!pattern("*").includes(&pattern("*")), "naming none is naming none");
        assert!(!covers("*", "api.example.com", 443, true) && !covers("*", "*", 443, true));
    }

    #[test]
    fn a_pattern_prints_as_it_is_read() {
        for text in ["api.example.com", "api.example.com:8443", "[::1]", "[::1]:8080", "127.0.0.1:80"] {
            assert_eq!(text.parse::<HostPattern>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_a_resolver_might_read_differently_is_no_host() {
        for text in [
            "",
            "*:80",
            "*.example.com",
            "https://example.com",
            "example.com/",
            "a@b.c",
            "example.com.",
            "127.1",
            "0x7f.1",
            "2130706433",
            "::1",
            "[::1",
            "::1]",
            "host:",
            "host:0",
            "host:65536",
            "host:*",
            "bücher.example",
            "a b",
        ] {
            assert!(text.parse::<HostPattern>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_secret_is_for_its_own_hosts() {
        let scope: HttpScope = toml::from_str(
            r#"
            hosts = ["api.example.com", "other.example.com"]
            secrets = [{ id = "key", hosts = ["api.example.com"] }]
            "#,
        )
        .unwrap();
        let at = |host: &str| Site { host: host.into(), port: 443, secure: true };
        assert!(scope.covers_secret("key", &at("api.example.com")));
        assert!(!scope.covers_secret("key", &at("other.example.com")));
        assert!(!scope.covers_secret("another", &at("api.example.com")));
    }
}
