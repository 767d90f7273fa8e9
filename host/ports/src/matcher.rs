//! Port matchers and their specificity.
//!
//! A property that is unique, such as a serial number, is more specific than a name that other devices share.

use std::fmt;

use regex::Regex;
use serde_json::{Value, json};

use super::{PortInfo, Protocol, SysExIdentity};

/// The most characters that a [`Matcher::NameRegex`] may have.
pub const MAX_REGEX: usize = 256;

/// A property by which a binding recognizes a port.
#[derive(Debug, Clone)]
pub enum Matcher {
    /// The port exists because of the binding: an endpoint that it listens at, a port that it has made.
    Made(String),
    /// The number that CoreMIDI gave the port, which it keeps for good.
    CoreMidiUniqueId(i32),
    /// What the device answered to a SysEx identity request.
    SysExIdentity(SysExIdentity),
    /// The device's USB ids, with its serial number where one is given.
    Usb {
        /// `idVendor`.
        vendor_id: u16,
        /// `idProduct`.
        product_id: u16,
        /// `iSerial`, compared as it is.
        serial: Option<String>,
    },
    /// The socket that the device is plugged into, as in [`UsbDevice::path`](super::UsbDevice::path).
    UsbPath(String),
    /// The device's place on the bus. The address is given anew with every plugging.
    UsbTopology {
        /// The bus.
        bus: u8,
        /// The address on it.
        address: u8,
    },
    /// The whole name, with the same case.
    ExactName(String),
    /// The backend's own key, as listings show it.
    PlatformId(String),
    /// A part of the name, without regard to case.
    NameContains(String),
    /// A regular expression, found anywhere in the name. Linear in the name's length.
    NameRegex(Regex),
}

/// How much a match is worth; more is more specific.
///
/// The first number is the kind's, as `conductor bindings` shows it. The second decides among matchers of
/// one kind: a longer part of a name says more than a shorter one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Specificity(pub u8, pub usize);

impl Matcher {
    /// How much a match is worth.
    pub fn specificity(&self) -> Specificity {
        let kind = match self {
            Self::Made(_) => 110,
            Self::CoreMidiUniqueId(_) => 100,
            Self::SysExIdentity(_) => 70,
            Self::Usb { serial: Some(_), .. } => 65,
            Self::Usb { serial: None, .. } => 60,
            Self::UsbPath(_) => 55,
            Self::UsbTopology { .. } => 50,
            Self::ExactName(_) => 40,
            Self::PlatformId(_) => 30,
            Self::NameContains(_) => 20,
            Self::NameRegex(_) => 10,
        };
        let within = match self {
            Self::NameContains(part) => part.chars().count(),
            _ => 0,
        };
        Specificity(kind, within)
    }

    /// Whether the port matches. A property that the system does not report matches nothing.
    pub fn matches(&self, port: &PortInfo) -> bool {
        let known = &port.metadata;
        match self {
            Self::Made(key) | Self::PlatformId(key) => port.key == *key,
            Self::CoreMidiUniqueId(id) => known.core_midi_unique_id == Some(*id),
            Self::SysExIdentity(identity) => known.sysex_identity == Some(*identity),
            Self::Usb { vendor_id, product_id, serial } => known.usb.as_ref().is_some_and(|usb| {
                (usb.vendor_id, usb.product_id) == (*vendor_id, *product_id)
                    && (serial.is_none() || usb.serial == *serial)
            }),
            Self::UsbPath(path) => known.usb.as_ref().is_some_and(|usb| usb.path.as_ref() == Some(path)),
            Self::UsbTopology { bus, address } => {
                known.usb.as_ref().is_some_and(|usb| (usb.bus, usb.address) == (Some(*bus), Some(*address)))
            }
            Self::ExactName(name) => port.name == *name,
            Self::NameContains(part) => port.name.to_lowercase().contains(&part.to_lowercase()),
            Self::NameRegex(regex) => regex.is_match(&port.name),
        }
    }

