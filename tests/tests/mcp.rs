//! An agent over MCP, as the protocol's own words on standard input and output.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use conductor_tests::conductor;
use conductor_tests::home::Home;
use conductor_tests::wait;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// An agent that waits for each answer.
struct Agent {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
    asked: u64,
}

impl Agent {
    fn start(home: &Home) -> Self {
        Self::try_start(home).expect("no answer to hello")
    }

    /// One that has said nothing yet, as a client of 2026-07-28 begins.
    fn silent(home: &Home) -> Self {
        let mut command = conductor::command(home.path(), &["mcp"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (ask, answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, ask, answers, asked: 0 }
    }

    /// `None` if there is no place.
    fn try_start(home: &Home) -> Option<Self> {
        Self::try_start_as(home, "test")
    }

    fn try_start_as(home: &Home, name: &str) -> Option<Self> {
        let mut agent = Self::silent(home);
        let client = json!({ "name": name, "version": "1" });
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let told = agent.try_ask("initialize", hello)?;
        if told["error"].is_object() {
            return None;
        }
        assert_eq!(told["result"]["protocolVersion"], "2025-11-25", "{told}");
        assert_eq!(told["result"]["serverInfo"]["name"], "conductor");
        agent.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        Some(agent)
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.ask, "{message}").unwrap();
    }

    /// The answer; what the host says in between is skipped.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.try_ask(method, params).unwrap_or_else(|| panic!("no answer to {method}"))
    }

    fn try_ask(&mut self, method: &str, params: Value) -> Option<Value> {
        self.asked += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            if self.answers.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == self.asked || answer["id"].is_null() && answer["error"].is_object() {
                return Some(answer);
            }
        }
    }

    /// As [`Self::ask`], as a client of 2026-07-28.
    fn modern(&mut self, method: &str, mut params: Value, capabilities: Value) -> Value {
        params["_meta"] = meta(capabilities);
        self.ask(method, params)
    }

    /// The next notification of this method.
    fn notified(&mut self, method: &str) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.answers.read_line(&mut line).unwrap(), 0, "no {method}");
            let mut told: Value = serde_json::from_str(&line).unwrap();
            if told["method"] == method {
                return told["params"].take();
            }
        }
    }

    fn call(&mut self, tool: &str, args: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": args }))["result"].take()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What each request of a client of 2026-07-28 carries.
fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    })
}

const SHOW: &str = "[[modes]]\nname = \"Play\"\n";

// MCP-1, MCP-2, PLN-3: from discovery to a plan; a person applies it.
#[test]
fn an_agent_proposes_a_mapping_and_a_person_applies_it() {
    let home = Home::new(SHOW);
    let host = home.run();
    let mut agent = Agent::start(&home);

    let listed = agent.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let named = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    let create = named("conductor_create_mapping");
    assert_eq!(create["annotations"]["readOnlyHint"], false);
    assert_eq!(create["inputSchema"]["type"], "object");
    assert_eq!(create["outputSchema"]["type"], "object");
    assert_eq!(named("conductor_get_modes")["annotations"]["readOnlyHint"], true);

    let modes = agent.call("conductor_get_modes", json!({}));
    assert_eq!(modes["structuredContent"]["modes"][0], json!({ "name": "Play", "mappings": 0 }));
    let action = json!({ "type": "ModeChange", "mode": "Play" });
    let mapping = json!({ "mode": "Play", "trigger": { "type": "Note", "note": 36 }, "action": action });
    let proposed = agent.call("conductor_create_mapping", mapping);
    let plan = proposed["structuredContent"]["plan"].as_str().unwrap().to_owned();
    assert_eq!(host.status()["rules"], 0, "an agent has only proposed");
    let waiting = agent.ask("resources/read", json!({ "uri": "conductor://plans" }));
    assert!(waiting["result"]["contents"][0]["text"].as_str().unwrap().contains(&plan));

    assert_eq!(home.conductor(&["plan", "apply", &plan, "--yes"]).code, Some(0));
    let listed = agent.call("conductor_list_mappings", json!({ "mode": "Play" }));
    assert_eq!(listed["structuredContent"]["mappings"][0]["place"], "modes/0/mappings/0");
    assert_eq!(host.status()["rules"], 1);
}

