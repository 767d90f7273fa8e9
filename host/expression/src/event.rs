//! What an event gives to an expression: its numbers, their names, and the ranges that they come from.

use conductor_number::Range;

use crate::Slots;
use crate::scale::From;

/// The names of an event's numbers, as error messages list them.
pub const EVENT_NAMES: [&str; 8] = ["value", "unit", "n", "note", "cc", "number", "channel", "ch"];

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

/// The slot of a name, and what it is scaled from where the text does not say; `None` where that has to be said.
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
        _ => return None,
    })
}

/// Whether what is in a slot is always a whole number.
pub(crate) fn is_whole(slot: u16, of_whole_values: bool) -> bool {
    matches!(slot, POSITION | NUMBER | CHANNEL | COUNTED_CHANNEL) || slot == VALUE && of_whole_values
}
