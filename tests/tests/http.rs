//! The API and MCP over TCP: who may come in, and what each token opens.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;

use conductor_tests::home::Home;
use conductor_tests::wait;
use serde_json::{Value, json};

const SHOW: &str = "[[modes]]\nname = \"Play\"\n";

/// Where the door of a home is, and what opens it.
struct Door {
    port: u16,
    owner: String,
    agent: String,
}

impl Door {
    fn of(home: &Home) -> Self {
        let read = |name: &str| {
            let file = home.path().join(name);
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
            fs::read_to_string(file).unwrap()
        };
        let (find, none) = (|| fs::read_to_string(home.path().join("api.json")).ok(), || "no api.json".to_owned());
        let told: Value = serde_json::from_str(&wait::until(find, none).0).unwrap();
        let port = told["url"].as_str().unwrap().rsplit_once(':').unwrap().1.parse().unwrap();
        Self { port, owner: read("api.token"), agent: read("mcp.token") }
    }

    fn host(&self) -> String {
        format!("host: 127.0.0.1:{}", self.port)
    }

    /// Status and body of the answer to a request with these headers.
    fn ask(&self, line: &str, headers: &[&str], body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let headers = headers.iter().map(|header| format!("{header}\r\n")).collect::<String>();
        let length = body.len();
        // Who is refused is not listened to any longer.
        let _ =
            write!(stream, "{line} HTTP/1.1\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {answer:?}")).parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    fn bearer(token: &str) -> String {
        format!("authorization: Bearer {token}")
    }
}

// MCP-1, API-1: wrong token, wrong Host, wrong Origin: an error, a line in the audit, and nothing else.
#[test]
fn only_who_has_the_token_and_means_this_door_comes_in() {
    let home = Home::new(SHOW);
    let _host = home.run_with(&["--http", "0"]);
    let door = Door::of(&home);
    let (host, owner) = (door.host(), Door::bearer(&door.owner));
    let status = |headers: &[&str]| door.ask("GET /v1/status", headers, "");
    let (code, body) = status(&[&host, &owner]);
    assert_eq!(code, 200, "{body}");
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["rules"], 0);
    let own = format!("origin: http://localhost:{}", door.port);
    assert_eq!(status(&[&host, &owner, &own]).0, 200, "its own page");
    let local = format!("host: LocalHost:{}", door.port);
    assert_eq!(status(&[&local, &owner]).0, 200);

    let near = format!("{}{}", &door.owner[..63], if door.owner.ends_with('0') { '1' } else { '0' });
    let other_port = format!("host: 127.0.0.1:{}", door.port ^ 1);
    let beside = format!("origin: http://localhost:{}", door.port ^ 1);
    let secure = format!("origin: https://127.0.0.1:{}", door.port);
    let rebound = format!("host: evil.example:{}", door.port);
    for (headers, expected, why) in [
        (vec![host.as_str()], 401, "a token is wanted"),
        (vec![&host, "authorization: Bearer "], 401, "a token is wanted"),
        (vec![&host, "authorization: Bearer 0"], 401, "not a token of this host"),
        (vec![&host, &Door::bearer(&near)], 401, "not a token of this host"),
        (vec![&host, &owner, &owner], 401, "a token is wanted"),
        (vec![&host, &format!("authorization: Basic {}", door.owner)], 401, "a token is wanted"),
        (vec![&owner], 403, "the Host has to be"),
        (vec![&rebound, &owner], 403, "the Host has to be"),
        (vec!["host: 127.0.0.1", &owner], 403, "the Host has to be"),
        (vec![&other_port, &owner], 403, "the Host has to be"),
        (vec![&host, &rebound, &owner], 403, "the Host has to be"),
        (vec![&host, &owner, "origin: https://evil.example"], 403, "another origin"),
        (vec![&host, &owner, "origin: null"], 403, "another origin"),
        (vec![&host, &owner, &beside], 403, "another origin"),
        (vec![&host, &owner, &secure], 403, "another origin"),
        (vec![&host, &owner, &own, "origin: https://evil.example"], 403, "another origin"),
    ] {
        let (code, body) = status(&headers);
        assert!(code == expected && body.contains(why), "{headers:?}: {code} {body}");
        // Before anything else: what there is, and what there is not, looks the same.
        assert_eq!(door.ask("POST /v1/nowhere", &headers, &"x".repeat(100_000)).0, expected, "{headers:?}");
    }
    let elsewhere = format!("GET http://evil.example:{}/v1/status", door.port);
    assert_eq!(door.ask(&elsewhere, &[&host, &owner], "").0, 403);

    let refused = || home.json(&["audit", "list", "--kind", "host", "--json"]);
    let on_record = |rows: &Value| {
        let rows: Vec<_> = rows.as_array().unwrap().iter().filter(|row| row["what"] == "connect").cloned().collect();
        (!rows.is_empty()).then_some(rows)
    };
    let (rows, _) = wait::until(|| on_record(&refused()), || refused().to_string());
    assert!(rows.iter().all(|row| row["outcome"] == "refused" && row["who"] == "tcp"), "{rows:?}");
    assert!(rows.len() <= 20, "a flood does not fill the disk: {}", rows.len());
    assert!(!refused().to_string().contains(&near[..32]), "tokens are never on record");
}

