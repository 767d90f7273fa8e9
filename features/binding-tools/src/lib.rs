//! Tools for ports, devices and bindings: six that look, four that change what holds until the host
//! stops, four that propose.
//!
//! A device identity and a binding are one thing: a name, and matchers for the device's ports.

use std::collections::HashSet;

use conductor_feature::host_state::{PortState, SideState};
use conductor_feature::json::{Proposed, answer, register, unknown};
use conductor_feature::page::{After, MAX_ENTRIES, Page};
use conductor_feature::planning::Change;
use conductor_feature::{
    ConfigChangeTools, Context, Controls, Error, Invocation, Lifecycle, Planner, ReadOnlyTools, Reader, StatefulTools,
    host_state, tool_registrar,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod bindings;
pub mod matcher;
pub mod pairing;

use bindings::{Bindings, Impact, NewBinding, Protocol, Update, Written};
use matcher::Matcher;
use pairing::paired_output;

struct BindingTools;

impl Lifecycle for BindingTools {
    fn install(ctx: &Context) -> Result<(), Error> {
        let tools = tool_registrar::Registrar::open(ctx)?;
        register::<After, Ports>(&tools, "conductor_scan_ports")?;
        register::<PortFilter, Ports>(&tools, "conductor_list_discovered_ports")?;
        register::<After, Devices>(&tools, "conductor_list_devices")?;
        register::<After, Listed>(&tools, "conductor_list_device_bindings")?;
        register::<Which, Healths>(&tools, "conductor_get_binding_health")?;
        register::<Suggest, Suggestion>(&tools, "conductor_suggest_binding")?;
        register::<Enable, Muted>(&tools, "conductor_set_device_enabled")?;
        register::<Device, Muted>(&tools, "conductor_connect_device")?;
        register::<Device, Muted>(&tools, "conductor_disconnect_device")?;
        register::<NewBinding, Proposed>(&tools, "conductor_create_binding")?;
        register::<NewIdentity, Proposed>(&tools, "conductor_create_device_identity")?;
        register::<Update, Proposed>(&tools, "conductor_update_device_identity")?;
        register::<Alias, Proposed>(&tools, "conductor_delete_device_identity")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Direction {
    Input,
    Output,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PortFilter {
    protocol: Option<Protocol>,
    direction: Option<Direction>,
    /// Only those without a binding.
    #[serde(default)]
    unbound: bool,
    after: Option<i64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Which {
    /// Default: all.
    alias: Option<String>,
    after: Option<i64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Alias {
    alias: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Device {
    device: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Enable {
    /// An alias, or a port's name.
    device: String,
    enabled: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Suggest {
    /// Its name, or the device's.
    port: String,
    /// Default: made from the name.
    alias: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewIdentity {
    alias: String,
    /// Any one is enough.
    matchers: Vec<Matcher>,
    description: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Ports {
    ports: Vec<Port>,
    /// If there are more.
    total: Option<usize>,
    next: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Port {
    name: String,
    device: String,
    protocol: String,
    direction: String,
    state: String,
    binding: Option<String>,
    muted: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Devices {
    devices: Vec<DeviceView>,
    total: Option<usize>,
    next: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct DeviceView {
    /// As mappings name it.
    name: String,
    protocol: String,
    bound: bool,
    connected: bool,
    muted: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Listed {
    bindings: Vec<Binding>,
    total: Option<usize>,
    next: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Binding {
    alias: String,
    protocol: String,
    enabled: bool,
    matchers: Vec<String>,
    /// green, amber, red, off.
    health: String,
    /// Mappings that name it.
    mappings: usize,
    /// What `conductor_update_device_identity` can change.
    written: Option<Written>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Healths {
    bindings: Vec<Health>,
    total: Option<usize>,
    next: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Health {
    alias: String,
    /// green, amber, red, off.
    health: String,
    input: Option<Side>,
    output: Option<Side>,
    muted: bool,
    help: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Side {
    /// bound, unbound, ambiguous.
    state: String,
    ports: Vec<String>,
    matched_by: Option<String>,
    problem: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Suggestion {
    alias: String,
    protocol: String,
    /// The strongest first.
    matchers: Vec<Matcher>,
    toml: String,
    next: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Muted {
    device: String,
    enabled: bool,
    next: String,
}

fn shown(port: host_state::Port) -> Port {
    Port {
        name: port.name,
        device: port.device,
        protocol: port.protocol.to_string(),
        direction: port.direction.to_string(),
        state: port.state.to_string(),
        binding: port.binding,
        muted: port.muted,
    }
}

fn ports(reader: &Reader, after: Option<i64>, wanted: impl Fn(&host_state::Port) -> bool) -> Result<Ports, Error> {
    let ports: Vec<host_state::Port> = reader.ports()?.into_iter().filter(wanted).collect();
    let advice = if ports.iter().any(|port| port.binding.is_none()) {
        "conductor_suggest_binding makes a binding for a port"
    } else {
        "conductor_get_binding_health tells how bindings are"
    };
    let Page { entries: ports, total, next } = Page::of(ports, after, MAX_ENTRIES, shown)?;
    Ok(Ports { ports, total, next: next.unwrap_or_else(|| advice.to_owned()) })
}

fn devices(reader: &Reader, after: Option<i64>) -> Result<Devices, Error> {
    let (mut devices, mut known) = (Vec::new(), HashSet::new());
    for binding in reader.bindings()? {
        let bound = |side: &Option<host_state::Side>| side.as_ref().is_some_and(|side| side.state == SideState::Bound);
        let connected = bound(&binding.input) || bound(&binding.output);
        let (name, protocol) = (binding.alias, binding.protocol.to_string());
        known.insert(name.clone());
        devices.push(DeviceView { name, protocol, bound: true, connected, muted: binding.muted });
    }
    for port in reader.ports()? {
        if port.binding.is_none() && known.insert(port.device.clone()) {
            let connected = matches!(port.state, PortState::Open);
            devices.push(DeviceView {
                name: port.device,
                protocol: port.protocol.to_string(),
                bound: false,
                connected,
                muted: port.muted,
            });
        }
    }
    let Page { entries: devices, total, next } = Page::of(devices, after, MAX_ENTRIES, |device| device)?;
    Ok(Devices { devices, total, next })
}

fn listed(reader: &Reader, after: Option<i64>) -> Result<Listed, Error> {
    let written = Bindings::parse(&reader.config()?)?;
    let mappings = written.mappings_by_device();
    let binding = |status: host_state::Binding| Binding {
        enabled: status.health != host_state::Health::Off,
        matchers: written.find(&status.alias).map(|found| written.matchers(found)).unwrap_or_default(),
        mappings: mappings.get(status.alias.as_str()).copied().unwrap_or_default(),
        written: written.find(&status.alias).ok().map(|found| written.written(found)),
        alias: status.alias,
        protocol: status.protocol.to_string(),
        health: status.health.to_string(),
    };
    let Page { entries: bindings, total, next } = Page::of(reader.bindings()?, after, MAX_ENTRIES, binding)?;
    Ok(Listed { bindings, total, next })
}

fn healths(reader: &Reader, alias: Option<&str>, after: Option<i64>) -> Result<Healths, Error> {
    let all = reader.bindings()?;
    if let Some(alias) = alias
        && !all.iter().any(|binding| binding.alias == alias)
    {
        return Err(unknown("binding", alias, all.iter().map(|binding| binding.alias.as_str())));
    }
    let side = |side: host_state::Side| Side {
        state: side.state.to_string(),
        ports: side.ports,
        matched_by: side.matched_by,
        problem: side.problem,
    };
    let health = |binding: host_state::Binding| Health {
        alias: binding.alias,
        health: binding.health.to_string(),
        input: binding.input.map(side),
        output: binding.output.map(side),
        muted: binding.muted,
        help: binding.help,
    };
    let wanted = all.into_iter().filter(|binding| alias.is_none_or(|alias| alias == binding.alias));
    let wanted: Vec<host_state::Binding> = wanted.collect();
    let Page { entries: bindings, total, next } = Page::of(wanted, after, MAX_ENTRIES, health)?;
    Ok(Healths { bindings, total, next })
}

/// The output of an input's device that the input's name does not match. `None` if there is none, or a binding has it.
fn output_of<'p>(input: &host_state::Port, ports: &'p [host_state::Port]) -> Option<&'p host_state::Port> {
    if input.direction != host_state::Direction::Input {
        return None;
    }
    let is_output =
        |port: &&host_state::Port| port.direction == host_state::Direction::Output && port.protocol == input.protocol;
    let outputs: Vec<&host_state::Port> = ports.iter().filter(is_output).collect();
    let name = paired_output(&input.name, outputs.iter().map(|output| output.name.as_str()))?;
    let is_free = |port: &&host_state::Port| port.binding.is_none() && !matches!(port.state, PortState::Ignored);
    outputs.into_iter().find(|output| output.name == name).filter(is_free)
}

fn suggestion(reader: &Reader, Suggest { port, alias }: Suggest) -> Result<Suggestion, Error> {
    let ports = reader.ports()?;
    let is_it = |found: &&host_state::Port| found.device == port || found.name == port;
    let Some(found) = ports.iter().find(is_it) else {
        return Err(unknown("port", &port, ports.iter().map(|port| port.device.as_str())));
    };
    if let Some(binding) = &found.binding {
        return Err(Error::Invalid(format!("{port:?} has a binding already: {binding}")));
    }
    let mut matchers: Vec<Matcher> = Vec::new();
    let strongest = found.told_apart_by.as_deref().map(serde_json::from_str);
    matchers.extend(strongest.transpose().map_err(|error| Error::Failed(error.to_string()))?);
    let by_name = Matcher::exact_name(&found.name);
    let twins = ports.iter().filter(|other| other.name == found.name && other.direction == found.direction).count();
    if !matchers.contains(&by_name) {
        matchers.push(by_name);
    }
    let by_name_alone = matchers.len() == 1;
    let output = output_of(found, &ports).filter(|_| by_name_alone && twins == 1);
    matchers.extend(output.map(|output| Matcher::exact_name(&output.name)));
    let aliases: Vec<String> = reader.bindings()?.into_iter().map(|binding| binding.alias).collect();
    let alias = alias.unwrap_or_else(|| {
        conductor_device_profile::alias_for(&found.name, &aliases.iter().map(String::as_str).collect::<Vec<_>>())
    });
    let used = if output.is_some() { matchers.len() } else { 1 };
    let used = matchers.iter().take(used).map(Matcher::toml).collect::<Vec<_>>().join(", ");
    let toml = format!("[[bindings]]\nalias = {alias:?}\nprotocol = \"{}\"\nmatchers = [{used}]\n", found.protocol);
    let next = if twins > 1 && by_name_alone {
        "no stable property differs from its twin's: conductor_start_learn, and move one of them"
    } else if output.is_some() {
        "conductor_create_device_identity with the alias and both matchers: the second is its output, for lights"
    } else {
        "conductor_create_device_identity with the alias and the first matcher"
    };
    Ok(Suggestion { alias, protocol: found.protocol.to_string(), matchers, toml, next: next.to_owned() })
}

fn enable(change: &Controls, device: String, enabled: bool) -> Result<Muted, Error> {
    change.set_device_enabled(&device, enabled)?;
    let next = "until the host stops; conductor_update_device_identity proposes it for good";
    Ok(Muted { device, enabled, next: next.to_owned() })
}

impl ReadOnlyTools for BindingTools {
    fn call(name: String, args: String, _: &Invocation, reader: &Reader) -> Result<String, Error> {
        match name.as_str() {
            "conductor_scan_ports" => answer(&args, |After { after }| ports(reader, after, |_| true)),
            "conductor_list_discovered_ports" => answer(&args, |PortFilter { protocol, direction, unbound, after }| {
                let direction = direction.map(|direction| match direction {
                    Direction::Input => host_state::Direction::Input,
                    Direction::Output => host_state::Direction::Output,
                });
                ports(reader, after, |port| {
                    protocol.is_none_or(|protocol| port.protocol == protocol.into())
                        && direction.is_none_or(|direction| port.direction == direction)
                        && (!unbound || port.binding.is_none())
                })
            }),
            "conductor_list_devices" => answer(&args, |After { after }| devices(reader, after)),
            "conductor_list_device_bindings" => answer(&args, |After { after }| listed(reader, after)),
            "conductor_get_binding_health" => {
                answer(&args, |Which { alias, after }| healths(reader, alias.as_deref(), after))
            }
            _ => Err(Error::Invalid(format!("there is no tool {name}"))),
        }
    }
}

impl StatefulTools for BindingTools {
    fn call(name: String, args: String, _: &Invocation, reader: &Reader, change: &Controls) -> Result<String, Error> {
        match name.as_str() {
            "conductor_suggest_binding" => answer(&args, |suggest| suggestion(reader, suggest)),
            "conductor_set_device_enabled" => {
                answer(&args, |Enable { device, enabled }| enable(change, device, enabled))
            }
            "conductor_connect_device" => answer(&args, |Device { device }| enable(change, device, true)),
            "conductor_disconnect_device" => answer(&args, |Device { device }| enable(change, device, false)),
            _ => Err(Error::Invalid(format!("there is no tool {name}"))),
        }
    }
}

impl ConfigChangeTools for BindingTools {
    fn call(name: String, args: String, _: &Invocation, reader: &Reader, planner: &Planner) -> Result<String, Error> {
        let written = || Bindings::parse(&reader.config()?);
        let propose = |(description, changes): (String, Vec<Change>)| Proposed::by(planner, &description, &changes);
        match name.as_str() {
            "conductor_create_binding" => answer(&args, |new: NewBinding| propose(written()?.add(&new)?)),
            "conductor_create_device_identity" => answer(&args, |NewIdentity { alias, matchers, description }| {
                if matchers.is_empty() {
                    return Err(Error::Invalid(
                        "without a matcher it is the name of nothing; \
                            conductor_suggest_binding has some"
                            .into(),
                    ));
                }
                propose(written()?.add(&NewBinding::of(alias, matchers, description))?)
            }),
            "conductor_update_device_identity" => answer(&args, |update: Update| propose(written()?.update(update)?)),
            "conductor_delete_device_identity" => answer(&args, |Alias { alias }| {
                let written = written()?;
                let impact: Impact = written.impact(&alias);
                propose(written.delete(&alias, &impact)?)
            }),
            _ => Err(Error::Invalid(format!("there is no tool {name}"))),
        }
    }
}

conductor_feature::feature!(BindingTools, "../feature.toml", [read_only_tools, stateful_tools, config_change_tools]);
