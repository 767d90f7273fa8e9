//! From a control that was learned to the plan that maps it, with a binding first where its port has none.
//!
//! It knows the tools that learn and propose by what they answer, and calls them through a function that it is given: a
//! program at a terminal, a shell and a test each have their own.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

pub mod action_form;
pub mod action_keys;
pub mod device_light;
pub mod known_actions;
pub mod likeness;

use std::collections::BTreeMap;
use std::convert::Infallible;

use device_light::DeviceLight;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum LearnError<E> {
    /// What a person asked for can't be: it says what is allowed.
    #[error("{0}")]
    Wrong(String),
    /// What was learned, or what a tool answered, leads to no mapping.
    #[error("{0}")]
    Failed(String),
    /// A tool could not be called.
    #[error("{0}")]
    Tool(E),
}

/// A session in which something can be moved: what the tool `conductor_start_learn` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Started {
    /// Its number, which `conductor_stop_learn` takes.
    pub session: u64,
}

/// What was moved: what the tool `conductor_stop_learn` answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Learned {
    /// The last one moved first.
    pub controls: Vec<Control>,
    /// Ports that have no binding for themselves, on which something was moved.
    pub unbound: Vec<Unbound>,
}

/// A control that was moved.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Control {
    /// What its events are from: a binding's alias, or a port's own name.
    pub device: String,
    /// What it is: `fader`, `key`.
    pub kind: String,
    /// What speaks for that.
    pub evidence: Vec<String>,
    /// Its last event, in the words of the timeline language.
    pub last: String,
    /// A trigger for it, as the configuration has it.
    pub toml: String,
    /// What else was done with it.
    #[serde(default)]
    pub gestures: Vec<Gesture>,
}

/// What was done with a control, beyond moving it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Gesture {
    /// What it is: `long-press`, `chord`.
    pub kind: String,
    /// What speaks for that.
    pub evidence: String,
    /// A trigger for it, as the configuration has it.
    pub toml: String,
}

/// A port that has no binding for itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Unbound {
    /// Its name.
    pub port: String,
    /// The binding that it matches as well as another port does.
    pub could_be: Option<String>,
    /// JSON, for this port alone; `None` if no stable property differs from its twin's.
    pub matcher: Option<String>,
}

impl Control {
    /// The control that an event is of, in the words of the timeline language. `None` if it takes more than one event to tell:
    /// what a wheel or an address pattern is.
    pub fn of_event(device: &str, event: &str) -> Option<Self> {
        let (kind, keys) = match Note::named(event) {
            Some(Note { number, channel }) => ("key", format!("type = \"Note\", note = {number}, channel = {channel}")),
            None => {
                let controller = event.strip_prefix("cc ")?;
                let number: u8 = controller.split(' ').next()?.parse().ok()?;
                let channel =
                    controller.rsplit_once(" ch ").map_or(Some(0), |(_, channel)| channel.parse::<u8>().ok())?;
                ("controller", format!("type = \"CC\", cc = {number}, channel = {channel}"))
            }
        };
        let toml = format!("trigger = {{ {keys}, device = {} }}", toml::Value::from(device));
        let (device, kind) = (device.to_owned(), kind.to_owned());
        let evidence = vec![format!("it sent {event}")];
        Some(Self { device, kind, evidence, last: event.to_owned(), toml, gestures: Vec::new() })
    }

    /// The gesture that a mapping of the control waits for, unless the control alone is wanted. `None` if none was made.
    pub fn gesture(&self) -> Option<&Gesture> {
        self.gestures.iter().find(|gesture| gesture.kind != "velocity-layer")
    }
}

impl Learned {
    /// Whether anything was moved.
    pub fn is_something(&self) -> bool {
        !self.controls.is_empty() || !self.unbound.is_empty()
    }

    /// The port of a control, if it has no binding for itself.
    pub fn unbound_port_of(&self, control: &Control) -> Option<&Unbound> {
        self.unbound.iter().find(|unbound| unbound.port == control.device)
    }
}

/// What the tool `conductor_suggest_binding` answers.
#[derive(Debug, Deserialize)]
struct SuggestedBinding {
    alias: String,
    /// The binding, as the configuration has it.
    toml: String,
}

