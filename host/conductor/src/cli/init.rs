//! `conductor init`: a first configuration for the controllers that are there, with what is known of them.

use std::io::Write as _;

use super::{CommandResult, Failure, Paths, devices, ports};
use crate::embedding::make_home;
use conductor_config_text::edit::{Change, edited};
use conductor_control_names::setup::{SetupChange, changes, parts, usb};
use conductor_device_profile::{Confidence, Library, Suggested, alias_for, aliases};
use conductor_ports::Direction;
use conductor_ports::status::{DiscoveredPort, PortState, PortsStatus};
use conductor_stdx::plural::plural;
use conductor_terminal::{self as terminal, excerpt, outln};
use serde_json::json;

/// Bytes of a port's name that are shown.
const MAX_NAME: usize = 60;

/// What it begins with.
const HEAD: &str = "\
# What your controllers do. `conductor config validate` names every mistake in here; a running host takes over what you save.
# Every key there is, and what it may be: `conductor config schema`.

[advanced_settings]
# Ports that are not opened: what the system itself offers.
ignore_ports = IGNORED

# A mode is a set of mappings; the first one is active at the start.
[[modes]]
name = \"Default\"
";

/// What it ends with; a `#` before a space is taken away to use it.
const TAIL: &str = "
# A pad or key that types Ctrl+C. `conductor learn` says what a control sends.
#
# [[global_mappings]]
# trigger = { type = \"Note\", note = \"C2\"DEVICE }
# action = { type = \"Keystroke\", keys = [\"c\"], modifiers = [\"ctrl\"] }
#
# A fader that moves one of an OSC app, as a number from 0 to 1. OscSend is a feature's: it sends where you let it.
#
# [[global_mappings]]
# trigger = { type = \"CC\", cc = 7DEVICE }
# action = { type = \"OscSend\", target = \"127.0.0.1:9000\", address = \"/fader/1\", args = [\"{unit}\"] }
#
# [features.osc-output.grants]
# udp = [\"127.0.0.1:9000\"]
";

/// Ports that the system itself offers and that are no controllers.
const IGNORED: &[&str] = if cfg!(target_os = "macos") {
    &["IAC Driver*"]
} else if cfg!(windows) {
    &["Microsoft GS*"]
} else {
    &["Midi Through*"]
};

pub(super) fn run(places: &Paths, json: bool) -> CommandResult {
    let file = &places.config;
    // A link to a file that is not there is in the way as well.
    if file.symlink_metadata().is_ok() {
        return Err(Failure::Wrong(format!(
            "conductor: {} already exists, and stays as it is; `conductor config validate` reads it, `conductor \
             devices suggest PORT` adds to it, --config names another file",
            file.display()
        )));
    }
    let Composed { text, found, left_out } = compose(&ports::look(places), &devices::library(places))?;
    conductor_config::parse(&text, &file.display().to_string()).map_err(super::wrong)?;
    make_home(file.parent().unwrap_or(&places.home));
    // A file that came meanwhile is not written over.
    let written = std::fs::File::create_new(file).and_then(|mut new| new.write_all(text.as_bytes()));
    written.map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?;
    if json {
        return Ok(terminal::json(&json!({ "file": file, "suggested": found, "left_out": left_out }))?);
    }
    for name in &left_out {
        outln!("{} is left out: no binding can name it", excerpt(name, MAX_NAME));
    }
    for part in &found {
        outln!("{} ({} confidence)", part.reason, part.confidence);
    }
    let bindings = found.iter().filter(|part| part.list == "bindings").count();
    if bindings == 0 {
        outln!("no controller is there; plug one in, and `conductor devices suggest PORT` adds it");
    }
    let mappings = plural(found.len() - bindings, "mapping");
    outln!("{}: {}, {mappings}; `conductor run` plays it", file.display(), plural(bindings, "binding"));
    Ok(())
}

/// A first configuration.
struct Composed {
    text: String,
    /// What of it is suggested for the ports that are there.
    found: Vec<Suggested>,
    /// The names of ports that can't be bound, since no matcher can have them.
    left_out: Vec<String>,
}

