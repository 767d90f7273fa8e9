//! JSON: strings read without copying them, and values that requests are made of.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, Visitor};
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

/// A number of tokens, however it is written: `12`, `12.0`, `"12"`. What is none is `None`: no answer is worth less because
/// its count can't be read. For `#[serde(deserialize_with)]`.
///
/// # Errors
/// Where the text is no JSON.
pub fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    struct Count;

    impl<'de> Visitor<'de> for Count {
        type Value = Option<u32>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number")
        }

        fn visit_u64<E: de::Error>(self, count: u64) -> Result<Self::Value, E> {
            Ok(Some(u32::try_from(count).unwrap_or(u32::MAX)))
        }

        fn visit_i64<E: de::Error>(self, count: i64) -> Result<Self::Value, E> {
            Ok(u64::try_from(count).ok().map(|count| u32::try_from(count).unwrap_or(u32::MAX)))
        }

        fn visit_f64<E: de::Error>(self, count: f64) -> Result<Self::Value, E> {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it ends at the largest number"
            )]
            Ok((count >= 0.0).then(|| count.round() as u32))
        }

        fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            Ok(text.trim().parse().ok())
        }

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_seq<A: de::SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
            while all.next_element::<IgnoredAny>()?.is_some() {}
            Ok(None)
        }

        fn visit_map<A: de::MapAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
            while all.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(None)
        }
    }

    deserializer.deserialize_any(Count)
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
    fn tokens_are_counted_however_they_are_written() {
        #[derive(serde::Deserialize)]
        struct It {
            #[serde(default, deserialize_with = "count")]
            tokens: Option<u32>,
        }
        let read = |json: &str| serde_json::from_str::<It>(json).unwrap().tokens;
        for (json, tokens) in [
            (r#"{"tokens":12}"#, Some(12)),
            (r#"{"tokens":12.0}"#, Some(12)),
            (r#"{"tokens":1.2e1}"#, Some(12)),
            (r#"{"tokens":"12"}"#, Some(12)),
            (r#"{"tokens":99999999999999999999}"#, Some(u32::MAX)),
            (r#"{"tokens":5000000000}"#, Some(u32::MAX)),
            (r#"{"tokens":-1}"#, None),
            (r#"{"tokens":-1.5}"#, None),
            (r#"{"tokens":null}"#, None),
            (r#"{"tokens":"many"}"#, None),
            (r#"{"tokens":true}"#, None),
            (r#"{"tokens":[1,{"a":2}]}"#, None),
            (r#"{"tokens":{"a":[1]}}"#, None),
            ("{}", None),
        ] {
            assert_eq!(read(json), tokens, "{json}");
        }
        assert!(serde_json::from_str::<It>(r#"{"tokens":[1"#).is_err());
    }

    #[test]
    fn arguments_are_an_object_whatever_the_model_wrote() {
        assert_eq!(arguments(r#"{"a":1}"#).to_string(), r#"{"a":1}"#);
        assert_eq!(arguments(" ").to_string(), "{}");
        assert_eq!(arguments(r#"{"a":"#).to_string(), r#"{"invalid_arguments":"{\"a\":"}"#);
        assert_eq!(arguments("[1]").to_string(), r#"{"invalid_arguments":"[1]"}"#);
    }
}
