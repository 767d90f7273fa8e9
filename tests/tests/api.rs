//! The API of the program: what each token may, and the life of a plan as watchers see it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use conductor_tests::conductor::{self, Host};
use conductor_tests::home::Home;
use conductor_tests::process::Process;
use conductor_tests::wait;
use serde_json::{Value, json};

const SHOW: &str = "[[modes]]\nname = \"Play\"\n\n[[modes]]\nname = \"Mix\"\n";

/// A client at the TCP door of a home.
struct Client {
    port: u16,
    token: String,
}

impl Client {
    fn of(home: &Home, token: &str) -> Self {
        let told: Value = serde_json::from_str(&fs::read_to_string(home.path().join("api.json")).unwrap()).unwrap();
        let port = told["url"].as_str().unwrap().rsplit_once(':').unwrap().1.parse().unwrap();
        Self { port, token: fs::read_to_string(home.path().join(token)).unwrap() }
    }

    fn ask(&self, line: &str, body: &Value) -> (u16, Value) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let (port, token, body) = (self.port, &self.token, body.to_string());
        let length = body.len();
        write!(
            stream,
            "{line} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap())
    }
}

fn propose(home: &Home, note: u8) -> String {
    let action = json!({ "type": "ModeChange", "mode": "Play" });
    let mapping = json!({ "mode": "Mix", "trigger": { "type": "Note", "note": note }, "action": action });
    let end = home.conductor(&["tool", "call", "conductor_create_mapping", &mapping.to_string()]);
    assert_eq!(end.code, Some(0), "{}", end.err);
    serde_json::from_str::<Value>(&end.out).unwrap()["plan"].as_str().unwrap().to_owned()
}

// API-1, PLN-3: a token looks, or changes what holds until the host stops; only the owner's applies and confirms.
#[test]
fn a_token_does_what_its_scope_says_and_no_more() {
    let home = Home::new(SHOW);
    let host = Host::ready(&mut conductor::command(home.path(), &["run", "--http", "0"]), home.socket());
    let [owner, control, read] =
        ["api.token", "api-control.token", "api-read.token"].map(|token| Client::of(&home, token));
    let plan = propose(&home, 40);
    let mix = json!({ "mode": "Mix" });
    let forbidden = |client: &Client, line: &str, body: &Value| {
        let (status, said) = client.ask(line, body);
        assert_eq!((status, &said["code"]), (403, &json!("forbidden")), "{line}: {said}");
    };
    for client in [&owner, &control, &read] {
        assert_eq!(client.ask("GET /v1/plans", &json!({})).1[0]["id"], plan.as_str());
        let ping = json!({ "command": "Ping" });
        assert_eq!(client.ask("POST /v1/ipc", &ping).0, 200);
    }
    forbidden(&read, "POST /v1/mode", &mix);
    forbidden(&read, "POST /v1/tools/conductor_get_modes", &json!({}));
    forbidden(&read, "GET /v1/audit", &json!({}));
    forbidden(&read, "POST /v1/ipc", &json!({ "command": "RejectPlan", "args": { "plan_id": plan } }));
    assert_eq!(control.ask("POST /v1/mode", &mix).0, 200);
    assert_eq!(control.ask("POST /v1/tools/conductor_get_modes", &json!({})).0, 200);
    assert_eq!(control.ask("GET /v1/audit", &json!({})).0, 200);
    for client in [&control, &read] {
        for step in [format!("plans/{plan}/apply"), "undo".into(), "redo".into(), "features/osc-output/lift".into()] {
            forbidden(client, &format!("POST /v1/{step}"), &json!({}));
        }
        forbidden(client, "POST /v1/ipc", &json!({ "command": "ApplyPlan", "args": { "plan_id": plan } }));
        forbidden(client, "POST /v1/ipc", &json!({ "command": "Stop" }));
        forbidden(client, "POST /v1/tools/conductor_get_modes", &json!({ "confirmed": true }));
    }
    assert_eq!(host.status()["rules"], 0, "nothing was applied");
    let apply = json!({ "command": "ApplyPlan", "args": { "plan_id": plan } });
    assert_eq!(owner.ask("POST /v1/ipc", &apply).1["data"]["rules"], 1);
    assert_eq!(owner.ask("POST /v1/undo", &json!({})).0, 200);
    assert_eq!(host.status()["rules"], 0);
}

// API-1: the stream tells what becomes of plans, and where to go on from.
#[test]
fn the_stream_tells_what_becomes_of_plans() {
    let home = Home::new(SHOW);
    let _host = home.run();
    let mut stream = UnixStream::connect(home.socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(b"GET /v1/events?kinds=plan HTTP/1.1\r\nhost: conductor\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok).filter(|line| line.starts_with('{'));
    let mut next = |step: &str| {
        let told: Value = serde_json::from_str(&lines.next().unwrap()).unwrap();
        assert_eq!((&told["kind"], &told["step"]), (&json!("plan"), &json!(step)), "{told}");
        told
    };
    let plan = propose(&home, 40);
    let told = next("proposed");
    assert_eq!(
        (told["plan"].as_str(), told["who"].as_str()),
        (Some(plan.as_str()), Some("feature \"builtin:mapping-tools\""))
    );
    let other = propose(&home, 41);
    next("proposed");
    assert_eq!(home.conductor(&["plan", "reject", &other]).code, Some(0));
    assert_eq!(next("rejected")["plan"], other.as_str());
    assert_eq!(home.conductor(&["plan", "apply", &plan, "--yes"]).code, Some(0));
    let applied = next("applied");
    assert!(applied["description"].as_str().unwrap().contains("Add a mapping"), "{applied}");
    assert_eq!(home.conductor(&["undo", "--yes"]).code, Some(0));
    next("undone");
    assert_eq!(home.conductor(&["redo", "--yes"]).code, Some(0));
    next("redone");
}

// CLI-1: one home, one host; the second says who is there. ADR-009 §8: Stop ends the process.
#[test]
fn a_second_run_says_who_is_there_and_a_stop_ends_the_first() {
    let home = Home::new(SHOW);
    let host = home.run();
    let second = Process::start(&mut conductor::command(home.path(), &["run"])).wait().0;
    assert_eq!(second.code, Some(1), "{}", second.err);
    let config = home.config().display().to_string();
    for part in [format!("process {}", host.id()), "since 20".into(), format!("with {config}")] {
        assert!(second.err.contains(&part), "{part}: {}", second.err);
    }
    let mut stream = UnixStream::connect(home.socket()).unwrap();
    let body = json!({ "command": "Stop" }).to_string();
    let head = "POST /v1/ipc HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n";
    write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    wait::until(|| (!home.socket().exists()).then_some(()), || "the host goes on".to_owned());
}
