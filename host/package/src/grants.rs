//! Grants: the capabilities that a person granted to a feature, and those in effect.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capability::{Capability, CapabilityKind, CapabilityRequest, is_wildcard, join};
use crate::program::Program;
use conductor_net::endpoint::EndpointPattern;
use conductor_net::http_scope::{HostPattern, SecretGrant};

/// What a person (or the policy for bundled features) gave to one feature, as the configuration writes it under
/// `[features.NAME.grants]`. Default: nothing.
///
/// What holds is what is both in here and in the descriptor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Grants {
    /// Where it may send UDP packets: `"host:port"`, or `"host:*"` for every port of the host.
    /// Default: nowhere.
    pub udp: Vec<EndpointPattern>,

    /// Hosts that it may send HTTP requests to: `"api.example.com"`, `"localhost:8080"`. Default:
    /// nowhere.
    pub http: Vec<HostPattern>,

    /// Secrets that the host may put into its requests, and the hosts that they may go to.
    /// Default: none.
    pub secrets: Vec<SecretGrant>,

    /// Folders. Default: none.
    pub files: Vec<FolderGrant>,

    /// Git repositories, to read what was committed there. Default: none.
    pub git: Vec<RepositoryGrant>,

    /// Programs that it may have run, with the whole path and all arguments. Each is run apart: it can't write, and reads
    /// what it is handed and the system's own folders. Words in front of the path say what else it reaches: `network`, and
    /// `read=/A/PATH` for a file or a folder; `NAME=value` is a variable of its environment. Default: none.
    pub programs: Vec<Program>,

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

    /// Models that it may ask, by their names under `[models]`; `"*"` for every one. Default: none.
    pub models: Vec<String>,

    /// Tokens per minute that it may have them read and write, together. Default: 0, for none.
    #[schemars(range(max = 10_000_000))]
    pub model_tokens: u32,

    /// Whether it may act at times of its own, after an event. Default: false.
    pub timers: bool,

    /// Whether it may show notifications. Default: false.
    pub notify: bool,

    /// Whether it may raise alerts. Default: false.
    pub alert: bool,
}

/// A folder that a feature may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FolderGrant {
    /// Which of the feature's requests it answers.
    pub purpose: String,

    /// The folder.
    pub path: PathBuf,

    /// Whether the feature may make, replace and remove files there. Default: false.
    #[serde(default)]
    pub write: bool,
}

/// A git repository that a feature may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepositoryGrant {
    /// Which of the feature's requests it answers.
    pub purpose: String,

    /// The folder that holds the repository, `.git` and all.
    pub path: PathBuf,
}

/// The store that bundled features get: 1 MiB.
const BUNDLED_STORE: u64 = 1024 * 1024;

impl Grants {
    /// What bundled features get without being asked for: this machine's own targets, and what stays within the
    /// host.
    ///
    /// The one wildcard is for the ports of this machine: programs that speak OSC or Art-Net choose theirs as
    /// they like, what listens there was started by this user, and the first mapping of a beginner is to work
    /// without a grant. No event, no output, no model and no other machine is among it.
    pub fn bundled() -> Self {
        let here = ["127.0.0.1", "::1", "localhost"].map(EndpointPattern::every_port_of).to_vec();
        Self {
            udp: here,
            store: BUNDLED_STORE,
            config_read: true,
            config_propose: true,
            discover_ports: true,
            background_task: true,
            timers: true,
            alert: true,
            notify: true,
            ..Self::default()
        }
    }

    /// Whether this kind of capability is granted, of those that are granted as a whole. False for others.
    fn flag(&self, kind: CapabilityKind) -> bool {
        match kind {
            CapabilityKind::ConfigRead => self.config_read,
            CapabilityKind::ConfigPropose => self.config_propose,
            CapabilityKind::DiscoverPorts => self.discover_ports,
            CapabilityKind::BackgroundTask => self.background_task,
            CapabilityKind::Timers => self.timers,
            CapabilityKind::Alert => self.alert,
            CapabilityKind::Notify => self.notify,
            _ => false,
        }
    }

