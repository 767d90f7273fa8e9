//! Variables: what they may hold, and the actions that change them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use conductor_quantity::NumberExpr;

/// Something that mappings set, ask and follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Variable {
    /// What it is called in conditions, triggers, actions and expressions: a small letter, then small letters, digits and
    /// `_`, up to 64 in all; no name of an event's number, such as `value`.
    #[schemars(length(max = 64), extend("x-names" = "variable", "format" = "variable-name"))]
    pub name: String,

    /// Whose value it is. Default: `global`.
    #[serde(default)]
    pub scope: VariableScope,

    /// Whether its values are kept when Conductor ends, for the next start. Default: false.
    #[serde(default)]
    pub keep: bool,

    /// What it may hold.
    #[serde(flatten)]
    pub kind: VariableKind,
}

/// Whose value a variable is. Default: `global`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VariableScope {
    /// There is one value for all.
    #[default]
    Global,
    /// Each device has its own value, up to 64 of them; further ones share one.
    Device,
    /// Each mode has its own value. It is changed and asked in the mappings of modes alone.
    Mode,
}

/// What a variable may hold, by `type`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum VariableKind {
    /// A number.
    #[schemars(extend("x-ascending" = ["min", "max"]))]
    Number {
        /// The lowest number; needs `max`. Default: no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<f64>,
        /// The highest number, not below `min`; needs `min`. Default: no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<f64>,
        /// What it is before it is set. Default: 0, or what is nearest to it within the limits.
        #[serde(default)]
        initial: f64,
    },
    /// On or off, `true` or `false`.
    Boolean {
        /// What it is before it is set. Default: false.
        #[serde(default)]
        initial: bool,
    },
    /// One of several texts. In an expression it is the position of that text, from 0.
    Text {
        /// The texts, 1 to 256.
        #[schemars(length(min = 1, max = 256), inner(length(min = 1, max = 64)))]
        values: Vec<String>,
        /// What it is before it is set. Default: the first of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initial: Option<String>,
    },
}

/// Sets a variable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetVariable {
    /// The name of a variable of this configuration.
    #[schemars(length(min = 1), extend("x-refers-to" = "variable"))]
    pub variable: String,

    /// What it becomes: a number, `true` or `false`, one of its texts, or an expression such as `"{value -> 0..1}"`. It
    /// is brought into the limits of the variable.
    pub value: VariableValue,
}

/// What a variable is set to, or compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum VariableValue {
    /// `true`
    Boolean(bool),
    /// `0.5`
    Number(f64),
    /// `"verse"`, `"{value} / 2"`
    Text(String),
}

/// Changes a variable to something else, and back: `false` and `true`, the lowest and the highest number, one text after
/// the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToggleVariable {
    /// The name of a variable of this configuration.
    #[schemars(length(min = 1), extend("x-refers-to" = "variable"))]
    pub variable: String,
}

/// Goes on to the next text of a variable, or to the next whole number within its limits; from the last to the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CycleVariable {
    /// The name of a variable of this configuration.
    #[schemars(length(min = 1), extend("x-refers-to" = "variable"))]
    pub variable: String,

    /// How many further, -256 to 256; below 0 it goes back. Default: 1.
    #[serde(default = "one")]
    #[schemars(range(min = -256, max = 256))]
    pub by: i16,
}

fn one() -> i16 {
    1
}

/// Adds to a variable, within its limits: a counter, or an endless encoder (`by = "{value}"`) that moves something with
/// a beginning and an end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddToVariable {
    /// The name of a variable of this configuration.
    #[schemars(length(min = 1), extend("x-refers-to" = "variable"))]
    pub variable: String,

    /// How much, -1000000 to 1000000: a number, or an expression such as `"{value} * 0.5"`. Default: 1.
    #[serde(default = "one_more")]
    #[schemars(range(min = -1_000_000, max = 1_000_000))]
    pub by: NumberExpr,

    /// Whether it goes on at the other limit. Default: false.
    #[serde(default)]
    pub wrap: bool,

    /// How many times as much it is, 1 to 100, when it is turned fast: all of that if no time lies between two
    /// changes, and 1 from 60 ms on. Default: 1.
    #[serde(default = "as_it_is")]
    #[schemars(range(min = 1, max = 100))]
    pub acceleration: f64,

    /// Where it stops first when it would pass: a knob that clicks in at 0. At most 16. Default: nowhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub detents: Vec<f64>,
}

fn one_more() -> NumberExpr {
    NumberExpr::Fixed(1)
}

fn as_it_is() -> f64 {
    1.0
}

/// Goes on to the next mode, or back to the one before, in the order of the file; from the last to the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepMode {}
