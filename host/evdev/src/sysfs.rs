//! Which keyboards and mice there are, from sysfs: to read it takes no permission, and opens no device.
//!
//! A keyboard often is several input devices to the kernel: one for its letters, one for its media keys, one for its
//! power key. They are one [`Device`] here, with several nodes.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use crate::capabilities::{Bits, Capabilities, Class};

/// A keyboard or a mouse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// What it calls itself; of several nodes the shortest name.
    pub name: String,
    /// Its kind.
    pub class: Class,
    /// Vendor and product, as its bus has them; 0 where it says none.
    pub ids: (u16, u16),
    /// Its place in sysfs, from which the USB device around it can be found.
    pub sysfs: PathBuf,
    /// The device files that its events come from, such as `/dev/input/event5`, in order.
    pub nodes: Vec<PathBuf>,
    /// The kernel's number of its first node, which counts up with every plugging.
    pub plugging: u64,
}

/// What makes nodes one device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    class: Class,
    bus: String,
    ids: (u16, u16),
    unique: String,
    /// The socket or address, without the number of the interface; of one that has none its own number.
    place: String,
}

/// What a node is; `None` if it is neither a keyboard's nor a mouse's.
type Node = Option<(Identity, Device)>;

/// The keyboards and mice of this machine.
#[derive(Debug)]
pub struct Devices {
    sysfs: PathBuf,
    dev: PathBuf,
    /// What is known of each node, by its place in the tree of devices, which another plugging changes.
    known: HashMap<PathBuf, Node>,
}

impl Default for Devices {
    fn default() -> Self {
        Self::of("/sys/class/input".into(), "/dev/input".into())
    }
}

impl Devices {
    fn of(sysfs: PathBuf, dev: PathBuf) -> Self {
        Self { sysfs, dev, known: HashMap::new() }
    }

    /// Those that are there now, in the order of their numbers. One that is just being unplugged may be left out. Only
    /// what is new is read.
    pub fn list(&mut self) -> Vec<Device> {
        let mut before = std::mem::take(&mut self.known);
        let mut found: BTreeMap<Identity, Device> = BTreeMap::new();
        for name in nodes(&self.sysfs) {
            let entry = self.sysfs.join(&name);
            let Ok(place) = entry.canonicalize() else { continue };
            let node = before.remove(&place).unwrap_or_else(|| read(&entry.join("device"), self.dev.join(&name)));
            if let Some((identity, device)) = &node {
                match found.get_mut(identity) {
                    None => drop(found.insert(identity.clone(), device.clone())),
                    Some(known) => {
                        if device.name.len() < known.name.len() {
                            known.name.clone_from(&device.name);
                        }
                        known.nodes.extend_from_slice(&device.nodes);
                    }
                }
            }
            self.known.insert(place, node);
        }
        let mut devices: Vec<Device> = found.into_values().collect();
        devices.sort_by_key(|device| device.plugging);
        devices
    }
}

/// The names of all event nodes, in the order of their numbers.
fn nodes(sysfs: &Path) -> Vec<String> {
    let mut nodes: Vec<(u64, String)> = fs::read_dir(sysfs)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some((name.strip_prefix("event")?.parse().ok()?, name))
        })
        .collect();
    nodes.sort();
    nodes.into_iter().map(|(_, name)| name).collect()
}

