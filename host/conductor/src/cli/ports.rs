//! `conductor ports`: lists the ports, their state, and why they are in it.

use serde_json::Value;

use super::{CommandResult, Paths, load};
use crate::embedding::system_ports;
use conductor_api::client::Client;
use conductor_ports::supervisor::{self, PortsStatus};
use conductor_terminal::{self as terminal, outln};

pub(super) fn run(places: &Paths, json: bool) -> CommandResult {
    let (value, asked) = match running(places) {
        Some(value) => (value, true),
        None => (serde_json::to_value(look(places))?, false),
    };
    if json {
        terminal::json(&value)?;
    } else {
        print(&value, asked);
    }
    Ok(())
}

/// The ports of the host that runs in this home, with its knowledge of what is open.
pub(super) fn running(places: &Paths) -> Option<Value> {
    let status: Value = Client::new(&places.home).get("/v1/status").ok()?;
    let part = |name: &str| (name.to_owned(), status[name].clone());
    Some(["ports", "bindings", "unreachable"].map(part).into_iter().collect())
}

/// Lists the ports without opening one.
pub(super) fn look(places: &Paths) -> PortsStatus {
    let plan = load(&places.config).map(|loaded| conductor_rules::bindings::plan(&loaded.config)).unwrap_or_default();
    supervisor::look(system_ports(), &plan)
}

/// What came to a port and was of no use: `3 malformed, 12 lost`. `None` if nothing was.
pub(super) fn missed(malformed: u64, lost: u64) -> Option<String> {
    let counts = [("malformed", malformed), ("lost", lost)];
    let counts: Vec<String> =
        counts.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}")).collect();
    (!counts.is_empty()).then(|| counts.join(", "))
}

fn print(value: &Value, asked: bool) {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let ports = value["ports"].as_array().cloned().unwrap_or_default();
    if ports.is_empty() {
        outln!("no ports");
    } else {
        outln!("{:<10} {:<7} {:<34} {:<20} {:>9}  STATE", "BACKEND", "WAY", "PORT", "DEVICE", "EVENTS");
    }
    for port in &ports {
        let state = match &port["state"] {
            Value::String(state) if state == "idle" && !asked => "listed".to_owned(),
            Value::String(state) => state.clone(),
            Value::Object(state) => state.iter().map(|(what, why)| format!("{what}: {}", text(why))).collect(),
            _ => String::new(),
        };
        let count = |name: &str| port[name].as_u64().unwrap_or(0);
        let missed = missed(count("malformed"), count("lost")).map(|missed| format!(" ({missed})")).unwrap_or_default();
        outln!(
            "{:<10} {:<7} {:<34} {:<20} {:>9}  {state}{missed}",
            text(&port["backend"]),
            text(&port["direction"]),
            text(&port["name"]),
            text(&port["device"]),
            port["events"].to_string(),
        );
    }
    for unreachable in value["unreachable"].as_array().into_iter().flatten() {
        outln!("{}", text(&unreachable[1]));
    }
    if !asked {
        outln!("(no host is running: this is what the system offers, nothing is open)");
    }
}
