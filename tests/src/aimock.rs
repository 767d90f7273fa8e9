//! Models of others: aimock in the place of the vendors' APIs, and LiteLLM's proxy in front of it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::folder::Folder;
use crate::osc::free_port;
use crate::process::Process;
use crate::wait;

/// The key that the proxy asks for; aimock takes any.
pub const KEY: &str = "sk-of-the-proxy";

/// A running aimock: one server that answers as OpenAI's, Anthropic's, Gemini's and OpenRouter's APIs do.
#[derive(Debug)]
pub struct Aimock {
    // It ends before its folder goes.
    _process: Process,
    _folder: Folder,
    /// Where it listens, on loopback.
    pub port: u16,
}

impl Aimock {
    /// Starts the program, a script for Node, with these fixtures; the first that matches a question answers it.
    pub fn start(script: &Path, fixtures: &[Value]) -> Self {
        let folder = Folder::new("aimock");
        let write = |name: &str, content: Value| std::fs::write(folder.path().join(name), content.to_string()).unwrap();
        write("fixtures.json", json!({ "fixtures": fixtures }));
        write("aimock.json", json!({ "llm": { "fixtures": "./fixtures.json" } }));
        let mut command = Command::new("node");
        command.arg(script).args(["--config", "aimock.json", "--port", "0"]).current_dir(folder.path());
        let process = Process::start(&mut command);
        let line = process.out.line("listening on");
        let port = line.rsplit(':').next().and_then(|port| port.trim().parse().ok());
        Self { _process: process, _folder: folder, port: port.unwrap_or_else(|| panic!("no port in {line:?}")) }
    }

    /// The questions that it was asked so far, the first first: `path`, `body` as its adapters read it, `response`.
    pub fn journal(&self) -> Vec<Value> {
        let answer = get(self.port, "/__aimock/journal");
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error} in {answer:?}"))
    }
}

/// A running proxy of LiteLLM.
#[derive(Debug)]
pub struct LiteLlm {
    _process: Process,
    _folder: Folder,
    /// Where it listens, on loopback.
    pub port: u16,
}

impl LiteLlm {
    /// Starts the program with a model `NAME` for each `(NAME, VENDOR, BASE)`: the model `NAME` of LiteLLM's vendor `VENDOR`,
    /// whose API is at `BASE`.
    pub fn start(program: &Path, models: &[(String, &str, String)]) -> Self {
        let folder = Folder::new("litellm");
        let models: Vec<Value> = models
            .iter()
            .map(|(name, vendor, base)| {
                let params = json!({ "model": format!("{vendor}/{name}"), "api_base": base, "api_key": "none" });
                json!({ "model_name": name, "litellm_params": params })
            })
            .collect();
        // What is JSON is YAML.
        let config = json!({
            "model_list": models,
            "general_settings": { "master_key": KEY },
            "router_settings": { "num_retries": 0, "disable_cooldowns": true },
        });
        std::fs::write(folder.path().join("config.yaml"), config.to_string()).unwrap();
        let port = free_port();
        let mut command = Command::new(program);
        command.args(["--config", "config.yaml", "--host", "127.0.0.1", "--telemetry", "False", "--port"]);
        command.arg(port.to_string()).current_dir(folder.path());
        // It would ask the internet what models cost.
        command.env("LITELLM_LOCAL_MODEL_COST_MAP", "True").env("HOME", folder.path());
        let process = Process::start(&mut command);
        let is_alive =
            || TcpStream::connect(("127.0.0.1", port)).is_ok() && get(port, "/health/liveliness").contains(" 200 ");
        wait::until(|| is_alive().then_some(()), || format!("LiteLLM does not listen: {}", process.err.text()));
        Self { _process: process, _folder: folder, port }
    }
}

/// What a server on this machine answers to a `GET`, with its head.
fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
