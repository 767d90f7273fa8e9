//! Status and health of ports and bindings, for listings and the API.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::binding::BindingSpec;
use super::plan::PortPlan;
use super::resolve::{BindingState, Resolution};
use super::{Direction, Matcher, PortInfo, Protocol};

/// The state of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PortState {
    /// Open.
    Open,
    /// Not wanted: no binding matches, or no rule sends to it.
    Idle,
    /// It matches this binding as well as another port does. Nothing of it is heard until something tells
    /// them apart.
    Ambiguous(String),
    /// Left alone, as `ignore_ports` says.
    Ignored,
    /// Not opened: there are `max_midi_ports` already.
    OverLimit,
    /// It can't be opened, for this reason.
    Failed(String),
}

/// A port of any protocol, as listings show it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DiscoveredPort {
    /// The port.
    #[serde(flatten)]
    pub port: PortInfo,
    /// What its events are called.
    pub device: String,
    /// Its own name, with `#2`, `#3` where others have the same.
    pub label: String,
    /// The binding that has it; of several that share it by channels, the first.
    pub binding: Option<String>,
    /// All of them.
    pub bindings: Vec<String>,
    /// The most specific matcher that fits this port and no other, as a configuration has it; `null` if no stable
    /// property differs from its twin's.
    pub told_apart_by: Option<Value>,
    /// Whether it is open.
    pub connected: bool,
    /// Its state.
    pub state: PortState,
    /// Whether a device on it is muted.
    pub muted: bool,
    /// Events that went to the engine.
    pub events: u64,
    /// Continuous values that were replaced by newer ones (coalesced): the engine was behind, or the device too fast.
    pub dropped: u64,
    /// Malformed messages.
    pub malformed: u64,
    /// Datagrams that the system dropped: they came faster than they could be read, and its receive buffer was
    /// full. 0 if the system does not report it.
    pub lost: u64,
    /// Events that were discarded: of a muted device, an ambiguous binding, a sender that is not allowed.
    pub unheard: u64,
}

/// Whether a binding has its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Every port that it asks for.
    Green,
    /// Some, or not for certain which, or one that can't be opened.
    Amber,
    /// None.
    Red,
    /// It is switched off.
    Off,
}

impl Health {
    /// The word for it, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Amber => "amber",
            Self::Red => "red",
            Self::Off => "off",
        }
    }
}

/// A binding, as listings show it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct BindingStatus {
    /// Its name.
    pub alias: String,
    /// What its ports speak.
    pub protocol: Protocol,
    /// Whether it has its ports.
    pub health: Health,
    /// The state of its input; `null` if it has no input.
    pub input: Option<SideStatus>,
    /// The state of its output; `null` if it has no output.
    pub output: Option<SideStatus>,
    /// Whether it is muted for now.
    pub muted: bool,
    /// What is wrong and what to do; `null` if nothing is.
    pub help: Option<String>,
}

/// The state of one direction of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SideState {
    /// It has its port.
    Bound,
    /// No present port matches.
    Unbound,
    /// Several match equally well, and none of them is heard.
    Ambiguous,
}

impl SideState {
    /// The word for it, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bound => "bound",
            Self::Unbound => "unbound",
            Self::Ambiguous => "ambiguous",
        }
    }
}

/// One direction of a binding, as listings show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SideStatus {
    /// Its state.
    pub state: SideState,
    /// The labels of the ports that are meant.
    pub ports: Vec<String>,
    /// What told the port that it has, in the words of the configuration.
    pub matched_by: Option<String>,
    /// Why the port can't be used, where it can't.
    pub problem: Option<String>,
}

/// All ports, all bindings, and the backends that can't be reached.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PortsStatus {
    /// Every port of every backend.
    pub ports: Vec<DiscoveredPort>,
    /// Every binding of the configuration.
    pub bindings: Vec<BindingStatus>,
    /// Backends as a whole, with the reason why they can't be used.
    pub unreachable: Vec<(String, String)>,
}

impl PortsStatus {
    /// The status of these ports, which are in the order of the resolution.
    pub(super) fn new(
        plan: &PortPlan,
        resolution: &Resolution,
        mut ports: Vec<DiscoveredPort>,
        ignored: Vec<PortInfo>,
        unreachable: Vec<(String, String)>,
        muted: &HashSet<String>,
    ) -> Self {
        let specs = plan.bindings.iter().enumerate();
        let on =
            specs.map(|(index, spec)| BindingStatus::of(index, spec, resolution, &ports, muted.contains(&spec.alias)));
        let off = plan.disabled.iter().map(|(alias, protocol)| BindingStatus::off(alias, *protocol));
        let bindings = on.chain(off).collect();
        ports.extend(ignored.into_iter().map(DiscoveredPort::ignored));
        Self { ports, bindings, unreachable }
    }
}

