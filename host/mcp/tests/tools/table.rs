//! The table: for each tool a call that succeeds, what has to come of it, and calls that don't.

use conductor_ports::SysExIdentity;
use serde_json::{Value, json};

use crate::Case;
use crate::stage::Stage;

/// An entry: the tool without `conductor_`, arguments, what is right, and what is wrong.
macro_rules! case {
    ($tool:literal, $args:tt, $check:expr $(, before $before:expr)? $(, wrong [$($wrong:tt => $words:literal),* $(,)?])? $(,)?) => {{
        #[allow(unused_mut, reason = "most entries have more")]
        let mut case = Case {
            tool: concat!("conductor_", $tool),
            args: json!($args),
            before: |_| {},
            check: $check,
            wrong: vec![$($((json!($wrong), $words)),*)?],
        };
        $(case.before = $before;)?
        case
    }};
}

/// The plan that waits: what it says, and a line of its diff.
#[track_caller]
fn proposes(stage: &Stage, says: &str, line: &str) {
    let (description, diff) = stage.plan();
    assert!(description.contains(says), "{description}");
    assert!(diff.lines().any(|found| found.trim_end() == line), "no line {line:?} in\n{diff}");
}

#[track_caller]
fn holds(list: &Value, key: &str, value: &str) {
    let entries = list.as_array().unwrap_or_else(|| panic!("{list} is no list"));
    assert!(entries.iter().any(|entry| entry[key] == value), "no entry with {key} = {value} in {list:#}");
}

fn hit_a_pad(stage: &Stage) {
    stage.play("Pads", &[0x99, 36, 100]);
    stage.until("the mode is changed", || stage.mode() == "Mix");
}

/// Begins to learn, and turns an encoder of a device without a name.
fn turn_a_knob(stage: &Stage, start: &str) {
    stage.call(start, json!({})).unwrap();
    for value in [1, 1, 127] {
        stage.play("Loose Knobs", &[0xb0, 16, value]);
    }
}

/// Turns two encoders of a device without a name, both ways, and hits a pad of another.
fn turn_knobs(stage: &Stage) {
    for controller in [16, 17, 16] {
        for value in [1, 1, 2, 127, 127, 126] {
            stage.play("Loose Knobs", &[0xb0, controller, value]);
        }
    }
    hit_a_pad(stage);
}

fn midi_learn(stage: &Stage) {
    turn_a_knob(stage, "conductor_start_midi_learn");
}

/// Begins to learn, and plays one of two twins, of which no rule hears anything.
fn learn(stage: &Stage) {
    turn_a_knob(stage, "conductor_start_learn");
    assert!(stage.ports.play("twin:1-2", &[0x90, 60, 100]));
    stage.until("the twin's discarded event is counted", || {
        stage.host.status().ports.ports.iter().any(|port| port.port.name == "Twin" && port.unheard > 0)
    });
}

fn learned(_: &Stage, result: &Value) {
    let controls = result["controls"].as_array().unwrap();
    let control = controls.iter().find(|control| control["device"] == "Loose Knobs").unwrap();
    assert_eq!((&control["kind"], &control["events"]), (&json!("encoder"), &json!(3)));
    let toml = control["toml"].as_str().unwrap();
    assert!(toml.contains("type = \"EncoderTurn\"") && toml.contains("cc = 16"), "{toml}");
    holds(&result["unbound"], "port", "Loose Knobs");
}

fn learned_with_twin(stage: &Stage, result: &Value) {
    learned(stage, result);
    let control = &result["controls"][0];
    assert_eq!((&control["device"], &control["kind"]), (&json!("Twin #2"), &json!("key")), "{result:#}");
    let twins: Vec<&Value> =
        result["unbound"].as_array().unwrap().iter().filter(|unbound| unbound["could_be"] == "twin").collect();
    let [twin] = twins[..] else { panic!("one of the twins was played: {twins:?}") };
    let matcher: Value = serde_json::from_str(twin["matcher"].as_str().unwrap()).unwrap();
    assert_eq!(matcher, json!({ "type": "usb_path", "value": "1-2" }));
    assert!(result["next"].as_str().unwrap().contains("conductor_update_device_identity of twin"));
}

fn muted(stage: &Stage, device: &str) -> bool {
    stage.host.status().ports.bindings.iter().any(|binding| binding.alias == device && binding.muted)
}

