//! Tools for what is known of controllers: two that look it up in the library, one that proposes a first setup for an input.
//!
//! The library is the crate `conductor-device-profile`, with the files in `devices`; `conductor devices` has it from there,
//! too. Where no profile fits an input, what was heard of it decides: see [`guess`].

use conductor_device_profile::{self as device_profile, Library, PortFit, Profile, SetupPort, Suggested, UsbId};
use conductor_feature::host_state::{self, Direction};
use conductor_feature::json::{Proposed, answer, register, set, unknown};
use conductor_feature::{
    ConfigChangeTools, Context, Error, Invocation, Lifecycle, Planner, ReadOnlyTools, Reader, tool_registrar,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod guess;
pub mod view;

use view::{DeviceProfile, Entry};

/// Controllers that a search answers with, at most.
const MAX_FOUND: usize = 20;
/// Seconds of what was heard that a setup is guessed from.
const HEARD_SECONDS: u16 = 60;

struct DeviceLibrary;

impl Lifecycle for DeviceLibrary {
    fn install(ctx: &Context) -> Result<(), Error> {
        let tools = tool_registrar::Registrar::open(ctx)?;
        register::<Query, Found>(&tools, "conductor_search_devices")?;
        register::<Which, DeviceProfile>(&tools, "conductor_get_device_profile")?;
        register::<For, Setup>(&tools, "conductor_suggest_setup")
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Query {
    /// Each the beginning of a word.
    words: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Found {
    devices: Vec<Entry>,
    /// Those that were left out.
    more: usize,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Which {
    id: Option<String>,
    /// Or an input: a device, or a port's name.
    port: Option<String>,
    /// Whether the row and column of each control are wanted, too: which pad is the lower left one.
    #[serde(default)]
    drawing: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct For {
    /// An input: a device, or a port's name. Default: the one that fits `profile`, plugged in or not.
    port: Option<String>,
    /// A profile's id. Default: the one that fits the port, or what was heard.
    profile: Option<String>,
    /// Default: its binding's, else made from the name.
    alias: Option<String>,
    /// Whether the mappings that light its controls are wanted, too. Default: true.
    lights: Option<bool>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Setup {
    #[serde(flatten)]
    proposed: Proposed,
    /// The profile's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    parts: Vec<Part>,
}

/// A part of what is proposed.
#[derive(Debug, Serialize, JsonSchema)]
struct Part {
    path: String,
    reason: String,
    /// low, medium, high.
    confidence: String,
}

/// The profile with an id.
fn profile_of<'l>(library: &'l Library, id: &str) -> Result<&'l Profile, Error> {
    let ids = || library.profiles().iter().map(|profile| profile.id.as_str());
    library.get(id).ok_or_else(|| match library.near(id)[..] {
        [] => Error::Invalid(format!("no profile has the id {id:?}; conductor_search_devices finds one")),
        _ => unknown("profile", id, ids()),
    })
}

/// The input that is called so: its device, its alias, or its own name.
fn input<'p>(ports: &'p [host_state::Port], name: &str) -> Result<&'p host_state::Port, Error> {
    let inputs = || ports.iter().filter(|port| port.direction == Direction::Input);
    let is_it =
        |port: &&host_state::Port| port.device == name || port.name == name || port.binding.as_deref() == Some(name);
    inputs().find(is_it).ok_or_else(|| unknown("input", name, inputs().map(|port| port.device.as_str())))
}

fn usb(port: &host_state::Port) -> Option<UsbId> {
    port.metadata.usb.as_ref().map(|usb| UsbId { vendor: usb.vendor, product: usb.product })
}

fn search(query: &Query) -> Found {
    let library = Library::bundled();
    let found = library.search(&query.words);
    let devices: Vec<Entry> = found.iter().take(MAX_FOUND).copied().map(Entry::from).collect();
    Found { more: found.len() - devices.len(), devices }
}

fn get(reader: &Reader, which: Which) -> Result<DeviceProfile, Error> {
    let library = Library::bundled();
    let profile = match (which.id, which.port) {
        (Some(id), None) => profile_of(&library, &id)?,
        (None, Some(name)) => {
            let ports = reader.ports()?;
            match input(&ports, &name) {
                Ok(port) => {
                    let none = || {
                        let name = device_profile::shortened(&port.name);
                        Error::Invalid(format!(
                            "no profile fits \"{name}\"; conductor_search_devices finds one by maker and name, \
                             conductor_start_learn tells what its controls send"
                        ))
                    };
                    library.of_port(&port.name, usb(port)).ok_or_else(none)?.0
                }
                Err(absent) => of_binding(&library, &name, &reader.config()?).ok_or(absent)?,
            }
        }
        _ => return Err(Error::Invalid("either `id` or `port` says which".into())),
    };
    let view = DeviceProfile::from(profile);
    Ok(if which.drawing { view.with_places(profile) } else { view })
}

/// The profile of a device that is not there, by what its binding matches.
fn of_binding<'l>(library: &'l Library, alias: &str, config: &str) -> Option<&'l Profile> {
    let written: toml::Table = toml::from_str(config).ok()?;
    library.profiles().iter().find(|profile| device_profile::alias_of(&written, profile) == Some(alias))
}

/// What is suggested, with the description of the plan.
struct Plan {
    description: String,
    profile: Option<String>,
    parts: Vec<Suggested>,
}

impl Plan {
    /// For a device that has the binding `bound`, or has none yet.
    fn of(profile: &Profile, bound: Option<&str>, parts: Vec<Suggested>) -> Self {
        let device = format!("{} {}", profile.vendor, profile.name);
        let description = match bound {
            Some(alias) => format!("First mappings for {device}, which is bound as {alias}"),
            None => format!("A first setup for {device}"),
        };
        Self { description, profile: Some(profile.id.clone()), parts }
    }
}

/// A setup for an input that is there.
fn plan_for(
    reader: &Reader,
    ports: &[host_state::Port],
    port: &host_state::Port,
    fitting: Option<(&Profile, PortFit)>,
    alias: Option<&str>,
    written: &toml::Table,
) -> Result<Plan, Error> {
    let there: Vec<(SetupPort<'_>, String)> =
        ports.iter().map(|port| (setup_port(port), port.protocol.to_string())).collect();
    let there: Vec<SetupPort<'_>> =
        there.iter().map(|(port, protocol)| SetupPort { protocol, ..port.clone() }).collect();
    let protocol = port.protocol.to_string();
    let mut own = SetupPort { protocol: &protocol, ..setup_port(port) };
    if own.binding.is_none() {
        // Ports are looked at twice a second: a binding may be there before its port has it.
        own.binding = device_profile::alias_with(written, &own.matcher());
    }
    let alias = alias_of(own.binding, alias, &device_profile::shortened(&port.name), &port.name, written)?;
    let plan = match fitting {
        Some((profile, fit)) => {
            Plan::of(profile, own.binding, device_profile::setup(profile, fit, &own, &there, &alias))
        }
        None => {
            let heard = source_kind::heard(reader, HEARD_SECONDS, Some(&port.device))?.remove(&port.device);
            Plan {
                description: format!("A first setup for {}", device_profile::shortened(&port.device)),
                profile: None,
                parts: guess::setup(&own, &alias, &heard.unwrap_or_default().window),
            }
        }
    };
    if plan.parts.is_empty() {
        return Err(Error::Invalid(format!(
            "\"{}\" is bound, and nothing is known to begin with; conductor_start_learn tells what is moved, and \
             conductor_create_mapping maps it",
            device_profile::shortened(&port.device)
        )));
    }
    Ok(plan)
}

/// What a device is called: as its binding is, as was `asked`, or by its `name`. `shown` is the device in messages.
///
/// # Errors
/// If it has a binding, and another name was asked for.
fn alias_of(
    bound: Option<&str>,
    asked: Option<&str>,
    shown: &str,
    name: &str,
    written: &toml::Table,
) -> Result<String, Error> {
    match (bound, asked) {
        (Some(bound), Some(alias)) if bound != alias => {
            Err(Error::Invalid(format!("\"{shown}\" has a binding, {bound:?}: leave out the alias {alias:?}")))
        }
        (Some(bound), _) => Ok(bound.to_owned()),
        (None, Some(alias)) => Ok(alias.to_owned()),
        (None, None) => Ok(device_profile::alias_for(name, &device_profile::aliases(written))),
    }
}

/// A setup for the profile's device, which is not there.
fn plan_ahead(profile: &Profile, alias: Option<&str>, written: &toml::Table) -> Result<Plan, Error> {
    let bound = device_profile::alias_of(written, profile);
    let alias = alias_of(bound, alias, &profile.name, &profile.name, written)?;
    let parts = device_profile::setup_ahead(profile, &alias, bound.is_some()).ok_or_else(|| {
        Error::Invalid(format!(
            "the {} {} is not there, and its profile does not say how its ports are called; an OSC app is bound by the \
             port that it sends to: conductor_create_binding",
            profile.vendor, profile.name
        ))
    })?;
    Ok(Plan::of(profile, bound, parts))
}

fn suggest(reader: &Reader, planner: &Planner, asked: &For) -> Result<Setup, Error> {
    let written: toml::Table = toml::from_str(&reader.config()?).map_err(|error| Error::Failed(error.to_string()))?;
    let library = Library::bundled();
    let chosen = asked.profile.as_deref().map(|id| profile_of(&library, id)).transpose()?;
    let ports = reader.ports()?;
    let is_there = |profile: &Profile| {
        let fits = |port: &&host_state::Port| {
            port.direction == Direction::Input && device_profile::fits(profile, &port.name, usb(port)).is_some()
        };
        ports.iter().find(fits)
    };
    let port = match (&asked.port, chosen) {
        (Some(name), _) => Ok(input(&ports, name)?),
        (None, Some(profile)) => is_there(profile).ok_or(profile),
        (None, None) => return Err(Error::Invalid("`port` or `profile` says what for".into())),
    };
    let Plan { description, profile, parts } = match port {
        Ok(port) => {
            // A person says which it is; its name need not be the profile's.
            let named =
                |profile| (profile, device_profile::fits(profile, &port.name, usb(port)).unwrap_or(PortFit::Name(0)));
            let fitting = chosen.map(named).or_else(|| library.of_port(&port.name, usb(port)));
            plan_for(reader, &ports, port, fitting, asked.alias.as_deref(), &written)?
        }
        Err(absent) => plan_ahead(absent, asked.alias.as_deref(), &written)?,
    };
    let mut parts = device_profile::missing(parts, &written);
    if asked.lights == Some(false) {
        // Of a first setup only lights are sent MIDI.
        parts.retain(|part| part.value["action"]["type"] != "SendMidi");
    }
    if parts.is_empty() {
        return Err(Error::Invalid("it is set up already: it has its binding, and all of the first mappings".into()));
    }
    let places = device_profile::places(&parts, &written);
    let changes: Vec<_> =
        parts.iter().zip(&places).map(|(part, place)| set(place.clone(), part.value.clone())).collect();
    let proposed = Proposed::by(planner, &description, &changes)?;
    let shown = parts.into_iter().zip(places).map(|(part, path)| Part {
        path,
        reason: part.reason,
        confidence: part.confidence.to_string(),
    });
    Ok(Setup { proposed, profile, parts: shown.collect() })
}

/// A port, without its protocol, which is no text of its own.
fn setup_port(port: &host_state::Port) -> SetupPort<'_> {
    SetupPort {
        name: &port.name,
        usb: usb(port),
        is_input: port.direction == Direction::Input,
        protocol: "",
        binding: port.binding.as_deref(),
        told_apart_by: port.told_apart_by.as_deref().and_then(|text| serde_json::from_str(text).ok()),
    }
}

impl ReadOnlyTools for DeviceLibrary {
    fn call(name: String, args: String, _: &Invocation, reader: &Reader) -> Result<String, Error> {
        match name.as_str() {
            "conductor_search_devices" => answer(&args, |query: Query| Ok(search(&query))),
            "conductor_get_device_profile" => answer(&args, |which: Which| get(reader, which)),
            _ => Err(Error::Invalid(format!("there is no tool {name}"))),
        }
    }
}

impl ConfigChangeTools for DeviceLibrary {
    fn call(name: String, args: String, _: &Invocation, reader: &Reader, planner: &Planner) -> Result<String, Error> {
        match name.as_str() {
            "conductor_suggest_setup" => answer(&args, |asked: For| suggest(reader, planner, &asked)),
            _ => Err(Error::Invalid(format!("there is no tool {name}"))),
        }
    }
}

conductor_feature::feature!(DeviceLibrary, "../feature.toml", [read_only_tools, config_change_tools]);
