//! The screen Status: the host, its modes, and everything that is not healthy.

use conductor_host::control::trouble::TroublesomeClient;
use conductor_host::host::status::Status;
use conductor_ports::status::{BindingStatus, DiscoveredPort, Health, PortState};
use conductor_stdx::plural::{plural, plural_u64};
use conductor_terminal::duration;

use super::{Part, field, megabytes, title};
use crate::input::{Command, Context, Screen, key_of};
use crate::state::{Link, State};
use conductor_screen_text::{Look, Row};

pub(super) fn parts(state: &State, columns: usize) -> (Option<Part>, Option<Part>) {
    let Some(status) = &state.status else {
        let why = match &state.link {
            Link::Lost { why, .. } => format!("{why}; it is tried again"),
            _ => "the host has not answered yet".to_owned(),
        };
        let above = Part::list(title("Modes"), Vec::new(), 0, "not known yet");
        return (Some(above), Some(Part::text(title("Host"), field("", Look::Doubt, &why, columns), 0)));
    };
    let mode = |mode: &String| {
        let is_active = status.mode.as_ref() == Some(mode);
        Row::of(Look::Good, if is_active { " ● " } else { "   " }).put_rest(Look::Plain, mode, columns)
    };
    let modes = status.modes.iter().map(mode).collect();
    let above = Part::list(title("Modes"), modes, state.mode_at, "the configuration has no modes");
    let below = Part::text(title("Host"), lines(status, columns), state.status_scroll);
    (Some(above), Some(below))
}

fn lines(status: &Status, columns: usize) -> Vec<Row> {
    let mut out = Vec::new();
    let mut say = |about: &str, look: Look, text: &str| out.extend(field(about, look, text, columns));
    let uptime = duration(status.uptime / 1_000_000_000);
    say("conductor", Look::Plain, &format!("{}, process {}, for {uptime}", status.version, status.pid));
    if let Some(front) = &status.front {
        say("in front", Look::Plain, front);
    }
    match &status.lock {
        Some(lock) => say("lock", Look::Doubt, &format!("locked by {}", lock.by)),
        None => say("lock", Look::Plain, "not locked"),
    }
    say("rules", Look::Plain, &format!("{}, of {}", status.rules, status.config));
    if status.rules == 0 && status.refused.is_none() {
        let live = key_of(Context::Everywhere, Command::Show(Screen::Live));
        let map = key_of(Context::Live, Command::Map);
        say("", Look::Doubt, &format!("nothing is mapped yet: on screen {live}, move a control, then {map} maps it"));
    }
    if let Some(refused) = &status.refused {
        say("", Look::Bad, &format!("refused: {refused}; `conductor config validate` says why"));
    }
    if !status.warnings.is_empty() {
        say("doubts", Look::Doubt, &plural(status.warnings.len(), "warning"));
        status.warnings.iter().for_each(|warning| say("", Look::Doubt, &format!("? {warning}")));
    }
    let failed = if status.failures == 0 { Look::Plain } else { Look::Doubt };
    say("events", failed, &format!("{}, {} failed", status.events, plural_u64(status.failures, "action")));
    if let Some(last) = &status.last_failure {
        say("", Look::Doubt, &format!("! {last}"));
    }
    if status.unobserved > 0 {
        say(
            "",
            Look::Doubt,
            &format!("! {} not shown anywhere: they came too fast", plural_u64(status.unobserved, "event")),
        );
    }

    let ports = &status.ports.ports;
    let open = ports.iter().filter(|port| port.state == PortState::Open).count();
    say("ports", Look::Plain, &format!("{open} of {} open", ports.len()));
    for port in ports {
        match &port.state {
            PortState::Failed(why) => say("", Look::Bad, &format!("✗ {}: {why}", port.port.name)),
            PortState::Ambiguous(alias) => say("", Look::Doubt, &format!("? {}: could be {alias}", port.port.name)),
            PortState::OverLimit => say("", Look::Doubt, &format!("? {}: too many are open", port.port.name)),
            // Those that people type and point with are opened for a binding only, and say nothing here until then.
            PortState::Idle if port.port.protocol.is_private() => {}
            PortState::Open | PortState::Idle | PortState::Ignored => {
                let (look, sign) = if port.connected { (Look::Good, "●") } else { (Look::Dim, "·") };
                say("", look, &format!("{sign} {} {}{}", port.port.direction, port.label, whose(port)));
            }
        }
        if port.malformed + port.lost > 0 {
            let text = format!("! {}: {} malformed, {} lost", port.port.name, port.malformed, port.lost);
            say("", Look::Doubt, &text);
        }
    }
    status.ports.unreachable.iter().for_each(|(_, why)| say("", Look::Bad, &format!("✗ {why}")));

    let bindings = &status.ports.bindings;
    let is_well = |binding: &&BindingStatus| !binding.muted && matches!(binding.health, Health::Green | Health::Off);
    let well = bindings.iter().filter(is_well).count();
    say("bindings", Look::Plain, &format!("{well} of {} healthy", bindings.len()));
    for binding in bindings {
        let (look, sign) = health(binding.health);
        let why = if binding.muted { Some("muted until the host ends") } else { binding.help.as_deref() };
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        say("", look, &format!("{sign} {} {}{why}", binding.alias, binding.health.as_str()));
    }

    let features = &status.features;
    let wrong = |quarantine: Option<u64>, refused: Option<&String>| {
        quarantine.map(|left| format!("quarantined for {left} s")).or_else(|| refused.cloned())
    };
    let troubled = features.iter().filter_map(|feature| {
        wrong(feature.quarantine, feature.refused.as_ref()).map(|why| format!("! {}: {why}", feature.name))
    });
    let troubled: Vec<String> = troubled.collect();
    let memory: usize = features.iter().map(|feature| feature.memory).sum();
    let at_work = features.len() - troubled.len();
    say("features", Look::Plain, &format!("{at_work} of {} at work", features.len()));
    troubled.iter().for_each(|text| say("", Look::Doubt, text));
    say("memory", Look::Plain, &format!("{} in features", megabytes(memory)));

    let clients = &status.troublesome_clients;
    if !clients.is_empty() {
        say("clients", Look::Doubt, &format!("{} slowed, turned away or cut off", clients.len()));
        clients.iter().for_each(|one| say("", Look::Plain, &client(one)));
    }
    match &status.audit.trouble {
        Some(why) => say("audit", Look::Bad, &format!("can't be written: {why}")),
        None => say("audit", Look::Plain, &format!("{} since the start", plural_u64(status.audit.written, "row"))),
    }
    out
}

/// Which bindings have a port, or why none has it.
fn whose(port: &DiscoveredPort) -> String {
    match (&port.state, port.bindings.as_slice()) {
        (PortState::Ignored, _) => ": left alone, as `ignore_ports` says".to_owned(),
        (_, []) => String::new(),
        (_, bindings) => format!(", bound to {}", bindings.join(", ")),
    }
}

/// How a binding is, as a look and as a sign.
pub(super) fn health(health: Health) -> (Look, &'static str) {
    match health {
        Health::Green => (Look::Good, "●"),
        Health::Amber => (Look::Doubt, "◐"),
        Health::Red => (Look::Bad, "○"),
        Health::Off => (Look::Dim, "·"),
    }
}

fn client(client: &TroublesomeClient) -> String {
    let name = client.name.as_deref().unwrap_or("without a name");
    format!("{name} at {}: {}, {} times", client.door.as_str(), client.what.as_str(), client.count)
}
