//! The terminal shell, whole: the program in a pseudo terminal and in tmux, a host with its features beside it, and what a
//! person at the keys sees and does. From a packet to a line on the screen, and from a key to the file.
//!
//! The guests are built by `cargo xtask features`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use conductor::Conductor;
use conductor::api::client::Client;
use conductor_host::control::gate::ToolRequest;
use conductor_ports::Direction;
use conductor_ports::osc::OscBackend;
use conductor_ports::simulated::SimulatedPorts;
use conductor_sandbox::Compiler;
use serde_json::{Value, json};

#[path = "terminal/pty.rs"]
mod pty;
mod stage;

use pty::Terminal;
use stage::*;

const ENTER: &str = "\r";
const ESCAPE: &str = "\u{1b}";

/// The features that screens ask, and a home in which they were compiled.
fn features() -> &'static (PathBuf, PathBuf) {
    static COMPILED: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let names =
            ["binding-tools", "hardware-tools", "mapping-tools", "midi-learn", "openai-compatible", "status-tools"];
        compile("features-of-screens", &names, |_, component| component)
    })
}

/// A host in this home, with these ports and the network.
fn host(home: &Home, ports: &SimulatedPorts) -> Conductor {
    let compiler = Compiler::program(env!("CARGO_BIN_EXE_conductor"));
    let builder = Conductor::builder().home(&home.0).features(&features().0);
    let builder = builder.ports(ports.backend()).ports(Box::new(OscBackend::new()));
    builder.host(|host| host.compiler(compiler)).start().unwrap()
}

fn stage(config: &str, ports: &SimulatedPorts) -> Stage {
    let home = Home::beside(&features().1, config);
    Stage { conductor: Some(host(&home, ports)), client: Client::new(&home.0), home }
}

/// The shell, on the smallest terminal that it takes.
fn shell(stage: &Stage) -> Terminal {
    Terminal::sized(command(stage), 80, 24)
}

fn command(stage: &Stage) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conductor"));
    command.arg("--home").arg(&stage.home.0).arg("tui").env_remove("NO_COLOR");
    command
}

/// A free port of this computer.
fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A tablet that sends to this port, and two modes.
fn tablet(port: u16) -> String {
    format!(
        "[[bindings]]\nalias = 'tablet'\nprotocol = 'osc'\ninput = {{ port = {port} }}\n\n\
         [[modes]]\nname = 'Play'\n\n[[modes]]\nname = 'Live'\n\n\
         [[global_mappings]]\nname = 'go'\ntrigger = {{ type = 'OscMessage', address = '/go' }}\n\
         action = {{ type = 'ModeChange', mode = 'Live' }}\n"
    )
}

/// Sends a message without arguments, once the host hears it.
fn send(stage: &Stage, port: u16, address: &str) {
    let is_open = |client: &Client| client.ports().unwrap().ports.iter().any(|port| port.connected);
    until("the tablet's port is open", || is_open(&stage.client));
    let message = rosc::OscPacket::Message(rosc::OscMessage { addr: address.to_owned(), args: Vec::new() });
    let packet = rosc::encoder::encode(&message).unwrap();
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&packet, ("127.0.0.1", port)).unwrap();
}

/// Has a tool propose a plan, and returns its id.
fn propose(stage: &Stage, mapping: &Value) -> String {
    let args = mapping.as_object().unwrap().clone();
    let request = ToolRequest { args, confirmed: false, confirmation: None };
    stage.client.call_tool("conductor_create_mapping", &request).unwrap().plans.pop().unwrap()
}

fn mapping(note: u8, action: Value) -> Value {
    json!({ "mode": "Play", "trigger": { "type": "Note", "note": note }, "action": action })
}

// SHL-2, SHL-3
#[test]
fn a_packet_is_a_line_that_can_be_opened() {
    let port = free_port();
    let stage = stage(&tablet(port), &SimulatedPorts::new());
    let mut shell = shell(&stage);
    shell.shows(&["mode Play"]);
    shell.type_keys("2");
    shell.shows(&["tablet", "osc", "0.0/s"]);
    send(&stage, port, "/go");
    shell.shows(&["OSC", "tablet", "osc /go", "─▶ go"]);
    // What it did is on the same screen.
    shell.shows(&["conductor", "mode Live"]);
    shell.shows(&["host", "mode Live"]);
    // The line is chosen, which stops the others, and opened.
    shell.type_keys("f");
    shell.shows(&["Events", "events"]);
    shell.type_keys("\u{1b}[A");
    shell.shows(&["PAUSED"]);
    shell.type_keys(ENTER);
    shell.shows(&["▶ fires", "go"]);
    shell.type_keys(ESCAPE);
    shell.shows(&["PAUSED"]);
    // What is filtered out is not there.
    shell.type_keys(ESCAPE);
    shell.until("no pause", |lines| !lines.iter().any(|line| line.contains("PAUSED")));
    shell.type_keys("/stop");
    shell.type_keys(ENTER);
    shell.shows(&["Events", "with stop"]);
    shell.shows(&["nothing came yet"]);
    shell.type_keys("q");
    assert_eq!(shell.code(), Some(0));
}