// ENG-13: an agent sees what goes out of an event, by a feature and by the host, while nothing does.
#[test]
fn an_agent_sees_what_an_event_would_send() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_nonblocking(true).unwrap();
    let to = receiver.local_addr().unwrap();
    let home = Home::new(&format!(
        "[features.osc-output.grants]\nudp = ['{to}']\n[[global_mappings]]\nname = 'cue'\n\
         trigger = {{ type = 'CC', cc = 7 }}\n\
         action = {{ type = 'OscSend', target = '{to}', address = '/cue', args = ['{{unit}}'] }}\n\
         [[modes]]\nname = 'Play'\n[[modes]]\nname = 'Mix'\n[[modes.mappings]]\n\
         trigger = {{ type = 'Note', note = 36 }}\naction = {{ type = 'Text', text = 'go' }}\n"
    ));
    let _host = home.run();
    let mut agent = Agent::start(&home);
    let mut effects = |event: &str, mode: &str| {
        let args = json!({ "device": "pads", "event": event, "mode": mode });
        let answer = agent.call("conductor_show_effects", args);
        assert_eq!(answer["isError"], false, "{answer}");
        answer["structuredContent"]["effects"].clone()
    };
    // Twice, since what performed the first is gone by then.
    for _ in 0..2 {
        assert_eq!(effects("cc 7 127", "Play"), json!([format!("=> OSC {to} /cue 1.0  # cue")]));
    }
    assert!(effects("note-on 36 100", "Mix")[0].as_str().unwrap().starts_with("=> text \"go\""));
    assert_eq!(effects("note-on 36 100", "Play"), json!([]));
    let wrong = agent.call("conductor_show_effects", json!({ "device": "pads", "event": "cc 7 1", "mode": "Mxi" }));
    assert!(wrong["isError"] == true && wrong["content"][0]["text"].as_str().unwrap().contains("Mxi"), "{wrong}");
    assert!(receiver.recv(&mut [0; 64]).is_err(), "something went out");
}

// ENG-13: half a million messages at one press are tried in part, and the answer says so.
#[test]
fn what_a_flood_would_send_is_tried_in_part() {
    let home = Home::new(
        "[features.osc-output.grants]\nudp = ['127.0.0.1:9']\n[[modes]]\nname = 'Play'\n[[global_mappings]]\n\
         name = 'flood'\ntrigger = { type = 'Note', note = 36 }\n\
         action = { type = 'Repeat', count = 700, action = { type = 'Repeat', count = 700, \
         action = { type = 'OscSend', target = '127.0.0.1:9', address = '/flood' } } }\n",
    );
    let _host = home.run();
    let answer =
        Agent::start(&home).call("conductor_show_effects", json!({ "device": "pads", "event": "note-on 36 100" }));
    let effects: Vec<&str> =
        answer["structuredContent"]["effects"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    assert_eq!(effects.len(), 66, "{answer}");
    assert_eq!(effects[64..], ["and 936 more effects", "and those of 489000 more steps, which were not tried"]);
}

// PLN-3, PLN-4: an agent takes back what it proposed, on record, and nothing of others.
#[test]
fn an_agent_withdraws_a_plan_of_its_own_alone() {
    let home = Home::new(SHOW);
    let _host = home.run();
    let mut agent = Agent::start(&home);
    let mut other = Agent::try_start_as(&home, "other").unwrap();
    let listed = agent.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "conductor_withdraw_plan"));
    let proposed = agent.call("conductor_create_mode", json!({ "name": "Solo" }));
    let plan = proposed["structuredContent"]["plan"].as_str().unwrap().to_owned();

    let refused = other.call("conductor_withdraw_plan", json!({ "plan": plan }));
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("is not one that you proposed"), "{refused}");
    let wrong = agent.call("conductor_withdraw_plan", json!({ "id": plan }));
    assert!(wrong["content"][0]["text"].as_str().unwrap().contains("`plan` is wanted"), "{wrong}");
    assert!(home.conductor(&["plan", "list"]).out.contains(&plan[..6]), "it waits on");

    let withdrawn = agent.call("conductor_withdraw_plan", json!({ "plan": plan }));
    assert_eq!(withdrawn["structuredContent"]["withdrawn"], plan.as_str(), "{withdrawn}");
    assert!(home.conductor(&["plan", "list"]).out.contains("no plan waits"));
    let again = agent.call("conductor_withdraw_plan", json!({ "plan": plan }));
    assert!(again["content"][0]["text"].as_str().unwrap().contains("there is no plan"), "{again}");
    let rows = || home.json(&["audit", "list", "--kind", "plan", "--json"]);
    let on_record = |who: &str, outcome: &str| {
        rows().as_array().unwrap().iter().any(|row| {
            row["what"] == "withdraw"
                && row["subject"] == plan.as_str()
                && row["who"] == who
                && row["outcome"] == outcome
        })
    };
    let both = || {
        let own = on_record("mcp-socket:agent \"test\"", "done");
        (own && on_record("mcp-socket:agent \"other\"", "refused")).then_some(())
    };
    wait::until(both, || rows().to_string());
}