fn pads_are_muted(stage: &Stage) {
    stage.host.mute("pads", true).unwrap();
}

const IDENTITY: &[u8] = &[0xf0, 0x7e, 0, 6, 2, 0, 0x21, 9, 0, 0x2c, 2, 0, 1, 0, 0, 0, 0xf7];

/// The number of the first work item.
fn item(stage: &Stage) {
    stage.call("work_item_create", json!({ "title": "More reverb" })).unwrap();
}

fn work_items() -> Vec<Case> {
    let mut cases = vec![
        case!("s_list", {}, |_, result| holds(&result["items"], "title", "More reverb"), before item),
        case!("_create", { "title": "Less" }, |_, result| assert_eq!(result["number"], 1), wrong [{} => "missing field"]),
        case!("_comment", { "number": 1, "comment": "On vocals." }, |_, result| assert_eq!(result["number"], 1),
            before item, wrong [{ "number": 99, "comment": "?" } => "99"]),
        case!("_complete", { "number": 1 }, |_, result| assert!(!result["done"].is_null()),
            before item, wrong [{ "number": 99 } => "99"]),
    ];
    for case in &mut cases {
        case.tool = match case.tool {
            "conductor_s_list" => "work_items_list",
            "conductor__create" => "work_item_create",
            "conductor__comment" => "work_item_comment",
            _ => "work_item_complete",
        };
    }
    cases
}

/// Every entry.
pub fn cases() -> Vec<Case> {
    [work_items(), status(), mappings(), bindings(), profiles(), hardware(), learning(), library()]
        .into_iter()
        .flatten()
        .collect()
}

fn status() -> Vec<Case> {
    vec![
        case!("get_status", {}, |_, result| {
            assert_eq!(
                (&result["mode"], &result["modes"], &result["rules"]),
                (&json!("Play"), &json!(["Play", "Mix"]), &json!(2))
            );
        }),
        case!("list_features", {}, |_, result| holds(&result["features"], "name", "status-tools")),
        case!("feature_info", { "name": "mapping-tools" }, |_, result| {
            assert_eq!(result["id"], "builtin:mapping-tools");
            assert!(result["tools"].as_array().unwrap().contains(&json!({ "name": "conductor_get_modes", "tier": "read-only" })));
        }, wrong [{ "name": "mapping-tolls" } => "did you mean \"mapping-tools\"?", {} => "missing field `name`"]),
        case!("get_captured_events", { "device": "pads" }, |_, result| {
            let [event] = &result["events"].as_array().unwrap()[..] else { panic!("one event") };
            assert_eq!((&event["device"], &event["event"]), (&json!("pads"), &json!("note-on 36 100 ch 9")));
            assert_eq!(event["fired"], json!(["ModeChange to Mix"]));
        }, before hit_a_pad, wrong [
            { "limit": 0 } => "not from 1 to 256",
            { "limit": "many" } => "invalid type",
            { "device": "pad" } => "did you mean \"pads\"?",
        ]),
        case!("explain_event", { "device": "pads", "event": "note-on 36 100", "mode": "Mix" }, |_, result| {
            assert_eq!((&result["rules"][0]["fires"], result["rules"].as_array().unwrap().len()), (&json!(false), 1));
            assert!(result["rules"][0]["why"].as_str().unwrap().contains("is for the mode"));
            assert_eq!(result["next"], "no rule fires; each says why (the mode is \"Mix\")");
        }, wrong [
            { "device": "padz", "event": "clock" } => "there is no device \"padz\"; did you mean \"pads\"?",
            { "device": "pads", "event": "note-on" } => "note-on",
            { "device": "pads", "event": "clock", "mode": "Plai" } => "did you mean \"Play\"?",
            { "device": "pads", "event": "clock\n1s pads clock" } => "say one event",
        ]),
        case!("list_plans", {}, |_, result| assert_eq!(result["plans"], json!([]))),
        case!("validate_config", { "text": "[[modes]]\nname = 'a'\ncolour = 'red'\n" }, |_, result| {
            assert_eq!(result["valid"], false);
            let finding = &result["findings"][0];
            assert_eq!((&finding["severity"], &finding["line"]), (&json!("error"), &json!(3)));
            assert!(finding["help"].as_str().unwrap().contains("color"), "{finding}");
            assert!(result.get("duplicates").is_none(), "{result}");
        }, wrong [{ "text": 1 } => "invalid type"]),
        case!("enable_feature", { "name": "artnet-output" }, |stage, _| {
            proposes(stage, "Load the feature artnet-output.", "+enabled = true");
        }, wrong [{ "name": "artnet-outputs" } => "there is no feature", {} => "missing field"]),
        case!("disable_feature", { "name": "osc-output" }, |stage, _| {
            proposes(stage, "Don't load the feature osc-output.", "+enabled = false");
        }, wrong [{ "name": "osc-outptu" } => "did you mean \"osc-output\"?"]),
    ]
}

