//! `conductor learn`: move a control, and see what it is called in a mapping.
//!
//! The tools that agents use report what was moved; this command adds waiting until
//! something was.

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use super::tool::asked;
use super::{CommandResult, Failure, Paths};
use conductor_terminal::{self as terminal, Lines, errln, outln};

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
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(places: &Paths, arguments: &LearnArguments) -> CommandResult {
    let device = arguments.device.as_ref().map_or_else(|| json!({}), |device| json!({ "device": device }));
    asked(places, "conductor_start_learn", &device)?;
    errln!("move a control ({} seconds) ...", arguments.seconds);
    let deadline = Instant::now() + Duration::from_secs(arguments.seconds);
    while await_a_move(places, deadline)? {
        let learned = asked(places, "conductor_stop_learn", &json!({ "keep": true }))?;
        if is_something(&learned) || Instant::now() >= deadline {
            break;
        }
    }
    let learned = asked(places, "conductor_stop_learn", &json!({}))?;
    if arguments.json {
        terminal::json(&learned)?;
    } else {
        show(&learned);
    }
    match is_something(&learned) {
        true => Ok(()),
        false => Err(Failure::Failed(anyhow::anyhow!("nothing was moved; `conductor ports` shows what is open"))),
    }
}

fn is_something(learned: &Value) -> bool {
    [&learned["controls"], &learned["unbound"]].into_iter().any(|list| list.as_array().is_some_and(|it| !it.is_empty()))
}

/// Waits until something came in and no more does; false where the time is over before anything did.
fn await_a_move(places: &Paths, deadline: Instant) -> Result<bool, Failure> {
    let mut count = events(places)?;
    let mut moved: Option<(Instant, Instant)> = None;
    loop {
        std::thread::sleep(POLL_INTERVAL);
        let now = Instant::now();
        let before = std::mem::replace(&mut count, events(places)?);
        moved = match moved {
            _ if before != count => Some((moved.map_or(now, |(first, _)| first), now)),
            moved => moved,
        };
        match moved {
            Some((first, last)) if now - last >= SETTLE_TIME || now - first >= MAX_SETTLE_TIME => return Ok(true),
            None if now >= deadline => return Ok(false),
            _ => {}
        }
    }
}

/// How much has come in so far, heard or not.
fn events(places: &Paths) -> Result<u64, Failure> {
    let status =
        super::ports::running(places).ok_or_else(|| Failure::Failed(anyhow::anyhow!("no host is running any more")))?;
    let ports = status["ports"].as_array().into_iter().flatten();
    let counts = ports.flat_map(|port| [&port["events"], &port["unheard"]]);
    Ok(counts.filter_map(Value::as_u64).sum())
}

fn show(learned: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for control in learned["controls"].as_array().into_iter().flatten() {
        outln!("{}: {}", text(&control["device"]), text(&control["last"]));
        let mut lines = Lines::new();
        lines.push_text("    ", &text(&control["toml"]));
        terminal::print(&lines);
        if let Some(guess) = control["guess"].as_str() {
            outln!("    {guess}");
        }
    }
    for port in learned["unbound"].as_array().into_iter().flatten() {
        let name = text(&port["port"]);
        match (port["could_be"].as_str(), toml(&port["matcher"])) {
            (Some(binding), Some(_)) => {
                outln!("{name} is not heard, since it could as well be {binding}. To say that it is the one:");
                outln!("    conductor bindings pin {binding} {name:?}");
            }
            (None, Some(matcher)) => {
                outln!("{name} has no binding. To give it a name of your own:");
                outln!("    [[bindings]]");
                outln!("    alias = \"...\"");
                outln!("    matchers = [{matcher}]");
            }
            (_, None) => outln!("{name} has no binding, and no stable property differs from its twin's"),
        }
    }
}

/// A matcher as the configuration has it; `None` if there is none.
fn toml(matcher: &Value) -> Option<String> {
    let matcher: Value = serde_json::from_str(matcher.as_str()?).ok()?;
    Some(toml::Value::try_from(matcher).ok()?.to_string())
}
