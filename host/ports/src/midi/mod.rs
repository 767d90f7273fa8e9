//! MIDI ports: through the system's own MIDI, or through JACK.
//!
//! `system` is midir: ALSA on Linux, CoreMIDI, WinMM. `jack` takes its place in a build with that feature. Here is
//! what both share: the host's own name, and the ports that it makes for bindings that ask for them.

#[cfg(all(target_os = "linux", not(feature = "jack")))]
mod announcements;
#[cfg(feature = "jack")]
mod jack;
#[cfg(not(feature = "jack"))]
mod system;

use std::time::{Duration, Instant};

#[cfg(feature = "jack")]
pub use self::jack::JackBackend as MidiBackend;
#[cfg(not(feature = "jack"))]
pub use self::system::SystemBackend as MidiBackend;
use super::binding::OwnPorts;
use super::{BindingSpec, Direction, Matcher, PortError, PortInfo, Protocol};

/// Which MIDI this build speaks to.
pub const BACKEND: &str = if cfg!(feature = "jack") {
    "jack"
} else if cfg!(target_os = "linux") {
    "alsa"
} else if cfg!(target_os = "macos") {
    "coremidi"
} else {
    "winmm"
};

/// The name that other programs see. Ports of clients with this name are the host's own, and never
/// listened to.
const CLIENT: &str = "conductor";

/// How long a system that can't be reached is left alone: its libraries complain on the terminal at
/// every try.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// A system that could not be reached a moment ago.
#[derive(Default)]
struct Unreachable(Option<(PortError, Instant)>);

impl Unreachable {
    /// # Errors
    /// What was noted, while the system is left alone.
    fn recently(&self) -> Result<(), PortError> {
        match &self.0 {
            Some((error, again)) if Instant::now() < *again => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn note(&mut self, listed: &Result<Vec<PortInfo>, PortError>) {
        self.0 = listed.as_ref().err().map(|error| (error.clone(), Instant::now() + RETRY_INTERVAL));
    }
}

fn unreachable(error: impl std::fmt::Display) -> PortError {
    let hint = match BACKEND {
        "alsa" => "; load the sequencer (modprobe snd-seq) and let this user open it (group audio)",
        "jack" => "; is a JACK server running?",
        _ => "",
    };
    PortError(format!("MIDI through {BACKEND} can't be reached: {error}{hint}"))
}

fn cannot_open(port: &PortInfo, error: impl std::fmt::Display) -> PortError {
    PortError(format!("{} can't be opened: {error}", port.name))
}

/// The key of a port that the host makes itself, for the binding of this alias.
pub fn virtual_key(direction: Direction, alias: &str) -> String {
    format!("virtual {direction}:{alias}")
}

/// Whether a port is of a client of ours, by the port's whole name.
fn is_own(name: &str) -> bool {
    name.split(':')
        .next()
        .is_some_and(|client| client == CLIENT || client.strip_prefix(CLIENT).is_some_and(|rest| rest.starts_with('-')))
}

/// The ports to be made, under the names that `name` gives them.
fn made(bindings: &[BindingSpec], name: impl Fn(Direction, &str) -> String) -> Vec<PortInfo> {
    let asking = bindings.iter().filter(|binding| binding.made == OwnPorts::Virtual);
    let ports = asking.flat_map(|binding| {
        [Direction::Input, Direction::Output].map(|direction| {
            let key = virtual_key(direction, &binding.alias);
            let made = |matcher: &Matcher| matches!(matcher, Matcher::Made(made) if *made == key);
            let wanted = binding.matchers(direction).iter().any(made);
            let name = name(direction, &binding.alias);
            wanted.then(|| PortInfo::new(&name, &key, BACKEND, Protocol::Midi, direction))
        })
    });
    ports.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_ports_are_recognised_by_their_client() {
        assert!(is_own("conductor:in 128:0") && is_own("conductor-list:x"));
        assert!(!is_own("conductors:in") && !is_own("KeyStep:KeyStep MIDI 1 20:0"));
    }
}
