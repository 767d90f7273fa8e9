//! A stage for tests of conversations: a home, a host with its features, and a scripted model behind a real HTTP server
//! on this machine.
//!
//! The guests are built by `cargo xtask features`.

#![allow(dead_code, reason = "each program of tests uses its part")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use conductor::Conductor;
use conductor::api::client::Client;
use conductor::api::types::{ConversationEvents, Say};
use conductor_chat::record::ChatEvent;
use conductor_config as config;
use conductor_host::host::Host;
use conductor_ports::Direction;
use conductor_ports::simulated::SimulatedPorts;
use conductor_sandbox::Compiler;
use serde_json::{Value, json};

/// How long a test waits for anything.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The features that are bundled here.
pub const FEATURES: [&str; 4] = ["openai-compatible", "mapping-tools", "binding-tools", "hardware-tools"];

/// What the model answers.
pub enum Reply {
    Text(&'static str),
    /// A text that took so many tokens: read, written.
    Taking(&'static str, u64, u64),
    /// Calls of tools with their arguments, several in one answer.
    Calls(Vec<(&'static str, Value)>),
    /// A whole answer, as to the question which models there are.
    Json(Value),
    /// A refusal.
    Status(u16, &'static str),
    /// The head of an answer with so many headers, each with so many bytes, and nothing after it.
    Head(usize, usize),
    /// A beginning, and then nothing until the other side hangs up.
    Hang(&'static str),
    /// This again and again, until the other side hangs up.
    Endless(&'static str),
}

/// A server that answers as the script says, which gets the number of the request, from 0, and its body.
pub struct Model {
    pub port: u16,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    pub fn new(script: impl Fn(usize, &Value) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, script) = (Arc::clone(&requests), Arc::new(script));
        // It ends with the process.
        std::thread::spawn(move || {
            for peer in listener.incoming() {
                let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
                std::thread::spawn(move || answer(peer.unwrap(), &seen, &*script));
            }
        });
        Self { port, requests }
    }

    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }
}

const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

pub fn answer(mut peer: TcpStream, seen: &Mutex<Vec<Value>>, script: &dyn Fn(usize, &Value) -> Reply) {
    let Some(request) = request(&mut peer) else { return };
    let number = {
        let mut seen = seen.lock().unwrap();
        seen.push(request.clone());
        seen.len() - 1
    };
    let data = |value: Value| format!("data: {value}\n\n");
    let delta = |delta: Value| data(json!({ "choices": [{ "delta": delta }] }));
    let end_taking = |why: &str, read: u64, written: u64| {
        let usage = json!({ "choices": [], "usage": { "prompt_tokens": read, "completion_tokens": written } });
        let stop = json!({ "choices": [{ "delta": {}, "finish_reason": why }] });
        format!("{}{}data: [DONE]\n\n", data(stop), data(usage))
    };
    let end = |why: &str| end_taking(why, 100, 20);
    let (body, hangs) = match script(number, &request) {
        Reply::Text(text) => (delta(json!({ "content": text })) + &end("stop"), false),
        Reply::Taking(text, read, written) => {
            (delta(json!({ "content": text })) + &end_taking("stop", read, written), false)
        }
        Reply::Calls(calls) => {
            let call = |(index, (name, args)): (usize, (&str, Value))| {
                let function = json!({ "name": name, "arguments": args.to_string() });
                let id = format!("call-{number}-{index}");
                delta(json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": function }] }))
            };
            (calls.into_iter().enumerate().map(call).collect::<String>() + &end("tool_calls"), false)
        }
        Reply::Json(body) => {
            let body = body.to_string();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = peer.write_all((head + &body).as_bytes());
            return;
        }
        Reply::Status(status, why) => {
            let body = json!({ "error": { "message": why } }).to_string();
            let head = format!("HTTP/1.1 {status} No\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = peer.write_all((head + &body).as_bytes());
            return;
        }
        Reply::Head(count, size) => {
            let headers: String = (0..count).map(|number| format!("x-{number}: {}\r\n", "y".repeat(size))).collect();
            let _ = peer.write_all(format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{headers}\r\n").as_bytes());
            return;
        }
        Reply::Hang(text) => (delta(json!({ "content": text })), true),
        Reply::Endless(text) => {
            let piece = delta(json!({ "content": text }));
            let mut sent = peer.write_all(STREAM_HEAD.as_bytes());
            while sent.is_ok() {
                sent = peer.write_all(piece.as_bytes());
            }
            return;
        }
    };
    // Who has hung up does not read it.
    let _ = peer.write_all((STREAM_HEAD.to_owned() + &body).as_bytes());
    if hangs {
        while peer.read(&mut [0; 64]).is_ok_and(|size| size > 0) {}
    }
}

/// The body of a request, of one without a body its `path` and its `key`; `None` if the other side hangs up before it is whole.
pub fn request(peer: &mut TcpStream) -> Option<Value> {
    let (mut came, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let size = peer.read(&mut piece).ok().filter(|size| *size > 0)?;
        came.extend_from_slice(&piece[..size]);
        let Some(end) = came.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&came[..end]).to_ascii_lowercase();
        if head.starts_with("get ") {
            let whole = String::from_utf8_lossy(&came[..end]).into_owned();
            let key = whole
                .lines()
                .find_map(|line| Some(line.split_once(": ")?).filter(|(name, _)| *name == "authorization"));
            let path = whole.split(' ').nth(1).unwrap_or_default();
            return Some(json!({ "path": path, "key": key.map(|(_, key)| key) }));
        }
        let length: usize = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())?;
        if came.len() >= end + 4 + length {
            return serde_json::from_slice(&came[end + 4..]).ok();
        }
    }
}

/// A folder for all homes of this run.
pub fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("conductor-chat-{}", std::process::id()))
}

/// A folder with the bundled features, and a home in which they were compiled, once for all tests.
pub fn compiled() -> &'static (PathBuf, PathBuf) {
    static COMPILED: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    COMPILED.get_or_init(|| compile("features", &FEATURES, |_, component| component))
}

/// The same with these features, as `change` has them, in a folder of this name.
pub fn compile(name: &str, features: &[&str], change: impl Fn(&str, Vec<u8>) -> Vec<u8>) -> (PathBuf, PathBuf) {
    let built = std::env::var_os("CONDUCTOR_FEATURES")
        .map_or_else(|| std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("features"), PathBuf::from);
    let (folder, home) = (folder().join(name), folder().join(format!("{name}-compiled")));
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(&home).unwrap();
    for feature in features {
        let file = format!("{feature}.wasm");
        fs::write(folder.join(&file), change(feature, fs::read(built.join(&file)).unwrap())).unwrap();
    }
    let loaded = config::parse("", "config.toml").unwrap();
    let compiler = Compiler::program(env!("CARGO_BIN_EXE_conductor"));
    Host::builder().home(&home).features(&folder).compiler(compiler).start(&loaded).unwrap().stop();
    (folder, home)
}

/// A home with a configuration in which `local` is the model.
pub struct Home(pub PathBuf);

impl Home {
    pub fn new(model: &Model, more: &str) -> Self {
        Self::with(&Self::text(model, more))
    }

    /// A configuration in which `local` is the model.
    pub fn text(model: &Model, more: &str) -> String {
        let port = model.port;
        format!(
            "{more}\n[[modes]]\nname = 'Play'\n\n[[bindings]]\nalias = 'synth'\n\
             matchers = [{{ type = 'exact_name', value = 'Synth' }}]\n\n\
             [models.local]\nprovider = 'openai-compatible'\nmodel = 'm'\nurl = 'http://127.0.0.1:{port}/v1'\n\n\
             [features.openai-compatible.grants]\nhttp = ['127.0.0.1:{port}']\n\n\
             [features.hardware-tools.grants]\nmidi_out = ['synth']\n"
        )
    }

    /// One with this configuration.
    pub fn with(text: &str) -> Self {
        Self::beside(&compiled().1, text)
    }

    /// The same with what was compiled in another home.
    pub fn beside(compiled: &Path, text: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let home = folder().join(format!("home-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        let code = "cache/code";
        fs::create_dir_all(home.join(code)).unwrap();
        fs::copy(compiled.join("host.key"), home.join("host.key")).unwrap();
        for file in fs::read_dir(compiled.join(code)).unwrap() {
            let file = file.unwrap();
            fs::hard_link(file.path(), home.join(code).join(file.file_name())).unwrap();
        }
        fs::write(home.join("config.toml"), text).unwrap();
        Self(home)
    }

    pub fn config(&self) -> String {
        fs::read_to_string(self.0.join("config.toml")).unwrap()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A host that runs, and a person who asks it.
pub struct Stage {
    pub conductor: Option<Conductor>,
    pub client: Client,
    pub home: Home,
}

impl Stage {
    pub fn new(model: &Model, more: &str) -> Self {
        Self::with_ports(model, more, &["Pads"])
    }

    pub fn with_ports(model: &Model, more: &str, inputs: &[&str]) -> Self {
        let home = Home::new(model, more);
        let ports = SimulatedPorts::new();
        inputs.iter().for_each(|name| ports.plug(name, Direction::Input));
        ports.plug("Synth", Direction::Output);
        Self::start(home, ports)
    }

    pub fn start(home: Home, ports: SimulatedPorts) -> Self {
        Self::with_features(&compiled().0, home, ports)
    }

    /// The same with the features of another folder.
    pub fn with_features(features: &Path, home: Home, ports: SimulatedPorts) -> Self {
        let compiler = Compiler::program(env!("CARGO_BIN_EXE_conductor"));
        let builder = Conductor::builder().home(&home.0).features(features).ports(ports.backend());
        let conductor = builder.host(|host| host.compiler(compiler)).start().unwrap();
        let client = Client::new(&home.0);
        Self { conductor: Some(conductor), client, home }
    }

    pub fn begin(&self) -> u64 {
        self.client.begin_conversation(None).unwrap().id
    }

    /// Says something, and returns what happened; `each` sees it as it comes.
    pub fn turn_with(&self, id: u64, text: &str, each: impl FnMut(&ChatEvent)) -> Vec<ChatEvent> {
        let after = self.client.say(id, &Say { text: text.into(), model: None }).unwrap().after;
        turn(&self.client, id, after, each)
    }

    pub fn turn(&self, id: u64, text: &str) -> Vec<ChatEvent> {
        self.turn_with(id, text, |_| {})
    }

    /// Runs `conductor` in this home.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_conductor"));
        command.arg("--home").arg(&self.home.0).args(arguments).env("CONDUCTOR_FEATURES", &compiled().0);
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Posts JSON to the home's socket; the status, and the body that is answered.
    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.ask("POST", path, &body.to_string())
    }

    /// The same of any method and body.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let mut socket = UnixStream::connect(self.home.0.join("conductor.sock")).unwrap();
        let length = body.len();
        write!(
            socket,
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut response = String::new();
        socket.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        drop(self.conductor.take());
    }
}

/// What happens in a conversation until its turn ends.
pub fn turn(client: &Client, id: u64, after: u64, mut each: impl FnMut(&ChatEvent)) -> Vec<ChatEvent> {
    let mut events = Vec::new();
    client
        .conversation_events(id, &ConversationEvents { after, follow: true }, |one| {
            each(&one.event);
            events.push(one.event);
            !matches!(events.last(), Some(ChatEvent::TurnEnded { .. }))
        })
        .unwrap();
    events
}

/// What models have said in these events.
pub fn said(events: &[ChatEvent]) -> String {
    let text = |event: &ChatEvent| match event {
        ChatEvent::Text { text } => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// Waits for something to hold.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}
