//! Ports and bindings: for any set of them, each part of a port is one binding's, and order does not matter.

use conductor_config as config;
use conductor_ports::binding::Channels;
use conductor_ports::resolve::{BindingState, Claim, Labels, Resolution, resolve};
use conductor_ports::{BindingSpec, Direction, Matcher, PortInfo, PortMetadata, Protocol, SysExIdentity, UsbDevice};
use regex::Regex;

use crate::bytes::Bytes;

// Small worlds, so that things meet.
const NAMES: [&str; 8] = ["a", "b", "ab", "A", "ba", "äb", "a #2", ""];
const PATHS: [&str; 4] = ["1-1", "1-2", "1-2.4", ""];
const PATTERNS: [&str; 6] = ["^a", "b$", ".", "(?i)AB", "a|b", "[ab]{2}"];

pub fn run(data: &[u8]) {
    let _ = SysExIdentity::of_reply(data);
    let mut bytes = Bytes::new(data);
    let bytes = &mut bytes;
    let ports: Vec<PortInfo> = (0..bytes.below(8)).map(|key| port(key, bytes)).collect();
    let bindings: Vec<BindingSpec> = (0..bytes.below(6)).map(|_| binding(bytes)).collect();
    let resolution = resolve(&ports, &bindings, &Labels::default());
    is_sound(&ports, &bindings, &resolution);

    let mut shuffled = ports.clone();
    for place in 1..shuffled.len() {
        let other = usize::from(bytes.byte()) % (place + 1);
        shuffled.swap(place, other);
    }
    let other = resolve(&shuffled, &bindings, &Labels::default());
    assert_eq!(by_key(&resolution), by_key(&other), "the order of the ports decides nothing");

    // Some go: the others keep their names.
    let left: Vec<PortInfo> = shuffled.into_iter().filter(|_| !bytes.one_in(3)).collect();
    let later = resolve(&left, &bindings, &resolution.labels);
    is_sound(&left, &bindings, &later);
    for port in &later.ports {
        let before = resolution.ports.iter().find(|before| before.port == port.port);
        assert_eq!(before.map(|before| &before.label), Some(&port.label));
    }
    tells_apart(&ports);
}

fn port(key: u8, bytes: &mut Bytes<'_>) -> PortInfo {
    let protocol = bytes.pick(&[Protocol::Midi, Protocol::Midi, Protocol::Midi, Protocol::Hid]);
    let direction = bytes.pick(&[Direction::Input, Direction::Input, Direction::Output]);
    let known = bytes.byte();
    let some = |bit: u8| known >> bit & 1 == 1;
    let usb = some(0).then(|| UsbDevice {
        vendor_id: bytes.below(2).into(),
        product_id: bytes.below(2).into(),
        serial: some(1).then(|| bytes.pick(&NAMES).to_owned()),
        bus: some(2).then(|| bytes.below(2)),
        address: some(3).then(|| bytes.below(3)),
        path: some(4).then(|| bytes.pick(&PATHS).to_owned()),
    });
    let metadata = PortMetadata {
        core_midi_unique_id: some(5).then(|| bytes.below(3).into()),
        sysex_identity: some(6).then(|| identity(bytes)),
        usb,
        ..PortMetadata::default()
    };
    let name = bytes.pick(&NAMES);
    PortInfo { metadata, ..PortInfo::new(name, &key.to_string(), "test", protocol, direction) }
}

fn identity(bytes: &mut Bytes<'_>) -> SysExIdentity {
    SysExIdentity { manufacturer: [0, 0x21, bytes.below(2)], family: bytes.below(2).into(), model: 1 }
}

fn matcher(bytes: &mut Bytes<'_>) -> Matcher {
    match bytes.below(10) {
        0 => Matcher::CoreMidiUniqueId(bytes.below(3).into()),
        1 => Matcher::SysExIdentity(identity(bytes)),
        2 => Matcher::Usb {
            vendor_id: bytes.below(2).into(),
            product_id: bytes.below(2).into(),
            serial: bytes.one_in(2).then(|| bytes.pick(&NAMES).to_owned()),
        },
        3 => Matcher::UsbPath(bytes.pick(&PATHS).to_owned()),
        4 => Matcher::UsbTopology { bus: bytes.below(2), address: bytes.below(3) },
        5 => Matcher::ExactName(bytes.pick(&NAMES).to_owned()),
        6 => Matcher::PlatformId(bytes.below(8).to_string()),
        7 => match Regex::new(bytes.pick(&PATTERNS)) {
            Ok(regex) => Matcher::NameRegex(regex),
            Err(error) => panic!("{error}"),
        },
        8 => Matcher::Made(bytes.below(8).to_string()),
        _ => Matcher::NameContains(bytes.pick(&NAMES).to_owned()),
    }
}

