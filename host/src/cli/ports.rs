//! `conductor ports`: what is there, what became of it, and why.

use serde_json::Value;

use super::{Done, Places, load, system_backends};
use crate::ports::binding::resolve;
use crate::ports::supervisor::{PortState, PortStatus, PortsStatus};

pub(super) fn run(places: &Places, json: bool) -> Done {
    let (value, asked) = match running(places) {
        Some(value) => (value, true),
        None => (serde_json::to_value(look(places))?, false),
    };
    if json {
        println!("{}", serde_json::to_string_pretty(&value)?);
    } else {
        print(&value, asked);
    }
    Ok(())
}

/// The ports of the host that runs in this home, with its knowledge of what is open.
fn running(places: &Places) -> Option<Value> {
    #[cfg(unix)]
    {
        let status = crate::api::client::status(&places.home).ok()?;
        Some(serde_json::json!({ "ports": status["ports"], "unreachable": status["unreachable"] }))
    }
    #[cfg(not(unix))]
    {
        let _ = places;
        None
    }
}

/// Lists the ports without opening one.
fn look(places: &Places) -> PortsStatus {
    let bindings = load(&places.config).map(|loaded| crate::host::binding_specs(&loaded.config)).unwrap_or_default();
    let mut status = PortsStatus::default();
    for mut backend in system_backends() {
        backend.configure(&bindings);
        match backend.list() {
            Ok(ports) => {
                for direction in [crate::ports::Direction::Input, crate::ports::Direction::Output] {
                    let side: Vec<_> = ports.iter().filter(|port| port.direction == direction).cloned().collect();
                    status.ports.extend(resolve(&side, &bindings).into_iter().map(|resolved| PortStatus {
                        device: resolved.device.to_string(),
                        state: resolved.contested.map_or(PortState::Idle, PortState::Contested),
                        binding: resolved.binding,
                        port: resolved.port,
                        events: 0,
                        dropped: 0,
                        malformed: 0,
                    }));
                }
            }
            Err(error) => status.unreachable.push((backend.name().to_owned(), error.to_string())),
        }
    }
    status
}

fn print(value: &Value, asked: bool) {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let ports = value["ports"].as_array().cloned().unwrap_or_default();
    if ports.is_empty() {
        println!("no ports");
    } else {
        println!("{:<10} {:<7} {:<34} {:<20} {:>9}  STATE", "BACKEND", "WAY", "PORT", "DEVICE", "EVENTS");
    }
    for port in &ports {
        let state = match &port["state"] {
            Value::String(state) if state == "idle" && !asked => "listed".to_owned(),
            Value::String(state) => state.clone(),
            Value::Object(state) => state.iter().map(|(what, why)| format!("{what}: {}", text(why))).collect(),
            _ => String::new(),
        };
        println!(
            "{:<10} {:<7} {:<34} {:<20} {:>9}  {state}",
            text(&port["backend"]),
            text(&port["direction"]),
            text(&port["name"]),
            text(&port["device"]),
            port["events"].to_string(),
        );
    }
    for unreachable in value["unreachable"].as_array().into_iter().flatten() {
        println!("{}", text(&unreachable[1]));
    }
    if !asked {
        println!("(no host is running: this is what the system offers, nothing is open)");
    }
}