impl DiscoveredPort {
    /// A port that is not open, as it was resolved.
    pub fn closed(resolution: &Resolution, place: usize, muted: bool) -> Self {
        let resolved = &resolution.ports[place];
        let bindings: Vec<String> = resolved.claims.iter().map(|claim| claim.alias.to_string()).collect();
        let is_alike = |other: &&PortInfo| {
            let port = &resolved.port;
            (other.direction, other.protocol) == (port.direction, port.protocol) && *other != port
        };
        let others = resolution.ports.iter().map(|other| &other.port).filter(is_alike);
        let ambiguous = resolved.ambiguous.first().filter(|_| bindings.is_empty());
        Self {
            port: resolved.port.clone(),
            device: resolved.device().to_string(),
            label: resolved.label.to_string(),
            binding: bindings.first().cloned(),
            bindings,
            told_apart_by: Matcher::telling_apart(&resolved.port, others).and_then(|matcher| matcher.written()),
            connected: false,
            state: ambiguous.map_or(PortState::Idle, |claim| PortState::Ambiguous(claim.alias.to_string())),
            muted,
            events: 0,
            dropped: 0,
            malformed: 0,
            lost: 0,
            unheard: 0,
        }
    }

    /// A port that is left alone.
    pub fn ignored(port: PortInfo) -> Self {
        Self {
            device: port.name.clone(),
            label: port.name.clone(),
            port,
            binding: None,
            bindings: Vec::new(),
            told_apart_by: None,
            connected: false,
            state: PortState::Ignored,
            muted: false,
            events: 0,
            dropped: 0,
            malformed: 0,
            lost: 0,
            unheard: 0,
        }
    }
}

impl BindingStatus {
    /// A binding that is switched off.
    pub fn off(alias: &str, protocol: Protocol) -> Self {
        let help = Some("switched off by `enabled = false`".to_owned());
        let alias = alias.to_owned();
        Self { alias, protocol, health: Health::Off, input: None, output: None, muted: false, help }
    }

    /// How the binding at `index` is. `ports` are those of the resolution, in its order.
    pub fn of(
        index: usize,
        spec: &BindingSpec,
        resolution: &Resolution,
        ports: &[DiscoveredPort],
        muted: bool,
    ) -> Self {
        let side = |direction| {
            let states = match direction {
                Direction::Input => &resolution.inputs,
                Direction::Output => &resolution.outputs,
            };
            let state = states.get(index)?.as_ref()?;
            Some(SideStatus::of(state, spec, direction, ports))
        };
        let (input, output) = (side(Direction::Input), side(Direction::Output));
        let sides = || input.iter().chain(&output);
        let bound = sides().filter(|side| side.state == SideState::Bound).count();
        let ambiguous = sides().any(|side| side.state == SideState::Ambiguous);
        let problem = sides().find_map(|side| side.problem.clone());
        let missing = |direction: Direction, side: &Option<SideStatus>| {
            spec.needs.contains(&direction) && side.as_ref().is_none_or(|side| side.state != SideState::Bound)
        };
        let incomplete = missing(Direction::Input, &input) || missing(Direction::Output, &output);
        let health = match () {
            () if ambiguous || (bound > 0 && (incomplete || problem.is_some())) => Health::Amber,
            () if bound == 0 => Health::Red,
            () => Health::Green,
        };
        let alias = &spec.alias;
        let help = if ambiguous {
            let ports: Vec<String> = sides()
                .filter(|side| side.state == SideState::Ambiguous)
                .flat_map(|side| side.ports.iter().map(|port| format!("{port:?}")))
                .collect();
            Some(format!(
                "{} match it equally well, so none of them is heard as {alias}; say which with \
                 `conductor bindings pin {alias}`",
                ports.join(" and ")
            ))
        } else if problem.is_some() {
            problem
        } else if bound == 0 {
            Some("no port matches it; `conductor ports` lists those that exist".to_owned())
        } else if incomplete {
            Some("one of its directions has no port".to_owned())
        } else {
            None
        };
        Self { alias: alias.clone(), protocol: spec.protocol, health, input, output, muted, help }
    }
}

impl SideStatus {
    fn of(state: &BindingState, spec: &BindingSpec, direction: Direction, ports: &[DiscoveredPort]) -> Self {
        let (state, places) = match state {
            BindingState::Bound(place) => (SideState::Bound, vec![*place]),
            BindingState::Unbound => (SideState::Unbound, Vec::new()),
            BindingState::Ambiguous(places) => (SideState::Ambiguous, places.clone()),
        };
        let meant = || places.iter().filter_map(|place| ports.get(*place));
        let problem = meant().find_map(|port| match &port.state {
            PortState::Failed(reason) => Some(reason.clone()),
            PortState::OverLimit => Some("there are `max_midi_ports` open already".to_owned()),
            _ => None,
        });
        let matched_by = match (state, meant().next()) {
            (SideState::Bound, Some(port)) => {
                let matching = spec.matchers(direction).iter().filter(|matcher| matcher.matches(&port.port));
                matching.max_by_key(|matcher| matcher.specificity()).map(ToString::to_string)
            }
            _ => None,
        };
        Self { state, ports: meant().map(|port| port.label.clone()).collect(), matched_by, problem }
    }
}