/// What the tool `conductor_list_actions` answers for one type.
#[derive(Debug, Deserialize)]
struct KnownActions {
    actions: Vec<KnownAction>,
}

#[derive(Debug, Deserialize)]
struct KnownAction {
    /// A JSON Schema, as the action's author wrote it.
    keys: Option<Value>,
}

/// What counts of a JSON Schema of keys.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Keys {
    required: Vec<String>,
    properties: BTreeMap<String, Value>,
}

/// Reads what a tool answered.
///
/// # Errors
/// [`LearnError::Failed`] if it is otherwise.
pub fn understood<T: DeserializeOwned, E>(tool: &str, answer: &Value) -> Result<T, LearnError<E>> {
    let failed = |error: serde_json::Error| {
        LearnError::Failed(format!("what the tool {tool} returned is not understood: {error}"))
    };
    T::deserialize(answer).map_err(failed)
}

/// A note of MIDI on its channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// 0 to 127.
    pub number: u8,
    /// 0 to 15, as on the wire.
    pub channel: u8,
}

impl Note {
    /// The note of an event or of a message, in the words of the timeline language: `note-on 36 100 ch 9`, `note 36 ch 9`. `None` if
    /// it is of something else.
    pub fn named(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        if !matches!(words.next()?, "note" | "note-on" | "note-off") {
            return None;
        }
        let number = words.next()?.parse().ok()?;
        let channel = words.skip_while(|word| *word != "ch").nth(1);
        let channel = channel.map_or(Some(0), |channel| channel.parse().ok())?;
        Some(Self { number, channel })
    }

    /// The note whose press a mapping of this control waits for. `None` if it waits for something else, that no light can follow.
    pub fn pressed(control: &Control) -> Option<Self> {
        let trigger = trigger::<Infallible>(control).ok()?;
        let is = |key: &str, value: &str| trigger.get(key).and_then(Value::as_str) == Some(value);
        let is_press = (is("type", "Note") || is("type", "VelocityRange")) && !is("on", "release");
        Self::named(&control.last).filter(|_| is_press)
    }
}

/// A light that is on while its control is held.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldLight {
    /// Whether a controller of the note's number sets it, and not the note.
    pub is_controller: bool,
    /// Where it is not the control's.
    pub channel: Option<u8>,
    /// What it shows while the control is held.
    pub on: u8,
    /// What its profile calls that. `None` if it has no name for it.
    pub colour: Option<String>,
    /// What it shows otherwise.
    pub off: u8,
    /// The matcher of the output that the device's binding gets; `None` if it has one.
    pub output: Option<Value>,
}

impl HeldLight {
    /// A light that shows this value, as a profile says how it is set, where one does. Its output is there.
    pub fn shown(known: Option<&DeviceLight>, on: u8) -> Self {
        Self {
            is_controller: known.is_some_and(|light| light.is_controller),
            channel: known.and_then(|light| light.channel),
            on,
            colour: known.and_then(|light| light.name_of(on)).map(str::to_owned),
            off: known.map_or(0, DeviceLight::off),
            output: None,
        }
    }

    /// The `feedback` of a mapping for this note.
    pub fn feedback(&self, note: Note) -> Value {
        let (number, channel) = (note.number, self.channel.unwrap_or(note.channel));
        let shows = |value: u8| match self.is_controller {
            true => json!({ "message_type": "CC", "channel": channel, "cc": number, "value": value }),
            false => json!({ "message_type": "NoteOn", "channel": channel, "note": number, "velocity": value }),
        };
        json!({ "fired": shows(self.on), "idle": shows(self.off), "while_held": true })
    }
}

/// What a control is to do.
#[derive(Debug, Clone, Copy)]
pub struct MappingRequest<'a> {
    /// The action, as [`action`] makes it.
    pub action: &'a Value,
    /// What a person called the action, for the plan's description.
    pub text: &'a str,
    /// What the control is called.
    pub name: &'a str,
    /// The mode; `None` for every mode.
    pub mode: Option<&'a str>,
    /// Whether any device is meant, and not this one alone.
    pub any: bool,
    /// The control's light, of a mapping that waits for a press of a note ([`Note::pressed`]).
    pub light: Option<&'a HeldLight>,
}