fn mappings() -> Vec<Case> {
    vec![
        case!("get_config", {}, |stage, result| {
            assert_eq!(result["text"], stage.host.config().as_str());
            let modes = stage.call("conductor_get_config", json!({ "section": "modes" })).unwrap();
            holds(&modes["entries"], "place", "modes/1");
            assert_eq!((&modes["entries"][1]["value"]["name"], modes.get("text")), (&json!("Mix"), None));
        }, wrong [
            { "section": "mode" } => "did you mean \"modes\"?",
            { "section": "modes/2" } => "there is nothing at \"modes/2\"",
            { "after": 1 } => "`section`",
        ]),
        case!("get_modes", {}, |_, result| {
            assert_eq!(result["active"], "Play");
            holds(&result["modes"], "name", "Mix");
        }),
        case!("list_mappings", {}, |_, result| {
            holds(&result["mappings"], "place", "modes/0/mappings/0");
            holds(&result["mappings"], "place", "global_mappings/0");
        }, wrong [{ "mode": "Plai" } => "there is no mode \"Plai\""]),
        case!("get_mapping", { "place": "modes/0/mappings/0" }, |_, result| {
            assert_eq!(result["mapping"]["description"], "kick");
        }, wrong [{ "place": "modes/9" } => "there is no mapping at", {} => "missing field `place`"]),
        case!("list_actions", { "type": "OscSend" }, |stage, result| {
            let actions = result["actions"].as_array().unwrap();
            assert_eq!((actions.len(), &actions[0]["feature"]), (1, &json!("osc-output")), "{result:#}");
            assert!(actions[0]["keys"]["properties"]["args"]["description"].as_str().unwrap().contains("expressions"));
            let all = stage.call("conductor_list_actions", json!({})).unwrap();
            holds(&all["actions"], "type", "SendMidi");
            holds(&all["actions"], "type", "OscSend");
            assert!(all["actions"][0].get("keys").is_none(), "{all:#}");
            let host = stage.call("conductor_list_actions", json!({ "type": "MidiForward" })).unwrap();
            assert!(host["actions"][0]["keys"]["$defs"]["MidiTransform"]["properties"]["curve"].is_object(), "{host:#}");
        }, wrong [{ "type": "OscSent" } => "did you mean \"OscSend\"?"]),
        case!("switch_mode", { "mode": "Mix" }, |stage, _| {
            stage.until("the mode is Mix", || stage.mode() == "Mix");
            // The argument's older name.
            stage.call("conductor_switch_mode", json!({ "name": "Play" })).unwrap();
            stage.until("the mode is Play", || stage.mode() == "Play");
        }, wrong [{ "mode": "mixx" } => "did you mean \"Mix\"?", {} => "missing field `mode`"]),
        case!("create_mapping", {
            "mode": "Mix",
            "trigger": { "type": "Note", "note": "40..43", "device": "pads" },
            "action": { "type": "SendMidi", "target": "synth", "message_type": "NoteOn", "note": "{note}", "velocity": 90 },
            "defer": true,
            "condition": { "type": "And", "conditions": [{ "type": "DayOfWeek", "days": ["friday"] }] },
            "feedback": { "fired": { "message_type": "NoteOn", "note": "{note}", "velocity": 127 } },
        }, |stage, result| {
            proposes(stage, "Add a mapping to mode Mix: SendMidi synth on Note 40..43 of \"pads\".", "+defer = true");
            proposes(stage, "Mix", "+trigger = { type = \"Note\", device = \"pads\", note = \"40..43\" }");
            assert_eq!(result["risk"], "raised", "lights are sent to");
            assert!(result["diff"].as_str().unwrap().contains("+[modes.mappings.feedback]") || result["diff"].as_str().unwrap().contains("+feedback"), "{result:#}");
            // Whoever asked: a model whose person decides in place, or one whose person is at a command line.
            let next = result["next"].as_str().unwrap();
            for way in ["in this conversation if it asks them", "conductor plan apply", "conductor undo"] {
                assert!(next.contains(way), "{result:#}");
            }
        },
        wrong [
            { "trigger": { "type": "Note", "note": 1 }, "action": { "type": "SendMidi", "target": "synth", "message_type": "CC", "valu": 1 } }
                => "SendMidi has no key \"valu\"; did you mean \"value\"?",
            { "trigger": { "type": "Note", "note": 1 }, "action": { "type": "Suppress" }, "condition": { "type": "ModeWas" } }
                => "there is no condition \"ModeWas\"; did you mean \"ModeIs\"?",
            { "trigger": { "type": "Note", "note": 1 }, "action": { "type": "Suppress" }, "feedback": { "lit": 1 } } => "unknown field `lit`",
            { "trigger": { "type": "Noet", "note": 1 }, "action": { "type": "Suppress" } } => "unknown variant `Noet`",
            { "trigger": { "type": "Note", "not": 1 }, "action": { "type": "Suppress" } } => "unknown field `not`",
            { "trigger": { "type": "Note", "note": 200 }, "action": { "type": "Suppress" } } => "127",
            { "trigger": { "type": "Note", "note": 1 }, "action": { "type": "Supress" } } => "Suppress",
            { "mode": "M", "trigger": { "type": "Note", "note": 1 }, "action": { "type": "Suppress" } } => "there is no mode",
            { "trigger": { "type": "Note", "note": 1 } } => "missing field `action`",
            { "trigger": { "type": "Note", "note": 1 }, "action": { "type": "Suppress" }, "consume": "yes" } => "boolean",
            { "trigger": { "type": "Note", "note": 1 }, "action": { "type": "Suppress" }, "priority": 3000000000_u64 }
                => "2147483647",
        ]),
        case!("update_mapping", {
            "place": "modes/0/mappings/0", "trigger": { "type": "LongPress", "note": 36 }, "priority": 1, "consume": true,
        }, |stage, _| proposes(stage, "Change the mapping \"kick\": ModeChange Mix on LongPress 36 of any device.", "+consume = true"),
        wrong [
            { "place": "modes/0/mappings/1" } => "there is no mapping at",
            { "place": "modes/0/mappings/0" } => "1 to 256 changes",
        ]),
        case!("delete_mapping", { "place": "modes/0/mappings/0" },
            |stage, _| proposes(stage, "Remove the mapping \"kick\": ModeChange Mix on Note 36 of \"pads\".", "-description = \"kick\""),
            wrong [{ "place": "kick" } => "there is no mapping at"]),
        case!("create_mode", { "name": "Solo" }, |stage, _| proposes(stage, "Add the mode Solo.", "+name = \"Solo\""),
            wrong [{ "name": "Mix" } => "a second mode is called"]),
        case!("delete_mode", { "name": "Play" }, |stage, _| proposes(stage, "Remove the mode Play.", "-name = \"Play\""),
            wrong [{ "name": "Plai" } => "there is no mode \"Plai\"", { "name": "Mix" } => "no mode is called \"Mix\""]),
        case!("batch_changes", { "description": "Both.", "changes": [
            { "path": "modes/1/name", "value": "Blend" },
            { "path": "modes/0/mappings/0/action/mode", "value": "Blend" },
            { "path": "profiles/0/mode", "value": "Blend" },
        ] }, |stage, _| proposes(stage, "Both.", "+name = \"Blend\""), wrong [
            { "description": "None.", "changes": [] } => "1 to 256 changes",
            { "description": "Grant.", "changes": [{ "path": "features/osc-output/grants/udp", "value": ["*:*"] }] } => "a person grants that",
            { "description": "Gate.", "changes": [{ "path": "tools/allowed", "value": ["*"] }] } => "a person writes that",
        ]),
        case!("preview_action", { "action": { "type": "Sequence", "actions": [
            { "type": "SendMidi", "target": "synth", "message_type": "CC", "cc": 20, "value": "{value}" },
        ] } }, |stage, result| {
            assert!(result["done"].as_str().unwrap().contains("Sequence"), "{result}");
            assert_eq!(stage.wait_for_sent(1)[0], [0xb0, 20, 127]);
        }, wrong [
            { "action": { "type": "SendMidi", "target": "synth" } } => "message_type",
            { "action": { "type": "Sned" } } => "Sned",
            {} => "missing field `action`",
        ]),
    ]
}

