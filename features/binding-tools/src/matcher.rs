//! Port matchers, as the configuration has them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

// What kind of matcher; the most specific first.
#[expect(missing_docs, reason = "the configuration's schema describes them")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum MatcherKind {
    CoreMidiUniqueId,
    SysExIdentity,
    UsbIdentifier,
    UsbPath,
    UsbTopology,
    ExactName,
    PlatformId,
    NameContains,
    NameRegex,
}

/// A name, or a number of `core_midi_unique_id`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Text {
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
}

impl JsonSchema for Text {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["string", "integer"] })
    }
}

/// What tells a port: a kind, and the keys that it has.
#[expect(missing_docs, reason = "the configuration's schema describes them")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Matcher {
    #[serde(rename = "type")]
    pub kind: MatcherKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manufacturer: Option<[u8; 3]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor_id: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product_id: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<u8>,
}

impl Matcher {
    /// The whole name of a port.
    pub fn exact_name(name: &str) -> Self {
        Self {
            kind: MatcherKind::ExactName,
            value: Some(Text::Text(name.to_owned())),
            manufacturer: None,
            family: None,
            model: None,
            vendor_id: None,
            product_id: None,
            serial: None,
            bus: None,
            address: None,
        }
    }

    /// As the configuration has it, in a line.
    pub fn toml(&self) -> String {
        in_a_line(&serde_json::to_value(self).unwrap_or_default())
    }
}

/// A value in TOML, in a line.
fn in_a_line(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            let entries: Vec<String> =
                object.iter().map(|(key, value)| format!("{key} = {}", in_a_line(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(in_a_line).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matcher_is_written_as_the_configuration_has_it() {
        assert_eq!(Matcher::exact_name("Pads \"A\"").toml(), r#"{ type = "exact_name", value = "Pads \"A\"" }"#);
        let read: Matcher =
            serde_json::from_str(r#"{"type":"usb_identifier","vendor_id":6092,"product_id":4}"#).expect("a matcher");
        assert_eq!(read.toml(), r#"{ product_id = 4, type = "usb_identifier", vendor_id = 6092 }"#);
    }
}
