//! The windows of devices, from the events that the host has kept.

use std::collections::{BTreeMap, BTreeSet};

use conductor_feature::{Error, Reader, devices, kind};

use crate::{Moment, Window};

/// Events that the host hands over at most: of all devices together.
const MAX_EVENTS: u32 = 1000;
/// Events whose text it hands over at most.
const MAX_TEXTS: u32 = 256;

/// The window of one device.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    /// Its events.
    pub window: Window,
    /// When the first of them came, in nanoseconds on the clock of events.
    pub first: u64,
    /// When the last of them came.
    pub last: u64,
}

impl Heard {
    /// Seconds from the first event to the last.
    pub fn seconds(&self) -> f64 {
        let millis = (self.last - self.first) / 1_000_000;
        #[expect(clippy::cast_precision_loss, reason = "a window is short")]
        let seconds = millis as f64 / 1000.0;
        seconds
    }
}

/// What came in the last `seconds`, by the name of the device; of one device alone, if it is named.
///
/// # Errors
/// The host's.
pub fn heard(reader: &Reader, seconds: u16, device: Option<&str>) -> Result<BTreeMap<String, Heard>, Error> {
    let since = reader.status()?.uptime.saturating_sub(u64::from(seconds) * 1_000_000_000);
    let events = reader.events(MAX_EVENTS)?;
    let commands = machine_control(reader, events.iter().any(|event| event.kind == kind::SYSEX))?;
    let mut names: BTreeMap<u32, Option<String>> = BTreeMap::new();
    let mut heard: BTreeMap<String, Heard> = BTreeMap::new();
    for event in events.iter().filter(|event| event.at >= since) {
        let name = names.entry(event.device).or_insert_with(|| devices::name(event.device));
        let Some(name) = name.as_ref().filter(|name| device.is_none_or(|device| device == *name)) else { continue };
        let one = heard.entry(name.clone()).or_insert_with(|| Heard { first: event.at, ..Heard::default() });
        one.last = event.at;
        one.window.add(Moment { machine_control: commands.contains(&event.at), ..Moment::from(event) });
    }
    Ok(heard)
}

/// When commands of MIDI machine control came: the event record has no bytes, the text of an event has.
fn machine_control(reader: &Reader, has_sysex: bool) -> Result<BTreeSet<u64>, Error> {
    let texts = if has_sysex { reader.captured(MAX_TEXTS)? } else { Vec::new() };
    Ok(texts.into_iter().filter(|captured| is_command(&captured.text)).map(|captured| captured.event.at).collect())
}

/// Whether an event in the timeline language is a command of MIDI machine control: `sysex F0 7F device 06 ...`.
fn is_command(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().take(5).collect();
    matches!(&words[..], ["sysex", "F0" | "f0", "7F" | "7f", _, "06"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_control_is_told_from_other_messages() {
        assert!(is_command("sysex F0 7F 7F 06 02 F7"));
        assert!(!is_command("sysex F0 7E 7F 06 01 F7"));
        assert!(!is_command("sysex F0 7F"));
        assert!(!is_command("note-on 36 100"));
    }
}
