//! The parameters under a mapping's `action`.

use serde::Deserialize;

/// The parameters of `OscSend`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Where to: one `host:port`, or several.
    pub target: Targets,
    /// The OSC address, with placeholders.
    pub address: String,
    /// The arguments; one float, the value scaled to 0-1, when left out.
    #[serde(default = "default_args")]
    pub args: Vec<ArgValue>,
}

/// An argument as a mapping writes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "an argument is a number, a boolean or text")]
pub enum ArgValue {
    /// `true`
    Bool(bool),
    /// `1`
    Whole(i64),
    /// `1.5`
    Real(f64),
    /// `"{unit}"`, `"on {n}"`
    Text(String),
}

/// One target or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Targets {
    /// `"127.0.0.1:9000"`
    One(String),
    /// `["127.0.0.1:9000", "127.0.0.1:9001"]`
    Several(Vec<String>),
}

impl Targets {
    /// Every target, in the order written.
    pub fn iter(&self) -> std::slice::Iter<'_, String> {
        match self {
            Self::One(target) => std::slice::from_ref(target).iter(),
            Self::Several(targets) => targets.iter(),
        }
    }
}

fn default_args() -> Vec<ArgValue> {
    vec![ArgValue::Text("{unit}".into())]
}

/// The JSON Schema of [`Params`], which the host shows to people and models.
pub const SCHEMA: &str = r#"{
  "type": "object",
  "additionalProperties": false,
  "required": ["target", "address"],
  "properties": {
    "target": {
      "description": "Where to send: host:port, or the name of a binding with an output, or a list of them. Each must be covered by a grant.",
      "examples": ["127.0.0.1:9000"],
      "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
    },
    "address": {
      "description": "The OSC address. It may have expressions in braces: {value} as it came (velocity, controller 0-127, pitch bend 0-16383, OSC number), {unit} the same scaled to 0.0-1.0, {note} {cc} {number} {channel} {ch} {name} of the event, {n} its position in the range of the trigger; {n + 1}, {value -> -60..10 dB, exponential}. Of an OSC message: {address}, {arg0} to {arg15}, and {match1} to {match8}, what the wildcards of the trigger's pattern matched.",
      "examples": ["/mixer/1/level"],
      "type": "string", "pattern": "^(/|\\{address\\})"
    },
    "args": {
      "description": "The values to send. Left out: how far the control is moved or how hard it is pressed, from 0.0 to 1.0. Numbers, booleans and text go as they are; text may hold expressions in braces. An expression that is all of the text is a number: an int32 if it is whole for every event, else a float, or of the type written behind a colon: i int32, h int64, f float, d double, s text. {value -> -60..10 dB} is scaled. Of an OSC message {arg0} is the argument with its own type (nil if there is none), {args} all of them, {match1} what the first wildcard of the trigger's pattern matched, as text.",
      "type": "array", "items": {"type": ["number", "boolean", "string"]}, "default": ["{unit}"], "examples": [[1, "on"]]
    }
  }
}"#;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn one_target_or_several_and_arguments_of_every_kind() {
        let text = r#"{"target": "a:1", "address": "/a", "args": [true, 1, 1.5, "{n}"]}"#;
        let params: Params = serde_json::from_str(text).unwrap();
        assert_eq!(params.target.iter().collect::<Vec<_>>(), ["a:1"]);
        let args = [ArgValue::Bool(true), ArgValue::Whole(1), ArgValue::Real(1.5), ArgValue::Text("{n}".into())];
        assert_eq!(params.args, args);
        let several: Params = serde_json::from_str(r#"{"target": ["a:1", "b:2"], "address": "/a"}"#).unwrap();
        assert_eq!(several.target.iter().count(), 2);
        assert_eq!(several.args, [ArgValue::Text("{unit}".into())]);
    }

    #[test]
    fn the_schema_gives_an_example_of_each_parameter() {
        let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
        let example = |name: &str| schema["properties"][name]["examples"][0].clone();
        let written = serde_json::json!({
            "target": example("target"), "address": example("address"), "args": example("args"),
        });
        let params: Params = serde_json::from_value(written).unwrap();
        assert_eq!(params.target.iter().collect::<Vec<_>>(), ["127.0.0.1:9000"]);
        assert_eq!(params.args, [ArgValue::Whole(1), ArgValue::Text("on".into())]);
    }

    #[test]
    fn mistakes_say_what_is_allowed() {
        let error = |text| serde_json::from_str::<Params>(text).unwrap_err().to_string();
        let wrong = error(r#"{"target": "a:1", "address": "/a", "args": [{"x": 1}]}"#);
        assert!(wrong.contains("an argument is a number, a boolean or text"), "{wrong}");
        assert!(error(r#"{"target": "a:1", "address": "/a", "adress": 1}"#).contains("unknown field `adress`"));
    }
}
