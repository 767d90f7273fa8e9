//! Clients that misbehave: of every door one that is slow, one that is silent, one that is greedy and one that lies.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::conductor;

/// How long one of them waits for the host before it goes on.
const REPLY_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a connection is misused before the next one is.
const ROUND: Duration = Duration::from_secs(3);
/// How often a client that only waits looks whether it is over.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Connections of one attacker at once.
const WIDTH: usize = 8;

/// A way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// `conductor mcp`, by its standard input and output.
    McpStdio,
    /// MCP on its own socket.
    McpSocket,
    /// MCP over HTTP, with the agents' token.
    McpHttp,
    /// The event stream over TCP, with the token that only reads.
    Stream,
    /// The API over TCP, with the token that controls.
    Api,
}

impl Door {
    /// Every one.
    pub const ALL: [Self; 5] = [Self::McpStdio, Self::McpSocket, Self::McpHttp, Self::Stream, Self::Api];
}

/// How a client misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Sends its requests a byte at a time, and never to the end.
    Slow,
    /// Says nothing.
    Silent,
    /// Asks for all it can, and reads nothing.
    Greedy,
    /// Says what is not so: about lengths, names, cursors, tokens, answers.
    Lying,
}

impl Manner {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Slow, Self::Silent, Self::Greedy, Self::Lying];
}

/// What attackers know of the host: all that a program of the same user can find out.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its home.
    pub home: std::path::PathBuf,
    /// The port of its HTTP door.
    pub port: u16,
}

/// A connection, or a program that has one.
enum Wire {
    Unix(UnixStream),
    Tcp(TcpStream),
    Program { child: Child, input: UnixStream, _output: ChildStdout },
}

impl Wire {
    fn open(door: Door, target: &Target) -> io::Result<Self> {
        let stream = match door {
            Door::McpStdio => {
                let mut command = conductor::command(&target.home, &["mcp"]);
                // A socket and no pipe: what is written to it can time out.
                let (input, of_program) = UnixStream::pair()?;
                input.set_write_timeout(Some(REPLY_TIMEOUT))?;
                command.stdin(OwnedFd::from(of_program)).stdout(Stdio::piped()).stderr(Stdio::null());
                let mut child = command.spawn()?;
                let output = child.stdout.take().unwrap();
                return Ok(Self::Program { child, input, _output: output });
            }
            Door::McpSocket => {
                let stream = UnixStream::connect(target.home.join("mcp.sock"))?;
                stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
                stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
                return Ok(Self::Unix(stream));
            }
            Door::McpHttp | Door::Stream | Door::Api => TcpStream::connect(("127.0.0.1", target.port))?,
        };
        stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
        stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
        Ok(Self::Tcp(stream))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.write_all(bytes),
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Program { input, .. } => input.write_all(bytes),
        }
    }

    /// Reads once, if the way is one that can be given up on.
    fn read(&mut self) {
        let mut some = [0; 4096];
        let _ = match self {
            Self::Unix(stream) => stream.read(&mut some),
            Self::Tcp(stream) => stream.read(&mut some),
            Self::Program { .. } => Ok(0),
        };
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        match self {
            Self::Unix(stream) => drop(stream.shutdown(Shutdown::Both)),
            Self::Tcp(stream) => drop(stream.shutdown(Shutdown::Both)),
            Self::Program { child, .. } => {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

fn token(target: &Target, file: &str) -> String {
    fs::read_to_string(target.home.join(file)).unwrap_or_default()
}

fn lines(messages: &[Value]) -> Vec<u8> {
    messages.iter().flat_map(|message| format!("{message}\n").into_bytes()).collect()
}

fn http(target: &Target, line: &str, token: &str, length: usize, body: &str) -> Vec<u8> {
    let head = format!(
        "{line} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: Bearer {token}\r\nuser-agent: siege\r\n\
         accept: application/json, text/event-stream\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n",
        target.port
    );
    format!("{head}{body}").into_bytes()
}

fn mcp_hello() -> Value {
    let client = json!({ "name": "\u{202e}siege", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} }, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })
}

fn mcp(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// What is said first.
fn hello(door: Door) -> Vec<u8> {
    match door {
        Door::McpStdio | Door::McpSocket => {
            lines(&[mcp_hello(), json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })])
        }
        Door::McpHttp | Door::Stream | Door::Api => Vec::new(),
    }
}

/// Something that makes work and a long answer.
fn request(door: Door, target: &Target, number: usize) -> Vec<u8> {
    let manual = mcp("resources/read", &json!({ "uri": "conductor://docs/mappings" }));
    let status = mcp("resources/read", &json!({ "uri": "conductor://status" }));
    let proposal = json!({ "name": "conductor_create_mode", "arguments": { "name": "x".repeat(60) } });
    let of_agents = [manual, status, mcp("tools/list", &json!({})), mcp("tools/call", &proposal)];
    match door {
        Door::McpStdio | Door::McpSocket => lines(&[of_agents[number % of_agents.len()].clone()]),
        Door::McpHttp => {
            let hello = [mcp_hello(), of_agents[number % of_agents.len()].clone()][number % 2].to_string();
            http(target, "POST /mcp", &token(target, "mcp.token"), hello.len(), &hello)
        }
        Door::Stream => http(target, "GET /v1/events?after=start", &token(target, "api-read.token"), 0, ""),
        Door::Api => {
            let token = token(target, "api-control.token");
            let text = format!(
                "[[bindings]]\nalias = 'x'\nmatchers = [{{ type = 'name_regex', value = '{}' }}]\n",
                "(a{1,40}){1,20}".repeat(4)
            );
            let body = json!({ "text": text }).to_string();
            match number % 4 {
                0 => http(target, "POST /v1/config/validate", &token, body.len(), &body),
                1 => http(target, "GET /v1/tools", &token, 0, ""),
                2 => http(target, "GET /v1/audit?limit=1000", &token, 0, ""),
                _ => http(target, "GET /v1/status", &token, 0, ""),
            }
        }
    }
}