// MCP-1: what can't be done says so, and the agent goes on.
#[test]
fn mistakes_are_told_to_the_agent() {
    let home = Home::new(SHOW);
    let _host = home.run();
    let mut agent = Agent::start(&home);
    let unknown = agent.ask("tools/call", json!({ "name": "conductor_get_mode", "arguments": {} }));
    let told = unknown["error"]["message"].as_str().unwrap();
    assert!(told.contains("did you mean \"conductor_get_modes\""), "{told}");
    let wrong = agent.call("conductor_delete_mode", json!({ "name": "Plya" }));
    assert_eq!(wrong["isError"], true);
    assert!(wrong["content"][0]["text"].as_str().unwrap().contains("there are Play"), "{wrong}");
    let no_page = agent.ask("resources/read", json!({ "uri": "conductor://../config" }));
    assert!(no_page["error"]["message"].as_str().unwrap().contains("there is no resource"));
    for door in ["plans/apply", "conductor/apply_plan"] {
        assert!(agent.ask(door, json!({ "id": "0" }))["error"].is_object(), "{door} is none");
    }
    assert!(agent.call("conductor_get_modes", json!({}))["isError"] == false);
}

// REL-1, PLN-4: what is too long or too deep is refused, on record, and the agent goes on.
#[test]
fn nonsense_of_any_size_is_refused_and_the_agent_goes_on() {
    let home = Home::new(SHOW);
    let host = home.run();
    let mut agent = Agent::start(&home);
    for nonsense in ["x".repeat(100_000_000), "[".repeat(100_000)] {
        let args = format!("{{\"mode\":\"Play\",\"trigger\":\"{nonsense}\"}}").replace("\"[", "[").replace("[\"", "[");
        let call = format!("{{\"name\":\"conductor_create_mapping\",\"arguments\":{args}}}");
        let said = format!("{{\"jsonrpc\":\"2.0\",\"id\":99,\"method\":\"tools/call\",\"params\":{call}}}");
        writeln!(agent.ask, "{said}").unwrap();
        let mut line = String::new();
        assert_ne!(agent.answers.read_line(&mut line).unwrap(), 0);
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
        assert!(agent.call("conductor_get_modes", json!({}))["isError"] == false);
    }
    let refused = || {
        let rows = home.json(&["audit", "list", "--kind", "tool", "--client", "mcp", "--json"]);
        let reasons = rows.as_array().unwrap().iter().filter_map(|row| row["detail"]["reason"].as_str());
        let reasons: Vec<String> = reasons.map(str::to_owned).collect();
        let both = ["too long", "nested too deeply"].iter().all(|why| reasons.iter().any(|said| said.contains(why)));
        both.then_some(())
    };
    wait::until(refused, || home.conductor(&["audit", "list"]).out);
    assert!(home.conductor(&["plan", "list"]).out.contains("no plan waits"));
    assert_eq!(host.status()["rules"], 0);
    let called = home.json(&["audit", "list", "--client", "mcp-socket:agent \"test\"", "--json"]);
    assert_eq!(called[0]["subject"], "conductor_get_modes", "the agent is known by its name: {called}");
}

