//! `conductor simulate`: a dry run of the rules for the events of a script.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conductor_engine::{DeviceEvent, DeviceId, Engine, EnvironmentHandle, Event, Firing, Record, RuleSetHandle, Sink};
use conductor_timeline::Timeline;
use serde_json::json;

use super::{CommandResult, Failure, Paths, load, warn};
use conductor_dispatch::Action;
use conductor_dispatch::describe_rule_id;
use conductor_host::host;
use conductor_stdx::clock::Clock;
use conductor_stdx::plain_file::MAX_TEXT;
use conductor_terminal::{self as terminal, outln};

/// What to simulate.
#[derive(Debug, clap::Args)]
pub(super) struct SimulateArguments {
    /// A script of events, one a line: `+20ms pads note-on 36 100`; - for standard input
    script: PathBuf,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(places: &Paths, arguments: &SimulateArguments) -> CommandResult {
    let timeline = script(&arguments.script)?;
    let loaded = load(&places.config)?;
    let compiled = host::check(&loaded, Some(&places.home), places.features.as_deref()).map_err(super::started)?;
    warn(&compiled.warnings);

    let rules = Arc::new(RuleSetHandle::new(compiled.rules));
    let mut engine = Engine::new(Arc::clone(&rules), Arc::new(environment()));
    let mut printer = Printer { rules, json: arguments.json, fired: Vec::new(), brought_about: VecDeque::new() };
    for entry in timeline.entries {
        let event = DeviceEvent { device: DeviceId::new(&entry.device), event: entry.event };
        engine.event(entry.at, event, &mut printer);
    }
    while let Some(deadline) = engine.deadline() {
        engine.advance(deadline, &mut printer);
    }
    Ok(())
}

/// Reads a file, or standard input for `-`.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    // A pipe that a person names is read: a shell makes one of `<(command)`. One without an end is not read to it.
    let bounded = |from: &mut dyn Read| {
        let mut text = String::new();
        from.take(MAX_TEXT + 1).read_to_string(&mut text)?;
        let long = || io::Error::new(io::ErrorKind::FileTooLarge, format!("has more than {MAX_TEXT} bytes"));
        if text.len() as u64 > MAX_TEXT { Err(long()) } else { Ok(text) }
    };
    let read = match path.as_os_str().to_str() {
        Some("-") => bounded(&mut io::stdin()),
        _ => File::open(path).and_then(|mut file| bounded(&mut file)),
    };
    read.map_err(|error| Failure::Wrong(format!("conductor: {}: {error}", path.display())))
}

/// Reads a script.
pub(super) fn script(path: &Path) -> Result<Timeline, Failure> {
    Timeline::parse(&read(path)?).map_err(|errors| {
        let name = path.display();
        Failure::Wrong(errors.iter().map(|error| format!("{name}: {error}")).collect::<Vec<_>>().join("\n"))
    })
}

/// What the system says now, for conditions; what a script is about begins now.
pub(super) fn environment() -> EnvironmentHandle {
    let environment = EnvironmentHandle::new();
    environment.set(conductor_host::environment::now(Clock::start()));
    environment
}

/// Says nothing, and changes modes.
#[derive(Default)]
pub(super) struct Quiet(VecDeque<DeviceEvent<Event>>);

impl Sink<Action> for Quiet {
    fn fire(&mut self, firing: Firing<'_, Action>) -> Option<Arc<str>> {
        Action::at_once(&firing, &mut self.0)
    }

    fn brought_about(&mut self) -> Option<DeviceEvent<Event>> {
        self.0.pop_front()
    }
}

/// Prints each event and gesture with the rules that fire.
struct Printer {
    rules: Arc<RuleSetHandle<Action>>,
    json: bool,
    fired: Vec<String>,
    brought_about: VecDeque<DeviceEvent<Event>>,
}

impl Sink<Action> for Printer {
    fn fire(&mut self, firing: Firing<'_, Action>) -> Option<Arc<str>> {
        let mut rule = describe_rule_id(firing.rule.id, &self.rules.load(), true);
        if let Some(choices) = &firing.rule.choices {
            let branches = (0..choices.conditions.len()).map(|number| firing.answers.branch(number));
            rule.push_str(&format!(" [{}]", branches.collect::<Vec<_>>().join(" ")));
        }
        self.fired.push(rule);
        Action::at_once(&firing, &mut self.brought_about)
    }

    fn brought_about(&mut self) -> Option<DeviceEvent<Event>> {
        self.brought_about.pop_front()
    }

    fn record(&mut self, record: Record) {
        let names = std::mem::take(&mut self.fired);
        let rules = self.rules.load();
        let mode = rules.modes().get(usize::from(record.mode.0)).map_or("-", |name| name);
        let (device, event) = (record.device.as_str(), record.event.to_string());
        if self.json {
            terminal::json_line(
                &json!({ "at": record.at, "device": device, "event": event, "mode": mode, "rules": names }),
            );
        } else {
            let what = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
            outln!("{:>10.3} ms  [{mode}] {device:<12} {event:<28} -> {what}", record.at as f64 / 1e6);
        }
    }
}
