//! `conductor simulate`: what rules would do for the events of a script. Nothing is done.

use std::io::Read as _;
use std::path::PathBuf;

use conductor_engine::{ActiveMode, DeviceId, Timeline};
use serde_json::json;

use super::{Done, Failure, Places, load, warn};
use crate::api::view;
use crate::dispatch::Action;
use crate::host;

/// What to simulate.
#[derive(Debug, clap::Args)]
pub(super) struct SimulateArguments {
    /// A script of events, one a line: `+20ms pads note-on 36 100`; - for standard input
    script: PathBuf,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(places: &Places, arguments: &SimulateArguments) -> Done {
    let name = arguments.script.display().to_string();
    let text = if name == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        text
    } else {
        std::fs::read_to_string(&arguments.script)
            .map_err(|error| Failure::Wrong(format!("conductor: {name}: {error}")))?
    };
    let timeline = Timeline::parse(&text).map_err(|errors| {
        Failure::Wrong(errors.iter().map(|error| format!("{name}: {error}")).collect::<Vec<_>>().join("\n"))
    })?;
    let loaded = load(&places.config)?;
    let compiled = host::check(&loaded, Some(&places.home), places.features.as_deref()).map_err(super::started)?;
    warn(&compiled.warnings);

    let rules = &compiled.rules;
    let mut mode = ActiveMode::new();
    for entry in &timeline.entries {
        let index = mode.index(rules, 0);
        let device = DeviceId::new(&entry.device);
        let fired: Vec<_> = rules.matches(index, &device, &entry.event).collect();
        let names: Vec<String> = fired.iter().map(|found| view::rule(found.rule.id, rules, true)).collect();
        let active = mode.name().unwrap_or("-").to_owned();
        let next = fired.iter().rev().find_map(|found| match &found.rule.action {
            Action::ModeChange { mode } => Some(mode),
            _ => None,
        });
        if let Some(next) = next {
            // Compiling has made sure that there is such a mode.
            let _ = mode.set(rules, 0, next);
        }
        if arguments.json {
            println!(
                "{}",
                json!({ "at": entry.at, "device": entry.device, "event": entry.event.to_string(), "mode": active, "rules": names })
            );
        } else {
            let what = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
            println!(
                "{:>10.3} ms  [{active}] {:<12} {:<28} -> {what}",
                entry.at as f64 / 1e6,
                entry.device,
                entry.event.to_string()
            );
        }
    }
    Ok(())
}
