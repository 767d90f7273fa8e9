//! The gate of a running program, as those meet it who want more than they may: what needs a person, who did it, what is
//! not shown, and the lock for the show.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use conductor_tests::conductor::{self, Host};
use conductor_tests::home::Home;
use conductor_tests::wait;
use serde_json::{Value, json};

const SHOW: &str = "[[modes]]\nname = \"Play\"\n\n[[modes]]\nname = \"Mix\"\n";

/// A show with a feature whose tool `send` reaches devices.
fn show(more: &str) -> Home {
    let guest = conductor::guest("hostile-tools");
    let guest = format!("[features.hostile-tools]\npath = '{}'\ngrants = {{ alert = true }}\n", guest.display());
    Home::new(&format!("{more}\n{SHOW}{guest}"))
}

/// A host with the API over TCP, too.
fn run(home: &Home) -> Host {
    Host::ready(&mut conductor::command(home.path(), &["run", "--http", "0"]), home.socket())
}

/// The answer to a request on a stream, with these headers.
fn ask(mut stream: impl std::io::Read + std::io::Write, line: &str, headers: &str, body: &Value) -> (u16, Value) {
    let body = body.to_string();
    let length = body.len();
    write!(
        stream,
        "{line} HTTP/1.1\r\n{headers}connection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\
         \r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}")))
}

/// As the home's owner.
fn owner(home: &Home, line: &str, body: &Value) -> (u16, Value) {
    ask(UnixStream::connect(home.socket()).unwrap(), line, "host: x\r\n", body)
}

/// With a token of the home, by this name.
fn by_token(home: &Home, token: &str, name: &str, line: &str, body: &Value) -> (u16, Value) {
    let door: Value = serde_json::from_str(&fs::read_to_string(home.path().join("api.json")).unwrap()).unwrap();
    let port: u16 = door["url"].as_str().unwrap().rsplit_once(':').unwrap().1.parse().unwrap();
    let token = fs::read_to_string(home.path().join(token)).unwrap();
    let headers = format!("host: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\nuser-agent: {name}\r\n");
    ask(TcpStream::connect(("127.0.0.1", port)).unwrap(), line, &headers, body)
}

/// An agent at the MCP socket.
struct Agent {
    ask: UnixStream,
    said: BufReader<UnixStream>,
    asked: u64,
}

impl Agent {
    fn new(home: &Home, name: &str) -> Self {
        let ask = UnixStream::connect(home.path().join("mcp.sock")).unwrap();
        let said = BufReader::new(ask.try_clone().unwrap());
        let mut agent = Self { ask, said, asked: 0 };
        let client = json!({ "name": name, "version": "1" });
        agent.request(
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client }),
        );
        writeln!(agent.ask, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).unwrap();
        agent
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        writeln!(self.ask, "{}", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).unwrap();
        loop {
            let mut line = String::new();
            assert_ne!(self.said.read_line(&mut line).unwrap(), 0, "no answer to {method}");
            let said: Value = serde_json::from_str(&line).unwrap();
            if said["id"] == id {
                return said;
            }
        }
    }

    /// What a tool answers, or why it does not.
    fn call(&mut self, tool: &str, args: Value) -> Result<Value, String> {
        let said = self.request("tools/call", json!({ "name": tool, "arguments": args }));
        let result = &said["result"];
        match result["isError"] == true || said["error"].is_object() {
            true => Err(said.to_string()),
            false => Ok(result["structuredContent"].clone()),
        }
    }
}

fn rows(home: &Home) -> Vec<Value> {
    home.json(&["audit", "list", "--limit", "1000", "--json"]).as_array().unwrap().clone()
}

/// Waits for a row that is written in the background.
fn row(home: &Home, is: impl Fn(&Value) -> bool) -> Value {
    wait::until(|| rows(home).into_iter().find(&is), || format!("{:#?}", rows(home))).0
}

