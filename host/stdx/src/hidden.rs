//! Redaction of a configuration for readers other than its owner: private values are replaced.
//!
//! In place of the values of `env`, of what stands under or behind a name such as `password` (`--token x`,
//! `API_KEY=x`, `?access_token=x`), and of the user's part of a URL stands [`HIDDEN`]. The ids of secrets stay: they
//! are no values. Everything else is as it was written, comments and layout included.

use serde_json::Value as Json;
use toml_edit::{DocumentMut, Item, TableLike, Value};

/// What stands for a value that is not shown. No plan writes it.
pub const HIDDEN: &str = "<hidden>";

/// Parts of names whose values are never shown.
const NAMES: [&str; 8] =
    ["password", "passwd", "passphrase", "secret", "authorization", "credential", "apikey", "privatekey"];

/// Whether a value of this name is nothing to be shown.
pub fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    plain.ends_with("token") || NAMES.iter().any(|part| plain.contains(part))
}

/// The names in a configuration that look like it and hold ids of secrets.
const IDS: [&str; 2] = ["secret", "secrets"];

/// A configuration's text with its private values hidden. A text that is not TOML can't be taken apart, and
/// nothing of it is shown.
pub fn hide(text: &str) -> String {
    let Ok(mut document) = text.parse::<DocumentMut>() else { return String::new() };
    hide_in(document.as_table_mut());
    document.to_string()
}

