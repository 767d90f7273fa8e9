//! Destinations: where the actions of features send to over the network, and what one configuration sends elsewhere
//! than another.
//!
//! Data are sent elsewhere if an address is no longer sent to by what a mapping waits for, and another one is: by the
//! same events, or by any if nothing was sent there before. So neither a trigger that is spelt a little otherwise nor
//! a mapping that is removed while another is added hides that a destination was exchanged. A plan that only adds
//! destinations, or only takes some away, sends nothing elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::Value;

use crate::effect::{canonical, cut, quoted};
use crate::reach::{MAX_PAIRS, Reach};
use conductor_config::{Binding, Config, Connection, Mapping};
use conductor_net::endpoint::Endpoint;
use conductor_rules::engine_trigger;
use conductor_stdx::hidden::hide_json;
use conductor_trigger_overlap::Overlap as _;

/// The actions whose only destination is their `target`. Of others nothing is known: all parameters count.
const SENDERS: [&str; 4] = ["OscSend", "osc-output:OscSend", "ArtNetSend", "artnet-output:ArtNetSend"];
/// Parameters of other actions that hold a destination, whatever it looks like.
const DESTINATION_KEYS: [&str; 6] = ["target", "targets", "host", "url", "server", "destination"];

/// Where a feature's action sends to.
pub(crate) struct Destination {
    pub subject: String,
    pub key: String,
    pub text: String,
    /// The addresses that it names, by the text that names them: of an alias the address of its binding.
    pub targets: BTreeMap<String, String>,
}

/// Where the mappings of one trigger in one mode send to.
#[derive(Debug)]
pub(crate) struct Sender<'c> {
    pub occasion: String,
    pub mode: Option<&'c str>,
    /// The first of them.
    pub mapping: &'c Mapping,
    /// As [`Destination::targets`], of all of them.
    pub targets: BTreeMap<String, String>,
}

/// The destinations of an action, `endpoints` being those of the bindings.
pub(crate) fn destinations(type_name: &str, params: &Value, endpoints: &BTreeMap<&str, String>) -> Vec<Destination> {
    let name = cut(type_name);
    let address_of = |target: &str| endpoints.get(target).map_or(target, String::as_str).to_owned();
    let targets = match params.get("target") {
        Some(Value::String(target)) if SENDERS.contains(&type_name) => vec![target.as_str()],
        Some(Value::Array(list)) if SENDERS.contains(&type_name) && list.iter().all(Value::is_string) => {
            list.iter().filter_map(Value::as_str).collect()
        }
        _ => {
            let key = format!("{type_name:?} {}", canonical(params));
            let mut shown = params.clone();
            hide_json(&[], &mut shown);
            let text = format!("{name} with {}", cut(&shown.to_string()));
            let mut named = BTreeSet::new();
            addresses_in(params, false, &mut named);
            let targets = named.into_iter().map(|target| (target.to_owned(), address_of(target))).collect();
            return vec![Destination { subject: key.clone(), key, text, targets }];
        }
    };
    let action = type_name.rsplit(':').next().unwrap_or(type_name);
    let destination = |target: &str| {
        let address = address_of(target);
        let text = if address == target {
            format!("{name} to {}", quoted(target))
        } else {
            format!("{name} to {}, which is {}", quoted(target), quoted(&address))
        };
        Destination {
            subject: format!("{action} {target:?}"),
            key: format!("{action} {target:?} {address:?}"),
            text,
            targets: BTreeMap::from([(target.to_owned(), address)]),
        }
    };
    targets.into_iter().map(destination).collect()
}

/// Every text that names a place on a network by its form, or by the key that it is found under.
fn addresses_in<'v>(value: &'v Value, keyed: bool, into: &mut BTreeSet<&'v str>) {
    match value {
        Value::String(text) => {
            let looks = text.contains("://") || text.parse::<Endpoint>().is_ok() || text.parse::<IpAddr>().is_ok();
            if keyed || looks {
                into.insert(text);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| addresses_in(value, keyed, into)),
        Value::Object(table) => table.iter().for_each(|(key, value)| {
            addresses_in(value, keyed || DESTINATION_KEYS.contains(&key.as_str()), into);
        }),
        _ => {}
    }
}

/// The addresses that enabled bindings send to, by alias.
pub(crate) fn endpoints(config: &Config) -> BTreeMap<&str, String> {
    let enabled = config.bindings.iter().filter(|binding| binding.enabled);
    enabled.filter_map(|binding| Some((&*binding.alias, endpoint(binding)?))).collect()
}

