//! Terminal escaping of hostile names: nothing that controls a terminal, reorders text or is invisible is printed,
//! from any source.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use conductor_tests::conductor;
use conductor_tests::home::Home;
use conductor_tests::osc::{Tablet, free_port};
use conductor_tests::process::{End, Process};
use conductor_tests::wait;
use rosc::OscType;
use serde_json::{Value, json};

/// A title and a screen that are set, the line above that is written over, 8-bit CSI, text that is turned around,
/// characters that can't be seen, and lines of their own.
const HOSTILE: &str = "x\u{1b}]0;own\u{7}\u{1b}[2J\r\u{9b}1A\u{85}\u{202e}\u{2066}\u{61c}\u{200f}\u{200b}\u{2060}\u{feff}\
                       \u{ad}\u{fe0f}\u{e0041}\u{2028}\u{7f}\nconductor: all is well\n";

/// Whether this test takes a character for one that must not reach a terminal. The program has a table of its own.
fn steers(c: char) -> bool {
    let hidden = ['\u{ad}', '\u{34f}', '\u{61c}', '\u{180e}', '\u{feff}', '\u{3164}'];
    let ranges = ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2060}'..='\u{206f}', '\u{fe00}'..='\u{fe0f}'];
    (c.is_control() && c != '\n')
        || hidden.contains(&c)
        || ranges.iter().any(|range| range.contains(&c))
        || ('\u{e0000}'..='\u{e0fff}').contains(&c)
        || ('\u{e000}'..='\u{f8ff}').contains(&c)
}

/// What comes out holds nothing that steers, and no line that a hostile text made.
fn is_harmless(what: &str, text: &str) {
    assert!(!text.contains(steers), "{what}: {text:?}");
    let forged = text.lines().find(|line| line.starts_with("conductor: all is well"));
    assert_eq!(forged, None, "{what}: {text:?}");
}

fn conductor(home: &Home, arguments: &[&str]) -> End {
    let end = home.conductor(arguments);
    is_harmless(&format!("{arguments:?}"), &end.out);
    is_harmless(&format!("{arguments:?}"), &end.err);
    end
}

fn toml(text: &str) -> String {
    // JSON escapes what TOML has to, in the same way; DEL and C1 may stand in a file as they are.
    serde_json::to_string(text).unwrap().replace('\u{7f}', "\\u007f")
}

/// A configuration whose names, comments and texts are hostile.
fn show(port: u16) -> String {
    let name = toml(HOSTILE);
    let comment = HOSTILE.replace(|c: char| c.is_ascii_control(), "");
    format!(
        "# {comment}\n[[bindings]]\nalias = 'tablet'\nprotocol = 'osc'\ninput = {{ port = {port} }}\n\
         [[bindings]]\nalias = {name}\nmatchers = [{{ type = 'name_contains', value = {name} }}]\n\
         [[modes]]\nname = {name}\n\
         [[modes.mappings]]\ndescription = {name}\ntrigger = {{ type = 'Note', note = 36 }}\n\
         action = {{ type = 'ModeChange', mode = {name} }}\n\
         [[global_mappings]]\ndescription = {name}\ntrigger = {{ type = 'OscPattern', pattern = '/*' }}\n\
         action = {{ type = 'ModeChange', mode = {name} }}\n\
         [[profiles]]\nname = {name}\nmode = {name}\napps = [{name}]\n"
    )
}