/// Proposes a mapping of a control, and returns what the tool that proposes the plan answered. The mapping waits for the
/// gesture that was made of the control, if one was. `config` returns the text of the configuration in force, which may be
/// longer than the result of a tool; it is called only if the control's port has no binding, or the mapping has a light.
///
/// # Errors
/// [`LearnError::Wrong`] if there is no such mode; [`LearnError::Failed`] if the port, or the light's output, can't be bound by a
/// plan.
pub fn propose<E>(
    call: &mut dyn FnMut(&str, &Value) -> Result<Value, E>,
    config: impl FnOnce() -> Result<String, E>,
    learned: &Learned,
    control: &Control,
    wanted: MappingRequest<'_>,
) -> Result<Value, LearnError<E>> {
    let mut trigger = trigger(control)?;
    let light = wanted.light.zip(Note::pressed(control));
    let unbound = learned.unbound_port_of(control);
    // The tool that makes one mapping knows of no light that follows a press.
    let together = match (unbound, light) {
        (None, None) => None,
        _ => {
            let config = parsed(&config().map_err(LearnError::Tool)?)?;
            let (mut changes, alias) = match unbound {
                Some(unbound) => bind(call, &config, unbound)?,
                None => (Vec::new(), control.device.clone()),
            };
            if let Some(output) = light.and_then(|(light, _)| light.output.as_ref()) {
                bind_output(&mut changes, &config, &alias, output)?;
            }
            Some((changes, alias, mapping_place(&config, wanted.mode)?))
        }
    };
    let device = together.as_ref().map_or(&control.device, |(_, alias, _)| alias);
    trigger.remove("device");
    if !wanted.any {
        trigger.insert("device".into(), json!(device));
    }
    let what = format!("{} of {}: {}", wanted.name, control.device, wanted.text);
    let mut mapping = json!({ "trigger": trigger, "action": wanted.action });
    if unbound.is_none() {
        mapping["description"] = json!(what);
    }
    let Some((mut changes, device, place)) = together else {
        if let Some(mode) = wanted.mode {
            mapping["mode"] = json!(mode);
        }
        return call("conductor_create_mapping", &mapping).map_err(LearnError::Tool);
    };
    if let Some((light, note)) = light {
        mapping["feedback"] = light.feedback(note);
        if wanted.any {
            mapping["feedback"]["target"] = json!(device);
        }
    }
    let lit = light.map_or_else(String::new, |(light, _)| {
        format!(", with its light {} while it is held", light.colour.as_deref().unwrap_or("on"))
    });
    let description = match unbound {
        Some(_) => format!("Bind {device}, and map {what}{lit}."),
        None if !changes.is_empty() => format!("Bind an output to {device}, and map {what}{lit}."),
        None => format!("Map {what}{lit}."),
    };
    changes.push(json!({ "path": place, "value": mapping }));
    let batch = json!({ "description": description, "changes": changes });
    call("conductor_batch_changes", &batch).map_err(LearnError::Tool)
}