/// What is not so.
fn lies(door: Door, target: &Target) -> Vec<Vec<u8>> {
    let state = json!({ "name": "conductor_delete_mode", "arguments": {}, "requestState": "0".repeat(32),
        "inputResponses": { "question_1": { "action": "accept", "content": { "decision": "apply" } } } });
    match door {
        Door::McpStdio | Door::McpSocket => vec![
            lines(&[mcp("tools/call", &state)]),
            lines(&[mcp("tools/list", &json!({ "cursor": "made up" }))]),
            lines(&[mcp("resources/subscribe", &json!({ "uri": "conductor://nothing" }))]),
            lines(&[json!({ "jsonrpc": "2.0", "id": 7, "result": { "action": "accept" } })]),
            format!("{}\n", "[".repeat(100_000)).into_bytes(),
            vec![0xff; 1000],
        ],
        Door::McpHttp => {
            let (token, call) = (token(target, "mcp.token"), mcp("tools/call", &state).to_string());
            vec![
                http(target, "POST /mcp", &token, call.len(), &call),
                http(target, "POST /mcp", &token, 1_000_000_000, "{"),
                http(target, "POST /mcp", &"0".repeat(64), call.len(), &call),
                http(target, "DELETE /mcp", &token, 0, ""),
            ]
        }
        Door::Stream => {
            let token = token(target, "api-read.token");
            ["after=00000000.1", "after=x", "kinds=none", "after=start&kinds=event&x=y"]
                .map(|query| http(target, &format!("GET /v1/events?{query}"), &token, 0, ""))
                .into()
        }
        Door::Api => {
            let token = token(target, "api-control.token");
            vec![
                http(target, "POST /v1/plans/0/apply", &token, 2, "{}"),
                http(target, "POST /v1/mode", &token, 100_000, "{"),
                http(target, "GET /v1/../v1/status", &token, 0, ""),
                b"\x16\x03\x01\x02\x00".to_vec(),
                format!("GET / HTTP/1.1\r\n{}", "x: y\r\n".repeat(20_000)).into_bytes(),
            ]
        }
    }
}

/// Attacks until it is stopped. Counts its connections.
pub fn attack(door: Door, manner: Manner, target: &Target, stop: &AtomicBool, connections: &AtomicU64) {
    // A program each is dear, for the attacker.
    let width = if door == Door::McpStdio { 1 } else { WIDTH };
    let mut round = 0;
    while !stop.load(Ordering::Relaxed) {
        round += 1;
        let mut wires: Vec<Wire> = (0..width).filter_map(|_| Wire::open(door, target).ok()).collect();
        connections.fetch_add(wires.len() as u64, Ordering::Relaxed);
        let ends = Instant::now() + ROUND;
        let goes_on = || Instant::now() < ends && !stop.load(Ordering::Relaxed);
        match manner {
            Manner::Silent => {
                while goes_on() {
                    thread::sleep(POLL_INTERVAL);
                }
            }
            Manner::Slow => {
                let said = [hello(door), request(door, target, round)].concat();
                for byte in &said[..said.len() - 1] {
                    wires.retain_mut(|wire| wire.write(&[*byte]).is_ok());
                    if !goes_on() {
                        break;
                    }
                    thread::sleep(Duration::from_millis(10));
                }
            }
            Manner::Greedy => {
                wires.retain_mut(|wire| wire.write(&hello(door)).is_ok());
                let (mut number, mut unheard) = (round, Vec::new());
                while goes_on() && !wires.is_empty() {
                    number += 1;
                    for mut wire in std::mem::take(&mut wires) {
                        let heard = wire.write(&request(door, target, number)).is_ok();
                        if heard { wires.push(wire) } else { unheard.push(wire) }
                    }
                }
                // What they asked for before waits on.
                while goes_on() {
                    thread::sleep(POLL_INTERVAL);
                }
            }
            Manner::Lying => {
                let lies = lies(door, target);
                for (wire, lie) in wires.iter_mut().zip(lies.iter().cycle().skip(round)) {
                    let _ = wire.write(&hello(door)).and_then(|()| wire.write(lie));
                    wire.read();
                }
                thread::sleep(POLL_INTERVAL);
            }
        }
    }
}

/// Where the HTTP door of this home is.
pub fn port(home: &Path) -> Option<u16> {
    let told: Value = serde_json::from_str(&fs::read_to_string(home.join("api.json")).ok()?).ok()?;
    told["url"].as_str()?.rsplit_once(':')?.1.parse().ok()
}

/// Every attacker on a thread of its own, until it is stopped.
pub fn all(target: &Target, stop: &Arc<AtomicBool>, connections: &Arc<AtomicU64>) -> Vec<thread::JoinHandle<()>> {
    let pairs = Door::ALL.into_iter().flat_map(|door| Manner::ALL.map(|manner| (door, manner)));
    pairs
        .map(|(door, manner)| {
            let (target, stop, connections) = (target.clone(), Arc::clone(stop), Arc::clone(connections));
            thread::spawn(move || attack(door, manner, &target, &stop, &connections))
        })
        .collect()
}
