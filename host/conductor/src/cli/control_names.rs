//! What controls are called on devices whose profile is known: `pad 3` for a note of a port that a profile fits.

use std::collections::HashMap;

use conductor_device_profile::{Library, Message, Profile, UsbId};
use conductor_engine::{Event, GamepadEvent, MidiMessage};
use conductor_ports::status::PortsStatus;
use conductor_ports::{BindingSpec, Direction, Matcher};

/// The profiles of the devices that are there, by the names that events have.
#[derive(Debug, Default)]
pub(super) struct ControlNames {
    library: Library,
    /// From a device, as events name it, to the id of its profile.
    profiles: HashMap<String, String>,
}

impl ControlNames {
    /// Nothing has a name until [`Self::see`] has been told of ports, or [`Self::expect`] of bindings.
    pub(super) fn new(library: Library) -> Self {
        Self { library, profiles: HashMap::new() }
    }

    /// The ports that are there, in place of those that were.
    pub(super) fn see(&mut self, status: &PortsStatus) {
        self.profiles.clear();
        for port in status.ports.iter().filter(|port| port.port.direction == Direction::Input) {
            let usb = port.port.metadata.usb.as_ref();
            let usb = usb.map(|usb| UsbId { vendor: usb.vendor_id, product: usb.product_id });
            let Some((profile, _)) = self.library.of_port(&port.port.name, usb) else { continue };
            for device in port.bindings.iter().chain([&port.device]) {
                self.profiles.insert(device.clone(), profile.id.clone());
            }
        }
    }

    /// Bindings whose ports need not be there: what they look for says which device is meant.
    pub(super) fn expect(&mut self, bindings: &[BindingSpec]) {
        for binding in bindings {
            let found = binding.input.iter().find_map(|matcher| match matcher {
                Matcher::Usb { vendor_id, product_id, .. } => {
                    self.library.of_port("", Some(UsbId { vendor: *vendor_id, product: *product_id }))
                }
                Matcher::ExactName(name) | Matcher::NameContains(name) => self.library.of_port(name, None),
                _ => None,
            });
            if let Some((profile, _)) = found {
                self.profiles.entry(binding.alias.clone()).or_insert_with(|| profile.id.clone());
            }
        }
    }

    /// The profile of a device.
    fn profile(&self, device: &str) -> Option<&Profile> {
        self.library.get(self.profiles.get(device)?)
    }

    /// What the control is called that an event is of.
    pub(super) fn of(&self, device: &str, event: &Event) -> Option<&str> {
        self.profile(device)?.name_of(&message(event)?)
    }
}

/// What tells of a control in an event; `None` where no control could send it.
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
        Event::Gamepad(GamepadEvent::Button { button, .. }) => Message::Button { button: *button },
        Event::Gamepad(GamepadEvent::Stick { stick, .. }) => Message::Stick { axis: *stick },
        Event::Gamepad(GamepadEvent::Trigger { trigger, .. }) => Message::Trigger { trigger: *trigger },
        Event::ArtNet(_) | Event::Gesture(_) | Event::Variable(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use conductor_ports::Protocol;

    use super::*;

    #[test]
    fn a_device_that_a_binding_looks_for_has_its_names() {
        let mut names = ControlNames::new(Library::bundled());
        let mut binding = BindingSpec::new("mixer", Protocol::Midi);
        binding.input = vec![Matcher::NameContains("nanoKONTROL2".into())];
        names.expect(&[binding]);
        let cc = |controller| Event::Midi(MidiMessage::ControlChange { controller, value: 100, channel: 0 });
        assert_eq!(names.of("mixer", &cc(0)), Some("fader 1"));
        assert_eq!(names.of("mixer", &cc(41)), Some("play"));
        assert_eq!(names.of("mixer", &Event::Midi(MidiMessage::Clock)), None);
        assert_eq!(names.of("pads", &cc(0)), None);
    }
}
