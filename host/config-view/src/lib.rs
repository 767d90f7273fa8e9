//! Modes and mappings of a configuration, as lists and a signal flow show them, and which mapping a rule that fired is of:
//! made from its text and nothing else.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Mappings that are shown; the others are counted.
const MAX_MAPPINGS: usize = 20_000;
/// Bytes of a trigger or an action in a list.
const MAX_SHORT: usize = 400;
/// Bytes of a mapping's text.
const MAX_TEXT: usize = 16 * 1024;

/// What of a configuration is shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConfigView {
    /// The file that it is of.
    pub file: String,
    /// The names of its modes.
    pub modes: Vec<String>,
    /// Those of its modes, then those of every mode.
    pub mappings: Vec<Mapping>,
    /// Mappings beyond those.
    pub left_out: usize,
    /// The mappings of each name; those without one by the type of their action.
    named: HashMap<String, Vec<usize>>,
    unnamed: HashMap<String, Vec<usize>>,
}

/// One mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    /// Where it is: `modes/0/mappings/3`.
    pub place: String,
    /// Its mode's name; `None` if it is for every mode.
    pub mode: Option<String>,
    /// Its name, if it has one.
    pub name: Option<String>,
    description: Option<String>,
    /// The device that it listens to; `None` if to any.
    pub device: Option<String>,
    /// Its trigger in short, without the device.
    pub trigger: String,
    /// Its action in short.
    pub action: String,
    /// The `type` of its action.
    pub action_type: String,
    /// All of it, as TOML.
    pub text: String,
    waits_for: Waits,
    /// What is searched, in lower case.
    searched: String,
}

/// What a trigger waits for, as far as it tells events apart here.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Waits {
    kinds: &'static [&'static str],
    numbers: Option<(i64, i64)>,
    address: Option<String>,
}

impl ConfigView {
    /// Reads a configuration.
    ///
    /// # Errors
    /// Why it can't be read; one in force can.
    pub fn read(file: &str, text: &str) -> Result<Self, String> {
        let parsed: Value = toml::from_str(text).map_err(|error| error.to_string())?;
        let list = |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        let mut config = Self { file: file.to_owned(), ..Self::default() };
        for (number, mode) in list(&parsed, "modes").iter().enumerate() {
            let name = mode["name"].as_str().unwrap_or_default();
            config.modes.push(name.to_owned());
            config.take(&format!("modes/{number}/mappings"), Some(name), &list(mode, "mappings"));
        }
        config.take("global_mappings", None, &list(&parsed, "global_mappings"));
        for (at, mapping) in config.mappings.iter().enumerate() {
            match &mapping.name {
                Some(name) => config.named.entry(name.clone()).or_default().push(at),
                None => config.unnamed.entry(mapping.action_name().to_owned()).or_default().push(at),
            }
        }
        Ok(config)
    }

    /// The mappings that a rule which fired is of, as the event stream describes it: by its name, or, where it has none, by
    /// its action and what it waits for. Mappings without a name that wait for the same can't be told apart.
    pub fn meant(&self, rule: &str, device: &str, event: &str) -> Vec<usize> {
        // A name may have a parenthesis, and so may what an action does.
        let named = rule.match_indices(" (").find_map(|(at, _)| self.named.get(&rule[..at]));
        let action = rule.split([' ', ':']).next().unwrap_or_default();
        let found = named.or_else(|| self.unnamed.get(action));
        let is_meant = |at: &&usize| self.mappings[**at].is_meant(device, event);
        found.map(|found| found.iter().filter(is_meant).copied().collect()).unwrap_or_default()
    }

    fn take(&mut self, place: &str, mode: Option<&str>, mappings: &[Value]) {
        let room = MAX_MAPPINGS.saturating_sub(self.mappings.len());
        self.left_out += mappings.len().saturating_sub(room);
        let numbered = mappings.iter().enumerate().take(room);
        self.mappings.extend(numbered.map(|(number, value)| Mapping::new(format!("{place}/{number}"), mode, value)));
    }
}

impl Mapping {
    fn new(place: String, mode: Option<&str>, value: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (trigger, action) = (&value["trigger"], &value["action"]);
        let (name, description) = (text(&value["name"]), text(&value["description"]));
        let device = text(&trigger["device"]);
        let (short_trigger, short_action) = (short(trigger), short(action));
        let whole = toml::to_string(value).unwrap_or_default();
        let called = [mode, name.as_deref(), description.as_deref(), device.as_deref()];
        let searched = called.into_iter().chain([Some(place.as_str()), Some(&short_trigger), Some(&short_action)]);
        let searched = searched.flatten().collect::<Vec<_>>().join(" ").to_lowercase();
        Self {
            mode: mode.map(str::to_owned),
            action_type: text(&action["type"]).unwrap_or_default(),
            trigger: short_trigger,
            action: short_action,
            text: beginning(&whole, MAX_TEXT).to_owned(),
            waits_for: Waits::of(trigger),
            place,
            name,
            description,
            device,
            searched,
        }
    }

    /// Whether it has this text, which is in lower case.
    pub fn has(&self, text: &str) -> bool {
        self.searched.contains(text)
    }

    /// What people call it: its name, its description, or its place.
    pub fn called(&self) -> &str {
        self.name.as_deref().or(self.description.as_deref()).unwrap_or(&self.place)
    }

    /// The type of its action, without the feature that has it.
    fn action_name(&self) -> &str {
        self.action_type.rsplit(':').next().unwrap_or_default()
    }

