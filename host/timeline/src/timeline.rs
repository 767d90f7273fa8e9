//! A small line language for scripts of events, as tests, replays and `conductor` commands use it.
//!
//! One event a line: when, from which device, what.
//!
//! ```text
//! # A pad is hit and released, then a fader moves.
//! 0ms     pads           note-on 36 100 ch 9
//! +120ms  pads           note-off 36 ch 9
//! 1.5s    "nano #2"      cc 7 64
//! +20ms   tablet         osc /mixer/1/fader 0.75 "main" true
//! ```
//!
//! **When**: a number with `ns`, `us`, `ms` or `s`, from the start; with `+` from the line before. Time
//! never runs backwards. **Device**: a word, or any text in double quotes. `#` where a word could begin
//! makes the rest of the line a comment.
//!
//! **What**: `ch n` (0 to 15), or `ch1` to `ch16`, may end every channel message; without it the channel is 0. Notes,
//! controllers, buttons and axes may be called by their names, with `_` for a space: `note-on C2 100 ch10`,
//! `cc mod_wheel 64`, `gamepad-button xbox_a down`. C4 is middle C, 60.
//!
//! | Write | ranges |
//! |---|---|
//! | `note-on NOTE VELOCITY` | 0-127, 1-127 |
//! | `note-off NOTE [VELOCITY]` | 0-127; the velocity is 64 if it is left out |
//! | `poly-aftertouch NOTE PRESSURE` | 0-127 |
//! | `cc CONTROLLER VALUE` | 0-127 |
//! | `program PROGRAM` | 0-127 |
//! | `aftertouch PRESSURE` | 0-127 |
//! | `pitch-bend VALUE` | 0-16383, 8192 is the middle |
//! | `sysex F0 … F7` | hexadecimal bytes |
//! | `time-code BYTE`, `song-select SONG` | 0-127 |
//! | `song-position BEATS` | 0-16383 |
//! | `clock`, `start`, `continue`, `stop`, `tune-request`, `active-sensing`, `reset` | |
//! | `clock TEMPO BEATS` | 20-999 beats a minute, 1-1000: 24 pulses a beat, beside the lines that follow |
//! | `osc ADDRESS ARGUMENT…` | see below |
//! | `gamepad-button BUTTON down`, `gamepad-button BUTTON up` | 128-144 |
//! | `gamepad-stick AXIS WAY` | 128-131, -1 to 1 |
//! | `gamepad-trigger TRIGGER WAY` | 132-133, 0 to 1 |
//! | `key KEY down`, `key KEY up` | 257-1023 |
//! | `variable NUMBER VALUE` | 0-1023, a number: a change on the record, its unit being the value within 0 to 1 |
//! | `beat BEAT BAR OF` | 1-255, 1-65535, 1-255: a beat on the record, in a bar of so many |
//! | `transport start`, `continue`, `stop`, `lost` | the same of the clock's transport |
//! | `artnet UNIVERSE CHANNEL VALUE [PREVIOUS]` | 0-32767, 1-512, 0-255; it was 0 if that is left out |
//!
//! **OSC arguments** say their type by how they look; a letter at the end of a number is its OSC type
//! tag:
//!
//! | Write | for |
//! |---|---|
//! | `1`, `-5` | 32-bit integer |
//! | `0.5`, `1e-3`, `2f` | 32-bit float |
//! | `1h` | 64-bit integer |
//! | `0.5d` | 64-bit float |
//! | `"text"` | string; `\"`, `\\`, `\n`, `\r`, `\t` and `\u{e9}` stand for what they do in Rust |
//! | `'c'` | character, with the same escapes and `\'` |
//! | `true`, `false`, `nil`, `infinitum` | themselves |
//! | `blob:00ff` | bytes in hexadecimal |
//! | `color:ff000080` | red, green, blue, alpha |
//! | `midi:00903c64` | port, status, two data bytes |
//! | `time:3.7` | seconds since 1900 and 2^-32 seconds, both whole numbers |
//! | `[1 "two"]` | array |

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use conductor_engine::{MusicalEvent, OscPattern, Transport, check_address};
use conductor_event::event::write_name;
use conductor_event::{ArtNetChange, Event, HidEvent, MidiMessage, Nanos, OscArg, OscMessage, VariableChange};
use conductor_names::{channel, controller, gamepad, key, note};
use hex::FromHex as _;

