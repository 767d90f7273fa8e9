//! No gamepads: this build has no library that reads them.

use super::{BACKEND, unreachable};
use crate::{Connection, EventSink, MidiOut, PortBackend, PortError, PortInfo};

/// Why this build has no gamepads.
pub const UNAVAILABLE: Option<&str> = Some(REASON);

const REASON: &str = "this conductor was built without the feature `gamepad`; build it with `--features gamepad`";

/// The backend, which says why it has no ports.
#[derive(Debug, Default)]
pub struct GamepadBackend;

impl GamepadBackend {
    /// It connects to nothing.
    pub fn new() -> Self {
        Self
    }
}

impl PortBackend for GamepadBackend {
    fn name(&self) -> &'static str {
        BACKEND
    }

    fn list(&mut self) -> Result<Vec<PortInfo>, PortError> {
        Err(unreachable(REASON))
    }

    fn open_input(&mut self, _: &PortInfo, _: EventSink) -> Result<Box<dyn Connection>, PortError> {
        Err(unreachable(REASON))
    }

    fn open_output(&mut self, _: &PortInfo) -> Result<Box<dyn MidiOut>, PortError> {
        Err(unreachable(REASON))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_says_which_feature_is_missing() {
        let error = GamepadBackend::new().list().unwrap_err().to_string();
        assert!(error.starts_with("gamepads can't be reached") && error.contains("--features gamepad"), "{error}");
        assert!(UNAVAILABLE.is_some_and(|why| error.contains(why)), "{error}");
    }
}
