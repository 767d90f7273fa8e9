//! `conductor bindings`: the state of each binding, and how to repair those with problems.

use std::time::{Duration, Instant};

use clap::{Args, Subcommand};

use super::{CommandResult, Failure, Paths, config_file};
use conductor_api::client::Client;
use conductor_config::pin::pin as pinned;
use conductor_config_text::edit::edited;
use conductor_ports::Direction;
use conductor_ports::status::{BindingStatus, DiscoveredPort, PortState, PortsStatus, SideState, SideStatus};
use conductor_terminal::{self as terminal, Table, errln, outln};

/// How long a touch is waited for.
const TOUCH_TIMEOUT: Duration = Duration::from_secs(30);
/// How often it is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(super) struct BindingsArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    command: Option<BindingsCommand>,
}

#[derive(Debug, Subcommand)]
enum BindingsCommand {
    /// Pin a binding to one of several ports: writes a matcher for that port alone into the configuration
    Pin {
        /// The binding
        alias: String,
        /// The port, by its device, name or key in `conductor ports`; without it, the one that you touch
        port: Option<String>,
    },
    /// Stop hearing a device until the host ends
    Mute {
        /// The binding, or the port's own name
        device: String,
    },
    /// Hear it again
    Unmute {
        /// The binding, or the port's own name
        device: String,
    },
}

pub(super) fn run(places: &Paths, arguments: &BindingsArguments) -> CommandResult {
    match &arguments.command {
        None => list(places, arguments.json),
        Some(BindingsCommand::Pin { alias, port }) => pin(places, alias, port.as_deref()),
        Some(BindingsCommand::Mute { device }) => mute(places, device, true),
        Some(BindingsCommand::Unmute { device }) => mute(places, device, false),
    }
}

/// How things are: in the host that runs in this home, or without one.
fn status(places: &Paths) -> Result<PortsStatus, Failure> {
    Ok(super::ports::running(places)?.unwrap_or_else(|| super::ports::look(places)))
}

fn list(places: &Paths, as_json: bool) -> CommandResult {
    // A configuration that can't be read has no bindings to show, but mistakes.
    super::load(&places.config)?;
    let bindings = status(places)?.bindings;
    if as_json {
        terminal::json(&bindings)?;
        return Ok(());
    }
    if bindings.is_empty() {
        outln!("no bindings: every port goes by its own name");
        return Ok(());
    }
    let mut table = Table::new(["BINDING", "PROTOCOL", "HEALTH", "INPUT", "OUTPUT", "HELP"]);
    for BindingStatus { alias, protocol, health, input, output, muted, help } in &bindings {
        let health = if *muted { "muted" } else { health.as_str() };
        let (input, output, help) = (side(input.as_ref()), side(output.as_ref()), help.as_deref().unwrap_or_default());
        table.row([alias, protocol, &health, &input, &output, &help]);
    }
    terminal::print_table(&table);
    Ok(())
}

fn side(side: Option<&SideStatus>) -> String {
    match side {
        None => "-".to_owned(),
        Some(SideStatus { state: SideState::Bound, ports, .. }) => ports.join(", "),
        Some(SideStatus { state, ports, .. }) if ports.is_empty() => state.as_str().to_owned(),
        Some(SideStatus { state, ports, .. }) => format!("{}: {}", state.as_str(), ports.join(", ")),
    }
}

fn pin(places: &Paths, alias: &str, port: Option<&str>) -> CommandResult {
    let loaded = super::load(&places.config)?;
    let status = status(places)?;
    let port = match port {
        Some(port) => named(&status, alias, port)?,
        None => touched(places, &status, alias)?,
    };
    let Some(matcher) = &port.told_apart_by else {
        return Err(Failure::Wrong(format!(
            "conductor: no stable property differs between {} and its twin: both have the same ids and names; put each \
             into a USB socket of its own",
            port.label
        )));
    };
    let mut files = loaded.source.files();
    let Some((file, before, changes)) =
        files.find_map(|(file, text)| Some((file, text, pinned(text, alias, matcher)?)))
    else {
        return Err(Failure::Wrong(format!("conductor: no binding is called {alias:?} in {}", loaded.source.file())));
    };
    let after = edited(before, &changes)?;
    // What is written is read again by the next reader.
    loaded.source.with_text(file, &after).map_err(super::wrong)?;
    let backup = config_file::replace_text(file, before, &after)?;
    outln!("{alias} is {} from now on: {matcher}", port.label);
    outln!("(the file as it was: {})", backup.display());
    Ok(())
}

