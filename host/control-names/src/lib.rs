//! What is known of the devices that are there by their profiles: what controls are called (`pad 3` for a note of a port
//! that a profile fits), and a first [`setup`].

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod own;
pub mod setup;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use conductor_device_profile::{Library, Message, Profile, UsbId};
use conductor_event::{Event, HidEvent, MidiMessage};
use conductor_ports::status::PortsStatus;
use conductor_ports::{BindingSpec, Direction, Matcher};
use parking_lot::Mutex;

/// How old what is known of the ports may become; the ports themselves are looked at as often.
const REFRESH_INTERVAL: Duration = Duration::from_millis(500);
/// Ports whose profile is remembered; with more, all are looked up anew.
const MAX_PORTS: usize = 1024;

/// The profiles of the devices that are there, by the names that events have.
///
/// The library is read where a port is there that was not looked up before, which takes some milliseconds, and not kept:
/// what is kept are the profiles of the ports that are there.
#[derive(Debug)]
pub struct ControlNames {
    home: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// By a port's name and USB ids; `None` if no profile fits.
    ports: HashMap<(String, Option<UsbId>), Option<Arc<Profile>>>,
    /// By a device, as events name it.
    devices: HashMap<String, Arc<Profile>>,
    /// When the ports were looked at.
    seen: Option<Instant>,
}

impl ControlNames {
    /// With a person's own profiles in this home. Nothing has a name until ports or bindings are known.
    pub fn new(home: &Path) -> Self {
        Self { home: home.to_owned(), known: Mutex::default() }
    }

    /// Looks at the ports again if that was a while ago. Not for the event path.
    pub fn refresh(&self, ports: impl FnOnce() -> PortsStatus) {
        let mut known = self.known.lock();
        if known.seen.is_none_or(|seen| seen.elapsed() >= REFRESH_INTERVAL) {
            known.seen = Some(Instant::now());
            known.see(&self.home, &ports());
        }
    }

    /// The ports that are there, in place of those that were.
    pub fn see(&self, status: &PortsStatus) {
        self.known.lock().see(&self.home, status);
    }

    /// Bindings whose ports need not be there: what they look for says which device is meant.
    pub fn expect(&self, bindings: &[BindingSpec]) {
        let mut known = self.known.lock();
        for binding in bindings {
            let looks_for = binding.input.iter().find_map(|matcher| match matcher {
                Matcher::Usb { vendor_id, product_id, .. } => {
                    Some((String::new(), Some(UsbId { vendor: *vendor_id, product: *product_id })))
                }
                Matcher::ExactName(name) | Matcher::NameContains(name) => Some((name.clone(), None)),
                _ => None,
            });
            let wanted: Vec<_> = looks_for.into_iter().collect();
            known.look_up(&self.home, &wanted);
            let profile = wanted.first().and_then(|port| known.ports.get(port)?.clone());
            if let Some(profile) = profile {
                known.devices.entry(binding.alias.clone()).or_insert(profile);
            }
        }
    }

    /// What the control is called that an event of a device is of.
    pub fn of(&self, device: &str, event: &Event) -> Option<String> {
        self.of_message(device, &message(event)?)
    }

    /// What the control is called that sends a message.
    pub fn of_message(&self, device: &str, message: &Message) -> Option<String> {
        let profile = Arc::clone(self.known.lock().devices.get(device)?);
        profile.name_of(message).map(str::to_owned)
    }
}

impl Known {
    fn see(&mut self, home: &Path, status: &PortsStatus) {
        let inputs = || status.ports.iter().filter(|port| port.port.direction == Direction::Input);
        let wanted: Vec<_> = inputs().map(|port| (port.port.name.clone(), setup::usb(port))).collect();
        self.look_up(home, &wanted);
        self.devices.clear();
        for (port, which) in inputs().zip(&wanted) {
            let Some(Some(profile)) = self.ports.get(which) else { continue };
            for device in port.bindings.iter().chain([&port.device]) {
                self.devices.insert(device.clone(), Arc::clone(profile));
            }
        }
    }