/// Events in the order of time.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Timeline {
    /// The events, the earliest first.
    pub entries: Vec<TimelineEntry>,
}

/// One line. [`Display`](fmt::Display) writes it as it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineEntry {
    /// Nanoseconds from the start.
    pub at: Nanos,
    /// The name of the device.
    pub device: String,
    /// What comes from it.
    pub event: Event,
}

/// Something in a script that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct TimelineError {
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
    /// What is wrong, and what may stand there.
    pub message: String,
}

impl Timeline {
    /// Reads a script.
    ///
    /// # Errors
    /// The first mistake of every line that has one.
    pub fn parse(script: &str) -> Result<Self, Vec<TimelineError>> {
        let mut entries = Vec::new();
        let mut errors = Vec::new();
        let mut now = 0;
        for (index, text) in script.lines().enumerate() {
            match parse_line(text, &mut now) {
                Ok(of_line) => entries.extend(of_line),
                Err(mistake) => errors.push(mistake.in_line(index + 1, text)),
            }
        }
        // A clock runs beside the lines after it.
        entries.sort_by_key(|entry| entry.at);
        if errors.is_empty() { Ok(Self { entries }) } else { Err(errors) }
    }
}

impl FromStr for Timeline {
    type Err = Vec<TimelineError>;

    fn from_str(script: &str) -> Result<Self, Self::Err> {
        Self::parse(script)
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.iter().try_for_each(|entry| writeln!(f, "{entry}"))
    }
}

/// A mistake at a byte of a line.
pub(crate) struct Mistake {
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl Mistake {
    /// With the number of the line, from 1, and where in `text`, the line, it is.
    pub(crate) fn in_line(self, line: usize, text: &str) -> TimelineError {
        let column = text.get(..self.at).map_or(0, |before| before.chars().count()) + 1;
        TimelineError { line, column, message: self.message }
    }
}

pub(crate) type Parsed<T> = Result<T, Mistake>;

pub(crate) fn mistake<T>(at: usize, message: impl Into<String>) -> Parsed<T> {
    Err(Mistake { at, message: message.into() })
}

/// The entries of a line: none if it is empty, and several for a clock that runs. Moves `now` to its time even if what follows is wrong, so
/// that one mistake does not make the lines after it wrong too.
pub(crate) fn parse_line(text: &str, now: &mut Nanos) -> Parsed<Vec<TimelineEntry>> {
    let mut line = Line { text, at: 0 };
    let Some(time) = line.next()? else { return Ok(Vec::new()) };
    *now = parse_time(&time, *now)?;
    let device = match line.expect("a device: a word, or a name in double quotes")?.token {
        Token::Word(word) => word.to_owned(),
        Token::Text(text) => text,
        Token::Char(_) | Token::Open | Token::Close => {
            return mistake(time.end, "a device's name goes here: a word, or text in double quotes");
        }
    };
    let event = parse_event(&mut line)?;
    let running = if event == Event::Midi(MidiMessage::Clock) { parse_running(&mut line)? } else { None };
    if let Some(extra) = line.next()? {
        return mistake(extra.at, "the line should end here");
    }
    let entry = |at| TimelineEntry { at, device: device.clone(), event: event.clone() };
    let Some((tempo, beats)) = running else { return Ok(vec![entry(*now)]) };
    let pulses = (0..u64::from(beats) * 24).map(|pulse| now.saturating_add(pulse * (MINUTE / 24) / u64::from(tempo)));
    Ok(pulses.map(entry).collect())
}

/// Nanoseconds in a minute.
const MINUTE: Nanos = 60_000_000_000;

/// The tempo of a clock that runs, and for how many beats; `None` if it is one pulse.
fn parse_running(line: &mut Line) -> Parsed<Option<(u16, u16)>> {
    let before = line.at;
    if line.next()?.is_none() {
        return Ok(None);
    }
    line.at = before;
    Ok(Some((line.number("a tempo", 20, 999)?, line.number("how many beats", 1, 1000)?)))
}

/// One line that is being read.
pub(crate) struct Line<'a> {
    text: &'a str,
    /// The byte to read next.
    at: usize,
}

pub(crate) struct Found<'a> {
    pub(crate) token: Token<'a>,
    pub(crate) at: usize,
    end: usize,
}

