//! What an event gives to an expression: its numbers, their names, and the ranges that they come from.

use conductor_number::Range;

use crate::scale::From;
use crate::{Expression, Slots};

/// The names of an event's numbers, as error messages list them.
pub const EVENT_NAMES: [&str; 10] = ["value", "unit", "n", "note", "cc", "number", "channel", "ch", "arg0", "match1"];

/// How many arguments of an OSC message have a name: `arg0` to `arg15`.
pub const ARGS: u16 = 16;
/// How many wildcards of an OSC address pattern have a name: `match1` to `match8`.
pub const MATCHES: u16 = 8;

/// The numbers of an event, all 0 by default.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Inputs {
    /// `value`: as it came: a velocity, a controller's value, a pressure 0 to 127, a bend 0 to 16383, an OSC number.
    pub value: f64,
    /// `unit`: the same scaled to 0 to 1.
    pub unit: f64,
    /// `n`: the position in the trigger's range, from 0.
    pub position: f64,
    /// `note`, `cc`, `number`: the number of the note, controller, button or DMX channel.
    pub number: f64,
    /// `channel`: the MIDI channel, 0 to 15. `ch` is the same counted from 1.
    pub channel: f64,
}

const VALUE: u16 = 0;
const UNIT: u16 = 1;
const POSITION: u16 = 2;
const NUMBER: u16 = 3;
const CHANNEL: u16 = 4;
const COUNTED_CHANNEL: u16 = 5;
/// Where the slots of arguments begin, and those of wildcards behind them.
const FIRST_ARG: u16 = 8;
const FIRST_MATCH: u16 = FIRST_ARG + ARGS;

/// A number that an OSC message has, and other events do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OscNumber {
    /// The argument with this position, from 0.
    Arg(usize),
    /// What the wildcard with this position, from 0, has matched.
    Match(usize),
}

impl OscNumber {
    /// What is in a slot; `None` if the slot is none of these.
    pub fn in_slot(slot: u16) -> Option<Self> {
        match slot {
            FIRST_ARG..FIRST_MATCH => Some(Self::Arg(usize::from(slot - FIRST_ARG))),
            FIRST_MATCH..Expression::FIRST_VARIABLE => Some(Self::Match(usize::from(slot - FIRST_MATCH))),
            _ => None,
        }
    }

    /// What a name stands for: `arg0` to `arg15`, `match1` to `match8`; `None` for any other name.
    pub fn of_name(name: &str) -> Option<Self> {
        let counted = |digits: &str| {
            let canonical = digits == "0" || !digits.starts_with('0');
            digits.parse::<u16>().ok().filter(|_| canonical && !digits.starts_with('+'))
        };
        if let Some(arg) = name.strip_prefix("arg").and_then(counted) {
            return (arg < ARGS).then_some(Self::Arg(usize::from(arg)));
        }
        let wildcard = name.strip_prefix("match").and_then(counted)?;
        (1..=MATCHES).contains(&wildcard).then(|| Self::Match(usize::from(wildcard - 1)))
    }
}

impl Slots for Inputs {
    fn slot(&self, slot: u16) -> f64 {
        match slot {
            VALUE => self.value,
            UNIT => self.unit,
            POSITION => self.position,
            NUMBER => self.number,
            CHANNEL => self.channel,
            COUNTED_CHANNEL => self.channel + 1.0,
            _ => 0.0,
        }
    }
}

/// The slot of a name, and what it is scaled from if the text does not say; `None` if the text has to say it.
pub(crate) fn find(name: &str) -> Option<(u16, Option<From>)> {
    let range = |from, to| Some(From::Range(Range { from, to }));
    Some(match name {
        // How far an event is along its range, the event itself knows.
        "value" => (VALUE, Some(From::Slot(UNIT))),
        "unit" => (UNIT, range(0.0, 1.0)),
        "n" => (POSITION, None),
        "note" | "cc" | "number" => (NUMBER, range(0.0, 127.0)),
        "channel" => (CHANNEL, range(0.0, 15.0)),
        "ch" => (COUNTED_CHANNEL, range(1.0, 16.0)),
        _ => match OscNumber::of_name(name)? {
            // Both are within their limits.
            OscNumber::Arg(at) => (FIRST_ARG + u16::try_from(at).ok()?, None),
            OscNumber::Match(at) => (FIRST_MATCH + u16::try_from(at).ok()?, None),
        },
    })
}

/// Whether a name is one of an event's numbers: one of [`EVENT_NAMES`], or one that is counted as `arg0` and `match1`
/// are.
pub fn is_event_name(name: &str) -> bool {
    find(name).is_some()
}

/// Whether what is in a slot is always a whole number.
pub(crate) fn is_whole(slot: u16, of_whole_values: bool) -> bool {
    matches!(slot, POSITION | NUMBER | CHANNEL | COUNTED_CHANNEL) || slot == VALUE && of_whole_values
}
