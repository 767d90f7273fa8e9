//! `conductor status`: the state of the running host, on one screen.

use super::{CommandResult, Paths};
use conductor_api::client::Client;
use conductor_audit::caller::Scope;
use conductor_host::control::trouble::TroublesomeClient;
use conductor_host::host::status::Status;
use conductor_ports::supervisor::{BindingStatus, Health, PortState};
use conductor_stdx::plural::plural_u64;
use conductor_terminal::{self as terminal, Lines};

pub(super) fn run(places: &Paths, as_json: bool) -> CommandResult {
    let client = Client::new(&places.home);
    let status = client.status()?;
    if as_json {
        terminal::json(&status)?;
        return Ok(());
    }
    terminal::print(&shown(&status, client.plans()?.len()));
    Ok(())
}

/// Lines about things of one kind, at most.
const MAX_LINES: usize = 5;

/// The screen. `plans` is how many wait.
fn shown(status: &Status, plans: usize) -> Lines {
    let mut screen = Screen(Lines::new());
    let uptime = terminal::duration(status.uptime / 1_000_000_000);
    screen.line("conductor", &format!("{}, process {}, for {uptime}", status.version, status.pid));

    let mode = match &status.modes[..] {
        [] => "none is configured".to_owned(),
        [mode] => mode.clone(),
        modes => format!("{} (of {})", status.mode.as_deref().unwrap_or("-"), modes.join(", ")),
    };
    screen.line("mode", &mode);
    if let Some(front) = &status.front {
        screen.line("in front", front);
    }
    if let Some(lock) = &status.lock {
        let until = if lock.persistent { "" } else { ", or the host stops" };
        screen.line("locked", &format!("by {}; until `conductor unlock`{until}", lock.by));
    }
    screen.line("rules", &format!("{}, loaded {}", status.rules, times(status.generation)));
    if let Some(refused) = &status.refused {
        screen.more(&format!("{refused}; `conductor config validate` says why"));
    }
    if !status.warnings.is_empty() {
        screen.line("warnings", &format!("{}; `conductor config validate` shows them", status.warnings.len()));
        screen.some(status.warnings.clone());
    }
    screen.line("events", &format!("{}, {} failed", status.events, plural_u64(status.failures, "action")));
    if let Some(last) = &status.last_failure {
        screen.more(&format!("the last one: {last}"));
    }

    let ports = &status.ports.ports;
    let open = ports.iter().filter(|port| port.state == PortState::Open).count();
    screen.line("ports", &format!("{open} of {} open", ports.len()));
    let closed = ports.iter().filter_map(|port| match &port.state {
        PortState::Failed(why) => Some(format!("{}: {why}", port.port.name)),
        _ => None,
    });
    let unreachable = status.ports.unreachable.iter().map(|(_, why)| why.clone());
    let missed = ports.iter().filter_map(|port| {
        let missed = super::ports::missed(port.malformed, port.lost)?;
        Some(format!("{}: {missed}; `conductor doctor` says why", port.port.name))
    });
    screen.some(closed.chain(unreachable).chain(missed).collect());

    let bindings = &status.ports.bindings;
    if !bindings.is_empty() {
        let is_wrong =
            |binding: &&BindingStatus| binding.muted || matches!(binding.health, Health::Amber | Health::Red);
        let wrong: Vec<&BindingStatus> = bindings.iter().filter(is_wrong).collect();
        screen.line("bindings", &format!("{} of {} healthy", bindings.len() - wrong.len(), bindings.len()));
        let wrong = wrong.into_iter().map(|binding| {
            let why = if binding.muted { "muted" } else { binding.help.as_deref().unwrap_or("-") };
            format!("{}: {why}", binding.alias)
        });
        screen.some(wrong.collect());
    }

    let features = &status.features;
    let wrong: Vec<String> = features
        .iter()
        .filter_map(|feature| {
            let name = &feature.name;
            let left = feature.quarantine.map(|left| format!("{name}: quarantined for {left} s"));
            left.or_else(|| feature.refused.as_ref().map(|why| format!("{name}: {why}")))
        })
        .collect();
    screen.line("features", &format!("{} of {} at work", features.len() - wrong.len(), features.len()));
    screen.some(wrong);
    let displaced = features.iter().filter_map(|feature| {
        let (displaced, id) =
            (feature.displaces.as_ref()?, feature.package.as_ref().map_or("-", |package| &package.id));
        Some(format!("{id} displaces {displaced}, which comes with Conductor"))
    });
    screen.some(displaced.collect());
    let throttled = features.iter().filter(|feature| feature.throttled_ms >= 1000).map(|feature| {
        format!("{}: made to wait {} s in all; `conductor feature top`", feature.name, feature.throttled_ms / 1000)
    });
    screen.some(throttled.collect());

    let plans = match plans {
        0 => "none waits".to_owned(),
        1 => "one waits; `conductor plan list`".to_owned(),
        plans => format!("{plans} wait; `conductor plan list`"),
    };
    screen.line("plans", &plans);
    let clients = &status.troublesome_clients;
    if !clients.is_empty() {
        screen.line("clients", &format!("{} slowed, turned away or cut off", clients.len()));
        screen.some(clients.iter().map(client).collect());
    }
    match &status.audit.trouble {
        Some(why) => screen.line("audit", &format!("can't be written: {why}")),
        None => screen.line("audit", &format!("{} since the start", plural_u64(status.audit.written, "row"))),
    }
    screen.0
}