/// Hides what is private in a JSON value that stands at this path of a configuration.
pub fn hide_json(path: &[String], value: &mut Json) {
    let last = path.last().map_or("", String::as_str);
    if path.iter().any(|step| step == "env") || is_private(last) {
        return hide_all_json(value);
    }
    match value {
        Json::String(text) => *text = hidden_text(text).unwrap_or_else(|| std::mem::take(text)),
        Json::Array(items) => {
            let mut is_value = false;
            for item in items {
                let next = item.as_str().is_some_and(|word| announces(word, is_value));
                if is_value {
                    hide_all_json(item)
                } else {
                    hide_json(&[], item)
                }
                is_value = next;
            }
        }
        Json::Object(entries) => {
            entries.iter_mut().for_each(|(key, inner)| hide_json(std::slice::from_ref(key), inner));
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// Hides what is private in the arguments of a call that is about a configuration: parts of it, and changes as `path`
/// and `value`.
pub fn hide_arguments(value: &mut Json) {
    if let Json::Object(entries) = value
        && let Some(path) = entries.get("path").and_then(Json::as_str)
    {
        let path: Vec<String> = path.split('/').map(str::to_owned).collect();
        entries.get_mut("value").into_iter().for_each(|value| hide_json(&path, value));
    }
    match value {
        Json::Array(items) => items.iter_mut().for_each(hide_arguments),
        Json::Object(entries) => entries.iter_mut().for_each(|(_, inner)| hide_arguments(inner)),
        Json::String(_) | Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
    hide_json(&[], value);
}

/// A sentence about a configuration without the credentials in it.
pub fn hide_line(line: &str) -> String {
    hidden_text(line).unwrap_or_else(|| line.to_owned())
}

/// Whether what is not shown is written somewhere in this value.
pub fn mentions_hidden(value: &Json) -> bool {
    match value {
        Json::String(text) => text.contains(HIDDEN),
        Json::Array(items) => items.iter().any(mentions_hidden),
        Json::Object(entries) => entries.iter().any(|(key, inner)| key.contains(HIDDEN) || mentions_hidden(inner)),
        Json::Null | Json::Bool(_) | Json::Number(_) => false,
    }
}

fn is_private(name: &str) -> bool {
    !IDS.contains(&name) && is_secret(name)
}

fn hide_all_json(value: &mut Json) {
    match value {
        Json::String(text) => HIDDEN.clone_into(text),
        Json::Array(items) => items.iter_mut().for_each(hide_all_json),
        Json::Object(entries) => entries.iter_mut().for_each(|(_, inner)| hide_all_json(inner)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

fn hide_in(table: &mut dyn TableLike) {
    for (key, item) in table.iter_mut() {
        let all = key.get() == "env" || is_private(key.get());
        hide_item(item, all);
    }
}

fn hide_item(item: &mut Item, all: bool) {
    match item {
        Item::None => {}
        Item::Value(value) => hide_value(value, all),
        Item::Table(table) => hide_table(table, all),
        Item::ArrayOfTables(tables) => tables.iter_mut().for_each(|table| hide_table(table, all)),
    }
}

fn hide_table(table: &mut dyn TableLike, all: bool) {
    match all {
        true => table.iter_mut().for_each(|(_, item)| hide_item(item, true)),
        false => hide_in(table),
    }
}

fn hide_value(value: &mut Value, all: bool) {
    match value {
        Value::String(text) => {
            let shown = if all { Some(HIDDEN.to_owned()) } else { hidden_text(text.value()) };
            if let Some(shown) = shown {
                let decor = value.decor().clone();
                *value = shown.into();
                *value.decor_mut() = decor;
            }
        }
        Value::Array(items) => {
            let mut is_value = false;
            for item in items.iter_mut() {
                let next = item.as_str().is_some_and(|word| announces(word, is_value));
                hide_value(item, all || is_value);
                is_value = next;
            }
        }
        Value::InlineTable(table) => hide_table(table, all),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
    }
}

/// Whether an argument of a program says that the next one is private: `--password`. A value never does.
fn announces(word: &str, is_value: bool) -> bool {
    !is_value && word.starts_with('-') && !word.contains(['=', ' ']) && is_secret(word)
}

/// A text without the credentials in it: the user's part of URLs, what follows `Authorization:` or `Bearer`,
/// and what is assigned to a name such as `password` or follows an option of such a name. `None` if it has no credentials.
fn hidden_text(text: &str) -> Option<String> {
    let steps: [fn(&str) -> Option<String>; 3] = [assigned, announced, hidden_user];
    steps.into_iter().fold(None, |shown, hide| hide(shown.as_deref().unwrap_or(text)).or(shown))
}

/// A command line without what follows options of private names: `--password x`. A value in quotation marks is hidden up
/// to the last of them.
fn announced(text: &str) -> Option<String> {
    let (mut out, mut found, mut is_value, mut quote) = (String::new(), false, false, None);
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        let space = &piece[word.len()..];
        if let Some(mark) = quote {
            if word.ends_with(mark) {
                quote = None;
                out.push_str(space);
            }
        } else if word.is_empty() {
            out.push_str(space);
        } else if is_value && !word.starts_with(['$', '|', ';', '&']) && !is_option(word) && word != HIDDEN {
            out.push_str(HIDDEN);
            found = true;
            quote =
                word.chars().next().filter(|mark| "'\"".contains(*mark) && (word.len() == 1 || !word.ends_with(*mark)));
            out.push_str(if quote.is_none() { space } else { "" });
            is_value = false;
        } else {
            is_value = announces(word, is_value && !is_option(word));
            out.push_str(piece);
        }
    }
    found.then_some(out)
}

/// Whether a word is an option, `-v` or `--verbose`, and not a value that begins with a hyphen, as keys in base64 may.
fn is_option(word: &str) -> bool {
    word.starts_with("--") || word.starts_with('-') && word.len() == 2
}

/// A text without what is assigned to private names. What a program is to read from a variable is no value.
fn assigned(text: &str) -> Option<String> {
    let (mut out, mut rest, mut found) = (String::new(), text, false);
    while let Some((before, mut after)) = rest.split_once(['=', ':']) {
        let sign = &rest[before.len()..rest.len() - after.len()];
        out.push_str(before);
        out.push_str(sign);
        let name = before.trim_end().rsplit(|c: char| !c.is_ascii_alphanumeric() && !"_-".contains(c)).next();
        let name = name.unwrap_or_default().to_ascii_lowercase();
        let value = after.trim_start_matches([' ', '"', '\'']);
        let end = value.find(|c: char| c.is_whitespace() || "&;,|)\"'".contains(c)).unwrap_or(value.len());
        let is_id = sign == ":" && IDS.contains(&name.as_str());
        let is_value = end > 0 && !["$", "//", HIDDEN].iter().any(|start| value.starts_with(start));
        if is_value && is_secret(&name) && !is_id {
            out.push_str(&after[..after.len() - value.len()]);
            out.push_str(HIDDEN);
            after = &value[end..];
            found = true;
        }
        rest = after;
    }
    out.push_str(rest);
    found.then_some(out)
}

/// A text without the user's part of URLs, and what follows `Authorization:` or `Bearer`.
fn hidden_user(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    for before in ["authorization:", "bearer "] {
        if let Some(at) = lower.find(before) {
            return Some(format!("{} {HIDDEN}", text[..at + before.len()].trim_end()));
        }
    }
    let (mut out, mut rest, mut found) = (String::new(), text, false);
    while let Some((scheme, after)) = rest.split_once("://") {
        let end = after.find(['/', '?', '#', ' ', '"', '\'']).unwrap_or(after.len());
        out.push_str(scheme);
        out.push_str("://");
        let mut authority = &after[..end];
        if let Some((user, host)) = authority.rsplit_once('@').filter(|(user, _)| !user.is_empty()) {
            found |= user != HIDDEN;
            out.push_str(HIDDEN);
            out.push('@');
            authority = host;
        }
        out.push_str(authority);
        rest = &after[end..];
    }
    out.push_str(rest);
    found.then_some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SHOW: &str = r#"# The show.
[[global_mappings]]
trigger = { type = "Note", note = 1 }
action = { type = "Shell", command = "deploy", args = ["-u", "https://me:hunter2@host/x"], env = { KEY = "hunter2" } } # go

[[modes]]
name = "Play"
[[modes.mappings]]
trigger = { type = "Note", note = 2 }
[modes.mappings.action]
type = "Sequence"
[[modes.mappings.action.actions]]
type = "Launch"
app = "curl"
args = ["-H", "Authorization: Basic hunter2"]
[modes.mappings.action.actions.env]
"API KEY" = 'hunter2'
OTHER = """
hunter2"""

[models.local]
provider = "openai-compatible"
model = "m"
url = "http://hunter2@localhost:1"
secret = "openai"
"#;

    #[test]
    fn values_are_hidden_and_the_rest_is_as_it_was() {
        let shown = hide(SHOW);
        assert!(!shown.contains("hunter2"), "{shown}");
        for kept in [
            "# The show.",
            "command = \"deploy\"",
            "{ KEY = \"<hidden>\" } } # go",
            "secret = \"openai\"",
            "https://<hidden>@host/x",
            "\"API KEY\" = \"<hidden>\"",
            "Authorization: <hidden>",
            "http://<hidden>@localhost:1",
        ] {
            assert!(shown.contains(kept), "{kept} in {shown}");
        }
        assert_eq!(hide(&shown), shown);
        let plain = "# x\n[[modes]]\nname   =  'Play' # y\n";
        assert_eq!(hide(plain), plain);
        assert_eq!(hide("env = ["), "");
    }

    #[test]
    fn what_is_assigned_to_a_private_name_is_hidden_wherever_it_stands() {
        for text in [
            "API_KEY=hunter2 deploy",
            "deploy --token=hunter2 --all",
            "deploy --api-key hunter2 --all",
            "deploy -v --password 'my hunter2 is' here",
            "deploy --password \"hunter2",
            "deploy --token  hunter2",
            "deploy --token -hunter2 --all",
            "export DB_PASSWORD='hunter2'; deploy",
            "https://host/x?a=1&access_token=hunter2&b=2",
            "X-Api-Key: hunter2",
            "password = \"hunter2\"",
        ] {
            let mut value = json!([text]);
            hide_json(&[], &mut value);
            assert!(!value.to_string().contains("hunter2") && mentions_hidden(&value), "{value}");
            assert!(!hide(&format!("a = [{}]", json!(text))).contains("hunter2"), "{text}");
            assert_eq!(hide_line(&hide_line(text)), hide_line(text));
        }
        for args in [json!(["--password", "hunter2", "x"]), json!(["deploy", "--api-key", "hunter2"])] {
            let mut value = json!({ "args": args.clone() });
            hide_json(&[], &mut value);
            assert!(!value.to_string().contains("hunter2") && mentions_hidden(&value), "{value}");
            assert!(!hide(&format!("args = {args}")).contains("hunter2"), "{args}");
        }
        for plain in ["note = 36", "at 10:30", "TOKEN=$TOKEN", "secret: \"openai\"", "key=C", "token://x", "a: b, c: d"]
        {
            assert_eq!(hide_line(plain), plain);
        }
        let kept = "https://host/x?a=1&access_token=<hidden>&b=2";
        assert_eq!(hide_line(&kept.replace("<hidden>", "x")), kept);
    }

    #[test]
    fn what_is_proposed_is_hidden_in_the_same_places() {
        let path = |text: &str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
        for (at, value) in [
            ("global_mappings/0/action/env/KEY", json!("hunter2")),
            ("global_mappings/0/action/env", json!({ "KEY": "hunter2" })),
            ("global_mappings/0", json!({ "action": { "type": "Shell", "env": { "KEY": "hunter2" } } })),
            ("models/x", json!({ "url": "http://hunter2@host" })),
            ("a/password", json!("hunter2")),
        ] {
            let mut value = value;
            hide_json(&path(at), &mut value);
            assert!(!value.to_string().contains("hunter2") && mentions_hidden(&value), "{at}: {value}");
        }
        let mut args = json!({ "description": "x", "changes": [
            { "path": "global_mappings/0/action/env/KEY", "value": "hunter2" },
            { "path": "global_mappings/0", "value": { "action": { "env": { "KEY": "hunter2" } } } },
            { "path": "models/x/url", "value": "http://hunter2@host" },
        ] });
        hide_arguments(&mut args);
        assert!(!args.to_string().contains("hunter2") && args["changes"][1]["path"] == "global_mappings/0", "{args}");
        let mut id = json!({ "secret": "openai", "secrets": [{ "id": "openai" }] });
        hide_json(&path("models/x"), &mut id);
        assert!(!mentions_hidden(&id), "{id}");
    }
}
