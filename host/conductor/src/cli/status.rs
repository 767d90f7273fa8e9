//! `conductor status`: the state of the running host, on one screen.

use serde_json::Value;

use super::{CommandResult, Paths};
use conductor_stdx::plural::plural_u64;
use conductor_terminal::{self as terminal, Lines};

pub(super) fn run(places: &Paths, as_json: bool) -> CommandResult {
    let status = conductor_api::client::status(&places.home)?;
    if as_json {
        terminal::json(&status)?;
        return Ok(());
    }
    let plans = conductor_api::client::json(&places.home, "/v1/plans")?;
    let plans = plans.as_array().map_or(0, Vec::len);
    terminal::print(&shown(&status, plans));
    Ok(())
}

/// At most so many lines about things of one kind.
const MAX_LINES: usize = 5;

/// The screen. `plans` is how many wait.
fn shown(status: &Value, plans: usize) -> Lines {
    let mut screen = Screen(Lines::new());
    let number = |key: &str| status[key].as_u64().unwrap_or_default();
    let list = |key: &str| status[key].as_array().map(Vec::as_slice).unwrap_or_default();
    let uptime = super::doctor::duration(number("uptime") / 1_000_000_000);
    screen.line("conductor", &format!("{}, process {}, for {uptime}", text(&status["version"]), number("pid")));

    let modes: Vec<&str> = list("modes").iter().map(text).collect();
    let mode = match modes.len() {
        0 => "none is configured".to_owned(),
        1 => modes[0].to_owned(),
        _ => format!("{} (of {})", text(&status["mode"]), modes.join(", ")),
    };
    screen.line("mode", &mode);
    if let Some(front) = status["front"].as_str() {
        screen.line("in front", front);
    }
    if let Some(lock) = status["lock"].as_object() {
        let until = if lock["persistent"] == true { "" } else { ", or the host stops" };
        screen.line("locked", &format!("by {}; until `conductor unlock`{until}", text(&lock["by"])));
    }
    screen.line("rules", &format!("{}, loaded {}", number("rules"), times(number("generation"))));
    if let Some(refused) = status["refused"].as_str() {
        screen.more(&format!("{refused}; `conductor config validate` says why"));
    }
    let warnings: Vec<String> = list("warnings").iter().map(|warning| text(warning).to_owned()).collect();
    if !warnings.is_empty() {
        screen.line("warnings", &format!("{}; `conductor config validate` shows them", warnings.len()));
        screen.some(warnings);
    }
    screen.line("events", &format!("{}, {} failed", number("events"), plural_u64(number("failures"), "action")));
    if let Some(last) = status["last_failure"].as_str() {
        screen.more(&format!("the last one: {last}"));
    }

    let ports = list("ports");
    let open = ports.iter().filter(|port| port["state"] == "open").count();
    screen.line("ports", &format!("{open} of {} open", ports.len()));
    let closed = ports.iter().filter_map(|port| {
        let why = port["state"]["failed"].as_str()?;
        Some(format!("{}: {why}", text(&port["name"])))
    });
    let unreachable = list("unreachable").iter().map(|one| text(&one[1]).to_owned());
    let missed = ports.iter().filter_map(|port| {
        let missed = super::ports::missed(port)?;
        Some(format!("{}: {missed}; `conductor doctor` says why", text(&port["name"])))
    });
    screen.some(closed.chain(unreachable).chain(missed).collect());

    let bindings = list("bindings");
    if !bindings.is_empty() {
        let wrong: Vec<&Value> = bindings
            .iter()
            .filter(|binding| matches!(binding["health"].as_str(), Some("amber" | "red")) || binding["muted"] == true)
            .collect();
        let fine = bindings.len() - wrong.len();
        screen.line("bindings", &format!("{fine} of {} healthy", bindings.len()));
        let wrong = wrong.into_iter().map(|binding| {
            let why = if binding["muted"] == true { "muted" } else { text(&binding["help"]) };
            format!("{}: {why}", text(&binding["alias"]))
        });
        screen.some(wrong.collect());
    }

    let features = list("features");
    let wrong: Vec<String> = features
        .iter()
        .filter_map(|feature| {
            let name = text(&feature["name"]);
            let left = feature["quarantine"].as_u64().map(|left| format!("{name}: left alone for {left} s"));
            left.or_else(|| feature["refused"].as_str().map(|why| format!("{name}: {why}")))
        })
        .collect();
    screen.line("features", &format!("{} of {} at work", features.len() - wrong.len(), features.len()));
    screen.some(wrong);
    let displaced = features.iter().filter_map(|feature| {
        let displaced = feature["displaces"].as_str()?;
        Some(format!("{} displaces {displaced}, which comes with Conductor", text(&feature["package"]["id"])))
    });
    screen.some(displaced.collect());
    let throttled = features.iter().filter_map(|feature| {
        let ms = feature["throttled_ms"].as_u64().filter(|ms| *ms >= 1000)?;
        Some(format!("{}: made to wait {} s in all; `conductor feature top`", text(&feature["name"]), ms / 1000))
    });
    screen.some(throttled.collect());

    let plans = match plans {
        0 => "none waits".to_owned(),
        1 => "one waits; `conductor plan list`".to_owned(),
        plans => format!("{plans} wait; `conductor plan list`"),
    };
    screen.line("plans", &plans);
    let clients = list("troublesome_clients");
    if !clients.is_empty() {
        screen.line("clients", &format!("{} slowed, turned away or cut off", clients.len()));
        screen.some(clients.iter().map(client).collect());
    }
    let audit = &status["audit"];
    match audit["trouble"].as_str() {
        Some(why) => screen.line("audit", &format!("can't be written: {why}")),
        None => screen.line("audit", &format!("{} since the start", rows(audit))),
    }
    screen.0
}

