//! What goes out, and the one way in which it is written: `OSC 127.0.0.1:9000 /cue/2 0.5`, `MIDI synth 90 24 64`,
//! `key cmd+c`.
//!
//! | Write | for |
//! |---|---|
//! | `OSC HOST:PORT ADDRESS ARGUMENT…` | an OSC message, its arguments as in an event |
//! | `Art-Net HOST:PORT UNIVERSE CHANNEL=VALUE…` | a frame of a universe, with the channels that it changes there |
//! | `UDP HOST:PORT BYTE…` | another datagram |
//! | `MIDI OUTPUT BYTE…`, `MIDI OUTPUT MESSAGE` | a MIDI message: upper-case hexadecimal bytes, or as an event is written |
//! | `key KEYS`, `key down KEY`, `key up KEY` | keys that are struck together (`cmd+c`), pressed, let go of |
//! | `text "TEXT"` | text that is typed |
//! | `mouse BUTTON`, `mouse down BUTTON`, `mouse up BUTTON` | a click, and its halves |
//! | `mouse to X Y` | the pointer |
//! | `scroll CLICKS vertical`, `scroll CLICKS horizontal` | the wheel |
//! | `gamepad BUTTON`, `gamepad down BUTTON`, `gamepad up BUTTON` | a button of the virtual gamepad, and its halves |
//! | `gamepad to AXIS PLACE` | an axis of a stick of it, or a trigger |
//! | `program NAME ARGUMENT…` | a program that is started |
//! | `failed WORKER "REASON"` | an action that is not done |
//!
//! Names with spaces stand in double quotes.

use std::fmt;

use conductor_event::event::write_name;
use conductor_event::{ArtNetChange, Event, OscArg, OscMessage};
use conductor_midi_parser::MidiParser;
use conductor_names::gamepad;

use crate::named;
use crate::timeline::{Line, Parsed, Token, mistake, parse_event, parse_osc};

/// Something that goes out. [`Display`](fmt::Display) writes it as it is read.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// An OSC message.
    Osc {
        /// Where it goes: `HOST:PORT`.
        to: String,
        /// The message.
        message: OscMessage,
    },
    /// A frame of a DMX universe.
    ArtNet {
        /// Where it goes: `HOST:PORT`.
        to: String,
        /// The universe, 0 to 32767.
        universe: u16,
        /// The channels, 1 to 512, that it changes there, and to what.
        levels: Vec<(u16, u8)>,
    },
    /// Another datagram.
    Datagram {
        /// Where it goes: `HOST:PORT`.
        to: String,
        /// Its bytes.
        data: Vec<u8>,
    },
    /// A MIDI message.
    Midi {
        /// The output's name, as the configuration has it.
        output: String,
        /// The whole message.
        message: Vec<u8>,
    },
    /// Keys, struck together where there are several.
    Key(Stroke, String),
    /// A text that is typed.
    Text(String),
    /// A mouse button.
    Button(Stroke, String),
    /// The pointer moves to this pixel.
    Pointer(u16, u16),
    /// The pointer moves by this many pixels, right and down where positive.
    PointerBy(i32, i32),
    /// The pointer moves on at this speed, in pixels a second.
    PointerSpeed(i32, i32),
    /// The wheel turns by this many clicks.
    Scroll {
        /// How many, down or right where positive.
        clicks: i32,
        /// Whether it is the wheel for up and down.
        vertical: bool,
    },
    /// A button of the virtual gamepad, 128 to 144.
    GamepadButton(Stroke, u8),
    /// An axis of a stick of the virtual gamepad, or an analog trigger, 128 to 133, and where it goes.
    GamepadAxis(u8, i32),
    /// A program is started: its name, then its arguments.
    Program(Vec<String>),
    /// An action is not done.
    Failed {
        /// Whose it was to do.
        worker: String,
        /// Why it is not done.
        reason: String,
    },
}

/// What is done with a key or a button.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// Down and up.
    Strike,
    /// Down.
    Down,
    /// Up.
    Up,
}

/// By how much a floating-point number may differ from what is demanded: three digits after the point are enough.
const TOLERANCE: f64 = 0.0005;

const KINDS: &str = "OSC, Art-Net, UDP, MIDI, key, text, mouse, scroll, gamepad, program, failed";

impl Effect {
    /// Whether what went out is what is demanded here. A floating-point number of an OSC message may differ by 0.0005, so
    /// that `0.787` is met by 0.7874016.
    pub fn is_met_by(&self, sent: &Self) -> bool {
        match (self, sent) {
            (Self::Osc { to, message }, Self::Osc { to: sent_to, message: sent }) => {
                to == sent_to && message.address() == sent.address() && are_near(message.args(), sent.args())
            }
            (demanded, sent) => demanded == sent,
        }
    }

