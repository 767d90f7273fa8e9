//! Pacing: a MIDI port gets no more bytes a second than its cable carries.
//!
//! A DIN cable carries 3125 bytes a second, and some devices lose what comes faster: the driver returns success as soon
//! as it has taken it. So messages beyond the pace of the port wait here, in order, and the worker goes on. Values of a
//! controller that wait are coalesced into the latest; nothing else is merged. If the queue is full, a message is
//! refused with an error, unless it ends something (such as a note). Messages of the clock never wait: MIDI lets them
//! go between the bytes of others.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::{MidiOut, PortError};

/// How fast a port takes messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pace {
    /// Bytes a second; `None` if as fast as they come.
    pub bytes_per_second: Option<u32>,
    /// How long the device needs after a SysEx message.
    pub after_sysex: Duration,
}

/// How far ahead of the wire messages are handed to the driver. It has a buffer of its own, and so the wire never idles.
const LOOKAHEAD: Duration = Duration::from_millis(10);

/// Bytes that wait at most. What ends something may wait beyond that, as much again.
pub const MAX_WAITING: usize = 16 << 10;

/// A port, and what waits for it.
pub struct PacedPort {
    port: Box<dyn MidiOut>,
    pace: Pace,
    /// When the wire is free.
    free_at: Instant,
    waiting: VecDeque<Vec<u8>>,
    bytes_waiting: usize,
    /// Values that were left out for a later one.
    merged: u64,
}

impl std::fmt::Debug for PacedPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PacedPort")
            .field("pace", &self.pace)
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

impl PacedPort {
    /// The port, at this pace.
    pub fn new(port: Box<dyn MidiOut>, pace: Pace, now: Instant) -> Self {
        Self { port, pace, free_at: now, waiting: VecDeque::new(), bytes_waiting: 0, merged: 0 }
    }

    /// Another pace, for what comes from now on.
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }

    /// Values that were left out because a later one of the same controller came while they waited, since the last call.
    pub fn take_merged(&mut self) -> u64 {
        std::mem::take(&mut self.merged)
    }

    /// Sends a message, or has it wait for its turn. `ends` says that it ends something; `now` is asked where there is a pace.
    ///
    /// # Errors
    /// When the driver refuses it, or too much waits already.
    pub fn send(&mut self, message: &[u8], ends: bool, now: impl FnOnce() -> Instant) -> Result<(), PortError> {
        let waits_for_nothing = self.pace == Pace::default() && self.waiting.is_empty();
        if waits_for_nothing || matches!(message, [0xF8..=0xFF]) {
            return self.port.send(message);
        }
        let now = now();
        if self.waiting.is_empty() && self.is_due(now) {
            return self.put(message, now);
        }
        if self.merge(message) {
            return Ok(());
        }
        let most = if ends { 2 * MAX_WAITING } else { MAX_WAITING };
        if self.bytes_waiting + message.len() > most {
            return Err(PortError(format!(
                "{} bytes wait for it already: it takes {} a second",
                self.bytes_waiting,
                self.pace.bytes_per_second.unwrap_or(u32::MAX)
            )));
        }
        self.bytes_waiting += message.len();
        self.waiting.push_back(message.to_vec());
        Ok(())
    }

    /// Has the display in a key say something. It does not wait: such ports have no pace.
    ///
    /// # Errors
    /// When the driver refuses it.
    pub fn show_text(&mut self, note: u8, text: Option<&str>) -> Result<(), PortError> {
        self.port.show_text(note, text)
    }

    /// When the next message that waits may go; `None` if none waits.
    pub fn due(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then(|| self.free_at.checked_sub(LOOKAHEAD).unwrap_or(self.free_at))
    }

    /// Sends what may go by now.
    ///
    /// # Errors
    /// Why the driver refused a message, for each that it refused.
    pub fn go_on(&mut self, now: Instant) -> Result<(), Vec<PortError>> {
        let mut refused = Vec::new();
        while self.is_due(now)
            && let Some(message) = self.waiting.pop_front()
        {
            self.bytes_waiting -= message.len();
            refused.extend(self.put(&message, now).err());
        }
        if refused.is_empty() { Ok(()) } else { Err(refused) }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.free_at <= now + LOOKAHEAD
    }

    fn put(&mut self, message: &[u8], now: Instant) -> Result<(), PortError> {
        let sent = self.port.send(message);
        if sent.is_ok() {
            let bytes = |rate: u32| Duration::from_secs_f64(message.len() as f64 / f64::from(rate.max(1)));
            let mut takes = self.pace.bytes_per_second.map(bytes).unwrap_or_default();
            if message.first() == Some(&0xF0) {
                takes += self.pace.after_sysex;
            }
            self.free_at = self.free_at.max(now) + takes;
        }
        sent
    }

    /// Puts a value in the place of an earlier one that waits, unless a message to the same channel lies between them that
    /// may depend on it. False if there is none.
    fn merge(&mut self, message: &[u8]) -> bool {
        let Some(what) = moved(message) else { return false };
        for waiting in self.waiting.iter_mut().rev() {
            match moved(waiting) {
                Some(other) if other == what => {
                    waiting.copy_from_slice(message);
                    self.merged += 1;
                    return true;
                }
                Some(_) => {}
                None if waiting.first().is_some_and(|status| *status >= 0xF0 || status & 15 == message[0] & 15) => {
                    return false;
                }
                None => {}
            }
        }
        false
    }
}