fn binding(bytes: &mut Bytes<'_>) -> BindingSpec {
    let alias = bytes.pick(&["pads", "keys", "a", "b", "synth"]);
    let protocol = bytes.pick(&[Protocol::Midi, Protocol::Midi, Protocol::Midi, Protocol::Hid]);
    let mut some = || (0..bytes.below(4)).map(|_| matcher(bytes)).collect();
    let (input, output) = (some(), some());
    let channels = match bytes.below(3) {
        0 => Channels::only((0..16).filter(|channel| bytes.byte() >> (channel % 8) & 1 == 1)),
        _ => Channels::ALL,
    };
    BindingSpec { input, output, channels, ..BindingSpec::new(alias, protocol) }
}

fn is_sound(ports: &[PortInfo], bindings: &[BindingSpec], resolution: &Resolution) {
    assert!(resolution.ports.iter().map(|resolved| &resolved.port).eq(ports));
    for port in &resolution.ports {
        for slot in 0..Channels::SLOTS {
            let claims = port.claims.iter().chain(&port.ambiguous);
            assert!(claims.filter(|claim| claim.channels.has(slot)).count() <= 1, "a channel is one binding's");
        }
        for claim in port.claims.iter().chain(&port.ambiguous) {
            assert!(bindings[claim.binding].fits(&port.port).is_some(), "{claim:?}");
        }
    }
    let mut labels: Vec<_> = resolution.ports.iter().map(|port| (port.port.direction, port.label.clone())).collect();
    labels.sort();
    labels.dedup();
    assert_eq!(labels.len(), ports.len(), "no two ports have one name");
    for (direction, states) in [(Direction::Input, &resolution.inputs), (Direction::Output, &resolution.outputs)] {
        assert_eq!(states.len(), bindings.len());
        for (index, (state, binding)) in states.iter().zip(bindings).enumerate() {
            let places = |ambiguous: bool| -> Vec<usize> {
                let claims = |at: &usize| -> &[Claim] {
                    let port = &resolution.ports[*at];
                    if ambiguous { &port.ambiguous } else { &port.claims }
                };
                let holds = |at: &usize| {
                    ports[*at].direction == direction && claims(at).iter().any(|claim| claim.binding == index)
                };
                (0..ports.len()).filter(holds).collect()
            };
            let expected = match (places(false).as_slice(), places(true)) {
                _ if binding.matchers(direction).is_empty() => None,
                ([], none) if none.is_empty() => Some(BindingState::Unbound),
                ([], several) => Some(BindingState::Ambiguous(several)),
                ([place], none) if none.is_empty() => Some(BindingState::Bound(*place)),
                both => panic!("binding {index}: {both:?}"),
            };
            let state = match state.clone() {
                Some(BindingState::Ambiguous(mut places)) => {
                    assert!(places.len() > 1);
                    places.sort_unstable();
                    Some(BindingState::Ambiguous(places))
                }
                state => state,
            };
            assert_eq!(state, expected, "binding {index}, {direction}");
        }
    }
}

type Became = (Direction, String, String, Vec<Claim>, Vec<Claim>);

fn by_key(resolution: &Resolution) -> Vec<Became> {
    let became = resolution.ports.iter().map(|port| {
        let (direction, key) = (port.port.direction, port.port.key.clone());
        (direction, key, port.label.to_string(), port.claims.clone(), port.ambiguous.clone())
    });
    let mut all: Vec<Became> = became.collect();
    all.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    all
}

/// What is said to tell a port from all others does, and can be written into a configuration.
fn tells_apart(ports: &[PortInfo]) {
    for (index, port) in ports.iter().enumerate() {
        let others = ports.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, other)| other);
        let Some(matcher) = Matcher::telling_apart(port, others.clone()) else { continue };
        assert!(matcher.matches(port) && !others.clone().any(|other| matcher.matches(other)), "{matcher}");
        if let Some(written) = matcher.written() {
            assert!(serde_json::from_value::<config::Matcher>(written).is_ok(), "{matcher}");
        }
    }
}
