//! Port resolution: which binding matches which port, and under which device name a port's events come.
//!
//! [`resolve`] is a pure function of the ports, the bindings, and the names that ports had before. The result does
//! not depend on the order in which the system lists ports: it changes from one start to the next.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use conductor_event::DeviceId;

use super::binding::{BindingSpec, Channels};
use super::matcher::Specificity;
use super::{Direction, PortInfo};

/// A port, beyond the moment of one listing.
pub type PortKey = (Cow<'static, str>, Direction, String);

/// The key of a port.
pub fn key(port: &PortInfo) -> PortKey {
    (port.backend.clone(), port.direction, port.key.clone())
}

/// The ports' own names, told apart with `#2`, `#3` where they are the same.
///
/// A port keeps its number for as long as it is present; others that come and go do not change it.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    numbers: HashMap<PortKey, (String, usize)>,
}

impl Labels {
    /// The labels that these ports are shown with.
    pub(super) fn shown<'p>(ports: impl IntoIterator<Item = (&'p PortInfo, &'p str)>) -> Self {
        let number = |port: &PortInfo, label: &str| match label.strip_prefix(port.name.as_str())? {
            "" => Some(0),
            rest => rest.strip_prefix(" #")?.parse::<usize>().ok()?.checked_sub(1),
        };
        let numbered =
            |(port, label): (&'p PortInfo, &'p str)| Some((key(port), (port.name.clone(), number(port, label)?)));
        Self { numbers: ports.into_iter().filter_map(numbered).collect() }
    }

    /// The labels of these ports: those that they had, and the lowest free numbers for what is new. New twins
    /// are numbered by the socket that they are in. A name that is an alias is no port's own.
    fn next(&self, ports: &[PortInfo], bindings: &[BindingSpec]) -> Self {
        let is_alias = |label: &DeviceId| bindings.iter().any(|binding| binding.alias == label.as_str());
        let mut numbers: HashMap<PortKey, (String, usize)> = HashMap::new();
        // Whole labels, not numbers: a port may be called as the twin of another would be.
        let mut taken: HashSet<(Direction, DeviceId)> = HashSet::new();
        let mut new = Vec::new();
        for port in ports {
            let before = self.numbers.get(&key(port)).filter(|(name, _)| *name == port.name);
            let label = before.map(|(name, number)| DeviceId::instance(name, *number));
            match (before, label) {
                (Some(before), Some(label)) if !is_alias(&label) => {
                    taken.insert((port.direction, label));
                    numbers.insert(key(port), before.clone());
                }
                _ => new.push(port),
            }
        }
        new.sort_by_key(|port| {
            let socket = port.metadata.usb.as_ref().and_then(|usb| usb.path.clone());
            (socket, port.protocol, port.backend.clone(), port.key.clone())
        });
        for port in new {
            let is_free = |number: &usize| {
                let label = DeviceId::instance(&port.name, *number);
                !is_alias(&label) && taken.insert((port.direction, label))
            };
            let number = (0..).find(is_free).unwrap_or_default();
            numbers.insert(key(port), (port.name.clone(), number));
        }
        Self { numbers }
    }

    fn of(&self, port: &PortInfo) -> DeviceId {
        let number = self.numbers.get(&key(port)).map_or(0, |(_, number)| *number);
        DeviceId::instance(&port.name, number)
    }
}

/// What became of a port.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The port.
    pub port: PortInfo,
    /// Its own name, with `#2`, `#3` for twins.
    pub label: DeviceId,
    /// The bindings that have it, or parts of it.
    pub claims: Vec<Claim>,
    /// The bindings that it matches as well as another port does, and the part that lies idle for it.
    pub ambiguous: Vec<Claim>,
}

/// A binding's hold on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The binding's place in the configuration.
    pub binding: usize,
    /// Its alias.
    pub alias: DeviceId,
    /// What of the port is meant.
    pub channels: Channels,
}

impl Resolved {
    /// What the port is called in listings: the alias of the binding that has it, else its own name.
    pub fn device(&self) -> &DeviceId {
        self.claims.first().map_or(&self.label, |claim| &claim.alias)
    }

    /// Whether a binding of this alias has it.
    pub fn is_bound_to(&self, alias: &str) -> bool {
        self.claims.iter().any(|claim| claim.alias.as_str() == alias)
    }
}

