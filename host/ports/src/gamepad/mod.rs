//! Gamepads: the system's, or none in a build without the feature `gamepad`.
//!
//! `system` is gilrs. `absent` takes its place in a build without it. Here is what both share.

#[cfg(any(test, not(feature = "gamepad")))]
mod absent;
#[cfg(feature = "gamepad")]
mod system;

#[cfg(not(feature = "gamepad"))]
pub use self::absent::{GamepadBackend, UNAVAILABLE};
#[cfg(feature = "gamepad")]
pub use self::system::{GamepadBackend, UNAVAILABLE};
use super::PortError;

/// What the gamepad is called that the host itself makes for other programs; it is never listened to.
pub const VIRTUAL_GAMEPAD: &str = "Conductor Virtual Gamepad";

/// The backend's word for listings.
const BACKEND: &str = "gamepad";

fn unreachable(why: impl std::fmt::Display) -> PortError {
    PortError(format!("gamepads can't be reached: {why}"))
}
