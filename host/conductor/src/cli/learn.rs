//! `conductor learn`: move a control, and see what it is called in a mapping.
//!
//! The tools that agents use report what was moved; this command adds waiting until
//! something was.

use std::time::{Duration, Instant};

use clap::Args;
use crossbeam_channel::Receiver;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::tool::asked;
use super::{CommandResult, Failure, Paths, learn_mapping, named, signals};
use conductor_learn_mapping::{Control, Gesture, Learned, Started, Unbound, understood};
use conductor_ports::status::DiscoveredPort;
use conductor_terminal::{self as terminal, Lines, errln, outln};
use conductor_timeline::named::comment;

/// The pause between two polls of the ports.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long a control has to rest before it counts as moved (debounce); longer than the pause in a double tap.
const SETTLE_TIME: Duration = Duration::from_millis(700);
/// The settle time for devices that never rest, since they send a clock.
const MAX_SETTLE_TIME: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
pub(super) struct LearnArguments {
    /// Listen to this device alone: a binding, or a port's own name
    device: Option<String>,
    /// How long to wait for something to be moved
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Map what is moved to this action: `TYPE`, `TYPE VALUE` or `TYPE { key = value }`, such as 'ModeChange Live'
    #[arg(long, value_name = "ACTION")]
    map: Option<String>,
    /// With --map: in this mode; in every mode without it
    #[arg(long, requires = "map")]
    mode: Option<String>,
    /// With --map: from any device
    #[arg(long, requires = "map", conflicts_with = "this")]
    any: bool,
    /// With --map: from this device alone
    #[arg(long, requires = "map")]
    this: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(places: &Paths, arguments: &LearnArguments) -> CommandResult {
    // What is wrong with it is said before anybody moves anything.
    let action = arguments.map.as_deref().map(|text| learn_mapping::action(places, text)).transpose()?;
    let device = arguments.device.as_ref().map_or_else(|| json!({}), |device| json!({ "device": device }));
    let Started { session } = read(places, "conductor_start_learn", &device)?.0;
    let device = arguments.device.as_deref();
    // Counted before anybody is asked to move anything: what is moved at once counts, too.
    let mut count = events(places, device)?;
    let (ending, ended) = crossbeam_channel::bounded(1);
    signals::listen(ending, |_| ())?;
    errln!("move a control ({} seconds) ...", arguments.seconds);
    let deadline = Instant::now() + Duration::from_secs(arguments.seconds);
    let waited = loop {
        let waited = await_a_move(places, device, &mut count, deadline, &ended)?;
        if waited != Waited::Moved {
            break waited;
        }
        let (learned, _) = stop(places, &json!({ "keep": true, "session": session }))?;
        if learned.is_something() || Instant::now() >= deadline {
            break waited;
        }
    };
    // From here on a signal ends the command at once.
    drop(ended);
    let (learned, result) = stop(places, &json!({ "session": session }))?;
    if waited == Waited::Interrupted {
        return Err(Failure::Failed(anyhow::anyhow!("interrupted: no port is listened to any more")));
    }
    if let Some(action) = action.filter(|_| learned.is_something()) {
        let (any, json) = (arguments.any || arguments.this, arguments.json);
        let any = any.then_some(arguments.any);
        let text = arguments.map.as_deref().unwrap_or_default();
        if !json {
            show(places, &learned);
        }
        let wanted = learn_mapping::MapOptions { action: text, mode: arguments.mode.as_deref(), any, json };
        return learn_mapping::propose(places, &learned, &action, &wanted);
    }
    if arguments.json {
        terminal::json(&result)?;
    } else {
        show(places, &learned);
    }
    match learned.is_something() {
        true => Ok(()),
        false => Err(Failure::Failed(anyhow::anyhow!("nothing was moved; `conductor ports` shows what is open"))),
    }
}

/// What a tool returned: as this program reads it, and as it is.
fn read<T: DeserializeOwned>(places: &Paths, tool: &str, args: &Value) -> Result<(T, Value), Failure> {
    let result = asked(places, tool, args)?.result;
    let understood = understood(tool, &result).map_err(|error| learn_mapping::failure(error, ""))?;
    Ok((understood, result))
}

/// What was learned: as this command reads it, and as the tool returned it.
fn stop(places: &Paths, args: &Value) -> Result<(Learned, Value), Failure> {
    read(places, "conductor_stop_learn", args)
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waited {
    /// Something came in, and no more does.
    Moved,
    /// The time was over before anything did.
    TimedOut,
    /// A signal came.
    Interrupted,
}

/// Waits until more than `count` came in and no more does.
fn await_a_move(
    places: &Paths,
    device: Option<&str>,
    count: &mut u64,
    deadline: Instant,
    ended: &Receiver<()>,
) -> Result<Waited, Failure> {
    let mut moved: Option<(Instant, Instant)> = None;
    loop {
        if ended.recv_timeout(POLL_INTERVAL).is_ok() {
            return Ok(Waited::Interrupted);
        }
        let now = Instant::now();
        let before = std::mem::replace(count, events(places, device)?);
        moved = match moved {
            _ if before != *count => Some((moved.map_or(now, |(first, _)| first), now)),
            moved => moved,
        };
        match moved {
            Some((first, last)) if now - last >= SETTLE_TIME || now - first >= MAX_SETTLE_TIME => {
                return Ok(Waited::Moved);
            }
            None if now >= deadline => return Ok(Waited::TimedOut),
            _ => {}
        }
    }
}

/// How much has come in so far, heard or not: of one device, if it is named, since others that never rest are no reason
/// to wait for it.
fn events(places: &Paths, device: Option<&str>) -> Result<u64, Failure> {
    let status = super::ports::running(places)?
        .ok_or_else(|| Failure::Failed(anyhow::anyhow!("no host is running any more")))?;
    let is_meant = |port: &&DiscoveredPort| {
        device.is_none_or(|device| port.device == device || port.bindings.iter().any(|binding| binding == device))
    };
    Ok(status.ports.iter().filter(is_meant).map(|port| port.events + port.unheard).sum())
}

fn show(places: &Paths, learned: &Learned) {
    let names = named::of_host(places);
    for Control { device, kind, evidence, last, toml, gestures } in &learned.controls {
        let number = comment(last).map(|named| format!("  {named}")).unwrap_or_default();
        let name = named::event(&names, device, last).map(|name| format!(" ({name})")).unwrap_or_default();
        outln!("{device}{name}: {last}{number}");
        let mut lines = Lines::new();
        lines.push_text("    ", toml);
        lines.push_text("    ", &format!("{kind}: {}", evidence.join("; ")));
        for Gesture { kind, evidence, toml } in gestures {
            lines.push_text("    ", &format!("{kind}: {evidence}"));
            lines.push_text("        ", toml);
        }
        terminal::print(&lines);
    }
    for Unbound { port, could_be, matcher } in &learned.unbound {
        match (could_be, matcher.as_deref().and_then(toml)) {
            (Some(binding), Some(_)) => {
                outln!("{port} is heard by no rule, since it could as well be {binding}. To say that it is the one:");
                outln!("    conductor bindings pin {binding} {port:?}");
            }
            (None, Some(matcher)) => {
                outln!("{port} has no binding. To give it a name of your own:");
                outln!("    [[bindings]]");
                outln!("    alias = \"...\"");
                outln!("    matchers = [{matcher}]");
            }
            (_, None) => outln!("{port} has no binding, and no stable property differs from its twin's"),
        }
    }
}

/// A matcher, which is JSON, as the configuration has it; `None` if it can't be written there.
fn toml(matcher: &str) -> Option<String> {
    let matcher: Value = serde_json::from_str(matcher).ok()?;
    Some(toml::Value::try_from(matcher).ok()?.to_string())
}
