//! The language of the sections.
//!
//! ```text
//! === trigger Note
//! plug "Grand Pads" as pads usb=17cc:1700
//! [[bindings]]
//! ...
//! ---
//! test "a pad opens a cue"
//! 0ms   pads  note-on 36 100
//! -> cue
//! => synth 90 24 64
//! ```
//!
//! The heading is a kind and a name of the schema, or says what the section is about. Lines with `plug` name
//! a port by what the system reports of it, and the device as which the tests play it, or the world as which
//! they listen to it where it is an `output`; one that is `unheard` may not be open. A device that no such
//! line names is a port of that name. Then comes the configuration, in which `{out}` stands for a folder, and
//! after `---` the tests. What comes only when the host is ended stands after a line `end`.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use conductor_ports::{Direction, PortInfo, Protocol, SysExIdentity, UsbDevice};

/// One section.
pub struct Section {
    /// Its first line, without `===`.
    pub heading: String,
    /// The ports that are named.
    pub plugged: Vec<Plugged>,
    config: String,
    /// Its tests.
    pub tests: Vec<Test>,
}

/// A port that a section names.
pub struct Plugged {
    /// What tests call it.
    pub device: String,
    /// What the system reports of it.
    pub port: PortInfo,
    /// Whether the host listens to it, where it is an input.
    pub is_heard: bool,
}

/// One test.
pub struct Test {
    /// What it is called.
    pub name: String,
    /// What happens and which rules fire, as `conductor test` reads it.
    pub timeline: String,
    /// What comes of it, line by line.
    pub effects: Vec<String>,
    /// How many of them, from the last, come only when the host is ended.
    pub at_end: usize,
}

impl Section {
    /// The sections of a file.
    pub fn all(text: &str) -> Vec<Self> {
        text.split("\n=== ")
            .map(|text| text.trim_start_matches("=== "))
            .filter(|text| !text.trim().is_empty())
            .map(Self::new)
            .collect()
    }

    fn new(text: &str) -> Self {
        let (heading, rest) = text.split_once('\n').unwrap_or((text, ""));
        let (above, tests) = rest.split_once("\n---\n").unwrap_or_else(|| panic!("{heading}: no line ---"));
        let (plugs, config): (Vec<&str>, Vec<&str>) = above.lines().partition(|line| line.starts_with("plug "));
        let tests = tests.split("test \"").skip(1).map(Test::new).collect();
        let plugged = plugs.into_iter().enumerate().map(|(number, line)| plug(number, line)).collect();
        Self { heading: heading.to_owned(), plugged, config: config.join("\n"), tests }
    }

    /// The part of the schema that it is about; `None` if it is another story.
    pub fn part(&self) -> Option<(String, String)> {
        let (kind, name) = self.heading.split_once(' ')?;
        let kinds = ["trigger", "condition", "action", "message", "matcher", "transform"];
        kinds.contains(&kind).then(|| (kind.to_owned(), name.to_owned()))
    }

    /// Its configuration; files are written to this folder.
    pub fn config(&self, out: &str) -> String {
        self.config.replace("{out}", out)
    }

    /// A folder with the bundled features whose actions the section uses; `None` if it uses none. What it
    /// does not use is left out, since everything else has to be compiled.
    pub fn features(&self) -> Option<&'static Path> {
        type Folders = [OnceLock<PathBuf>; 4];
        static FOLDERS: Folders = [const { OnceLock::new() }; 4];
        let used = [("OscSend", "osc-output"), ("ArtNetSend", "artnet-output")];
        let used = used.map(|(action, feature)| self.config.contains(action).then_some(feature));
        let index = usize::from(used[0].is_some()) + 2 * usize::from(used[1].is_some());
        let make = || {
            // Beside this very build, where `cargo xtask features` puts them, unless it is said.
            let beside = || std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("features");
            let all = std::env::var_os("CONDUCTOR_FEATURES").map_or_else(beside, PathBuf::from);
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("parts-features-{index}"));
            std::fs::create_dir_all(&folder).unwrap();
            for feature in used.into_iter().flatten() {
                let file = format!("{feature}.wasm");
                let from = all.join(&file);
                // Moved into place: another run of these tests may be reading the one that is there.
                let fresh = folder.join(format!("{file}.{}", std::process::id()));
                std::fs::copy(&from, &fresh)
                    .and_then(|_| std::fs::rename(&fresh, folder.join(&file)))
                    .unwrap_or_else(|error| panic!("{}: {error}; `cargo xtask features` builds it", from.display()));
            }
            folder
        };
        (index > 0).then(|| FOLDERS[index].get_or_init(make).as_path())
    }
}

