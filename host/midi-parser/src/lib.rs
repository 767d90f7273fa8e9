//! Parser of a MIDI 1.0 byte stream: messages out of the bytes that a port delivers, in chunks of any size.
//!
//! Follows the rules for receivers in the MIDI 1.0 Detailed Specification: running status, realtime
//! bytes between any two others, system common cancelling running status, data without status ignored.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::sync::Arc;

use conductor_event::MidiMessage;

/// Turns bytes into messages. One for each port, since a message may come in pieces.
///
/// Nothing is allocated but the bytes of SysEx messages.
///
/// ```
/// # use conductor_event::MidiMessage;
/// # use conductor_midi_parser::MidiParser;
/// let mut parser = MidiParser::new();
/// let mut found = Vec::new();
/// // Two notes with running status, a clock between the bytes of the second.
/// parser.push(&[0x90, 60, 100, 62, 0xF8, 0], &mut |message| found.push(message));
/// assert_eq!(found, [
///     MidiMessage::NoteOn { channel: 0, note: 60, velocity: 100 },
///     MidiMessage::Clock,
///     MidiMessage::NoteOff { channel: 0, note: 62, velocity: 0 },
/// ]);
/// ```
#[derive(Clone, Debug)]
pub struct MidiParser {
    state: State,
    /// The SysEx message so far, from `F0`. Its memory is kept for the next.
    sysex: Vec<u8>,
    sysex_limit: usize,
    dropped_messages: u64,
    stray_bytes: u64,
}

/// What the next data byte belongs to.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Nothing: it is stray.
    Idle,
    /// The first byte of a message with this status. `fresh` when the status itself was just received,
    /// so that a message is begun; otherwise the status is running.
    First { status: u8, fresh: bool },
    /// The second byte, after this first one.
    Second { status: u8, first: u8 },
    /// The SysEx message that is being collected.
    SysEx,
    /// A SysEx message that was too long and is passed over.
    Overlong,
}

impl MidiParser {
    /// The longest SysEx message that [`new`](Self::new) lets through, in bytes: 1 MiB.
    pub const DEFAULT_SYSEX_LIMIT: usize = 1 << 20;

    /// A parser with the default limit for SysEx messages.
    pub fn new() -> Self {
        Self::with_sysex_limit(Self::DEFAULT_SYSEX_LIMIT)
    }

    /// A parser that drops SysEx messages of more than `limit` bytes, `F0` and `F7` included.
    pub fn with_sysex_limit(limit: usize) -> Self {
        Self { state: State::Idle, sysex: Vec::new(), sysex_limit: limit, dropped_messages: 0, stray_bytes: 0 }
    }

    /// Reads some bytes and hands every message that is complete to `out`, in order. Where the bytes are
    /// cut makes no difference.
    ///
    /// A note-on with velocity 0 comes out as a note-off with velocity 0. Realtime messages come out at
    /// once, also from inside another message.
    pub fn push(&mut self, bytes: &[u8], out: &mut impl FnMut(MidiMessage)) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            if matches!(self.state, State::SysEx) && byte < 0x80 {
                // A dump may be a megabyte: take all of its bytes that are here at once.
                let len = rest.iter().position(|&byte| byte >= 0x80).unwrap_or(rest.len());
                let (data, after) = rest.split_at(len);
                self.collect(data);
                rest = after;
                continue;
            }
            match byte {
                0x00..=0x7F => self.data(byte, out),
                0x80..=0xF7 => self.status(byte, out),
                0xF8..=0xFF => realtime(byte).into_iter().for_each(&mut *out),
            }
            rest = after;
        }
    }

    /// Forgets what was begun, as after a port was lost. The counters stay.
    pub fn reset(&mut self) {
        self.state = State::Idle;
        self.sysex.clear();
    }

    /// How many messages were begun and not finished: cut off by another one, SysEx that was too long,
    /// and those with an undefined status.
    pub fn dropped_messages(&self) -> u64 {
        self.dropped_messages
    }

    /// How many bytes came that belong to no message: data without status, `F7` without `F0`.
    pub fn stray_bytes(&self) -> u64 {
        self.stray_bytes
    }

    fn collect(&mut self, data: &[u8]) {
        // One byte is kept free for F7.
        if self.sysex.len() + data.len() < self.sysex_limit {
            self.sysex.extend_from_slice(data);
        } else {
            self.dropped_messages += 1;
            self.state = State::Overlong;
        }
    }

    fn status(&mut self, status: u8, out: &mut impl FnMut(MidiMessage)) {
        let before = std::mem::replace(&mut self.state, State::Idle);
        match before {
            State::SysEx if status == 0xF7 => {
                self.sysex.push(status);
                if self.sysex.len() <= self.sysex_limit {
                    out(MidiMessage::SysEx(Arc::from(self.sysex.as_slice())));
                } else {
                    self.dropped_messages += 1;
                }
                return;
            }
            State::Overlong if status == 0xF7 => return,
            State::SysEx | State::Second { .. } | State::First { fresh: true, .. } => {
                self.dropped_messages += 1;
            }
            State::Idle | State::Overlong | State::First { fresh: false, .. } => {}
        }
        match status {
            0xF0 => {
                self.sysex.clear();
                self.sysex.push(status);
                self.state = State::SysEx;
            }
            0xF6 => out(MidiMessage::TuneRequest),
            0xF7 => self.stray_bytes += 1,
            // Undefined, reserved for system common messages to come.
            0xF4 | 0xF5 => self.dropped_messages += 1,
            _ => self.state = State::First { status, fresh: true },
        }
    }

    fn data(&mut self, byte: u8, out: &mut impl FnMut(MidiMessage)) {
        let (status, message) = match self.state {
            State::First { status, .. } => match short(status, byte) {
                Some(message) => (status, message),
                None => {
                    self.state = State::Second { status, first: byte };
                    return;
                }
            },
            State::Second { status, first } => (status, long(status, first, byte)),
            State::Idle => {
                self.stray_bytes += 1;
                return;
            }
            // The data of a SysEx message does not come here; that of an overlong one is passed over.
            State::SysEx | State::Overlong => return,
        };
        // System common messages do not run on.
        let runs = status < 0xF0;
        self.state = if runs { State::First { status, fresh: false } } else { State::Idle };
        out(message);
    }
}

