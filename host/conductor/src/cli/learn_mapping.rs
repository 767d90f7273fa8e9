//! `conductor learn --map`: from a control that was moved to a plan, with a binding first where the port has none.

use serde_json::{Map, Value, json};

use super::learn::{Control, Learned, Unbound};
use super::tool::asked;
use super::{Failure, Paths, named, plan};
use conductor_terminal as terminal;
use conductor_terminal::{errln, outln};

/// What is to be mapped, as the command line says.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    /// `TYPE`, `TYPE VALUE` or `TYPE { key = value }`.
    pub(super) action: &'a str,
    /// The mode; `None` for every mode.
    pub(super) mode: Option<&'a str>,
    /// Whether any device is meant; `None` to ask.
    pub(super) any: Option<bool>,
    /// Whether to print JSON, and not to ask.
    pub(super) json: bool,
}

/// Proposes a mapping of what was moved last, and has a person at a terminal decide.
pub(super) fn propose(places: &Paths, learned: &Learned, action: &Value, wanted: &Wanted<'_>) -> Result<(), Failure> {
    let Some(control) = learned.controls.first() else {
        return Err(failed("something was moved, but nothing that a mapping can wait for".into()));
    };
    let unbound = learned.unbound.iter().find(|unbound| unbound.port == control.device);
    let config = asked(places, "conductor_get_config", &json!({}))?;
    let config = parsed(config["text"].as_str().unwrap_or_default())?;
    let mut trigger = trigger(control)?;
    let is_any = match wanted.any {
        Some(any) => any,
        None if wanted.json || !terminal::is_interactive() => false,
        None => {
            let answer = terminal::ask(format_args!("For {:?} alone, or for any device? [this/any]", control.device))?;
            matches!(answer.as_str(), "a" | "any")
        }
    };
    let (mut changes, device) = match unbound {
        Some(unbound) => bind(places, &config, unbound)?,
        None => (Vec::new(), control.device.clone()),
    };
    trigger.remove("device");
    if !is_any {
        trigger.insert("device".into(), json!(device));
    }
    let name = named::event(&named::of_host(places), &control.device, &control.last);
    let name = name.as_deref().unwrap_or(&control.kind);
    let what = format!("{name} of {}: {}", control.device, wanted.action);
    let mapping = json!({ "trigger": trigger, "action": action });
    let result = if changes.is_empty() {
        let mut new = mapping;
        new["description"] = json!(what);
        if let Some(mode) = wanted.mode {
            new["mode"] = json!(mode);
        }
        asked(places, "conductor_create_mapping", &new)?
    } else {
        let place = mapping_place(&config, wanted.mode)?;
        changes.push(json!({ "path": place, "value": mapping }));
        let description = format!("Bind {device}, and map {what}.");
        asked(places, "conductor_batch_changes", &json!({ "description": description, "changes": changes }))?
    };
    if wanted.json {
        terminal::json(&result)?;
        return Ok(());
    }
    let Some(id) = result["plan"].as_str() else { return Err(failed("the tool proposed no plan".into())) };
    if terminal::is_interactive() {
        return plan::offer(places, id);
    }
    outln!("{id}");
    errln!("it waits: `conductor plan show {id}`, `conductor plan apply {id}`");
    Ok(())
}

fn failed(why: String) -> Failure {
    Failure::Failed(anyhow::Error::msg(why))
}

/// TOML as JSON.
fn parsed(text: &str) -> Result<Value, Failure> {
    toml::from_str(text).map_err(|error| failed(format!("the configuration can't be read: {error}")))
}

/// The trigger of what was done: of a gesture, if one was made, and else of the control.
fn trigger(control: &Control) -> Result<Map<String, Value>, Failure> {
    let gesture = control.gestures.iter().find(|gesture| gesture.kind != "velocity-layer");
    let text = gesture.map_or(&control.toml, |gesture| &gesture.toml);
    match parsed(text)?.get("trigger") {
        Some(Value::Object(trigger)) => Ok(trigger.clone()),
        _ => Err(failed(format!("what the tool returned is no trigger: {text}"))),
    }
}

/// How many entries a list of the configuration has.
fn count(list: Option<&Value>) -> usize {
    list.and_then(Value::as_array).map_or(0, Vec::len)
}