/// What became of one direction of a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindingState {
    /// It has this port, by its place in [`Resolution::ports`].
    Bound(usize),
    /// No present port matches it, or one that does is another binding's.
    Unbound,
    /// These ports match it equally well. None of them is heard under its alias.
    Ambiguous(Vec<usize>),
}

/// Who is who.
#[derive(Debug, Clone, Default)]
pub struct Resolution {
    /// Every port, in the order of the listing.
    pub ports: Vec<Resolved>,
    /// The state of the input of each binding; `None` if it has no input.
    pub inputs: Vec<Option<BindingState>>,
    /// The same for the outputs.
    pub outputs: Vec<Option<BindingState>>,
    /// The labels, for the next time.
    pub labels: Labels,
}

/// Gives every port its names.
///
/// A binding takes the port that fits it best by [`Specificity`]; where two ports fit equally well, none of
/// them: telling twins apart by the order in which they are listed would give each the other's mappings after
/// a restart. Of two bindings that fit a port, the more specific one has it, and of equals the first. Bindings
/// for some channels go before those for all; a port may be shared by channels.
pub fn resolve(ports: &[PortInfo], bindings: &[BindingSpec], before: &Labels) -> Resolution {
    let labels = before.next(ports, bindings);
    let resolved = ports.iter().map(|port| Resolved {
        label: labels.of(port),
        port: port.clone(),
        claims: Vec::new(),
        ambiguous: Vec::new(),
    });
    let mut resolution = Resolution { ports: resolved.collect(), labels, ..Resolution::default() };
    resolution.inputs = claim(&mut resolution.ports, bindings, Direction::Input);
    resolution.outputs = claim(&mut resolution.ports, bindings, Direction::Output);
    resolution
}