    /// Looks up the profiles of ports that were not looked up before.
    fn look_up(&mut self, home: &Path, wanted: &[(String, Option<UsbId>)]) {
        if wanted.iter().all(|port| self.ports.contains_key(port)) {
            return;
        }
        if self.ports.len() > MAX_PORTS {
            self.ports.clear();
        }
        let (library, left_out) = own::library(home);
        for (path, mistake) in left_out {
            tracing::warn!("{}: left out: {mistake}", path.display());
        }
        for port in wanted {
            if !self.ports.contains_key(port) {
                self.ports.insert(port.clone(), profile(&library, port));
            }
        }
    }
}

fn profile(library: &Library, (name, usb): &(String, Option<UsbId>)) -> Option<Arc<Profile>> {
    library.of_port(name, *usb).map(|(profile, _)| Arc::new(profile.clone()))
}

/// What tells of a control in an event; `None` if no control could send it.
fn message(event: &Event) -> Option<Message> {
    Some(match event {
        Event::Midi(midi) => match *midi {
            MidiMessage::NoteOn { channel, note, .. } | MidiMessage::NoteOff { channel, note, .. } => {
                Message::Note { channel, note }
            }
            MidiMessage::PolyAftertouch { channel, note, .. } => Message::PolyAftertouch { channel, note },
            MidiMessage::ControlChange { channel, controller, .. } => Message::Cc { channel, cc: controller },
            MidiMessage::ProgramChange { channel, program } => Message::Program { channel, program },
            MidiMessage::Aftertouch { channel, .. } => Message::Aftertouch { channel },
            MidiMessage::PitchBend { channel, .. } => Message::PitchBend { channel },
            _ => return None,
        },
        Event::Osc(osc) => Message::Osc { address: osc.address().to_string() },
        // Profiles have no keys of keyboards, which no byte can number.
        Event::Hid(HidEvent::Button { button, .. }) => Message::Button { button: u8::try_from(*button).ok()? },
        Event::Hid(HidEvent::Stick { stick, .. }) => Message::Stick { axis: u8::try_from(*stick).ok()? },
        Event::Hid(HidEvent::Trigger { trigger, .. }) => Message::Trigger { trigger: u8::try_from(*trigger).ok()? },
        Event::ArtNet(_) | Event::Gesture(_) | Event::Variable(_) | Event::Musical(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use conductor_ports::Protocol;

    use super::*;

    fn cc(controller: u8) -> Event {
        Event::Midi(MidiMessage::ControlChange { controller, value: 100, channel: 0 })
    }

    fn binding(alias: &str, name: &str) -> BindingSpec {
        let mut binding = BindingSpec::new(alias, Protocol::Midi);
        binding.input = vec![Matcher::NameContains(name.into())];
        binding
    }

    #[test]
    fn a_device_that_a_binding_looks_for_has_its_names() {
        let home = tempfile::tempdir().unwrap();
        let names = ControlNames::new(home.path());
        names.expect(&[binding("mixer", "nanoKONTROL2")]);
        assert_eq!(names.of("mixer", &cc(0)).as_deref(), Some("fader 1"));
        assert_eq!(names.of("mixer", &cc(41)).as_deref(), Some("play"));
        assert_eq!(names.of("mixer", &Event::Midi(MidiMessage::Clock)), None);
        assert_eq!(names.of("pads", &cc(0)), None);
    }

    #[test]
    fn a_persons_own_profile_gives_names_too() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(own::FOLDER);
        std::fs::create_dir(&folder).unwrap();
        let (_, text) = Library::files().find(|(name, _)| *name == "korg-nanokontrol2.toml").unwrap();
        let own = text.replace("name = \"fader\"", "name = \"slider\"");
        std::fs::write(folder.join("korg-nanokontrol2.toml"), own).unwrap();
        let names = ControlNames::new(home.path());
        names.expect(&[binding("mixer", "nanoKONTROL2")]);
        assert_eq!(names.of("mixer", &cc(0)).as_deref(), Some("slider 1"));
    }
}
