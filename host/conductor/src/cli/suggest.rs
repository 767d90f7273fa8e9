//! `conductor devices suggest`: a first setup for a device whose profile is known, as a plan that a person decides about.

use conductor_device_profile::{self as device_profile, Library, PortFit, Profile, SetupPort, Suggested, UsbId};
use conductor_learn_mapping::ConfigText;
use conductor_ports::Direction;
use conductor_ports::status::{DiscoveredPort, PortsStatus};
use conductor_terminal::{self as terminal, outln};
use serde_json::{Value, json};

use super::learn::read;
use super::tool::{asked, proposed};
use super::{CommandResult, Failure, Paths, plan, ports};

pub(super) fn run(places: &Paths, library: &Library, name: &str, json: bool) -> CommandResult {
    let status = ports::running(places)?
        .ok_or_else(|| Failure::Failed(anyhow::anyhow!("no host is running; `conductor run` starts one")))?;
    let port = find(&status, name)?;
    let usb = usb(port);
    let Some((profile, fit)) = library.of_port(&port.port.name, usb) else {
        return Err(Failure::Failed(anyhow::anyhow!(
            "no profile fits {:?}; `conductor learn` tells what its controls send, `conductor devices search` what is known",
            port.port.name
        )));
    };
    let (ConfigText { text }, _) = read(places, "conductor_get_config", &json!({}))?;
    let written: toml::Table = toml::from_str(&text)?;
    let parts = parts(&status, port, profile, fit, &written);
    if parts.is_empty() {
        return Err(Failure::Failed(anyhow::anyhow!(
            "{:?} is bound, and its profile {} says nothing of transport buttons or lights to begin with",
            port.port.name,
            profile.id
        )));
    }
    let changes = changes(&parts, &written);
    let description = format!("A first setup for {} {}", profile.vendor, profile.name);
    let called = asked(places, "conductor_batch_changes", &json!({ "description": description, "changes": changes }))?;
    let id = proposed(&called)?;
    if json {
        terminal::json(&json!({ "profile": profile.id, "suggested": parts, "plan": id }))?;
        return Ok(());
    }
    for part in &parts {
        outln!("{} ({} confidence)", part.reason, part.confidence);
    }
    if terminal::is_interactive() { plan::offer(places, id) } else { Ok(()) }
}

/// The input that is called so: its binding, what events call it, or its own name.
fn find<'s>(status: &'s PortsStatus, name: &str) -> Result<&'s DiscoveredPort, Failure> {
    let inputs = || status.ports.iter().filter(|port| port.port.direction == Direction::Input);
    let is_it = |port: &&DiscoveredPort| {
        port.device == name
            || port.label == name
            || port.port.name == name
            || port.bindings.iter().any(|has| has == name)
    };
    inputs().find(is_it).ok_or_else(|| {
        let there: Vec<&str> = inputs().map(|port| port.label.as_str()).collect();
        Failure::Wrong(format!("conductor: there is no input {name:?}; there are {}", there.join(", ")))
    })
}

pub(super) fn usb(port: &DiscoveredPort) -> Option<UsbId> {
    let usb = port.port.metadata.usb.as_ref()?;
    Some(UsbId { vendor: usb.vendor_id, product: usb.product_id })
}

/// What is suggested for a port that fits a profile, beside what is written.
pub(super) fn parts(
    status: &PortsStatus,
    port: &DiscoveredPort,
    profile: &Profile,
    fit: PortFit,
    written: &toml::Table,
) -> Vec<Suggested> {
    let there: Vec<(&DiscoveredPort, String)> =
        status.ports.iter().map(|port| (port, port.port.protocol.to_string())).collect();
    let there: Vec<SetupPort<'_>> = there.iter().map(|(port, protocol)| setup_port(port, protocol)).collect();
    let protocol = port.port.protocol.to_string();
    let alias = device_profile::alias_for(&port.port.name, &device_profile::aliases(written));
    device_profile::setup(profile, fit, &setup_port(port, &protocol), &there, &alias)
}

fn setup_port<'p>(port: &'p DiscoveredPort, protocol: &'p str) -> SetupPort<'p> {
    SetupPort {
        name: &port.port.name,
        usb: usb(port),
        is_input: port.port.direction == Direction::Input,
        protocol,
        binding: port.binding.as_deref(),
        told_apart_by: port.told_apart_by.clone(),
    }
}

/// The changes that put every part at the end of its list.
pub(super) fn changes(parts: &[Suggested], written: &toml::Table) -> Vec<Value> {
    let places = device_profile::places(parts, written);
    parts.iter().zip(places).map(|(part, place)| json!({ "path": place, "value": part.value })).collect()
}
