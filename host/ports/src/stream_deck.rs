//! Stream Decks, as MIDI ports: an input, and an output if its keys show something. Which message is which key is said in
//! `conductor_stream_deck::layout`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use conductor_stream_deck::{Deck, Decks, Error, Found, Lights};
use parking_lot::Mutex;

use super::endpoint::{CLOSE_TIMEOUT, Receiver, SETTLE_INTERVAL};
use super::{
    Connection, Direction, EventSink, MidiOut, PortBackend, PortError, PortInfo, PortMetadata, Protocol, UsbDevice,
};

/// The backend's word for listings.
const BACKEND: &str = "stream-deck";
/// The udev rule that lets the person at the machine open a deck.
const RULE: &str = "KERNEL==\"hidraw*\", ATTRS{idVendor}==\"0fd9\", TAG+=\"uaccess\"";

/// The backend.
#[derive(Debug, Default)]
pub struct StreamDeckBackend {
    decks: Decks,
    /// Those that were listed last.
    found: Vec<Found>,
    pluggings: Pluggings,
}

/// How often each deck was lost, by serial number: what was open of it before is dead.
#[derive(Debug, Clone, Default)]
struct Pluggings(Arc<Mutex<HashMap<String, u64>>>);

impl Pluggings {
    fn of(&self, serial: &str) -> u64 {
        self.0.lock().get(serial).copied().unwrap_or(0)
    }

    fn lost(&self, serial: &str) {
        *self.0.lock().entry(serial.to_owned()).or_default() += 1;
    }
}

impl StreamDeckBackend {
    /// Connects to the system when it is first asked for decks.
    pub fn new() -> Self {
        Self::default()
    }

    fn port(&self, found: &Found, direction: Direction) -> PortInfo {
        let (vendor_id, product_id) = found.usb();
        let (bus, address, path) = (None, None, None);
        let usb = UsbDevice { vendor_id, product_id, serial: Some(found.serial.clone()), bus, address, path };
        let plugging = self.pluggings.of(&found.serial);
        let metadata = PortMetadata { usb: Some(usb), plugging, ..PortMetadata::default() };
        PortInfo { metadata, ..PortInfo::new(found.name(), &found.serial, BACKEND, Protocol::Midi, direction) }
    }

    fn open(&mut self, port: &PortInfo) -> Result<Deck, PortError> {
        let found = self.found.iter().find(|found| found.serial == port.key);
        let found = found.ok_or_else(|| PortError(format!("{} is not plugged in any more", port.name)))?;
        self.decks.open(found).map_err(|error| cannot_open(&error))
    }
}

/// What is said of a deck that can't be opened, with what to do about it.
fn cannot_open(error: &Error) -> PortError {
    let said = error.to_string();
    let is_denied = matches!(error, Error::Open { .. }) && said.to_lowercase().contains("permission denied");
    PortError(match is_denied && cfg!(target_os = "linux") {
        true => format!("{said}; this rule lets you, in /etc/udev/rules.d/70-conductor.rules: {RULE}"),
        false => said,
    })
}

/// Reads until the port is closed or the deck is gone.
fn read(deck: Deck, mut sink: EventSink, stop: &AtomicBool) -> Result<(), Error> {
    let reader = deck.reader();
    let mut settled = true;
    while !stop.load(Ordering::Relaxed) {
        let longest = if settled { CLOSE_TIMEOUT } else { SETTLE_INTERVAL };
        reader.next(longest, &mut |message| sink.midi(message))?;
        settled = sink.settle();
    }
    Ok(())
}

impl PortBackend for StreamDeckBackend {
    fn name(&self) -> &'static str {
        BACKEND
    }

    fn has_sysex(&self) -> bool {
        false
    }

    fn list(&mut self) -> Result<Vec<PortInfo>, PortError> {
        self.found = self.decks.list().map_err(|error| PortError(error.to_string()))?;
        let ports = self.found.iter().flat_map(|found| {
            let output = found.is_lit().then(|| self.port(found, Direction::Output));
            std::iter::once(self.port(found, Direction::Input)).chain(output)
        });
        Ok(ports.collect())
    }

    fn open_input(&mut self, port: &PortInfo, sink: EventSink) -> Result<Box<dyn Connection>, PortError> {
        let deck = self.open(port)?;
        let (serial, pluggings) = (port.key.clone(), self.pluggings.clone());
        let receiver = Receiver::start("stream deck", move |stop| {
            if let Err(error) = read(deck, sink, stop) {
                tracing::debug!("{serial}: {error}");
                pluggings.lost(&serial);
            }
        });
        Ok(Box::new(receiver.map_err(|error| PortError(error.to_string()))?))
    }

    fn open_output(&mut self, port: &PortInfo) -> Result<Box<dyn MidiOut>, PortError> {
        let deck = self.open(port)?;
        let lights = Lights::new(deck).map_err(|error| PortError(error.to_string()))?;
        Ok(Box::new(OpenOutput { lights, serial: port.key.clone(), pluggings: self.pluggings.clone() }))
    }
}

struct OpenOutput {
    lights: Lights,
    serial: String,
    pluggings: Pluggings,
}

impl OpenOutput {
    fn done(&self, done: Result<(), Error>) -> Result<(), PortError> {
        done.map_err(|error| {
            if matches!(error, Error::Device(_)) {
                self.pluggings.lost(&self.serial);
            }
            PortError(error.to_string())
        })
    }
}

impl MidiOut for OpenOutput {
    fn send(&mut self, message: &[u8]) -> Result<(), PortError> {
        let done = self.lights.take(message);
        self.done(done)
    }

    fn show_text(&mut self, note: u8, text: Option<&str>) -> Result<(), PortError> {
        let done = self.lights.show_text(note, text);
        self.done(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_open_a_deck_reads_which_rule_allows_it() {
        let why = "Failed to open a device with path '/dev/hidraw0': Permission denied".to_owned();
        let denied = cannot_open(&Error::Open { name: "Stream Deck MK.2", why }).to_string();
        assert!(denied.starts_with("Stream Deck MK.2 can't be opened: "), "{denied}");
        assert_eq!(denied.contains(RULE), cfg!(target_os = "linux"), "{denied}");
        assert!(include_str!("../../../xtask/packaging/70-conductor.rules").lines().any(|line| line == RULE));
        let other = cannot_open(&Error::Open { name: "Stream Deck XL", why: "no such device".into() }).to_string();
        assert_eq!(other, "Stream Deck XL can't be opened: no such device");
    }

    #[test]
    fn what_was_lost_is_another_plugging() {
        let mut backend = StreamDeckBackend::new();
        let kind = conductor_stream_deck::Kind::Mk2;
        let found = Found { kind, serial: "A1".into() };
        let before = backend.port(&found, Direction::Input);
        assert_eq!(
            (before.name.as_str(), before.key.as_str(), before.metadata.plugging),
            ("Stream Deck MK.2", "A1", 0)
        );
        backend.pluggings.clone().lost("A1");
        assert_eq!(backend.port(&found, Direction::Output).metadata.plugging, 1);
        let error = backend.open(&before).unwrap_err().to_string();
        assert_eq!(error, "Stream Deck MK.2 is not plugged in any more");
    }
}