/// What a message moves: a status with its channel, and a number. `None` if it moves nothing that has a latest value.
fn moved(message: &[u8]) -> Option<(u8, u8)> {
    match *message {
        // Not those that are parts of something longer (banks, parameters and their data), switches, and channel modes.
        [status @ 0xB0..=0xBF, controller, _] => {
            let is_value = !matches!(controller, 0 | 6 | 32 | 38 | 64..=69 | 80..=83 | 96..=101 | 120..=127);
            is_value.then_some((status, controller))
        }
        [status @ 0xA0..=0xAF, note, _] => Some((status, note)),
        [status @ 0xD0..=0xDF, _] | [status @ 0xE0..=0xEF, _, _] => Some((status, 0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use proptest::prelude::*;

    use super::*;

    const DIN: Pace = Pace { bytes_per_second: Some(3125), after_sysex: Duration::ZERO };

    /// A port that keeps what it gets.
    #[derive(Clone, Default)]
    struct RecordingPort(Arc<Mutex<Vec<Vec<u8>>>>);

    impl MidiOut for RecordingPort {
        fn send(&mut self, message: &[u8]) -> Result<(), PortError> {
            self.0.lock().push(message.to_vec());
            Ok(())
        }
    }

    fn port(pace: Pace, now: Instant) -> (PacedPort, RecordingPort) {
        let kept = RecordingPort::default();
        (PacedPort::new(Box::new(kept.clone()), pace, now), kept)
    }

    /// Goes on until nothing waits. Returns when each message went, in microseconds from `from`, and which.
    fn drain(port: &mut PacedPort, kept: &RecordingPort, from: Instant) -> Vec<(u128, Vec<u8>)> {
        let mut went = Vec::new();
        loop {
            went.extend(kept.0.lock().drain(..).map(|message| (0, message)));
            let Some(due) = port.due() else { return went };
            port.go_on(due).unwrap();
            let at = due.saturating_duration_since(from).as_micros();
            went.extend(kept.0.lock().drain(..).map(|message| (at, message)));
        }
    }

    // PRT-1: a burst takes the time of the wire, and nothing of it is lost.
    #[test]
    fn a_burst_waits_for_the_wire() {
        let now = Instant::now();
        let (mut port, kept) = port(DIN, now);
        for note in 0..100 {
            port.send(&[0x90, note, 100], false, || now).unwrap();
        }
        let went = drain(&mut port, &kept, now);
        assert_eq!(went.iter().map(|(_, message)| message[1]).collect::<Vec<_>>(), (0..100).collect::<Vec<u8>>());
        // 300 bytes take 96 ms; the last goes to the driver when it has room for it.
        let (last, _) = went.last().unwrap();
        assert!((84_000..=87_000).contains(last), "{last} us");
    }

    #[test]
    fn without_a_pace_nothing_waits() {
        let now = Instant::now();
        let (mut port, kept) = port(Pace::default(), now);
        (0..10_000).for_each(|_| port.send(&[0x90, 1, 2], false, || now).unwrap());
        assert!(port.due().is_none());
        assert_eq!(kept.0.lock().len(), 10_000);
    }

    #[test]
    fn a_device_has_time_for_each_sysex_message() {
        let now = Instant::now();
        let pace = Pace { bytes_per_second: None, after_sysex: Duration::from_millis(50) };
        let (mut port, kept) = port(pace, now);
        for number in 0..3 {
            port.send(&[0xF0, number, 0xF7], false, || now).unwrap();
        }
        assert_eq!(drain(&mut port, &kept, now).iter().map(|(at, _)| *at / 1000).collect::<Vec<_>>(), [0, 40, 90]);
    }

    #[test]
    fn of_a_fader_that_waits_only_the_latest_place_counts() {
        let now = Instant::now();
        let (mut port, kept) = port(DIN, now);
        (0..11).for_each(|_| port.send(&[0x91, 1, 1], false, || now).unwrap());
        for value in 0..100 {
            port.send(&[0xB0, 7, value], false, || now).unwrap();
            port.send(&[0xB0, 10, value], false, || now).unwrap();
        }
        assert_eq!(port.take_merged(), 198);
        port.send(&[0x90, 60, 1], false, || now).unwrap();
        port.send(&[0xB0, 7, 100], false, || now).unwrap();
        let went: Vec<_> = drain(&mut port, &kept, now).into_iter().skip(11).map(|(_, message)| message).collect();
        assert_eq!(went, [[0xB0, 7, 99], [0xB0, 10, 99], [0x90, 60, 1], [0xB0, 7, 100]], "the note has its volume");
    }

    #[test]
    fn parts_of_something_longer_are_all_sent() {
        let now = Instant::now();
        let (mut port, kept) = port(DIN, now);
        (0..11).for_each(|_| port.send(&[0x91, 1, 1], false, || now).unwrap());
        let parts = [[0xB0, 101, 0], [0xB0, 100, 1], [0xB0, 6, 64], [0xB0, 101, 0], [0xB0, 100, 2], [0xB0, 6, 12]];
        parts.iter().for_each(|part| port.send(part, false, || now).unwrap());
        let went: Vec<_> = drain(&mut port, &kept, now).into_iter().skip(11).map(|(_, message)| message).collect();
        assert_eq!(went, parts);
    }

    #[test]
    fn what_finds_no_room_is_refused_and_ends_are_not() {
        let now = Instant::now();
        let (mut port, kept) = port(DIN, now);
        let sent = (0..20_000).filter(|_| port.send(&[0x90, 1, 2], false, || now).is_ok()).count();
        assert_eq!(sent, MAX_WAITING / 3 + 11, "as much as may wait, and what the driver took");
        let refused = port.send(&[0x90, 1, 2], false, || now).unwrap_err();
        assert!(refused.to_string().contains("it takes 3125 a second"), "{refused}");
        port.send(&[0x80, 1, 0], true, || now).unwrap();
        port.send(&[0xF8], false, || now).unwrap();
        assert_eq!(kept.0.lock().last(), Some(&vec![0xF8]), "a clock does not wait");
        assert_eq!(drain(&mut port, &kept, now).last().unwrap().1, [0x80, 1, 0]);
    }

    proptest! {
        /// Every note and its end goes out once, in order; of each controller the last value does.
        #[test]
        fn nothing_is_lost_that_counts(messages in prop::collection::vec((0u8..3, 0u8..2, 0u8..3, 0u8..128), 0..400)) {
            let now = Instant::now();
            let (mut port, kept) = port(DIN, now);
            let messages: Vec<[u8; 3]> = messages
                .into_iter()
                .map(|(kind, channel, number, value)| [[0x80, 0x90, 0xB0][usize::from(kind)] | channel, number + 1, value])
                .collect();
            messages.iter().for_each(|message| port.send(message, false, || now).unwrap());
            let went: Vec<_> = drain(&mut port, &kept, now).into_iter().map(|(_, message)| message).collect();
            let notes = |all: Vec<Vec<u8>>| all.into_iter().filter(|message| message[0] < 0xB0).collect::<Vec<_>>();
            let sent: Vec<_> = messages.iter().map(|message| message.to_vec()).collect();
            prop_assert_eq!(notes(went.clone()), notes(sent.clone()));
            // What a note meets is what it would have met: the last value of each controller before it, on its channel.
            let met = |all: &[Vec<u8>]| {
                let mut values = std::collections::BTreeMap::new();
                let mut met = Vec::new();
                for message in all {
                    if message[0] >= 0xB0 {
                        values.insert((message[0] & 15, message[1]), message[2]);
                    } else {
                        let channel = message[0] & 15;
                        met.push(values.iter().filter(|((of, _), _)| *of == channel).map(|(key, value)| (*key, *value)).collect::<Vec<_>>());
                    }
                }
                met.push(values.into_iter().collect());
                met
            };
            prop_assert_eq!(met(&went), met(&sent));
        }
    }
}