/// Where the next mapping goes: past the last of a mode, or of all modes.
fn mapping_place(config: &Value, mode: Option<&str>) -> Result<String, Failure> {
    let Some(mode) = mode else { return Ok(format!("global_mappings/{}", count(config.get("global_mappings")))) };
    let modes = config.get("modes").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let found = modes.iter().position(|known| known["name"] == mode);
    let place = found.ok_or_else(|| {
        let known: Vec<&str> = modes.iter().filter_map(|known| known["name"].as_str()).collect();
        Failure::Wrong(format!("conductor: there is no mode {mode:?}; there are {}", known.join(", ")))
    })?;
    Ok(format!("modes/{place}/mappings/{}", count(modes[place].get("mappings"))))
}

/// The changes that give a port a binding, and its alias.
fn bind(places: &Paths, config: &Value, unbound: &Unbound) -> Result<(Vec<Value>, String), Failure> {
    let bindings = config.get("bindings").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let Some(alias) = &unbound.could_be else {
        let suggested = asked(places, "conductor_suggest_binding", &json!({ "port": unbound.port }))?;
        let written = parsed(suggested["toml"].as_str().unwrap_or_default())?;
        let (Some(binding), Some(alias)) = (written["bindings"].get(0), suggested["alias"].as_str()) else {
            return Err(failed(format!("no binding is suggested for {}", unbound.port)));
        };
        let change = json!({ "path": format!("bindings/{}", bindings.len()), "value": binding });
        return Ok((vec![change], alias.to_owned()));
    };
    let by_hand = || failed(format!("bind it first: `conductor bindings pin {alias} {:?}`", unbound.port));
    let matcher: Value =
        unbound.matcher.as_deref().and_then(|text| serde_json::from_str(text).ok()).ok_or_else(by_hand)?;
    let place = bindings.iter().position(|binding| binding["alias"] == *alias).ok_or_else(by_hand)?;
    let mut matchers = bindings[place].get("matchers").and_then(Value::as_array).cloned().ok_or_else(by_hand)?;
    // The most specific decides.
    matchers.insert(0, matcher);
    Ok((vec![json!({ "path": format!("bindings/{place}/matchers"), "value": matchers })], alias.clone()))
}

/// The action that a text means: `TYPE`, `TYPE VALUE` where the type has one key that it needs, or
/// `TYPE { key = value, ... }`.
///
/// # Errors
/// What is wrong with it, and what the type takes.
pub(super) fn action(places: &Paths, text: &str) -> Result<Value, Failure> {
    let (kind, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    let rest = rest.trim();
    let wrong = |why: String| Failure::Wrong(format!("conductor: --map {text:?}: {why}"));
    if rest.is_empty() {
        return Ok(json!({ "type": kind }));
    }
    if rest.starts_with('{') {
        let keys: Value = toml::from_str(&format!("keys = {rest}")).map_err(|error| wrong(error.to_string()))?;
        let mut action = keys["keys"].clone();
        action["type"] = json!(kind);
        return Ok(action);
    }
    let known = asked(places, "conductor_list_actions", &json!({ "type": kind }))?;
    let schema = &known["actions"][0]["keys"];
    let needed = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let needed: Vec<&str> = needed.iter().filter_map(Value::as_str).filter(|key| *key != "type").collect();
    let [key] = needed[..] else {
        let keys = if needed.is_empty() { "no key that it needs".to_owned() } else { needed.join(", ") };
        return Err(wrong(format!("{kind} has {keys}: write {kind} {{ key = value }}")));
    };
    let value = match schema["properties"][key]["type"].as_str() {
        Some("array") => json!(rest.split_whitespace().collect::<Vec<_>>()),
        Some("integer") => json!(rest.parse::<i64>().map_err(|error| wrong(format!("{key}: {error}")))?),
        _ => json!(rest),
    };
    Ok(json!({ "type": kind, key: value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_goes_past_the_last_one() {
        let config = parsed("[[modes]]\nname = 'A'\n[[modes]]\nname = 'B'\n[[modes.mappings]]\nname = 'x'\n").unwrap();
        assert_eq!(mapping_place(&config, None).unwrap(), "global_mappings/0");
        assert_eq!(mapping_place(&config, Some("A")).unwrap(), "modes/0/mappings/0");
        assert_eq!(mapping_place(&config, Some("B")).unwrap(), "modes/1/mappings/1");
        assert!(matches!(mapping_place(&config, Some("C")), Err(Failure::Wrong(why)) if why.contains("A, B")));
    }
}