// REL-1: a client that asks and never reads is not read from any longer, and slows no other down (backpressure).
#[test]
fn an_agent_that_does_not_read_holds_up_nobody() {
    let home = Home::new(SHOW);
    let _host = home.run();
    let mut deaf = UnixStream::connect(home.path().join("mcp.sock")).unwrap();
    let client = json!({ "name": "deaf", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    writeln!(deaf, "{}", json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello })).unwrap();
    writeln!(deaf, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).unwrap();
    deaf.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let ask = format!("{}\n", json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    let mut said = 0;
    let stopped = (0..20_000).any(|_| deaf.write_all(ask.as_bytes()).map(|()| said += 1).is_err());
    assert!(stopped, "{said} requests were taken from a client that reads no response");
    let mut agent = Agent::start(&home);
    assert!(agent.call("conductor_get_modes", json!({}))["isError"] == false);
}

// REL-1: a thousand agents at once are served or told that there is no place.
#[test]
fn a_thousand_agents_at_once_are_served_or_turned_away() {
    let home = Home::new(SHOW);
    let _host = home.run();
    let agents: Vec<_> = (0..1000).filter_map(|_| UnixStream::connect(home.path().join("mcp.sock")).ok()).collect();
    let mut told = 0;
    for agent in &agents[64..] {
        let mut line = String::new();
        agent.set_read_timeout(Some(wait::TEST_TIMEOUT)).unwrap();
        let _ = BufReader::new(agent).read_line(&mut line);
        told += usize::from(line.contains("agents are here already"));
    }
    assert_eq!(told, agents.len() - 64);
    drop(agents);
    let (find, none) = (|| Agent::try_start(&home), || "no place became free".to_owned());
    wait::until(find, none).0.call("conductor_get_modes", json!({}));
}

#[test]
fn without_a_host_there_is_nobody_to_talk_to() {
    let home = Home::new(SHOW);
    let end = home.conductor(&["mcp", "--wait", "0"]);
    assert_eq!(end.code, Some(1));
    assert!(end.err.contains("no host is running in"), "{}", end.err);
}

#[test]
fn an_agent_that_is_there_before_the_host_is_answered_when_the_host_is() {
    let home = Home::new(SHOW);
    let mut agent = Agent::silent(&home);
    let _host = home.run();
    let client = json!({ "name": "early", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let told = agent.try_ask("initialize", hello).expect("it has waited");
    assert_eq!(told["result"]["serverInfo"]["name"], "conductor", "{told}");
}

/// What a client of the tasks extension can do.
fn tasks() -> Value {
    json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

// MCP-1: a call that takes long becomes a task of the client that made it, if it knows tasks.
#[test]
fn a_call_that_takes_long_becomes_a_task_of_its_client() {
    let (home, guest) = (Home::empty(), conductor::guest("hostile-tools"));
    let pins = home.pins(&guest);
    home.configure(&format!("{SHOW}[features.hostile-tools]\npath = '{}'\n{pins}", guest.display()));
    let _host = home.run();
    let (mut agent, mut other) = (Agent::silent(&home), Agent::silent(&home));
    // It works until its budget of processor time is used up.
    let long = || json!({ "name": "look", "arguments": { "how": "ignore-cancel" } });
    let without = agent.modern("tools/call", long(), json!({}));
    assert_eq!(without["result"]["isError"], true, "it is waited for: {without}");

    let state = |agent: &mut Agent, id: &Value| agent.modern("tasks/get", json!({ "taskId": id }), tasks());
    for cancels in [false, true] {
        let task = agent.modern("tools/call", long(), tasks());
        assert_eq!(task["result"]["resultType"], "task", "{task}");
        let id = &task["result"]["taskId"];
        for method in ["tasks/get", "tasks/cancel"] {
            let foreign = other.modern(method, json!({ "taskId": id }), tasks());
            assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
        }
        if cancels {
            let cancelled = agent.modern("tasks/cancel", json!({ "taskId": id }), tasks());
            assert!(cancelled["error"].is_null(), "{cancelled}");
        }
        let end = if cancels { "cancelled" } else { "completed" };
        let (ended, _) = wait::until(
            || Some(state(&mut agent, id)).filter(|task| task["result"]["status"] != "working"),
            || "the task goes on".to_owned(),
        );
        assert_eq!(ended["result"]["status"], end, "{ended}");
        if !cancels {
            assert_eq!(ended["result"]["result"]["isError"], true, "its budget was used up: {ended}");
        }
    }
}

// FEA-20: the server answers nobody before all have asked.
#[test]
fn agents_whose_tool_waits_for_a_server_do_not_wait_for_each_other() {
    const AGENTS: usize = 8;
    let (home, guest, server) =
        (Home::empty(), conductor::guest("page-reader"), TcpListener::bind("127.0.0.1:0").unwrap());
    server.set_nonblocking(true).unwrap();
    let (pins, address) = (home.pins(&guest), server.local_addr().unwrap());
    home.configure(&format!(
        "{SHOW}[features.page-reader]\npath = '{}'\n{pins}grants = {{ http = ['{address}'] }}\n",
        guest.display()
    ));
    let _host = home.run();
    let agents: Vec<Agent> = (0..AGENTS).map(|_| Agent::start(&home)).collect();
    std::thread::scope(|scope| {
        let calls = agents.into_iter().map(|mut agent| {
            scope.spawn(move || agent.call("read_page", json!({ "url": format!("http://{address}/") })))
        });
        let calls: Vec<_> = calls.collect();
        let accept = |_| wait::until(|| server.accept().ok(), || "a call waits for another's answer".to_owned()).0.0;
        let asked: Vec<TcpStream> = (0..AGENTS).map(accept).collect();
        for mut stream in asked {
            let mut request = BufReader::new(&stream).lines().map_while(Result::ok);
            assert!(request.any(|line| line.is_empty()), "the request has no end");
            write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello").unwrap();
        }
        for call in calls {
            let answer = call.join().unwrap();
            assert_eq!(answer["content"][0]["text"], "\"hello\"", "{answer}");
        }
    });
}

// MCP-1: a client of 2026-07-28 that listens is notified of the list that it changes itself.
#[test]
fn who_opens_a_group_of_tools_is_notified_of_the_list() {
    let home = Home::new(SHOW);
    let _host = home.run();
    let mut agent = Agent::silent(&home);
    let listen = json!({ "notifications": { "toolsListChanged": true }, "_meta": meta(json!({})) });
    agent.say(&json!({ "jsonrpc": "2.0", "id": "listening", "method": "subscriptions/listen", "params": listen }));
    agent.notified("notifications/subscriptions/acknowledged");
    let open = json!({ "name": "conductor_open_tools", "arguments": { "group": "builtin:binding-tools" } });
    agent.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": open["name"], "arguments": open["arguments"], "_meta": meta(json!({})),
    }}));
    agent.notified("notifications/tools/list_changed");
}

