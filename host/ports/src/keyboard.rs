//! Computer keyboards, macro pads and mice, through Linux's evdev.
//!
//! Keys are events of the same kind as a gamepad's buttons, with numbers of their own. Each step of a wheel is a key that
//! goes down and up.

use std::collections::HashMap;
use std::path::PathBuf;

use conductor_evdev::{Class, Device, Devices, Input, OpenError, Reader};
use conductor_event::HidEvent;
use conductor_names::key::{ABOVE_CODE, WHEEL};
use conductor_scheduling::event_thread_once;

use super::usb;
use super::{
    Connection, Direction, EventSink, MidiOut, PortBackend, PortError, PortInfo, PortMetadata, Protocol, UsbDevice,
};

const BACKEND: &str = "evdev";
/// Steps of a wheel that count at once. A wheel that is spun makes some tens; more is a device that is broken.
const MAX_STEPS: u32 = 64;

/// The backend. It opens no device to list it.
#[derive(Debug, Default)]
pub struct KeyboardBackend {
    devices: Devices,
    /// What was listed last, by the ports' keys.
    listed: HashMap<String, Device>,
    /// The USB device around each that was listed, by its place.
    usb: HashMap<PathBuf, Option<UsbDevice>>,
}

impl KeyboardBackend {
    /// Looks for devices when it is first asked for them.
    pub fn new() -> Self {
        Self::default()
    }
}

fn protocol(class: Class) -> Protocol {
    match class {
        Class::Keyboard => Protocol::Keyboard,
        Class::Mouse => Protocol::Mouse,
    }
}

fn usb_of(device: &Device) -> Option<UsbDevice> {
    let (vendor_id, product_id) = device.ids;
    let (serial, bus, address, path) = (None, None, None, None);
    let by_ids = (device.ids != (0, 0)).then_some(UsbDevice { vendor_id, product_id, serial, bus, address, path });
    usb::of_sysfs(&device.sysfs).or(by_ids)
}

/// What to do where a device file may not be read: only this device is opened up, since a keyboard that programs can read
/// is one that they can listen to.
fn denied(device: &Device, error: &OpenError) -> PortError {
    let (vendor, product) = device.ids;
    PortError(format!(
        "{error} by this user; write this line into /etc/udev/rules.d/70-conductor.rules: SUBSYSTEM==\"input\", \
         ATTRS{{id/vendor}}==\"{vendor:04x}\", ATTRS{{id/product}}==\"{product:04x}\", TAG+=\"uaccess\" -- then: `sudo udevadm \
         control --reload && sudo udevadm trigger`"
    ))
}

/// What a device did, as events.
fn events(input: Input, mut put: impl FnMut(HidEvent)) {
    match input {
        Input::Key { code, pressed } => {
            let button = code.saturating_add(ABOVE_CODE);
            if HidEvent::KEYS.contains(&button) {
                put(HidEvent::Button { button, pressed });
            }
        }
        Input::Wheel { sideways, steps } => {
            let [up, down, left, right] = WHEEL;
            let button = match (sideways, steps > 0) {
                (false, true) => up,
                (false, false) => down,
                (true, false) => left,
                (true, true) => right,
            };
            for _ in 0..steps.unsigned_abs().min(MAX_STEPS) {
                put(HidEvent::Button { button, pressed: true });
                put(HidEvent::Button { button, pressed: false });
            }
        }
    }
}

struct OpenInput(Reader);

impl Connection for OpenInput {
    fn has_let_go(&self) -> bool {
        self.0.has_let_go()
    }
}

impl PortBackend for KeyboardBackend {
    fn name(&self) -> &'static str {
        BACKEND
    }

    fn list(&mut self) -> Result<Vec<PortInfo>, PortError> {
        let devices = self.devices.list();
        self.usb.retain(|place, _| devices.iter().any(|device| device.sysfs == *place));
        self.listed.clear();
        let ports = devices.into_iter().filter_map(|device| {
            let key = device.nodes.first()?.display().to_string();
            let usb = self.usb.entry(device.sysfs.clone()).or_insert_with(|| usb_of(&device)).clone();
            let info = PortInfo::new(&device.name, &key, BACKEND, protocol(device.class), Direction::Input);
            let metadata = PortMetadata { usb, plugging: device.plugging, ..PortMetadata::default() };
            self.listed.insert(key, device);
            Some(PortInfo { metadata, ..info })
        });
        Ok(ports.collect())
    }

    fn open_input(&mut self, port: &PortInfo, mut sink: EventSink) -> Result<Box<dyn Connection>, PortError> {
        let device = self.listed.get(&port.key).ok_or_else(|| PortError(format!("{} is gone", port.name)))?;
        let reader = Reader::open(device, sink.grab(), move |input| {
            event_thread_once();
            events(input, |event| sink.hid(event));
        });
        match reader {
            Ok(reader) => Ok(Box::new(OpenInput(reader))),
            Err(error @ OpenError::Denied(_)) => Err(denied(device, &error)),
            Err(error) => Err(PortError(error.to_string())),
        }
    }

    fn open_output(&mut self, port: &PortInfo) -> Result<Box<dyn MidiOut>, PortError> {
        Err(PortError(format!("{} takes no MIDI", port.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_of(input: Input) -> Vec<String> {
        let mut made = Vec::new();
        events(input, |event| made.push(conductor_event::Event::from(event).to_string()));
        made
    }

    #[test]
    fn keys_are_numbered_above_what_others_have() {
        assert_eq!(made_of(Input::Key { code: 183, pressed: true }), ["key 439 down"]);
        assert_eq!(made_of(Input::Key { code: 272, pressed: false }), ["key 528 up"]);
        assert!(made_of(Input::Key { code: 0, pressed: true }).is_empty());
        assert!(made_of(Input::Key { code: 768, pressed: true }).is_empty());
        assert!(made_of(Input::Key { code: u16::MAX, pressed: true }).is_empty());
    }

    #[test]
    fn each_step_of_a_wheel_is_a_key() {
        let turned = |sideways, steps| made_of(Input::Wheel { sideways, steps });
        assert_eq!(turned(false, 1), ["key 1020 down", "key 1020 up"]);
        assert_eq!(turned(false, -2), ["key 1021 down", "key 1021 up", "key 1021 down", "key 1021 up"]);
        assert_eq!(turned(true, -1)[0], "key 1022 down");
        assert_eq!(turned(true, 1)[0], "key 1023 down");
        assert_eq!(turned(false, i32::MIN).len(), 128);
    }

    #[test]
    fn a_closed_device_comes_with_the_rule_that_opens_it() {
        let device = Device {
            name: "Planck".into(),
            class: Class::Keyboard,
            ids: (0xfeed, 0x6060),
            sysfs: "/sys".into(),
            nodes: vec!["/dev/input/event9".into()],
            plugging: 1,
        };
        let told = denied(&device, &OpenError::Denied("/dev/input/event9".into())).to_string();
        assert!(told.starts_with("/dev/input/event9 may not be read by this user; write this line into"), "{told}");
        assert!(told.contains(r#"ATTRS{id/vendor}=="feed", ATTRS{id/product}=="6060", TAG+="uaccess""#), "{told}");
    }
}
