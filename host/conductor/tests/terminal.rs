//! A person at a terminal, whole: a model is added, talked with, and removed. The transcript is `docs/terminal.md`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

use conductor::api::client::Client;
use conductor::api::types::ConversationEvents;
use conductor_chat::record::{ChatEvent, Outcome, Recorded};
use conductor_host::control::gate::{ToolRequest, ToolResult};
use conductor_ports::Direction;
use conductor_ports::simulated::SimulatedPorts;
use conductor_sandbox::limits::MAX_RESULT;
use serde_json::{Map, Value, json};

#[path = "terminal/pty.rs"]
mod pty;
mod stage;

use pty::Terminal;
use stage::*;

/// A program of a person who sits in front of it.
fn at_terminal(stage: &Stage, arguments: &[&str]) -> Terminal {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conductor"));
    command.arg("--home").arg(&stage.home.0).args(arguments).env("CONDUCTOR_FEATURES", &compiled().0);
    Terminal::start(command)
}

/// Lines of a transcript: what differs from run to run is the same.
struct Transcript {
    home: String,
    port: u16,
    /// The ids of plans.
    plans: Vec<String>,
    lines: Vec<String>,
}

impl Transcript {
    fn add(&mut self, command: &str, lines: Vec<String>) {
        self.lines.push(format!("$ {command}"));
        self.lines.extend(lines);
        self.lines.push(String::new());
    }