#[derive(Debug)]
pub(crate) enum Token<'a> {
    Word(&'a str),
    /// In double quotes.
    Text(String),
    /// In single quotes.
    Char(char),
    Open,
    Close,
}

impl<'a> Line<'a> {
    /// A line from its first byte on.
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// A word or a text in double quotes: what things are called.
    pub(crate) fn name(&mut self, what: &str) -> Parsed<String> {
        let found = self.expect(what)?;
        match found.token {
            Token::Word(word) => Ok(word.to_owned()),
            Token::Text(text) => Ok(text),
            Token::Char(_) | Token::Open | Token::Close => {
                mistake(found.at, format!("{what} goes here: a word, or text in double quotes"))
            }
        }
    }

    /// The words and texts to the end of the line.
    pub(crate) fn names(&mut self) -> Parsed<Vec<String>> {
        let mut names = Vec::new();
        while let Some(found) = self.next()? {
            match found.token {
                Token::Word(word) => names.push(word.to_owned()),
                Token::Text(text) => names.push(text),
                _ => return mistake(found.at, "a name goes here: a word, or text in double quotes"),
            }
        }
        Ok(names)
    }

    /// The byte to read next.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Reads on from this byte, which [`at`](Self::at) has returned.
    pub(crate) fn back_to(&mut self, at: usize) {
        self.at = at;
    }

    /// Hexadecimal bytes to the end of the line.
    pub(crate) fn bytes(&mut self) -> Parsed<Vec<u8>> {
        let mut bytes = Vec::new();
        while let Some(found) = self.next()? {
            let byte = match found.token {
                Token::Word(word) => hex::decode(word).ok().filter(|bytes| bytes.len() == 1),
                _ => None,
            };
            match byte {
                Some(byte) => bytes.extend(byte),
                None => {
                    let shown = self.quote(&found);
                    return mistake(found.at, format!("{shown} is not a byte; write two hexadecimal digits"));
                }
            }
        }
        Ok(bytes)
    }