// MCP-1: log messages are for those who ask for them, from the level on that they ask for.
#[test]
fn an_agent_that_asks_gets_log_messages() {
    let home = Home::new(SHOW);
    let _host = home.run();
    let none = Agent::silent(&home).modern("logging/setLevel", json!({ "level": "debug" }), json!({}));
    assert_eq!(none["error"]["code"], -32601, "that revision has no such request: {none}");
    let mut agent = Agent::start(&home);
    let refused = agent.ask("logging/setLevel", json!({ "level": "loud" }));
    assert!(refused["error"].is_object(), "{refused}");
    let set = agent.ask("logging/setLevel", json!({ "level": "notice" }));
    assert!(set["result"].is_object(), "{set}");
    // A change of mode is below that level.
    assert_eq!(home.conductor(&["mode", "switch", "Play"]).code, Some(0));
    assert_eq!(home.conductor(&["lock"]).code, Some(0));
    let message = agent.notified("notifications/message");
    assert_eq!((&message["level"], &message["data"]["locked"]), (&json!("notice"), &json!(true)), "{message}");
}

/// How many notifications of this method come before the answer to a request that is made now.
fn notified_before_an_answer(agent: &mut Agent, method: &str) -> usize {
    agent.asked += 1;
    agent.say(&json!({ "jsonrpc": "2.0", "id": agent.asked, "method": "ping", "params": {} }));
    let mut count = 0;
    loop {
        let mut line = String::new();
        assert_ne!(agent.answers.read_line(&mut line).unwrap(), 0, "the host hung up");
        let told: Value = serde_json::from_str(&line).unwrap();
        count += usize::from(told["method"] == method);
        if told["id"] == agent.asked {
            return count;
        }
    }
}

