//! Tool calls that a model without tools writes into its text, read as the text streams.
//!
//! The form is that of [`fallback`](crate::fallback). A text that may yet become the beginning of a call is held back; a
//! call is held back until it is whole.

use serde::Deserialize;
use serde_json::Value;

use crate::fallback::{CALL, CALL_END};

/// Bytes of one call.
const MAX_CALL: usize = 128 * 1024;

/// What was found in a text.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// Text that is not part of a call.
    Text(String),
    /// A call: the tool and its arguments, as JSON.
    Call(String, String),
    /// Text that looks like a call but is not one, as it was written.
    Broken(String),
}

/// A text that is being read.
#[derive(Debug, Default)]
pub struct CallsInText {
    /// What is held back.
    held: String,
    within: bool,
}

#[derive(Debug, Deserialize)]
struct Written {
    name: String,
    #[serde(default, alias = "args", alias = "parameters")]
    arguments: Option<Value>,
}

impl CallsInText {
    /// Takes more of the text.
    pub fn push(&mut self, text: &str) -> Vec<Found> {
        self.held.push_str(text);
        let mut found = Vec::new();
        loop {
            if self.within {
                let Some(end) = self.held.find(CALL_END) else {
                    if self.held.len() > MAX_CALL {
                        self.within = false;
                        found.push(Found::Broken(format!("{CALL}{}", std::mem::take(&mut self.held))));
                    }
                    return found;
                };
                let rest = self.held.split_off(end + CALL_END.len());
                let written = std::mem::replace(&mut self.held, rest);
                self.within = false;
                found.push(call(&written[..end]));
            } else {
                let (text, begins) = match self.held.find(CALL) {
                    Some(at) => (at, true),
                    None => (self.held.len() - half_begun(&self.held), false),
                };
                let rest = self.held.split_off(if begins { text + CALL.len() } else { text });
                let mut said = std::mem::replace(&mut self.held, rest);
                said.truncate(text);
                if !said.is_empty() {
                    found.push(Found::Text(said));
                }
                if !begins {
                    return found;
                }
                self.within = true;
            }
        }
    }

    /// The text is at its end. A call without its end mark counts if it is whole: models stop there.
    pub fn end(&mut self) -> Option<Found> {
        let held = std::mem::take(&mut self.held);
        if std::mem::take(&mut self.within) {
            return Some(call(&held));
        }
        (!held.is_empty()).then_some(Found::Text(held))
    }
}

/// Bytes at the end of `text` that may be the beginning of a call.
fn half_begun(text: &str) -> usize {
    (1..CALL.len()).rev().find(|size| text.ends_with(&CALL[..*size])).unwrap_or(0)
}

fn call(written: &str) -> Found {
    let inner = written.trim().trim_start_matches("```json").trim_matches('`').trim();
    match serde_json::from_str::<Written>(inner) {
        Ok(Written { name, arguments }) if !name.is_empty() => {
            let arguments = match arguments {
                // Some models write JSON within JSON.
                Some(Value::String(text)) => text,
                Some(Value::Null) | None => "{}".to_owned(),
                Some(value) => value.to_string(),
            };
            Found::Call(name, arguments)
        }
        _ => Found::Broken(format!("{CALL}{written}{CALL_END}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&str]) -> Vec<Found> {
        let mut reader = CallsInText::default();
        let mut all: Vec<Found> = Vec::new();
        let found: Vec<Found> = pieces.iter().flat_map(|piece| reader.push(piece)).collect();
        for found in found.into_iter().chain(reader.end()) {
            match (all.last_mut(), found) {
                (Some(Found::Text(before)), Found::Text(more)) => before.push_str(&more),
                (_, found) => all.push(found),
            }
        }
        all
    }

    #[test]
    fn calls_are_found_wherever_the_text_is_cut() {
        let text = "I <look>: <tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": 3}}\n</tool_call> and \
                    <tool_call>{\"name\":\"hear\"}</tool_call>";
        let expected = [
            Found::Text("I <look>: ".into()),
            Found::Call("look".into(), "{\"at\":3}".into()),
            Found::Text(" and ".into()),
            Found::Call("hear".into(), "{}".into()),
        ];
        for cut in 0..=text.len() {
            assert_eq!(read(&[&text[..cut], &text[cut..]]), expected, "{cut}");
        }
        let single: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(read(&single.iter().map(String::as_str).collect::<Vec<_>>()), expected);
    }

    #[test]
    fn what_models_write_otherwise_is_taken_as_it_is_meant() {
        let call = |text: &str| read(&[text]);
        let look = || vec![Found::Call("look".into(), "{\"at\":3}".into())];
        assert_eq!(call("<tool_call>{\"name\":\"look\",\"arguments\":\"{\\\"at\\\":3}\"}</tool_call>"), look());
        assert_eq!(call("<tool_call>```json\n{\"name\":\"look\",\"args\":{\"at\":3}}\n```</tool_call>"), look());
        assert_eq!(call("<tool_call>{\"name\":\"look\",\"parameters\":{\"at\":3}}"), look(), "no end mark");
    }

    #[test]
    fn what_is_no_call_is_told_as_it_was_written() {
        assert_eq!(read(&["a <tool"]), [Found::Text("a <tool".into())]);
        let broken = "<tool_call>{\"name\": </tool_call>";
        assert_eq!(read(&[broken]), [Found::Broken(broken.into())]);
        let endless = read(&["<tool_call>", &"x".repeat(MAX_CALL + 1), "more"]);
        assert!(matches!(&endless[..], [Found::Broken(_), Found::Text(more)] if more == "more"));
    }
}
