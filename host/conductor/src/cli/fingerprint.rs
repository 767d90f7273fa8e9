//! `conductor fingerprint`: what kind of source each device is, from what it sent in the last seconds.
//!
//! The answer is the tool's of the feature `fingerprint`; this command prints it.

use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::tool::asked;
use super::{CommandResult, Failure, Paths};
use conductor_terminal::{self as terminal, Lines, outln};

#[derive(Debug, Args)]
pub(super) struct FingerprintArguments {
    /// This device alone: a binding, or a port's own name
    device: Option<String>,
    /// How far to look back
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=300))]
    seconds: u16,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The answer, as far as this command shows it.
#[derive(Debug, Deserialize)]
struct Found {
    devices: Vec<Device>,
}

/// A device that sent something.
#[derive(Debug, Deserialize)]
struct Device {
    device: String,
    events: usize,
    seconds: f64,
    sources: Vec<Source>,
    unclear: usize,
}

/// A source on it.
#[derive(Debug, Deserialize)]
struct Source {
    kind: String,
    /// 0 to 100.
    confidence: u8,
    evidence: Vec<String>,
    or_else: Option<String>,
    surer: Option<String>,
}

pub(super) fn run(places: &Paths, arguments: &FingerprintArguments) -> CommandResult {
    let mut args = json!({ "seconds": arguments.seconds });
    if let Some(device) = &arguments.device {
        args["device"] = json!(device);
    }
    let result = asked(places, "conductor_fingerprint", &args)?.result;
    let found = Found::deserialize(&result).map_err(|error| {
        Failure::Failed(anyhow::anyhow!("what the tool conductor_fingerprint returned is not understood: {error}"))
    })?;
    if arguments.json {
        terminal::json(&result)?;
    } else {
        found.devices.iter().for_each(show);
    }
    match found.devices.is_empty() {
        true => Err(Failure::Failed(anyhow::anyhow!(
            "nothing came in the last {} seconds: play or move something, and ask again",
            arguments.seconds
        ))),
        false => Ok(()),
    }
}

fn show(device: &Device) {
    outln!("{} ({} events in {:.1} s)", device.device, device.events, device.seconds);
    let mut lines = Lines::new();
    for Source { kind, confidence, evidence, or_else, surer } in &device.sources {
        let or_else = or_else.as_ref().map_or_else(String::new, |kind| format!(", or else {kind}"));
        lines.push_text("  ", &format!("{kind}: {confidence} %{or_else}"));
        evidence.iter().for_each(|phrase| lines.push_text("    - ", phrase));
        if let Some(surer) = surer {
            lines.push_text("    ", &format!("to be surer: {surer}"));
        }
    }
    if device.sources.is_empty() {
        lines.push_text("  ", "too few events to tell");
    } else if device.unclear > 0 {
        lines.push_text("  ", &format!("{} events are of none of these", device.unclear));
    }
    terminal::print(&lines);
}