/// What a call that reaches devices needs. The tool says what it did, and sends nothing.
fn bytes(last: u8) -> Value {
    json!({ "how": "diagnostics", "target": "pads", "message": [240, 126, last, 247] })
}

// PLN-3: at every door a first request only asks; the second presents what was shown, once, for this very call.
#[test]
fn no_single_request_reaches_devices() {
    let home = show("");
    let _host = run(&home);
    let call = |body: &Value| owner(&home, "POST /v1/tools/send", body);
    for single in [
        json!({ "args": bytes(1), "confirmed": true }),
        json!({ "args": bytes(1), "confirmed": true, "confirmation": "" }),
        json!({ "args": bytes(1), "confirmed": true, "confirmation": "0".repeat(32) }),
        json!({ "args": bytes(1) }),
    ] {
        let (status, said) = call(&single);
        assert_eq!(status, 409, "{single}: {said}");
    }
    let asked = || call(&json!({ "args": bytes(1) })).1["confirmation"].take();
    let shown = asked();
    assert_eq!(shown["effect"], "sends to \"pads\"");
    assert!(shown["shown"].as_str().unwrap().contains("bytes: F0 7E 01 F7 (4 bytes)"), "{shown}");

    let with = |id: &Value, args: Value| json!({ "args": args, "confirmed": true, "confirmation": id });
    let (status, said) = call(&with(&asked()["id"], bytes(2)));
    assert_eq!((status, &said["code"]), (409, &json!("not_confirmed")), "other bytes: {said}");
    let id = asked()["id"].clone();
    let (status, said) = by_token(&home, "api.token", "x", "POST /v1/tools/send", &with(&id, bytes(1)));
    assert_eq!((status, &said["code"]), (409, &json!("not_confirmed")), "another door: {said}");
    let (status, said) = by_token(&home, "api-control.token", "x", "POST /v1/tools/send", &with(&id, bytes(1)));
    assert_eq!((status, &said["code"]), (403, &json!("forbidden")), "no person: {said}");
    let lent = by_token(&home, "api-control.token", "x", "POST /v1/tools/send", &json!({ "args": bytes(1) }));
    assert!(lent.0 == 409 && lent.1["confirmation"].is_null(), "{lent:?}");
    assert_eq!(call(&with(&id, bytes(1))).0, 200, "it was not used up by those who may not");
    let (status, said) = call(&with(&id, bytes(1)));
    assert_eq!((status, &said["code"]), (409, &json!("not_confirmed")), "twice: {said}");

    // The commands of the daemon that came before are the same door.
    let ipc = |confirmation: Value| {
        let args = json!({ "name": "send", "arguments": bytes(1), "confirmed": true, "confirmation": confirmation });
        owner(&home, "POST /v1/ipc", &json!({ "command": "ExecuteMcpTool", "args": args }))
    };
    let (status, said) = ipc(Value::Null);
    assert_eq!((status, &said["code"]), (409, &json!("confirmation_required")), "{said}");
    assert_eq!(ipc(said["confirmation"]["id"].clone()).0, 200);
    let done = || rows(&home).iter().filter(|row| row["subject"] == "send" && row["outcome"] == "done").count();
    wait::until(|| (done() == 2).then_some(()), || format!("{:#?}", rows(&home)));
}

// PLN-3: the command line shows what would be sent; without a terminal it takes two commands.
#[test]
fn the_command_line_sends_nothing_in_one_step() {
    let home = show("");
    let _host = home.run();
    let args = bytes(1).to_string();
    let first = home.conductor(&["tool", "call", "send", &args]);
    assert_eq!(first.code, Some(2), "{}", first.out);
    assert!(first.err.contains("F0 7E 01 F7") && first.err.contains("\"pads\""), "{}", first.err);
    let id = first.err.split("--confirm ").nth(1).unwrap().trim().to_owned();
    assert_eq!(home.conductor(&["tool", "call", "send", &args, "--confirm"]).code, Some(2), "an id is wanted");
    assert_ne!(home.conductor(&["tool", "call", "send", &args, "--confirm", "yes"]).code, Some(0));
    let second = home.conductor(&["tool", "call", "send", &args, "--confirm", &id]);
    assert_eq!(second.code, Some(0), "{}", second.err);
    assert_ne!(home.conductor(&["tool", "call", "send", &args, "--confirm", &id]).code, Some(0), "it served once");
}