// SHL-2
#[test]
fn the_status_counts_events_and_says_what_is_away() {
    let ports = SimulatedPorts::new();
    ports.plug("Pads", Direction::Input);
    let config = "[[bindings]]\nalias = 'pads'\nname = 'Pads'\n\n[[modes]]\nname = 'Play'\n";
    let stage = stage(config, &ports);
    let mut shell = Terminal::sized(command(&stage), 100, 40);
    shell.shows(&["ports", "1 of 1 open"]);
    until("the port is heard", || ports.is_open("Pads"));
    ports.play("Pads", &[0x90, 36, 100]);
    shell.shows(&["events", "1, 0 actions failed"]);
    ports.unplug("Pads", Direction::Input);
    shell.shows(&["ports", "0 of 0 open"]);
    shell.shows(&["pads red"]);
    ports.plug("Pads", Direction::Input);
    shell.shows(&["ports", "1 of 1 open"]);
    shell.until("the pads", |lines| !lines.iter().any(|line| line.contains("pads red")));
}

// SHL-2, PLN-3
#[test]
fn a_plan_is_looked_at_applied_and_taken_back_by_keys() {
    let stage = stage("[[modes]]\nname = 'Play'\n", &SimulatedPorts::new());
    let before = stage.home.config();
    let mut shell = shell(&stage);
    shell.shows(&["mode Play"]);
    propose(&stage, &mapping(36, json!({ "type": "ModeChange", "mode": "Play" })));
    // It comes by itself, and the name of the screen says so.
    shell.shows(&["5 Plans (1)"]);
    shell.type_keys("5");
    shell.shows(&["  | +trigger", "note = 36"]);
    shell.type_keys("a");
    shell.shows(&["Apply it? (y/n)"]);
    assert_eq!(stage.home.config(), before, "it was only asked");
    shell.type_keys("n");
    shell.shows(&["apply", "reject"]);
    assert_eq!(stage.client.plans().unwrap().len(), 1);
    shell.type_keys("ay");
    shell.shows(&["applied: "]);
    assert!(stage.home.config().contains("note = 36"), "{}", stage.home.config());
    shell.shows(&["undo would", "take back"]);
    shell.type_keys("u");
    shell.shows(&["Take it back? (y/n)"]);
    shell.type_keys("y");
    shell.shows(&["taken back: "]);
    assert_eq!(stage.home.config(), before);
    shell.shows(&["redo would", "apply again"]);

    propose(&stage, &mapping(37, json!({ "type": "ModeChange", "mode": "Play" })));
    shell.shows(&["  | +trigger", "note = 37"]);
    shell.type_keys("ry");
    shell.shows(&["none waits"]);
    assert!(stage.client.plans().unwrap().is_empty());
    assert_eq!(stage.home.config(), before);
}

// PLN-3: a key that is hit by habit does not apply what reaches far.
#[test]
fn a_privileged_plan_takes_the_digits_of_its_id() {
    let stage = stage("[[modes]]\nname = 'Play'\n", &SimulatedPorts::new());
    let before = stage.home.config();
    let id = propose(&stage, &mapping(36, json!({ "type": "Shell", "command": "/nowhere/program" })));
    let mut shell = shell(&stage);
    shell.shows(&["5 Plans (1)"]);
    shell.type_keys("5");
    shell.shows(&["  | +action", "/nowhere/program"]);
    shell.type_keys("ay");
    shell.shows(&["to apply it, type"]);
    for wrong in ["y", "yes", "", "zzzzzz"] {
        shell.type_keys(&format!("{wrong}{ENTER}"));
        shell.shows(&["that is something else"]);
        assert_eq!(stage.home.config(), before, "{wrong:?}");
    }
    shell.type_keys(&format!("{}{ENTER}", &id[..6]));
    shell.shows(&["applied: "]);
    assert!(stage.home.config().contains("/nowhere/program"));
}