impl Test {
    fn new(text: &str) -> Self {
        let (name, _) = text.split_once('"').unwrap_or_else(|| panic!("{text}: its name has no end"));
        let text = format!("test \"{text}");
        let is_effect = |line: &&str| line.starts_with("=> ");
        let at_end = text.lines().skip_while(|line| *line != "end").filter(is_effect).count();
        let (effects, timeline): (Vec<&str>, Vec<&str>) =
            text.lines().filter(|line| *line != "end").partition(is_effect);
        let effects = effects.iter().map(|line| line["=> ".len()..].trim().to_owned()).collect();
        Self { name: name.to_owned(), timeline: timeline.join("\n") + "\n", effects, at_end }
    }

    /// Whether a host can play it: what is in front only a desktop could tell it.
    pub fn is_for_a_host(&self) -> bool {
        !self.timeline.lines().any(|line| line.starts_with("front"))
    }
}

/// `plug "NAME" as DEVICE`, and what else is known of the port.
fn plug(number: usize, line: &str) -> Plugged {
    port(number, line).unwrap_or_else(|| {
        panic!(
            "{line}: plug \"NAME\" as DEVICE [output] [unheard] [key=KEY] [core=ID] [usb=1d6b:0104[:SERIAL]] \
             [bus=BUS:ADDRESS] [path=1-2.4] [identity=F0.7E...F7]"
        )
    })
}

fn port(number: usize, line: &str) -> Option<Plugged> {
    let mut parts = line.splitn(3, '"').skip(1);
    let (name, rest) = (parts.next()?, parts.next()?);
    let mut words = rest.split_whitespace().skip(1);
    let device = words.next()?.trim_matches('"').to_owned();
    let mut is_heard = true;
    let mut port = PortInfo::new(name, &format!("port {number}"), "simulated", Protocol::Midi, Direction::Input);
    let nothing = || UsbDevice { vendor_id: 0, product_id: 0, serial: None, bus: None, address: None, path: None };
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let metadata = &mut port.metadata;
        match key {
            "output" => port.direction = Direction::Output,
            "unheard" => is_heard = false,
            "key" => value.clone_into(&mut port.key),
            "core" => metadata.core_midi_unique_id = Some(value.parse().ok()?),
            "usb" => {
                let mut ids = value.split(':');
                let usb = metadata.usb.get_or_insert_with(nothing);
                usb.vendor_id = u16::from_str_radix(ids.next()?, 16).ok()?;
                usb.product_id = u16::from_str_radix(ids.next()?, 16).ok()?;
                usb.serial = ids.next().map(str::to_owned);
            }
            "bus" => {
                let (bus, address) = value.split_once(':')?;
                let usb = metadata.usb.get_or_insert_with(nothing);
                (usb.bus, usb.address) = (Some(bus.parse().ok()?), Some(address.parse().ok()?));
            }
            "path" => metadata.usb.get_or_insert_with(nothing).path = Some(value.to_owned()),
            "identity" => {
                let bytes: Result<Vec<u8>, _> = value.split('.').map(|byte| u8::from_str_radix(byte, 16)).collect();
                metadata.sysex_identity = Some(SysExIdentity::of_reply(&bytes.ok()?)?);
            }
            _ => return None,
        }
    }
    Some(Plugged { device, port, is_heard })
}