/// A client that takes too much, with the name that it gives itself, which has its escapes already, in quotes.
fn client(client: &Value) -> String {
    let name = client["name"].as_str().map_or_else(|| "without a name".to_owned(), |name| format!("\"{name}\""));
    let scope = client["scope"].as_str().unwrap_or("no token");
    let what = text(&client["what"]).replace('_', " ");
    let count = times(client["count"].as_u64().unwrap_or_default());
    format!("{name} at {} ({scope}): {what}, {count}", text(&client["door"]))
}

fn rows(audit: &Value) -> String {
    plural_u64(audit["written"].as_u64().unwrap_or(0), "row")
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

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_port_could_not_read_or_lost_is_shown() {
        let ports = json!([
            { "name": "127.0.0.1:9000", "state": "open", "malformed": 3, "lost": 12 },
            { "name": "pads", "state": "open", "malformed": 0, "lost": 0 },
        ]);
        let screen = shown(&json!({ "ports": ports }), 0).to_string();
        assert!(screen.contains("127.0.0.1:9000: 3 malformed, 12 lost"), "{screen}");
        assert!(!screen.contains("pads"), "{screen}");
    }

    #[test]
    fn a_screen_says_what_is_wrong_and_no_more() {
        let ports: Vec<Value> =
            (0..9).map(|index| json!({ "name": format!("p{index}"), "state": { "failed": "busy" } })).collect();
        let status = json!({
            "version": "1.2.3", "pid": 7, "uptime": 61_000_000_000_u64, "mode": "Mix", "modes": ["Play", "Mix"],
            "rules": 3, "generation": 2, "refused": null,
            "warnings": ["c.toml:3:1: no feature has the action Lamp"], "events": 5, "failures": 1, "last_failure": "synth: gone",
            "ports": ports, "unreachable": [],
            "bindings": [{ "alias": "pads", "health": "red", "help": "plug it in" }, { "alias": "k", "health": "green" }],
            "features": [{ "name": "a", "displaces": "builtin:a", "package": { "id": "project:a" } }, { "name": "b", "refused": "no grant" }],
            "audit": { "written": 4, "lost": 0, "trouble": null },
            "troublesome_clients": [
                { "name": "a \\\"b", "door": "tcp", "scope": "read", "what": "slow_request", "count": 3 },
                { "name": null, "door": "tcp", "scope": null, "what": "connections", "count": 1 },
            ],
        });
        let expected = "\
conductor  1.2.3, process 7, for 1 min
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
