//! A first setup for a device that is there: what is known of it by its profile, as changes to a configuration.

use conductor_device_profile::{self as device_profile, Library, PortFit, Profile, SetupPort, Suggested, UsbId};
use conductor_ports::Direction;
use conductor_ports::status::{DiscoveredPort, PortsStatus};
use serde::Serialize;
use serde_json::Value;

/// A change of a configuration: what is put at a place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetupChange {
    /// The place, such as `global_mappings/3`.
    pub path: String,
    /// What is put there, as the configuration has it.
    pub value: Value,
}

/// A first setup for an input.
#[derive(Debug, Clone, PartialEq)]
pub struct FirstSetup {
    /// The id of the profile that fits the input.
    pub profile: String,
    /// What it is, for a plan.
    pub description: String,
    /// Its parts, with the reason for each. At least one.
    pub parts: Vec<Suggested>,
    /// The changes that make them, in the same order.
    pub changes: Vec<SetupChange>,
}

/// Why there is no first setup.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// No input is called so.
    #[error("there is no input {name:?}; there are {}", .known.join(", "))]
    NoInput {
        /// What was asked for.
        name: String,
        /// The inputs that there are.
        known: Vec<String>,
    },
    /// No profile fits the input.
    #[error(
        "no profile fits {port:?}; `conductor learn` tells what its controls send, `conductor devices search` what is known"
    )]
    NoProfile {
        /// The port's own name.
        port: String,
    },
    /// The input has a binding, and its profile has nothing else to begin with, or nothing that is not mapped already.
    #[error(
        "{port:?} is bound, and its profile {profile} says nothing of transport buttons or lights that is not mapped already"
    )]
    Nothing {
        /// The port's own name.
        port: String,
        /// The profile's id.
        profile: String,
    },
}

impl FirstSetup {
    /// A setup for the input that is called `name` (its binding, what its events are from, or its own name), beside what
    /// is `written` in the configuration.
    ///
    /// # Errors
    /// See [`SetupError`].
    pub fn of(library: &Library, status: &PortsStatus, name: &str, written: &toml::Table) -> Result<Self, SetupError> {
        let port = input(status, name)?;
        let own_name = || port.port.name.clone();
        let Some((profile, fit)) = library.of_port(&port.port.name, usb(port)) else {
            return Err(SetupError::NoProfile { port: own_name() });
        };
        let parts = device_profile::missing(parts(status, port, profile, fit, written), written);
        if parts.is_empty() {
            return Err(SetupError::Nothing { port: own_name(), profile: profile.id.clone() });
        }
        Ok(Self {
            profile: profile.id.clone(),
            description: format!("A first setup for {} {}", profile.vendor, profile.name),
            changes: changes(&parts, written),
            parts,
        })
    }
}

/// The input that is called so: its binding, what events call it, or its own name.
fn input<'s>(status: &'s PortsStatus, name: &str) -> Result<&'s DiscoveredPort, SetupError> {
    let inputs = || status.ports.iter().filter(|port| port.port.direction == Direction::Input);
    let is_it = |port: &&DiscoveredPort| {
        port.device == name
            || port.label == name
            || port.port.name == name
            || port.bindings.iter().any(|has| has == name)
    };
    inputs().find(is_it).ok_or_else(|| {
        let known = inputs().map(|port| port.label.clone()).collect();
        SetupError::NoInput { name: name.to_owned(), known }
    })
}

/// The USB ids of a port's device, if they are known.
pub fn usb(port: &DiscoveredPort) -> Option<UsbId> {
    let usb = port.port.metadata.usb.as_ref()?;
    Some(UsbId { vendor: usb.vendor_id, product: usb.product_id })
}

/// What is suggested for a port that fits a profile, beside what is written.
pub fn parts(
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
pub fn changes(parts: &[Suggested], written: &toml::Table) -> Vec<SetupChange> {
    let places = device_profile::places(parts, written);
    parts.iter().zip(places).map(|(part, path)| SetupChange { path, value: part.value.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use conductor_ports::simulated::SimulatedPorts;
    use conductor_ports::supervisor::{PortPlan, look};

    use super::*;

    const KNOWN: &str = "nanoKONTROL2 MIDI 1";

    fn inputs() -> BTreeSet<String> {
        [KNOWN, "Pads 9000"].map(str::to_owned).into()
    }

    fn suggested(name: &str, written: &str) -> Result<FirstSetup, SetupError> {
        let ports = SimulatedPorts::new();
        ports.plug(KNOWN, Direction::Input);
        ports.plug(KNOWN, Direction::Output);
        ports.plug("Pads 9000", Direction::Input);
        ports.plug("Lights", Direction::Output);
        let status = look(vec![ports.backend()], &PortPlan::default());
        FirstSetup::of(&Library::bundled(), &status, name, &toml::from_str(written).unwrap())
    }

    #[test]
    fn a_known_device_is_bound_and_each_part_goes_to_the_end_of_its_list() {
        let FirstSetup { profile, description, parts, changes } = suggested(KNOWN, "").unwrap();
        assert_eq!(profile, "korg-nanokontrol2");
        assert_eq!(description, "A first setup for Korg nanoKONTROL2");
        assert_eq!((parts.len(), changes[0].path.as_str()), (changes.len(), "bindings/0"));
        assert_eq!(changes[0].value["alias"], "nanokontrol2-midi");
        assert!(changes.iter().zip(&parts).all(|(change, part)| change.value == part.value));

        let written = "[[bindings]]\nalias = 'nanokontrol2-midi'\n[[global_mappings]]\nname = 'x'\n";
        let beside = suggested(KNOWN, written).unwrap().changes;
        assert_eq!(beside[0].path, "bindings/1");
        assert_eq!(beside[0].value["alias"], "nanokontrol2-midi-2");
        let mapping = beside.iter().find(|change| change.path.starts_with("global_mappings/")).unwrap();
        assert_eq!(mapping.path, "global_mappings/1");
    }

    #[test]
    fn what_is_no_input_or_is_not_known_has_no_setup() {
        for asked in ["Lights", "nothing"] {
            match suggested(asked, "") {
                Err(SetupError::NoInput { name, known }) => {
                    assert_eq!((name.as_str(), BTreeSet::from_iter(known)), (asked, inputs()));
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(suggested("Pads 9000", ""), Err(SetupError::NoProfile { port: "Pads 9000".to_owned() }));
    }
}
