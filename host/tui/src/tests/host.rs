//! What a host says, made up: every text in it is the one that is given.

use conductor_api::types::StreamItem;
use conductor_chat::record::Recorded;
use conductor_config_view::ConfigView;
use serde_json::{Value, json};

use crate::api::{Act, FromHost, Query, Reply, Request};

/// The id of the plan that waits.
pub(super) const PLAN: &str = "0123456789abcdef0123456789abcdef";

/// A status in which names, reasons and warnings are this text.
pub(super) fn status(text: &str) -> Value {
    let port = |name: &str, bindings: &[&str], state: Value| {
        json!({
            "name": name, "key": name, "backend": "alsa", "protocol": "midi", "direction": "input", "metadata": {},
            "device": bindings.first().unwrap_or(&name), "label": name, "binding": bindings.first(), "bindings": bindings,
            "told_apart_by": null, "connected": state == "open", "state": state, "muted": false,
            "events": 7, "dropped": 0, "malformed": 1, "lost": 0, "unheard": 0,
        })
    };
    let binding = |alias: &str, health: &str, ports: &[&str]| {
        let state = if ports.is_empty() { "unbound" } else { "bound" };
        json!({
            "alias": alias, "protocol": "midi", "health": health, "muted": false,
            "input": { "state": state, "ports": ports, "matched_by": null, "problem": null }, "output": null,
            "help": if ports.is_empty() { Some(text) } else { None },
        })
    };
    json!({
        "version": "1.2.3", "pid": 42, "uptime": 90_000_000_000_u64, "config": "~/.conductor/config.toml",
        "mode": text, "modes": [text, "Mix"], "rules": 3, "warnings": [text], "events": 12, "failures": 1,
        "last_failure": text, "front": text,
        "ports": [port("Pads MIDI 1", &["pads"], json!("open")), port(text, &[], json!("idle"))],
        "bindings": [binding("pads", "green", &["Pads MIDI 1"]), binding(text, "red", &[])],
        "unreachable": [["jack", text]],
        "features": [
            { "name": "osc-output", "package": { "id": "builtin:osc-output", "version": "1.0.0", "actions": ["OscSend"] },
              "performed": 3, "memory": 1_500_000 },
            { "name": text, "refused": text, "denied": [text] },
            { "name": "slow", "quarantine": 12, "last_failure": text, "installed": true },
        ],
        "disabled_features": ["artnet-output"],
    })
}

/// What is given as JSON, as the shell has it.
pub(super) fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

pub(super) fn connected(text: &str) -> FromHost {
    FromHost::Connected(Box::new(read(status(text))))
}

pub(super) fn item(what: Value) -> FromHost {
    let mut item = what;
    item["cursor"] = json!("1");
    FromHost::Item(Box::new(read::<StreamItem>(item)))
}

pub(super) fn event(device: &str, event: &str, rules: &[&str]) -> FromHost {
    item(json!({ "kind": "event", "at": 89_500_000_000_u64, "device": device, "event": event, "rules": rules }))
}

/// One thing of each kind that a stream has.
pub(super) fn items(text: &str) -> Vec<FromHost> {
    let mut all = vec![event(text, &format!("osc /{text} 1"), &[text]), event("pads", "note-on 36 100 ch 9", &[])];
    all.extend(
        [
            json!({ "kind": "failure", "at": 5, "rule": text, "worker": text, "reason": text }),
            json!({ "kind": "mode", "mode": text }),
            json!({ "kind": "message", "feature": text, "sink": "alert", "text": text }),
            json!({ "kind": "port", "text": text, "trouble": true }),
            json!({ "kind": "reload", "text": text, "trouble": false }),
            json!({ "kind": "plan", "step": "proposed", "plan": PLAN, "who": text, "description": text }),
            json!({ "kind": "lock", "locked": true, "by": text }),
            json!({ "kind": "chat", "conversation": 1, "number": 9, "event": { "kind": "message", "text": text } }),
            json!({ "kind": "model", "model": text, "error": text }),
            json!({ "kind": "gap", "lost": 3 }),
            json!({ "kind": "gap", "lost": null }),
        ]
        .map(item),
    );
    all
}