    /// Hexadecimal bytes to the end of the line, if the next word is one in upper case: `cc` is a message.
    pub(crate) fn upper_case_bytes(&mut self) -> Parsed<Option<Vec<u8>>> {
        let before = self.at;
        let is_byte = self.next()?.is_some_and(|found| {
            matches!(found.token, Token::Word(word)
                if word.len() == 2 && word.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'A'..=b'F')))
        });
        self.at = before;
        if is_byte { self.bytes().map(Some) } else { Ok(None) }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// The next token; none at the end or before a comment.
    pub(crate) fn next(&mut self) -> Parsed<Option<Found<'a>>> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        let at = self.at;
        let token = match self.rest().chars().next() {
            None | Some('#') => return Ok(None),
            Some('[') => self.symbol(Token::Open),
            Some(']') => self.symbol(Token::Close),
            Some('"') => Token::Text(self.quoted('"')?),
            Some('\'') => {
                let text = self.quoted('\'')?;
                let mut chars = text.chars();
                match (chars.next(), chars.next()) {
                    (Some(c), None) => Token::Char(c),
                    _ => return mistake(at, "single quotes hold exactly one character"),
                }
            }
            Some(_) => {
                let rest = self.rest();
                let ends = |c: char| c.is_whitespace() || "[]".contains(c);
                let word = &rest[..rest.find(ends).unwrap_or(rest.len())];
                self.at += word.len();
                Token::Word(word)
            }
        };
        Ok(Some(Found { token, at, end: self.at }))
    }

    fn symbol(&mut self, token: Token<'a>) -> Token<'a> {
        self.at += 1;
        token
    }

    /// What stands between two quotation marks, escapes replaced.
    fn quoted(&mut self, quote: char) -> Parsed<String> {
        let start = self.at;
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((offset, c)) = chars.next() {
            let here = start + offset;
            match c {
                c if c == quote => {
                    self.at = here + c.len_utf8();
                    return Ok(text);
                }
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => text.push('\n'),
                    Some('r') => text.push('\r'),
                    Some('t') => text.push('\t'),
                    Some(c @ ('\\' | '"' | '\'')) => text.push(c),
                    Some('u') => {
                        let digits: String = chars
                            .by_ref()
                            .map(|(_, c)| c)
                            .skip_while(|&c| c == '{')
                            .take_while(|&c| c != '}')
                            .collect();
                        match u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32) {
                            Some(c) => text.push(c),
                            None => return mistake(here, "write \\u{e9} for the character U+00E9"),
                        }
                    }
                    _ => {
                        return mistake(here, r#"after \ goes one of \ " ' n r t or u{…}"#);
                    }
                },
                c => text.push(c),
            }
        }
        mistake(start, format!("this {quote} is not closed on its line"))
    }

    /// The next token, or a mistake that says what is missing.
    pub(crate) fn expect(&mut self, what: &str) -> Parsed<Found<'a>> {
        let end = self.text[..self.at].trim_end().len();
        match self.next()? {
            Some(found) => Ok(found),
            None => mistake(end, format!("missing here: {what}")),
        }
    }

    /// A whole number from `min` to `max`.
    pub(crate) fn number(&mut self, what: &str, min: u16, max: u16) -> Parsed<u16> {
        let wanted = || format!("{what}, a whole number from {min} to {max}");
        let found = self.expect(&wanted())?;
        parse_number(&found, min, max).or_else(|()| {
            let wanted = wanted();
            mistake(found.at, format!("{} is not {wanted}", self.quote(&found)))
        })
    }

    fn seven_bit(&mut self, what: &str) -> Parsed<u8> {
        self.number(what, 0, 127).map(|number| number as u8)
    }

    /// A number in range, or a name that `find` knows.
    fn named(&mut self, what: &str, numbers: RangeInclusive<u16>, find: fn(&str) -> Option<u16>) -> Parsed<u16> {
        let before = self.at;
        let name = match self.next()?.map(|found| found.token) {
            Some(Token::Word(word)) => find(word),
            Some(Token::Text(text)) => find(&text),
            _ => None,
        };
        if let Some(number) = name.filter(|number| numbers.contains(number)) {
            return Ok(number);
        }
        self.at = before;
        self.number(what, *numbers.start(), *numbers.end())
    }

    fn note(&mut self) -> Parsed<u8> {
        self.named("a note", 0..=127, |name| note::number(name).map(u16::from)).map(|note| note as u8)
    }

    /// A number from `min` to 1, with or without a point.
    fn way(&mut self, what: &str, min: f32) -> Parsed<f32> {
        let found = self.expect(&format!("{what}, a number from {min} to 1"))?;
        let value = match found.token {
            Token::Word(word) => word.parse().ok().filter(|value| (min..=1.0).contains(value)),
            _ => None,
        };
        value.ok_or_else(|| Mistake {
            at: found.at,
            message: format!("{} is not {what}, a number from {min} to 1", self.quote(&found)),
        })
    }

    /// `ch n` or nothing; nothing is channel 0.
    fn channel(&mut self) -> Parsed<u8> {
        match self.next()? {
            None => Ok(0),
            Some(Found { token: Token::Word("ch"), .. }) => {
                self.number("a channel", 0, 15).map(|channel| channel as u8)
            }
            Some(Found { token: Token::Word(word), .. }) if channel::number(word).is_some() => {
                Ok(channel::number(word).unwrap_or(0))
            }
            Some(other) => {
                let shown = self.quote(&other);
                mistake(other.at, format!("{shown} is too much; only `ch` and a channel may follow"))
            }
        }
    }

    pub(crate) fn quote(&self, found: &Found) -> String {
        format!("`{}`", &self.text[found.at..found.end])
    }
}

fn parse_number(found: &Found, min: u16, max: u16) -> Result<u16, ()> {
    match found.token {
        Token::Word(word) => word.parse().ok().filter(|n| (min..=max).contains(n)).ok_or(()),
        _ => Err(()),
    }
}

/// The units, and how many digits they have after the point.
const UNITS: [(&str, u32); 4] = [("ns", 0), ("us", 3), ("ms", 6), ("s", 9)];

pub(crate) fn parse_time(found: &Found, now: Nanos) -> Parsed<Nanos> {
    let Token::Word(word) = found.token else {
        return mistake(found.at, "a line begins with a time, such as 120ms, 1.5s or +20ms");
    };
    let (relative, amount) = match word.strip_prefix('+') {
        Some(amount) => (true, amount),
        None => (false, word),
    };
    let Some(nanos) = parse_amount(amount) else {
        return mistake(
            found.at,
            format!("`{word}` is not a time; write a number with ns, us, ms or s, as 120ms or +1.5s"),
        );
    };
    match (relative, nanos.checked_add(now)) {
        (true, Some(then)) => Ok(then),
        (true, None) => mistake(found.at, "this is later than time can be counted"),
        (false, _) if nanos < now => {
            let before = Time(now);
            mistake(found.at, format!("`{word}` is before the line above, which is at {before}"))
        }
        (false, _) => Ok(nanos),
    }
}