    /// The same to be set. `None` for kinds that name targets or an amount.
    fn flag_mut(&mut self, kind: CapabilityKind) -> Option<&mut bool> {
        Some(match kind {
            CapabilityKind::ConfigRead => &mut self.config_read,
            CapabilityKind::ConfigPropose => &mut self.config_propose,
            CapabilityKind::DiscoverPorts => &mut self.discover_ports,
            CapabilityKind::BackgroundTask => &mut self.background_task,
            CapabilityKind::Timers => &mut self.timers,
            CapabilityKind::Alert => &mut self.alert,
            CapabilityKind::Notify => &mut self.notify,
            _ => return None,
        })
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
                Capability::GitSnapshot { purpose, path: Some(path) } => {
                    grants.git.push(RepositoryGrant { purpose: purpose.clone(), path: path.clone() });
                }
                Capability::Files { path: None, .. } | Capability::GitSnapshot { path: None, .. } => {}
                Capability::RunProgram { programs } => join(&mut grants.programs, programs),
                Capability::MidiOut { bindings, sysex } => {
                    join(&mut grants.midi_out, bindings);
                    grants.sysex |= sysex;
                }
                Capability::ObserveEvents { bindings } => join(&mut grants.observe_events, bindings),
                Capability::UseModel { models, tokens } => {
                    join(&mut grants.models, models);
                    grants.model_tokens = grants.model_tokens.max(*tokens);
                }
                whole => grants.flag_mut(whole.kind()).into_iter().for_each(|flag| *flag = true),
            }
        }
        grants
    }

    /// The same as capabilities, for showing. UDP targets and HTTP hosts are for every purpose: theirs is empty.
    pub fn capabilities(&self) -> Vec<Capability> {
        let mut list = Vec::new();
        if !self.udp.is_empty() || !self.http.is_empty() {
            let (udp, http) = (self.udp.clone(), self.http.clone());
            list.push(Capability::Network { purpose: String::new(), udp, http });
        }
        list.extend(
            self.secrets.iter().map(|grant| Capability::Secret { id: grant.id.clone(), hosts: grant.hosts.clone() }),
        );
        list.extend(self.files.iter().map(|grant| Capability::Files {
            purpose: grant.purpose.clone(),
            write: grant.write,
            path: Some(grant.path.clone()),
        }));
        list.extend(
            self.git.iter().map(|grant| Capability::GitSnapshot {
                purpose: grant.purpose.clone(),
                path: Some(grant.path.clone()),
            }),
        );
        let programs = || Capability::RunProgram { programs: self.programs.clone() };
        let midi = || Capability::MidiOut { bindings: self.midi_out.clone(), sysex: self.sysex };
        let events = || Capability::ObserveEvents { bindings: self.observe_events.clone() };
        let models = || Capability::UseModel { models: self.models.clone(), tokens: self.model_tokens };
        list.extend((!self.programs.is_empty()).then(programs));
        list.extend((self.store > 0).then_some(Capability::Store { quota: self.store }));
        list.extend((!self.midi_out.is_empty() || self.sysex).then(midi));
        list.extend((!self.observe_events.is_empty()).then(events));
        list.extend((!self.models.is_empty()).then(models));
        let whole = CapabilityKind::ALL.into_iter().filter(|kind| self.flag(*kind));
        list.extend(whole.filter_map(|kind| Some(kind.as_whole()?.0)));
        list
    }

    /// Both grants together.
    pub fn union(mut self, more: &Self) -> Self {
        join(&mut self.udp, &more.udp);
        join(&mut self.http, &more.http);
        for SecretGrant { id, hosts } in &more.secrets {
            match self.secrets.iter_mut().find(|held| held.id == *id) {
                Some(held) => join(&mut held.hosts, hosts),
                None => self.secrets.push(SecretGrant { id: id.clone(), hosts: hosts.clone() }),
            }
        }
        join(&mut self.files, &more.files);
        join(&mut self.git, &more.git);
        join(&mut self.programs, &more.programs);
        join(&mut self.midi_out, &more.midi_out);
        join(&mut self.observe_events, &more.observe_events);
        join(&mut self.models, &more.models);
        self.model_tokens = self.model_tokens.max(more.model_tokens);
        self.store = self.store.max(more.store);
        self.sysex |= more.sysex;
        for kind in CapabilityKind::ALL {
            self.flag_mut(kind).into_iter().for_each(|flag| *flag |= more.flag(kind));
        }
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
        self.secrets.retain(|secret| names(CapabilityKind::Secret, &secret.id));
        self.files.retain(|folder| names(CapabilityKind::Files, &folder.purpose));
        self.git.retain(|repository| names(CapabilityKind::GitSnapshot, &repository.purpose));
        if !asks(CapabilityKind::RunProgram) {
            self.programs.clear();
        }
        if !asks(CapabilityKind::Store) {
            self.store = 0;
        }
        if !asks(CapabilityKind::MidiOut) {
            self.midi_out.clear();
            self.sysex = false;
        }
        if !asks(CapabilityKind::ObserveEvents) {
            self.observe_events.clear();
        }
        if !asks(CapabilityKind::UseModel) {
            self.models.clear();
            self.model_tokens = 0;
        }
        for kind in CapabilityKind::ALL {
            self.flag_mut(kind).into_iter().for_each(|flag| *flag &= asks(kind));
        }
        self
    }

    /// Each request as far as it is granted here; those without a grant are left out.
    pub fn held(&self, requests: &[CapabilityRequest]) -> Vec<CapabilityRequest> {
        let granted = self.capabilities();
        let held = |request: &CapabilityRequest| {
            // Targets are granted for every purpose.
            let of_purpose = |granted: &Capability| match (granted, &request.capability) {
                (Capability::Network { udp, http, .. }, Capability::Network { purpose, .. }) => {
                    Capability::Network { purpose: purpose.clone(), udp: udp.clone(), http: http.clone() }
                }
                _ => granted.clone(),
            };
            let granted: Vec<Capability> = granted.iter().map(of_purpose).collect();
            let capability = request.capability.within(&granted.iter().collect::<Vec<_>>())?;
            Some(CapabilityRequest { capability, ..request.clone() })
        };
        requests.iter().filter_map(held).collect()
    }

    /// The keys of what is granted here and no request asks for, such as `secret:lamp-key`; `udp` and `http` for network.
    pub fn not_asked_for(&self, requests: &[CapabilityRequest]) -> Vec<String> {
        let kept = self.clone().asked_for(requests);
        let network = [("udp", self.udp != kept.udp), ("http", self.http != kept.http)];
        let network = network.into_iter().filter(|(_, is_left)| *is_left).map(|(key, _)| key.to_owned());
        let asked = kept.capabilities();
        let others = self.capabilities().into_iter().filter(|granted| granted.kind() != CapabilityKind::Network);
        network.chain(others.filter(|granted| !asked.contains(granted)).map(|granted| granted.key())).collect()
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
            Capability::GitSnapshot { purpose, .. } => self.git.iter().any(|repository| repository.purpose == *purpose),
            Capability::RunProgram { .. } => !self.programs.is_empty(),
            Capability::MidiOut { .. } => !self.midi_out.is_empty(),
            Capability::ObserveEvents { .. } => !self.observe_events.is_empty(),
            Capability::UseModel { .. } => !self.models.is_empty() && self.model_tokens > 0,
            whole => self.flag(whole.kind()),
        }
    }

    /// What to write under `[features.NAME.grants]` for `capability`.
    pub fn advice(capability: &Capability) -> String {
        match capability {
            Capability::Network { udp, .. } if !udp.is_empty() => format!("udp = {}", exact(udp, "HOST:PORT")),
            Capability::Network { http, .. } => format!("http = {}", exact(http, "HOST")),
            Capability::Secret { id, hosts } => {
                format!("secrets = [{{ id = \"{id}\", hosts = {} }}]", exact(hosts, "HOST"))
            }
            Capability::Store { quota } => format!("store = {quota}"),
            Capability::Files { purpose, write, .. } => {
                format!("files = [{{ purpose = \"{purpose}\", path = \"/folder\", write = {write} }}]")
            }
            Capability::GitSnapshot { purpose, .. } => {
                format!("git = [{{ purpose = \"{purpose}\", path = \"/folder\" }}]")
            }
            Capability::RunProgram { .. } => format!("programs = [{:?}]", capability.example()),
            Capability::MidiOut { bindings, .. } => format!("midi_out = {}", exact(bindings, "BINDING")),
            Capability::ObserveEvents { bindings } => format!("observe_events = {}", exact(bindings, "BINDING")),
            Capability::UseModel { models, tokens } => {
                format!("models = {}, model_tokens = {tokens}", exact(models, "MODEL"))
            }
            other => format!("{} = true", other.kind().as_str().replace('-', "_")),
        }
    }
}