/// The address that a binding sends to; `None` if that is no address.
pub(crate) fn endpoint(binding: &Binding) -> Option<String> {
    match &binding.connection {
        Connection::Osc { output: Some(output), .. } | Connection::ArtNet { output: Some(output), .. } => {
            Some(format!("{}:{}", output.host, output.port))
        }
        _ => None,
    }
}

/// What is sent elsewhere with `to` than with `from`: by what mappings wait for, and by the name of a binding. A text
/// each.
pub(crate) fn sent_elsewhere(from: &Reach<'_>, to: &Reach<'_>) -> Vec<String> {
    let mut texts = by_mappings(from, to);
    let (before, after) = (endpoints(from.config), endpoints(to.config));
    for (alias, old) in before {
        if let Some(new) = after.get(alias).filter(|new| **new != old) {
            texts.push(format!(
                "what is sent to {} goes to {} instead of {}",
                quoted(alias),
                quoted(new),
                quoted(&old)
            ));
        }
    }
    texts
}

/// An address that a trigger in a mode sends to in one configuration only.
struct Only<'r, 'c> {
    place: &'r str,
    sender: &'r Sender<'c>,
    address: &'r str,
}

fn by_mappings(from: &Reach<'_>, to: &Reach<'_>) -> Vec<String> {
    let (lost, gained) = (only_in(from, to), only_in(to, from));
    let known: BTreeSet<&str> = from.sent.values().flat_map(|sender| sender.targets.values()).map(|it| &**it).collect();
    let bound: BTreeSet<String> = endpoints(from.config).into_values().collect();
    let comparable = lost.len().saturating_mul(gained.len()) <= MAX_PAIRS;
    let mut texts = Vec::new();
    for new in &gained {
        let others = || lost.iter().filter(|old| old.address != new.address);
        if let Some(old) = others().find(|old| old.place == new.place) {
            let occasion = &new.sender.occasion;
            texts.push(format!(
                "what {occasion} sends goes to {} instead of {}",
                quoted(new.address),
                quoted(old.address)
            ));
            continue;
        }
        let stranger = !known.contains(new.address) && !bound.contains(new.address);
        // Of too many to compare, each may be one of the same events.
        let anyway = stranger || !comparable;
        if let Some(old) = others().find(|old| anyway || same_events(from, old.sender, to, new.sender)) {
            texts.push(format!(
                "{} sends to {}, while {} no longer sends to {}",
                new.sender.occasion,
                quoted(new.address),
                old.sender.occasion,
                quoted(old.address)
            ));
        }
    }
    texts
}

/// The addresses that triggers send to in the first configuration and not in the second. A target that both have has
/// another address by the binding of its name, of which there is a text of its own.
fn only_in<'r, 'c>(these: &'r Reach<'c>, those: &Reach<'_>) -> Vec<Only<'r, 'c>> {
    let mut only = Vec::new();
    for (place, sender) in &these.sent {
        let other = those.sent.get(place);
        let known: BTreeSet<&String> = other.into_iter().flat_map(|other| other.targets.values()).collect();
        for (target, address) in &sender.targets {
            if !known.contains(address) && !other.is_some_and(|other| other.targets.contains_key(target)) {
                only.push(Only { place, sender, address });
            }
        }
    }
    only
}

/// Whether an event may have been for the first and be for the second now. In doubt it may.
fn same_events(from: &Reach<'_>, old: &Sender<'_>, to: &Reach<'_>, new: &Sender<'_>) -> bool {
    let has = |reach: &Reach<'_>, name: &str| reach.config.modes.iter().any(|mode| mode.name == name);
    let same_mode = match (old.mode, new.mode) {
        // A mode that only one of them has may be the other by another name.
        (Some(before), Some(after)) => before == after || !has(to, before) || !has(from, after),
        _ => true,
    };
    let devices = (&old.mapping.trigger.device, &new.mapping.trigger.device);
    let same_device = devices.0.is_none() || devices.1.is_none() || devices.0 == devices.1;
    same_mode
        && same_device
        && match (engine_trigger(old.mapping), engine_trigger(new.mapping)) {
            (Some(one), Some(other)) => one.may_keep_from(false, &other),
            _ => canonical(&old.mapping.trigger) == canonical(&new.mapping.trigger),
        }
}
