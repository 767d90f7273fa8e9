//! Gamepads without hardware: devices of the kernel's uinput, which programs take for real ones; and how one stands.

use conductor_tests::wait;
use evdev::uinput::VirtualDevice;
use evdev::{
    AbsInfo, AbsoluteAxisCode, AttributeSet, BusType, Device, EventType, InputEvent, InputId, KeyCode, UinputAbsSetup,
};

/// The ids of a common pad, so that its buttons are known.
pub const VENDOR: u16 = 0x045e;
/// See [`VENDOR`].
pub const PRODUCT: u16 = 0x028e;

/// The pad. Dropping it unplugs it.
pub struct Pad(VirtualDevice);

impl Pad {
    /// Plugs it in.
    pub fn plug(name: &str) -> Self {
        let buttons = [
            KeyCode::BTN_SOUTH,
            KeyCode::BTN_EAST,
            KeyCode::BTN_NORTH,
            KeyCode::BTN_WEST,
            KeyCode::BTN_TL,
            KeyCode::BTN_TR,
            KeyCode::BTN_SELECT,
            KeyCode::BTN_START,
            KeyCode::BTN_MODE,
            KeyCode::BTN_THUMBL,
            KeyCode::BTN_THUMBR,
        ];
        let mut builder = VirtualDevice::builder()
            .unwrap()
            .name(name)
            .input_id(InputId::new(BusType::BUS_USB, VENDOR, PRODUCT, 0x0110))
            .with_keys(&AttributeSet::from_iter(buttons))
            .unwrap();
        let stick = AbsInfo::new(0, -32_768, 32_767, 0, 0, 0);
        let trigger = AbsInfo::new(0, 0, 255, 0, 0, 0);
        let hat = AbsInfo::new(0, -1, 1, 0, 0, 0);
        for (axis, info) in [
            (AbsoluteAxisCode::ABS_X, stick),
            (AbsoluteAxisCode::ABS_Y, stick),
            (AbsoluteAxisCode::ABS_Z, trigger),
            (AbsoluteAxisCode::ABS_RX, stick),
            (AbsoluteAxisCode::ABS_RY, stick),
            (AbsoluteAxisCode::ABS_RZ, trigger),
            (AbsoluteAxisCode::ABS_HAT0X, hat),
            (AbsoluteAxisCode::ABS_HAT0Y, hat),
        ] {
            builder = builder.with_absolute_axis(&UinputAbsSetup::new(axis, info)).unwrap();
        }
        Self(builder.build().unwrap())
    }

    /// Presses a button or lets it go.
    pub fn button(&mut self, button: KeyCode, pressed: bool) {
        self.emit(EventType::KEY, button.code(), pressed.into());
    }

    /// Moves an axis, in the kernel's numbers.
    pub fn axis(&mut self, axis: AbsoluteAxisCode, value: i32) {
        self.emit(EventType::ABSOLUTE, axis.0, value);
    }

    fn emit(&mut self, kind: EventType, code: u16, value: i32) {
        self.0.emit(&[InputEvent::new(kind.0, code, value)]).unwrap();
    }
}

/// A gamepad that another program made.
pub struct Watched(Device);

/// Finds the gamepad of this name, as soon as it is there.
pub fn listen(name: &str) -> Watched {
    let found = || evdev::enumerate().map(|(_, device)| device).find(|device| device.name() == Some(name));
    let (device, _) = wait::until(found, || format!("there is no gamepad {name}"));
    Watched(device)
}

impl Watched {
    /// Waits until a button is down, or up.
    pub fn is(&mut self, button: KeyCode, down: bool) {
        let there = || (self.0.get_key_state().unwrap().contains(button) == down).then_some(());
        wait::until(there, || format!("{button:?} is not {}", if down { "down" } else { "up" }));
    }

    /// Waits until an axis is at a place, in the kernel's numbers.
    pub fn stands(&mut self, axis: AbsoluteAxisCode, place: i32) {
        let at = || self.0.get_abs_state().unwrap()[usize::from(axis.0)].value;
        wait::until(|| (at() == place).then_some(()), || format!("{axis:?} is at {}, not {place}", at()));
    }
}
