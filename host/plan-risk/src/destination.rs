//! Destinations: where the actions of features and bindings send to over the network.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::Value;

use crate::effect::{canonical, cut, quoted};
use conductor_config::{Binding, Config, Connection, Mapping};
use conductor_net::endpoint::Endpoint;
use conductor_stdx::hidden::hide_json;

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
