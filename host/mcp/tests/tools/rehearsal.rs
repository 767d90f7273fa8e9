//! What a plan would have done with the last events: for ports that it binds first, and for controls that nobody touched.

use conductor_ports::Direction;
use serde_json::{Value, json};

use crate::stage::Stage;

/// Has a plan of these changes wait; its id.
fn proposed(stage: &Stage, changes: &Value) -> String {
    let args = json!({ "description": "Bind the knobs.", "changes": changes });
    let result = stage.call("conductor_batch_changes", args).unwrap_or_else(|error| panic!("{error}"));
    result["plan"].as_str().unwrap().to_owned()
}

/// A mapping of a note of the knobs.
fn mapping(name: &str, note: u8) -> Value {
    json!({
        "name": name,
        "trigger": { "type": "Note", "note": note, "device": "knobs" },
        "action": { "type": "ModeChange", "mode": "Mix" },
    })
}

// The port has had its own name so far; what the plan maps goes by the alias that the plan gives it.
#[test]
fn events_of_a_port_that_a_plan_binds_count_for_its_mappings() {
    let stage = Stage::new();
    for bytes in [[0x90, 36, 100], [0x80, 36, 0], [0x90, 36, 80]] {
        stage.play("Loose Knobs", &bytes);
    }
    let plan = proposed(
        &stage,
        &json!([
            { "path": "bindings/3", "value": {
                "alias": "knobs", "matchers": [{ "type": "exact_name", "value": "Loose Knobs" }]
            } },
            { "path": "modes/0/mappings/1", "value": mapping("snare", 36) },
            { "path": "modes/0/mappings/2", "value": mapping("hat", 37) },
        ]),
    );
    let rehearsal = stage.host.plan(&plan).unwrap().rehearsal;
    assert_eq!((rehearsal.events, rehearsal.different), (3, 2), "{rehearsal:?}");
    for shown in &rehearsal.shown {
        assert_eq!(shown.device, "Loose Knobs", "where it came from");
        assert!(shown.was.is_empty() && shown.would_be[0].starts_with("snare"), "{shown:?}");
    }
    assert_eq!(rehearsal.untried, ["hat"]);
    assert_eq!(rehearsal.untried_lines(), ["not tried: hat (nothing like its trigger came)"]);
}

#[test]
fn events_of_a_device_count_for_mappings_that_name_its_new_alias() {
    let stage = Stage::new();
    // With its twin away it is no longer ambiguous.
    stage.ports.unplug("twin:1-2", Direction::Input);
    stage.until("the other one has the alias", || {
        stage.host.status().ports.ports.iter().any(|port| port.device == "twin" && port.connected)
    });
    stage.play("twin:1-1", &[0x90, 36, 100]);
    let changes = [("bindings/2/alias", json!("knobs")), ("modes/0/mappings/1", mapping("snare", 36))];
    let plan = proposed(&stage, &changes.map(|(path, value)| json!({ "path": path, "value": value })).to_vec().into());
    let rehearsal = stage.host.plan(&plan).unwrap().rehearsal;
    assert_eq!((rehearsal.events, rehearsal.different), (1, 1), "{rehearsal:?}");
    assert!(rehearsal.shown[0].would_be[0].starts_with("snare"), "{rehearsal:?}");
    assert!(rehearsal.untried.is_empty(), "{rehearsal:?}");
}
