//! Learning through a host that hears only what is bound: every kind of control from a bound, an unbound and an ambiguous
//! port, two sessions at once, and a fader that hides nothing.

use std::time::Duration;

use conductor_audit::caller::{Caller, Door, Scope};
use conductor_event::HidEvent;
use conductor_ports::{Direction, PortInfo, Protocol, UsbDevice};
use serde_json::{Value, json};

use crate::stage::{CONFIG, Stage};

/// The ports, and what their devices are called: bound, unbound, ambiguous with a twin.
const PORTS: [(&str, &str); 3] = [("Pads", "pads"), ("Loose Knobs", "Loose Knobs"), ("twin:1-2", "Twin #2")];

/// A stage whose host listens to bound ports alone.
fn stage() -> Stage {
    stage_with("")
}

/// The same with more in its configuration.
fn stage_with(more: &str) -> Stage {
    let stage = Stage::new();
    let text = CONFIG.replace("listen_mode = \"all\"", "listen_mode = \"configured\"") + more;
    std::fs::write(stage.file(), &text).unwrap();
    stage.host.reload(&text, "config.toml").unwrap_or_else(|wrong| panic!("{}", wrong.render(false)));
    stage.until("the unbound port is closed", || !stage.ports.is_open("Loose Knobs"));
    stage
}

fn start(stage: &Stage) -> Value {
    stage.call("conductor_start_learn", json!({})).unwrap()["session"].clone()
}

fn stop(stage: &Stage, session: &Value, keep: bool) -> Value {
    stage.call("conductor_stop_learn", json!({ "session": session, "keep": keep })).unwrap()
}

// LRN-1, LRN-5: what is played, what it is, and its trigger.
#[test]
fn every_kind_of_control_is_learned_from_every_kind_of_port() {
    let stage = stage();
    let kinds: [(&[u8], &str, &str); 14] = [
        (&[0x90, 60, 100, 0x80, 60, 0], "key", "\"Note\""),
        (&[0xB0, 20, 127, 0xB0, 20, 0], "button", "value_range = [127,127]"),
        (&[0xB0, 7, 10, 0xB0, 7, 14, 0xB0, 7, 19], "fader", "\"CC\""),
        (&[0xB0, 16, 1, 0xB0, 16, 1, 0xB0, 16, 127], "encoder", "\"twos_complement\""),
        (&[0xB0, 16, 65, 0xB0, 16, 65, 0xB0, 16, 63], "encoder", "\"binary_offset\""),
        (&[0xB0, 16, 1, 0xB0, 16, 65, 0xB0, 16, 65], "encoder", "\"signed_bit\""),
        (&[0xB0, 64, 127, 0xB0, 64, 0], "pedal", "cc = 64"),
        (&[0xB0, 1, 9, 0xB0, 33, 3, 0xB0, 1, 10, 0xB0, 33, 90], "fader", "\"CC14\""),
        (&[0xB0, 99, 1, 0xB0, 98, 8, 0xB0, 6, 12, 0xB0, 38, 5], "parameter", "\"NRPN\""),
        (&[0xB0, 101, 0, 0xB0, 100, 0, 0xB0, 6, 12], "registered-parameter", "\"RPN\""),
        (&[0xC0, 5], "program", "\"ProgramChange\""),
        (&[0xE0, 0, 70, 0xE0, 0, 64], "wheel", "\"PitchBend\""),
        (&[0xD0, 30, 0xD0, 90], "pressure", "\"Aftertouch\""),
        (&[0xF0, 0x43, 0x10, 0xF7], "sysex", "\"SysEx\""),
    ];
    for (port, device) in PORTS {
        for (bytes, kind, trigger) in kinds {
            let session = start(&stage);
            assert!(stage.ports.play(port, bytes), "{port} is not open");
            let learned = stop(&stage, &session, false);
            let control = &learned["controls"][0];
            assert_eq!((&control["device"], &control["kind"]), (&json!(device), &json!(kind)), "{learned:#}");
            assert_eq!(learned["controls"].as_array().unwrap().len(), 1, "{learned:#}");
            assert!(control["toml"].as_str().unwrap().contains(trigger), "{control:#}");
            assert!(!control["evidence"].as_array().unwrap().is_empty(), "{control:#}");
            assert_eq!(learned["unbound"].as_array().unwrap().is_empty(), device == "pads", "{learned:#}");
            assert!(learned["next"].as_str().unwrap().contains("for this device, or any?"), "{learned:#}");
        }
        let session = start(&stage);
        assert!(stage.ports.play(port, &[0x90, 60, 90, 0x90, 64, 90, 0x90, 67, 90]));
        let learned = stop(&stage, &session, false);
        let chord = &learned["controls"][0]["gestures"][0];
        assert_eq!(chord["kind"], "chord", "{learned:#}");
        assert!(chord["toml"].as_str().unwrap().contains("notes = [60,64,67]"), "{chord}");
    }
    stage.until("what was opened for it is closed again", || !stage.ports.is_open("Loose Knobs"));
}