    /// Whether it may be what fired for this event.
    fn is_meant(&self, device: &str, event: &str) -> bool {
        self.device.as_deref().is_none_or(|own| own == device) && (self.name.is_some() || self.waits_for.may_be(event))
    }
}

impl Waits {
    fn of(trigger: &Value) -> Self {
        let kind: String = trigger["type"].as_str().unwrap_or_default().chars().filter(|c| *c != '_').collect();
        let kinds: &[&str] = match kind.to_ascii_lowercase().as_str() {
            "note" | "noterange" | "velocityrange" => &["note-on", "note-off"],
            "cc" => &["cc"],
            "programchange" => &["program"],
            "pitchbend" => &["pitch-bend"],
            "aftertouch" => &["aftertouch"],
            "polyaftertouch" => &["poly-aftertouch"],
            "oscmessage" | "oscpattern" | "oscargrange" => &["osc"],
            "gamepadbutton" => &["gamepad-button"],
            "gamepadanalogstick" => &["gamepad-stick"],
            "gamepadtrigger" => &["gamepad-trigger"],
            "key" => &["key"],
            "artnetchannel" => &["artnet"],
            "sysex" => &["sysex"],
            "variable" => &["variable"],
            "beat" | "bar" => &["beat"],
            "transport" => &["transport"],
            // Gestures and the rest: events of several kinds begin and end them.
            _ => &[],
        };
        let numbers = ["note", "cc", "program"].iter().find_map(|key| range(&trigger[*key]));
        let address = trigger["address"].as_str().filter(|address| !address.contains(['*', '?', '[', '{']));
        Self { kinds, numbers, address: address.map(str::to_owned) }
    }

    fn may_be(&self, event: &str) -> bool {
        let mut words = event.split(' ');
        let (kind, first) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if !self.kinds.is_empty() && !self.kinds.contains(&kind) {
            return false;
        }
        let number = first.parse::<i64>().ok().filter(|_| !self.kinds.is_empty());
        let fits = |(low, high): (i64, i64)| number.is_none_or(|number| (low..=high).contains(&number));
        self.numbers.is_none_or(fits) && self.address.as_deref().is_none_or(|address| kind != "osc" || address == first)
    }
}

/// A number, or `36..51`; `None` if it has names.
fn range(value: &Value) -> Option<(i64, i64)> {
    if let Some(number) = value.as_i64() {
        return Some((number, number));
    }
    let text = value.as_str()?;
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    Some((low.trim().parse().ok()?, high.trim().parse().ok()?))
}

/// A trigger or an action in short: its type, and its keys.
fn short(value: &Value) -> String {
    let Value::Object(keys) = value else { return String::new() };
    let mut out = keys.get("type").and_then(Value::as_str).unwrap_or("?").to_owned();
    for (key, value) in keys.iter().filter(|(key, _)| *key != "type" && *key != "device") {
        if out.len() > MAX_SHORT {
            break;
        }
        out.push_str(&format!(" {key}={}", inline(value)));
    }
    beginning(&out, MAX_SHORT).to_owned()
}

/// The beginning of a text of at most this many bytes.
fn beginning(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(keys) => inline_object(keys),
        Value::Array(list) => format!("[{}]", list.iter().map(inline).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

fn inline_object(keys: &Map<String, Value>) -> String {
    let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={}", inline(value))).collect();
    format!("{{{}}}", keys.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        [[modes]]
        name = "Play"
        [[modes.mappings]]
        name = "drums"
        trigger = { type = "Note", note = "36..39", device = "pads" }
        action = { type = "OscSend", target = "127.0.0.1:9000", address = "/cue/{n}", args = ["{unit}"] }
        [[modes.mappings]]
        trigger = { type = "CC", cc = 7 }
        action = { type = "builtin:osc-output:OscSend", address = "/fader" }
        [[global_mappings]]
        trigger = { type = "OscMessage", address = "/go" }
        action = { type = "ModeChange", mode = "Play" }
    "#;

    fn config() -> ConfigView {
        ConfigView::read("config.toml", TEXT).unwrap()
    }

    #[test]
    fn mappings_have_places_and_are_short() {
        let config = config();
        let lines: Vec<String> =
            config.mappings.iter().map(|it| format!("{} | {} | {}", it.called(), it.trigger, it.action)).collect();
        assert_eq!(
            lines,
            [
                "drums | Note note=36..39 | OscSend target=127.0.0.1:9000 address=/cue/{n} args=[{unit}]",
                "modes/0/mappings/1 | CC cc=7 | builtin:osc-output:OscSend address=/fader",
                "global_mappings/0 | OscMessage address=/go | ModeChange mode=Play",
            ]
        );
        assert!(config.mappings[0].has("pads") && config.mappings[0].has("/cue") && !config.mappings[1].has("pads"));
    }

    #[test]
    fn a_rule_that_fired_is_of_a_mapping() {
        let config = config();
        assert_eq!(config.meant("drums (OscSend)", "pads", "note-on 36 100"), [0]);
        assert_eq!(config.meant("drums (OscSend)", "keys", "note-on 36 100"), [0_usize; 0], "of another device");
        assert_eq!(config.meant("drums 2 (OscSend)", "pads", "note-on 36 100"), [0_usize; 0]);
        assert_eq!(config.meant("OscSend", "any", "cc 7 3"), [1]);
        assert_eq!(config.meant("OscSend", "any", "cc 8 3"), [0_usize; 0]);
        assert_eq!(config.meant("ModeChange to Play", "app", "osc /go 1"), [2]);
        assert_eq!(config.meant("ModeChange to Play", "app", "osc /no 1"), [0_usize; 0]);
    }
}