    /// What a person calls the bytes in it, as a comment: `# note-on 36 100`. `None` if the text says it.
    pub fn comment(&self) -> Option<String> {
        let Self::Midi { message, .. } = self else { return None };
        let mut events = Vec::new();
        MidiParser::new().push(message, &mut |message| events.push(Event::from(message).to_string()));
        let [event] = events.as_slice() else { return None };
        if event.starts_with("sysex") {
            return named::comment(event);
        }
        let names = named::comment(event).map(|names| names.replacen('#', ":", 1)).unwrap_or_default();
        Some(format!("# {event}{names}"))
    }

    /// Reads an effect, to the end of the line.
    pub(crate) fn parse(line: &mut Line<'_>) -> Parsed<Self> {
        let found = line.expect(&format!("what goes out, one of {KINDS}, or nothing"))?;
        let Token::Word(kind) = found.token else {
            return mistake(found.at, format!("what goes out begins with one of {KINDS}, or is nothing"));
        };
        let effect = match kind {
            "OSC" => {
                let to = line.name("where it goes, HOST:PORT")?;
                match parse_osc(line)? {
                    Event::Osc(message) => Self::Osc { to, message: (*message).clone() },
                    _ => return mistake(found.at, "this is no OSC message"),
                }
            }
            "Art-Net" => {
                let to = line.name("where it goes, HOST:PORT")?;
                let universe = line.number("a universe", 0, ArtNetChange::LAST_UNIVERSE)?;
                let mut levels = Vec::new();
                while let Some(found) = line.next()? {
                    match found.token {
                        Token::Word(word) if level(word).is_some() => levels.extend(level(word)),
                        _ => {
                            let shown = line.quote(&found);
                            return mistake(
                                found.at,
                                format!(
                                    "{shown} is no channel with its value, such as 1=255; channels are 1 to 512, values 0 to 255"
                                ),
                            );
                        }
                    }
                }
                Self::ArtNet { to, universe, levels }
            }
            "UDP" => {
                let to = line.name("where it goes, HOST:PORT")?;
                Self::Datagram { to, data: line.bytes()? }
            }
            "MIDI" => {
                let output = line.name("the name of an output")?;
                let message = match line.upper_case_bytes()? {
                    Some(bytes) => bytes,
                    None => {
                        let before = line.at();
                        match parse_event(line)? {
                            Event::Midi(message) => message.to_bytes().to_vec(),
                            _ => return mistake(before, "this is no MIDI message"),
                        }
                    }
                };
                Self::Midi { output, message }
            }
            "key" => {
                let (stroke, key) = stroke(line, "a key, or keys with + between them")?;
                Self::Key(stroke, key)
            }
            "text" => Self::Text(line.name("the text")?),
            "mouse" => {
                let before = line.at();
                match line.next()?.map(|found| found.token) {
                    Some(Token::Word("to")) => {
                        Self::Pointer(line.number("x", 0, u16::MAX)?, line.number("y", 0, u16::MAX)?)
                    }
                    Some(Token::Word("by")) => Self::PointerBy(signed(line, PIXELS)?, signed(line, PIXELS)?),
                    Some(Token::Word("speed")) => Self::PointerSpeed(signed(line, PIXELS)?, signed(line, PIXELS)?),
                    _ => {
                        line.back_to(before);
                        let (stroke, button) =
                            stroke(line, "a button of the mouse, `to X Y`, `by X Y` or `speed X Y`")?;
                        Self::Button(stroke, button)
                    }
                }
            }
            "scroll" => {
                let clicks = signed(line, "number of clicks")?;
                let found = line.expect("`vertical` or `horizontal`")?;
                match found.token {
                    Token::Word("vertical") => Self::Scroll { clicks, vertical: true },
                    Token::Word("horizontal") => Self::Scroll { clicks, vertical: false },
                    _ => return mistake(found.at, "a wheel turns `vertical` or `horizontal`"),
                }
            }
            "gamepad" => {
                let before = line.at();
                if let Some(Token::Word("to")) = line.next()?.map(|found| found.token) {
                    let at = line.at();
                    let name = line.name(AXIS)?;
                    let Some(axis) = gamepad::stick(&name).or_else(|| gamepad::trigger(&name)) else {
                        return mistake(at, format!("{name:?} is not {AXIS}"));
                    };
                    Self::GamepadAxis(axis, signed(line, "place")?)
                } else {
                    line.back_to(before);
                    let (stroke, name) = stroke(line, BUTTON)?;
                    let Ok(button) = gamepad::button(&name) else {
                        return mistake(before, format!("{name:?} is not {BUTTON}"));
                    };
                    Self::GamepadButton(stroke, button)
                }
            }
            "program" => {
                let mut words = vec![line.name("the name of a program")?];
                words.extend(line.names()?);
                Self::Program(words)
            }
            "failed" => Self::Failed { worker: line.name("whose it was to do")?, reason: line.name("the reason")? },
            other => return mistake(found.at, format!("there is no effect `{other}`; there are {KINDS}, and nothing")),
        };
        match line.next()? {
            Some(extra) => mistake(extra.at, "the line should end here"),
            None => Ok(effect),
        }
    }
}

