//! What is suggested for a port whose device has lights: both directions of it.

use conductor_ports::Direction;
use serde_json::json;

use crate::stage::Stage;

// LRN-3: who follows the suggestion can light what is pressed.
#[test]
fn a_suggested_binding_has_the_output_of_the_device_whatever_it_is_called() {
    const PORTS: [(&str, Direction); 3] =
        [("Grid MIDI Out", Direction::Input), ("Grid MIDI In", Direction::Output), ("Grid DAW In", Direction::Output)];
    let stage = Stage::new();
    for (port, direction) in PORTS {
        stage.ports.plug(port, direction);
    }
    let is_one = |name: &str| PORTS.iter().any(|(port, _)| *port == name);
    stage.until("all ports are there", || {
        let ports = stage.host.status().ports.ports;
        ports.iter().filter(|port| is_one(&port.port.name)).count() == PORTS.len()
    });

    let suggested = stage.call("conductor_suggest_binding", json!({ "port": "Grid MIDI Out" })).unwrap();
    let values: Vec<&str> =
        suggested["matchers"].as_array().unwrap().iter().filter_map(|matcher| matcher["value"].as_str()).collect();
    assert_eq!(values, ["Grid MIDI Out", "Grid MIDI In"], "{suggested:#}");
    assert!(suggested["next"].as_str().unwrap().contains("both matchers"), "{suggested:#}");
    assert!(suggested["toml"].as_str().unwrap().contains("Grid MIDI In"), "{suggested:#}");

    let made = stage
        .call("conductor_create_device_identity", json!({ "alias": "grid", "matchers": suggested["matchers"] }))
        .unwrap();
    stage.apply(made["plan"].as_str().unwrap()).unwrap();
    stage.until("both directions have the binding", || {
        let ports = stage.host.status().ports.ports;
        ports.iter().filter(|port| port.binding.as_deref() == Some("grid")).count() == 2
    });
}