/// A decimal number with a unit, exactly: no digit may be smaller than a nanosecond.
fn parse_amount(text: &str) -> Option<Nanos> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let &(_, digits) = UNITS.iter().find(|&&(name, _)| name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let fraction_digits = fraction.trim_end_matches('0');
    if !is_digits(whole) || !is_digits(fraction) || fraction_digits.len() > digits as usize {
        return None;
    }
    let scale = 10_u64.pow(digits);
    let below = match fraction_digits {
        "" => 0,
        some => some.parse::<u64>().ok()? * 10_u64.pow(digits - some.len() as u32),
    };
    whole.parse::<u64>().ok()?.checked_mul(scale)?.checked_add(below)
}

const MESSAGES: &str = "note-on, note-off, poly-aftertouch, cc, program, aftertouch, pitch-bend, \
    sysex, time-code, song-position, song-select, tune-request, clock, start, continue, stop, \
    active-sensing, reset, osc, gamepad-button, gamepad-stick, gamepad-trigger, key, artnet, variable, beat, transport";

/// What comes, to the end of the line.
pub(crate) fn parse_event(line: &mut Line) -> Parsed<Event> {
    let found = line.expect(&format!("a message, one of {MESSAGES}"))?;
    let Token::Word(word) = found.token else {
        return mistake(found.at, format!("a message goes here, one of {MESSAGES}"));
    };
    let message = match word {
        "note-on" => {
            let note = line.note()?;
            // 0 would be a note-off: MIDI has no press without velocity.
            let velocity = line.number("a velocity of a press (0 is a note-off)", 1, 127)? as u8;
            MidiMessage::NoteOn { note, velocity, channel: line.channel()? }
        }
        "note-off" => {
            let note = line.note()?;
            let before = line.at;
            let velocity = match line.next()? {
                Some(found) if !matches!(found.token, Token::Word(word) if word == "ch" || channel::number(word).is_some()) =>
                {
                    line.at = before;
                    line.seven_bit("a velocity")?
                }
                _ => {
                    line.at = before;
                    64
                }
            };
            MidiMessage::NoteOff { note, velocity, channel: line.channel()? }
        }
        "poly-aftertouch" => {
            let note = line.note()?;
            let pressure = line.seven_bit("a pressure")?;
            MidiMessage::PolyAftertouch { note, pressure, channel: line.channel()? }
        }
        "cc" => {
            let controller = line.named("a controller", 0..=127, |name| controller::number(name).map(u16::from))? as u8;
            let value = line.seven_bit("a value")?;
            MidiMessage::ControlChange { controller, value, channel: line.channel()? }
        }
        "program" => {
            let program = line.seven_bit("a program")?;
            MidiMessage::ProgramChange { program, channel: line.channel()? }
        }
        "aftertouch" => {
            let pressure = line.seven_bit("a pressure")?;
            MidiMessage::Aftertouch { pressure, channel: line.channel()? }
        }
        "pitch-bend" => {
            let value = line.number("a value", 0, 16_383)?;
            MidiMessage::PitchBend { value, channel: line.channel()? }
        }
        "sysex" => parse_sysex(line, found.end)?,
        "time-code" => MidiMessage::TimeCode(line.seven_bit("a quarter frame")?),
        "song-position" => MidiMessage::SongPosition(line.number("a position", 0, 16_383)?),
        "song-select" => MidiMessage::SongSelect(line.seven_bit("a song")?),
        "tune-request" => MidiMessage::TuneRequest,
        "clock" => MidiMessage::Clock,
        "start" => MidiMessage::Start,
        "continue" => MidiMessage::Continue,
        "stop" => MidiMessage::Stop,
        "active-sensing" => MidiMessage::ActiveSensing,
        "reset" => MidiMessage::Reset,
        "osc" => return parse_osc(line),
        "gamepad-button" => return parse_button(line).map(Event::Hid),
        "gamepad-stick" => {
            let stick = line.named("an axis", HidEvent::STICKS, |name| gamepad::stick(name).map(u16::from))?;
            let value = line.way("a way", -1.0)?;
            return Ok(HidEvent::Stick { stick, value }.into());
        }
        "gamepad-trigger" => {
            let trigger = line.named("a trigger", HidEvent::TRIGGERS, |name| gamepad::trigger(name).map(u16::from))?;
            let value = line.way("a way", 0.0)?;
            return Ok(HidEvent::Trigger { trigger, value }.into());
        }
        "key" => {
            let button = line.named("a key", HidEvent::KEYS, key::number)?;
            return Ok(HidEvent::Button { button, pressed: parse_down(line, "a key")? }.into());
        }
        "artnet" => return parse_artnet(line).map(Event::ArtNet),
        "variable" => return parse_variable(line).map(Event::Variable),
        "beat" | "transport" => return parse_musical(word, line).map(Event::Musical),
        other => {
            return mistake(found.at, format!("there is no message `{other}`; there are {MESSAGES}"));
        }
    };
    Ok(Event::Midi(message))
}

