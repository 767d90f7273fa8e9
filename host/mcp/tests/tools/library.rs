//! A device whose profile is known, through the tools of agents: its profile, and a first setup.

use conductor_ports::Direction;
use conductor_ports::status::PortState;
use serde_json::json;

use crate::stage::Stage;

/// A stage with a controller that the library knows, both its directions.
fn stage() -> Stage {
    let stage = Stage::new();
    for direction in [Direction::Input, Direction::Output] {
        stage.ports.plug("APC MINI MIDI 1", direction);
    }
    stage.until("the controller is there", || {
        let ports = stage.host.status().ports.ports;
        ports.iter().filter(|port| port.port.name == "APC MINI MIDI 1").count() == 2
    });
    stage
}

// LRN-3, LRN-4
#[test]
fn a_port_has_the_profile_of_its_device() {
    let stage = stage();
    let profile = stage.call("conductor_get_device_profile", json!({ "port": "APC MINI MIDI 1" })).unwrap();
    assert_eq!(profile["id"], "akai-apc-mini");
    let named = stage.call("conductor_search_devices", json!({ "words": "09e8:0028" })).unwrap();
    assert_eq!(named["devices"][0]["id"], "akai-apc-mini");
}

// LRN-3: the binding first, lights with it, each with its reason and its confidence; and a person applies it.
#[test]
fn a_setup_of_a_known_device_binds_it_and_lights_it() {
    let stage = stage();
    let setup = stage.call("conductor_suggest_setup", json!({ "port": "APC MINI MIDI 1", "alias": "grid" })).unwrap();
    assert_eq!(setup["profile"], "akai-apc-mini");
    let parts = setup["parts"].as_array().unwrap();
    assert_eq!((&parts[0]["path"], &parts[0]["confidence"]), (&json!("bindings/3"), &json!("medium")));
    assert!(parts[1]["reason"].as_str().unwrap().contains("pad 1 to pad 8 light up green"), "{setup:#}");
    stage.apply(setup["plan"].as_str().unwrap()).unwrap();
    stage.until("the controller is open under its name", || stage.ports.is_open("APC MINI MIDI 1"));
    let lights = stage.ports.sent("APC MINI MIDI 1").unwrap();
    stage.play("APC MINI MIDI 1", &[0x90, 56, 100]);
    let lit = lights.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
    assert_eq!(lit, [0x90, 56, 1], "green");
}

// LRN-4: who maps a device that is not there binds it by what its profile says of its ports.
#[test]
fn the_matchers_of_a_profile_bind_its_device() {
    let stage = Stage::new();
    let profile = stage.call("conductor_get_device_profile", json!({ "id": "akai-apc-mini" })).unwrap();
    let args = json!({ "alias": "grid", "matchers": profile["matchers"] });
    let made = stage.call("conductor_create_device_identity", args).unwrap();
    stage.apply(made["plan"].as_str().unwrap()).unwrap();
    for direction in [Direction::Input, Direction::Output] {
        stage.ports.plug("APC MINI MIDI 1", direction);
    }
    stage.until("both directions have the binding", || {
        let ports = stage.host.status().ports.ports;
        ports.iter().filter(|port| port.binding.as_deref() == Some("grid")).count() == 2
    });
}

// LRN-3: what is not plugged in is set up by its profile, and is open as soon as it is there.
#[test]
fn a_setup_of_a_known_device_can_be_made_before_it_is_plugged_in() {
    let stage = Stage::new();
    let args = json!({ "profile": "akai-apc-mini", "alias": "grid" });
    let setup = stage.call("conductor_suggest_setup", args.clone()).unwrap();
    assert!(setup["parts"][0]["reason"].as_str().unwrap().contains("when it is plugged in"), "{setup:#}");
    stage.apply(setup["plan"].as_str().unwrap()).unwrap();
    let profile = stage.call("conductor_get_device_profile", json!({ "port": "grid" })).unwrap();
    assert_eq!(profile["id"], "akai-apc-mini", "its binding says what it is");
    for direction in [Direction::Input, Direction::Output] {
        stage.ports.plug("APC MINI MIDI 1", direction);
    }
    stage.until("both directions are open", || {
        let ports = stage.host.status().ports.ports;
        ports.iter().filter(|port| port.port.name == "APC MINI MIDI 1" && port.state == PortState::Open).count() == 2
    });
    let lights = stage.ports.sent("APC MINI MIDI 1").unwrap();
    stage.play("APC MINI MIDI 1", &[0x90, 56, 100]);
    let lit = lights.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
    assert_eq!(lit, [0x90, 56, 1], "green");

    let error = stage.call("conductor_suggest_setup", args.clone()).unwrap_err();
    assert!(error.contains("it is set up already"), "{error}");
    let error =
        stage.call("conductor_suggest_setup", json!({ "profile": "akai-apc-mini", "alias": "apc" })).unwrap_err();
    assert!(error.contains("has a binding, \"grid\""), "{error}");
    let error = stage.call("conductor_suggest_setup", json!({ "profile": "touchosc-mk1-mix16" })).unwrap_err();
    assert!(error.contains("conductor_create_binding"), "{error}");
    let error = stage.call("conductor_suggest_setup", json!({})).unwrap_err();
    assert!(error.contains("`port` or `profile`"), "{error}");
}

