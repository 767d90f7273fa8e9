//! Conditions: what else must be so for a mapping to fire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::variable::VariableValue;
use conductor_quantity::{Channel, Controller, DataBounds, NoteRange};
use conductor_text_formats::TimeOfDay;

/// What else must be so for a mapping to fire, by `type`. What is not known, such as which application is
/// in front on a desktop that does not report it, does not hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
#[schemars(transform = super::spelling::also_in_snake_case)]
pub enum Condition {
    /// It always holds.
    Always {},

    /// It never holds: the mapping is switched off.
    Never {},

    /// A mode is the active one.
    ModeIs {
        /// The name of a mode of this configuration.
        #[schemars(length(min = 1), extend("x-refers-to" = "mode"))]
        mode: String,
    },

    /// It is this part of the day, by the local clock.
    TimeRange {
        /// When it begins: `"22:00"`, or `"22:00:30"`.
        start: TimeOfDay,
        /// When it has ended: `"06:00"`. Not later than `start`: on the next day.
        end: TimeOfDay,
    },

    /// It is one of these days of the week, by the local calendar.
    DayOfWeek {
        /// The days.
        #[schemars(length(min = 1))]
        days: Vec<Day>,
    },

    /// An application runs.
    AppRunning {
        /// The application's name, in upper or lower case.
        #[schemars(length(min = 1))]
        app: String,
    },

    /// An application is in front.
    AppFrontmost {
        /// The application's name, in upper or lower case.
        #[schemars(length(min = 1))]
        app: String,
    },

    /// A note is down.
    NoteHeld {
        /// The note, or notes of which one is enough, 0 to 127.
        note: NoteRange,
        /// Only on this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
        /// Only of this device: the alias of a binding, or the name of a port. Default: any device.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1), extend("x-mentions" = "binding"))]
        device: Option<String>,
    },

    /// A controller stands between two values. One that has not moved yet does not.
    CcValueInRange {
        /// The controller, 0 to 127.
        cc: Controller,
        /// The values, each 0 to 127.
        value_range: DataBounds,
        /// Only on this MIDI channel, 0 to 15 or `"ch1"` to `"ch16"`. Default: any channel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        channel: Option<Channel>,
        /// Only of this device: the alias of a binding, or the name of a port. Default: any device.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1), extend("x-mentions" = "binding"))]
        device: Option<String>,
    },

    /// A variable is something. Without `value`, `min` and `max`: anything but `false`, 0 and its first text.
    #[schemars(extend("x-ascending" = ["min", "max"]))]
    VariableIs {
        /// The name of a variable of this configuration.
        #[schemars(length(min = 1), extend("x-refers-to" = "variable"))]
        variable: String,
        /// What it is: a number, `true` or `false`, or one of its texts. Default: anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<VariableValue>,
        /// The lowest number that it may be. Default: any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<f64>,
        /// The highest number that it may be, not below `min`. Default: any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<f64>,
        /// Of which device, where each device has its own value. Default: the device of the trigger.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1), extend("x-mentions" = "binding"))]
        device: Option<String>,
    },

    /// An expression of variables is not 0: `"gain > 0.5 and not mute"`.
    Expression {
        /// The expression. It has no event, only variables; of those with a value for each device that of the trigger's.
        #[schemars(length(min = 1), extend("format" = "number-expression"))]
        holds: String,
    },

    /// Each of several conditions holds.
    And {
        /// The conditions.
        conditions: Vec<Condition>,
    },

    /// One of several conditions holds.
    Or {
        /// The conditions.
        conditions: Vec<Condition>,
    },

    /// A condition does not hold.
    Not {
        /// The condition.
        condition: Box<Condition>,
    },
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Day {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}
