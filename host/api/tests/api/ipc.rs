//! The commands of the daemon that came before, one by one.

use std::fs;

use serde_json::{Value, json};

use super::client::{Answer, Lines, post};
use super::{SHOW, Stage, code};

fn asked(stage: &Stage, command: Value) -> Answer {
    post(stage.home(), "/v1/ipc", &command)
}

fn done(stage: &Stage, command: Value) -> Value {
    let (status, answer) = asked(stage, command.clone());
    assert_eq!(status, 200, "{command}: {answer}");
    answer
}

// ADR-009 §8
#[test]
fn whoever_asks_is_answered() {
    let stage = Stage::new(SHOW);
    for args in [json!({}), json!(null)] {
        assert_eq!(done(&stage, json!({ "command": "Ping", "args": args }))["data"]["pong"], true);
    }
    assert_eq!(done(&stage, json!({ "command": "Ping" }))["data"]["pong"], true);
    assert_eq!(done(&stage, json!({ "command": "Status" }))["data"]["pid"], std::process::id());
    let valid =
        |args: Value| done(&stage, json!({ "command": "ValidateConfig", "args": args }))["data"]["valid"].take();
    assert_eq!((valid(json!({ "text": "[[modes]]" })), valid(json!({}))), (json!(false), json!(true)));
    assert_eq!(done(&stage, json!({ "command": "ValidateConfig" }))["data"]["errors"], 0);
    fs::write(stage.home().join("config.toml"), "[[modes]]\nname = 'Other'\n").unwrap();
    assert_eq!(done(&stage, json!({ "command": "Reload" }))["data"]["rules"], 0);
    assert_eq!(stage.host().modes().1, ["Other"]);
    let stop = stage.host().stop_asked();
    assert!(stop.try_recv().is_err());
    assert_eq!(done(&stage, json!({ "command": "Stop" }))["data"]["stopping"], true);
    assert!(stop.try_recv().is_ok(), "the owner of the host is notified");
}

// ADR-009 §8: the devices, all at once; and those commands that knew of one.
#[test]
fn devices_are_listed_muted_and_heard_again() {
    let stage = Stage::new("[device]\nname = 'Pads'\n");
    let devices = || done(&stage, json!({ "command": "GetDevice" }))["data"].take();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while devices()["connected"] != true {
        assert!(std::time::Instant::now() < deadline, "{:#}", devices());
    }
    let listed = done(&stage, json!({ "command": "ListDevices" }))["data"].take();
    assert_eq!(listed, devices()["devices"]);
    let entry = json!({ "device_id": "main", "port_name": "Pads", "port_index": 0, "alias": "main",
        "listening": true, "events_count": 0 });
    assert_eq!(listed, json!([entry]));
    let heard = |device: &str, enabled: bool| json!({ "command": "SetDeviceEnabled", "args": { "device_id": device, "enabled": enabled } });
    let answer = done(&stage, heard("main", false));
    assert_eq!(answer, json!({ "data": { "device_id": "main", "enabled": false } }), "it is not deprecated");
    assert_eq!(devices()["device_count"], 0);
    done(&stage, heard("main", true));
    assert_eq!(devices()["device_count"], 1);
    assert_eq!(code(&asked(&stage, heard("other", true))), (404, "not_found"));

    let left = done(&stage, json!({ "command": "DisconnectDevice" }));
    assert!(left["warning"].as_str().unwrap().contains("deprecated"), "{left}");
    assert_eq!(devices()["connected"], false);
    let chosen = done(&stage, json!({ "command": "SetDevice", "args": { "port": 0 } }));
    assert!(chosen["warning"].as_str().unwrap().contains("use SetDeviceEnabled"), "{chosen}");
    assert_eq!(devices()["connected"], true);
    assert_eq!(code(&asked(&stage, json!({ "command": "SetDevice", "args": { "port": 7 } }))), (404, "not_found"));
}

// ADR-009 §8: calls of features go through the gate, and fail with a reason if no feature has the tool.
#[test]
fn tools_and_learn_go_through_the_gate() {
    let stage = Stage::new(SHOW);
    for (command, tool) in [
        (json!({ "command": "StartMidiLearn" }), "conductor_start_midi_learn"),
        (json!({ "command": "StopMidiLearn", "args": {} }), "conductor_stop_midi_learn"),
        (json!({ "command": "GetMidiLearnEvents", "args": { "limit": 5 } }), "conductor_get_captured_events"),
        (json!({ "command": "ExecuteMcpTool", "args": { "name": "conductor_dance" } }), "conductor_dance"),
    ] {
        let answer = asked(&stage, command);
        assert_eq!(code(&answer), (404, "not_found"));
        assert!(answer.1["error"].as_str().unwrap().contains(tool), "{answer:?}");
    }
}

// ADR-009 §8, PLN-2
#[test]
fn plans_are_listed_and_decided_about() {
    let stage = Stage::new(SHOW);
    assert_eq!(done(&stage, json!({ "command": "ListPendingPlans" }))["data"], json!([]));
    for command in ["ApplyPlan", "RejectPlan"] {
        let answer = asked(&stage, json!({ "command": command, "args": { "plan_id": "0123" } }));
        assert_eq!(code(&answer), (404, "not_found"));
    }
    // They are the same plans: what waits is listed by every door.
    let _lines = Lines::open(stage.home(), "?kinds=plan");
    for wrong in [
        json!({ "command": "Dance" }),
        json!({ "command": "ApplyPlan" }),
        json!({ "command": "ApplyPlan", "args": { "plan": "x" } }),
        json!({ "args": {} }),
        json!({ "command": "ApplyPlan", "args": ["0123"] }),
        json!({ "command": "Ping", "args": { "loud": true } }),
        json!({ "command": "Ping", "loud": true }),
        json!(["Ping"]),
    ] {
        assert_eq!(asked(&stage, wrong.clone()).0, 422, "{wrong}");
    }
}
