//! The virtual gamepad of this machine: Linux makes one, and other systems need a driver for it.

#[cfg(target_os = "linux")]
pub(super) use conductor_evdev::VirtualGamepad as Gamepad;

#[cfg(not(target_os = "linux"))]
pub(super) use self::none::Gamepad;

/// Why this build can't make a gamepad; `None` if it can.
pub const GAMEPAD_UNAVAILABLE: Option<&str> =
    if cfg!(target_os = "linux") { None } else { Some("there are virtual gamepads on Linux only") };

#[cfg(not(target_os = "linux"))]
mod none {
    /// None: it is never plugged in.
    pub enum Gamepad {}

    impl Gamepad {
        pub fn plug(_: &str) -> Result<Self, String> {
            Err(super::GAMEPAD_UNAVAILABLE.unwrap_or_default().to_owned())
        }

        pub fn button(&mut self, _: u8, _: bool) -> Result<(), String> {
            match *self {}
        }

        pub fn axis(&mut self, _: u8, _: i16) -> Result<(), String> {
            match *self {}
        }
    }
}