fn read(folder: &Path, node: PathBuf) -> Node {
    let text = |file: &str| fs::read_to_string(folder.join(file)).ok().map(|text| text.trim().to_owned());
    let bits = |file: &str| text(file).map(|text| Bits::parse(&text)).unwrap_or_default();
    let number = |file: &str| u16::from_str_radix(&text(file)?, 16).ok();
    let capabilities = Capabilities {
        keys: bits("capabilities/key"),
        relative: bits("capabilities/rel"),
        absolute: bits("capabilities/abs"),
    };
    let class = capabilities.class()?;
    let ids = (number("id/vendor").unwrap_or(0), number("id/product").unwrap_or(0));
    let sysfs = folder.canonicalize().ok()?;
    let input = sysfs.file_name()?.to_str()?.to_owned();
    let place = text("phys").unwrap_or_default();
    let place = match place.rsplit_once("/input") {
        Some((place, _)) => place.to_owned(),
        None if place.is_empty() => input.clone(),
        None => place,
    };
    let unique = text("uniq").unwrap_or_default();
    let identity = Identity { class, bus: text("id/bustype").unwrap_or_default(), ids, unique, place };
    let plugging = input.strip_prefix("input").and_then(|number| number.parse().ok()).unwrap_or(0);
    let name = text("name").filter(|name| !name.is_empty()).unwrap_or(input);
    Some((identity, Device { name, class, ids, sysfs, nodes: vec![node], plugging }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LETTERS: &str = "1000000000007 ff9f207ac14057ff febeffdfffefffff fffffffffffffffe";
    const MEDIA: &str = "3f000301ff 0 0 483ffff17aff32d bfd4444600000000 1 130ff38b17d000 677bfad9415fed e09effdf01cfffff fffffffffffffffe";
    const MOUSE: &str = "1f0000 0 0 0 0";

    /// A folder like `/sys/class/input`, removed in the end.
    struct Sysfs(PathBuf);

    impl Sysfs {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("conductor-evdev-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&root);
            fs::create_dir_all(root.join("class")).unwrap();
            Self(root)
        }

        fn plug(&self, number: u64, name: &str, phys: &str, keys: &str) {
            let folder = self.0.join(format!("devices/input{}", number + 30));
            fs::create_dir_all(folder.join("capabilities")).unwrap();
            fs::create_dir_all(folder.join("id")).unwrap();
            let relative = if keys == MOUSE { "1943" } else { "0" };
            for (file, text) in [
                ("name", name),
                ("phys", phys),
                ("uniq", ""),
                ("id/bustype", "0003"),
                ("id/vendor", "feed"),
                ("id/product", "6060"),
                ("capabilities/key", keys),
                ("capabilities/rel", relative),
                ("capabilities/abs", "0"),
            ] {
                fs::write(folder.join(file), format!("{text}\n")).unwrap();
            }
            let event = self.0.join(format!("class/event{number}"));
            fs::create_dir_all(&event).unwrap();
            std::os::unix::fs::symlink(&folder, event.join("device")).unwrap();
        }

        fn devices(&self) -> Vec<Device> {
            Devices::of(self.0.join("class"), "/dev/input".into()).list()
        }

        fn unplug(&self, number: u64) {
            fs::remove_dir_all(self.0.join(format!("class/event{number}"))).unwrap();
        }
    }

    impl Drop for Sysfs {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_nodes_of_one_keyboard_are_one_device() {
        let sysfs = Sysfs::new("nodes");
        sysfs.plug(10, "Planck Consumer Control", "usb-0000:00:14.0-2/input1", MEDIA);
        sysfs.plug(9, "Planck", "usb-0000:00:14.0-2/input0", LETTERS);
        sysfs.plug(11, "Planck Mouse", "usb-0000:00:14.0-2/input1", MOUSE);
        sysfs.plug(12, "Planck", "usb-0000:00:14.0-3/input0", LETTERS);
        sysfs.plug(2, "Power Button", "LNXPWRBN/button/input0", "10000000000000 0");
        let found: Vec<(String, Class, usize)> =
            sysfs.devices().into_iter().map(|device| (device.name, device.class, device.nodes.len())).collect();
        let planck = || "Planck".to_owned();
        assert_eq!(
            found,
            [
                (planck(), Class::Keyboard, 2),
                ("Planck Mouse".to_owned(), Class::Mouse, 1),
                (planck(), Class::Keyboard, 1),
            ]
        );
        let first = &sysfs.devices()[0];
        assert_eq!((first.ids, first.plugging), ((0xfeed, 0x6060), 39));
        assert_eq!(first.nodes, ["/dev/input/event9", "/dev/input/event10"].map(PathBuf::from));
    }

    #[test]
    fn devices_without_a_place_are_each_their_own() {
        let sysfs = Sysfs::new("places");
        sysfs.plug(3, "Virtual", "", LETTERS);
        sysfs.plug(4, "Virtual", "", LETTERS);
        assert_eq!(sysfs.devices().len(), 2);
        assert!(Devices::of("/no such folder".into(), "/dev/input".into()).list().is_empty());
    }

    #[test]
    fn what_is_new_and_what_is_gone_is_seen() {
        let sysfs = Sysfs::new("plugging");
        let mut devices = Devices::of(sysfs.0.join("class"), "/dev/input".into());
        sysfs.plug(3, "One", "usb-1/input0", LETTERS);
        assert_eq!(devices.list().len(), 1);
        sysfs.plug(4, "Two", "usb-2/input0", LETTERS);
        let names = |devices: &mut Devices| devices.list().into_iter().map(|device| device.name).collect::<Vec<_>>();
        assert_eq!(names(&mut devices), ["One", "Two"]);
        sysfs.unplug(3);
        assert_eq!(names(&mut devices), ["Two"]);
    }
}