// CLI-1, REL-1
#[test]
fn commands_that_need_no_host_escape_what_files_hold() {
    let home = Home::new(&show(free_port()));
    let script = home.write("hostile.timeline", "0s pads note-on 36 100\n");
    let script = script.to_str().unwrap();
    let named = home.write("\u{1b}[2J\u{202e}.timeline", "0s pads note-on 36 100\n0s \u{9b}2J\u{202e} note-onn 36\n");
    let tests = home.write("hostile.test", "test \"a\u{9b}\u{202e}b\"\n0s pads note-on 36 100\n-> nothing\u{202e}\n");
    let hostile_device = format!("{}:", HOSTILE.replace(char::is_whitespace, "_"));
    for arguments in [
        vec!["config", "validate"],
        vec!["config", "validate", "--json"],
        vec!["config", "migrate", "--yes"],
        vec!["simulate", script],
        vec!["simulate", script, "--json"],
        vec!["simulate", named.to_str().unwrap()],
        vec!["test", tests.to_str().unwrap()],
        vec!["test", tests.to_str().unwrap(), "--json"],
        vec!["explain", "pads", "note-on", "36", "100"],
        vec!["explain", &hostile_device, "note-on", "36", "100"],
        vec!["explain", "--mode", HOSTILE, "pads", "note-on", "36", "100"],
        vec!["profile", "list"],
        vec!["profile", "list", "--json"],
        vec!["profile", "show", HOSTILE],
        vec!["profile", "show", "\u{9b}2J"],
        vec!["bindings"],
        vec!["bindings", "pin", HOSTILE],
        vec!["bindings", "pin", "tablet", "\u{9b}2J\u{202e}"],
        vec!["ports"],
        vec!["doctor"],
        vec!["feature", "list"],
        vec!["feature", "info", HOSTILE],
        vec!["feature", "install", HOSTILE],
        vec!["feature", "inspect", "\u{9b}2J\u{202e}.wasm"],
        vec!["feature", "new", "\u{9b}2J\u{202e}"],
        vec!["feature", "trust", HOSTILE, "00"],
        vec!["secret", "set", HOSTILE, "--env", HOSTILE],
        vec!["plan", "show", HOSTILE],
        vec!["status"],
        vec!["--config", "/tmp/\u{9b}2J\u{202e}\nconductor: all is well", "config", "validate"],
        // What clap quotes of a command line.
        vec![HOSTILE],
        vec!["status", HOSTILE],
        vec!["monitor", "--\u{9b}2J\u{202e}"],
        vec!["feature", "top", "--every", HOSTILE],
        vec!["audit", "list", "--since", HOSTILE],
    ] {
        conductor(&home, &arguments);
    }
    let listed = conductor(&home, &["profile", "list"]).out;
    assert!(listed.contains("\\u{1b}]0;own") && listed.contains("\\u{202e}"), "visible, not left out: {listed}");
    let unread = conductor(&home, &["simulate", named.to_str().unwrap()]).err;
    assert!(unread.contains("\\u{1b}[2J\\u{202e}.timeline"), "{unread}");
}

#[test]
fn mistakes_are_shown_with_what_their_lines_hide() {
    let home =
        Home::new("[[modes]]\nname = \"a\u{9b}2J\u{202e}\" # \u{2066}\u{200b}\u{e0041}\ncolour = \"\u{202e}\"\n");
    let end = conductor(&home, &["config", "validate"]);
    assert_eq!(end.code, Some(2));
    assert!(end.err.contains("\\u{202e}"), "{}", end.err);
    let json = conductor(&home, &["config", "validate", "--json"]);
    let told: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(told["valid"], false);
}

#[test]
fn of_very_many_mistakes_the_first_are_shown() {
    let home = Home::new(&"[[global_mappings]]\ncolour = 1\n".repeat(20_000));
    let end = conductor(&home, &["config", "validate"]);
    assert_eq!(end.code, Some(2));
    assert!(end.err.len() < 64 * 1024, "{} bytes", end.err.len());
    assert!(end.err.contains("the first 50 are shown"), "{}", end.err);
}

#[test]
fn a_file_without_tests_is_a_failure() {
    let home = Home::new("");
    let file = home.write("empty.test", "# to be written\n");
    let end = conductor(&home, &["test", file.to_str().unwrap()]);
    assert_eq!(end.code, Some(1));
    assert!(end.err.contains("no tests in") && end.err.contains("empty.test"), "{}", end.err);
}

#[test]
fn a_first_command_says_why_it_takes_its_time() {
    let home = Home::untouched();
    home.configure("");
    let first = conductor(&home, &["config", "validate"]);
    assert!(first.err.contains("preparing ") && first.err.contains(" (first time) ..."), "{}", first.err);
    assert_eq!(conductor(&home, &["config", "validate"]).err, "");
}

/// An agent that calls itself as it likes, and calls one tool.
fn agent(home: &Home, name: &str, tool: &str, args: &Value) -> Value {
    let mut child = conductor::command(home.path(), &["mcp"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut ask, said) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let client = json!({ "name": name, "version": HOSTILE });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": tool, "arguments": args } }),
    ] {
        writeln!(ask, "{message}").unwrap();
    }
    let answers = said.lines().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let answer = answers.into_iter().find(|answer| answer["id"] == 2).expect("an answer");
    drop(ask);
    child.wait().unwrap();
    answer
}

