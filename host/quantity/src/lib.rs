//! Numbers as a configuration writes them: one number or a range, by digits or by name, a pair of bounds, an expression.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod malformed;
mod named;
mod number;

pub use malformed::Malformed;
pub use named::{
    AnalogTrigger, BUTTON, Button, CHANNEL, CONTROLLER, Channel, Controller, KEY, KeyNumber, NOTE, Note, PLAIN, STICK,
    Single, Stick, TRIGGER,
};
pub use number::{
    Bounds, ButtonRange, ChannelExpr, CoarseRange, ControllerExpr, ControllerRange, DATA_MAX, DataBounds, DmxBounds,
    DmxRange, Inputs, KeyRange, NoteExpr, NoteRange, NumberExpr, NumberRange, Span, StickRange, TriggerRange, WIDE_MAX,
    WideBounds,
};