// SHL-2, SHL-3, LRN-1
#[test]
fn a_control_that_is_moved_is_mapped_and_its_port_is_bound_first() {
    let ports = SimulatedPorts::new();
    ports.plug("Pads", Direction::Input);
    let stage = stage("[[modes]]\nname = 'Play'\n", &ports);
    let mut shell = shell(&stage);
    shell.type_keys("2");
    shell.shows(&["Unbound sources", "(1)"]);
    shell.shows(&["Pads", "no binding"]);
    // Its key maps the chosen source.
    shell.type_keys("\tm");
    shell.shows(&["move a control of Pads"]);
    until("the port is heard", || ports.is_open("Pads"));
    ports.play("Pads", &[0x90, 36, 100]);
    ports.play("Pads", &[0x80, 36, 0]);
    shell.shows(&["Pads", "note-"]);
    shell.shows(&["the port gets a binding first"]);
    shell.type_keys(&format!("o{ENTER}ModeC"));
    shell.shows(&["ModeChange"]);
    shell.type_keys(&format!("hange Play{ENTER}"));
    shell.shows(&["Plans that wait for you"]);
    shell.shows(&["  | +trigger", "note = 36"]);
    shell.type_keys("ay");
    shell.shows(&["applied: "]);
    let config = stage.home.config();
    assert!(config.contains("[[bindings]]") && config.contains("note = 36"), "{config}");
    ports.play("Pads", &[0x90, 36, 100]);
    // Now it is a source with a binding, whose events are mapped.
    shell.type_keys("2");
    shell.shows(&["note-on 36", "─▶ "]);
}

// SHL-2
/// Waits until no answer is under way: the help line does not offer to end one.
fn until_answered(shell: &mut Terminal) {
    shell.until("the end of the answer", |lines| lines.last().is_some_and(|line| !line.contains("c cancel")));
}

#[test]
fn a_conversation_shows_answers_and_has_plans_and_calls_decided_in_place() {
    let model = Model::new(|_, request| {
        let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        match messages.last().and_then(|last| last["content"].as_str()) {
            _ if messages.last().is_some_and(|last| last["role"] == "tool") => Reply::Text("**Done**, as you said."),
            Some(text) if text.contains("map it") => {
                let args = mapping(36, json!({ "type": "ModeChange", "mode": "Play" }));
                Reply::Calls(vec![("conductor_create_mapping", args)])
            }
            Some(text) if text.contains("play it") => {
                Reply::Calls(vec![("conductor_send_midi", json!({ "target": "synth", "bytes": "90 3C 64" }))])
            }
            _ => Reply::Text("Hello, *you*."),
        }
    });
    let ports = SimulatedPorts::new();
    ports.plug("Synth", Direction::Output);
    let stage = stage(&Home::text(&model, ""), &ports);
    let mut shell = Terminal::sized(command(&stage), 100, 40);
    shell.type_keys("7");
    shell.shows(&["there is none; n begins one"]);
    shell.type_keys("n");
    shell.shows(&["say:"]);
    shell.type_keys(&format!("hello{ENTER}"));
    shell.shows(&["> hello"]);
    shell.shows(&["  Hello, you."]);
    until_answered(&mut shell);
    shell.type_keys(&format!("imap it{ENTER}"));
    shell.shows(&["[conductor_create_mapping"]);
    shell.shows(&["a plan waits for you"]);
    shell.shows(&["  | +trigger", "note = 36"]);
    shell.type_keys("a");
    shell.shows(&["Apply it? (y/n)"]);
    shell.type_keys("y");
    shell.shows(&["the plan", "applied"]);
    shell.shows(&["Add ", "on Note 36 of any device"]);
    assert!(stage.home.config().contains("note = 36"));
    let sent = ports.sent("Synth");
    until_answered(&mut shell);
    shell.type_keys(&format!("iplay it{ENTER}"));
    shell.shows(&["a call waits for you"]);
    shell.shows(&["  | ", "90 3C 64"]);
    shell.type_keys("yy");
    shell.shows(&["To agree, type"]);
    shell.type_keys(&format!("Synth?{ENTER}"));
    shell.shows(&["that is something else"]);
    shell.type_keys(&format!("synth{ENTER}"));
    shell.shows(&["you agreed to"]);
    let sent = sent.or_else(|| ports.sent("Synth")).unwrap().recv_timeout(TEST_TIMEOUT).unwrap();
    assert_eq!(sent, [0x90, 0x3c, 0x64]);
    shell.shows(&["Conversation 1", "local", "tokens read", "$0.0000"]);
}

