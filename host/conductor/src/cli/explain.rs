//! `conductor explain`: which rules look at an event, which fire, and why the others do not.

use std::path::PathBuf;
use std::sync::Arc;

use conductor_engine::{DeviceEvent, DeviceId, Engine};
use conductor_timeline::Timeline;
use serde_json::json;

use super::control_names::ControlNames;
use super::simulate::{self, Quiet};
use super::{CommandResult, Failure, Paths, devices, load, ports, warn};
use conductor_api::client::Client;
use conductor_dispatch::describe_rule_id;
use conductor_host::host;
use conductor_terminal::{self as terminal, Table, errln, outln};

/// What to explain.
#[derive(Debug, clap::Args)]
pub(super) struct ExplainArguments {
    /// The event, as in a script but without its time: `pads note-on 36 100`
    #[arg(required = true, num_args = 1.., allow_negative_numbers = true)]
    event: Vec<String>,
    /// A script of what came before
    #[arg(long, value_name = "SCRIPT")]
    after: Option<PathBuf>,
    /// The mode that is active [default: what the script leads to, the running host's, or the first]
    #[arg(long)]
    mode: Option<String>,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(places: &Paths, arguments: &ExplainArguments) -> CommandResult {
    let before = arguments.after.as_deref().map(simulate::script).transpose()?.unwrap_or_default();
    let at = before.entries.last().map_or(0, |entry| entry.at);
    let text = arguments.event.join(" ");
    let asked = Timeline::parse(&format!("0s {text}")).map_err(|errors| {
        // Errors do not mention the time that is put in front.
        Failure::Wrong(errors.iter().map(|error| format!("{text}: {}", error.message)).collect::<Vec<_>>().join("\n"))
    })?;
    let Some(asked) = asked.entries.into_iter().next() else {
        return Err(Failure::Wrong("conductor: say which event, such as `pads note-on 36 100`".into()));
    };
    let loaded = load(&places.config)?;
    let compiled = host::check(&loaded, Some(&places.home), places.features.as_deref()).map_err(super::started)?;
    warn(&compiled.warnings);

    let rules = Arc::new(conductor_engine::RuleSetHandle::new(compiled.rules));
    let mut engine = Engine::new(Arc::clone(&rules), Arc::new(simulate::environment()));
    for entry in before.entries {
        let event = DeviceEvent { device: DeviceId::new(&entry.device), event: entry.event };
        engine.event(entry.at, event, &mut Quiet::default());
    }
    let whose = if let Some(mode) = &arguments.mode {
        engine.set_mode(mode, &mut Quiet::default()).map_err(|error| Failure::Wrong(format!("conductor: {error}")))?;
        "as asked for"
    } else if arguments.after.is_some() {
        "where the script leads to"
    } else if running_mode(places).is_some_and(|mode| engine.set_mode(&mode, &mut Quiet::default()).is_ok()) {
        "that of the running host"
    } else {
        "the first; `--mode` names another"
    };
    let mode = rules.load().modes().get(usize::from(engine.mode_index().0)).map(ToString::to_string);
    if let Some(mode) = &mode
        && !arguments.json
        && rules.load().modes().len() > 1
    {
        errln!("in the mode {mode} ({whose})");
    }
    // The ports of a running host say which device is meant; else what is bound does.
    let mut names = ControlNames::new(devices::library(places));
    if let Ok(Some(status)) = ports::running(places) {
        names.see(&status);
    }
    names.expect(&conductor_rules::bindings::plan(&loaded.config).bindings);
    let control = names.of(&asked.device, &asked.event);
    if let (Some(control), false) = (control, arguments.json) {
        errln!("{} is {control}", asked.event);
    }
    let explanations = engine.explain(at, &DeviceId::new(&asked.device), &asked.event);
    let rules = rules.load();
    let mut table = Table::new(["RULE", "WHY"]);
    for explanation in &explanations {
        let rule = describe_rule_id(explanation.rule, &rules, true);
        if arguments.json {
            let fires = explanation.verdict.is_awake();
            let why = explanation.to_string();
            terminal::json_line(&json!({ "rule": rule, "mode": mode, "fires": fires, "why": why, "control": control }));
        } else {
            table.row([&rule, explanation]);
        }
    }
    match &explanations[..] {
        _ if arguments.json => {}
        [] => outln!("no rule looks at {}", asked.event),
        _ => terminal::print_table(&table),
    }
    Ok(())
}

/// The mode that is active in the host of this home, if one runs.
fn running_mode(places: &Paths) -> Option<String> {
    Client::new(&places.home).status().ok()?.mode
}