fn claim(ports: &mut [Resolved], bindings: &[BindingSpec], direction: Direction) -> Vec<Option<BindingState>> {
    let mut states: Vec<_> = bindings
        .iter()
        .map(|binding| (!binding.matchers(direction).is_empty()).then_some(BindingState::Unbound))
        .collect();
    let mut fits: Vec<(bool, Specificity, usize, usize)> = Vec::new();
    for (index, binding) in bindings.iter().enumerate() {
        for (place, resolved) in ports.iter().enumerate().filter(|(_, resolved)| resolved.port.direction == direction) {
            if let Some(specificity) = binding.fits(&resolved.port) {
                fits.push((binding.channels != Channels::ALL, specificity, index, place));
            }
        }
    }
    // Some channels before all, the more specific before the less, the first binding before the others.
    fits.sort_by(|one, other| (other.0, other.1, one.2, one.3).cmp(&(one.0, one.1, other.2, other.3)));
    let mut free = vec![Channels::ALL; ports.len()];
    for group in fits.chunk_by(|one, other| (one.0, one.1, one.2) == (other.0, other.1, other.2)) {
        let (_, _, index, _) = group[0];
        if states[index] != Some(BindingState::Unbound) {
            continue;
        }
        let claim = |place: usize, free: &mut [Channels]| {
            let channels = bindings[index].channels.and(free[place]);
            free[place] = free[place].without(channels);
            (channels != Channels::NONE).then(|| Claim {
                binding: index,
                alias: DeviceId::new(&bindings[index].alias),
                channels,
            })
        };
        let claims: Vec<(usize, Claim)> =
            group.iter().filter_map(|fit| claim(fit.3, &mut free).map(|claim| (fit.3, claim))).collect();
        let mut places: Vec<usize> = claims.iter().map(|(place, _)| *place).collect();
        let ambiguous = places.len() > 1;
        for (place, claim) in claims {
            let list = if ambiguous { &mut ports[place].ambiguous } else { &mut ports[place].claims };
            list.push(claim);
        }
        states[index] = match places.as_slice() {
            [] => continue,
            [place] => Some(BindingState::Bound(*place)),
            _ => Some(BindingState::Ambiguous(std::mem::take(&mut places))),
        };
    }
    states
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Matcher, Protocol, UsbDevice};
    use super::*;

    fn port(name: &str, key: &str) -> PortInfo {
        PortInfo::new(name, key, "test", Protocol::Midi, Direction::Input)
    }

    /// A port whose name is its key.
    fn named(name: &str) -> PortInfo {
        port(name, name)
    }

    fn in_socket(mut port: PortInfo, path: &str) -> PortInfo {
        let path = Some(path.to_owned());
        port.metadata.usb =
            Some(UsbDevice { vendor_id: 1, product_id: 2, serial: None, bus: None, address: None, path });
        port
    }

    fn binding(alias: &str, matchers: Vec<Matcher>) -> BindingSpec {
        BindingSpec { input: matchers.clone(), output: matchers, ..BindingSpec::new(alias, Protocol::Midi) }
    }

    fn contains(part: &str) -> Vec<Matcher> {
        vec![Matcher::NameContains(part.into())]
    }

    fn scoped(alias: &str, part: &str, channels: &[u8]) -> BindingSpec {
        BindingSpec { channels: Channels::only(channels.iter().copied()), ..binding(alias, contains(part)) }
    }

    fn resolved(ports: &[PortInfo], bindings: &[BindingSpec]) -> Resolution {
        resolve(ports, bindings, &Labels::default())
    }

    fn devices(ports: &[PortInfo], bindings: &[BindingSpec]) -> Vec<String> {
        resolved(ports, bindings).ports.iter().map(|resolved| resolved.device().to_string()).collect()
    }

    // ENG-3: D19, a bound port goes by its alias, another by its own name.
    #[test]
    fn a_port_goes_by_its_alias_or_by_its_own_name() {
        let bindings = [
            binding("pads", vec![Matcher::ExactName("Maschine".into())]),
            binding("keys", contains("keystep")),
            #[expect(clippy::unwrap_used, reason = "a fixed pattern")]
            binding("nano", vec![Matcher::NameRegex(regex::Regex::new("^nano(KONTROL|PAD)2$").unwrap())]),
        ];
        let ports = ["Maschine", "Maschine 2", "Arturia KeyStep 37", "nanoPAD2"].map(named);
        assert_eq!(devices(&ports, &bindings), ["pads", "Maschine 2", "keys", "nano"]);
        assert_eq!(resolved(&ports[1..2], &bindings).inputs, vec![Some(BindingState::Unbound); 3]);
    }

    // ENG-3: D11, twins are ambiguous: no port has the alias, in either order.
    #[test]
    fn twins_share_no_alias_until_something_tells_them_apart() {
        let twins = [in_socket(port("Pad", "20:0"), "1-2"), in_socket(port("Pad", "24:0"), "1-1")];
        let resolution = resolved(&twins, &[binding("pads", contains("pad"))]);
        assert_eq!(resolution.inputs, [Some(BindingState::Ambiguous(vec![0, 1]))]);
        let labels: Vec<_> = resolution.ports.iter().map(|port| port.device().as_str()).collect();
        assert_eq!(labels, ["Pad #2", "Pad"], "numbered by their sockets, not by their order");
        assert!(resolution.ports.iter().all(|port| port.claims.is_empty() && port.ambiguous.len() == 1));

        let pinned = vec![Matcher::UsbPath("1-2".into()), Matcher::NameContains("pad".into())];
        let resolution = resolved(&twins, &[binding("pads", pinned)]);
        assert_eq!(resolution.inputs, [Some(BindingState::Bound(0))]);
        assert_eq!(resolution.ports[1].device().as_str(), "Pad");
    }

    #[test]
    fn two_bindings_that_tell_their_twin_leave_each_its_own() {
        let twins = [in_socket(port("Pad", "20:0"), "1-2"), in_socket(port("Pad", "24:0"), "1-1")];
        let pinned = |alias, path: &str| {
            binding(alias, vec![Matcher::UsbPath(path.into()), Matcher::NameContains("pad".into())])
        };
        let bindings = [pinned("left", "1-1"), pinned("right", "1-2")];
        assert_eq!(devices(&twins, &bindings), ["right", "left"]);
        // The less specific match of a binding that has a port already does not keep others from another.
        let bindings = [pinned("left", "1-1"), binding("rest", contains("pad"))];
        assert_eq!(devices(&twins, &bindings), ["rest", "left"]);
    }

    #[test]
    fn the_more_specific_binding_has_the_port_and_of_equals_the_first() {
        let ports = ["Pad Left", "Pad Right"].map(named);
        let bindings =
            [binding("any", contains("pad")), binding("right", vec![Matcher::ExactName("Pad Right".into())])];
        assert_eq!(devices(&ports, &bindings), ["any", "right"]);
        let bindings = [binding("any", contains("pad")), binding("right", contains("pad right"))];
        assert_eq!(devices(&ports, &bindings), ["any", "right"], "a longer part says more");
        let bindings = [binding("one", contains("left")), binding("two", contains("left"))];
        assert_eq!(devices(&ports[..1], &bindings), ["one"]);
    }

    // ENG-3: a device behind an interface is recognized by its channels; two bindings share the port.
    #[test]
    fn a_port_is_shared_by_channels() {
        let bindings =
            [binding("rest", contains("um-one")), scoped("pedal", "um-one", &[0]), scoped("keys", "um", &[1, 2])];
        let resolution = resolved(&[named("UM-ONE")], &bindings);
        let owner = |slot| {
            let claims = &resolution.ports[0].claims;
            claims.iter().find(|claim| claim.channels.has(slot)).map(|claim| claim.alias.to_string())
        };
        assert_eq!([0, 1, 2, 3, 16].map(|slot| owner(slot).unwrap()), ["pedal", "keys", "keys", "rest", "rest"]);
        let resolution = resolved(&[named("UM-ONE")], &bindings[1..]);
        assert!(!resolution.ports[0].claims.iter().any(|claim| claim.channels.has(16)), "no binding's");
    }

    #[test]
    fn a_protocol_only_matches_its_own_bindings() {
        let pad = PortInfo { protocol: Protocol::Hid, ..named("Pad") };
        assert_eq!(devices(&[pad], &[binding("pads", contains("pad"))]), ["Pad"]);
    }

    #[test]
    fn the_direction_comes_from_the_matchers_that_are_there() {
        let output = PortInfo { direction: Direction::Output, ..named("Synth") };
        let synth = BindingSpec { input: vec![], ..binding("synth", contains("synth")) };
        let resolution = resolved(&[named("Synth"), output], &[synth]);
        assert_eq!(
            (&resolution.inputs[..], &resolution.outputs[..]),
            (&[None][..], &[Some(BindingState::Bound(1))][..])
        );
    }

    #[test]
    fn a_port_keeps_its_number_while_it_is_there() {
        let (one, two, three) = (port("Pad", "a"), port("Pad", "b"), port("Pad", "c"));
        let all = resolved(&[one, two.clone(), three.clone()], &[]);
        let rest = resolve(&[three.clone(), two.clone()], &[], &all.labels);
        let names = |resolution: &Resolution| -> Vec<String> {
            resolution.ports.iter().map(|port| port.label.to_string()).collect()
        };
        assert_eq!(names(&rest), ["Pad #3", "Pad #2"]);
        let again = resolve(&[two, three, port("Pad", "d")], &[], &rest.labels);
        assert_eq!(names(&again), ["Pad #2", "Pad #3", "Pad"]);
    }

    #[test]
    fn no_port_passes_for_a_binding_by_being_called_like_it() {
        assert_eq!(devices(&[named("pads")], &[binding("pads", contains("maschine"))]), ["pads #2"]);
    }

    #[test]
    fn no_port_passes_for_the_twin_of_another_nor_for_a_binding() {
        let ports = [port("Pad", "a"), port("Pad", "b"), port("Pad #2", "c")];
        assert_eq!(devices(&ports, &[]), ["Pad", "Pad #2", "Pad #2 #2"]);
        assert_eq!(devices(&ports, &[binding("Pad #2", contains("keys"))]), ["Pad", "Pad #3", "Pad #2 #2"]);
        // The first one keeps its name.
        let first = resolved(&ports[2..], &[]);
        let all = resolve(&ports, &[], &first.labels);
        let labels: Vec<_> = all.ports.iter().map(|port| port.label.as_str()).collect();
        assert_eq!(labels, ["Pad", "Pad #3", "Pad #2"]);
    }

    fn any_matcher() -> impl Strategy<Value = Matcher> {
        let name = "[ab]{1,2}";
        prop_oneof![
            name.prop_map(Matcher::ExactName),
            name.prop_map(Matcher::NameContains),
            name.prop_map(|name| Matcher::NameRegex(regex::Regex::new(&name).unwrap())),
            "[0-5]".prop_map(Matcher::PlatformId),
            "[0-3]".prop_map(Matcher::UsbPath),
        ]
    }

    fn any_binding() -> impl Strategy<Value = BindingSpec> {
        let channels = prop_oneof![
            Just(Channels::ALL),
            any::<u16>().prop_map(|bits| Channels::only((0..16).filter(move |c| bits >> c & 1 == 1)))
        ];
        (proptest::collection::vec(any_matcher(), 0..3), channels)
            .prop_map(|(matchers, channels)| BindingSpec { channels, ..binding("", matchers) })
    }

    fn any_ports() -> impl Strategy<Value = Vec<PortInfo>> {
        proptest::collection::vec(("[ab]{1,3}", "[0-3]"), 0..6).prop_map(|ports| {
            let ports = ports.iter().enumerate();
            ports.map(|(key, (name, path))| in_socket(port(name, &key.to_string()), path)).collect()
        })
    }

    fn any_bindings() -> impl Strategy<Value = Vec<BindingSpec>> {
        proptest::collection::vec(any_binding(), 0..5).prop_map(|mut bindings| {
            for (index, binding) in bindings.iter_mut().enumerate() {
                binding.alias = format!("binding {index}");
            }
            bindings
        })
    }

    /// What became of each port, by its key.
    fn by_key(resolution: &Resolution) -> Vec<(String, String, Vec<Claim>, Vec<Claim>)> {
        let mut all: Vec<_> = resolution
            .ports
            .iter()
            .map(|port| (port.port.key.clone(), port.label.to_string(), port.claims.clone(), port.ambiguous.clone()))
            .collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    }

    proptest! {
        #[test]
        fn the_order_of_the_ports_decides_nothing(
            (ports, shuffled) in any_ports().prop_flat_map(|ports| (Just(ports.clone()), Just(ports).prop_shuffle())),
            bindings in any_bindings(),
        ) {
            let once = by_key(&resolved(&ports, &bindings));
            prop_assert_eq!(&once, &by_key(&resolved(&ports, &bindings)), "the same twice");
            prop_assert_eq!(&once, &by_key(&resolved(&shuffled, &bindings)));
        }

        #[test]
        fn no_channel_of_a_port_is_two_bindings_and_no_name_two_ports(ports in any_ports(), bindings in any_bindings()) {
            let resolution = resolved(&ports, &bindings);
            for port in &resolution.ports {
                for slot in 0..Channels::SLOTS {
                    let claims = port.claims.iter().chain(&port.ambiguous);
                    prop_assert!(claims.filter(|claim| claim.channels.has(slot)).count() <= 1);
                }
            }
            let mut labels: Vec<_> = resolution.ports.iter().map(|port| port.label.clone()).collect();
            labels.sort();
            labels.dedup();
            prop_assert_eq!(labels.len(), ports.len());
            for (index, state) in resolution.inputs.iter().enumerate() {
                let holders = resolution.ports.iter().filter(|port| port.claims.iter().any(|claim| claim.binding == index));
                prop_assert_eq!(holders.count(), usize::from(matches!(state, Some(BindingState::Bound(_)))));
            }
        }

        #[test]
        fn more_specific_wins(ports in any_ports(), bindings in any_bindings()) {
            let resolution = resolved(&ports, &bindings);
            for (index, state) in resolution.inputs.iter().enumerate() {
                let Some(BindingState::Bound(place)) = state else { continue };
                let has = bindings[index].fits(&ports[*place]);
                // A port that fits better is missed only where a binding holds it that goes before.
                for (other, port) in ports.iter().enumerate() {
                    let (better, port_claims) = (bindings[index].fits(port), &resolution.ports[other]);
                    let held = port_claims.claims.iter().chain(&port_claims.ambiguous).any(|claim| {
                        bindings[claim.binding].channels != Channels::ALL || bindings[claim.binding].fits(port) >= better
                    });
                    prop_assert!(better <= has || held, "{index} has {place} and not {other}");
                }
            }
        }
    }
}
