//! A gamepad that is made for other programs: a device of the kernel's uinput, laid out as its
//! Documentation/input/gamepad.rst says.

use std::io;

use evdev::uinput::VirtualDevice;
use evdev::{
    AbsInfo, AbsoluteAxisCode, AttributeSet, BusType, EventType, InputEvent, InputId, KeyCode, UinputAbsSetup,
};

/// Its buttons, from 128 on.
const BUTTONS: [KeyCode; 17] = [
    KeyCode::BTN_SOUTH,
    KeyCode::BTN_EAST,
    KeyCode::BTN_WEST,
    KeyCode::BTN_NORTH,
    KeyCode::BTN_DPAD_UP,
    KeyCode::BTN_DPAD_DOWN,
    KeyCode::BTN_DPAD_LEFT,
    KeyCode::BTN_DPAD_RIGHT,
    KeyCode::BTN_TL,
    KeyCode::BTN_TR,
    KeyCode::BTN_THUMBL,
    KeyCode::BTN_THUMBR,
    KeyCode::BTN_START,
    KeyCode::BTN_SELECT,
    KeyCode::BTN_MODE,
    KeyCode::BTN_TL2,
    KeyCode::BTN_TR2,
];

/// Its axes and triggers, from 128 on.
const AXES: [AbsoluteAxisCode; 6] = [
    AbsoluteAxisCode::ABS_X,
    AbsoluteAxisCode::ABS_Y,
    AbsoluteAxisCode::ABS_RX,
    AbsoluteAxisCode::ABS_RY,
    AbsoluteAxisCode::ABS_Z,
    AbsoluteAxisCode::ABS_RZ,
];

/// A gamepad that other programs see. Dropping it unplugs it.
#[derive(Debug)]
pub struct VirtualGamepad(VirtualDevice);

impl VirtualGamepad {
    /// Plugs it in under this name.
    ///
    /// # Errors
    /// If the system does not let this user make one, as text.
    pub fn plug(name: &str) -> Result<Self, String> {
        device(name).map(Self).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => format!(
                "there is no virtual gamepad: /dev/uinput: {error}; write `KERNEL==\"uinput\", TAG+=\"uaccess\", \
                 OPTIONS+=\"static_node=uinput\"` into /etc/udev/rules.d/70-uinput.rules and start the machine anew"
            ),
            io::ErrorKind::NotFound => {
                format!("there is no virtual gamepad: /dev/uinput: {error}; `sudo modprobe uinput` loads its driver")
            }
            _ => format!("there is no virtual gamepad: /dev/uinput: {error}"),
        })
    }

    /// Moves a button down or up, 128 to 144.
    ///
    /// # Errors
    /// The system's, as text.
    pub fn button(&mut self, button: u8, down: bool) -> Result<(), String> {
        let code = BUTTONS.get(usize::from(button).wrapping_sub(128)).ok_or("a gamepad has no such button")?;
        self.emit(InputEvent::new(EventType::KEY.0, code.code(), down.into()))
    }

    /// Moves an axis or a trigger, 128 to 133.
    ///
    /// # Errors
    /// The system's, as text.
    pub fn axis(&mut self, axis: u8, value: i16) -> Result<(), String> {
        let code = AXES.get(usize::from(axis).wrapping_sub(128)).ok_or("a gamepad has no such axis")?;
        let value = match *code {
            // Down is positive for the kernel.
            AbsoluteAxisCode::ABS_Y | AbsoluteAxisCode::ABS_RY => -i32::from(value),
            AbsoluteAxisCode::ABS_Z | AbsoluteAxisCode::ABS_RZ => i32::from(value.max(0)),
            _ => i32::from(value),
        };
        self.emit(InputEvent::new(EventType::ABSOLUTE.0, code.0, value))
    }

    fn emit(&mut self, event: InputEvent) -> Result<(), String> {
        self.0.emit(&[event]).map_err(|error| format!("the virtual gamepad: {error}"))
    }
}

fn device(name: &str) -> io::Result<VirtualDevice> {
    let stick = AbsInfo::new(0, -32_767, 32_767, 16, 128, 0);
    let trigger = AbsInfo::new(0, 0, 32_767, 16, 0, 0);
    let mut builder = VirtualDevice::builder()?
        .name(name)
        .input_id(InputId::new(BusType::BUS_VIRTUAL, 0, 0, 1))
        .with_keys(&AttributeSet::from_iter(BUTTONS))?;
    for (at, axis) in AXES.into_iter().enumerate() {
        let info = if at < 4 { stick } else { trigger };
        builder = builder.with_absolute_axis(&UinputAbsSetup::new(axis, info))?;
    }
    builder.build()
}