    /// The most specific matcher that fits this port and none of the others; `None` if no stable property
    /// differs.
    ///
    /// Neither a bus address nor the key of a gamepad, keyboard or mouse is taken: they follow the order of plugging.
    pub fn telling_apart<'a>(port: &PortInfo, others: impl Iterator<Item = &'a PortInfo> + Clone) -> Option<Self> {
        let usb = port.metadata.usb.as_ref();
        let ids = |serial| {
            move |usb: &super::UsbDevice| Self::Usb { vendor_id: usb.vendor_id, product_id: usb.product_id, serial }
        };
        let serial = usb.and_then(|usb| usb.serial.clone());
        [
            port.metadata.core_midi_unique_id.map(Self::CoreMidiUniqueId),
            port.metadata.sysex_identity.map(Self::SysExIdentity),
            serial.and_then(|serial| usb.map(ids(Some(serial)))),
            usb.map(ids(None)),
            usb.and_then(|usb| usb.path.clone()).map(Self::UsbPath),
            Some(Self::ExactName(port.name.clone())),
            (port.protocol != Protocol::Hid && !port.protocol.is_private()).then(|| Self::PlatformId(port.key.clone())),
        ]
        .into_iter()
        .flatten()
        .find(|matcher| !others.clone().any(|other| matcher.matches(other)))
    }
}

impl Matcher {
    /// As a configuration has it: `{ "type": "usb_path", "value": "1-2.4" }`. `None` if a configuration can't
    /// have it.
    pub fn written(&self) -> Option<Value> {
        let value = |kind: &str, value: Value| json!({ "type": kind, "value": value });
        Some(match self {
            Self::Made(_) => return None,
            Self::CoreMidiUniqueId(id) => value("core_midi_unique_id", (*id).into()),
            Self::SysExIdentity(SysExIdentity { manufacturer, family, model }) => json!({
                "type": "sys_ex_identity", "manufacturer": manufacturer, "family": family, "model": model,
            }),
            Self::Usb { vendor_id, product_id, serial: None } => json!({
                "type": "usb_identifier", "vendor_id": vendor_id, "product_id": product_id,
            }),
            Self::Usb { vendor_id, product_id, serial } => json!({
                "type": "usb_identifier", "vendor_id": vendor_id, "product_id": product_id, "serial": serial,
            }),
            Self::UsbPath(path) => value("usb_path", path.as_str().into()),
            Self::UsbTopology { bus, address } => json!({ "type": "usb_topology", "bus": bus, "address": address }),
            Self::ExactName(name) => value("exact_name", name.as_str().into()),
            Self::PlatformId(key) => value("platform_id", key.as_str().into()),
            Self::NameContains(part) => value("name_contains", part.as_str().into()),
            Self::NameRegex(regex) => value("name_regex", regex.as_str().into()),
        })
    }
}

impl fmt::Display for Matcher {
    /// In the words of a configuration: `name_contains "Pads"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Made(key) => write!(f, "made for it: {key:?}"),
            Self::CoreMidiUniqueId(id) => write!(f, "core_midi_unique_id {id}"),
            Self::SysExIdentity(identity) => write!(f, "sys_ex_identity {identity}"),
            Self::Usb { vendor_id, product_id, serial } => {
                write!(f, "usb_identifier {vendor_id:04x}:{product_id:04x}")?;
                serial.as_ref().map_or(Ok(()), |serial| write!(f, " {serial:?}"))
            }
            Self::UsbPath(path) => write!(f, "usb_path {path:?}"),
            Self::UsbTopology { bus, address } => write!(f, "usb_topology {bus}:{address}"),
            Self::ExactName(name) => write!(f, "exact_name {name:?}"),
            Self::PlatformId(key) => write!(f, "platform_id {key:?}"),
            Self::NameContains(part) => write!(f, "name_contains {part:?}"),
            Self::NameRegex(regex) => write!(f, "name_regex {:?}", regex.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Direction, PortMetadata, UsbDevice};
    use super::*;