// LRN-5
#[test]
fn two_learn_at_once_and_a_fader_hides_no_pad() {
    let stage = stage();
    let agent = start(&stage);
    assert!(stage.ports.play("Loose Knobs", &[0x99, 36, 100]));
    let person = start(&stage);
    for value in 0..6000_u32 {
        assert!(stage.ports.play("Loose Knobs", &[0xB0, 7, (value % 128) as u8]));
    }
    let learned = stop(&stage, &agent, true);
    let kinds = |learned: &Value| -> Vec<String> {
        let controls = learned["controls"].as_array().unwrap().iter();
        controls.map(|control| control["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds(&learned), ["fader", "key"], "{learned:#}");
    assert_eq!(kinds(&stop(&stage, &person, false)), ["fader"], "from its own beginning");
    assert!(stage.ports.is_open("Loose Knobs"), "one still learns");
    let nameless = stage.call("conductor_stop_learn", json!({ "keep": true })).unwrap();
    assert_eq!(kinds(&nameless), ["fader", "key"], "the only one that is left");
    stop(&stage, &agent, false);
    stage.until("no session listens any more", || !stage.ports.is_open("Loose Knobs"));
    let fired = stage.call("conductor_get_captured_events", json!({ "device": "Loose Knobs" })).unwrap();
    assert_eq!(fired["events"], json!([]), "no rule was asked");
}

// What 16 controllers send in a second at their limit, in which one pad is hit once.
#[test]
fn ten_thousand_events_from_16_ports_hide_no_pad() {
    const EVENTS: u32 = 10_000;
    let stage = stage();
    let ports: Vec<String> = (1..=16).map(|number| format!("Desk {number}")).collect();
    ports.iter().for_each(|port| stage.ports.plug(port, Direction::Input));
    stage.until("the desks are there", || {
        stage.host.status().ports.ports.iter().filter(|port| port.port.name.starts_with("Desk ")).count() == 16
    });
    let session = start(&stage);
    stage.until("they are listened to", || ports.iter().all(|port| stage.ports.is_open(port)));
    for event in 0..EVENTS {
        let port = &ports[event as usize % ports.len()];
        assert!(stage.ports.play(port, &[0xB0, 7, (event / 16 % 128) as u8]), "{port}");
        if event == EVENTS / 2 {
            assert!(stage.ports.play("Desk 9", &[0x99, 36, 100]));
        }
    }
    let learned = stop(&stage, &session, false);
    let controls = learned["controls"].as_array().unwrap();
    let of = |device: &str, kind: &str| {
        controls.iter().any(|control| control["device"] == device && control["kind"] == kind)
    };
    assert!(of("Desk 9", "key"), "{learned:#}");
    assert!(ports.iter().all(|port| of(port, "fader")), "{learned:#}");
    assert_eq!(controls.len(), 17);
}

/// The kinds of the gestures of the control that was moved last.
fn gestures(learned: &Value) -> Vec<&str> {
    let gestures = learned["controls"][0]["gestures"].as_array().unwrap().iter();
    gestures.map(|gesture| gesture["kind"].as_str().unwrap()).collect()
}

// LRN-1, LRN-5: what takes its time, or several presses.
#[test]
fn every_gesture_is_learned_from_every_kind_of_port() {
    let stage = stage();
    let tap = |velocity: u8| [0x99, 36, velocity, 0x89, 36, 0];
    for (port, device) in PORTS {
        let learn = |play: &dyn Fn()| {
            let session = start(&stage);
            play();
            let learned = stop(&stage, &session, false);
            assert_eq!(learned["controls"][0]["device"], device, "{learned:#}");
            assert_eq!(learned["unbound"].as_array().unwrap().is_empty(), device == "pads", "{learned:#}");
            learned
        };
        let play = |bytes: &[u8]| assert!(stage.ports.play(port, bytes), "{port} is not open");
        let twice = learn(&|| play(&[tap(90), tap(90)].concat()));
        assert_eq!(gestures(&twice), ["double-tap"], "{twice:#}");
        let layers = learn(&|| play(&[20, 22, 110, 112, 21].map(tap).concat()));
        assert_eq!(gestures(&layers), ["velocity-layer", "velocity-layer"], "{layers:#}");
        let long = learn(&|| {
            play(&[0x99, 36, 90]);
            // A long press lasts longer than half a second.
            std::thread::sleep(Duration::from_millis(520));
            play(&[0x89, 36, 0]);
        });
        assert_eq!(gestures(&long), ["long-press"], "{long:#}");
        let pressed = learn(&|| play(&[0x99, 36, 90, 0xA9, 36, 40, 0xA9, 36, 90]));
        let evidence = pressed["controls"][0]["evidence"].to_string();
        assert!(evidence.contains("pressure"), "{pressed:#}");
    }
}

// LRN-1, LRN-5: buttons, sticks and triggers of gamepads, of which one is bound, one is not, and two are alike.
#[test]
fn every_control_of_a_gamepad_is_learned_from_every_kind_of_port() {
    let stage = stage_with(
        "\n[[bindings]]\nalias = \"pad\"\nprotocol = \"hid\"\nmatchers = [{ type = \"exact_name\", value = \"Left Pad\" }]\n\
         [[bindings]]\nalias = \"pair\"\nprotocol = \"hid\"\nmatchers = [{ type = \"name_contains\", value = \"Pair\" }]\n",
    );
    for (name, key) in [("Left Pad", "left"), ("Loose Pad", "loose"), ("Pair", "pair-1"), ("Pair", "pair-2")] {
        let mut port = PortInfo::new(name, key, "simulated", Protocol::Hid, Direction::Input);
        port.metadata.usb = Some(UsbDevice {
            vendor_id: 1,
            product_id: 3,
            serial: None,
            path: Some(key.into()),
            bus: None,
            address: None,
        });
        stage.ports.plug_port(port);
    }
    stage.until("the gamepads are there", || {
        stage.host.status().ports.ports.iter().filter(|port| port.port.protocol == Protocol::Hid).count() == 4
            && stage.ports.is_open("left")
    });
    let button = |button, pressed| HidEvent::Button { button, pressed };
    let stick = |value| HidEvent::Stick { stick: 129, value };
    let trigger = |value| HidEvent::Trigger { trigger: 133, value };
    let kinds: [(&[HidEvent], &str, &str); 3] = [
        (&[button(128, true), button(128, false)], "button", "button = 128"),
        (&[stick(-0.2), stick(-0.9)], "stick", "axis = 129"),
        (&[trigger(0.2), trigger(0.9)], "trigger", "trigger = 133"),
    ];
    for (port, device) in [("left", "pad"), ("loose", "Loose Pad"), ("pair-2", "Pair #2")] {
        for (events, kind, key) in kinds {
            let session = start(&stage);
            stage.until("it is listened to", || stage.ports.is_open(port));
            for event in events {
                assert!(stage.ports.play_gamepad(port, *event), "{port} is not open");
            }
            let learned = stop(&stage, &session, false);
            let control = &learned["controls"][0];
            assert_eq!((&control["device"], &control["kind"]), (&json!(device), &json!(kind)), "{learned:#}");
            assert!(control["toml"].as_str().unwrap().contains(key), "{control:#}");
            assert!(!control["evidence"].as_array().unwrap().is_empty(), "{control:#}");
            assert_eq!(learned["unbound"].as_array().unwrap().is_empty(), device == "pad", "{learned:#}");
        }
    }
}

/// An OSC message: its address, the types of its arguments, and their bytes.
fn osc(address: &str, types: &str, arguments: &[u8]) -> Vec<u8> {
    let padded = |text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(text.len() / 4 * 4 + 4, 0);
        bytes
    };
    [padded(address), padded(&format!(",{types}")), arguments.to_vec()].concat()
}

// LRN-1, LRN-5: an endpoint for OSC is there because it is configured, so that it is never one of two.
#[test]
fn every_type_of_argument_is_learned_from_osc() {
    let stage = stage();
    stage.ports.plug_port(PortInfo::new("Tablet", "Tablet", "simulated", Protocol::Osc, Direction::Input));
    stage
        .until("the tablet is heard", || stage.host.status().ports.ports.iter().any(|port| port.port.name == "Tablet"));
    let (half, one) = (0.5_f32.to_be_bytes(), 1_i32.to_be_bytes());
    let kinds: [(Vec<u8>, &str, &str); 6] = [
        (osc("/fader", "f", &half), "fader", "float"),
        (osc("/page", "i", &one), "message", "integer"),
        (osc("/name", "s", b"go\0\0"), "message", "string"),
        (osc("/mute", "T", &[]), "button", "boolean"),
        (osc("/xy", "ff", &[half, half].concat()), "fader", "float, float"),
        (osc("/cue", "", &[]), "message", "no arguments"),
    ];
    for (packet, kind, types) in kinds {
        let session = start(&stage);
        stage.until("it is listened to", || stage.ports.is_open("Tablet"));
        assert!(stage.ports.play_osc("Tablet", &packet));
        let learned = stop(&stage, &session, false);
        let control = &learned["controls"][0];
        assert_eq!((&control["device"], &control["kind"]), (&json!("Tablet"), &json!(kind)), "{learned:#}");
        assert!(control["evidence"].to_string().contains(types), "{control:#}");
        // A button that is let go sends a message, too.
        let trigger = if kind == "button" { "\"OscArgRange\"" } else { "\"OscMessage\"" };
        assert!(control["toml"].as_str().unwrap().contains(trigger), "{control:#}");
    }
}

// PRT-4, FEA-22: a keyboard that is bound is no way to read what is typed at it: an agent sees the keys that are mapped,
// and those that write nothing.
#[test]
fn what_is_typed_is_not_shown() {
    let stage = stage_with(
        "\n[[bindings]]\nalias = 'keys'\nprotocol = 'keyboard'\nname = 'Planck'\n\
         [[global_mappings]]\ntrigger = { type = 'Key', key = 's', device = 'keys' }\n\
         action = { type = 'ModeChange', mode = 'Mix' }\n",
    );
    stage.ports.plug_port(PortInfo::new("Planck", "planck", "simulated", Protocol::Keyboard, Direction::Input));
    stage.ports.plug_port(PortInfo::new("Diary", "diary", "simulated", Protocol::Keyboard, Direction::Input));
    stage.until("the keyboard is heard", || stage.ports.is_open("planck"));
    stage.until("the other is there", || {
        stage.host.status().ports.ports.iter().any(|port| port.port.name == "Diary" && !port.connected)
    });
    let ports = stage.call("conductor_list_discovered_ports", json!({})).unwrap().to_string();
    assert!(ports.contains("Planck") && !ports.contains("Diary"), "{ports}");
    let session = start(&stage);
    // P, S and F13.
    for button in [281, 287, 439] {
        for pressed in [true, false] {
            assert!(stage.ports.play_gamepad("planck", HidEvent::Button { button, pressed }), "it is not open");
        }
    }
    let seen = || stage.call("conductor_get_captured_events", json!({ "device": "keys" })).unwrap()["events"].clone();
    stage.until("all is captured", || seen().to_string().contains("key 439 up"));
    let shown: Vec<String> =
        seen().as_array().unwrap().iter().map(|one| one["event"].as_str().unwrap().to_owned()).collect();
    assert_eq!(shown, ["key 287 down", "key 439 down", "key 439 up"]);
    let learned = stop(&stage, &session, false);
    assert_eq!(learned["controls"].as_array().unwrap().len(), 1, "{learned:#}");
    assert!(learned["controls"][0]["toml"].as_str().unwrap().contains("439"), "{learned:#}");
    // A plan about a letter is rehearsed over what was typed: for the owner alone.
    let mapping = json!({
        "trigger": { "type": "Key", "key": "p", "device": "keys" },
        "action": { "type": "ModeChange", "mode": "Mix" }
    });
    let plan = stage.call("conductor_create_mapping", mapping).unwrap()["plan"].as_str().unwrap().to_owned();
    let of_the_owner = stage.host.plan(&plan).unwrap().rehearsal;
    assert_eq!(of_the_owner.shown.last().unwrap().event, "key 281 down", "{of_the_owner:?}");
    for scope in [Scope::Agent, Scope::Read, Scope::Control] {
        let caller = Caller::client(Door::Tcp, scope, Some("someone"));
        let rehearsal = stage.host.plan_for(&caller, &plan).unwrap().rehearsal;
        assert_eq!((rehearsal.events, rehearsal.different), (3, 0), "{rehearsal:?}");
    }
}