impl Default for MidiParser {
    fn default() -> Self {
        Self::new()
    }
}

/// The message of one status byte, `F8` to `FF`; `None` if it is undefined, which receivers ignore.
fn realtime(byte: u8) -> Option<MidiMessage> {
    match byte {
        0xF8 => Some(MidiMessage::Clock),
        0xFA => Some(MidiMessage::Start),
        0xFB => Some(MidiMessage::Continue),
        0xFC => Some(MidiMessage::Stop),
        0xFE => Some(MidiMessage::ActiveSensing),
        0xFF => Some(MidiMessage::Reset),
        _ => None,
    }
}

/// The message with one data byte; `None` if this status wants two.
fn short(status: u8, data: u8) -> Option<MidiMessage> {
    let channel = status & 0x0F;
    match status {
        0xC0..=0xCF => Some(MidiMessage::ProgramChange { channel, program: data }),
        0xD0..=0xDF => Some(MidiMessage::Aftertouch { channel, pressure: data }),
        0xF1 => Some(MidiMessage::TimeCode(data)),
        0xF3 => Some(MidiMessage::SongSelect(data)),
        _ => None,
    }
}

/// The message with two data bytes. Only called with a status that [`short`] does not know.
fn long(status: u8, first: u8, second: u8) -> MidiMessage {
    let channel = status & 0x0F;
    let fourteen_bits = u16::from(second) << 7 | u16::from(first);
    match status & 0xF0 {
        0x90 if second > 0 => MidiMessage::NoteOn { channel, note: first, velocity: second },
        0x80 | 0x90 => MidiMessage::NoteOff { channel, note: first, velocity: second },
        0xA0 => MidiMessage::PolyAftertouch { channel, note: first, pressure: second },
        0xB0 => MidiMessage::ControlChange { channel, controller: first, value: second },
        0xE0 => MidiMessage::PitchBend { channel, value: fourteen_bits },
        _ => MidiMessage::SongPosition(fourteen_bits),
    }
}

#[cfg(test)]
mod midi_messages;
#[cfg(test)]
mod tests {
    use super::midi_messages::midi_message;
    use super::*;
    use proptest::prelude::*;

    fn parse(parser: &mut MidiParser, bytes: &[u8]) -> Vec<MidiMessage> {
        let mut found = Vec::new();
        parser.push(bytes, &mut |message| found.push(message));
        found
    }

    fn sysex(bytes: &[u8]) -> MidiMessage {
        MidiMessage::SysEx(Arc::from(bytes))
    }

    #[test]
    fn running_status_goes_on_until_system_common() {
        let mut parser = MidiParser::new();
        let found = parse(&mut parser, &[0xB2, 7, 1, 7, 2, 0xF6, 7, 3]);
        let cc = |value| MidiMessage::ControlChange { channel: 2, controller: 7, value };
        assert_eq!(found, [cc(1), cc(2), MidiMessage::TuneRequest]);
        assert_eq!((parser.stray_bytes(), parser.dropped_messages()), (2, 0));
    }