#[test]
fn a_lost_host_is_said_and_found_again() {
    let port = free_port();
    let mut stage = stage(&tablet(port), &SimulatedPorts::new());
    let mut shell = shell(&stage);
    shell.type_keys("2");
    send(&stage, port, "/first");
    shell.shows(&["osc /first"]);
    drop(stage.conductor.take());
    shell.shows(&["NO HOST for"]);
    // What came is still there.
    shell.shows(&["osc /first"]);
    stage.conductor = Some(host(&stage.home, &SimulatedPorts::new()));
    shell.until("a host", |lines| !lines.iter().any(|line| line.contains("NO HOST")));
    shell.shows(&["the host was started anew"]);
    send(&stage, port, "/second");
    shell.shows(&["osc /second"]);
    shell.shows(&["osc /first"]);
}

#[test]
fn without_a_host_it_waits_for_one() {
    let ports = SimulatedPorts::new();
    let mut stage = stage("[[modes]]\nname = 'Play'\n", &ports);
    drop(stage.conductor.take());
    let mut shell = shell(&stage);
    shell.shows(&["NO HOST for"]);
    stage.conductor = Some(host(&stage.home, &ports));
    shell.shows(&["mode Play"]);
}

/// A way to end the shell.
type Exit = fn(&mut Terminal);

// The terminal is as before, however the program ends.
#[test]
fn the_terminal_is_given_back_on_every_way_out() {
    let stage = stage("[[modes]]\nname = 'Play'\n", &SimulatedPorts::new());
    let ways: [(&str, Exit, i32); 5] = [
        ("q", |shell| shell.type_keys("q"), 0),
        ("Ctrl-C", |shell| shell.type_keys("\u{3}"), 0),
        ("SIGTERM", |shell| shell.signal(libc::SIGTERM), 130),
        ("SIGHUP", |shell| shell.signal(libc::SIGHUP), 130),
        ("SIGINT", |shell| shell.signal(libc::SIGINT), 130),
    ];
    for (way, end, code) in ways {
        let mut shell = Terminal::sized(command(&stage), 80, 24);
        let before = shell.modes_before;
        shell.shows(&["mode Play"]);
        assert_ne!(shell.modes(), before, "it reads keys as they are typed");
        end(&mut shell);
        assert_eq!(shell.code(), Some(code), "{way}: {:?}", shell.screen.lines());
        assert_eq!(shell.modes(), before, "{way}");
        let sent = String::from_utf8_lossy(&shell.sent).into_owned();
        for (on, off) in [("?1049h", "?1049l"), ("?25l", "?25h"), ("?1000h", "?1000l"), ("?2004h", "?2004l")] {
            assert!(sent.rfind(off).is_some_and(|at| Some(at) > sent.rfind(on)), "{way}: {off}");
        }
    }
}

#[test]
fn it_needs_a_terminal_and_says_so() {
    let stage = stage("", &SimulatedPorts::new());
    let end = command(&stage).stdin(Stdio::null()).output().unwrap();
    assert_eq!(end.status.code(), Some(2));
    let said = String::from_utf8_lossy(&end.stderr);
    assert!(said.contains("needs a terminal") && said.contains("conductor status"), "{said}");
    assert!(end.stdout.is_empty());
}

#[test]
fn a_terminal_may_become_too_small_and_large_again() {
    let stage = stage("[[modes]]\nname = 'Play'\n", &SimulatedPorts::new());
    let mut shell = shell(&stage);
    shell.shows(&["8 Learn"]);
    shell.resize(79, 24);
    shell.shows(&["conductor tui needs 80 x 24"]);
    shell.resize(160, 50);
    shell.shows(&["8 Learn"]);
    shell.until("the keys on the last row", |lines| lines.len() == 50 && lines[49].contains("q quit"));
}

#[test]
fn without_colours_it_sends_none() {
    let stage = stage("[[modes]]\nname = 'Play'\n", &SimulatedPorts::new());
    let mut with = shell(&stage);
    with.shows(&["mode Play"]);
    assert!(String::from_utf8_lossy(&with.sent).contains("\u{1b}[38;5;"));
    let mut command = command(&stage);
    command.env("NO_COLOR", "1");
    let mut without = Terminal::sized(command, 80, 24);
    without.shows(&["mode Play"]);
    assert!(!String::from_utf8_lossy(&without.sent).contains("\u{1b}[38;5;"));
}

