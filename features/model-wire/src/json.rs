//! JSON: strings read without copying them, and values that requests are made of.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use conductor_feature::Error;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde_json::Value;

/// A JSON string, borrowed from the text that it is read from unless it has escapes.
///
/// `Option<Cow<str>>` would copy each; this does not. Fields of this type need `#[serde(borrow)]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Str<'a>(pub Cow<'a, str>);

impl Deref for Str<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl<'de> Visitor<'de> for Text {
            type Value = Cow<'de, str>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }

            fn visit_string<E: de::Error>(self, text: String) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text))
            }
        }

        deserializer.deserialize_str(Text).map(Str)
    }
}

/// A string that is there and not empty.
pub fn some<'s>(text: &'s Option<Str<'_>>) -> Option<&'s str> {
    text.as_deref().filter(|text| !text.is_empty())
}

/// The `type` of an object, whatever else is in it. `None` if it has none.
pub fn kind(json: &str) -> Option<Str<'_>> {
    #[derive(serde::Deserialize)]
    struct Typed<'a> {
        #[serde(borrow, rename = "type")]
        kind: Str<'a>,
    }
    serde_json::from_str::<Typed<'_>>(json).ok().map(|it| it.kind)
}

/// The value of a JSON text that the asker wrote.
///
/// # Errors
/// `Invalid` if it is not JSON: `what` says which text.
pub fn parsed(what: &str, json: &str) -> Result<Value, Error> {
    serde_json::from_str(json).map_err(|error| Error::Invalid(format!("{what} is not JSON: {error}")))
}

/// A number for a request: 0.7 as `f64` directly would be 0.699999988079071.
pub fn number(value: f32) -> Value {
    value.to_string().parse::<f64>().unwrap_or_default().into()
}

/// The arguments of an earlier tool call as an object. Models make mistakes, and APIs that take an object refuse
/// anything else; so what is no object is put into one.
pub fn arguments(args: &str) -> Value {
    match serde_json::from_str(args) {
        Ok(Value::Object(object)) => Value::Object(object),
        _ if args.trim().is_empty() => Value::Object(serde_json::Map::new()),
        _ => serde_json::json!({ "invalid_arguments": args }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_without_escapes_is_borrowed() {
        #[derive(serde::Deserialize)]
        struct It<'a> {
            #[serde(borrow)]
            text: Option<Str<'a>>,
        }
        let borrowed = |json| matches!(serde_json::from_str::<It<'_>>(json).unwrap().text, Some(Str(Cow::Borrowed(_))));
        assert!(borrowed(r#"{"text":"plain"}"#) && !borrowed(r#"{"text":"a\nb"}"#) && !borrowed(r#"{"text":null}"#));
    }

    #[test]
    fn arguments_are_an_object_whatever_the_model_wrote() {
        assert_eq!(arguments(r#"{"a":1}"#).to_string(), r#"{"a":1}"#);
        assert_eq!(arguments(" ").to_string(), "{}");
        assert_eq!(arguments(r#"{"a":"#).to_string(), r#"{"invalid_arguments":"{\"a\":"}"#);
        assert_eq!(arguments("[1]").to_string(), r#"{"invalid_arguments":"[1]"}"#);
    }
}