fn parse_button(line: &mut Line) -> Parsed<HidEvent> {
    let button = line.named("a button", HidEvent::BUTTONS, |name| gamepad::button(name).ok().map(u16::from))?;
    Ok(HidEvent::Button { button, pressed: parse_down(line, "a button")? })
}

/// Whether it goes down, which is true, or comes up.
fn parse_down(line: &mut Line, what: &str) -> Parsed<bool> {
    let found = line.expect("`down` or `up`")?;
    match found.token {
        Token::Word("down") => Ok(true),
        Token::Word("up") => Ok(false),
        _ => {
            let shown = line.quote(&found);
            mistake(found.at, format!("{shown} is not what {what} does; write down or up"))
        }
    }
}

fn parse_artnet(line: &mut Line) -> Parsed<ArtNetChange> {
    let universe = line.number("a universe", 0, ArtNetChange::LAST_UNIVERSE)?;
    let channel = line.number("a DMX channel", 1, ArtNetChange::LAST_CHANNEL)?;
    let value = line.number("a value", 0, 255)? as u8;
    let before = line.at;
    let previous = match line.next()? {
        None => 0,
        Some(_) => {
            line.at = before;
            line.number("the value before", 0, 255)? as u8
        }
    };
    Ok(ArtNetChange { universe, channel, value, previous })
}

/// The change itself, as the record has it; in a test what a mapping does changes variables.
fn parse_variable(line: &mut Line) -> Parsed<VariableChange> {
    let variable = line.number("a variable", 0, VariableChange::LAST)?;
    let found = line.expect("what it becomes, a number")?;
    let value = match found.token {
        Token::Word(word) => word.parse().ok().filter(|value: &f64| value.is_finite()),
        _ => None,
    };
    match value {
        Some(value) => Ok(VariableChange { variable, value, unit: value.clamp(0.0, 1.0) as f32 }),
        None => mistake(found.at, format!("{} is not what a variable becomes, a number", line.quote(&found))),
    }
}

/// A beat or what the transport does, as the record has it; in a test the clock says it.
fn parse_musical(word: &str, line: &mut Line) -> Parsed<MusicalEvent> {
    if word == "beat" {
        let beat = line.number("a beat", 1, 255)? as u8;
        let bar = line.number("a bar", 1, u16::MAX)?.into();
        return Ok(MusicalEvent::Beat { beat, bar, of: line.number("the beats of a bar", 1, 255)? as u8 });
    }
    let found = line.expect("start, continue, stop or lost")?;
    let does = |word| Transport::ALL.into_iter().find(|(known, _)| *known == word);
    let done = if let Token::Word(word) = found.token { does(word) } else { None };
    match done {
        Some((_, does)) => Ok(MusicalEvent::Transport(does)),
        None => mistake(found.at, "a transport does one of start, continue, stop, lost"),
    }
}

fn parse_sysex(line: &mut Line, start: usize) -> Parsed<MidiMessage> {
    let bytes = line.bytes()?;
    match bytes.as_slice() {
        [0xF0, data @ .., 0xF7] if data.iter().all(|&byte| byte < 0x80) => Ok(MidiMessage::SysEx(bytes.into())),
        _ => mistake(start, "a sysex is F0, then bytes from 00 to 7F, then F7"),
    }
}