/// Mappings with this text everywhere.
pub(super) fn config(text: &str) -> ConfigView {
    config_with(text, "")
}

/// The same, with this line in the first mapping.
pub(super) fn config_with(text: &str, line: &str) -> ConfigView {
    let text = toml::Value::String(text.to_owned());
    let config = format!(
        "[[modes]]\nname = {text}\n[[modes.mappings]]\nname = {text}\n\
         trigger = {{ type = 'Note', note = 36, device = 'pads' }}\naction = {{ type = 'OscSend', address = {text} }}\n{line}\n\
         [[modes.mappings]]\ndescription = {text}\ntrigger = {{ type = 'CC', cc = 7, device = {text} }}\n\
         action = {{ type = {text} }}\n\
         [[global_mappings]]\ntrigger = {{ type = 'OscMessage', address = '/go' }}\naction = {{ type = 'ModeChange', mode = {text} }}\n"
    );
    ConfigView::read("config.toml", &config).unwrap()
}

/// A plan with its risk, as lists and as the screen have it.
pub(super) fn plan(text: &str, level: &str) -> Value {
    json!({
        "id": PLAN, "proposer": text, "caller": "socket:owner", "description": text,
        "changes": [{ "path": ["modes", "0"], "value": 1 }], "created": 0, "expires": 0, "base": "", "touched_files": [text],
        "diff": format!("--- a\n+++ b\n@@ -1 +1,2 @@\n {text}\n+note = 36\n"),
        "risk": { "level": level, "notes": [text] },
        "rehearsal": { "events": 12, "different": 1, "shown": [
            { "at": 1, "device": text, "event": text, "was": [], "would_be": [text] },
        ] },
    })
}

fn summary(text: &str, level: &str) -> Value {
    json!([{
        "id": PLAN, "proposer": text, "caller": "socket:owner", "description": text, "changes": 1, "created": 0, "expires": 0,
        "base": "", "diff_bytes": 1, "risk": { "level": level, "notes": 1 },
    }])
}

/// All that a conversation may have.
fn conversation(text: &str) -> Value {
    let events = [
        json!({ "kind": "message", "text": text }),
        json!({ "kind": "asked", "model": text }),
        json!({ "kind": "text", "text": format!("# {text}\n\n* **{text}** `{text}`\n\n{text}") }),
        json!({ "kind": "call", "call": "1", "tool": text, "args": text }),
        json!({ "kind": "call_ended", "call": "1", "tool": text, "result": text }),
        json!({ "kind": "call", "call": "2", "tool": text, "args": "{}" }),
        json!({ "kind": "plan", "call": "1", "plan": PLAN }),
        json!({ "kind": "notification", "sequence": 1, "feature": text, "text": text, "left_out": 2 }),
        json!({ "kind": "approval", "call": "2", "id": "9", "tool": text, "effect": text, "shown": text, "phrase": text,
                "expires_in_ms": 1000 }),
    ];
    let number = |(at, mut event): (usize, Value)| {
        event["number"] = json!(at + 1);
        event["at"] = json!(0);
        event
    };
    events.into_iter().enumerate().map(number).collect()
}

/// The last event of a turn.
pub(super) fn end_of_turn(number: u64) -> Vec<Recorded> {
    read(json!([{ "number": number, "at": 0, "kind": "turn_ended", "outcome": "done" }]))
}

/// The answer that a control of this kind was moved, in the session that [`answer`] begins.
pub(super) fn moved(kind: &str) -> FromHost {
    let control = json!({ "device": "desk", "kind": kind, "evidence": [], "last": "cc 7 1", "toml": "trigger = {}" });
    let learned = read(json!({ "controls": [control], "unbound": [] }));
    let request = Box::new(Request::Query(Query::Learned { session: 5 }));
    FromHost::Answered { request, result: Ok(Reply::Learned(learned)) }
}