impl Capability {
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

impl CapabilityRequest {
    /// The part of it that features which come with the host get without being asked for.
    pub fn preapproved(&self) -> Option<Self> {
        self.capability.preapproved().map(|capability| self.with(capability))
    }
}

/// The named ones of these as a list; a placeholder in it for wildcards, which advice never proposes.
fn exact<T: ToString>(targets: &[T], placeholder: &str) -> String {
    let named: Vec<String> = targets.iter().map(T::to_string).filter(|target| !is_wildcard(target)).collect();
    if named.is_empty() { format!("[{placeholder:?}]") } else { format!("{named:?}") }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_asks_for_is_not_given() {
        let request = |capability| CapabilityRequest { capability, required: false, reason: "Why.".into() };
        let asked = [request(Capability::Store { quota: 1 }), request(Capability::Notify {})];
        let given = Grants::bundled().asked_for(&asked);
        assert_eq!(given, Grants { store: BUNDLED_STORE, notify: true, ..Grants::default() });
        assert_eq!(Grants::bundled().asked_for(&[]), Grants::default());
        assert_eq!(given.not_asked_for(&asked), [""; 0]);
    }

    #[test]
    fn a_secret_of_two_grants_goes_to_the_hosts_of_both() {
        let secret = |host: &str| SecretGrant { id: "key".into(), hosts: vec![host.parse().unwrap()] };
        let grants = |host: &str| Grants { secrets: vec![secret(host)], ..Grants::default() };
        let both = grants("a.example").union(&grants("b.example")).union(&grants("a.example"));
        let hosts = ["a.example", "b.example"].map(|host| host.parse().unwrap()).to_vec();
        assert_eq!(both.secrets, [SecretGrant { id: "key".into(), hosts }]);
    }

    #[test]
    fn a_request_is_held_as_far_as_it_is_granted_for_whatever_purpose() {
        let request = |capability| CapabilityRequest { capability, required: false, reason: "Why.".into() };
        let network = |purpose: &str, hosts: &[&str]| {
            let http = hosts.iter().map(|host| host.parse().unwrap()).collect();
            request(Capability::Network { purpose: purpose.into(), udp: Vec::new(), http })
        };
        let asked = [network("chat", &["a.example", "b.example"]), request(Capability::Alert {})];
        let grants = Grants {
            http: vec!["a.example".parse().unwrap(), "c.example".parse().unwrap()],
            store: 9,
            ..Grants::default()
        };
        assert_eq!(grants.held(&asked), [network("chat", &["a.example"])]);
        assert_eq!(Grants { alert: true, ..Grants::default() }.held(&asked), asked[1..]);
    }

    #[test]
    fn what_is_granted_as_a_whole_is_found_under_its_kind() {
        for kind in CapabilityKind::ALL {
            let mut grants = Grants::default();
            assert_eq!(grants.flag_mut(kind).is_some(), kind.as_whole().is_some(), "{kind}");
            let Some((capability, _)) = kind.as_whole() else { continue };
            assert_eq!(capability.kind(), kind);
            let asked = [CapabilityRequest { capability: capability.clone(), required: false, reason: "Why.".into() }];
            let granted = Grants::of(&asked);
            assert!(granted.answers(&capability) && !Grants::default().answers(&capability), "{kind}");
            assert_eq!(granted.capabilities(), [capability]);
            assert_eq!(Grants::default().union(&granted), granted);
            assert_eq!(granted.clone().asked_for(&asked), granted);
            // As a person writes it: `config-read` is `config_read = true`.
            let written = Grants::advice(&asked[0].capability);
            assert_eq!(toml::from_str::<Grants>(&written).unwrap(), granted, "{written}");
        }
    }
}
