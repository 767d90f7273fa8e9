//! Redaction of secrets in entries: by the names of fields, and by the values that are known.

use parking_lot::RwLock;

use serde_json::Value;

use conductor_stdx::hidden::{hide_arguments, is_secret};

/// What stands where something was taken out.
const BLOT: &str = "***";

/// The secret values that this process knows. They are replaced in every entry.
#[derive(Default)]
pub struct Redaction {
    values: RwLock<Vec<String>>,
}

impl std::fmt::Debug for Redaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl Redaction {
    /// Knows the secrets of this process's environment.
    pub fn of_environment() -> Self {
        let known = Self::default();
        for (name, value) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CONDUCTOR_SECRET_")
                && let Some(value) = value.to_str()
            {
                known.learn(value);
            }
        }
        known
    }

    /// Takes this value out from now on. What has fewer than 8 bytes is no secret, and would be found anywhere.
    pub fn learn(&self, value: &str) {
        if value.len() < 8 || self.read().iter().any(|known| known == value) {
            return;
        }
        self.values.write().push(value.to_owned());
    }

    fn read(&self) -> parking_lot::RwLockReadGuard<'_, Vec<String>> {
        self.values.read()
    }

    /// The text without what is known to be secret.
    pub fn text(&self, text: String) -> String {
        self.read().iter().fold(text, |text, value| match text.contains(value.as_str()) {
            true => text.replace(value.as_str(), BLOT),
            false => text,
        })
    }

    /// The arguments of a call without what is known to be secret, without what stands under a name such as `password`,
    /// and without what others than the owner would not see in a configuration.
    pub fn arguments(&self, value: &mut Value) {
        hide_arguments(value);
        self.value(value);
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(std::mem::take(text)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(entries) => {
                let whole = std::mem::take(entries);
                entries.extend(whole.into_iter().map(|(key, mut inner)| {
                    if is_secret(&key) && !inner.is_null() {
                        inner = BLOT.into();
                    } else {
                        self.value(&mut inner);
                    }
                    (self.text(key), inner)
                }));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_taken_out_by_name_and_by_value() {
        let known = Redaction::default();
        known.learn("hunter2-hunter2");
        known.learn("short");
        let mut value = json!({
            "address": "/x", "note": "use hunter2-hunter2, not short", "hunter2-hunter2": 1,
            "api_key": "sk-1", "Authorization": ["Bearer x"], "accessToken": "y", "max_tokens": 7,
            "deep": [{ "Client-Secret": { "value": "z" } }],
        });
        known.arguments(&mut value);
        let expected = json!({
            "address": "/x", "note": "use ***, not short", "***": 1,
            "api_key": "***", "Authorization": "***", "accessToken": "***", "max_tokens": 7,
            "deep": [{ "Client-Secret": "***" }],
        });
        assert_eq!(value, expected);
        let mut call = json!({ "action": { "type": "Shell", "args": ["--token", "sk-1"], "env": { "KEY": "sk-1" } } });
        known.arguments(&mut call);
        assert!(!call.to_string().contains("sk-1") && call.to_string().contains("KEY"), "{call}");
    }
}
