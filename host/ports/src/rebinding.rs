//! Rebinding: which devices events would have come from, had other bindings been in force when they came.

use std::collections::HashMap;

use conductor_event::{DeviceId, Event};

use super::binding::Channels;
use super::plan::PortPlan;
use super::resolve::{Claim, Labels, PortKey, Resolved, key, resolve};
use super::status::{DiscoveredPort, PortsStatus};
use super::{Direction, PortInfo};

/// The inputs that are there, as other bindings would have them.
#[derive(Debug, Clone, Default)]
pub struct Rebinding {
    ports: Vec<Resolved>,
    /// The place in `ports` of the input that events of a device come from.
    places: HashMap<DeviceId, usize>,
}

impl Rebinding {
    /// The inputs of `status`, resolved again for the bindings of `plan`.
    pub fn new(status: &PortsStatus, plan: &PortPlan) -> Self {
        let is_input = |known: &&DiscoveredPort| known.port.direction == Direction::Input;
        let inputs: Vec<&DiscoveredPort> = status.ports.iter().filter(is_input).collect();
        let labels = Labels::shown(inputs.iter().map(|known| (&known.port, known.label.as_str())));
        let ports: Vec<PortInfo> = inputs.iter().map(|known| known.port.clone()).collect();
        let (_, ports) = plan.without_ignored(ports);
        let ports = resolve(&ports, &plan.bindings, &labels).ports;
        let by_key: HashMap<PortKey, usize> =
            ports.iter().enumerate().map(|(place, resolved)| (key(&resolved.port), place)).collect();
        let mut places = HashMap::new();
        for input in inputs {
            if let Some(place) = by_key.get(&key(&input.port)) {
                let names = input.bindings.iter().chain([&input.label]);
                places.extend(names.map(|name| (DeviceId::new(name), *place)));
            }
        }
        Self { ports, places }
    }

    /// The device that an event of `device` would have come from: the alias of the binding that has its port, or has its
    /// channel of it; without one, the port's own name. It stays `device` if bindings would be ambiguous there, and if no
    /// such port is present or it would be left alone.
    pub fn device<'n>(&'n self, device: &'n DeviceId, event: &Event) -> &'n DeviceId {
        let Some(port) = self.places.get(device).and_then(|place| self.ports.get(*place)) else { return device };
        let slot = Channels::slot(event.channel());
        let has_it = |claim: &&Claim| claim.channels.has(slot);
        match (port.claims.iter().find(has_it), port.ambiguous.iter().find(has_it)) {
            (Some(claim), _) => &claim.alias,
            (None, Some(_)) => device,
            (None, None) => &port.label,
        }
    }
}

#[cfg(test)]
mod tests {
    use conductor_event::MidiMessage;

    use super::super::simulated::SimulatedPorts;
    use super::super::supervisor::look;
    use super::super::{BindingSpec, Matcher, Protocol};
    use super::*;

    fn plan(bindings: &[BindingSpec]) -> PortPlan {
        PortPlan { bindings: bindings.to_vec(), ..PortPlan::default() }
    }

    fn bound(alias: &str, part: &str) -> BindingSpec {
        BindingSpec { input: vec![Matcher::NameContains(part.into())], ..BindingSpec::new(alias, Protocol::Midi) }
    }

    fn ports(names: &[&str]) -> SimulatedPorts {
        let ports = SimulatedPorts::new();
        for (number, name) in names.iter().enumerate() {
            ports.plug_port(PortInfo::new(name, &number.to_string(), "simulated", Protocol::Midi, Direction::Input));
        }
        ports
    }

    /// Where a note on a channel, 0 to 15, would have come from.
    fn on_channel(rebinding: &Rebinding, device: &str, channel: u8) -> String {
        let note = Event::from(MidiMessage::NoteOn { channel, note: 36, velocity: 100 });
        rebinding.device(&DeviceId::new(device), &note).to_string()
    }

    /// Where notes of these devices would have come from.
    fn rebound<const N: usize>(
        ports: &SimulatedPorts,
        before: &[BindingSpec],
        after: &[BindingSpec],
        devices: [&str; N],
    ) -> [String; N] {
        let rebinding = Rebinding::new(&look(vec![ports.backend()], &plan(before)), &plan(after));
        devices.map(|device| on_channel(&rebinding, device, 0))
    }

    #[test]
    fn a_port_that_is_bound_goes_by_the_alias_and_one_that_is_not_by_its_own_name() {
        let ports = ports(&["Maschine", "Keystep"]);
        let (pads, drums) = (bound("pads", "masch"), bound("drums", "masch"));
        let devices = ["Maschine", "Keystep", "gone"];
        assert_eq!(rebound(&ports, &[], std::slice::from_ref(&pads), devices), ["pads", "Keystep", "gone"]);
        assert_eq!(rebound(&ports, std::slice::from_ref(&pads), &[drums], ["pads"]), ["drums"]);
        assert_eq!(rebound(&ports, std::slice::from_ref(&pads), &[], ["pads"]), ["Maschine"]);
        let moved = bound("pads", "key");
        assert_eq!(rebound(&ports, &[pads], &[moved], ["pads", "Keystep"]), ["Maschine", "pads"]);
    }

    #[test]
    fn twins_stay_as_they_are_until_something_tells_them_apart() {
        let ports = ports(&["Pad", "Pad"]);
        assert_eq!(rebound(&ports, &[], &[bound("pads", "pad")], ["Pad", "Pad #2"]), ["Pad", "Pad #2"]);
        let second = BindingSpec { input: vec![Matcher::PlatformId("1".into())], ..bound("pads", "pad") };
        assert_eq!(rebound(&ports, &[], &[second], ["Pad", "Pad #2"]), ["Pad", "pads"]);
    }

    #[test]
    fn a_port_that_is_called_like_the_alias_is_not_taken_for_it() {
        let ports = ports(&["pads", "Maschine"]);
        assert_eq!(rebound(&ports, &[], &[bound("pads", "masch")], ["pads", "Maschine"]), ["pads #2", "pads"]);
    }

    #[test]
    fn a_part_of_a_port_goes_by_the_alias_and_the_rest_by_the_name() {
        let ports = ports(&["UM-ONE"]);
        let pedal = BindingSpec { channels: Channels::only([3]), ..bound("pedal", "um-one") };
        let rebinding = Rebinding::new(&look(vec![ports.backend()], &plan(&[])), &plan(&[pedal]));
        assert_eq!([3, 4].map(|channel| on_channel(&rebinding, "UM-ONE", channel)), ["pedal", "UM-ONE"]);
    }
}