fn bindings() -> Vec<Case> {
    vec![
        case!("scan_ports", {}, |_, result| {
            holds(&result["ports"], "name", "Through 1");
            holds(&result["ports"], "binding", "pads");
        }),
        case!("list_discovered_ports", { "protocol": "midi", "direction": "input", "unbound": true }, |_, result| {
            holds(&result["ports"], "name", "Loose Knobs");
            assert!(result["ports"].as_array().unwrap().iter().all(|port| port["binding"].is_null()));
        }, wrong [{ "protocol": "usb" } => "unknown variant `usb`"]),
        case!("list_devices", {}, |_, result| {
            holds(&result["devices"], "name", "pads");
            holds(&result["devices"], "name", "Loose Knobs");
        }),
        case!("list_device_bindings", {}, |_, result| {
            let pads = &result["bindings"][0];
            assert_eq!(
                (&pads["alias"], &pads["health"], &pads["mappings"]),
                (&json!("pads"), &json!("green"), &json!(1))
            );
            assert_eq!(pads["matchers"], json!(["exact_name \"Pads\""]));
            let written = json!({ "matchers": [{ "type": "exact_name", "value": "Pads" }], "enabled": true });
            assert_eq!(pads["written"], written);
        }),
        case!("get_binding_health", { "alias": "twin" }, |_, result| {
            let twin = &result["bindings"][0];
            assert_eq!((&twin["health"], &twin["input"]["state"]), (&json!("amber"), &json!("ambiguous")));
            assert!(twin["help"].as_str().unwrap().contains("equally well"));
        }, wrong [{ "alias": "pad" } => "did you mean \"pads\"?"]),
        case!("suggest_binding", { "port": "Loose Knobs" }, |_, result| {
            assert_eq!(result["alias"], "loose-knobs");
            holds(&result["matchers"], "type", "exact_name");
            assert!(result["toml"].as_str().unwrap().contains("[[bindings]]\nalias = \"loose-knobs\""));
        }, wrong [{ "port": "Loose Knob" } => "did you mean \"Loose Knobs\"?", { "port": "Pads" } => "has a binding already"]),
        case!("set_device_enabled", { "device": "pads", "enabled": false }, |stage, _| assert!(muted(stage, "pads")),
            wrong [{ "device": "pad", "enabled": false } => "did you mean \"Pads\"?", { "device": "pads" } => "missing field `enabled`"]),
        case!("connect_device", { "device": "pads" }, |stage, _| assert!(!muted(stage, "pads")), before pads_are_muted,
            wrong [{ "device": "pad" } => "there is no device"]),
        case!("disconnect_device", { "device": "pads" }, |stage, _| assert!(muted(stage, "pads")),
            wrong [{} => "missing field `device`"]),
        case!("create_binding", { "alias": "desk", "protocol": "osc", "output": { "host": "127.0.0.1", "port": 9000 } },
        |stage, _| proposes(stage, "Add the binding desk.", "+alias = \"desk\""),
        wrong [
            { "alias": "pads" } => "there is a binding \"pads\" already",
            { "alias": "x", "protocol": "osc" } => "neither `input` nor `output`",
            { "alias": "x", "matchers": [{ "type": "name" }] } => "unknown variant `name`",
        ]),
        case!("create_device_identity", { "alias": "knobs", "matchers": [{ "type": "exact_name", "value": "Loose Knobs" }] },
        |stage, _| proposes(stage, "Add the binding knobs.", "+alias = \"knobs\""),
        wrong [
            { "alias": "knobs", "matchers": [] } => "conductor_suggest_binding",
            { "alias": "knobs", "matchers": [{ "type": "name_regex", "value": "(" }] } => "regular expression",
        ]),
        case!("update_device_identity", { "alias": "pads", "new_alias": "drums" }, |stage, _| {
            proposes(stage, "call it drums in 2 places", "+trigger = { type = \"Note\", note = 36, device = \"drums\" }");
        }, wrong [
            { "alias": "pad" } => "did you mean \"pads\"?",
            { "alias": "pads", "new_alias": "synth" } => "there is a binding \"synth\" already",
            { "alias": "pads" } => "nothing would change",
        ]),
        case!("delete_device_identity", { "alias": "pads" },
            |stage, _| proposes(stage, "Remove the binding pads, with 1 mapping: kick.", "-description = \"kick\""),
            wrong [{ "alias": "pad" } => "did you mean \"pads\"?"]),
    ]
}