    fn text(&self) -> String {
        let mut text = self.lines.join("\n").replace(&self.home, "~/.conductor");
        text = text.replace(&self.port.to_string(), "11434");
        for plan in &self.plans {
            // A line may have its first digits only.
            for digits in (6..=plan.len()).rev() {
                let same: String = "0123456789abcdef".chars().cycle().take(digits).collect();
                text = text.replace(&plan[..digits], &same);
            }
        }
        let lines = text.lines().map(|line| {
            // How much of a path is in a line depends on its length.
            let line = match line.split_once(" -> {").filter(|_| line.starts_with("  [")) {
                Some((card, _)) => &format!("{card} -> {{ … }}"),
                None => line,
            };
            let words: Vec<&str> = line.split(' ').collect();
            let same = |at: usize| match (words.get(at.wrapping_sub(1)), words[at], words.get(at + 1)) {
                (Some(&"after"), word, Some(&unit)) if unit.starts_with("ms") && word.parse::<u64>().is_ok() => "120",
                (_, word, _) => word,
            };
            (0..words.len()).map(same).collect::<Vec<_>>().join(" ")
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

// The seed's run: from nothing to a mapping that words made, at a terminal, and back.
#[test]
fn a_model_is_added_talked_with_and_removed_at_a_terminal() {
    let mapping = json!({
        "mode": "Play", "trigger": { "type": "Note", "note": 36 },
        "action": { "type": "Keystroke", "keys": ["c"], "modifiers": ["ctrl"] },
    });
    let model = Model::new(move |_, request| {
        let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let last = messages.last();
        match last.and_then(|last| last["content"].as_str()) {
            _ if request["path"] == "/v1/models" => {
                Reply::Json(json!({ "data": [{ "id": "llama3.2" }, { "id": "qwen3" }] }))
            }
            Some("make pad 36 copy") => Reply::Calls(vec![("conductor_create_mapping", mapping.clone())]),
            _ if last.is_some_and(|last| last["role"] == "tool") => {
                Reply::Text("Pad **36** will press `Ctrl+C`:\n\n1. it listens to note 36\n2. it types *copy*\n")
            }
            _ => Reply::Text("ok"),
        }
    });
    let stage = Stage::start(Home::with("[[modes]]\nname = \"Play\"\n"), SimulatedPorts::new());
    let home = stage.home.0.display().to_string();
    let mut transcript = Transcript { home, port: model.port, plans: Vec::new(), lines: Vec::new() };
    let before = stage.home.config();

    let url = format!("http://localhost:{}/v1", model.port);
    let mut terminal = at_terminal(&stage, &["models", "add", "openai-compatible", "--url", &url, "--name", "local"]);
    terminal.expect("send requests to localhost");
    terminal.type_line("y");
    terminal.expect("Which one?");
    terminal.type_line("1");
    let digits = repeated(&mut terminal);
    terminal.type_line(&digits);
    let (code, lines) = terminal.end();
    assert_eq!(code, Some(0), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("local answers")), "{lines:?}");
    transcript.add(&format!("conductor models add openai-compatible --url {url} --name local"), lines);

    let added = stage.home.config();
    let mut terminal = at_terminal(&stage, &["chat"]);
    terminal.prompt();
    terminal.type_line("make pad 36 copy");
    terminal.expect("Apply it? [y = yes");
    terminal.type_line("why");
    terminal.expect("sets modes/0/mappings");
    terminal.expect("Apply it? [y = yes");
    terminal.type_line("y");
    terminal.expect("applied: ");
    assert!(stage.home.config().contains("note = 36"), "{}", stage.home.config());
    for (command, answer) in [
        ("/open 1", "conductor_create_mapping"),
        ("/cost", "tokens read"),
        ("/undo", "taken back"),
        ("/plan", "no plan waits"),
        ("/modle", "did you mean /model?"),
        ("/help", "/quit"),
    ] {
        terminal.prompt();
        terminal.type_line(command);
        terminal.expect(answer);
    }
    terminal.prompt();
    assert_eq!(stage.home.config(), added, "the plan is undone");
    assert!(terminal.screen.is_coloured);
    // The arrow brings back what was typed; Ctrl-C throws it away.
    terminal.type_keys("\u{1b}[A");
    terminal.expect("> /help");
    terminal.type_keys("\u{3}");
    terminal.expect("Ctrl-D or /quit ends");
    terminal.prompt();
    terminal.type_keys("\u{4}");
    let (code, lines) = terminal.end();
    assert_eq!(code, Some(0), "{lines:?}");
    let text = lines.join("\n");
    assert!(text.contains("  Pad 36 will press Ctrl+C:\n\n  1. it listens to note 36\n  2. it types copy"), "{text}");
    assert!(text.contains("conductor_create_mapping {") && text.contains("$0.0000"), "{text}");
    transcript.add("conductor chat", lines);
    let said = json!(model.requests()).to_string();
    let plans = said.split("The plan ").skip(1).filter_map(|rest| rest.split(' ').next());
    transcript.plans = plans.filter(|id| id.len() > 12).map(str::to_owned).chain([digits]).collect();

    let mut terminal = at_terminal(&stage, &["models", "remove", "local"]);
    terminal.expect("Apply it? [y/N]");
    terminal.type_line("y");
    terminal.expect("Take back what");
    terminal.type_line("y");
    let (code, lines) = terminal.end();
    assert_eq!(code, Some(0), "{lines:?}");
    transcript.add("conductor models remove local", lines);
    assert!(stage.client.models().unwrap().is_empty());
    assert_eq!(stage.home.config().trim_end(), before.trim_end());

    held(&transcript.text());
}

/// Compares a transcript with the one in `docs/`; with `CONDUCTOR_WRITE_DOCS` set it is written there.
fn held(transcript: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/terminal.md");
    let page = fs::read_to_string(&file).unwrap();
    let (head, rest) = page.split_once("```console\n").unwrap();
    let (block, tail) = rest.split_once("\n```").unwrap();
    if std::env::var_os("CONDUCTOR_WRITE_DOCS").is_some() {
        fs::write(&file, format!("{head}```console\n{}\n```{tail}", transcript.trim_end())).unwrap();
    } else {
        assert_eq!(block, transcript.trim_end(), "docs/terminal.md: write it anew with CONDUCTOR_WRITE_DOCS=1");
    }
}

/// Waits for a privileged plan, and returns the digits that it is applied with.
fn repeated(terminal: &mut Terminal) -> String {
    const QUESTION: &str = "This plan is privileged. To apply it, type the first 6 digits of its id (";
    terminal.expect(QUESTION);
    let lines = terminal.screen.lines();
    let rest = lines.iter().rev().find_map(|line| line.strip_prefix(QUESTION)).unwrap();
    rest[..6].to_owned()
}

// PLN-3: a model hears all that is said, and costs money: a key that is hit by habit does not add it.
#[test]
fn a_model_is_not_added_by_a_plain_yes() {
    let model = Model::new(|_, _| Reply::Json(json!({ "data": [{ "id": "llama3.2" }] })));
    let stage = Stage::start(Home::with("[[modes]]\nname = \"Play\"\n"), SimulatedPorts::new());
    declined(&stage, &model);
    // The same of a provider that is installed, whose grants are not in the configuration.
    let bytes = fs::read(compiled().0.join("openai-compatible.wasm")).unwrap();
    let package = folder().join("installed.wasm");
    fs::write(&package, foreign(bytes)).unwrap();
    let install = ["feature", "install", package.to_str().unwrap(), "--replace-bundled"];
    let installed = stage.run(&install);
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    let before = stage.run(&["feature", "info", "openai-compatible"]).stdout;
    declined(&stage, &model);
    assert_eq!(stage.run(&["feature", "info", "openai-compatible"]).stdout, before);
}

/// The package with an id that is not the host's own, of the same length.
fn foreign(mut package: Vec<u8>) -> Vec<u8> {
    let (own, other) = (b"builtin:openai-compatible", b"project:openai-compatible");
    let at: Vec<_> = package.windows(own.len()).enumerate().filter(|(_, it)| it == own).map(|(at, _)| at).collect();
    assert!(!at.is_empty());
    at.into_iter().for_each(|at| package[at..at + own.len()].copy_from_slice(other));
    package
}

/// Begins to add a model, and does not repeat the plan's digits: nothing is left of it.
fn declined(stage: &Stage, model: &Model) {
    let url = format!("http://localhost:{}/v1", model.port);
    let before = stage.home.config();
    let add = ["models", "add", "openai-compatible", "llama3.2", "--url", &url, "--name", "local"];
    for answer in ["y", "yes", "", "000000"] {
        let mut terminal = at_terminal(stage, &add);
        terminal.expect("send requests to localhost");
        terminal.type_line("y");
        let digits = repeated(&mut terminal);
        assert_ne!(digits, answer);
        terminal.type_line(answer);
        terminal.expect("nothing has changed");
        assert_eq!(terminal.end().0, Some(0));
        assert!(stage.client.models().unwrap().is_empty(), "{answer:?}");
        assert!(stage.client.plans().unwrap().is_empty(), "{answer:?}: it does not wait");
        // What it would have needed is taken back.
        assert_eq!(stage.home.config().trim_end(), before.trim_end(), "{answer:?}");
    }
}

#[test]
fn who_names_no_provider_is_shown_them_and_an_only_model_is_taken() {
    let model = Model::new(|_, request| match request["path"].as_str() {
        Some("/v1/models") => Reply::Json(json!({ "data": [{ "id": "llama3.2" }] })),
        _ => Reply::Text("ok"),
    });
    let stage = Stage::start(Home::with("[[modes]]\nname = \"Play\"\n"), SimulatedPorts::new());
    let url = format!("http://localhost:{}/v1", model.port);
    let mut terminal = at_terminal(&stage, &["models", "add", "--url", &url, "--name", "local"]);
    terminal.expect("openrouter");
    terminal.expect("Which provider? [its NUMBER in the list, or its name]");
    terminal.type_line("openai-compatible");
    terminal.expect("send requests to localhost");
    terminal.type_line("y");
    terminal.expect("the API has one model, llama3.2");
    let digits = repeated(&mut terminal);
    terminal.type_line(&digits);
    terminal.expect("asking local for a word");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(stage.client.models().unwrap().len(), 1);
}

#[test]
fn a_host_that_is_started_at_a_terminal_says_how_to_look_at_it() {
    let home = Home::with("[[modes]]\nname = \"Play\"\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_conductor"));
    command.arg("--home").arg(&home.0).arg("run").env("CONDUCTOR_FEATURES", &compiled().0);
    let mut terminal = Terminal::start(command);
    terminal.expect("`conductor ui` (browser), `conductor tui` (terminal)");
    terminal.type_keys("\u{3}");
    let (code, lines) = terminal.end();
    assert_eq!((code, lines.join("\n").matches("conductor tui").count()), (Some(0), 1), "{lines:?}");
}

#[test]
fn a_conversation_without_a_model_says_at_once_how_one_is_added() {
    let stage = Stage::start(Home::with("[[modes]]\nname = \"Play\"\n"), SimulatedPorts::new());
    let mut terminal = at_terminal(&stage, &["chat"]);
    terminal.expect("there is no model; add one: conductor models add anthropic");
    terminal.expect("go on here");
    terminal.prompt();
    terminal.type_line("/quit");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn a_plan_that_waits_is_decided_at_the_prompt_of_the_conversation() {
    let mapping = json!({
        "mode": "Play", "trigger": { "type": "Note", "note": 36 }, "action": { "type": "ModeChange", "mode": "Play" },
    });
    let model = Model::new(move |_, request| {
        let last = request["messages"].as_array().and_then(|all| all.last());
        match last.is_some_and(|last| last["role"] == "tool") {
            true => Reply::Text("a plan"),
            false => Reply::Calls(vec![("conductor_create_mapping", mapping.clone())]),
        }
    });
    let stage = Stage::new(&model, "");
    let mut terminal = at_terminal(&stage, &["chat"]);
    terminal.prompt();
    terminal.type_line("map pad 36");
    terminal.expect("Apply it? [y = yes");
    terminal.type_line("");
    terminal.expect("it waits: `/plan ");
    let lines = terminal.screen.lines();
    let id = lines.iter().rev().find_map(|line| line.strip_prefix("it waits: `/plan ")?.strip_suffix('`')).unwrap();
    terminal.prompt();
    terminal.type_line(&format!("/plan {id}"));
    terminal.expect("Apply it? [y = yes");
    terminal.type_line("y");
    terminal.expect("applied: ");
    terminal.prompt();
    terminal.type_line("/quit");
    assert_eq!(terminal.end().0, Some(0));
    assert!(stage.home.config().contains("note = 36"), "{}", stage.home.config());
}

#[test]
fn what_holds_until_the_host_stops_is_not_said_to_be_for_good() {
    let model = Model::new(|_, request| {
        let last = request["messages"].as_array().and_then(|all| all.last());
        match last.is_some_and(|last| last["role"] == "tool") {
            true => Reply::Text("it is done"),
            false => Reply::Calls(vec![("conductor_switch_mode", json!({ "mode": "Play" }))]),
        }
    });
    let stage = Stage::new(&model, "");
    let mut terminal = at_terminal(&stage, &["chat"]);
    terminal.prompt();
    terminal.type_line("play");
    terminal.expect("conductor_switch_mode changes what holds until the host stops");
    terminal.expect("Call it? [y/N]");
    let lines = terminal.screen.lines();
    assert_eq!(lines.last().map(String::as_str), Some("Call it? [y/N]"), "{lines:?}");
    terminal.type_line("y");
    terminal.expect("it is done");
    terminal.prompt();
    terminal.type_line("/quit");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn who_waits_for_a_model_sees_that_and_nothing_is_left_of_it() {
    let (answer, awaited) = std::sync::mpsc::channel::<()>();
    let awaited = std::sync::Mutex::new(awaited);
    let model = Model::new(move |_, _| {
        let _ = awaited.lock().unwrap().recv();
        Reply::Text("here it is")
    });
    let stage = Stage::new(&model, "");
    let mut terminal = at_terminal(&stage, &["chat"]);
    terminal.prompt();
    terminal.type_line("hello");
    terminal.expect("waiting for local, ");
    answer.send(()).unwrap();
    terminal.expect("  here it is");
    terminal.prompt();
    terminal.type_line("/quit");
    let (code, lines) = terminal.end();
    assert_eq!(code, Some(0), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("waiting for")), "{lines:?}");
}

#[test]
fn ctrl_c_ends_the_turn_and_not_the_program() {
    let model = Model::new(|number, _| match number {
        0 => Reply::Hang("one two "),
        _ => Reply::Text("here again"),
    });
    let stage = Stage::new(&model, "");
    let mut terminal = at_terminal(&stage, &["chat"]);
    terminal.prompt();
    terminal.type_line("count");
    terminal.expect("  one");
    terminal.type_keys("\u{3}");
    terminal.expect("(the turn was cancelled)");
    terminal.prompt();
    terminal.type_line("are you there?");
    terminal.expect("  here again");
    terminal.prompt();
    terminal.type_line("/quit");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn ctrl_c_ends_a_turn_alone_and_the_exit_code_says_so() {
    let model = Model::new(|_, _| Reply::Hang("one two "));
    let stage = Stage::new(&model, "");
    let mut terminal = at_terminal(&stage, &["chat", "count"]);
    terminal.expect("  one");
    terminal.type_keys("\u{3}");
    let (code, lines) = terminal.end();
    assert_eq!(code, Some(130), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("the turn was cancelled")), "{lines:?}");
    // What was shown is kept, and the host does not wait for the rest.
    let mut last = None;
    let keep = |one: Recorded| {
        last = Some(one.event);
        true
    };
    stage.client.conversation_events(1, &ConversationEvents::default(), keep).unwrap();
    assert_eq!(last, Some(ChatEvent::TurnEnded { outcome: Outcome::Cancelled, why: None }));
}

// LLM-9, SKL-4: what a person types there about models, skills and another conversation.
#[test]
fn another_model_skills_and_another_conversation_are_had_at_the_prompt() {
    let model = Model::new(|_, request| match request["model"].as_str() {
        Some("second") => Reply::Text("the second one here"),
        _ => Reply::Text("the first one here"),
    });
    let port = model.port;
    let more = format!(
        "[chat]\nmodels = ['local', 'other']\n\n[models.other]\nprovider = 'openai-compatible'\nmodel = 'second'\n\
         url = 'http://127.0.0.1:{port}/v1'\n"
    );
    let home = Home::new(&model, &more);
    let folder = home.0.join("skills/lamps");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("SKILL.md"), "---\nname: lamps\ndescription: Use for lamps of the stage.\n---\nCarefully.\n")
        .unwrap();
    let stage = Stage::start(home, SimulatedPorts::new());
    let mut terminal = at_terminal(&stage, &["chat"]);
    for (line, answer) in [
        ("hello", "  the first one here"),
        ("/skills", "lamps"),
        ("/model", "second"),
        ("/model nobody", "there is no model \"nobody\"; there are: local, other"),
        ("/model other", "other is asked from now on"),
        ("and you?", "  the second one here"),
        // It is the conversation's from now on.
        ("still you?", "  the second one here"),
        ("/new", "conversation 2"),
        ("who is there?", "  the first one here"),
    ] {
        terminal.prompt();
        terminal.type_line(line);
        terminal.expect(answer);
    }
    terminal.prompt();
    terminal.type_line("/quit");
    let (code, lines) = terminal.end();
    assert_eq!(code, Some(0), "{lines:?}");
    let text = lines.join("\n");
    assert!(text.contains("Use for lamps of the stage."), "{text}");
    assert!(text.ends_with("go on with: conductor chat --conversation 2"), "{text}");
    let requests = model.requests();
    let asked: Vec<&str> = requests.iter().map(|request| request["model"].as_str().unwrap()).collect();
    assert_eq!(asked, ["m", "second", "second", "m"]);
    assert!(!requests[3]["messages"].to_string().contains("and you?"), "it is another conversation");
}

#[test]
fn an_answer_is_as_wide_as_the_terminal_is_by_then() {
    const ANSWER: &str =
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen end";
    let model = Model::new(|_, _| Reply::Text(ANSWER));
    let stage = Stage::new(&model, "");
    let mut terminal = at_terminal(&stage, &["chat"]);
    let mut widths = Vec::new();
    for columns in [100, 30, 60] {
        terminal.resize(columns, 40);
        terminal.prompt();
        terminal.type_line("count");
        terminal.expect(" end");
        let lines = terminal.screen.lines();
        let from = lines.iter().rposition(|line| line.starts_with("  one two")).unwrap();
        let to = lines.iter().rposition(|line| line.contains(" end")).unwrap();
        let longest = lines[from..=to].iter().map(String::len).max().unwrap();
        widths.push(longest);
        // As many words as there is room for, and no more.
        assert!(longest <= columns.into() && longest + 10 > columns.into(), "{columns}: {}", lines.join("\n"));
    }
    assert!(widths[1] < widths[2] && widths[2] < widths[0], "{widths:?}");
    terminal.prompt();
    terminal.type_line("/quit");
    assert_eq!(terminal.end().0, Some(0));
}

// Cancelled by another program it was not this one's signal.
#[test]
fn a_turn_that_another_program_cancels_has_failed() {
    let model = Model::new(|_, _| Reply::Hang("one two "));
    let stage = Stage::new(&model, "");
    let mut terminal = at_terminal(&stage, &["chat", "count"]);
    terminal.expect("  one");
    stage.client.cancel_turn(1).unwrap();
    assert_eq!(terminal.end().0, Some(1));
}

#[test]
fn a_turn_alone_says_by_its_exit_code_how_it_ended() {
    let model =
        Model::new(|_, request| match request["messages"].as_array().and_then(|all| all.last()?["content"].as_str()) {
            Some("no") => Reply::Status(404, "no such model"),
            _ => Reply::Text("**yes**"),
        });
    let stage = Stage::new(&model, "");
    // Without a terminal it comes as it was written, without colours.
    let whole = stage.run(&["chat", "say yes"]);
    assert_eq!((whole.status.code(), String::from_utf8_lossy(&whole.stdout).trim_end()), (Some(0), "**yes**"));
    let failed = stage.run(&["chat", "no"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("there is no answer"), "{failed:?}");
    assert_eq!(stage.run(&["chat"]).status.code(), Some(2), "there is no model to talk with");
}

/// The socket of a home through which `home` is reached, but for two things: a result that names a plan names `plan`, and
/// learn hears what is `heard` without a control being moved.
fn lying(home: &Path, plan: &str, heard: Value) -> Home {
    let (between, home, plan) = (Home::with(""), home.to_owned(), plan.to_owned());
    let listener = UnixListener::bind(between.0.join("conductor.sock")).unwrap();
    // It ends with the process.
    std::thread::spawn(move || {
        for peer in listener.incoming() {
            let (home, plan, heard) = (home.clone(), plan.clone(), heard.clone());
            std::thread::spawn(move || between_them(peer.unwrap(), &home, &plan, heard));
        }
    });
    between
}

fn between_them(mut peer: UnixStream, home: &Path, plan: &str, heard: Value) {
    let Some((head, body)) = whole_request(&mut peer) else { return };
    let path = head.split(' ').nth(1).unwrap().to_owned();
    if let Some(tool) = path.strip_prefix("/v1/tools/").and_then(|rest| rest.split('/').next()) {
        let mut called = match tool {
            "conductor_start_learn" => ToolResult { result: json!({ "session": 1 }), plans: vec![], remarks: vec![] },
            "conductor_stop_learn" => ToolResult { result: heard, plans: vec![], remarks: vec![] },
            tool => {
                let request: ToolRequest = serde_json::from_slice(&body).unwrap();
                Client::new(home).call_tool(tool, &request).unwrap()
            }
        };
        if called.result["plan"].is_string() {
            called.result["plan"] = json!(plan);
        }
        let body = serde_json::to_string(&called).unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
        write!(peer, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        return;
    }
    let mut host = UnixStream::connect(home.join("conductor.sock")).unwrap();
    // Asked to, the host hangs up when it has answered.
    write!(host, "{}connection: close\r\n\r\n", head.strip_suffix("\r\n").unwrap()).unwrap();
    host.write_all(&body).unwrap();
    let _ = std::io::copy(&mut host, &mut peer);
    let _ = peer.shutdown(Shutdown::Both);
}

/// A request's lines up to the empty one, and its body; `None` if the other side hangs up before.
fn whole_request(peer: &mut UnixStream) -> Option<(String, Vec<u8>)> {
    let (mut came, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let size = peer.read(&mut piece).ok().filter(|size| *size > 0)?;
        came.extend_from_slice(&piece[..size]);
        let Some(end) = came.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(came[..end + 4].to_vec()).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
        if came.len() >= end + 4 + length {
            return Some((head, came[end + 4..].to_vec()));
        }
    }
}

/// What learn heard: a pad of this device, which is among the ports without a binding, or is not.
fn moved(device: &str, unbound: &Value) -> Value {
    let trigger = format!("trigger = {{ type = 'Note', note = 36, device = '{device}' }}");
    let pad = json!({ "device": device, "kind": "pad", "evidence": [], "last": "note-on 36 100", "toml": trigger });
    json!({ "controls": [pad], "unbound": unbound })
}

// PLN-3: which plan a person decides about is the host's word, whatever the feature says that it has proposed.
#[test]
fn a_tool_that_names_another_plan_as_its_own_gets_its_own_applied() {
    let ports = SimulatedPorts::new();
    for port in ["nanoKONTROL2 MIDI 1", "Pads"] {
        ports.plug(port, Direction::Input);
        ports.plug(port, Direction::Output);
    }
    let pads = "[[bindings]]\nalias = 'pads'\nmatchers = [{ type = 'exact_name', value = 'Pads' }]\n";
    let stage = Stage::start(Home::with(&format!("[[modes]]\nname = 'Play'\n\n{pads}")), ports);
    let wanted =
        json!({ "trigger": { "type": "Note", "note": 99 }, "action": { "type": "ModeChange", "mode": "Play" } });
    let request = |args: &Value| {
        let args: Map<String, Value> = args.as_object().unwrap().clone();
        ToolRequest { args, confirmed: false, confirmation: None }
    };
    let other = stage.client.call_tool("conductor_create_mapping", &request(&wanted)).unwrap();
    let other = other.plan().unwrap();
    let between = lying(&stage.home.0, other, moved("pads", &json!([])));
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_conductor"));
        command.arg("--home").arg(&between.0).args(arguments).env("CONDUCTOR_FEATURES", &compiled().0);
        command
    };
    let waits = |plan: &str| stage.client.plans().unwrap().iter().any(|waiting| waiting.id == plan);

    // What a program reads is the host's word, too.
    let suggest = ["devices", "suggest", "nanoKONTROL2 MIDI 1"];
    let printed = command(&[&suggest[..], &["--json"]].concat()).output().unwrap();
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert!(printed["plan"] != other && waits(printed["plan"].as_str().unwrap()), "{printed}");

    let learn = ["learn", "pads", "--seconds", "1", "--map", "ModeChange Play", "--this"];
    let printed = command(&[&learn[..], &["--json"]].concat()).output().unwrap();
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert!(printed["plan"] != other && waits(printed["plan"].as_str().unwrap()), "{printed}");

    for (arguments, applied) in [(&suggest[..], "nanoKONTROL2"), (&learn, "note = 36")] {
        let mut terminal = Terminal::start(command(arguments));
        terminal.expect("Apply it? [y = yes");
        terminal.type_line("y");
        terminal.expect("applied: ");
        let (code, lines) = terminal.end();
        assert_eq!(code, Some(0), "{lines:?}");
        let config = stage.home.config();
        assert!(config.contains(applied) && !config.contains("note = 99"), "{lines:?}: {config}");
        assert!(waits(other), "it waits on");
    }
}

// LRN-1, LRN-3: what is added to a configuration does not depend on how long it is.
#[test]
fn a_device_and_a_control_are_added_to_a_long_configuration() {
    let ports = SimulatedPorts::new();
    for port in ["nanoKONTROL2 MIDI 1", "Pads"] {
        ports.plug(port, Direction::Input);
    }
    let mapping = |number: usize| {
        format!(
            "[[global_mappings]]\nname = 'cue {number}'\ndescription = 'What the lights do in scene {number}.'\n\
             trigger = {{ type = 'Note', note = {}, channel = {} }}\naction = {{ type = 'Suppress' }}\n\n",
            number % 128,
            number / 128 % 16
        )
    };
    let mappings: String = (0..2000).map(mapping).collect();
    assert!(mappings.len() > MAX_RESULT, "a tool could return it");
    let stage = Stage::start(Home::with(&format!("[[modes]]\nname = 'Play'\n\n{mappings}")), ports);
    let between = lying(&stage.home.0, "", moved("Pads", &json!([{ "port": "Pads" }])));
    for (arguments, proposed) in [
        (&["devices", "suggest", "nanoKONTROL2 MIDI 1", "--json"][..], "A first setup for Korg nanoKONTROL2"),
        (&["learn", "--seconds", "1", "--map", "ModeChange Play", "--this", "--json"], "Bind pads, and map "),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_conductor"));
        command.arg("--home").arg(&between.0).args(arguments).env("CONDUCTOR_FEATURES", &compiled().0);
        let printed = command.output().unwrap();
        assert!(printed.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&printed.stderr));
        let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
        let plans = stage.client.plans().unwrap();
        let plan = plans.iter().find(|plan| printed["plan"] == *plan.id);
        assert!(plan.is_some_and(|plan| plan.description.starts_with(proposed)), "{arguments:?}: {plans:#?}");
    }
}