/// What the numbers of a motion of the pointer are.
const PIXELS: &str = "number of pixels";

/// What is said of a gamepad.
const BUTTON: &str = "a button of a gamepad, such as south, or `to AXIS PLACE`";
const AXIS: &str = "an axis of a stick or a trigger, such as \"left x\"";

/// A whole number, which may be negative.
fn signed(line: &mut Line<'_>, what: &str) -> Parsed<i32> {
    let found = line.expect(&format!("a {what}, such as -3"))?;
    let number = match found.token {
        Token::Word(word) => word.parse().ok(),
        _ => None,
    };
    number.map_or_else(|| mistake(found.at, format!("{} is not a {what}, such as -3", line.quote(&found))), Ok)
}

/// `1=255`.
fn level(word: &str) -> Option<(u16, u8)> {
    let (channel, value) = word.split_once('=')?;
    let channel = channel.parse().ok().filter(|channel| (1..=ArtNetChange::LAST_CHANNEL).contains(channel))?;
    Some((channel, value.parse().ok()?))
}

fn stroke(line: &mut Line<'_>, what: &str) -> Parsed<(Stroke, String)> {
    let first = line.name(what)?;
    let before = line.at();
    let second = line.next()?.is_some();
    line.back_to(before);
    // `down` alone is the arrow.
    let stroke = match first.as_str() {
        "down" if second => Stroke::Down,
        "up" if second => Stroke::Up,
        _ => return Ok((Stroke::Strike, first)),
    };
    Ok((stroke, line.name(what)?))
}

fn are_near(demanded: &[OscArg], sent: &[OscArg]) -> bool {
    demanded.len() == sent.len() && demanded.iter().zip(sent).all(|(demanded, sent)| is_near(demanded, sent))
}