// SKL-1, SKL-3: an agent reads a skill in three levels, and what it reads is what the digests say.
#[test]
fn an_agent_reads_all_three_levels_of_a_skill() {
    let home = Home::new(SHOW);
    let _host = home.run();
    let mut agent = Agent::start(&home);
    let listed = agent.ask("skills/list", json!({}));
    let skills = listed["result"]["skills"].as_array().unwrap_or_else(|| panic!("{listed}"));
    let learn = skills.iter().find(|skill| skill["frontmatter"]["name"] == "conductor-learn").unwrap();
    assert_eq!(learn["uri"], "skill://conductor-learn/SKILL.md");
    assert!(learn["frontmatter"]["description"].as_str().unwrap().contains("by touch"), "{learn}");
    let got = agent.ask("skills/get", json!({ "uri": learn["uri"] }));
    assert_eq!(&got["result"]["skill"], learn);
    for file in learn["resources"].as_array().unwrap() {
        let read = agent.ask("resources/read", json!({ "uri": file["uri"] }));
        let text = read["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read}"));
        assert_eq!(file["size"], text.len(), "{file}");
        let digest = hex::encode(Sha256::digest(text.as_bytes()));
        assert_eq!(file["digest"], format!("sha256:{digest}"), "{file}");
    }
    let root = agent.ask("resources/directory/read", json!({ "uri": "skill://conductor-learn" }));
    let names = |listed: &Value| -> Vec<String> {
        let children = listed["result"]["resources"].as_array().unwrap_or_else(|| panic!("{listed}"));
        children.iter().map(|child| child["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&root), ["SKILL.md", "references"]);
    let inner = agent.ask("resources/directory/read", json!({ "uri": "skill://conductor-learn/references" }));
    assert_eq!(names(&inner), ["evidence.md"]);

    let resources = agent.ask("resources/list", json!({})).to_string();
    assert!(resources.contains("skill://council-gate/SKILL.md"));
    let prompt = agent.ask("prompts/get", json!({ "name": "conductor-learn", "arguments": { "task": "this pad" } }));
    let said = prompt["result"]["messages"].to_string();
    assert!(said.contains("this pad") && said.contains("# Learning controls by touch"), "{said:.400}");
    let old = agent.ask("resources/read", json!({ "uri": "conductor://skills/conductor-midi-learn" })).to_string();
    assert!(old.contains("name: conductor-learn"), "{old:.300}");
    for uri in
        ["skill://none/SKILL.md", "skill://conductor-learn/../conductor-gate/SKILL.md", "skill://conductor-learn/x"]
    {
        assert!(agent.ask("resources/read", json!({ "uri": uri }))["error"].is_object(), "{uri}");
        assert_eq!(agent.ask("skills/get", json!({ "uri": uri }))["error"]["code"], -32602, "{uri}");
    }
}

// FEA-18, MCP-1: an agent of either revision is notified when features have notified of something, seldom enough, and
// reads it as data with the feature's id; what it has read is on record.
#[test]
fn an_agent_reads_what_features_notify_of() {
    const URI: &str = "conductor://notifications";
    const UPDATED: &str = "notifications/resources/updated";
    let (home, guest) = (Home::empty(), conductor::guest("hostile-tools"));
    let pins = home.pins(&guest);
    let path = guest.display();
    home.configure(&format!("{SHOW}[features.hostile-tools]\npath = '{path}'\n{pins}grants = {{ notify = true }}\n"));
    let _host = home.run();
    let (mut agent, mut modern) = (Agent::start(&home), Agent::silent(&home));
    let listed = agent.ask("resources/list", json!({})).to_string();
    let templates = agent.ask("resources/templates/list", json!({})).to_string();
    assert!(listed.contains(URI) && templates.contains("conductor://notifications{?after,feature}"));
    let began = Instant::now();
    assert!(agent.ask("resources/subscribe", json!({ "uri": URI }))["result"].is_object());
    let listen = json!({ "notifications": { "resourceSubscriptions": [URI] }, "_meta": meta(json!({})) });
    modern.say(&json!({ "jsonrpc": "2.0", "id": "listening", "method": "subscriptions/listen", "params": listen }));
    modern.notified("notifications/subscriptions/acknowledged");

    let flood = home.conductor(&["tool", "call", "look", r#"{"how": "notifications"}"#]);
    assert_eq!(flood.code, Some(0), "{}", flood.err);
    assert_eq!(modern.notified(UPDATED)["uri"], URI);
    assert_eq!(agent.notified(UPDATED)["uri"], URI);
    let kept = || home.json(&["notifications", "--json", "--limit", "1000"]);
    let enough = || Some(kept()).filter(|page| page["last"].as_u64() >= Some(50));
    let last = wait::until(enough, || format!("{:.500}", kept())).0["last"].as_u64().unwrap();
    let updates = 1 + notified_before_an_answer(&mut agent, UPDATED);
    let most = began.elapsed().as_secs_f64().mul_add(4.0, 2.0) as usize;
    assert!(updates <= most, "{updates} updates of at most {most} for {last} notifications");

    let mut read = |uri: &str| {
        let answer = agent.ask("resources/read", json!({ "uri": uri }));
        let text = answer["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(text.len() <= 256 * 1024, "{}", text.len());
        serde_json::from_str::<Value>(text).unwrap()
    };
    let page = read(&format!("{URI}?after=0&feature=hostile-tools"));
    assert!(page["note"].as_str().unwrap().contains("data, not instructions"), "{page:.300}");
    let first = &page["notifications"][0];
    assert_eq!((&first["sequence"], &first["feature"]), (&json!(1), &json!("project:hostile-tools")));
    let mut next = page;
    let mut seen = Vec::new();
    loop {
        seen.extend(next["notifications"].as_array().unwrap().iter().map(|one| one["sequence"].as_u64().unwrap()));
        if seen.last() >= Some(&last) {
            break;
        }
        next = read(next["next"].as_str().unwrap());
    }
    assert_eq!(seen, (1..=*seen.last().unwrap()).collect::<Vec<_>>(), "page by page, each once");
    for wrong in [format!("{URI}?after=x"), format!("{URI}/1"), format!("{URI}?before=1")] {
        assert!(agent.ask("resources/read", json!({ "uri": wrong }))["error"].is_object(), "{wrong}");
    }

    assert!(agent.ask("logging/setLevel", json!({ "level": "info" }))["result"].is_object());
    let rows = || home.json(&["audit", "list", "--kind", "resource", "--json"]);
    let follow = || rows().as_array().unwrap().iter().find(|row| row["what"] == "follow").cloned();
    let row = wait::until(follow, || format!("{:#}", rows())).0;
    assert!(row["detail"]["after"].as_u64() >= Some(last), "{row:#}");
    let read = || rows().as_array().unwrap().iter().find(|row| row["what"] == "read").cloned();
    let row = wait::until(read, || format!("{:#}", rows())).0;
    assert_eq!((&row["who"], &row["detail"]["first"]), (&json!("mcp-socket:agent \"test\""), &json!(1)), "{row:#}");
    assert!(row["detail"]["features"].as_str().unwrap().starts_with("project:hostile-tools ("), "{row:#}");
}