// LRN-3: who wants no lights gets none.
#[test]
fn a_setup_can_be_without_lights() {
    let stage = stage();
    let args = json!({ "port": "APC MINI MIDI 1", "alias": "grid", "lights": false });
    let setup = stage.call("conductor_suggest_setup", args).unwrap();
    let paths: Vec<&str> = setup["parts"].as_array().unwrap().iter().filter_map(|part| part["path"].as_str()).collect();
    assert_eq!(paths, ["bindings/3"], "an APC mini has no transport to map: {setup:#}");
    assert!(!setup["diff"].as_str().unwrap().contains("SendMidi"), "{setup:#}");
}

// LRN-3: what is bound is not bound again, whether it is there or not, and what is mapped is not mapped again.
#[test]
fn a_setup_of_a_bound_device_is_of_mappings_and_lights_alone() {
    for is_there in [true, false] {
        let stage = if is_there { stage() } else { Stage::new() };
        let matcher = json!({ "type": "exact_name", "value": "APC MINI MIDI 1" });
        let args = json!({ "alias": "grid", "matchers": [matcher] });
        let bound = stage.call("conductor_create_device_identity", args).unwrap();
        stage.apply(bound["plan"].as_str().unwrap()).unwrap();
        stage.until("the port has its binding", || {
            let ports = stage.host.status().ports.ports;
            !is_there || ports.iter().any(|port| port.binding.as_deref() == Some("grid"))
        });
        let args = json!({ "profile": "akai-apc-mini" });
        let setup = stage.call("conductor_suggest_setup", args.clone()).unwrap();
        let parts = setup["parts"].as_array().unwrap();
        let paths: Vec<&str> = parts.iter().filter_map(|part| part["path"].as_str()).collect();
        assert!(!paths.is_empty(), "{setup:#}");
        assert!(paths.iter().all(|path| path.starts_with("global_mappings/")), "{is_there}: {paths:?}");
        assert!(setup["diff"].as_str().unwrap().contains("device = \"grid\""), "{setup:#}");
        assert!(stage.plan().0.contains("which is bound as grid"), "{setup:#}");
        stage.apply(setup["plan"].as_str().unwrap()).unwrap();
        let error = stage.call("conductor_suggest_setup", args).unwrap_err();
        assert!(error.contains("it is set up already"), "{error}");
    }
}

// A name that no system has, and that would fill an answer.
#[test]
fn a_port_with_a_name_of_64_kib_gets_a_short_one_and_no_long_answer() {
    let stage = Stage::new();
    let name = "nanoKONTROL2".repeat(65_536 / 12 + 1);
    stage.ports.plug(&name, Direction::Input);
    stage.until("the port is there", || {
        stage.host.status().ports.ports.iter().any(|port| port.port.name.len() > 65_000)
    });
    let error = stage.call("conductor_get_device_profile", json!({ "port": name })).unwrap_err();
    assert!(error.contains("no profile fits") && error.len() < 400, "{error:.400}");
    assert!(error.contains("conductor_search_devices finds one"), "{error}");
    let setup = stage.call("conductor_suggest_setup", json!({ "port": name })).unwrap();
    let reason = setup["parts"][0]["reason"].as_str().unwrap();
    assert!(reason.len() < 400, "{} bytes: {reason:.400}", reason.len());
    assert!(reason.contains("is called nanokontrol2nanokontrol2:"), "{reason}");
}

// What a person says that a port is counts more than its name.
#[test]
fn a_profile_can_be_named_for_a_port_that_none_fits() {
    let stage = stage();
    let args = json!({ "port": "Loose Knobs", "profile": "korg-nanokontrol2" });
    let setup = stage.call("conductor_suggest_setup", args).unwrap();
    let reasons: Vec<&str> =
        setup["parts"].as_array().unwrap().iter().filter_map(|part| part["reason"].as_str()).collect();
    assert!(reasons.iter().any(|reason| reason.contains("the button play (cc 41)")), "{reasons:?}");
}