fn profiles() -> Vec<Case> {
    vec![
        case!("list_profiles", {}, |_, result| {
            assert_eq!(result["profiles"], json!([{ "name": "live", "apps": ["Ableton Live"], "mode": "Mix" }]));
        }),
        case!("get_settings", {}, |_, result| {
            assert_eq!((&result["listen_mode"], &result["max_midi_ports"]), (&json!("all"), &json!(32)));
        }),
        case!("create_profile", { "name": "web", "apps": ["firefox"], "mode": "Play" },
        |stage, _| proposes(stage, "Add the profile web: Play for firefox.", "+name = \"web\""),
        wrong [
            { "name": "web", "apps": ["firefox"], "mode": "Plai" } => "did you mean \"Play\"?",
            { "name": "web", "apps": [], "mode": "Play" } => "apps",
            { "name": "live", "apps": ["x"], "mode": "Play" } => "a second profile is called",
        ]),
        case!("update_profile", { "name": "live", "title": "set" }, |stage, _| {
            proposes(stage, "Change the profile live.", "+title = \"set\"");
        }, wrong [{ "name": "life" } => "did you mean \"live\"?", { "name": "live", "mode": "M" } => "there is no mode"]),
        case!("update_settings", { "max_midi_ports": 8, "listen_mode": "configured" }, |stage, _| {
            proposes(stage, "Change settings.", "+max_midi_ports = 8");
        }, wrong [{ "max_midi_ports": 0 } => "max_midi_ports", { "listen_mode": "some" } => "unknown variant `some`", {} => "1 to 256 changes"]),
        case!("delete_profile", { "name": "live" }, |stage, _| {
            proposes(stage, "Remove the profile live.", "-name = \"live\"");
        }, wrong [{ "name": "life" } => "did you mean \"live\"?"]),
        case!("reset_config", {}, |stage, _| {
            proposes(stage, "Reset the configuration: remove", "-name = \"Play\"");
            assert!(!stage.plan().1.contains("-midi_out"), "what a person granted stays");
        }),
    ]
}