/// The answer that this pad was pressed and let go, in the same session: of a binding, or of a port without one.
pub(super) fn pressed(device: &str, is_bound: bool) -> FromHost {
    let toml = format!("trigger = {{ type = 'Note', note = 36, channel = 9, device = '{device}' }}");
    let control =
        json!({ "device": device, "kind": "pad", "evidence": [], "last": "note-off 36 0 ch 9", "toml": toml });
    let port = json!({ "port": device, "could_be": null, "matcher": null });
    let unbound = if is_bound { json!([]) } else { json!([port]) };
    let learned = read(json!({ "controls": [control], "unbound": unbound }));
    let request = Box::new(Request::Query(Query::Learned { session: 5 }));
    FromHost::Answered { request, result: Ok(Reply::Learned(learned)) }
}

/// A status in which there is an output with this name beside everything else.
pub(super) fn status_with_output(text: &str, name: &str) -> FromHost {
    let mut status = status(text);
    let mut port = status["ports"][1].clone();
    for (key, value) in [("name", name), ("device", name), ("label", name), ("direction", "output")] {
        port[key] = json!(value);
    }
    status["ports"].as_array_mut().unwrap().push(port);
    FromHost::Connected(Box::new(read(status)))
}

/// The answer that the pads of this device have a light.
pub(super) fn lights(device: &str) -> FromHost {
    let profile = json!({
        "lights": [{ "id": "pads", "message": "note", "values": ["off = 0", "green = 1", "red = 3"] }],
        "series": [{ "kind": "pad", "controls": ["pad 1: note 36 ch 9"], "light": "pads", "modes": [] }],
    });
    let lights = conductor_learn_mapping::device_light::lights(&profile);
    let request = Box::new(Request::Query(Query::Lights(device.to_owned())));
    FromHost::Answered { request, result: Ok(Reply::Lights(device.to_owned(), lights)) }
}

/// What a host answers.
pub(super) fn answer(request: &Request, text: &str, level: &str) -> Result<Reply, String> {
    let strings = |value: Value| -> Vec<(String, String)> { read(value) };
    Ok(match request {
        Request::Query(query) => match query {
            Query::Status => Reply::Status(read(status(text))),
            Query::Plans => Reply::Plans(read(summary(text, level))),
            Query::Steps => Reply::Steps { undo: Ok(text.to_owned()), redo: Err(text.to_owned()) },
            Query::Config => Reply::Config(Box::new(config(text))),
            Query::Actions => Reply::Actions(strings(json!([["OscSend", text], [text, text]]))),
            Query::DisabledFeatures => Reply::DisabledFeatures(vec![format!("{text} 2")]),
            Query::ActionKeys(action) => {
                let schema = json!({ "properties": { text: { "description": text } }, "required": [text] });
                Reply::ActionKeys(action.clone(), schema)
            }
            Query::Lights(_) => return Err(text.to_owned()),
            Query::Conversations => {
                let list = json!([{ "id": 1, "title": text, "model": text, "created": 0, "changed": 0, "last": 9 }]);
                Reply::Conversations(read(list))
            }
            Query::Plan(_) => Reply::Plan(read(plan(text, level))),
            Query::Conversation { after: 0, .. } => Reply::Conversation(read(conversation(text))),
            Query::Conversation { .. } => Reply::Conversation(Vec::new()),
            Query::Explain { .. } => {
                let rule = |fires| crate::api::Explained { rule: text.to_owned(), fires, why: text.to_owned() };
                Reply::Explained(vec![rule(true), rule(false)])
            }
            Query::Learned { .. } => Reply::Learned(read(json!({
                "controls": [{ "device": text, "kind": text, "evidence": [text], "last": text, "toml": text,
                               "gestures": [{ "kind": text, "evidence": text, "toml": text }] }],
                "unbound": [{ "port": text, "could_be": text, "matcher": null }],
            }))),
        },
        Request::Act(Act::Begin) => Reply::Begun(1),
        Request::Act(Act::Listen { .. }) => Reply::Listening(5),
        Request::Act(Act::Propose(_) | Act::SetUp { .. } | Act::ChangeAction { .. } | Act::ProposeBy { .. }) => {
            Reply::Proposed(PLAN.to_owned())
        }
        Request::Act(_) => Reply::Done(text.to_owned()),
    })
}