// PLN-4: no name that a client gives itself makes its row another's.
#[test]
fn a_name_is_a_claim_and_the_door_is_on_record() {
    let home = show("");
    let _host = run(&home);
    owner(&home, "POST /v1/tools/conductor_get_modes", &json!({}));
    home.conductor(&["tool", "call", "conductor_get_modes"]);
    let name = "conductor-cli";
    by_token(&home, "api-control.token", name, "POST /v1/tools/conductor_get_modes", &json!({}));
    let names = ["Claude by elicitation", "Claude\" by elicitation", "socket:owner \"conductor-cli\"", "\u{202e}x\n"];
    for name in names {
        Agent::new(&home, name).call("conductor_get_modes", json!({})).unwrap();
    }
    let calls = || {
        let rows = rows(&home).into_iter().filter(|row| row["kind"] == "tool");
        rows.map(|row| row["who"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let calls = wait::until(|| Some(calls()).filter(|calls| calls.len() == 7), || format!("{:?}", calls())).0;
    for one in ["socket:owner", "socket:owner \"conductor-cli\"", "tcp:control \"conductor-cli\""] {
        assert_eq!(calls.iter().filter(|who| *who == one).count(), 1, "{one} in {calls:?}");
    }
    assert_eq!(calls.iter().filter(|who| who.starts_with("mcp-socket:agent \"") && who.ends_with('"')).count(), 4);
    let lent = row(&home, |row| row["door"] == "tcp");
    assert_eq!((&lent["scope"], &lent["client"], &lent["elicited"]), (&json!("control"), &json!(name), &json!(false)));
    assert!(rows(&home).iter().all(|row| row["elicited"] == false));
    assert_eq!(home.conductor(&["audit", "verify"]).code, Some(0));
}

// MCP-1, REL-1: what was filled into a prompt is not filled in again.
#[test]
fn a_prompt_does_not_grow_by_itself() {
    let home = show("[tools]\nallowed = []\n");
    let host = home.run();
    let mut agent = Agent::new(&home, "greedy");
    let bomb = json!({ "control": "{action}".repeat(40_000), "action": "x".repeat(200_000) });
    let said = agent.request("prompts/get", json!({ "name": "map_control", "arguments": bomb }));
    assert!(said["error"]["message"].as_str().unwrap().contains("at most 1024"), "{said}");
    let nested = json!({ "control": "{action}".repeat(128), "action": "{mode}".repeat(100), "mode": "x".repeat(1000) });
    let said = agent.request("prompts/get", json!({ "name": "map_control", "arguments": nested }));
    assert!(said["result"].is_object() && said.to_string().len() < 8192, "{said}");
    for wrong in [json!({ "control": "pad" }), json!({ "control": "a", "action": "b", "other": "c" })] {
        assert!(
            agent.request("prompts/get", json!({ "name": "map_control", "arguments": wrong }))["error"].is_object()
        );
    }
    assert_eq!(host.status()["rules"], 0);
    let row = row(&home, |row| row["kind"] == "prompt" && row["outcome"] == "refused");
    assert_eq!((&row["subject"], &row["who"]), (&json!("map_control"), &json!("mcp-socket:agent \"greedy\"")));
}

// PLN-4: how often prompts are asked for is counted as calls are.
#[test]
fn prompts_count_against_the_limit() {
    let home = show("[tools.per_minute]\nread_only = 6\n");
    let _host = home.run();
    let mut agent = Agent::new(&home, "eager");
    let mut get = || {
        let arguments = json!({ "what": "nothing" });
        agent.request("prompts/get", json!({ "name": "explain_what_happened", "arguments": arguments }))
    };
    assert!(get()["result"].is_object());
    let refused = get();
    assert!(refused["error"]["message"].as_str().unwrap().contains("too many calls"), "{refused}");
}

// PLN-3: while the show is locked, only its owner changes things.
#[test]
fn a_locked_show_is_changed_by_its_owner_only() {
    let home = show("");
    let host = run(&home);
    let propose = |agent: &mut Agent| {
        let action = json!({ "type": "ModeChange", "mode": "Play" });
        agent.call(
            "conductor_create_mapping",
            json!({ "mode": "Mix", "trigger": { "type": "Note", "note": 1 }, "action": action }),
        )
    };
    let mut agent = Agent::new(&home, "x");
    let plan = propose(&mut agent).unwrap()["plan"].as_str().unwrap().to_owned();
    assert_eq!(home.conductor(&["lock"]).code, Some(0));
    assert_eq!(host.status()["lock"]["by"], "socket:owner \"conductor-cli\"");
    assert!(home.conductor(&["status"]).out.contains("conductor unlock"));

    for (tool, args) in [
        ("conductor_switch_mode", json!({ "mode": "Mix" })),
        ("conductor_set_device_enabled", json!({ "device": "x", "enabled": false })),
        ("conductor_start_midi_learn", json!({})),
        ("conductor_delete_profile", json!({ "name": "x" })),
        ("send", bytes(1)),
    ] {
        assert!(agent.call(tool, args).unwrap_err().contains("the show is locked"), "{tool}");
    }
    assert!(propose(&mut agent).unwrap_err().contains("the show is locked"));
    agent.call("conductor_get_modes", json!({})).unwrap();
    let lent = |line: &str, body: Value| by_token(&home, "api-control.token", "x", line, &body);
    let ipc = |command: &str, args: Value| lent("POST /v1/ipc", json!({ "command": command, "args": args }));
    for (status, said) in [
        lent("POST /v1/mode", json!({ "mode": "Mix" })),
        lent("POST /v1/mute", json!({ "device": "x", "muted": true })),
        lent("POST /v1/reload", json!({})),
        lent(&format!("POST /v1/plans/{plan}/reject"), json!({})),
        lent("POST /v1/tools/conductor_switch_mode", json!({ "args": { "mode": "Mix" } })),
        ipc("SetDeviceEnabled", json!({ "device_id": "x", "enabled": true })),
        ipc("Reload", Value::Null),
        ipc("StartMidiLearn", Value::Null),
        ipc("RejectPlan", json!({ "plan_id": plan })),
    ] {
        assert_eq!((status, &said["code"]), (423, &json!("locked")), "{said}");
    }
    assert_eq!(lent("POST /v1/lock", json!({ "locked": false })).0, 403);
    assert_eq!(lent("GET /v1/lock", json!({})).1["locked"], true);
    assert_eq!(host.status()["mode"], "Play");

    // The owner goes on, and what they write into the file comes into force.
    assert_eq!(home.conductor(&["mode", "switch", "Mix"]).code, Some(0));
    assert_eq!(home.conductor(&["plan", "apply", &plan, "--yes"]).code, Some(0));
    row(&home, |row| row["what"] == "lock" && row["who"] == "socket:owner \"conductor-cli\"");
    row(&home, |row| row["subject"] == "conductor_switch_mode" && row["outcome"] == "refused");
    assert_eq!(home.conductor(&["unlock"]).code, Some(0));
    agent.call("conductor_switch_mode", json!({ "mode": "Play" })).unwrap();

    // It ends with the host, unless it was asked to stay.
    assert_eq!(home.conductor(&["lock"]).code, Some(0));
    host.stop();
    let host = home.run();
    assert!(host.status()["lock"].is_null());
    assert_eq!(home.conductor(&["lock", "--persist"]).code, Some(0));
    host.stop();
    let host = home.run();
    assert_eq!(host.status()["lock"]["persistent"], true);
    assert!(Agent::new(&home, "x").call("conductor_switch_mode", json!({ "mode": "Mix" })).is_err());
    assert_eq!(home.conductor(&["unlock"]).code, Some(0));
    host.stop();
    assert!(home.run().status()["lock"].is_null());
}

// PLN-3: a person may want to be asked before agents touch the show, or not to have them touch it at all.
#[test]
fn agents_touch_the_show_only_as_the_configuration_says() {
    let home = show("[tools.agents]\nstateful = \"ask\"\nconfig_change = \"deny\"\nhardware_io = \"deny\"\n");
    let host = home.run();
    let mut agent = Agent::new(&home, "x");
    let error = agent.call("conductor_switch_mode", json!({ "mode": "Mix" })).unwrap_err();
    assert!(error.contains("a person has to agree") && error.contains("conductor tool call"), "{error}");
    for (tool, args) in [("conductor_create_mode", json!({ "name": "x" })), ("send", bytes(1))] {
        let error = agent.call(tool, args).unwrap_err();
        assert!(error.contains("[tools.agents]"), "{error}");
    }
    assert_eq!(host.status()["mode"], "Play");
    assert!(home.json(&["plan", "list", "--json"]).as_array().unwrap().is_empty());
    // A person is no agent.
    assert_eq!(home.conductor(&["tool", "call", "conductor_switch_mode", r#"{"mode": "Mix"}"#]).code, Some(0));
    assert_eq!(home.conductor(&["tool", "call", "conductor_create_mode", r#"{"name": "x"}"#]).code, Some(0));
}

/// A rule with a private value.
const PRIVATE: &str = "[[global_mappings]]\nname = \"deploy\"\ntrigger = { type = \"Note\", note = 1 }\n\
                       action = { type = \"Shell\", command = \"true\", env = { KEY = \"hunter2-hunter2\" } }\n";

#[test]
fn private_values_are_shown_to_the_owner_only() {
    let home = show(PRIVATE);
    let _host = run(&home);
    let mut agent = Agent::new(&home, "curious");
    let mode = json!({ "description": "x", "changes": [{ "path": "global_mappings/0/name", "value": "d" }] });
    let plan = agent.call("conductor_batch_changes", mode).unwrap()["plan"].as_str().unwrap().to_owned();
    let read = |token: &str, path: &str| by_token(&home, token, "x", &format!("GET {path}"), &json!({})).1.to_string();
    let mut resource = |uri: &str| agent.request("resources/read", json!({ "uri": uri })).to_string();
    let plans = format!("/v1/plans/{plan}");
    let seen = [
        read("api-read.token", "/v1/config"),
        read("api-control.token", "/v1/config"),
        read("api-read.token", "/v1/plans"),
        read("api-read.token", &plans),
        resource("conductor://config"),
        resource("conductor://plans"),
        resource(&format!("conductor://plans/{plan}")),
        agent.call("conductor_get_config", json!({})).unwrap().to_string(),
        agent.call("conductor_list_mappings", json!({})).unwrap().to_string(),
        agent.call("conductor_list_plans", json!({})).unwrap().to_string(),
    ];
    for (number, seen) in seen.iter().enumerate() {
        assert!(!seen.contains("hunter2"), "{number}: {seen}");
    }
    assert!(seen[0].contains("<hidden>") && seen[0].contains("command"), "{}", seen[0]);
    assert!(read("api.token", "/v1/config").contains("hunter2") && read("api.token", &plans).contains("hunter2"));

    // Nor does the record of what was asked show them to others.
    let env = json!({ "KEY": "hunter2-hunter2" });
    let shell = json!({ "type": "Shell", "command": "x", "args": ["--token", "hunter2-hunter2"], "env": env });
    let trigger = json!({ "type": "Note", "note": 9 });
    let create = json!({ "mode": "Mix", "trigger": trigger, "action": shell }).to_string();
    assert_eq!(home.conductor(&["tool", "call", "conductor_create_mapping", &create]).code, Some(0));
    let changes = json!([{ "path": "global_mappings/0/action/env/KEY", "value": "hunter2-hunter3" }]);
    agent.call("conductor_batch_changes", json!({ "description": "y", "changes": changes })).unwrap();
    let called = |row: &Value| row["subject"] == "conductor_batch_changes" && row.to_string().contains("env/KEY");
    row(&home, called);
    assert!(!read("api-read.token", "/v1/audit").contains("hunter2"));

    // Errors and warnings are reported without the lines that they are about.
    let text = fs::read_to_string(home.config()).unwrap();
    let doubtful = text.replace("command = \"true\"", "command = \"true -x\"");
    let wrong = text.replace("command", "comand");
    for text in [&doubtful, &wrong] {
        fs::write(home.config(), text).unwrap();
        let ipc = json!({ "command": "Reload" });
        for said in [
            by_token(&home, "api-control.token", "x", "POST /v1/reload", &json!({})).1.to_string(),
            by_token(&home, "api-control.token", "x", "POST /v1/ipc", &ipc).1.to_string(),
            by_token(&home, "api-read.token", "x", "POST /v1/config/validate", &json!({})).1.to_string(),
            read("api-read.token", "/v1/status"),
            read("api-read.token", "/v1/audit"),
        ] {
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
    let owners = owner(&home, "POST /v1/reload", &json!({})).1.to_string();
    assert!(owners.contains("`comand`") && owners.contains("hunter2"), "the owner sees the line: {owners}");
    fs::write(home.config(), &text).unwrap();
    assert_eq!(owner(&home, "POST /v1/reload", &json!({})).0, 200);

    // Who writes back what they were shown would lose the value.
    for value in [
        json!({ "type": "Shell", "command": "true", "env": { "KEY": "<hidden>" } }),
        json!({ "type": "Sequence", "actions": [{ "type": "Shell", "command": "<hidden>" }] }),
    ] {
        let changes = json!([{ "path": "global_mappings/0/action", "value": value }]);
        let said = agent.call("conductor_batch_changes", json!({ "description": "x", "changes": changes }));
        assert!(said.as_ref().unwrap_err().contains("not shown to you"), "{said:?}");
    }
    assert_eq!(home.conductor(&["plan", "apply", &plan, "--yes"]).code, Some(0));
    let text = fs::read_to_string(home.config()).unwrap();
    assert!(text.contains("hunter2-hunter2") && text.contains("\"d\""), "what is beside it can be changed: {text}");
}

// PLN-4: a script can distinguish intact, altered and unknown.
#[test]
fn a_record_without_its_head_is_not_called_whole() {
    let home = show("");
    home.run().stop();
    let verify = || home.conductor(&["audit", "verify"]);
    assert_eq!(verify().code, Some(0), "{}", verify().err);
    let head = fs::read(home.path().join("audit.head")).unwrap();
    fs::remove_file(home.path().join("audit.head")).unwrap();
    assert_eq!(verify().code, Some(3), "{}", verify().err);
    assert!(verify().err.contains("audit.head is missing"));
    let file = fs::read(home.path().join("audit.sqlite")).unwrap();
    fs::remove_file(home.path().join("audit.sqlite")).unwrap();
    assert_eq!(verify().code, Some(3), "both are gone: {}", verify().err);
    fs::write(home.path().join("audit.head"), head).unwrap();
    assert_eq!(verify().code, Some(1), "{}", verify().err);
    fs::write(home.path().join("audit.sqlite"), "no database").unwrap();
    assert_eq!(verify().code, Some(3), "{}", verify().err);
    fs::write(home.path().join("audit.sqlite"), file).unwrap();
    assert_eq!(verify().code, Some(0), "{}", verify().err);
}