/// An OSC address and its arguments, to the end of the line.
pub(crate) fn parse_osc(line: &mut Line) -> Parsed<Event> {
    let found = line.expect("an OSC address, such as /mixer/1/fader")?;
    // A pattern with brackets is no word.
    let address = match found.token {
        Token::Word(address) => address.to_owned(),
        Token::Text(address) => address,
        _ => return mistake(found.at, "an OSC address goes here, such as /mixer/1/fader"),
    };
    // What is sent may be a pattern as well; of two mistakes the one for an address says more.
    if let Err(error) = check_address(&address)
        && OscPattern::parse(&address).is_err()
    {
        return mistake(found.at, error.to_string());
    }
    let mut args = Vec::new();
    while let Some(found) = line.next()? {
        args.push(parse_arg(line, found, 0)?);
    }
    Ok(OscMessage::new(address, args).into())
}

/// Arrays may be in arrays; this deep, so that a script can not exhaust the stack.
const MAX_DEPTH: usize = 16;

fn parse_arg(line: &mut Line, found: Found, depth: usize) -> Parsed<OscArg> {
    match found.token {
        Token::Text(text) => Ok(OscArg::String(text)),
        Token::Char(c) => Ok(OscArg::Char(c)),
        Token::Word(word) => match parse_arg_word(word) {
            Some(arg) => Ok(arg),
            None => mistake(
                found.at,
                format!(
                    "`{word}` is not an OSC argument; write 1, 0.5, 1h, 0.5d, \"text\", 'c', true, \
                     false, nil, infinitum, blob:00ff, color:rrggbbaa, midi:00903c64, time:3.7 or [ ]"
                ),
            ),
        },
        Token::Close => mistake(found.at, "this ] was not opened"),
        Token::Open if depth == MAX_DEPTH => mistake(found.at, format!("arrays go no deeper than {MAX_DEPTH}")),
        Token::Open => {
            let mut args = Vec::new();
            loop {
                match line.next()? {
                    Some(Found { token: Token::Close, .. }) => return Ok(OscArg::Array(args)),
                    Some(inner) => args.push(parse_arg(line, inner, depth + 1)?),
                    None => return mistake(found.at, "this [ is not closed"),
                }
            }
        }
    }
}

fn parse_arg_word(word: &str) -> Option<OscArg> {
    let four = |digits: &str| <[u8; 4]>::from_hex(digits).ok();
    match word {
        "true" => return Some(OscArg::Bool(true)),
        "false" => return Some(OscArg::Bool(false)),
        "nil" => return Some(OscArg::Nil),
        "infinitum" => return Some(OscArg::Inf),
        _ => {}
    }
    if let Some((kind, text)) = word.split_once(':') {
        return match kind {
            "blob" => hex::decode(text).ok().map(OscArg::Blob),
            "color" => four(text).map(OscArg::Color),
            "midi" => four(text).map(OscArg::Midi),
            "time" => {
                let (seconds, fractional) = text.split_once('.')?;
                let (seconds, fractional) = (seconds.parse().ok()?, fractional.parse().ok()?);
                Some(OscArg::Time { seconds, fractional })
            }
            _ => None,
        };
    }
    if let Ok(value) = word.parse() {
        return Some(OscArg::Int(value));
    }
    if let Some(value) = word.strip_suffix('h') {
        return value.parse().ok().map(OscArg::Long);
    }
    if let Some(value) = word.strip_suffix('d') {
        return value.parse().ok().map(OscArg::Double);
    }
    // "inf" ends in an f that is no type tag.
    if let Ok(value) = word.parse() {
        // An integer that is too big for 32 bits is more likely a slip than meant as a float.
        let is_float = word.contains(|c: char| ".eEnN".contains(c));
        return is_float.then_some(OscArg::Float(value));
    }
    word.strip_suffix('f')?.parse().ok().map(OscArg::Float)
}

/// A time as it is read: in the largest unit that leaves it whole.
pub(crate) struct Time(pub(crate) Nanos);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |&&(_, digits): &&(&str, u32)| self.0.is_multiple_of(10_u64.pow(digits));
        // Nanoseconds always are whole.
        let &(unit, digits) = UNITS.iter().rev().find(whole).unwrap_or(&UNITS[0]);
        write!(f, "{}{unit}", self.0 / 10_u64.pow(digits))
    }
}

impl fmt::Display for TimelineEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", Time(self.at))?;
        write_name(f, &self.device)?;
        write!(f, " {}", self.event)
    }
}

#[cfg(test)]
mod tests;
