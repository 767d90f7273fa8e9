//! Clients that take more than is theirs, at every door: they pay for it themselves.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use conductor_tests::conductor::{self, Host};
use conductor_tests::home::Home;
use conductor_tests::wait;
use serde_json::{Value, json};

const SHOW: &str = "[[modes]]\nname = \"Play\"\n";

/// The HTTP door of a home, with a token of it.
struct Door {
    port: u16,
    token: String,
}

impl Door {
    fn of(home: &Home, token: &str) -> Self {
        let find = || conductor_tests::siege::attackers::port(home.path());
        let (port, _) = wait::until(find, || "no api.json".to_owned());
        Self { port, token: fs::read_to_string(home.path().join(token)).unwrap() }
    }

    /// A connection on which this much of a request was sent.
    fn send(&self, line: &str, length: usize, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(wait::TEST_TIMEOUT)).unwrap();
        // A client that is refused is not read from.
        let _ = write!(
            stream,
            "{line} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: Bearer {}\r\nuser-agent: greedy\r\n\
             accept: application/json, text/event-stream\r\ncontent-type: application/json\r\nconnection: close\r\n\
             content-length: {length}\r\n\r\n{body}",
            self.port, self.token
        );
        stream
    }

    fn ask(&self, line: &str, body: &str) -> (u16, String) {
        answer(&mut self.send(line, body.len(), body))
    }
}

/// Status and text, head included, of an answer; 0 if there is none.
fn answer(stream: &mut impl std::io::Read) -> (u16, String) {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0), answer)
}

/// What the owner is answered at the Unix socket.
fn owner(home: &Home, path: &str) -> u16 {
    let mut stream = UnixStream::connect(home.socket()).unwrap();
    stream.set_read_timeout(Some(wait::TEST_TIMEOUT)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: conductor\r\nconnection: close\r\n\r\n").unwrap();
    answer(&mut stream).0
}

/// Status of what an event stream begins with, and the stream.
fn events(home: &Home) -> (u16, UnixStream) {
    let mut stream = UnixStream::connect(home.socket()).unwrap();
    stream.set_read_timeout(Some(wait::TEST_TIMEOUT)).unwrap();
    write!(stream, "GET /v1/events HTTP/1.1\r\nhost: conductor\r\n\r\n").unwrap();
    let mut line = [0; 12];
    stream.read_exact(&mut line).unwrap();
    (String::from_utf8_lossy(&line).split(' ').nth(1).unwrap().parse().unwrap(), stream)
}

fn hello() -> Value {
    let client = json!({ "name": "greedy", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": { "form": {} } },
        "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })
}

fn initialized() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
}

/// An agent by `conductor mcp`, which is a process of its own.
struct Agent {
    child: Child,
    ask: ChildStdin,
    said: BufReader<ChildStdout>,
    asked: u64,
}

impl Agent {
    fn start(home: &Home) -> Self {
        let mut command = conductor::command(home.path(), &["mcp"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (ask, said) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut agent = Self { child, ask, said, asked: 0 };
        agent.say(&hello());
        agent.until(|said| said["id"] == 0);
        agent.say(&initialized());
        agent
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.ask, "{message}").unwrap();
    }

    /// The first message that is so.
    fn until(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.said.read_line(&mut line).unwrap(), 0, "the host hung up");
            let said: Value = serde_json::from_str(&line).unwrap();
            if is(&said) {
                return said;
            }
        }
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.asked += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }));
        self.asked
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.until(|said| said["id"] == id)
    }

    fn read(&mut self, uri: &str) -> String {
        let said = self.request("resources/read", &json!({ "uri": uri }));
        said["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned()
    }

    fn propose(&mut self, name: &str) -> u64 {
        self.send("tools/call", &json!({ "name": "conductor_create_mode", "arguments": { "name": name } }))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// KiB that the host has in memory.
fn resident(host: &Host) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", host.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// What a client is listed for, by its door.
fn listed(host: &Host, door: &str, what: &str) -> Value {
    let of = |status: &Value| {
        let all = status["troublesome_clients"].as_array().unwrap();
        all.iter().find(|one| one["door"] == door && one["what"] == what).cloned()
    };
    let (status, _) = host.status_when(|status| of(status).is_some());
    of(&status).unwrap()
}

// API-1: agents that begin requests and don't end them leave the owner's and other tokens' places alone, and are cut.
#[test]
fn half_bodies_of_agents_keep_nobody_else_out() {
    let home = Home::new(SHOW);
    let host = home.run_with(&["--http", "0"]);
    let (agent, own) = (Door::of(&home, "mcp.token"), Door::of(&home, "api.token"));
    let mut half: Vec<_> = (0..256).map(|_| agent.send("POST /mcp", 1000, "{")).collect();
    assert_eq!(own.ask("GET /v1/status", "").0, 200);
    assert_eq!(Door::of(&home, "api-read.token").ask("GET /v1/status", "").0, 200);
    assert_eq!(owner(&home, "/v1/status"), 200);
    let answers: Vec<_> = half.iter_mut().map(answer).collect();
    let of = |status: u16| answers.iter().filter(|(other, _)| *other == status).count();
    assert!(of(408) > 0 && of(503) + of(0) > 0 && of(408) + of(503) + of(0) == 256, "{:?}", answers[0]);
    let (_, turned_away) = answers.iter().find(|(status, _)| *status == 503).unwrap();
    assert!(turned_away.to_lowercase().contains("retry-after: "), "{turned_away}");
    let slow = listed(&host, "mcp-http", "slow_request");
    assert_eq!(slow["scope"], "agent");
    assert_eq!(slow["name"], "greedy");
    assert_eq!(agent.ask("POST /mcp", &hello().to_string()).0, 200, "there is room again");
}

// API-1: a connection without a token has no owner, and is evicted first.
#[test]
fn half_heads_of_strangers_give_way_to_whoever_has_a_token() {
    let home = Home::new(SHOW);
    let host = home.run_with(&["--http", "0"]);
    let own = Door::of(&home, "api.token");
    let _half: Vec<_> = (0..600)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", own.port)).unwrap();
            let _ = write!(stream, "GET /v1/status HTTP/1.1\r\nhost: 127.0.0.1\r\n");
            stream
        })
        .collect();
    assert_eq!(own.ask("GET /v1/status", "").0, 200);
    assert_eq!(listed(&host, "tcp", "connections")["scope"], Value::Null);
}

