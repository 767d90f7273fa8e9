//! Bindings: which configured alias a port gets, and what its events are called.

use conductor_engine::DeviceId;
use regex::Regex;

use super::{PortInfo, Protocol};

/// How a binding recognises a port by its name.
#[derive(Debug, Clone)]
pub enum NameMatcher {
    /// The whole name.
    Exact(String),
    /// A part of the name, without regard to case.
    Contains(String),
    /// A regular expression, found anywhere in the name. Linear in the name's length.
    Regex(Regex),
}

impl NameMatcher {
    /// Whether the port's name fits.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => name == exact,
            Self::Contains(part) => name.to_lowercase().contains(&part.to_lowercase()),
            Self::Regex(regex) => regex.is_match(name),
        }
    }
}

/// A configured binding, as the ports side needs it.
#[derive(Debug, Clone)]
pub struct BindingSpec {
    /// The name that events get.
    pub alias: String,
    /// What its ports speak.
    pub protocol: Protocol,
    /// Any of these makes a port match.
    pub matchers: Vec<NameMatcher>,
    /// Where an OSC binding listens: a host to bind, and a UDP port.
    pub listen: Option<(String, u16)>,
}

impl BindingSpec {
    /// The address that an OSC binding listens at, as it names the port.
    pub fn listen_name(&self) -> Option<String> {
        self.listen
            .as_ref()
            .map(|(host, port)| if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
    }

    fn matches(&self, port: &PortInfo) -> bool {
        self.protocol == port.protocol
            && match self.protocol {
                Protocol::Midi => self.matchers.iter().any(|matcher| matcher.matches(&port.name)),
                Protocol::Osc => self.listen_name().as_deref() == Some(&port.name),
            }
    }
}

/// What became of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The port.
    pub port: PortInfo,
    /// What its events are called: the alias, or the port's name, with `#2`, `#3` for twins.
    pub device: DeviceId,
    /// The binding, where one matches.
    pub binding: Option<String>,
    /// The binding that would match, had not an earlier port taken it.
    pub contested: Option<String>,
}

/// Gives every port its device name. The first port that matches an alias takes it; later ones keep
/// their own name and are marked. Ports of one direction only: an input and an output may share an
/// alias.
pub fn resolve(ports: &[PortInfo], bindings: &[BindingSpec]) -> Vec<Resolved> {
    let mut taken: Vec<&str> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    ports
        .iter()
        .map(|port| {
            let found = bindings.iter().find(|binding| binding.matches(port)).map(|binding| binding.alias.as_str());
            match found {
                Some(alias) if !taken.contains(&alias) => {
                    taken.push(alias);
                    Resolved {
                        port: port.clone(),
                        device: DeviceId::new(alias),
                        binding: Some(alias.to_owned()),
                        contested: None,
                    }
                }
                _ => {
                    let instance = names.iter().filter(|name| **name == port.name).count();
                    names.push(&port.name);
                    Resolved {
                        port: port.clone(),
                        device: DeviceId::instance(&port.name, instance),
                        binding: None,
                        contested: found.map(str::to_owned),
                    }
                }
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Direction;
    use super::*;

    fn port(name: &str) -> PortInfo {
        PortInfo {
            name: name.into(),
            key: name.into(),
            backend: "test",
            protocol: Protocol::Midi,
            direction: Direction::Input,
        }
    }

    fn binding(alias: &str, matcher: NameMatcher) -> BindingSpec {
        BindingSpec { alias: alias.into(), protocol: Protocol::Midi, matchers: vec![matcher], listen: None }
    }

    fn devices(ports: &[&str], bindings: &[BindingSpec]) -> Vec<String> {
        let ports: Vec<_> = ports.iter().map(|name| port(name)).collect();
        resolve(&ports, bindings).iter().map(|resolved| resolved.device.to_string()).collect()
    }

    #[test]
    fn each_kind_of_matcher_finds_its_port() {
        let bindings = [
            binding("pads", NameMatcher::Exact("Maschine".into())),
            binding("keys", NameMatcher::Contains("keystep".into())),
            #[expect(clippy::unwrap_used, reason = "a fixed pattern")]
            binding("nano", NameMatcher::Regex(Regex::new("^nano(KONTROL|PAD)2$").unwrap())),
        ];
        assert_eq!(
            devices(&["Maschine", "Maschine 2", "Arturia KeyStep 37", "nanoPAD2"], &bindings),
            ["pads", "Maschine 2", "keys", "nanoPAD2"].map(|name| if name == "nanoPAD2" { "nano" } else { name })
        );
    }

    #[test]
    fn twins_keep_apart_and_the_second_does_not_take_the_alias() {
        let bindings = [binding("pads", NameMatcher::Contains("Pad".into()))];
        let ports = [port("Pad"), port("Pad"), port("Pad")];
        let resolved = resolve(&ports, &bindings);
        assert_eq!(resolved.iter().map(|r| r.device.as_str()).collect::<Vec<_>>(), ["pads", "Pad", "Pad #2"]);
        assert_eq!(resolved[1].contested.as_deref(), Some("pads"));
    }

    #[test]
    fn a_protocol_only_matches_its_own_bindings() {
        let osc = BindingSpec {
            alias: "touch".into(),
            protocol: Protocol::Osc,
            matchers: vec![],
            listen: Some(("127.0.0.1".into(), 9000)),
        };
        let mut endpoint = port("127.0.0.1:9000");
        endpoint.protocol = Protocol::Osc;
        assert_eq!(resolve(&[endpoint], std::slice::from_ref(&osc))[0].device.as_str(), "touch");
        assert_eq!(resolve(&[port("127.0.0.1:9000")], &[osc])[0].binding, None);
    }
}
