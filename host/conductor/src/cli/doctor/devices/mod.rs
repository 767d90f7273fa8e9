//! MIDI and gamepads: whether the system offers them, and lets this user have them.

use std::path::PathBuf;

use super::super::Paths;
use super::finding::Finding;
use conductor_host::host::status::Status;
use conductor_ports::Protocol;

#[cfg(target_os = "linux")]
mod linux;
mod realtime;

/// The udev rule that lets the person at the machine open gamepads.
const PAD_RULE: &str = "SUBSYSTEM==\"input\", ENV{ID_INPUT_JOYSTICK}==\"1\", TAG+=\"uaccess\"";
/// The same for Stream Decks.
const DECK_RULE: &str = "KERNEL==\"hidraw*\", ATTRS{idVendor}==\"0fd9\", TAG+=\"uaccess\"";
/// The same for raw access to USB devices, and for virtual keyboards and gamepads.
const RAW_RULES: [(&str, &str); 2] = [
    ("hidraw", "KERNEL==\"hidraw*\", SUBSYSTEM==\"hidraw\", TAG+=\"uaccess\""),
    ("uinput", "KERNEL==\"uinput\", SUBSYSTEM==\"misc\", OPTIONS+=\"static_node=uinput\", TAG+=\"uaccess\""),
];

/// A raw device that this host reads.
const STREAM_DECK: &str = "stream-deck";

/// A device file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    path: PathBuf,
    access: Access,
}

/// What this process may do with it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
enum Access {
    Missing,
    Allowed,
    /// Only this group may, beside root.
    Denied {
        group: String,
        member: Member,
    },
}

/// How the user stands to a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
enum Member {
    No,
    /// Since the last login.
    NotYet,
    Yes,
}

/// How MIDI and gamepads are.
#[derive(Debug)]
pub(super) struct DeviceCheck {
    /// What MIDI goes through: `alsa`, `jack`, ...
    midi: String,
    /// Why it can't be reached.
    midi_trouble: Option<String>,
    midi_ports: usize,
    /// Whether a binding is one of MIDI, and of a gamepad.
    wants: (bool, bool),
    /// ALSA's sequencer.
    sequencer: Option<Node>,
    /// Why this build has no gamepads; `None` if it has.
    pads_unavailable: Option<&'static str>,
    /// Gamepads that the kernel knows, by the name that they have.
    pads: Vec<(String, Node)>,
    /// Device files of Stream Decks, and those that this host does not need and others that extend it may.
    raw: Vec<(&'static str, Node)>,
    realtime: Option<realtime::RealtimeCheck>,
}

impl DeviceCheck {
    pub(super) fn gather(places: &Paths, running: Option<&Status>) -> Self {
        let looked;
        let status = match running {
            Some(status) => &status.ports,
            None => {
                looked = super::super::ports::look(places);
                &looked
            }
        };
        let midi = conductor_ports::midi::BACKEND;
        let trouble = status.unreachable.iter().find(|(backend, _)| backend == midi);
        let wants = |protocol| status.bindings.iter().any(|binding| binding.protocol == protocol);
        Self {
            midi: midi.to_owned(),
            midi_trouble: trouble.map(|(_, why)| why.clone()),
            midi_ports: status.ports.iter().filter(|found| found.port.protocol == Protocol::Midi).count(),
            wants: (wants(Protocol::Midi), wants(Protocol::Hid)),
            #[cfg(target_os = "linux")]
            sequencer: (midi == "alsa").then(|| linux::node("/dev/snd/seq".into())),
            #[cfg(not(target_os = "linux"))]
            sequencer: None,
            pads_unavailable: conductor_ports::gamepad::UNAVAILABLE,
            #[cfg(target_os = "linux")]
            pads: linux::pads(),
            #[cfg(not(target_os = "linux"))]
            pads: Vec::new(),
            #[cfg(target_os = "linux")]
            raw: linux::raw(),
            #[cfg(not(target_os = "linux"))]
            raw: Vec::new(),
            realtime: realtime::RealtimeCheck::gather(midi == "jack"),
        }
    }

