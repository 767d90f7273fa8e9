//! Keyboards and mice without hardware: devices of the kernel's uinput, which programs take for real ones.

use std::path::{Path, PathBuf};

use conductor_tests::wait;
use evdev::uinput::VirtualDevice;
use evdev::{AttributeSet, BusType, Device, EventSummary, EventType, InputEvent, InputId, KeyCode, RelativeAxisCode};

/// The ids of the virtual keyboard.
pub const VENDOR: u16 = 0xfeed;
/// See [`VENDOR`].
pub const PRODUCT: u16 = 0x6060;

/// A keyboard or mouse. Dropping it unplugs it.
pub struct Keyboard {
    device: VirtualDevice,
    node: PathBuf,
}

impl Keyboard {
    /// Plugs a keyboard in that has letters, and the keys F13 to F24.
    pub fn plug(name: &str) -> Self {
        let letters = (1..=88).chain([96, 97, 100]).chain(183..=194).map(KeyCode);
        Self::made(name, &AttributeSet::from_iter(letters), None)
    }

    /// Plugs a mouse in that has a wheel.
    pub fn plug_mouse(name: &str) -> Self {
        let axes = [RelativeAxisCode::REL_X, RelativeAxisCode::REL_Y, RelativeAxisCode::REL_WHEEL];
        let buttons = [KeyCode::BTN_LEFT, KeyCode::BTN_RIGHT];
        Self::made(name, &AttributeSet::from_iter(buttons), Some(&AttributeSet::from_iter(axes)))
    }

    fn made(name: &str, keys: &AttributeSet<KeyCode>, axes: Option<&AttributeSet<RelativeAxisCode>>) -> Self {
        let builder = VirtualDevice::builder().unwrap().name(name).with_keys(keys).unwrap();
        let mut builder = builder.input_id(InputId::new(BusType::BUS_USB, VENDOR, PRODUCT, 0x0110));
        if let Some(axes) = axes {
            builder = builder.with_relative_axes(axes).unwrap();
        }
        let mut device = builder.build().unwrap();
        let node = device.enumerate_dev_nodes_blocking().unwrap().next().unwrap().unwrap();
        wait::until(|| node.exists().then_some(()), || format!("{} is not there", node.display()));
        Self { device, node }
    }

    /// The device file.
    pub fn node(&self) -> &Path {
        &self.node
    }

    /// Presses a key or lets it go.
    pub fn key(&mut self, key: KeyCode, pressed: bool) {
        self.emit(EventType::KEY, key.code(), pressed.into());
    }

    /// Presses a key and lets it go.
    pub fn tap(&mut self, key: KeyCode) {
        self.key(key, true);
        self.key(key, false);
    }

    /// Turns the wheel.
    pub fn wheel(&mut self, steps: i32) {
        self.emit(EventType::RELATIVE, RelativeAxisCode::REL_WHEEL.0, steps);
    }

    /// Moves the mouse.
    pub fn slide(&mut self, to_the_right: i32) {
        self.emit(EventType::RELATIVE, RelativeAxisCode::REL_X.0, to_the_right);
    }

    fn emit(&mut self, kind: EventType, code: u16, value: i32) {
        self.device.emit(&[InputEvent::new(kind.0, code, value)]).unwrap();
    }

    /// Another program that reads the keyboard.
    pub fn typist(&self) -> Typist {
        let device = Device::open(&self.node).unwrap();
        device.set_nonblocking(true).unwrap();
        Typist(device)
    }
}

/// Another program that reads a keyboard.
pub struct Typist(Device);

impl Typist {
    /// The keys that went down since it was last asked.
    pub fn heard(&mut self) -> Vec<KeyCode> {
        let mut heard = Vec::new();
        // An error says that nothing is left.
        while let Ok(events) = self.0.fetch_events() {
            heard.extend(events.filter_map(|event| match event.destructure() {
                EventSummary::Key(_, key, 1) => Some(key),
                _ => None,
            }));
        }
        heard
    }
}