    fn mikro() -> PortInfo {
        PortInfo {
            metadata: PortMetadata {
                core_midi_unique_id: Some(-7),
                sysex_identity: Some(SysExIdentity { manufacturer: [0, 0x21, 9], family: 0x1600, model: 2 }),
                usb: Some(UsbDevice {
                    vendor_id: 0x17cc,
                    product_id: 0x1700,
                    serial: Some("A1".into()),
                    bus: Some(1),
                    address: Some(9),
                    path: Some("1-2.4".into()),
                }),
                ..PortMetadata::default()
            },
            ..PortInfo::new("Maschine Mikro MK3", "mikro 20:0", "test", Protocol::Midi, Direction::Input)
        }
    }

    fn all() -> Vec<Matcher> {
        let port = mikro();
        let usb = |serial: Option<&str>| Matcher::Usb {
            vendor_id: 0x17cc,
            product_id: 0x1700,
            serial: serial.map(str::to_owned),
        };
        vec![
            Matcher::Made(port.key.clone()),
            Matcher::CoreMidiUniqueId(-7),
            Matcher::SysExIdentity(port.metadata.sysex_identity.unwrap()),
            usb(Some("A1")),
            usb(None),
            Matcher::UsbPath("1-2.4".into()),
            Matcher::UsbTopology { bus: 1, address: 9 },
            Matcher::ExactName("Maschine Mikro MK3".into()),
            Matcher::PlatformId("mikro 20:0".into()),
            Matcher::NameContains("mikro mk".into()),
            Matcher::NameContains("MIKRO".into()),
            Matcher::NameRegex(Regex::new(r"^Maschine .* MK\d$").unwrap()),
        ]
    }

    #[test]
    fn every_matcher_finds_its_port_and_they_are_a_total_order() {
        let ranks: Vec<_> = all().iter().map(Matcher::specificity).collect();
        assert!(ranks.is_sorted_by(|more, less| more > less), "{ranks:?}");
        assert!(all().iter().all(|matcher| matcher.matches(&mikro())));
    }

    #[test]
    fn a_port_of_which_nothing_is_known_matches_by_name_alone() {
        let bare = PortInfo { metadata: PortMetadata::default(), ..mikro() };
        let matching: Vec<_> = all().into_iter().filter(|matcher| matcher.matches(&bare)).collect();
        assert!(matching.iter().all(|matcher| matcher.specificity() == Matcher::Made(String::new()).specificity()
            || matcher.specificity() <= Matcher::ExactName(String::new()).specificity()));
        let other = PortInfo::new("KeyStep", "keystep 21:0", "test", Protocol::Midi, Direction::Input);
        assert!(!all().iter().any(|matcher| matcher.matches(&other)));
    }

    #[test]
    fn what_is_written_can_be_read() {
        for matcher in all().iter().filter_map(Matcher::written) {
            assert!(serde_json::from_value::<conductor_config::Matcher>(matcher.clone()).is_ok(), "{matcher}");
        }
    }

    #[test]
    fn twins_are_told_apart_by_what_lasts() {
        let one = mikro();
        let mut two = mikro();
        two.key = "mikro 24:0".into();
        let told = |one: &PortInfo, two: &PortInfo| {
            Matcher::telling_apart(one, std::iter::once(two)).map(|matcher| matcher.to_string())
        };
        two.metadata.core_midi_unique_id = Some(8);
        assert_eq!(told(&one, &two).as_deref(), Some("core_midi_unique_id -7"));
        two.metadata.core_midi_unique_id = Some(-7);
        two.metadata.usb.as_mut().unwrap().path = Some("1-3".into());
        assert_eq!(told(&one, &two).as_deref(), Some("usb_path \"1-2.4\""));
        two.metadata.usb.as_mut().unwrap().serial = None;
        assert_eq!(told(&one, &two).as_deref(), Some("usb_identifier 17cc:1700 \"A1\""));
        assert_eq!(told(&two, &one).as_deref(), Some("usb_path \"1-3\""));
        two.metadata = one.metadata.clone();
        assert_eq!(told(&one, &two).as_deref(), Some("platform_id \"mikro 20:0\""));
        assert_eq!(told(&one, &one), None, "nothing tells a port from itself");
    }
}