    pub(super) fn judge(&self) -> Vec<Finding> {
        let mut findings = vec![self.midi()];
        findings.extend(self.pads());
        for (kind, node) in &self.raw {
            if let Access::Denied { .. } = node.access {
                if *kind == STREAM_DECK {
                    let what = format!("{}, a Stream Deck, is closed to this user", node.path.display());
                    findings.push(Finding::warning("stream decks", what, udev(DECK_RULE)));
                    continue;
                }
                let rule = RAW_RULES.iter().find(|(name, _)| name == kind).map_or("", |(_, rule)| rule);
                let mut finding = Finding::ok(
                    "devices",
                    format!("{} is closed to this user; this host needs it for nothing", node.path.display()),
                );
                finding.mend = Some(format!("only if another program of yours needs it: {}", udev(rule)));
                findings.push(finding);
            }
        }
        findings.extend(self.realtime.as_ref().map(realtime::RealtimeCheck::judge));
        findings
    }

    fn midi(&self) -> Finding {
        const ABOUT: &str = "midi";
        let Some(trouble) = &self.midi_trouble else {
            return Finding::ok(ABOUT, format!("through {}: {} ports", self.midi, self.midi_ports));
        };
        let mend = match &self.sequencer {
            None if self.midi == "jack" => {
                "start a JACK server as this user, such as `jackd -d alsa` or PipeWire's (`pw-jack`)".to_owned()
            }
            None => "look into the system's own MIDI settings".to_owned(),
            Some(Node { access: Access::Missing, .. }) => "load the sequencer: `sudo modprobe snd-seq`; for good: \
                 `echo snd-seq | sudo tee /etc/modules-load.d/snd-seq.conf`. A container needs the host's /dev/snd"
                .to_owned(),
            Some(Node { access: Access::Denied { group, member }, .. }) => join(group, *member),
            Some(Node { access: Access::Allowed, .. }) => {
                "the sequencer is there: `aconnect -l` shows what it has; is an ALSA library missing?".to_owned()
            }
        };
        Finding::missed(self.wants.0, ABOUT, trouble.clone(), mend)
    }