// API-1: a length that can't be is refused before a byte of it is waited for.
#[test]
fn a_body_that_is_too_long_is_refused_by_its_length() {
    let home = Home::new(SHOW);
    let _host = home.run_with(&["--http", "0"]);
    for (token, line) in [("mcp.token", "POST /mcp"), ("api-control.token", "POST /v1/mode")] {
        let (status, said) = answer(&mut Door::of(&home, token).send(line, 1_000_000_000, "{"));
        assert_eq!(status, 413, "{said}");
    }
}

// API-1: streams of a lent token don't take the owner's.
#[test]
fn streams_of_the_read_token_leave_room_for_the_owners() {
    let home = Home::new(SHOW);
    let host = home.run_with(&["--http", "0"]);
    let read = Door::of(&home, "api-read.token");
    let _open: Vec<_> = (0..256).map(|_| read.send("GET /v1/events", 0, "")).collect();
    assert_eq!(events(&home).0, 200);
    assert_eq!(listed(&host, "tcp", "streams")["scope"], "read");
    assert_eq!(Door::of(&home, "api.token").ask("GET /v1/status", "").0, 200);
    assert_eq!(owner(&home, "/v1/status"), 200);
}

// API-1: a client over its rate limit gets `retry-after`; others are not affected.
#[test]
fn a_flood_of_requests_is_slowed_by_its_token() {
    let home = Home::new(SHOW);
    let host = home.run_with(&["--http", "0"]);
    let read = Door::of(&home, "api-read.token");
    let mut stream = TcpStream::connect(("127.0.0.1", read.port)).unwrap();
    stream.set_read_timeout(Some(wait::TEST_TIMEOUT)).unwrap();
    let request =
        format!("GET /v1/modes HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: Bearer {}\r\n", read.port, read.token);
    let mut input = stream.try_clone().unwrap();
    let flood = thread::spawn(move || {
        // Until it is hung up on.
        let _ = (0..200_000).try_for_each(|_| write!(input, "{request}\r\n"));
    });
    let (_, said) = answer(&mut stream);
    flood.join().unwrap();
    assert!(said.contains("HTTP/1.1 429") && said.to_lowercase().contains("retry-after: "), "{:.2000}", said);
    assert_eq!(listed(&host, "tcp", "rate")["scope"], "read");
    assert_eq!(Door::of(&home, "api.token").ask("GET /v1/status", "").0, 200);
    assert_eq!(Door::of(&home, "api-control.token").ask("GET /v1/status", "").0, 200);
}

