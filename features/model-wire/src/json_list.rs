//! A list of JSON objects that an API streams in parts and wants back whole with the next question: OpenRouter's
//! `reasoning_details`, LiteLLM's `thinking_blocks`.

use serde_json::{Map, Value};

/// Bytes of such a list.
const MAX_LIST: usize = 512 * 1024;
/// Keys whose values come in parts.
const IN_PARTS: [&str; 4] = ["text", "summary", "data", "thinking"];

/// The list as far as it came.
#[derive(Debug, Default)]
pub struct JsonList {
    objects: Vec<Map<String, Value>>,
    size: usize,
    is_too_long: bool,
}

impl JsonList {
    /// Takes more. A part belongs to the object with the same `index` and `type`, or, without an index, to the last
    /// object if it has the same type and no signature yet.
    pub fn push(&mut self, more: Vec<Map<String, Value>>) {
        for object in more {
            self.size +=
                object.iter().map(|(key, value)| key.len() + value.as_str().map_or(16, str::len)).sum::<usize>();
            if self.size > MAX_LIST {
                self.is_too_long = true;
                return;
            }
            let same = |it: &Map<String, Value>| it.get("type") == object.get("type");
            let open = match object.get("index").filter(|index| !index.is_null()) {
                Some(index) => self.objects.iter_mut().rev().find(|it| same(it) && it.get("index") == Some(index)),
                None => self.objects.last_mut().filter(|it| same(it) && !is_some(it.get("signature"))),
            };
            match open {
                Some(open) => merge(open, object),
                None => self.objects.push(object),
            }
        }
    }

    /// The list as JSON. `None` if nothing came, or more than 512 KiB.
    pub fn json(&self) -> Option<String> {
        if self.objects.is_empty() || self.is_too_long {
            return None;
        }
        serde_json::to_string(&self.objects).ok()
    }

    /// The texts in it: of thoughts or their summaries.
    pub fn texts(more: &[Map<String, Value>]) -> String {
        let text = |it: &Map<String, Value>| {
            ["text", "summary", "thinking"].iter().find_map(|key| it.get(*key)?.as_str().map(str::to_owned))
        };
        more.iter().filter_map(text).collect()
    }
}

fn is_some(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null() && value.as_str() != Some(""))
}

fn merge(open: &mut Map<String, Value>, more: Map<String, Value>) {
    for (key, value) in more {
        match (open.get_mut(&key), value) {
            (Some(Value::String(before)), Value::String(part)) if IN_PARTS.contains(&key.as_str()) => {
                before.push_str(&part)
            }
            (_, value) if is_some(Some(&value)) => {
                open.insert(key, value);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(parts: &[&str]) -> JsonList {
        let mut list = JsonList::default();
        parts.iter().for_each(|part| list.push(serde_json::from_str(part).unwrap()));
        list
    }

    #[test]
    fn parts_of_an_object_are_put_together() {
        let list = list(&[
            r#"[{"type":"reasoning.text","text":"Let ","index":0,"format":"anthropic-claude-v1"}]"#,
            r#"[{"type":"reasoning.text","text":"me.","index":0}]"#,
            r#"[{"type":"reasoning.text","signature":"sig","index":0}]"#,
            r#"[{"type":"reasoning.encrypted","data":"abc","id":"r1","index":1}]"#,
        ]);
        let json: Value = serde_json::from_str(&list.json().unwrap()).unwrap();
        assert_eq!(
            json,
            serde_json::json!([
                { "type": "reasoning.text", "text": "Let me.", "index": 0, "format": "anthropic-claude-v1", "signature": "sig" },
                { "type": "reasoning.encrypted", "data": "abc", "id": "r1", "index": 1 },
            ])
        );
    }

    #[test]
    fn without_an_index_a_signature_ends_an_object() {
        let list = list(&[
            r#"[{"type":"thinking","thinking":"A","signature":null}]"#,
            r#"[{"type":"thinking","thinking":"","signature":"s1"}]"#,
            r#"[{"type":"thinking","thinking":"B"}]"#,
        ]);
        let json: Value = serde_json::from_str(&list.json().unwrap()).unwrap();
        assert_eq!(json[0]["signature"], "s1");
        assert_eq!((&json[0]["thinking"], &json[1]["thinking"]), (&"A".into(), &"B".into()));
    }

    #[test]
    fn a_list_has_an_end() {
        let part = format!(r#"[{{"type":"reasoning.text","text":"{}","index":0}}]"#, "x".repeat(200 * 1024));
        assert!(list(&[&part, &part]).json().is_some());
        assert!(list(&[&part, &part, &part]).json().is_none());
        assert!(list(&[]).json().is_none());
    }
}