/// The ports that could be meant by a binding: those of its protocol.
fn candidates<'s>(status: &'s PortsStatus, alias: &str) -> Result<Vec<&'s DiscoveredPort>, Failure> {
    let Some(binding) = status.bindings.iter().find(|binding| binding.alias == alias) else {
        let known: Vec<&str> = status.bindings.iter().map(|binding| binding.alias.as_str()).collect();
        let known =
            if known.is_empty() { "there is none".to_owned() } else { format!("there are {}", known.join(", ")) };
        return Err(Failure::Wrong(format!("conductor: no binding is called {alias:?}; {known}")));
    };
    Ok(status.ports.iter().filter(|found| found.port.protocol == binding.protocol).collect())
}

fn named(status: &PortsStatus, alias: &str, port: &str) -> Result<DiscoveredPort, Failure> {
    let mut candidates = candidates(status, alias)?;
    // Inputs first: where both directions are called the same, the input is what is touched.
    candidates.sort_by_key(|candidate| candidate.port.direction != Direction::Input);
    let is_called = |it: &&&DiscoveredPort| [&it.label, &it.device, &it.port.key].into_iter().any(|name| name == port);
    candidates.iter().find(is_called).map(|found| (**found).clone()).ok_or_else(|| {
        let known: Vec<String> = candidates.iter().map(|candidate| format!("{:?}", candidate.label)).collect();
        Failure::Wrong(format!("conductor: no port is called {port:?}; there are {}", known.join(", ")))
    })
}

/// The port that something comes from, of those that are open without being heard.
fn touched(places: &Paths, status: &PortsStatus, alias: &str) -> Result<DiscoveredPort, Failure> {
    let is_twin = |found: &&DiscoveredPort| {
        found.port.direction == Direction::Input && matches!(&found.state, PortState::Ambiguous(of) if of == alias)
    };
    let twins: Vec<&DiscoveredPort> = candidates(status, alias)?.into_iter().filter(is_twin).collect();
    if twins.len() < 2 {
        return Err(Failure::Wrong(format!(
            "conductor: {alias} is not ambiguous; name the port that it is to be: `conductor bindings pin {alias} PORT`"
        )));
    }
    if super::ports::running(places)?.is_none() {
        return Err(Failure::Wrong(
            "conductor: no host is running that could feel a touch; name the port instead".into(),
        ));
    }
    errln!("touch the device that is to be {alias} ({} seconds) ...", TOUCH_TIMEOUT.as_secs());
    let deadline = Instant::now() + TOUCH_TIMEOUT;
    while Instant::now() < deadline {
        std::thread::sleep(POLL_INTERVAL);
        let Some(now) = super::ports::running(places)? else { break };
        let moved = now.ports.into_iter().find(|found| {
            let before = twins
                .iter()
                .find(|twin| twin.port.key == found.port.key && twin.port.direction == found.port.direction);
            before.is_some_and(|before| found.unheard > before.unheard)
        });
        if let Some(moved) = moved {
            return Ok(moved);
        }
    }
    Err(Failure::Failed(anyhow::anyhow!("nothing was touched")))
}

fn mute(places: &Paths, device: &str, muted: bool) -> CommandResult {
    Client::new(&places.home).mute(device, muted)?;
    outln!("{device} is {}", if muted { "muted until the host ends" } else { "heard again" });
    Ok(())
}
