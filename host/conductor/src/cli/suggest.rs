//! `conductor devices suggest`: a first setup for a device whose profile is known, as a plan that a person decides about.

use conductor_device_profile::{Library, PortFit, Profile, SuggestFor, Suggested, UsbId, suggest};
use conductor_ports::Direction;
use conductor_ports::status::{DiscoveredPort, PortsStatus};
use conductor_terminal::{self as terminal, outln};
use serde_json::{Value, json};

use super::tool::asked;
use super::{CommandResult, Failure, Paths, plan, ports};

/// Words of a port's name that make up the name of its binding.
const WORDS: usize = 2;

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
    let written = asked(places, "conductor_get_config", &json!({}))?;
    let written: toml::Table = toml::from_str(written["text"].as_str().unwrap_or_default())?;
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
    let proposed =
        asked(places, "conductor_batch_changes", &json!({ "description": description, "changes": changes }))?;
    let id = proposed["plan"].as_str().unwrap_or_default();
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
    let by_name = |name: &str| json!({ "type": "exact_name", "value": name });
    let mut matchers = vec![port.told_apart_by.clone().unwrap_or_else(|| by_name(&port.port.name))];
    let output = status.ports.iter().find(|other| {
        other.port.direction == Direction::Output
            && conductor_device_profile::fits(profile, &other.port.name, usb(other)).is_some_and(|other| other >= fit)
    });
    // The two directions of a device may have two names.
    if let Some(output) = output
        && output.port.name != port.port.name
    {
        matchers.push(by_name(&output.port.name));
    }
    let alias = port.binding.clone().unwrap_or_else(|| alias(&port.port.name, &names(written)));
    suggest(
        profile,
        &SuggestFor {
            name: &port.port.name,
            fit,
            alias: &alias,
            matchers,
            protocol: &port.port.protocol.to_string(),
            bound: port.binding.is_some(),
            has_output: output.is_some(),
        },
    )
}

/// The names of bindings that the configuration has.
pub(super) fn names(written: &toml::Table) -> Vec<&str> {
    let entries = ["bindings", "devices"].into_iter().filter_map(|list| written.get(list)?.as_array()).flatten();
    entries.filter_map(|entry| entry.get("alias")?.as_str()).collect()
}

/// A name for a device, from that of its port: in small letters, and none of those that are taken.
pub(super) fn alias(port: &str, taken: &[&str]) -> String {
    let words = port.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).take(WORDS);
    let name = words.map(str::to_lowercase).collect::<Vec<_>>().join("-");
    let name = if name.is_empty() { "device".to_owned() } else { name };
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(&name.as_str())).unwrap_or_default()
}

/// The changes that put every part at the end of its list.
pub(super) fn changes(parts: &[Suggested], written: &toml::Table) -> Vec<Value> {
    let mut ends = std::collections::HashMap::new();
    let change = |part: &Suggested| {
        let there = || written.get(part.list).and_then(toml::Value::as_array).map_or(0, Vec::len);
        let end = ends.entry(part.list).or_insert_with(there);
        let path = format!("{}/{end}", part.list);
        *end += 1;
        json!({ "path": path, "value": part.value })
    };
    parts.iter().map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_short_and_free() {
        assert_eq!(alias("APC MINI MIDI 1", &["apc-mini"]), "apc-mini-2");
        assert_eq!(alias("::", &[]), "device");
    }

    #[test]
    fn what_is_suggested_goes_to_the_end_of_its_list() {
        let written: toml::Table = toml::from_str("[[global_mappings]]\nname = \"a\"\n").unwrap();
        let part = |list| Suggested {
            list,
            value: json!({}),
            reason: String::new(),
            confidence: conductor_device_profile::Confidence::High,
        };
        let changes = changes(&[part("bindings"), part("global_mappings"), part("global_mappings")], &written);
        let paths: Vec<&str> = changes.iter().filter_map(|change| change["path"].as_str()).collect();
        assert_eq!(paths, ["bindings/0", "global_mappings/1", "global_mappings/2"]);
    }
}
