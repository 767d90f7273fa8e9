//! `conductor explain`: which rules look at an event, which fire, why the others do not, and what goes out.

use std::path::PathBuf;
use std::sync::Arc;

use conductor_timeline::Timeline;
use conductor_timeline::player::{Happened, Player};
use serde_json::json;

use super::simulate;
use super::{CommandResult, Failure, Paths, load, ports, shown_effects, warn};
use conductor_api::client::Client;
use conductor_control_names::ControlNames;
use conductor_dispatch::describe_rule_id;
use conductor_host::host::{self, Rehearsal};
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
    let rehearsed = host::rehearse(&loaded, Some(&places.home), places.features.as_deref());
    let Rehearsal { compiled, mut actions } = rehearsed.map_err(super::started)?;
    warn(&compiled.warnings);

    let rules = Arc::new(conductor_engine::RuleSetHandle::new(compiled.rules));
    let mut player = Player::new(&rules, &Arc::new(simulate::environment()), &mut actions);
    let before: Vec<_> = before.entries.into_iter().map(simulate::event).collect();
    let (_, asked) = simulate::event(asked);
    let named = before.iter().map(|(_, event)| event).chain([&asked]).map(|event| (String::new(), &event.device));
    shown_effects::hint_devices(named, &loaded.config, &rules.load());
    for (at, event) in before {
        player.event(at, event);
    }
    let whose = if let Some(mode) = &arguments.mode {
        player.set_mode(mode).map_err(|error| Failure::Wrong(format!("conductor: {error}")))?;
        "as asked for"
    } else if arguments.after.is_some() {
        "where the script leads to"
    } else if running_mode(places).is_some_and(|mode| player.set_mode(&mode).is_ok()) {
        "that of the running host"
    } else {
        "the first; `--mode` names another"
    };
    let mode = rules.load().modes().get(usize::from(player.engine().mode_index().0)).map(ToString::to_string);
    if let Some(mode) = &mode
        && !arguments.json
        && rules.load().modes().len() > 1
    {
        errln!("in the mode {mode} ({whose})");
    }
    // The ports of a running host say which device is meant; else what is bound does.
    let names = ControlNames::new(&places.home);
    if let Ok(Some(status)) = ports::running(places) {
        names.see(&status);
    }
    names.expect(&conductor_rules::bindings::plan(&loaded.config).bindings);
    let control = names.of(asked.device.as_str(), &asked.event);
    if let (Some(control), false) = (&control, arguments.json) {
        errln!("{} is {control}", asked.event);
    }
    player.happened();
    let explanations = player.engine().explain(at, &asked.device, &asked.event);
    let event = asked.event.to_string();
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
        [] => outln!("no rule looks at {event}"),
        _ => terminal::print_table(&table),
    }
    player.event(at, asked);
    player.finish_actions();
    for happened in player.happened() {
        let Happened::Sent(sent) = happened else { continue };
        if arguments.json {
            let mut line = shown_effects::json(&sent, &rules);
            line["mode"] = json!(mode);
            terminal::json_line(&line);
        } else {
            outln!("{}", shown_effects::line_since(at, &sent, &rules));
        }
    }
    Ok(())
}

/// The mode that is active in the host of this home, if one runs.
fn running_mode(places: &Paths) -> Option<String> {
    Client::new(&places.home).status().ok()?.mode
}