// PLN-3: an agent's token opens MCP; the owner's, which applies plans, does not.
#[test]
fn the_token_of_agents_applies_nothing() {
    let home = Home::new(SHOW);
    let host = home.run_with(&["--http", "0"]);
    let door = Door::of(&home);
    let (name, owner, agent) = (door.host(), Door::bearer(&door.owner), Door::bearer(&door.agent));
    let args = json!({ "mode": "Play", "trigger": { "type": "Note", "note": 36 },
        "action": { "type": "ModeChange", "mode": "Play" } });
    let proposed = home.json(&["tool", "call", "conductor_create_mapping", &args.to_string()]);
    let plan = proposed["plan"].as_str().unwrap();
    let apply = format!("POST /v1/plans/{plan}/apply");
    for path in [apply.as_str(), "POST /v1/undo", "GET /v1/status", "POST /mcp/", "POST /mcp/../v1/undo", "GET //mcp"] {
        let (code, body) = door.ask(path, &[&name, &agent], "");
        assert!(code == 403 && body.contains("opens /mcp only"), "{path}: {code} {body}");
    }
    let (code, body) = door.ask("POST /mcp", &[&name, &owner], "{}");
    assert!(code == 403 && body.contains("token of agents"), "{code} {body}");
    assert_eq!(host.status()["rules"], 0);

    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string();
    let json_type = "content-type: application/json";
    let accept = "accept: application/json, text/event-stream";
    let (code, body) = door.ask("POST /mcp", &[&name, &agent, json_type, accept], &hello);
    assert!(code == 200 && body.contains("\"serverInfo\""), "{code} {body}");

    let (code, body) = door.ask(&apply, &[&name, &owner], "");
    assert!(code == 200, "{code} {body}");
    assert_eq!(host.status()["rules"], 1, "the owner's shell does");
}

// REL-1: what is too large or too deep gets an error, and the next one is served.
#[test]
fn nonsense_over_http_is_refused() {
    let home = Home::new(SHOW);
    let _host = home.run_with(&["--http", "0"]);
    let door = Door::of(&home);
    let (name, agent) = (door.host(), Door::bearer(&door.agent));
    let headers = [&name, &agent, "content-type: application/json", "accept: application/json, text/event-stream"];
    let large = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(3_000_000));
    assert_eq!(door.ask("POST /mcp", &headers, &large).0, 413);
    let deep = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{}", "[".repeat(100_000));
    let (code, body) = door.ask("POST /mcp", &headers, &deep);
    assert!((400..500).contains(&code), "{code} {body}");
    let owner = Door::bearer(&door.owner);
    assert_eq!(door.ask("GET /v1/status", &[&name, &owner], "").0, 200);
}

// REL-1: a thousand at once are served or get `retry-after`; a request afterwards is served.
#[test]
fn a_thousand_clients_at_once_are_served_or_turned_away() {
    let home = Home::new(SHOW);
    let _host = home.run_with(&["--http", "0"]);
    let door = Door::of(&home);
    let (name, owner) = (door.host(), Door::bearer(&door.owner));
    // Each has said half of what it wants.
    let mut clients: Vec<TcpStream> = (0..1000)
        .filter_map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", door.port)).ok()?;
            let _ = write!(stream, "GET /v1/status HTTP/1.1\r\n{name}\r\n");
            Some(stream)
        })
        .collect();
    let mut counted = std::collections::BTreeMap::<String, usize>::new();
    for stream in &mut clients {
        let _ = write!(stream, "{owner}\r\nconnection: close\r\n\r\n");
        let mut answer = String::new();
        let code = match stream.read_to_string(&mut answer) {
            Ok(_) => answer.split(' ').nth(1).unwrap_or("nothing").to_owned(),
            // It was turned away before it had finished.
            Err(_) => "503".to_owned(),
        };
        *counted.entry(code).or_default() += 1;
    }
    let served = counted.get("200").copied().unwrap_or_default();
    let turned_away = counted.get("503").copied().unwrap_or_default();
    assert!(served >= 256 && turned_away > 0 && served + turned_away == clients.len(), "{counted:?}");
    drop(clients);
    assert_eq!(door.ask("GET /v1/status", &[&name, &owner], "").0, 200);
}

// CFG-1: the configuration opens the door, too; without either there is none, and where it can't be opened the rest
// of the host is there.
#[test]
fn the_door_is_open_only_where_somebody_wants_it() {
    let home = Home::new(SHOW);
    let host = home.run();
    assert!(!home.path().join("api.json").exists() && !home.path().join("api.token").exists());
    drop(host);
    let home = Home::new(&format!("{SHOW}\n[api]\nhttp_port = 0\n"));
    let host = home.run();
    let taken = Door::of(&home).port.to_string();
    let other = Home::new(SHOW);
    let beside = other.run_with(&["--http", &taken]);
    assert_eq!(beside.status()["rules"], 0, "the socket answers");
    assert!(!other.path().join("api.json").exists());
    drop(host);
}