// MCP-1: agents that start anew and never say goodbye displace each other's idle sessions, and no client is refused.
#[test]
fn sessions_that_nobody_closes_give_way() {
    let home = Home::new(SHOW);
    let host = home.run_with(&["--http", "0"]);
    let agent = Door::of(&home, "mcp.token");
    for _ in 0..200 {
        let (status, said) = agent.ask("POST /mcp", &hello().to_string());
        assert_eq!(status, 200, "{said}");
    }
    assert!(listed(&host, "mcp-http", "sessions")["count"].as_u64() > Some(100));
}

// REL-1, MCP-1: what agents leave unread is bounded in bytes, and the next one is served.
#[test]
fn answers_that_agents_do_not_read_are_bounded() {
    let home = Home::new(&format!("{SHOW}# {}\n", "x".repeat(200_000)));
    let host = home.run();
    let before = resident(&host);
    let params = json!({ "uri": "conductor://config" });
    let ask = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "resources/read", "params": params });
    let deaf: Vec<_> = (0..12)
        .map(|_| {
            let mut stream = UnixStream::connect(home.path().join("mcp.sock")).unwrap();
            stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
            write!(stream, "{}\n{}\n", hello(), initialized()).unwrap();
            // Until it is not listened to any more.
            let _ = (1..10_000).try_for_each(|id| writeln!(stream, "{}", ask(id)));
            stream
        })
        .collect();
    listed(&host, "mcp-socket", "unread_answers");
    let after = resident(&host);
    assert!(after < before + 160 * 1024, "{before} KiB became {after}");
    assert!(Agent::start(&home).read("conductor://config").len() > 200_000);
    drop(deaf);
}

// MCP-1: one process can't take the places of all agents.
#[test]
fn one_process_leaves_places_for_other_agents() {
    let home = Home::new(SHOW);
    let host = home.run();
    let _mine: Vec<_> = (0..64).map(|_| UnixStream::connect(home.path().join("mcp.sock")).unwrap()).collect();
    assert!(Agent::start(&home).read("conductor://config").contains("Play"));
    assert_eq!(listed(&host, "mcp-socket", "connections")["scope"], "agent");
}

// PLN-1, REL-1: a list of plans is a list, however much the plans change.
#[test]
fn plans_are_listed_without_what_they_change() {
    let home = Home::new(SHOW);
    let _host = home.run();
    let mut agent = Agent::start(&home);
    let long = "x".repeat(100_000);
    let changes = json!([{ "path": "modes/0/name", "value": long }]);
    let args = json!({ "description": "A long name", "changes": changes });
    let call = json!({ "name": "conductor_batch_changes", "arguments": args });
    let proposed = agent.request("tools/call", &call)["result"].take();
    let listed = agent.read("conductor://plans");
    let plans: Value = serde_json::from_str(&listed).unwrap();
    let Some(plan) = plans.as_array().unwrap().first() else {
        // Where such a name is refused there is nothing to list.
        assert_eq!(proposed["isError"], true, "{proposed}");
        return;
    };
    assert!(listed.len() < 2000 && plan["diff_bytes"].as_u64() > Some(100_000), "{listed:.500}");
    assert_eq!(home.json(&["plan", "list", "--json"])[0]["id"], plan["id"]);
}