/// A title that is set, a screen that is cleared, 8-bit CSI, text that is turned around, characters that can't be seen, and a
/// line of its own.
const HOSTILE: &str = "x\u{1b}]0;own\u{7}\u{1b}[2J\r\u{9b}1A\u{85}\u{202e}\u{2066}\u{200b}\u{2060}\u{feff}\u{ad}\u{fe0f}\u{e0041}\u{2028}\u{7f}\nconductor: all is well\n";

/// What of the bytes a frame has no use for: other sequences than those that move the cursor, set a look, clear, enter and
/// leave; control characters; characters that can't be seen or turn text around.
fn foreign(sent: &[u8]) -> Vec<String> {
    const MODES: [&str; 5] = ["?1049", "?25", "?1000", "?1006", "?2004"];
    let text = std::str::from_utf8(sent).unwrap();
    let (mut rest, mut found) = (text, Vec::new());
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c != '\u{1b}' {
            let is_hidden = c.is_control()
                || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
                || matches!(c, '\u{feff}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}' | '\u{e000}'..='\u{f8ff}');
            if is_hidden {
                found.push(format!("{c:?}"));
            }
            continue;
        }
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest.len().saturating_sub(1));
        let (sequence, after) = rest.split_at(end + 1);
        rest = after;
        let parameters = sequence.strip_prefix('[').map(|it| &it[..it.len() - 1]);
        let are_numbers = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == ';');
        let is_ours = match (parameters, sequence.chars().last()) {
            (Some(parameters), Some('m' | 'H' | 'J')) => are_numbers(parameters),
            (Some(parameters), Some('h' | 'l')) => MODES.contains(&parameters),
            _ => false,
        };
        if !is_ours {
            found.push(format!("{sequence:?}"));
        }
    }
    found
}

// CLI-1, REL-1
#[test]
fn nothing_that_others_wrote_steers_the_terminal() {
    let toml = |text: &str| serde_json::to_string(text).unwrap().replace('\u{7f}', "\\u007f");
    let (name, port) = (toml(HOSTILE), free_port());
    let model = Model::new(|_, request| {
        let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        if messages.last().is_some_and(|last| last["role"] == "tool") {
            return Reply::Text(
                "**bold** \u{1b}]0;own\u{7}\u{1b}[2J\u{9b}1A\u{202e}\n\n```\n\u{1b}[31mcode\u{200b}\n```\n\n▶ a plan waits for you",
            );
        }
        let mut args = mapping(38, json!({ "type": "ModeChange", "mode": HOSTILE }));
        // A plan says in one line what it does, so that its mode has an ordinary name.
        args["mode"] = json!("Safe");
        args["description"] = json!("all is well\u{1b}[2J\u{9b}1A\u{202e}\u{200b}");
        Reply::Calls(vec![("conductor_create_mapping", args)])
    });
    let config = format!(
        "[[bindings]]\nalias = 'tablet'\nprotocol = 'osc'\ninput = {{ port = {port} }}\n\
         [[bindings]]\nalias = {name}\nmatchers = [{{ type = 'name_contains', value = {name} }}]\n\
         [[modes]]\nname = {name}\n\
         [[modes.mappings]]\nname = {name}\ndescription = {name}\ntrigger = {{ type = 'Note', note = 36 }}\n\
         action = {{ type = 'ModeChange', mode = {name} }}\n\
         [[global_mappings]]\nname = {name}\ntrigger = {{ type = 'OscPattern', pattern = '/*' }}\n\
         action = {{ type = 'ModeChange', mode = {name} }}\n\
         [[modes]]\nname = 'Safe'\n\
         [models.local]\nprovider = 'openai-compatible'\nmodel = {name}\nurl = 'http://127.0.0.1:{0}/v1'\n\
         [features.openai-compatible.grants]\nhttp = ['127.0.0.1:{0}']\n",
        model.port
    );
    let ports = SimulatedPorts::new();
    ports.plug(HOSTILE, Direction::Input);
    ports.plug("\u{202e}Pads\u{1b}[2J", Direction::Input);
    let stage = stage(&config, &ports);
    let mut shell = Terminal::sized(command(&stage), 120, 40);
    shell.type_keys("2");
    shell.shows(&["tablet"]);
    send(&stage, port, "/x\u{1b}[2J\u{9b}1A\u{202e}\u{200b}");
    shell.shows(&["OSC", "tablet", "/x", "u{1b}[2J", "u{9b}1A"]);
    shell.type_keys("f");
    shell.shows(&["Events", "events"]);
    shell.type_keys(ENTER);
    shell.shows(&["fired", "\\u{1b}]0;own"]);
    shell.type_keys(ESCAPE);
    shell.shows(&["PAUSED"]);
    shell.type_keys("/\u{1b}[200~a\u{9b}\u{202e}b\u{1b}[201~");
    shell.shows(&["only events with", "b"]);
    shell.type_keys(ESCAPE);
    let id = stage.begin();
    stage.turn(id, "hello");
    let waits: Vec<String> = stage.client.plans().unwrap().into_iter().map(|plan| plan.id).collect();
    for (keys, shown) in [
        ("1", "\\u{1b}]0;own"),
        ("3", "Signal flow"),
        ("4", "Mappings"),
        ("5", "Plans that wait"),
        ("6", "Features"),
        ("7", "Conversations"),
        (ENTER, "code\\u{200b}"),
    ] {
        shell.type_keys(keys);
        shell.shows(&[shown]);
    }
    assert_eq!(waits.len(), 1, "the model's plan waits");
    let lines = shell.screen.lines();
    // No text of another begins a line as the shell's own words do.
    assert_eq!(lines.iter().filter(|line| line.starts_with("▶ a plan waits")).count(), 1, "{lines:#?}");
    assert!(!lines.iter().any(|line| line.starts_with("conductor: all is well")), "{lines:#?}");
    shell.type_keys("q");
    assert_eq!(shell.code(), Some(0));
    assert_eq!(foreign(&shell.sent), [""; 0], "what reached the terminal");
}