fn hardware() -> Vec<Case> {
    vec![
        case!("send_midi", { "target": "synth", "bytes": "90 3C 64" },
        |stage, _| assert_eq!(stage.wait_for_sent(1), [[0x90, 0x3c, 0x64]]),
        wrong [
            { "target": "synth", "bytes": "90 3" } => "is not hex",
            { "target": "synth", "bytes": "90 3C" } => "not one whole MIDI message",
            { "target": "synth", "bytes": "F0 7D F7" } => "conductor_send_sysex sends it",
            { "target": "sinth", "bytes": "90 3C 64" } => "open are synth",
        ]),
        case!("send_sysex", { "target": "synth", "bytes": "F0 7D 01 F7" },
        |stage, _| assert_eq!(stage.wait_for_sent(1), [[0xf0, 0x7d, 1, 0xf7]]),
        wrong [
            { "target": "synth", "bytes": "90 3C 64" } => "is no SysEx",
            { "target": "pads", "bytes": "F0 7D F7" } => "to \"pads\" are not granted",
        ]),
        case!("device_reset", { "target": "synth" }, |stage, _| {
            let sent = stage.wait_for_sent(48);
            assert!(sent.contains(&vec![0xb9, 123, 0]) && sent.contains(&vec![0xbf, 121, 0]));
        }, wrong [{ "target": "sinth" } => "open are synth"]),
        case!("probe_device_identity", { "target": "synth" }, |_, result| {
            let SysExIdentity { manufacturer, family, model } = SysExIdentity::of_reply(IDENTITY).unwrap();
            assert_eq!(result["identity"], json!({ "manufacturer": manufacturer, "family": family, "model": model }));
        }, before |stage| stage.answer_identity(IDENTITY), wrong [{ "target": "pads" } => "are not granted"]),
    ]
}