    fn pads(&self) -> Vec<Finding> {
        const ABOUT: &str = "gamepads";
        if let Some(why) = self.pads_unavailable {
            let mend = "a release has every feature, and so has what `cargo xtask host --release` builds";
            return vec![Finding::missed(self.wants.1, ABOUT, why, mend)];
        }
        let mut findings = Vec::new();
        let mut open = 0;
        for (name, node) in &self.pads {
            match &node.access {
                Access::Allowed => open += 1,
                // Gone since it was listed.
                Access::Missing => {}
                Access::Denied { group, member } => findings.push(Finding::missed(
                    self.wants.1,
                    ABOUT,
                    format!("{name} is there, and {} may not be read", node.path.display()),
                    format!("{}, or {}", udev(PAD_RULE), join(group, *member)),
                )),
            }
        }
        if open > 0 || findings.is_empty() {
            findings.push(Finding::ok(
                ABOUT,
                match open {
                    0 => "none is plugged in".to_owned(),
                    open => format!("{open} can be read"),
                },
            ));
        }
        findings
    }
}

/// How to add a rule to udev.
fn udev(rule: &str) -> String {
    format!(
        "write this line into /etc/udev/rules.d/70-conductor.rules:\n{rule}\n\
         then: `sudo udevadm control --reload && sudo udevadm trigger`"
    )
}

/// How to get what a group may do.
fn join(group: &str, member: Member) -> String {
    match member {
        Member::No => format!("`sudo usermod -aG {group} \"$USER\"`, then log out and in again"),
        Member::NotYet => format!("you are in the group {group} since you logged in: log out and in again"),
        Member::Yes => format!("you are in the group {group}, which may not open it: `sudo chmod g+rw` the file"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn facts() -> DeviceCheck {
        DeviceCheck {
            midi: "alsa".into(),
            midi_trouble: None,
            midi_ports: 2,
            wants: (true, true),
            sequencer: None,
            pads_unavailable: None,
            pads: Vec::new(),
            raw: Vec::new(),
            realtime: None,
        }
    }

    fn node(access: Access) -> Node {
        Node { path: "/dev/it".into(), access }
    }

    fn denied(member: Member) -> Access {
        Access::Denied { group: "audio".into(), member }
    }

    #[test]
    fn midi_that_is_out_of_reach_is_mended_by_its_cause() {
        assert_eq!(facts().judge()[0].level, Level::Ok);
        for (access, mend) in [
            (Access::Missing, "modprobe snd-seq"),
            (denied(Member::No), "usermod -aG audio"),
            (denied(Member::NotYet), "log out and in again"),
            (denied(Member::Yes), "chmod g+rw"),
            (Access::Allowed, "aconnect -l"),
        ] {
            let lost = DeviceCheck { midi_trouble: Some("gone".into()), sequencer: Some(node(access)), ..facts() };
            let found = lost.judge().remove(0);
            assert_eq!(found.level, Level::Trouble);
            assert!(found.mend.as_ref().unwrap().contains(mend), "{found:?}");
            assert_eq!(DeviceCheck { wants: (false, false), ..lost }.judge()[0].level, Level::Warning);
        }
        let jack = DeviceCheck { midi: "jack".into(), midi_trouble: Some("gone".into()), ..facts() };
        assert!(jack.judge()[0].mend.as_ref().unwrap().contains("jackd"));
    }

    #[test]
    fn a_gamepad_that_may_not_be_read_comes_with_its_rule() {
        assert_eq!(facts().judge()[1], Finding::ok("gamepads", "none is plugged in"));
        let pads = vec![("Pad".to_owned(), node(denied(Member::No))), ("Stick".to_owned(), node(Access::Allowed))];
        let found = DeviceCheck { pads, ..facts() }.judge();
        assert_eq!((found[1].level, found[2].level), (Level::Trouble, Level::Ok));
        assert!(found[1].mend.as_ref().unwrap().contains(PAD_RULE));
    }

    #[test]
    fn a_build_without_gamepads_says_so() {
        let without = DeviceCheck { pads_unavailable: Some("built without"), ..facts() };
        let found = without.judge().remove(1);
        assert_eq!((found.level, found.what.as_str()), (Level::Trouble, "built without"));
        assert_eq!(DeviceCheck { wants: (true, false), ..without }.judge()[1].level, Level::Warning);
    }

    #[test]
    fn packages_bring_the_rule_that_is_advised() {
        let packaged = include_str!("../../../../../../xtask/packaging/70-conductor.rules");
        let rules: Vec<&str> = packaged.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(rules, [PAD_RULE, DECK_RULE]);
    }

    #[test]
    fn a_stream_deck_that_is_closed_has_its_rule() {
        let found = DeviceCheck { raw: vec![(STREAM_DECK, node(denied(Member::No)))], ..facts() }.judge();
        let of_deck = found.iter().find(|finding| finding.about == "stream decks").unwrap();
        assert_eq!(of_deck.level, Level::Warning);
        assert!(of_deck.mend.as_ref().is_some_and(|mend| mend.contains(DECK_RULE)), "{:?}", of_deck.mend);
    }

    #[test]
    fn raw_devices_are_no_trouble_but_have_a_rule() {
        for (kind, rule) in RAW_RULES {
            let found = DeviceCheck { raw: vec![(kind, node(denied(Member::No)))], ..facts() }.judge();
            assert_eq!(found[2].level, Level::Ok);
            assert!(found[2].mend.as_ref().unwrap().contains(rule));
            assert_eq!(DeviceCheck { raw: vec![(kind, node(Access::Allowed))], ..facts() }.judge().len(), 2);
        }
    }
}
