//! Learning through a host that hears only what is bound: every kind of control from a bound, an unbound and an ambiguous
//! port, two sessions at once, and a fader that hides nothing.

use serde_json::{Value, json};

use crate::stage::{CONFIG, Stage};

/// The ports, and what their devices are called: bound, unbound, ambiguous with a twin.
const PORTS: [(&str, &str); 3] = [("Pads", "pads"), ("Loose Knobs", "Loose Knobs"), ("twin:1-2", "Twin #2")];

/// A stage whose host listens to bound ports alone.
fn stage() -> Stage {
    let stage = Stage::new();
    let text = CONFIG.replace("listen_mode = \"all\"", "listen_mode = \"configured\"");
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
    stage.until("nobody learns any more", || !stage.ports.is_open("Loose Knobs"));
    let fired = stage.call("conductor_get_captured_events", json!({ "device": "Loose Knobs" })).unwrap();
    assert_eq!(fired["events"], json!([]), "no rule was asked");
}