/// The configuration for these ports.
fn compose(status: &PortsStatus, library: &Library) -> Result<Composed, Failure> {
    let mut text = HEAD.replace("IGNORED", &json!(IGNORED).to_string());
    let (mut found, mut left_out, mut first) = (Vec::new(), Vec::new(), None);
    for port in status.ports.iter().filter(|port| is_controller(port)) {
        let written: toml::Table = toml::from_str(&text)?;
        let suggested = match library.of_port(&port.port.name, usb(port)) {
            Some((profile, fit)) => parts(status, port, profile, fit, &written),
            None => vec![unknown(port, &alias_for(&port.port.name, &aliases(&written)))],
        };
        let changes: Vec<Change> = changes(&suggested, &written).into_iter().map(change).collect();
        match edited(&text, &changes) {
            Ok(with) if conductor_config::parse(&with, "").is_ok() => text = with,
            _ => {
                left_out.push(port.port.name.clone());
                continue;
            }
        }
        first = first.or_else(|| Some(suggested.first()?.value["alias"].as_str()?.to_owned()));
        found.extend(suggested);
    }
    let device = first.map(|alias| format!(", device = {}", json!(alias))).unwrap_or_default();
    text.push_str(&TAIL.replace("DEVICE", &device));
    Ok(Composed { text, found, left_out })
}

/// Whether a port is an input that can be bound and is not the system's own.
fn is_controller(port: &DiscoveredPort) -> bool {
    let is_ignored = |glob: &&str| port.port.name.starts_with(glob.trim_end_matches('*'));
    port.port.direction == Direction::Input
        && !matches!(port.state, PortState::Ignored)
        && !IGNORED.iter().any(is_ignored)
}

/// A binding for a controller that no profile fits.
fn unknown(port: &DiscoveredPort, alias: &str) -> Suggested {
    let by_name = || json!({ "type": "exact_name", "value": port.port.name });
    let matcher = port.told_apart_by.clone().unwrap_or_else(by_name);
    Suggested {
        list: "bindings",
        value: json!({ "alias": alias, "protocol": port.port.protocol.to_string(), "matchers": [matcher] }),
        reason: format!(
            "{:?} is called {alias}; no profile fits it, `conductor learn` says what it sends",
            port.port.name
        ),
        confidence: Confidence::Low,
    }
}

/// A change of a plan as one of the text.
fn change(SetupChange { path, value }: SetupChange) -> Change {
    Change { path: path.split('/').map(str::to_owned).collect(), value: Some(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_ports::simulated::SimulatedPorts;
    use conductor_ports::supervisor;

    fn composed(inputs: &[&str], outputs: &[&str]) -> Composed {
        let ports = SimulatedPorts::new();
        inputs.iter().for_each(|name| ports.plug(name, Direction::Input));
        outputs.iter().for_each(|name| ports.plug(name, Direction::Output));
        let plan = conductor_rules::bindings::plan(&conductor_config::Config::default());
        compose(&supervisor::look(vec![ports.backend()], &plan), &Library::bundled()).unwrap()
    }

    /// The text with its examples in use.
    fn in_use(text: &str) -> String {
        let (head, tail) = text.split_at(text.find("# A pad or key").unwrap());
        let used = tail.lines().map(|line| match line.strip_prefix("# ") {
            Some(code) if code.starts_with('[') || code.contains(" = ") => code,
            _ => line,
        });
        [head, &used.collect::<Vec<_>>().join("\n")].concat()
    }

    #[test]
    fn what_is_there_is_bound_and_what_is_known_works() {
        let Composed { text, found, .. } =
            composed(&["Midi Through Port-0", "APC MINI MIDI 1", "Pads 9000"], &["APC MINI MIDI 1"]);
        let config = conductor_config::parse(&text, "config.toml").unwrap().config;
        let aliases: Vec<&str> = config.bindings.iter().map(|binding| binding.alias.as_str()).collect();
        assert_eq!(aliases, ["apc-mini", "pads-9000"], "{text}");
        assert_eq!(found.len(), 2 + config.global_mappings.len());
        assert!(text.contains("velocity = 1"), "the lights of the known one: {text}");
    }

    #[test]
    fn a_port_that_no_binding_can_name_is_left_out() {
        let Composed { text, left_out, .. } = composed(&["", "Pads 9000"], &[]);
        assert_eq!(left_out, [""]);
        let config = conductor_config::parse(&text, "config.toml").unwrap().config;
        assert_eq!(config.bindings.len(), 1, "{text}");
    }

    #[test]
    fn the_examples_work_as_they_are_written() {
        for inputs in [&[][..], &["Pads 9000"]] {
            let text = composed(inputs, &[]).text;
            let config = conductor_config::parse(&in_use(&text), "config.toml").unwrap().config;
            assert_eq!(config.global_mappings.len(), 2, "{text}");
            assert!(config.features.contains_key("osc-output"));
        }
    }
}