/// A client that takes too much, with the name that it gives itself, which has its escapes already, in quotes.
fn client(client: &TroublesomeClient) -> String {
    let name = client.name.as_ref().map_or_else(|| "without a name".to_owned(), |name| format!("\"{name}\""));
    let scope = client.scope.map_or("no token", Scope::as_str);
    format!("{name} at {} ({scope}): {}, {}", client.door.as_str(), client.what.as_str(), times(client.count))
}

struct Screen(Lines);

impl Screen {
    fn line(&mut self, about: &str, what: &str) {
        self.0.push(format_args!("{about:<10} {what}"));
    }

    fn more(&mut self, what: &str) {
        self.line("", what);
    }

    /// The first of them, and how many more there are.
    fn some(&mut self, all: Vec<String>) {
        all.iter().take(MAX_LINES).for_each(|one| self.more(one));
        if all.len() > MAX_LINES {
            self.more(&format!("and {} more", all.len() - MAX_LINES));
        }
    }
}

fn times(count: u64) -> String {
    match count {
        0 | 1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// What a host says that says no more than this.
    fn status(said: Value) -> Status {
        serde_json::from_value(said).unwrap()
    }

    fn port(name: &str, state: Value, [malformed, lost]: [u64; 2]) -> Value {
        json!({
            "name": name, "key": name, "backend": "alsa", "protocol": "midi", "direction": "input", "metadata": {},
            "device": name, "label": name, "bindings": [], "connected": true, "state": state, "muted": false,
            "events": 0, "dropped": 0, "malformed": malformed, "lost": lost, "unheard": 0,
        })
    }

    fn binding(alias: &str, health: &str, help: Option<&str>) -> Value {
        json!({ "alias": alias, "protocol": "midi", "health": health, "muted": false, "help": help })
    }

    #[test]
    fn what_a_port_could_not_read_or_lost_is_shown() {
        let ports = [port("127.0.0.1:9000", json!("open"), [3, 12]), port("pads", json!("open"), [0, 0])];
        let screen = shown(&status(json!({ "ports": ports })), 0).to_string();
        assert!(screen.contains("127.0.0.1:9000: 3 malformed, 12 lost"), "{screen}");
        assert!(!screen.contains("pads"), "{screen}");
    }

    #[test]
    fn a_screen_says_what_is_wrong_and_no_more() {
        let ports: Vec<Value> =
            (0..9).map(|index| port(&format!("p{index}"), json!({ "failed": "busy" }), [0, 0])).collect();
        let status = status(json!({
            "version": "1.2.3", "pid": 7, "uptime": 61_000_000_000_u64, "mode": "Mix", "modes": ["Play", "Mix"],
            "rules": 3, "generation": 2, "refused": null,
            "warnings": ["c.toml:3:1: no feature has the action Lamp"], "events": 5, "failures": 1, "last_failure": "synth: gone",
            "ports": ports, "unreachable": [],
            "bindings": [binding("pads", "red", Some("plug it in")), binding("k", "green", None)],
            "features": [{ "name": "a", "displaces": "builtin:a", "package": { "id": "project:a" } }, { "name": "b", "refused": "no grant" }],
            "audit": { "written": 4, "lost": 0, "trouble": null },
            "troublesome_clients": [
                { "name": "a \\\"b", "door": "tcp", "scope": "read", "what": "slow_request", "first": 0, "last": 0, "count": 3 },
                { "name": null, "door": "tcp", "scope": null, "what": "connections", "first": 0, "last": 0, "count": 1 },
            ],
        }));
        let expected = "\
conductor  1.2.3, process 7, for 1m 1s
mode       Mix (of Play, Mix)
rules      3, loaded 2 times
warnings   1; `conductor config validate` shows them
           c.toml:3:1: no feature has the action Lamp
events     5, 1 action failed
           the last one: synth: gone
ports      0 of 9 open
           p0: busy
           p1: busy
           p2: busy
           p3: busy
           p4: busy
           and 4 more
bindings   1 of 2 healthy
           pads: plug it in
features   1 of 2 at work
           b: no grant
           project:a displaces builtin:a, which comes with Conductor
plans      none waits
clients    2 slowed, turned away or cut off
           \"a \\\"b\" at tcp (read): slow request, 3 times
           without a name at tcp (no token): connections, once
audit      4 rows since the start
";
        assert_eq!(shown(&status, 0).to_string(), expected);
        assert!(shown(&status, 2).to_string().contains("2 wait"));
    }
}