// MCP-1: what is longer than an answer may be is cut, and says so.
#[test]
fn a_resource_is_no_longer_than_an_answer_may_be() {
    let home = Home::new(&format!("{SHOW}# {}\n", "x".repeat(400_000)));
    let _host = home.run();
    let config = Agent::start(&home).read("conductor://config");
    assert!(config.len() <= 256 * 1024 && config.contains("of which an answer has at most"), "{}", config.len());
    assert!(config.starts_with(SHOW));
}

// MCP-1: cursors that the host did not issue, and addresses where nothing is.
#[test]
fn what_is_made_up_is_refused() {
    let home = Home::new(SHOW);
    let _host = home.run();
    let mut agent = Agent::start(&home);
    for list in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
        let said = agent.request(list, &json!({ "cursor": "made up" }));
        assert_eq!(said["error"]["code"], -32602, "{list}: {said}");
        assert!(agent.request(list, &json!({}))["result"].is_object());
    }
    for uri in ["conductor://nothing", "conductor://plans/0", "conductor://docs/../config", "file:///etc/passwd"] {
        let said = agent.request("resources/subscribe", &json!({ "uri": uri }));
        assert!(said["error"].is_object(), "{uri}: {said}");
    }
    assert!(agent.request("resources/subscribe", &json!({ "uri": "conductor://plans" }))["result"].is_object());
}

// PLN-3: an agent whose user answers nothing keeps no other agent's user from being asked.
#[test]
fn questions_of_one_agent_leave_room_for_anothers() {
    let home = Home::new(&format!("{SHOW}[mcp]\nelicitation = \"plans\"\n[tools.per_minute]\nconfig_change = 6000\n"));
    let host = home.run();
    let mut greedy = Agent::start(&home);
    let is_asked = |said: &Value| said["method"] == "elicitation/create";
    for number in 0..12 {
        greedy.propose(&format!("Greedy {number}"));
    }
    let asked = greedy.until(is_asked);
    assert!(asked["params"]["message"].is_string());
    assert_eq!(listed(&host, "mcp-socket", "questions")["name"], "greedy");
    let mut other = Agent::start(&home);
    let id = other.propose("Modest");
    let question = other.until(is_asked);
    let accept = json!({ "action": "accept", "content": { "decision": "apply" } });
    other.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": accept }));
    let said = other.until(|said| said["id"] == id);
    assert!(said.to_string().contains("The user applied the plan"), "{said}");
}

// API-1, REL-1: a look at a configuration that takes long holds up neither the owner nor agents.
#[test]
fn a_long_check_holds_up_nobody() {
    let home = Home::new(SHOW);
    let _host = home.run_with(&["--http", "0"]);
    let read = Door::of(&home, "api-read.token");
    let regex = "(((a{1,60}){1,30}){1,20})";
    let binding =
        |n: usize| format!("[[bindings]]\nalias = 'b{n}'\nmatchers = [{{ type = 'name_regex', value = '{regex}' }}]\n");
    let text: String = (0..100).map(binding).collect();
    let body = json!({ "text": text }).to_string();
    let mut agent = Agent::start(&home);
    let (done, checked) = mpsc::channel();
    let check = thread::spawn(move || {
        let answers: Vec<u16> = (0..3).map(|_| read.ask("POST /v1/config/validate", &body).0).collect();
        done.send(()).unwrap();
        answers
    });
    let deadline = Instant::now() + wait::TEST_TIMEOUT;
    let mut asked = 0;
    while checked.try_recv().is_err() && Instant::now() < deadline {
        assert_eq!(owner(&home, "/v1/modes"), 200);
        assert!(agent.request("tools/list", &json!({}))["result"].is_object());
        asked += 1;
    }
    assert!(asked > 0);
    let answers = check.join().unwrap();
    assert!(answers.iter().all(|status| [200, 503].contains(status)), "{answers:?}");
}