// PLN-1: who decides sees what is in a plan.
#[test]
fn a_plan_of_an_agent_hides_nothing_from_who_decides() {
    let home = Home::new("[[modes]]\nname = 'Play'\n");
    let host = home.run();
    let changes = json!([{ "path": "modes/0/mappings", "value": [
        { "description": HOSTILE, "trigger": { "type": "Note", "note": 36 },
          "action": { "type": "Text", "text": format!("a\u{9b}2J\u{202e}{HOSTILE}") } },
    ] }]);
    // A description is one line.
    let description = HOSTILE.replace(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'], " ");
    let args = json!({ "description": description, "changes": changes });
    let answer = agent(&home, HOSTILE, "conductor_batch_changes", &args);
    let plans = home.json(&["plan", "list", "--json"]);
    let id = plans[0]["id"].as_str().unwrap_or_else(|| panic!("no plan: {answer}")).to_owned();
    agent(&home, "b\u{202e}", "conductor_nothing\u{9b}", &json!({ "x": HOSTILE }));

    let shown = conductor(&home, &["plan", "show", &id]).out;
    assert!(shown.contains("\\u{9b}") || shown.contains("\\u009b"), "visible, not left out: {shown}");
    assert!(shown.contains("\\u{202e}") || shown.contains("\\u202e"), "{shown}");
    let listed = conductor(&home, &["plan", "list"]).out;
    for title in [shown.lines().next().unwrap(), listed.as_str()] {
        assert!(title.contains("\\u{202e}") && !title.contains("\\\\u{"), "escaped once: {title}");
    }
    for arguments in [
        vec!["plan", "list"],
        vec!["plan", "show", &id, "--json"],
        vec!["tool", "call", "conductor_get_config"],
        vec!["tool", "call", HOSTILE],
        vec!["tool", "call", "conductor_switch_mode", &json!({ "mode": HOSTILE }).to_string()],
        vec!["mode", "switch", HOSTILE],
        vec!["plan", "apply", &id, "--yes"],
        vec!["config", "diff"],
        vec!["mode", "list"],
        vec!["status"],
        vec!["status", "--json"],
        vec!["tool", "call", "conductor_list_mappings"],
        vec!["audit", "list"],
        vec!["audit", "list", "--json"],
        vec!["audit", "export"],
        vec!["audit", "verify"],
        vec!["tool", "list"],
        vec!["skills", "list"],
    ] {
        conductor(&home, &arguments);
    }
    let undone = conductor(&home, &["undo", "--yes"]);
    assert!(undone.out.starts_with("taken back: "), "{}{}", undone.out, undone.err);
    assert!(!undone.out.contains("\\\\u{"), "escaped once: {}", undone.out);
    let (end, _) = host.stop();
    is_harmless("the log", &end.err);
}

// PRT-5: any peer on the network can choose an address.
#[test]
fn what_peers_send_does_not_steer_the_monitor() {
    let port = free_port();
    let home = Home::new(&show(port));
    let _host = home.run();
    let monitor = Process::start(&mut conductor::command(home.path(), &["monitor"]));
    let tablet = Tablet::to(port);
    let address = format!("/a {HOSTILE}");
    let seen = || {
        tablet.send(&address, [OscType::String(HOSTILE.into()), OscType::Char('\u{202e}')]);
        let told = monitor.out.text();
        told.contains("/a ").then_some(told)
    };
    let (told, _) = wait::until(seen, || "the monitor shows nothing".to_owned());
    is_harmless("monitor", &told);
    assert!(told.contains("\\u{9b}1A") && told.contains("\\u{202e}"), "{told}");
    for arguments in [vec!["status"], vec!["ports"], vec!["tool", "call", "conductor_get_recent_events"]] {
        conductor(&home, &arguments);
    }
}

// FEA-2: a descriptor is read before anything of it runs.
#[test]
fn a_package_cannot_speak_to_the_terminal_through_its_descriptor() {
    let home = Home::new("");
    let bytes = fs::read(conductor::guest("hello")).unwrap();
    let (old, new) = (b"Greet each musician.", "Greet\u{202e} who\u{9b} play.".as_bytes());
    // It may be in the code as well as in the descriptor.
    let places: Vec<usize> =
        bytes.windows(old.len()).enumerate().filter(|(_, window)| window == old).map(|(at, _)| at).collect();
    assert!(!places.is_empty(), "its summary");
    let mut hostile = bytes.clone();
    places.into_iter().for_each(|at| hostile[at..at + old.len()].copy_from_slice(new));
    let file = home.write("hostile.wasm", hostile);
    for command in ["inspect", "install"] {
        let end = conductor(&home, &["feature", command, file.to_str().unwrap()]);
        assert_eq!(end.code, Some(1), "{command}: {}", end.out);
        assert!(end.err.contains("\\u{202e}"), "{command}: {}", end.err);
    }
}