/// The action that a text means: `TYPE`, `TYPE VALUE` where the type has one key that it needs, or
/// `TYPE { key = value, ... }`.
///
/// # Errors
/// [`LearnError::Wrong`]: what is wrong with it, and what the type takes.
pub fn action<E>(call: &mut dyn FnMut(&str, &Value) -> Result<Value, E>, text: &str) -> Result<Value, LearnError<E>> {
    let (kind, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    let rest = rest.trim();
    if rest.is_empty() {
        return Ok(json!({ "type": kind }));
    }
    if rest.starts_with('{') {
        let keys: Result<Value, _> = toml::from_str(&format!("keys = {rest}"));
        // Without the excerpt: it would show more than was typed.
        let wrong = |error: toml::de::Error| {
            let why = error.message();
            LearnError::Wrong(format!("the keys of {kind}: {why}; write {kind} {{ key = \"text\", other = 1 }}"))
        };
        let keys = keys.map_err(wrong)?;
        let mut action = keys["keys"].clone();
        action["type"] = json!(kind);
        return Ok(action);
    }
    let known: KnownActions = ask(call, "conductor_list_actions", &json!({ "type": kind }))?;
    let schema = known.actions.into_iter().next().and_then(|action| action.keys).unwrap_or_default();
    // A schema of another form, such as `true`, has no keys.
    let keys = Keys::deserialize(&schema).unwrap_or_default();
    let needed: Vec<&str> = keys.required.iter().map(String::as_str).filter(|key| *key != "type").collect();
    let [key] = needed[..] else {
        let keys = if needed.is_empty() { "no key that it needs".to_owned() } else { needed.join(", ") };
        return Err(LearnError::Wrong(format!("{kind} has {keys}: write {kind} {{ key = value }}")));
    };
    let value = match keys.properties.get(key).and_then(|schema| schema.get("type")).and_then(Value::as_str) {
        Some("array") => json!(rest.split_whitespace().collect::<Vec<_>>()),
        Some("integer") => {
            json!(rest.parse::<i64>().map_err(|error| LearnError::Wrong(format!("{key}: {error}")))?)
        }
        _ => json!(rest),
    };
    Ok(json!({ "type": kind, key: value }))
}

/// Calls a tool, and reads its answer.
fn ask<T: DeserializeOwned, E>(
    call: &mut dyn FnMut(&str, &Value) -> Result<Value, E>,
    tool: &str,
    args: &Value,
) -> Result<T, LearnError<E>> {
    understood(tool, &call(tool, args).map_err(LearnError::Tool)?)
}

/// TOML as JSON.
fn parsed<E>(text: &str) -> Result<Value, LearnError<E>> {
    toml::from_str(text).map_err(|error| LearnError::Failed(format!("the configuration can't be read: {error}")))
}

/// The trigger of what was done: of a gesture, if one was made, and else of the control.
fn trigger<E>(control: &Control) -> Result<Map<String, Value>, LearnError<E>> {
    let text = control.gesture().map_or(&control.toml, |gesture| &gesture.toml);
    match parsed(text)?.get("trigger") {
        Some(Value::Object(trigger)) => Ok(trigger.clone()),
        _ => Err(LearnError::Failed(format!("what the tool returned is no trigger: {text}"))),
    }
}

/// How many entries a list of the configuration has.
fn count(list: Option<&Value>) -> usize {
    list.and_then(Value::as_array).map_or(0, Vec::len)
}

/// Where the next mapping goes: past the last of a mode, or of all modes.
fn mapping_place<E>(config: &Value, mode: Option<&str>) -> Result<String, LearnError<E>> {
    let Some(mode) = mode else { return Ok(format!("global_mappings/{}", count(config.get("global_mappings")))) };
    let modes = config.get("modes").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let found = modes.iter().position(|known| known["name"] == mode);
    let place = found.ok_or_else(|| {
        let known: Vec<&str> = modes.iter().filter_map(|known| known["name"].as_str()).collect();
        LearnError::Wrong(format!("there is no mode {mode:?}; there are {}", known.join(", ")))
    })?;
    Ok(format!("modes/{place}/mappings/{}", count(modes[place].get("mappings"))))
}

/// The changes that give a port a binding, and its alias.
fn bind<E>(
    call: &mut dyn FnMut(&str, &Value) -> Result<Value, E>,
    config: &Value,
    unbound: &Unbound,
) -> Result<(Vec<Value>, String), LearnError<E>> {
    let bindings = config.get("bindings").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let Some(alias) = &unbound.could_be else {
        let asked = json!({ "port": unbound.port });
        let SuggestedBinding { alias, toml } = ask(call, "conductor_suggest_binding", &asked)?;
        let written: Value = parsed(&toml)?;
        let Some(binding) = written.get("bindings").and_then(|bindings| bindings.get(0)) else {
            return Err(LearnError::Failed(format!("no binding is suggested for {}", unbound.port)));
        };
        let change = json!({ "path": format!("bindings/{}", bindings.len()), "value": binding });
        return Ok((vec![change], alias));
    };
    let by_hand = || {
        let port = &unbound.port;
        LearnError::Failed(format!("bind it first: `conductor bindings pin {alias} {port:?}`"))
    };
    let matcher: Value =
        unbound.matcher.as_deref().and_then(|text| serde_json::from_str(text).ok()).ok_or_else(by_hand)?;
    let place = bindings.iter().position(|binding| binding["alias"] == *alias).ok_or_else(by_hand)?;
    let mut matchers = bindings[place].get("matchers").and_then(Value::as_array).cloned().ok_or_else(by_hand)?;
    // The most specific decides.
    matchers.insert(0, matcher);
    Ok((vec![json!({ "path": format!("bindings/{place}/matchers"), "value": matchers })], alias.clone()))
}

/// Gives a binding the output that this matcher tells, unless another one is written: the binding that one of the changes makes, or
/// one of the configuration.
fn bind_output<E>(changes: &mut Vec<Value>, config: &Value, alias: &str, matcher: &Value) -> Result<(), LearnError<E>> {
    let output = json!({ "matchers": [matcher] });
    if let Some(change) = changes.iter_mut().find(|change| change["value"]["alias"] == alias) {
        change["value"]["output"] = output;
        return Ok(());
    }
    let bindings = config.get("bindings").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let Some(place) = bindings.iter().position(|binding| binding["alias"] == alias) else {
        return Err(LearnError::Failed(format!(
            "no plan can give {alias} an output, since it is not among the [[bindings]] of config.toml: write its `output` there, or \
             leave the light out"
        )));
    };
    if bindings[place].get("output").is_none() {
        changes.push(json!({ "path": format!("bindings/{place}/output"), "value": output }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_tells_a_key_and_a_controller() {
        let toml = |event: &str| Control::of_event("a \"b\"", event).map(|control| control.toml);
        let read = |event: &str| -> toml::Table { toml::from_str(&toml(event).unwrap()).unwrap() };
        let trigger = |text: &str| -> toml::Table { toml::from_str(text).unwrap() };
        assert_eq!(
            read("note-off 36 0 ch 9"),
            trigger("trigger = { type = 'Note', note = 36, channel = 9, device = 'a \"b\"' }")
        );
        assert_eq!(read("cc 7 1"), trigger("trigger = { type = 'CC', cc = 7, channel = 0, device = 'a \"b\"' }"));
        for other in ["pitch-bend 8192", "osc /go 1", "cc", "cc x 1", ""] {
            assert_eq!(toml(other), None, "{other:?}");
        }
    }

    /// Tools of a host with a mode Play, and what was asked of them.
    fn tools(asked: &mut Vec<(String, Value)>) -> impl FnMut(&str, &Value) -> Result<Value, Infallible> {
        |name, args| {
            asked.push((name.to_owned(), args.clone()));
            Ok(match name {
                "conductor_suggest_binding" => json!({
                    "alias": "pads", "toml": "[[bindings]]\nalias = 'pads'\nmatchers = [{ type = 'exact_name', value = 'P' }]",
                }),
                "conductor_list_actions" => {
                    let properties = json!({ "type": {}, "mode": { "type": "string" }, "keys": { "type": "array" } });
                    let needed = if args["type"] == "ModeChange" { json!(["type", "mode"]) } else { json!(["keys"]) };
                    json!({ "actions": [{ "keys": { "required": needed, "properties": properties } }] })
                }
                _ => json!({ "plan": "0123" }),
            })
        }
    }

    fn moved(unbound: bool) -> Learned {
        let control = Control {
            device: "P".into(),
            kind: "pad".into(),
            evidence: Vec::new(),
            last: "note-on 36 100".into(),
            toml: "trigger = { type = 'Note', note = 36, device = 'P' }".into(),
            gestures: Vec::new(),
        };
        let port = Unbound { port: "P".into(), could_be: None, matcher: None };
        Learned { controls: vec![control], unbound: if unbound { vec![port] } else { Vec::new() } }
    }

    fn proposed(unbound: bool, any: bool) -> (String, Value) {
        let mut asked = Vec::new();
        let learned = moved(unbound);
        let action = json!({ "type": "Suppress" });
        let wanted =
            MappingRequest { action: &action, text: "Suppress", name: "pad 1", mode: Some("Play"), any, light: None };
        let config = || {
            assert!(unbound, "what has a binding needs nothing of the configuration");
            Ok("[[modes]]\nname = 'Play'\n[[modes.mappings]]\nname = 'x'\n".to_owned())
        };
        let plan = propose(&mut tools(&mut asked), config, &learned, &learned.controls[0], wanted).unwrap();
        assert_eq!(plan["plan"], "0123");
        asked.pop().unwrap()
    }

    #[test]
    fn a_control_of_a_bound_device_is_mapped() {
        let (tool, args) = proposed(false, false);
        assert_eq!(tool, "conductor_create_mapping");
        assert_eq!(args["trigger"], json!({ "type": "Note", "note": 36, "device": "P" }));
        assert_eq!((&args["mode"], &args["description"]), (&json!("Play"), &json!("pad 1 of P: Suppress")));
        assert_eq!(proposed(false, true).1["trigger"], json!({ "type": "Note", "note": 36 }));
    }

    #[test]
    fn a_port_without_a_binding_is_bound_in_the_same_plan() {
        let (tool, args) = proposed(true, false);
        assert_eq!(tool, "conductor_batch_changes");
        let paths: Vec<&Value> = args["changes"].as_array().unwrap().iter().map(|change| &change["path"]).collect();
        assert_eq!(paths, ["bindings/0", "modes/0/mappings/1"]);
        assert_eq!(args["changes"][1]["value"]["trigger"]["device"], "pads");
    }

    /// The changes of a plan with a light, of a device that has this configuration.
    fn lit(unbound: bool, any: bool, config: &str, output: Option<Value>) -> Result<Value, LearnError<Infallible>> {
        let mut asked = Vec::new();
        let mut learned = moved(unbound);
        learned.controls[0].last = "note-off 36 0 ch 9".into();
        let action = json!({ "type": "Suppress" });
        let colour = Some("green".to_owned());
        let light = HeldLight { is_controller: false, channel: None, on: 5, colour, off: 0, output };
        let light = Some(&light);
        let wanted = MappingRequest { action: &action, text: "Suppress", name: "pad", mode: None, any, light };
        propose(&mut tools(&mut asked), || Ok(config.to_owned()), &learned, &learned.controls[0], wanted)?;
        let (tool, args) = asked.pop().unwrap();
        assert_eq!(tool, "conductor_batch_changes");
        assert!(args["description"].as_str().unwrap().ends_with("with its light green while it is held."), "{args}");
        Ok(args["changes"].clone())
    }

    #[test]
    fn a_light_comes_with_the_mapping_and_its_output_in_the_same_plan() {
        let matcher = json!({ "type": "exact_name", "value": "P" });
        let output = json!({ "matchers": [matcher] });
        let shows = |velocity: u8| json!({ "message_type": "NoteOn", "channel": 9, "note": 36, "velocity": velocity });
        let feedback = json!({ "fired": shows(5), "idle": shows(0), "while_held": true });
        // A port that gets a binding gets it with the output.
        let changes = lit(true, false, "", Some(matcher.clone())).unwrap();
        assert_eq!((&changes[0]["path"], &changes[0]["value"]["output"]), (&json!("bindings/0"), &output));
        assert_eq!((&changes[1]["path"], &changes[1]["value"]["feedback"]), (&json!("global_mappings/0"), &feedback));
        // A binding without an output gets one, and one that has one keeps it.
        let bound = "[[bindings]]\nalias = 'x'\n[[bindings]]\nalias = 'P'\n";
        let changes = lit(false, false, bound, Some(matcher.clone())).unwrap();
        assert_eq!(changes[0], json!({ "path": "bindings/1/output", "value": output }));
        assert_eq!(changes[1]["value"]["feedback"], feedback);
        let sends = "[[bindings]]\nalias = 'P'\noutput = { matchers = [] }\n";
        for (config, output) in [(sends, Some(matcher.clone())), ("", None)] {
            let changes = lit(false, true, config, output).unwrap();
            assert_eq!(changes.as_array().unwrap().len(), 1, "{changes}");
            // A trigger for any device names none whose light it could be.
            assert_eq!(changes[0]["value"]["feedback"]["target"], "P");
        }
        let Err(LearnError::Failed(why)) = lit(false, false, "", Some(matcher)) else { panic!("there is no binding") };
        assert!(why.contains("write its `output` there"), "{why}");
    }

    #[test]
    fn a_light_follows_the_press_of_a_note_and_nothing_else() {
        let note = |number, channel| Some(Note { number, channel });
        assert_eq!(Note::named("note-on 36 100 ch 9"), note(36, 9));
        assert_eq!((Note::named("note 60"), Note::named("note-off 60 0")), (note(60, 0), note(60, 0)));
        assert_eq!((Note::named("cc 7 1 ch 9"), Note::named("note")), (None, None));
        let mut control = moved(false).controls.remove(0);
        assert_eq!(Note::pressed(&control), note(36, 0));
        for other in ["{ type = 'Note', note = 36, on = 'release' }", "{ type = 'LongPress', note = 36 }", "{}"] {
            control.toml = format!("trigger = {other}");
            assert_eq!(Note::pressed(&control), None, "{other}");
        }
    }

    #[test]
    fn a_gesture_decides_and_a_layer_does_not() {
        let gesture = |kind: &str| Gesture {
            kind: kind.into(),
            evidence: String::new(),
            toml: "trigger = { type = 'DoubleTap', note = 36 }".into(),
        };
        let mut control = moved(false).controls.remove(0);
        control.gestures = vec![gesture("velocity-layer")];
        assert_eq!(control.gesture(), None);
        assert_eq!(trigger::<Infallible>(&control).unwrap()["type"], "Note");
        control.gestures.push(gesture("double-tap"));
        assert_eq!(control.gesture(), Some(&gesture("double-tap")));
        assert_eq!(trigger::<Infallible>(&control).unwrap()["type"], "DoubleTap");
    }

    #[test]
    fn an_action_is_a_type_with_a_value_or_with_keys() {
        let mut asked = Vec::new();
        let mut call = tools(&mut asked);
        assert_eq!(action(&mut call, "Suppress").unwrap(), json!({ "type": "Suppress" }));
        assert_eq!(action(&mut call, "ModeChange Live").unwrap(), json!({ "type": "ModeChange", "mode": "Live" }));
        assert_eq!(action(&mut call, "Keystroke a b").unwrap(), json!({ "type": "Keystroke", "keys": ["a", "b"] }));
        assert_eq!(action(&mut call, "X { y = 1 }").unwrap(), json!({ "type": "X", "y": 1 }));
        for typed in ["X { y", "X { y = /verse }"] {
            let Err(LearnError::Wrong(why)) = action(&mut call, typed) else { panic!("{typed:?} is no TOML") };
            assert!(why.starts_with("the keys of X: ") && why.contains("write X { key = \"text\""), "{why}");
            assert!(!why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn what_a_tool_answers_otherwise_is_said_and_a_schema_may_have_no_keys() {
        let with = |answer: Value| action(&mut |_: &str, _: &Value| Ok::<_, Infallible>(answer.clone()), "X 1");
        let Err(LearnError::Failed(why)) = with(json!({ "text": "" })) else { panic!("it is no list of actions") };
        assert!(why.starts_with("what the tool conductor_list_actions returned is not understood: "), "{why}");
        for keys in [json!(true), json!(null), json!({ "required": ["type"] })] {
            let answer = json!({ "actions": [{ "keys": keys }] });
            assert!(matches!(with(answer), Err(LearnError::Wrong(why)) if why.contains("no key that it needs")));
        }
    }

    #[test]
    fn a_mapping_goes_past_the_last_one() {
        let text = "[[modes]]\nname = 'A'\n[[modes]]\nname = 'B'\n[[modes.mappings]]\nname = 'x'\n";
        let config = parsed::<Infallible>(text).unwrap();
        let place = |mode| mapping_place::<Infallible>(&config, mode);
        assert_eq!(place(None).unwrap(), "global_mappings/0");
        assert_eq!(place(Some("A")).unwrap(), "modes/0/mappings/0");
        assert_eq!(place(Some("B")).unwrap(), "modes/1/mappings/1");
        assert!(matches!(place(Some("C")), Err(LearnError::Wrong(why)) if why.contains("A, B")));
    }
}