    #[test]
    fn realtime_bytes_come_first_and_disturb_nothing() {
        let mut parser = MidiParser::new();
        let found = parse(&mut parser, &[0xF0, 1, 0xFE, 2, 0xFD, 0xF7, 0xE0, 0xF8, 0, 0xF9, 64]);
        assert_eq!(
            found,
            [
                MidiMessage::ActiveSensing,
                sysex(&[0xF0, 1, 2, 0xF7]),
                MidiMessage::Clock,
                MidiMessage::PitchBend { channel: 0, value: 8192 },
            ]
        );
        assert_eq!(parser.dropped_messages(), 0);
    }

    #[test]
    fn a_message_cut_off_by_another_is_counted() {
        let mut parser = MidiParser::new();
        let found = parse(&mut parser, &[0x90, 60, 0xC0, 5, 0xF0, 1, 2, 0x80, 60, 0, 0x90, 0xF0, 0xF7]);
        assert_eq!(
            found,
            [
                MidiMessage::ProgramChange { channel: 0, program: 5 },
                MidiMessage::NoteOff { channel: 0, note: 60, velocity: 0 },
                sysex(&[0xF0, 0xF7]),
            ]
        );
        assert_eq!((parser.dropped_messages(), parser.stray_bytes()), (3, 0));
    }

    #[test]
    fn undefined_statuses_and_lone_ends_are_passed_over() {
        let mut parser = MidiParser::new();
        assert_eq!(parse(&mut parser, &[0xF4, 1, 0xF5, 0xF7, 0xF3, 9]), [MidiMessage::SongSelect(9)]);
        assert_eq!((parser.dropped_messages(), parser.stray_bytes()), (2, 2));
    }

    #[test]
    fn a_sysex_may_be_as_long_as_the_limit_and_no_longer() {
        let mut parser = MidiParser::with_sysex_limit(4);
        assert_eq!(parse(&mut parser, &[0xF0, 1, 2, 0xF7]), [sysex(&[0xF0, 1, 2, 0xF7])]);
        let after = [0xF0, 1, 2, 3, 0xF8, 4, 0xF7, 0xF6];
        assert_eq!(parse(&mut parser, &after), [MidiMessage::Clock, MidiMessage::TuneRequest]);
        assert_eq!((parser.dropped_messages(), parser.stray_bytes()), (1, 0));

        let mut tiny = MidiParser::with_sysex_limit(1);
        assert_eq!(parse(&mut tiny, &[0xF0, 0xF7]), []);
        assert_eq!(tiny.dropped_messages(), 1);
    }

    #[test]
    fn after_a_reset_nothing_is_left_over() {
        let mut parser = MidiParser::new();
        assert_eq!(parse(&mut parser, &[0x90, 60, 100, 62]).len(), 1);
        parser.reset();
        assert_eq!(parse(&mut parser, &[100]), []);
        assert_eq!(parser.stray_bytes(), 1);
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_makes_no_difference(
            bytes in proptest::collection::vec(wire_byte(), 0..200),
            cuts in proptest::collection::vec(0usize..200, 0..10),
        ) {
            let mut whole = MidiParser::with_sysex_limit(12);
            let expected = parse(&mut whole, &bytes);
            let mut pieces = MidiParser::with_sysex_limit(12);
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let found: Vec<_> = cuts
                .windows(2)
                .flat_map(|cut| parse(&mut pieces, &bytes[cut[0]..cut[1]]))
                .collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(pieces.dropped_messages(), whole.dropped_messages());
            prop_assert_eq!(pieces.stray_bytes(), whole.stray_bytes());
        }

        #[test]
        fn what_is_written_is_read_back(
            messages in proptest::collection::vec(midi_message(), 0..20),
        ) {
            let mut bytes = Vec::new();
            messages.iter().for_each(|message| message.encode(&mut bytes));
            let mut parser = MidiParser::new();
            prop_assert_eq!(parse(&mut parser, &bytes), messages);
            prop_assert_eq!((parser.dropped_messages(), parser.stray_bytes()), (0, 0));
        }

        #[test]
        fn any_bytes_are_read_as_well_formed_messages(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let found = parse(&mut MidiParser::new(), &bytes);
            let mut encoded = Vec::new();
            found.iter().for_each(|message| message.encode(&mut encoded));
            prop_assert_eq!(parse(&mut MidiParser::new(), &encoded), found);
        }
    }

    /// Bytes as they come on a bad day: much SysEx, many statuses.
    fn wire_byte() -> impl Strategy<Value = u8> {
        prop_oneof![0u8..128, 0x80u8..=0xFF, Just(0xF0), Just(0xF7), Just(0x90)]
    }
}
