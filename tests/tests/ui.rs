//! `conductor ui`: a browser on this computer and the host that runs.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use conductor_tests::conductor::command;
use conductor_tests::home::Home;
use conductor_tests::wait::{self, TEST_TIMEOUT};
use serde_json::{Value, json};

const SHOW: &str = "[[modes]]\nname = \"Play\"\n\n[[modes]]\nname = \"Mix\"\n";

/// `conductor ui --no-open`, and the person before it. Dropping it ends it.
struct Ui {
    child: Child,
    keys: ChildStdin,
    lines: Receiver<String>,
}

impl Ui {
    fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut all = vec!["ui", "--no-open"];
        all.extend(arguments);
        let mut child = command(home.path(), &all)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (said, lines) = channel();
        let out = child.stdout.take().unwrap();
        thread::spawn(move || BufReader::new(out).lines().map_while(Result::ok).all(|line| said.send(line).is_ok()));
        let keys = child.stdin.take().unwrap();
        Self { child, keys, lines }
    }

    /// The next link that it prints: its port, and its path.
    fn link(&self) -> (u16, String) {
        loop {
            let line = self.lines.recv_timeout(TEST_TIMEOUT).expect("no link was printed");
            if let Some(rest) = line.strip_prefix("http://127.0.0.1:") {
                let (port, path) = rest.split_once('/').unwrap();
                return (port.parse().unwrap(), format!("/{path}"));
            }
        }
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A browser that is signed in.
struct Browser {
    port: u16,
    cookie: String,
}

impl Browser {
    fn sign_in((port, path): (u16, String)) -> Result<Self, u16> {
        let (status, head, _) = ask(port, &format!("GET {path}"), &[], "");
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.map(|cookie| format!("cookie: {}", cookie.split_once(';').unwrap().0));
        cookie.map(|cookie| Self { port, cookie }).ok_or(status)
    }

    fn get(&self, path: &str) -> (u16, Value) {
        let (status, _, body) = ask(self.port, &format!("GET {path}"), &[&self.cookie], "");
        (status, serde_json::from_str(&body).unwrap())
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let headers = [&*self.cookie, "x-conductor-shell: 1", "content-type: application/json"];
        let (status, _, body) = ask(self.port, &format!("POST {path}"), &headers, &body.to_string());
        (status, serde_json::from_str(&body).unwrap())
    }
}

fn connect(port: u16, line: &str, headers: &[&str], body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let headers = headers.iter().map(|header| format!("{header}\r\n")).collect::<String>();
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    write!(stream, "{line} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{headers}{length}\r\n{body}").unwrap();
    stream
}

/// Status, head and body of an answer.
fn ask(port: u16, line: &str, headers: &[&str], body: &str) -> (u16, String, String) {
    let headers: Vec<&str> = headers.iter().copied().chain(["connection: close"]).collect();
    let mut answer = Vec::new();
    connect(port, line, &headers, body).read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_owned(), body.to_owned())
}

/// Reads until these bytes have come.
fn read_to(stream: &mut TcpStream, end: &[u8]) -> Vec<u8> {
    let (mut came, mut byte) = (Vec::new(), [0]);
    while !came.windows(end.len()).any(|piece| piece == end) {
        stream.read_exact(&mut byte).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&came)));
        came.extend(byte);
    }
    came
}

// SHL-1, API-1
#[test]
fn a_browser_signs_in_once_and_is_the_owner() {
    let home = Home::new(SHOW);
    let _host = home.run();
    let ui = Ui::start(&home, &[]);
    let (port, link) = ui.link();
    assert_eq!(ask(port, "GET /v1/status", &[], "").0, 401);
    let browser = Browser::sign_in((port, link.clone())).unwrap();
    assert_eq!(Browser::sign_in((port, link)).err(), Some(401), "a link serves once");
    assert_eq!(browser.get("/v1/modes"), (200, json!({ "mode": "Play", "modes": ["Play", "Mix"] })));

    // What happens comes as lines and as messages, while it happens.
    let mut lines = connect(port, "GET /v1/events?kinds=mode", &[&browser.cookie], "");
    read_to(&mut lines, b"\r\n\r\n");
    let origin = format!("origin: http://127.0.0.1:{port}");
    let handshake = [
        &*browser.cookie,
        &origin,
        "connection: Upgrade",
        "upgrade: websocket",
        "sec-websocket-version: 13",
        "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    let mut socket = connect(port, "GET /v1/stream?kinds=mode", &handshake, "");
    let head = String::from_utf8(read_to(&mut socket, b"\r\n\r\n")).unwrap();
    assert!(head.starts_with("HTTP/1.1 101") && head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    assert_eq!(browser.post("/v1/mode", &json!({ "mode": "Mix" })), (200, json!({ "mode": "Mix" })));
    read_to(&mut lines, b"\"mode\":\"Mix\"");
    read_to(&mut socket, b"\"mode\":\"Mix\"");
    // What only the owner may.
    assert_eq!(browser.post("/v1/lock", &json!({ "locked": true })).0, 200);
}

// SHL-1: the shell stays while the host comes and goes.
#[test]
fn a_host_that_was_restarted_is_found_again() {
    let home = Home::new(SHOW);
    let host = home.run();
    let ui = Ui::start(&home, &[]);
    let browser = Browser::sign_in(ui.link()).unwrap();
    let mut lines = connect(browser.port, "GET /v1/events", &[&browser.cookie], "");
    read_to(&mut lines, b"\r\n\r\n");
    host.kill();
    let mut rest = Vec::new();
    // Cut off in the middle of its answer.
    let _ = lines.read_to_end(&mut rest);
    assert!(!rest.ends_with(b"0\r\n\r\n"));
    let (status, gone) = browser.get("/v1/status");
    assert_eq!((status, &gone["code"]), (502, &json!("unavailable")));
    assert!(gone["error"].as_str().unwrap().contains("conductor run"), "{gone}");
    let _host = home.run();
    assert_eq!(browser.get("/v1/status").0, 200);
}

#[test]
fn enter_prints_another_link_and_ctrl_c_ends_the_shell() {
    let home = Home::new(SHOW);
    let _host = home.run();
    let mut ui = Ui::start(&home, &[]);
    let first = ui.link();
    ui.keys.write_all(b"\n").unwrap();
    let second = ui.link();
    assert_eq!(first.0, second.0);
    assert_eq!(Browser::sign_in(first).err(), Some(401), "another link ends the one before");
    let browser = Browser::sign_in(second).unwrap();
    let pid = ui.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
    let (status, _) = wait::until(|| ui.child.try_wait().unwrap(), || "it still runs".to_owned());
    assert_eq!(status.code(), Some(0));
    assert!(TcpStream::connect(("127.0.0.1", browser.port)).is_err());
}

#[test]
fn without_a_host_or_with_a_taken_port_the_command_says_what_to_do() {
    let home = Home::new(SHOW);
    let end = home.conductor(&["ui", "--no-open"]);
    assert_eq!(end.code, Some(1));
    assert!(end.err.contains("no host is running") && end.err.contains("conductor run"), "{}", end.err);
    let _host = home.run();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let end = home.conductor(&["ui", "--no-open", "--port", &port]);
    assert_eq!(end.code, Some(1));
    assert!(end.err.contains(&format!("127.0.0.1:{port}")) && end.err.contains("in use"), "{}", end.err);
}