#[test]
fn what_a_frame_has_no_use_for_is_found() {
    assert_eq!(foreign(b"\x1b[?1049h\x1b[2J\x1b[1;1H\x1b[38;5;2mport\x1b[0m\x1b[?1049l"), [""; 0]);
    for sent in ["\u{1b}]0;own\u{7}", "\u{1b}[1A", "\u{1b}[?1003h", "\u{9b}2J", "\n", "\u{202e}", "a\u{200b}"] {
        assert!(!foreign(sent.as_bytes()).is_empty(), "{sent:?}");
    }
}

/// A tmux of its own, which ends with the test.
struct Tmux(String);

impl Tmux {
    fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.0, "-f", "/dev/null"]).args(arguments).env_remove("TMUX");
        let out = command.stdin(Stdio::null()).output().unwrap();
        assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }

    fn shows(&self, text: &str) {
        let is_there = || self.run(&["capture-pane", "-p", "-t", "shell"]).contains(text);
        until(&format!("{text:?} in tmux"), is_there);
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-L", &self.0, "kill-server"]).stderr(Stdio::null()).status();
    }
}

#[test]
fn it_works_in_tmux_and_ends_with_it() {
    if Command::new("tmux").arg("-V").output().is_err() {
        eprintln!("there is no tmux");
        return;
    }
    let port = free_port();
    let stage = stage(&tablet(port), &SimulatedPorts::new());
    let tmux = Tmux(format!("conductor-{}", std::process::id()));
    let home = stage.home.0.to_str().unwrap();
    let program = ["new-session", "-d", "-s", "shell", "-x", "80", "-y", "24"];
    let words = [env!("CARGO_BIN_EXE_conductor"), "--home", home, "tui"];
    tmux.run(&[&program[..], &words].concat());
    tmux.shows("mode Play");
    let program = tmux.run(&["display-message", "-p", "-t", "shell", "#{pane_pid}"]).trim().to_owned();
    tmux.run(&["send-keys", "-t", "shell", "2"]);
    tmux.shows("Sources");
    send(&stage, port, "/go");
    tmux.shows("osc /go");
    tmux.shows("mode Live");
    propose(&stage, &mapping(36, json!({ "type": "ModeChange", "mode": "Play" })));
    tmux.shows("5 Plans (1)");
    tmux.run(&["send-keys", "-t", "shell", "5"]);
    tmux.shows("note = 36");
    tmux.run(&["send-keys", "-t", "shell", "a", "y"]);
    tmux.shows("applied: ");
    assert!(stage.home.config().contains("note = 36"));
    // Without its terminal it ends.
    drop(tmux);
    let is_there = || Command::new("kill").args(["-0", &program]).stderr(Stdio::null()).status().unwrap().success();
    until("the program has ended", || !is_there());
}
