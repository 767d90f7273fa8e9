//! The fields of a profile's file: the one list that files are checked against, and that the JSON schema is made of.

use crate::profile::{CONTROL_KINDS, ENCODINGS, KINDS, LIGHT_MESSAGES};

/// A field of a table.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) required: bool,
    pub(crate) shape: Shape,
    pub(crate) about: &'static str,
}

/// What a field holds.
pub(crate) enum Shape {
    /// A name: 1 to 64 characters.
    Name,
    /// A sentence or two: up to 400 characters.
    Text,
    /// Small letters, digits and hyphens, up to 64.
    Id,
    /// One of these words.
    Word(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A number.
    Number(i64, i64),
    /// A number, or a list such as `"36-43, 48"`.
    Numbers(u16, u16),
    /// Two numbers, the second not below the first.
    Bounds(u16, u16),
    /// A row and a column.
    Place,
    /// Bytes in hex, with places such as `{value}`.
    Hex,
    /// `1235:0103`
    Usb,
    /// An OSC address, or a list of them; `{n}` stands for a number from 1 on.
    Addresses,
    /// Names, each with a number from 0 to 127.
    Values,
    /// A list of these.
    List(&'static Shape),
    /// A table.
    Table(&'static [Field]),
    /// A list of tables.
    Tables(&'static [Field]),
}

const fn field(name: &'static str, required: bool, shape: Shape, about: &'static str) -> Field {
    Field { name, required, shape, about }
}

const CONFIDENCE: &[&str] = &["low", "medium", "high"];

const NAMES: Shape = Shape::List(&Shape::Name);

/// The fields of a file.
pub(crate) const FILE: &[Field] = &[
    field("schema", true, Shape::Number(1, 1), "The form of the file: 1."),
    field("id", true, Shape::Id, "Maker and name; the file is called so, with `.toml`."),
    field("vendor", true, Shape::Name, "Who makes the device."),
    field("name", true, Shape::Name, "What it is called."),
    field("kinds", true, Shape::List(&Shape::Word(KINDS)), "What kinds of device it is."),
    field("words", false, NAMES, "Further words that people look for it with."),
    field("about", false, Shape::Text, "What a person should know."),
    field("sources", true, Shape::Tables(SOURCE), "The documents that the facts are from."),
    field("identity", true, Shape::Table(IDENTITY), "How the device is recognised."),
    field("layout", false, Shape::Table(LAYOUT), "The places for a drawing."),
    field(
        "modes",
        false,
        Shape::Tables(MODE),
        "States in which the controls send other messages; the first is the usual one.",
    ),
    field("lights", false, Shape::Tables(LIGHT), "How lights are set."),
    field("controls", true, Shape::Tables(CONTROL), "The controls, each entry one or a series of them."),
];

const SOURCE: &[Field] = &[
    field("id", true, Shape::Id, "What the facts call it."),
    field("title", true, Shape::Text, "Its title."),
    field("publisher", true, Shape::Name, "Who published it."),
    field("compared", false, Shape::Text, "What the facts were compared with, and what was found."),
];

const IDENTITY: &[Field] = &[
    field("usb", false, Shape::List(&Shape::Usb), "USB ids: vendor and product in hex, such as `1235:0103`."),
    field(
        "ports",
        false,
        Shape::Table(PORTS),
        "How the port is called that the controls send on; `*` stands for any text.",
    ),
    field("sysex", false, Shape::Table(SYSEX), "The answer to a SysEx identity request."),
    field("source", true, Shape::Id, "The document that says so."),
    field("confidence", true, Shape::Word(CONFIDENCE), "How certain it is."),
];

const PORTS: &[Field] = &[
    field("any", false, NAMES, "On every system."),
    field("linux", false, NAMES, "On Linux."),
    field("macos", false, NAMES, "On macOS."),
    field("windows", false, NAMES, "On Windows."),
];

const SYSEX: &[Field] = &[
    field("manufacturer", true, Shape::Hex, "The maker's id: one byte, or three of which the first is 00."),
    field("family", true, Shape::Number(0, 16_383), "The family code."),
    field("model", false, Shape::Number(0, 16_383), "The family member code."),
];

const LAYOUT: &[Field] = &[
    field("rows", true, Shape::Number(1, 64), "How many rows."),
    field("columns", true, Shape::Number(1, 128), "How many columns."),
];

const MODE: &[Field] = &[
    field("name", true, Shape::Name, "Its name, as the maker has it."),
    field("how", false, Shape::Text, "How a person gets there."),
    field("enter", false, Shape::Hex, "The SysEx message that brings the device there."),
    field("source", true, Shape::Id, "The document that says so."),
    field("confidence", true, Shape::Word(CONFIDENCE), "How certain it is."),
];

const LIGHT: &[Field] = &[
    field("id", true, Shape::Id, "What controls call it."),
    field("message", true, Shape::Word(LIGHT_MESSAGES), "What sets it, with the control's own number or address."),
    field("channel", false, Shape::Number(0, 15), "The channel, where it is not the control's own."),
    field(
        "sysex",
        false,
        Shape::Hex,
        "The message, with `{number}`, and `{value}` or `{red}`, `{green}` and `{blue}`.",
    ),
    field(
        "values",
        false,
        Shape::Values,
        "What values look like, such as `off = 0`; the first that is not `off` is a good one to begin with.",
    ),
    field("about", false, Shape::Text, "More about it."),
    field("source", true, Shape::Id, "The document that says so."),
    field("confidence", true, Shape::Word(CONFIDENCE), "How certain it is."),
];

/// The fields that say which message a control sends; exactly one of them is there.
pub(crate) const MESSAGES: [&str; 11] = [
    "note",
    "cc",
    "nrpn",
    "program",
    "poly_aftertouch",
    "aftertouch",
    "pitch_bend",
    "osc",
    "button",
    "stick",
    "trigger",
];

const CONTROL: &[Field] = &[
    field("name", false, Shape::Name, "Its name; those of a series are numbered: `pad 1`, `pad 2`."),
    field("names", false, NAMES, "In place of `name`: a name for each of a series."),
    field("first", false, Shape::Number(0, 1000), "The number of the first of a series. Default: 1."),
    field("kind", true, Shape::Word(CONTROL_KINDS), "What it is to the hand."),
    field("channel", false, Shape::Numbers(0, 15), "The MIDI channel or channels, 0 to 15. Default: 0."),
    field("note", false, Shape::Numbers(0, 127), "It sends this note."),
    field("cc", false, Shape::Numbers(0, 127), "It sends this control change."),
    field("nrpn", false, Shape::Numbers(0, 16_383), "It sends this non-registered parameter."),
    field("program", false, Shape::Numbers(0, 127), "It sends this program change, counted from 0."),
    field("poly_aftertouch", false, Shape::Numbers(0, 127), "It sends the pressure on this note."),
    field("aftertouch", false, Shape::Flag, "It sends the pressure on a channel."),
    field("pitch_bend", false, Shape::Flag, "It sends pitch bend."),
    field("osc", false, Shape::Addresses, "It sends to this OSC address; `{n}` stands for the number in the series."),
    field("count", false, Shape::Number(1, 512), "How many there are, where `osc` has `{n}`."),
    field("button", false, Shape::Numbers(128, 144), "It is this button of a gamepad, as in a mapping."),
    field("stick", false, Shape::Numbers(128, 131), "It is this axis of a gamepad, as in a mapping."),
    field("trigger", false, Shape::Numbers(132, 133), "It is this trigger of a gamepad, as in a mapping."),
    field(
        "range",
        false,
        Shape::Bounds(0, 16_383),
        "The lowest and the highest value. Default: all that the message can carry.",
    ),
    field(
        "fourteen_bit",
        false,
        Shape::Flag,
        "Whether a further control change, its number plus 32, has seven bits more.",
    ),
    field(
        "encoding",
        false,
        Shape::Word(ENCODINGS),
        "How it says how far it was turned, where it does not say where it stands.",
    ),
    field("at", false, Shape::Place, "Row and column of the first, from 1, the top left."),
    field("across", false, Shape::Number(1, 128), "How many of a series stand in a row. Default: all."),
    field("step", false, Shape::Number(1, 16), "How many columns from one to the next. Default: 1."),
    field("modes", false, NAMES, "The modes in which it sends this. Default: all."),
    field("lights", false, Shape::Id, "How its light is set."),
    field("source", true, Shape::Id, "The document that says so."),
    field("confidence", true, Shape::Word(CONFIDENCE), "How certain it is."),
];
