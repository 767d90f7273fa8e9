//! Network targets: `host:port`, one or a set of them.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A set of network targets: `host:port`, where either side may be `*`.
///
/// A host is an IP address (IPv6 in brackets) or a name, compared without regard to case and never
/// resolved for comparison: a grant for a name does not cover the address it resolves to.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String", inline, extend("format" = "udp-destination"))]
pub struct EndpointPattern {
    /// `None` if any host matches. Without brackets, lower case.
    host: Option<String>,
    /// `None` if any port matches.
    port: Option<u16>,
}

/// The text is not `host:port`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a target; write host:port, such as 127.0.0.1:9000, [::1]:9000, desk.local:8000{1}")]
pub struct EndpointError(String, &'static str);

impl EndpointPattern {
    /// Every port of a host, which is written without brackets and in lower case.
    pub fn every_port_of(host: &str) -> Self {
        Self { host: Some(host.to_owned()), port: None }
    }

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
pub fn checked_host(host: &str) -> Option<String> {
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
    fn patterns_print_as_they_are_read() {
        for text in ["127.0.0.1:9000", "*:*", "[::1]:*", "desk.local:8000"] {
            assert_eq!(text.parse::<EndpointPattern>().unwrap().to_string(), text);
        }
    }
}