fn library() -> Vec<Case> {
    vec![
        case!("search_devices", { "words": "akai pads" }, |_, result| {
            holds(&result["devices"], "id", "akai-apc-mini");
            assert!(result["devices"].as_array().unwrap().len() <= 20 && result["more"].is_u64(), "{result:#}");
        }, wrong [{} => "missing field `words`"]),
        case!("get_device_profile", { "id": "akai-apc-mini" }, |_, result| {
            let pads = &result["series"][0];
            assert_eq!((&pads["kind"], &pads["controls"][0]), (&json!("pad"), &json!("pad 1: note 56")));
            assert_eq!(result["lights"][0]["values"][1], "green = 1");
            holds(&result["matchers"], "type", "name_regex");
            assert!(!result["sources"].as_array().unwrap().is_empty());
        }, wrong [
            { "id": "akai-apc-minni" } => "did you mean \"akai-apc-mini\"?",
            { "id": "no such controller" } => "conductor_search_devices finds one",
            { "port": "Loose Knobs" } => "no profile fits",
            { "port": "Loose Knob" } => "did you mean \"Loose Knobs\"?",
            {} => "either `id` or `port`",
            { "id": "akai-apc-mini", "port": "Pads" } => "either `id` or `port`",
        ]),
        case!("suggest_setup", { "port": "Loose Knobs" }, |stage, result| {
            // Nothing but what was heard says what it is.
            proposes(stage, "A first setup for Loose Knobs", "+alias = \"loose-knobs\"");
            let parts = result["parts"].as_array().unwrap();
            assert_eq!(parts[0]["path"], "bindings/3");
            assert!(parts[0]["reason"].as_str().unwrap().contains("no profile fits it; what it sends is of encoders"));
            let louder = parts[1]["reason"].as_str().unwrap();
            assert!(louder.contains("turns the volume up") && louder.contains("1 is a step, 127 one back"), "{louder}");
            assert_eq!(parts[1]["confidence"], "medium", "{result:#}");
        }, before turn_knobs, wrong [
            { "port": "Loose Knob" } => "did you mean \"Loose Knobs\"?",
            { "port": "Pads" } => "nothing is known to begin with",
            { "port": "Pads", "alias": "drums" } => "leave out the alias",
            { "port": "Loose Knobs", "profile": "akai-apc-minni" } => "did you mean \"akai-apc-mini\"?",
            { "port": "Loose Knobs", "alias": "pads", "profile": "akai-apc-mini" } => "pads",
        ]),
    ]
}

fn learning() -> Vec<Case> {
    let listens = |_: &Stage, result: &Value| assert_eq!(result["listening"], true);
    vec![
        case!("fingerprint", { "device": "Loose Knobs", "seconds": 60 }, |_, result| {
            let device = &result["devices"][0];
            assert_eq!((&device["device"], &device["events"]), (&json!("Loose Knobs"), &json!(18)));
            let source = &device["sources"][0];
            assert_eq!((&source["kind"], &source["channels"]), (&json!("encoders"), &json!([0])), "{result:#}");
            assert!(source["evidence"][0].as_str().unwrap().contains("1 is a step, 127 one back"), "{source}");
        }, before turn_knobs, wrong [
            { "device": "Loose Knob" } => "did you mean \"Loose Knobs\"?",
            { "seconds": 0 } => "it is 1 to 300",
            { "seconds": 301 } => "it is 1 to 300",
        ]),
        case!("start_midi_learn", { "device": "pads" }, listens, wrong [{ "device": "pad" } => "did you mean \"pads\"?"]),
        case!("stop_midi_learn", {}, learned, before midi_learn, wrong [{} => "conductor_start_midi_learn begins"]),
        case!("start_learn", {}, listens, wrong [{ "device": "pad" } => "did you mean \"pads\"?"]),
        case!("stop_learn", { "keep": false }, learned_with_twin, before learn, wrong [
            {} => "conductor_start_learn begins",
            { "session": 99 } => "no session 99 is learning",
        ]),
    ]
}
