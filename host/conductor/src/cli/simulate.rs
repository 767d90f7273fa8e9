//! `conductor simulate`: a dry run of the rules for the events of a script, and what would go out.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conductor_dispatch::Action;
use conductor_dispatch::describe_rule_id;
use conductor_engine::{EnvironmentHandle, RuleSet, RuleSetHandle};
use conductor_event::{DeviceEvent, DeviceId, Event, Nanos, Record};
use conductor_host::host::{self, Rehearsal};
use conductor_stdx::clock::Clock;
use conductor_stdx::plain_file::MAX_TEXT;
use conductor_terminal::{self as terminal, errln, outln};
use conductor_timeline::player::{Happened, Player, Sent};
use conductor_timeline::{Timeline, TimelineEntry};
use serde_json::json;

use super::{CommandResult, Failure, Paths, load, shown_effects, warn};

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
    let rehearsed = host::rehearse(&loaded, Some(&places.home), places.features.as_deref());
    let Rehearsal { compiled, mut actions } = rehearsed.map_err(super::started)?;
    warn(&compiled.warnings);

    let rules = Arc::new(RuleSetHandle::new(compiled.rules));
    let set = rules.load();
    let events: Vec<_> = timeline.entries.into_iter().map(event).collect();
    let named = events.iter().map(|(_, event)| (String::new(), &event.device));
    shown_effects::hint_devices(named, &loaded.config, &set);
    let mut player = Player::new(&rules, &Arc::new(environment()), &mut actions);
    let mut printer = Printer { json: arguments.json, ..Printer::default() };
    for (at, event) in events {
        player.advance(at);
        printer.print(player.happened(), &set);
        player.event(at, event);
        printer.print(player.happened(), &set);
    }
    let is_done = player.finish();
    printer.print(player.happened(), &set);
    if !is_done {
        errln!("what was started does not end, and is not followed any longer");
    }
    Ok(())
}

/// When an event comes, and which.
pub(super) fn event(entry: TimelineEntry) -> (Nanos, DeviceEvent<Event>) {
    (entry.at, DeviceEvent { device: DeviceId::new(&entry.device), event: entry.event })
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

/// Prints what happened, events and gestures with the rules that fire, then what goes out of it.
#[derive(Default)]
struct Printer {
    json: bool,
    fired: Vec<String>,
    sent: Vec<Sent>,
}

impl Printer {
    fn print(&mut self, happened: Vec<Happened>, rules: &RuleSet<Action>) {
        for happened in happened {
            match happened {
                Happened::Fired { rule, decided, .. } => {
                    let mut rule = describe_rule_id(rule, rules, true);
                    if !decided.is_empty() {
                        let branches = decided.iter().map(|&held| if held { "then" } else { "else" });
                        rule.push_str(&format!(" [{}]", branches.collect::<Vec<_>>().join(" ")));
                    }
                    self.fired.push(rule);
                }
                // It is shown below the event of its rule; what a script does later belongs to none.
                Happened::Sent(sent) => {
                    self.sent.push(sent);
                    if self.fired.is_empty() {
                        self.effects(rules);
                    }
                }
                Happened::Asked(record) => {
                    self.event(&record, rules);
                    self.effects(rules);
                }
            }
        }
        self.effects(rules);
    }

    fn event(&mut self, record: &Record, rules: &RuleSet<Action>) {
        let names = std::mem::take(&mut self.fired);
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

    fn effects(&mut self, rules: &RuleSet<Action>) {
        for sent in self.sent.drain(..) {
            if self.json {
                terminal::json_line(&shown_effects::json(&sent, rules));
            } else {
                outln!("{:>10.3} ms    {}", sent.at as f64 / 1e6, shown_effects::line(&sent, rules));
            }
        }
    }
}
