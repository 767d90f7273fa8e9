//! MIDI ports of the system, through midir: ALSA or JACK on Linux, CoreMIDI, WinMM.

use std::path::Path;
use std::time::{Duration, Instant};

use midir::{Ignore, MidiInput, MidiInputConnection, MidiOutput, MidiOutputConnection};

use super::{Connection, Direction, EventSink, MidiOut, PortBackend, PortError, PortInfo, Protocol};

/// The name that other programs see. Ports of clients with this name are the host's own, and never
/// listened to.
const CLIENT: &str = "conductor";

/// Which system midir was built for.
const BACKEND: &str = if cfg!(feature = "jack") {
    "jack"
} else if cfg!(target_os = "linux") {
    "alsa"
} else if cfg!(target_os = "macos") {
    "coremidi"
} else {
    "winmm"
};

/// The backend. Its two listing clients live as long as it does: making one is expensive, and on
/// some systems a short-lived one never learns of new devices.
#[derive(Default)]
pub struct MidiBackend {
    input: Option<MidiInput>,
    output: Option<MidiOutput>,
    /// The last failure to reach the system, and when to try again.
    failed: Option<(PortError, Instant)>,
}

/// How long a system that can't be reached is left alone: its libraries complain on the terminal at
/// every try.
const TRY_AGAIN: Duration = Duration::from_secs(5);

impl MidiBackend {
    /// Connects to the system when it is first asked for ports.
    pub fn new() -> Self {
        Self::default()
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

/// ALSA ends a name with the client's and port's number, which change whenever something is plugged.
fn stable_name(name: &str) -> &str {
    match name.rsplit_once(' ') {
        Some((front, numbers)) if BACKEND == "alsa" && is_client_and_port(numbers) => front,
        _ => name,
    }
}

fn is_client_and_port(numbers: &str) -> bool {
    numbers.split_once(':').is_some_and(|(client, port)| {
        !client.is_empty() && !port.is_empty() && client.bytes().chain(port.bytes()).all(|b| b.is_ascii_digit())
    })
}

fn is_own(name: &str) -> bool {
    name.split(':')
        .next()
        .is_some_and(|client| client == CLIENT || client.strip_prefix(CLIENT).is_some_and(|rest| rest.starts_with('-')))
}

fn connected<T, E: std::fmt::Display>(
    slot: &mut Option<T>,
    new: impl FnOnce() -> Result<T, E>,
) -> Result<&mut T, PortError> {
    match slot {
        Some(client) => Ok(client),
        None => Ok(slot.insert(new().map_err(unreachable)?)),
    }
}

fn ports_of<IO: midir::MidiIO>(io: &IO, direction: Direction) -> Vec<(PortInfo, IO::Port)> {
    io.ports()
        .into_iter()
        .filter_map(|port| {
            // A port may vanish between being listed and being asked.
            let name = io.port_name(&port).ok()?;
            (!is_own(&name)).then(|| {
                let info = PortInfo {
                    name: stable_name(&name).to_owned(),
                    key: name,
                    backend: BACKEND,
                    protocol: Protocol::Midi,
                    direction,
                };
                (info, port)
            })
        })
        .collect()
}

fn find<IO: midir::MidiIO>(io: &IO, wanted: &PortInfo) -> Result<IO::Port, PortError> {
    ports_of(io, wanted.direction)
        .into_iter()
        .find_map(|(info, port)| (info.key == wanted.key).then_some(port))
        .ok_or_else(|| PortError(format!("{} is gone", wanted.name)))
}

impl MidiBackend {
    fn list_now(&mut self) -> Result<Vec<PortInfo>, PortError> {
        // Without the device there is nothing to reach, and trying would only make noise.
        if BACKEND == "alsa" && !Path::new("/dev/snd/seq").exists() {
            return Err(unreachable("there is no /dev/snd/seq"));
        }
        let input = connected(&mut self.input, || MidiInput::new(&format!("{CLIENT}-list")))?;
        let mut ports: Vec<_> = ports_of(input, Direction::Input).into_iter().map(|(info, _)| info).collect();
        let output = connected(&mut self.output, || MidiOutput::new(&format!("{CLIENT}-list")))?;
        ports.extend(ports_of(output, Direction::Output).into_iter().map(|(info, _)| info));
        Ok(ports)
    }
}

impl PortBackend for MidiBackend {
    fn name(&self) -> &'static str {
        BACKEND
    }

    fn list(&mut self) -> Result<Vec<PortInfo>, PortError> {
        if let Some((error, again)) = &self.failed
            && Instant::now() < *again
        {
            return Err(error.clone());
        }
        let listed = self.list_now();
        self.failed = listed.as_ref().err().map(|error| (error.clone(), Instant::now() + TRY_AGAIN));
        listed
    }

    fn open_input(&mut self, port: &PortInfo, sink: EventSink) -> Result<Box<dyn Connection>, PortError> {
        let mut input = MidiInput::new(CLIENT).map_err(unreachable)?;
        input.ignore(Ignore::None);
        let found = find(&input, port)?;
        let connection = input
            .connect(&found, "in", |_, bytes, sink: &mut EventSink| sink.midi(bytes), sink)
            .map_err(|error| PortError(format!("{} can't be opened: {error}", port.name)))?;
        Ok(Box::new(OpenInput { _connection: connection }))
    }

    fn open_output(&mut self, port: &PortInfo) -> Result<Box<dyn MidiOut>, PortError> {
        let output = MidiOutput::new(CLIENT).map_err(unreachable)?;
        let found = find(&output, port)?;
        let connection = output
            .connect(&found, "out")
            .map_err(|error| PortError(format!("{} can't be opened: {error}", port.name)))?;
        Ok(Box::new(OpenOutput(connection)))
    }
}

struct OpenInput {
    _connection: MidiInputConnection<EventSink>,
}

impl Connection for OpenInput {}

struct OpenOutput(MidiOutputConnection);

/// What was sent last still lies in midir's ring until JACK's next period, and closing throws it
/// away: a note-off among it would leave a note sounding. Nothing tells when the ring is empty; this
/// is longer than two of the longest usual periods (1024 frames at 44.1 kHz).
#[cfg(feature = "jack")]
impl Drop for OpenOutput {
    fn drop(&mut self) {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// SysEx beyond this is lost in silence by ALSA's sequencer (4096 bytes) and JACK's ring (16 KiB),
/// so it is refused instead.
const MAX_SYSEX_OUT: usize = 4096;

impl MidiOut for OpenOutput {
    fn send(&mut self, message: &[u8]) -> Result<(), PortError> {
        if message.len() > MAX_SYSEX_OUT {
            return Err(PortError(format!(
                "a message of {} bytes is more than this driver takes ({MAX_SYSEX_OUT})",
                message.len()
            )));
        }
        self.0.send(message).map_err(|error| PortError(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_ports_are_recognised_by_their_client() {
        assert!(is_own("conductor:in 128:0") && is_own("conductor-list:x"));
        assert!(!is_own("conductors:in") && !is_own("KeyStep:KeyStep MIDI 1 20:0"));
    }

    #[test]
    fn numbers_at_the_end_are_numbers_of_alsa() {
        assert!(is_client_and_port("128:0"));
        assert!(!is_client_and_port("37") && !is_client_and_port(":") && !is_client_and_port("a:0"));
    }
}
