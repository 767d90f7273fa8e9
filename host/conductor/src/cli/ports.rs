//! `conductor ports`: lists the ports, their state, and why they are in it.

use super::{CommandResult, Paths, load};
use crate::embedding::system_ports;
use conductor_api::client::{AskError, Client, if_running};
use conductor_ports::status::{DiscoveredPort, PortState, PortsStatus};
use conductor_ports::supervisor;
use conductor_terminal::{self as terminal, Table, outln};

pub(super) fn run(places: &Paths, json: bool) -> CommandResult {
    let (status, asked) = match running(places)? {
        Some(status) => (status, true),
        None => (look(places), false),
    };
    if json {
        terminal::json(&status)?;
    } else {
        print(&status, asked);
    }
    Ok(())
}

/// The ports of the host that runs in this home, with its knowledge of what is open; `None` if none runs.
pub(super) fn running(places: &Paths) -> Result<Option<PortsStatus>, AskError> {
    Ok(if_running(Client::new(&places.home).status())?.map(|status| status.ports))
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

fn print(status: &PortsStatus, asked: bool) {
    if status.ports.is_empty() {
        outln!("no ports");
    } else {
        let mut table = Table::new(["BACKEND", "WAY", "PORT", "DEVICE", "EVENTS", "STATE"]).right(4);
        for DiscoveredPort { port, device, events, state, malformed, lost, .. } in &status.ports {
            let missed = missed(*malformed, *lost).map(|missed| format!(" ({missed})")).unwrap_or_default();
            let state = words(state, asked) + &missed;
            table.row([&port.backend, &port.direction, &port.name, device, events, &state]);
        }
        terminal::print_table(&table);
    }
    for (_, why) in &status.unreachable {
        outln!("{why}");
    }
    if !asked {
        outln!("(no host is running: this is what the system offers, nothing is open)");
    }
}

/// A port's state, as a running host has it (`asked`) or as it is without one.
fn words(state: &PortState, asked: bool) -> String {
    match state {
        PortState::Open => "open".to_owned(),
        PortState::Idle if asked => "idle".to_owned(),
        PortState::Idle => "listed".to_owned(),
        PortState::Ambiguous(alias) => format!("ambiguous: {alias}"),
        PortState::Ignored => "ignored".to_owned(),
        PortState::OverLimit => "over_limit".to_owned(),
        PortState::Failed(why) => format!("failed: {why}"),
    }
}
