//! Tools for modes and mappings: five that look, one that switches the mode, six that propose, and one
//! that does an action once.
//!
//! What they read is the configuration as its author wrote it, so that places in it are places in the
//! file; what they propose is checked by the host, which knows what is valid.

use conductor_feature::json::{Proposed, answer, register, remove, set, unknown};
use conductor_feature::mapping::{Action, Condition, Feedback, Trigger};
use conductor_feature::page::{self, After, Page};
use conductor_feature::planning::Change;
use conductor_feature::{
    Authority, ConfigChangeTools, Context, Controls, Error, Invocation, Lifecycle, Planner, PrivilegedTools,
    ReadOnlyTools, Reader, StatefulTools, host_state, tool_registrar,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub mod sections;
pub mod show;

use sections::{Entry, Sections};
use show::{Found, List, Listed, Modes, Show};

struct MappingTools;

impl Lifecycle for MappingTools {
    fn install(ctx: &Context) -> Result<(), Error> {
        let tools = tool_registrar::Registrar::open(ctx)?;
        register::<Part, Config>(&tools, "conductor_get_config")?;
        register::<After, Modes>(&tools, "conductor_get_modes")?;
        register::<List, Listed>(&tools, "conductor_list_mappings")?;
        register::<One, Found>(&tools, "conductor_get_mapping")?;
        register::<OfType, Actions>(&tools, "conductor_list_actions")?;
        register::<Create, Proposed>(&tools, "conductor_create_mapping")?;
        register::<Update, Proposed>(&tools, "conductor_update_mapping")?;
        register::<One, Proposed>(&tools, "conductor_delete_mapping")?;
        register::<ModeName, Proposed>(&tools, "conductor_create_mode")?;
        register::<ModeName, Proposed>(&tools, "conductor_delete_mode")?;
        register::<Batch, Proposed>(&tools, "conductor_batch_changes")?;
        register::<Switch, Switched>(&tools, "conductor_switch_mode")?;
        register::<Preview, Previewed>(&tools, "conductor_preview_action")
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Part {
    /// Such as modes, models/fast, modes/0/mappings. Default: all, as text.
    section: Option<String>,
    after: Option<i64>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Config {
    /// TOML, as its author wrote it.
    text: Option<String>,
    entries: Option<Vec<Entry>>,
    total: Option<usize>,
    next: Option<String>,
    /// Further files that it includes, which are not shown: only a person changes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    included: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct One {
    /// Such as modes/0/mappings/3.
    place: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OfType {
    /// Such as OscSend. Default: all, without keys.
    r#type: Option<String>,
    after: Option<i64>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Actions {
    actions: Vec<ActionFound>,
    total: Option<usize>,
    next: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ActionFound {
    r#type: String,
    /// None: the host.
    feature: Option<String>,
    summary: String,
    /// JSON Schema.
    keys: Option<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Create {
    /// The mode's name. Default: a global mapping, for every mode.
    mode: Option<String>,
    trigger: Trigger,
    action: Action,
    name: Option<String>,
    description: Option<String>,
    /// Higher is tried first.
    priority: Option<i64>,
    /// Whether no further mapping is tried after it.
    consume: Option<bool>,
    /// Whether it waits until a press is clearly no long press, double tap or chord of another mapping.
    defer: Option<bool>,
    /// The place on the clock's grid that the action waits for: "bar", "1/4", "1/8t".
    quantize: Option<String>,
    /// Of an action that failed.
    retry: Option<Retry>,
    condition: Option<Condition>,
    feedback: Option<Feedback>,
}

/// How an action is tried again that failed.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct Retry {
    /// 1-10.
    times: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_ms: Option<u16>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Update {
    /// Such as modes/0/mappings/3.
    place: String,
    trigger: Option<Trigger>,
    action: Option<Action>,
    name: Option<String>,
    description: Option<String>,
    priority: Option<i64>,
    consume: Option<bool>,
    defer: Option<bool>,
    quantize: Option<String>,
    retry: Option<Retry>,
    condition: Option<Condition>,
    feedback: Option<Feedback>,
}

impl Update {
    /// The keys of the mapping that are given.
    fn keys(&self) -> Result<impl Iterator<Item = (&'static str, Value)>, Error> {
        let keys = [
            ("trigger", self.trigger.as_ref().map(json).transpose()?),
            ("action", self.action.as_ref().map(json).transpose()?),
            ("name", self.name.clone().map(Value::from)),
            ("description", self.description.clone().map(Value::from)),
            ("priority", self.priority.map(Value::from)),
            ("consume", self.consume.map(Value::from)),
            ("defer", self.defer.map(Value::from)),
            ("quantize", self.quantize.clone().map(Value::from)),
            ("retry", self.retry.as_ref().map(json).transpose()?),
            ("condition", self.condition.as_ref().map(json).transpose()?),
            ("feedback", self.feedback.as_ref().map(json).transpose()?),
        ];
        Ok(keys.into_iter().filter_map(|(key, value)| Some((key, value?))))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ModeName {
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Switch {
    // Its older name is taken, and not offered.
    #[serde(alias = "name")]
    mode: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Switched {
    mode: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Preview {
    action: Action,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Previewed {
    done: String,
    next: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Batch {
    /// A sentence for the person who decides.
    description: String,
    /// Made one after the other: a place that an earlier change moves is meant as it is then.
    changes: Vec<BatchChange>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BatchChange {
    /// Where, as keys and numbers from the top: modes/0/mappings/3/action. One past the end appends.
    path: String,
    /// What is to be there; none removes what is.
    value: Option<Value>,
}

/// Bytes of a configuration as JSON, at most: a result has 256 KiB, and some stand beside it.
const MAX_CONFIG_BYTES: usize = 255 * 1024;

fn no_tool(name: &str) -> Error {
    Error::Invalid(format!("there is no tool {name}"))
}

fn json(value: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(|error| Error::Failed(error.to_string()))
}

fn read(reader: &Reader) -> Result<Show, Error> {
    Show::parse(&reader.config()?).map_err(Error::Failed)
}

/// Whether the host or a feature has every action that this one is made of. The host accepts a mapping with an
/// unknown action, since a feature may add it later; here the action has to exist.
fn has_actions(reader: &Reader, action: &Action) -> Result<(), Error> {
    let actions = reader.actions()?;
    let names = |action: &host_state::Action| {
        let full = action.feature.as_ref().map(|feature| format!("{feature}:{}", action.name));
        std::iter::once(action.name.clone()).chain(full).collect::<Vec<_>>()
    };
    let all: Vec<String> = actions.iter().flat_map(names).collect();
    let known = || all.iter().map(String::as_str);
    // The host takes older spellings, too.
    let plain = |kind: &str| kind.replace('_', "").to_lowercase();
    let kinds = action.kinds();
    let missing = kinds.iter().find(|kind| !known().any(|known| plain(known) == plain(kind)));
    missing.map_or(Ok(()), |kind| Err(unknown("action", kind, known())))
}

/// The configuration, or a page of one section of it.
fn config(text: String, Part { section, after }: &Part) -> Result<Config, Error> {
    let sections = Sections::parse(&text)?;
    let included = sections.included();
    if let Some(section) = section {
        let Page { entries, total, next } = sections.page(section, *after)?;
        return Ok(Config { text: None, entries: Some(entries), total, next, included });
    }
    if after.is_some() {
        return Err(Error::Invalid("`after` skips entries of a `section`: say which".to_owned()));
    }
    let bytes = json(&text)?.to_string().len();
    if bytes > MAX_CONFIG_BYTES {
        return Err(Error::Exhausted(format!(
            "the configuration has {bytes} bytes as JSON, of which an answer has at most {MAX_CONFIG_BYTES}: ask for a \
             `section`, and by `after` for the rest of a long one. There are {}",
            sections.sizes()
        )));
    }
    Ok(Config { text: Some(text), entries: None, total: None, next: None, included })
}

/// A page of the actions, or of those of this type with their keys.
fn actions(all: &[host_state::Action], only: Option<&str>, after: Option<i64>) -> Result<Actions, Error> {
    let is_meant = |action: &host_state::Action| {
        let full = |feature: &String| format!("{feature}:{}", action.name);
        only.is_none_or(|only| action.name == only || action.feature.as_ref().map(full).as_deref() == Some(only))
    };
    let found = |action: &host_state::Action| ActionFound {
        r#type: action.name.clone(),
        feature: action.feature.clone(),
        summary: action.summary.clone(),
        keys: only.and_then(|_| serde_json::from_str(&action.schema).ok()),
    };
    let meant: Vec<&host_state::Action> = all.iter().filter(|action| is_meant(action)).collect();
    let advice = match only {
        Some(only) if meant.is_empty() => {
            return Err(unknown("action", only, all.iter().map(|action| action.name.as_str())));
        }
        Some(_) => "conductor_create_mapping takes these keys beside `type`",
        None => "ask again with a type for its keys",
    };
    let Page { entries: actions, total, next } = Page::of(meant, after, page::MAX_ENTRIES, found)?;
    Ok(Actions { actions, total, next: next.unwrap_or_else(|| advice.to_owned()) })
}

impl ReadOnlyTools for MappingTools {
    fn call(name: String, args: String, _: &Invocation, reader: &Reader) -> Result<String, Error> {
        match name.as_str() {
            "conductor_get_config" => answer(&args, |asked: Part| config(reader.config()?, &asked)),
            "conductor_get_modes" => answer(&args, |After { after }| read(reader)?.modes(&reader.mode(), after)),
            "conductor_list_mappings" => answer(&args, |asked: List| read(reader)?.list(&asked)),
            "conductor_get_mapping" => {
                answer(&args, |One { place }| read(reader)?.mapping(&place).map_err(Error::Invalid))
            }
            "conductor_list_actions" => {
                answer(&args, |OfType { r#type, after }| actions(&reader.actions()?, r#type.as_deref(), after))
            }
            _ => Err(no_tool(&name)),
        }
    }
}

impl ConfigChangeTools for MappingTools {
    fn call(name: String, args: String, _: &Invocation, reader: &Reader, planner: &Planner) -> Result<String, Error> {
        let propose = |description: String, changes: Vec<Change>| Proposed::by(planner, &description, &changes);
        match name.as_str() {
            "conductor_create_mapping" => answer(&args, |new: Create| {
                let place = read(reader)?.next_place(new.mode.as_deref()).map_err(Error::Invalid)?;
                let what = in_few_words(&json(&new.trigger)?, &json(&new.action)?);
                has_actions(reader, &new.action)?;
                let Create { mode, trigger, action, name, description, .. } = new;
                let Create { priority, consume, defer, quantize, retry, condition, feedback, .. } = new;
                let (trigger, action) = (Some(trigger), Some(action));
                let said = Update {
                    place,
                    trigger,
                    action,
                    name,
                    description,
                    priority,
                    consume,
                    defer,
                    quantize,
                    retry,
                    condition,
                    feedback,
                };
                let mapping: Map<String, Value> = said.keys()?.map(|(key, value)| (key.to_owned(), value)).collect();
                let called = match mapping.get("name").and_then(self::said) {
                    Some(name) => format!("the mapping {}", quoted(&name)),
                    None => "a mapping".to_owned(),
                };
                let scope = mode.map_or("every mode".to_owned(), |mode| format!("mode {mode}"));
                let told = told(mapping.get("description"));
                propose(format!("Add {called} to {scope}: {what}{told}."), vec![set(said.place, mapping)])
            }),
            "conductor_update_mapping" => answer(&args, |new: Update| {
                let found = read(reader)?.mapping(&new.place).map_err(Error::Invalid)?;
                new.action.as_ref().map_or(Ok(()), |action| has_actions(reader, action))?;
                let keys: Vec<(&str, Value)> = new.keys()?.collect();
                let what = found.with(&keys).in_words();
                let changes = keys.into_iter().map(|(key, value)| set(format!("{}/{key}", new.place), value)).collect();
                propose(format!("Change the mapping {what}."), changes)
            }),
            "conductor_delete_mapping" => answer(&args, |One { place }| {
                let found = read(reader)?.mapping(&place).map_err(Error::Invalid)?;
                propose(format!("Remove the mapping {}.", found.in_words()), vec![remove(place)])
            }),
            "conductor_create_mode" => answer(&args, |ModeName { name }| {
                let place = format!("modes/{}", read(reader)?.modes.len());
                let mode = serde_json::json!({ "name": name });
                propose(format!("Add the mode {name}."), vec![set(place, mode)])
            }),
            "conductor_delete_mode" => answer(&args, |ModeName { name }| {
                let place = read(reader)?.place_of_mode(&name).map_err(Error::Invalid)?;
                propose(format!("Remove the mode {name}."), vec![remove(place)])
            }),
            "conductor_batch_changes" => answer(&args, |Batch { description, changes }| {
                let change = |BatchChange { path, value }| Change { path, value: value.map(|value| value.to_string()) };
                propose(description, changes.into_iter().map(change).collect())
            }),
            _ => Err(no_tool(&name)),
        }
    }
}

impl StatefulTools for MappingTools {
    fn call(name: String, args: String, _: &Invocation, reader: &Reader, change: &Controls) -> Result<String, Error> {
        match name.as_str() {
            "conductor_switch_mode" => answer(&args, |Switch { mode }| {
                let modes = reader.status()?.modes;
                if !modes.contains(&mode) {
                    return Err(unknown("mode", &mode, modes.iter().map(String::as_str)));
                }
                change.switch_mode(&mode)?;
                Ok(Switched { mode })
            }),
            _ => Err(no_tool(&name)),
        }
    }
}

impl PrivilegedTools for MappingTools {
    fn call(
        name: String,
        args: String,
        _: &Invocation,
        reader: &Reader,
        _: &Planner,
        rights: &Authority,
    ) -> Result<String, Error> {
        match name.as_str() {
            "conductor_preview_action" => answer(&args, |Preview { action }| {
                has_actions(reader, &action)?;
                let done = rights.perform(&json(&action)?.to_string())?;
                let next = "conductor_get_status tells whether it failed later".to_owned();
                Ok(Previewed { done, next })
            }),
            _ => Err(no_tool(&name)),
        }
    }
}

/// Keys of actions and of triggers by which people tell them apart, the first that is there.
const ACTION_KEYS: [&str; 8] = ["address", "keys", "text", "mode", "app", "command", "variable", "target"];
const TRIGGER_KEYS: [&str; 8] = ["note", "cc", "button", "key", "program", "address", "pattern", "variable"];
/// The triggers that no device sends.
const HOSTS_OWN: [&str; 4] = ["Variable", "Beat", "Bar", "Transport"];
/// Characters of such a key's value that are said.
const MAX_SAID: usize = 40;

/// A mapping in a few words: `OscSend /verse on Note 36 of any device`. They are what it does, not what its name or its
/// description says that it does: a person decides by them.
fn in_few_words(trigger: &Value, action: &Value) -> String {
    let kind = |of: &Value| of.get("type").and_then(said).map_or_else(|| "?".to_owned(), |kind| cut(&kind));
    let (action_said, trigger_said) = (told_apart(action, &ACTION_KEYS), told_apart(trigger, &TRIGGER_KEYS));
    let kind_of_trigger = kind(trigger);
    let whose = match trigger.get("device").and_then(said) {
        Some(device) => format!(" of {}", quoted(&device)),
        None if HOSTS_OWN.contains(&&*kind_of_trigger) => String::new(),
        None => " of any device".to_owned(),
    };
    format!("{}{action_said} on {kind_of_trigger}{trigger_said}{whose}", kind(action))
}

/// The first characters. Control characters are escaped: a plan's title is one line.
fn cut(text: &str) -> String {
    let first = text.chars().take(MAX_SAID);
    let mut shown: String =
        first.map(|c| if c.is_control() { c.escape_default().to_string() } else { c.into() }).collect();
    if text.chars().nth(MAX_SAID).is_some() {
        shown.push('…');
    }
    shown
}

/// The first characters in quotes, for what others chose: it does not look like the rest of the sentence.
fn quoted(text: &str) -> String {
    let first: String = text.chars().take(MAX_SAID).collect();
    let more = if first.len() < text.len() { "…" } else { "" };
    format!("{:?}", first + more)
}

/// What a description says of a mapping, behind what the mapping does: the control's name, where a person has learned it.
fn told(description: Option<&Value>) -> String {
    description.and_then(said).map(|text| format!(", described as {}", quoted(&text))).unwrap_or_default()
}

/// A text, a number, or several of them; `None` for anything else, and where nothing is in it.
fn said(value: &Value) -> Option<String> {
    let said = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Array(all) => all.iter().filter_map(said).collect::<Vec<_>>().join("+"),
        _ => return None,
    };
    Some(said).filter(|said| !said.trim().is_empty())
}

/// The value of the first of these keys, after a space; empty if none is there.
fn told_apart(value: &Value, keys: &[&str]) -> String {
    let Some(said) = keys.iter().find_map(|key| value.get(key).and_then(said)) else { return String::new() };
    // What is struck together is one thing.
    let said = match value.get("modifiers").and_then(self::said) {
        Some(modifiers) => format!("{modifiers}+{said}"),
        None => said,
    };
    format!(" {}", cut(&said))
}

conductor_feature::feature!(
    MappingTools,
    "../feature.toml",
    [read_only_tools, stateful_tools, config_change_tools, privileged_tools]
);

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T>(result: Result<T, Error>) -> String {
        match result {
            Err(Error::Invalid(text) | Error::Exhausted(text)) => text,
            _ => panic!("it is taken"),
        }
    }

    /// The action with this number, with a summary and a schema.
    fn action(number: usize) -> host_state::Action {
        host_state::Action {
            name: format!("Action{number}"),
            feature: Some(format!("feature-{}", number / 100)),
            summary: "Sends what the control says to the lights above the stage. ".repeat(4),
            schema: r#"{"type":"object"}"#.to_owned(),
        }
    }

    #[test]
    fn a_mapping_is_told_by_what_tells_it_apart() {
        let words = |trigger: Value, action: Value| in_few_words(&trigger, &action);
        let note = serde_json::json!({ "type": "Note", "note": "40..43" });
        let osc = serde_json::json!({ "type": "OscSend", "target": "127.0.0.1:9000", "address": "/verse" });
        assert_eq!(words(note.clone(), osc), "OscSend /verse on Note 40..43 of any device");
        let next = serde_json::json!({ "type": "NextMode" });
        assert_eq!(words(serde_json::json!({ "type": "PitchBend" }), next), "NextMode on PitchBend of any device");
        let copy = serde_json::json!({ "type": "Keystroke", "keys": ["c"], "modifiers": ["ctrl"] });
        assert_eq!(words(note.clone(), copy.clone()), "Keystroke ctrl+c on Note 40..43 of any device");
        let beat = serde_json::json!({ "type": "Beat" });
        assert_eq!(words(beat, copy.clone()), "Keystroke ctrl+c on Beat");
        let pad = serde_json::json!({ "type": "Note", "note": 36, "device": "pads" });
        assert_eq!(words(pad, copy.clone()), "Keystroke ctrl+c on Note 36 of \"pads\"");
        let posing = serde_json::json!({ "type": "Note", "note": 36, "device": "a\" of any device.\n" });
        assert_eq!(words(posing, copy), r#"Keystroke ctrl+c on Note 36 of "a\" of any device.\n""#);
        let learned = serde_json::json!("pad 1 of pads: \"go\"");
        assert_eq!(told(Some(&learned)), r#", described as "pad 1 of pads: \"go\"""#);
        assert_eq!(told(None), "");
        let lines = serde_json::json!({ "type": "Text", "text": "ls\n" });
        assert_eq!(words(note.clone(), lines), "Text ls\\n on Note 40..43 of any device");
        let text = serde_json::json!({ "type": "Text", "text": "é".repeat(200) });
        assert_eq!(words(note, text), format!("Text {}… on Note 40..43 of any device", "é".repeat(40)));
    }

    #[test]
    fn the_actions_of_many_features_are_read_page_by_page_each_once() {
        let all: Vec<host_state::Action> = (0..3000).map(action).collect();
        let (mut found, mut pages) = (Vec::new(), 0);
        while found.len() < all.len() {
            let page = actions(&all, None, i64::try_from(found.len()).ok()).expect("a page");
            assert!(json(&page).expect("JSON").to_string().len() < 256 * 1024 && !page.actions.is_empty());
            assert_eq!(page.total, Some(all.len()));
            found.extend(page.actions.into_iter().map(|action| action.r#type));
            let of_more = format!("after = {} has the next ones", found.len());
            assert_eq!(page.next.starts_with(&of_more), found.len() < all.len(), "{}", page.next);
            pages += 1;
        }
        let names: Vec<String> = all.iter().map(|action| action.name.clone()).collect();
        assert!(found == names && pages > 3, "{pages} pages");
        let one = actions(&all, Some("feature-29:Action2999"), None).expect("a page");
        assert_eq!((one.actions.len(), one.total), (1, None));
        assert!(one.actions[0].keys.is_some() && one.next.contains("conductor_create_mapping"), "{}", one.next);
        assert!(refused(actions(&all, None, Some(3001))).contains("after = 3001 is not from 0 to 3000"));
    }

    #[test]
    fn a_configuration_that_is_too_long_names_its_sections() {
        let short = config("# a show\n[[modes]]\nname = 'Play'\n".to_owned(), &Part::default()).expect("it is short");
        assert!(short.text.is_some_and(|text| text.starts_with("# a show")) && short.entries.is_none());

        let modes: String = (0..20_000).map(|number| format!("[[modes]]\nname = 'scene {number}'\n")).collect();
        let long = format!("[clock]\ntempo = 120\n{modes}");
        let said = refused(config(long.clone(), &Part::default()));
        for part in ["`section`", "`after`", "modes (", "in a list of 20000), clock (", " bytes)"] {
            assert!(said.contains(part), "no {part} in {said}");
        }
        let part = Part { section: Some("modes".to_owned()), after: Some(19_999) };
        let last = config(long.clone(), &part).expect("a page");
        let places: Vec<String> = last.entries.expect("entries").into_iter().map(|entry| entry.place).collect();
        assert_eq!((&places[..], last.text), (&["modes/19999".to_owned()][..], None));
        assert!(refused(config(long, &Part { section: None, after: Some(1) })).contains("`section`"));
    }

    #[test]
    fn a_mode_to_switch_to_is_called_mode_and_its_older_name_is_taken() {
        for args in [r#"{ "mode": "Mix" }"#, r#"{ "name": "Mix" }"#] {
            let Switch { mode } = conductor_feature::json::read(args).expect("it is taken");
            assert_eq!(mode, "Mix");
        }
        assert!(conductor_feature::json::read::<Switch>(r#"{ "mode": "Mix", "name": "Play" }"#).is_err());
        let schema: Value = serde_json::from_str(&conductor_feature::json::schema::<Switch>()).expect("JSON");
        assert!(schema["properties"].get("mode").is_some() && schema["properties"].get("name").is_none(), "{schema}");
    }
}
