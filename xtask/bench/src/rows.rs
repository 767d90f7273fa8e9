//! The rows, and running them.

use std::fmt;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use serde::Serialize;

use crate::arguments::Arguments;
use crate::report::Report;
use crate::{
    agents, calls, clock_out, control, council, devices, gestures, looking, mapper, matching, memory, models,
    neighbours, newcomer, platform, reload, round_trip, skills, start, timers, turns,
};

/// An entry of the list of what must be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
pub enum Row {
    /// Matching an event against rules.
    #[value(name = "PERF-1")]
    #[serde(rename = "PERF-1")]
    Match,
    /// From a port through a guest back to a socket.
    #[value(name = "PERF-2")]
    #[serde(rename = "PERF-2")]
    RoundTrip,
    /// Calling a guest.
    #[value(name = "PERF-3")]
    #[serde(rename = "PERF-3")]
    Call,
    /// Starting.
    #[value(name = "PERF-4")]
    #[serde(rename = "PERF-4")]
    Start,
    /// Memory.
    #[value(name = "PERF-5")]
    #[serde(rename = "PERF-5")]
    Memory,
    /// Calling a tool over MCP.
    #[value(name = "PERF-6")]
    #[serde(rename = "PERF-6")]
    Agents,
    /// Answers of models.
    #[value(name = "PERF-7")]
    #[serde(rename = "PERF-7")]
    Models,
    /// What a new user waits for.
    #[value(name = "NEWCOMER")]
    #[serde(rename = "NEWCOMER")]
    Newcomer,
    /// What events feel of answers of models.
    #[value(name = "TURNS")]
    #[serde(rename = "TURNS")]
    Turns,
    /// Gestures on time.
    #[value(name = "PERF-8")]
    #[serde(rename = "PERF-8")]
    Timers,
    /// Reloading.
    #[value(name = "PERF-9")]
    #[serde(rename = "PERF-9")]
    Reload,
    /// Finding gestures.
    #[value(name = "GESTURES")]
    #[serde(rename = "GESTURES")]
    Gestures,
    /// Variables, expressions, layers.
    #[value(name = "MAPPER")]
    #[serde(rename = "MAPPER")]
    Mapper,
    /// The MIDI clock that goes out.
    #[value(name = "CLOCK")]
    #[serde(rename = "CLOCK")]
    ClockOut,
    /// The API and the record.
    #[value(name = "CONTROL")]
    #[serde(rename = "CONTROL")]
    Control,
    /// Calling a tool while a person looks at a plan.
    #[value(name = "LOOKING")]
    #[serde(rename = "LOOKING")]
    Looking,
    /// What events feel of other features, reloads and clients.
    #[value(name = "NEIGHBOURS")]
    #[serde(rename = "NEIGHBOURS")]
    Neighbours,
    /// A deliberation of several models.
    #[value(name = "COUNCIL")]
    #[serde(rename = "COUNCIL")]
    Council,
    /// Reading skills.
    #[value(name = "SKILLS")]
    #[serde(rename = "SKILLS")]
    Skills,
    /// What is known of controllers.
    #[value(name = "DEVICES")]
    #[serde(rename = "DEVICES")]
    Devices,
    /// The feature platform.
    #[value(name = "FEATURES")]
    #[serde(rename = "FEATURES")]
    Features,
}

impl Row {
    /// What it is about.
    pub fn subject(self) -> &'static str {
        match self {
            Self::Match => "matching an event against rules",
            Self::RoundTrip => "OSC in, rule, sandboxed OscSend, UDP out: the whole process",
            Self::Call => "calling a guest in the real-time lane",
            Self::Start => "from nothing to an answer on the API's socket",
            Self::Memory => "memory of an idle host",
            Self::Agents => "calling a tool over MCP",
            Self::Models => "answers of models: through guests, in turns, many at once",
            Self::Newcomer => "from an empty home to the first answer and the first mapping",
            Self::Turns => "a round trip beside 100 turns of conversations at once",
            Self::Control => "answers of the API, those who watch, the record",
            Self::Timers => "gestures on time, under 10 000 events a second",
            Self::Reload => "reloading 10 000 rules, and what events feel of it",
            Self::Gestures => "finding gestures in events",
            Self::Mapper => "rules with variables, expressions and layers",
            Self::ClockOut => "MIDI clock out, under 10 000 events a second",
            Self::Looking => "calling a tool while a person looks at a plan over 10 000 rules",
            Self::Neighbours => "a round trip beside features that misbehave, reloads, clients",
            Self::Council => "a deliberation, beyond the time of its models",
            Self::Skills => "reading skills, and looking at those that were read",
            Self::Devices => "the library of devices, and what kind of source sends",
            Self::Features => "instances, installs, tool calls, services, hooks",
        }
    }

    fn measure(self, arguments: &Arguments, report: &mut Report) -> Result<()> {
        let mut section = report.section(self);
        match self {
            Self::Match => matching::measure(&mut section),
            Self::RoundTrip => round_trip::measure(arguments, &mut section),
            Self::Call => calls::measure(arguments, &mut section),
            Self::Start => start::measure(arguments, &mut section),
            Self::Memory => memory::measure(arguments, &mut section),
            Self::Agents => agents::measure(arguments, &mut section),
            Self::Control => control::measure(&mut section),
            Self::Models => models::measure(arguments, &mut section),
            Self::Newcomer => newcomer::measure(arguments, &mut section),
            Self::Turns => turns::measure(arguments, &mut section),
            Self::Timers => timers::measure(&mut section),
            Self::Reload => reload::measure(&mut section),
            Self::Gestures => gestures::measure(&mut section),
            Self::Mapper => mapper::measure(&mut section),
            Self::ClockOut => clock_out::measure(&mut section),
            Self::Looking => looking::measure(arguments, &mut section),
            Self::Neighbours => neighbours::measure(arguments, &mut section),
            Self::Council => council::measure(arguments, &mut section),
            Self::Skills => skills::measure(&mut section),
            Self::Devices => devices::measure(&mut section),
            Self::Features => platform::measure(arguments, &mut section),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Match => "PERF-1",
            Self::RoundTrip => "PERF-2",
            Self::Call => "PERF-3",
            Self::Start => "PERF-4",
            Self::Memory => "PERF-5",
            Self::Agents => "PERF-6",
            Self::Control => "CONTROL",
            Self::Models => "PERF-7",
            Self::Newcomer => "NEWCOMER",
            Self::Turns => "TURNS",
            Self::Timers => "PERF-8",
            Self::Reload => "PERF-9",
            Self::Gestures => "GESTURES",
            Self::Mapper => "MAPPER",
            Self::ClockOut => "CLOCK",
            Self::Looking => "LOOKING",
            Self::Neighbours => "NEIGHBOURS",
            Self::Council => "COUNCIL",
            Self::Skills => "SKILLS",
            Self::Devices => "DEVICES",
            Self::Features => "FEATURES",
        })
    }
}

/// Measures the rows that were asked for and prints what came out.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut report = Report::default();
    let wanted = |row: &Row| arguments.only.is_empty() || arguments.only.contains(row);
    for row in Row::value_variants().iter().copied().filter(wanted) {
        eprintln!("{row}: {}", row.subject());
        if let Err(error) = row.measure(arguments, &mut report) {
            report.failed(row, &error);
        }
    }
    println!("{report}");
    if let Some(file) = &arguments.json {
        let json = serde_json::to_string_pretty(&report)?;
        std::fs::write(file, json).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(if report.is_complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