fn is_near(demanded: &OscArg, sent: &OscArg) -> bool {
    match (demanded, sent) {
        (OscArg::Float(demanded), OscArg::Float(sent)) => (f64::from(*demanded) - f64::from(*sent)).abs() <= TOLERANCE,
        (OscArg::Double(demanded), OscArg::Double(sent)) => (demanded - sent).abs() <= TOLERANCE,
        (OscArg::Array(demanded), OscArg::Array(sent)) => are_near(demanded, sent),
        (demanded, sent) => demanded == sent,
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let strike = |f: &mut fmt::Formatter<'_>, kind: &str, stroke: Stroke, what: &str| {
            let way = match stroke {
                Stroke::Strike => "",
                Stroke::Down => "down ",
                Stroke::Up => "up ",
            };
            write!(f, "{kind} {way}")?;
            write_name(f, what)
        };
        match self {
            Self::Osc { to, message } => {
                f.write_str("OSC ")?;
                write_name(f, to)?;
                f.write_str(" ")?;
                write_name(f, message.address())?;
                message.args().iter().try_for_each(|arg| write!(f, " {arg}"))
            }
            Self::ArtNet { to, universe, levels } => {
                f.write_str("Art-Net ")?;
                write_name(f, to)?;
                write!(f, " {universe}")?;
                levels.iter().try_for_each(|(channel, value)| write!(f, " {channel}={value}"))
            }
            Self::Datagram { to, data } => {
                f.write_str("UDP ")?;
                write_name(f, to)?;
                data.iter().try_for_each(|byte| write!(f, " {byte:02X}"))
            }
            Self::Midi { output, message } => {
                f.write_str("MIDI ")?;
                write_name(f, output)?;
                message.iter().try_for_each(|byte| write!(f, " {byte:02X}"))
            }
            Self::Key(stroke, keys) => strike(f, "key", *stroke, keys),
            Self::Text(text) => {
                f.write_str("text ")?;
                OscArg::String(text.clone()).fmt(f)
            }
            Self::Button(stroke, button) => strike(f, "mouse", *stroke, button),
            Self::Pointer(x, y) => write!(f, "mouse to {x} {y}"),
            Self::PointerBy(x, y) => write!(f, "mouse by {x} {y}"),
            Self::PointerSpeed(x, y) => write!(f, "mouse speed {x} {y}"),
            Self::Scroll { clicks, vertical } => {
                write!(f, "scroll {clicks} {}", if *vertical { "vertical" } else { "horizontal" })
            }
            Self::GamepadButton(stroke, button) => {
                strike(f, "gamepad", *stroke, gamepad::button_name(*button).unwrap_or_default())
            }
            Self::GamepadAxis(axis, place) => {
                f.write_str("gamepad to ")?;
                write_name(f, gamepad::axis_name(*axis).unwrap_or_default())?;
                write!(f, " {place}")
            }
            Self::Program(words) => {
                f.write_str("program")?;
                words.iter().try_for_each(|word| {
                    f.write_str(" ")?;
                    write_name(f, word)
                })
            }
            Self::Failed { worker, reason } => {
                f.write_str("failed ")?;
                write_name(f, worker)?;
                write!(f, " {}", OscArg::String(reason.clone()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Effect, String> {
        Effect::parse(&mut Line::new(text)).map_err(|mistake| mistake.message)
    }

    #[test]
    fn an_effect_is_read_as_it_is_written() {
        for text in [
            "OSC 127.0.0.1:9000 /cue/2 0.7874016 1 \"main\" true",
            "OSC [::1]:9000 /go",
            "Art-Net 10.0.0.9:6454 3 1=255 512=0",
            "Art-Net 10.0.0.9:6454 0",
            "UDP lights.local:9000 00 FF",
            "MIDI synth 90 24 64",
            "MIDI \"nano #2\" F0 7E F7",
            "key cmd+c",
            "key \"cmd+[\"",
            "key down",
            "key down shift",
            "key up down",
            "text \"hello\\n\"",
            "mouse left",
            "mouse down left",
            "mouse to 3 4",
            "mouse by 3 -4",
            "mouse speed -300 0",
            "scroll -3 vertical",
            "scroll 1 horizontal",
            "gamepad south",
            "gamepad down \"dpad up\"",
            "gamepad to \"left x\" -32767",
            "program say \"hello world\" -r 3 \"\"",
            "failed synth \"no port is bound to \\\"synth\\\"\"",
        ] {
            let text = text.replace("OSC [::1]:9000", "OSC \"[::1]:9000\"");
            let effect = read(&text).unwrap_or_else(|message| panic!("{text}: {message}"));
            assert_eq!(effect.to_string(), text);
            assert!(effect.is_met_by(&effect), "{text}");
        }
    }

    #[test]
    fn a_midi_message_may_be_written_as_an_event() {
        assert_eq!(read("MIDI synth note-on C2 100 ch10"), read("MIDI synth 99 24 64"));
        assert_eq!(read("MIDI synth cc 7 64"), read("MIDI synth B0 07 40"));
        assert_eq!(read("MIDI synth CC 07"), read("MIDI synth program 7 ch 12"));
    }

    #[test]
    fn bytes_have_a_comment() {
        let comment = |text| read(text).unwrap().comment();
        assert_eq!(comment("MIDI synth 99 24 64").as_deref(), Some("# note-on 36 100 ch 9: C2, ch10"));
        assert_eq!(comment("MIDI synth F0 7E F7"), None);
        assert_eq!(comment("key cmd+c"), None);
    }

    #[test]
    fn three_digits_of_a_number_are_enough() {
        let met = |demanded: &str, sent: &str| {
            let osc = |arg: &str| read(&format!("OSC a:1 /a {arg}")).unwrap();
            osc(demanded).is_met_by(&osc(sent))
        };
        for (demanded, sent) in [
            ("0.787", "0.7874016"),
            ("0.787d", "0.7874016d"),
            ("[0.787]", "[0.7874016]"),
            ("-0.787", "-0.7874016"),
            ("0.630", "0.62992126"),
            ("1.0", "1.0"),
        ] {
            assert!(met(demanded, sent), "{demanded} {sent}");
        }
        for (demanded, sent) in [
            ("0.788", "0.7874016"),
            ("0.79", "0.7874016"),
            ("0.5", "0.5039"),
            ("1", "1.0"),
            ("0.5", "0.5d"),
            ("1", "2"),
        ] {
            assert!(!met(demanded, sent), "{demanded} {sent}");
        }
    }

    #[test]
    fn a_mistake_says_what_may_stand_there() {
        for (text, start) in [
            ("", "missing here: what goes out, one of OSC"),
            ("osc a:1 /a", "there is no effect `osc`; there are OSC"),
            ("OSC a:1", "missing here: an OSC address"),
            ("Art-Net a:1 0 0=1", "`0=1` is no channel"),
            ("MIDI synth", "missing here: a message"),
            ("MIDI synth osc /a", "this is no MIDI message"),
            ("MIDI synth 90 1", "`1` is not a byte"),
            ("key a b", "the line should end here"),
            ("scroll 1 up", "a wheel turns"),
            ("mouse", "missing here: a button"),
        ] {
            let message = read(text).expect_err(text);
            assert!(message.starts_with(start), "{text}: {message}");
        }
    }
}
