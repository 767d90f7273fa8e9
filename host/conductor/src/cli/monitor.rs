//! `conductor monitor`: prints every event as it comes.
//!
//! Watches the host that runs in this home. If none runs, it opens every input itself and shows
//! its events; then there are no rules to fire.

use super::{CommandResult, Paths, signals};
use crate::embedding::system_ports;
use conductor_api::client::{Client, if_running};
use conductor_api::types::StreamQuery;
use conductor_config as config;
use conductor_control_names::ControlNames;
use conductor_host::host::Host;
use conductor_observation::{Kind, ObservationView};
use conductor_terminal::{self as terminal, Lines, errln};
use conductor_timeline::named;
use serde::Deserialize;

/// Columns of a line: an OSC packet may hold 64 KB of text.
const MAX_COLUMNS: usize = 1000;

pub(super) fn run(places: &Paths, json: bool) -> CommandResult {
    // What is said in conversations is for `conductor chat`, and what lights show for those who draw them.
    let names = Kind::ALL.iter().filter(|(_, kind)| !matches!(kind, Kind::Chat | Kind::Lights)).map(|(name, _)| *name);
    let which = StreamQuery { after: None, kinds: Some(names.collect::<Vec<_>>().join(",")) };
    let watched = Client::new(&places.home).events(&which, |item| print(&item.what, json));
    if if_running(watched)?.is_some() {
        return Ok(());
    }
    errln!("no host is running in {}: listening to every input", places.home.display());
    let nothing = config::parse("", "nothing").map_err(super::wrong)?;
    // Bindings still name devices, and OSC ports exist because they are configured.
    let loaded = super::load(&places.config).map(without_rules).unwrap_or(nothing);
    // Ports are closed in good order: some systems wait for a client that just disappears.
    let (ending, end) = crossbeam_channel::unbounded();
    signals::listen(ending, |_| ())?;
    let mut builder = Host::builder().listen_to_all();
    for backend in system_ports() {
        builder = builder.backend(backend);
    }
    let host = builder.start(&loaded).map_err(super::started)?;
    let observations = host.subscribe();
    let names = ControlNames::new(&places.home);
    loop {
        crossbeam_channel::select! {
            recv(observations) -> observation => match observation {
                Ok(observation) if print(&ObservationView::named(&observation, &host, &names), json) => {}
                _ => break,
            },
            recv(end) -> _ => break,
        }
    }
    host.stop();
    Ok(())
}

fn without_rules(mut loaded: config::Loaded) -> config::Loaded {
    loaded.config.modes.clear();
    loaded.config.global_mappings.clear();
    loaded.config.features.clear();
    loaded
}

/// Returns false if the reader has closed the pipe.
fn print(view: &ObservationView, json: bool) -> bool {
    if json {
        return terminal::try_json_line(view).is_ok();
    }
    let mut lines = Lines::new();
    for line in arranged(words(view), terminal::output_columns()) {
        lines.push_fit(MAX_COLUMNS, &line);
    }
    terminal::try_print(&lines).is_ok()
}

/// What is said of an event, in one line; on a terminal without room for it, what came of the event stands below.
fn arranged((line, came_of_it): (String, String), columns: Option<u16>) -> Vec<String> {
    let fits = |columns| terminal::width(&line) + terminal::width(&came_of_it) <= usize::from(columns);
    match came_of_it.trim_start() {
        "" => vec![line.trim_end().to_owned()],
        below if !columns.is_none_or(fits) => vec![line.trim_end().to_owned(), format!("{:>14}  {below}", "")],
        _ => vec![line + &came_of_it],
    }
}

/// What is said of an event of a conversation: hosts of other versions may have other kinds.
#[derive(Deserialize)]
struct OfConversation {
    kind: String,
}

/// An observation, and what came of it.
fn words(view: &ObservationView) -> (String, String) {
    let line = match view {
        ObservationView::Event { at, device, event, control, rules } => {
            let fired = if rules.is_empty() { String::new() } else { format!("  -> {}", rules.join(", ")) };
            let named = named::comment(event).map(|named| format!("  {named}")).unwrap_or_default();
            let control = control.as_ref().map(|control| format!("  {control}")).unwrap_or_default();
            let line = format!("{:>12.6} s  {device:<16} {event:<32}", *at as f64 / 1e9);
            return (line, format!("{control}{fired}{named}"));
        }
        ObservationView::Failure { at, rule, worker, reason } => {
            format!("{:>12.6} s  {worker:<16} FAILED {rule}: {reason}", *at as f64 / 1e9)
        }
        ObservationView::Mode { mode } => format!("{:>14}  mode {mode}", ""),
        ObservationView::Lights { device } => format!("{:>14}  lights of {device}", ""),
        ObservationView::Message { feature, sink, text, .. } => format!("{:>14}  {feature} ({sink}): {text}", ""),
        ObservationView::Port { text, .. } | ObservationView::Reload { text, .. } => format!("{:>14}  {text}", ""),
        ObservationView::Plan { step, plan, who, description } => {
            let step = serde_json::to_value(step).unwrap_or_default();
            let plan = plan.as_deref().map(|plan| format!(" {plan:.12}")).unwrap_or_default();
            format!("{:>14}  plan{plan} {} ({who}): {description}", "", step.as_str().unwrap_or_default())
        }
        ObservationView::Lock { locked, by } => {
            format!("{:>14}  the show was {} by {by}", "", if *locked { "locked" } else { "unlocked" })
        }
        ObservationView::Chat { conversation, event, .. } => {
            let kind = OfConversation::deserialize(event).map_or_else(|error| error.to_string(), |event| event.kind);
            format!("{:>14}  conversation {conversation}: {kind}", "")
        }
        ObservationView::Model { model, error: None } => format!("{:>14}  the model {model} answers", ""),
        ObservationView::Model { model, error: Some(error) } => {
            format!("{:>14}  the model {model} gives no answer: {error}", "")
        }
        ObservationView::Gap { lost: Some(lost) } => format!("{:>14}  ({lost} more, which came too fast)", ""),
        ObservationView::Gap { lost: None } => format!("{:>14}  (the host was started anew)", ""),
    };
    (line, String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_has_no_room_for_stands_below() {
        let event = format!("    1.000000 s  {:<16} {:<32}", "pads", "note-on 36 100 ch 9");
        let said = |rules: &str| (event.clone(), rules.to_owned());
        let whole = [format!("{event}  -> a rule")];
        assert_eq!(arranged(said("  -> a rule"), None), whole, "in a pipe each event is one line");
        assert_eq!(arranged(said("  -> a rule"), Some(80)), whole);
        let below = ["    1.000000 s  pads             note-on 36 100 ch 9", "                -> a rule"];
        assert_eq!(arranged(said("  -> a rule"), Some(70)), below);
        assert_eq!(arranged(said(""), Some(40)), below[..1]);
    }
}
