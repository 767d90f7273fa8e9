//! PERF-6: calling a tool over MCP, beside a bare server of the same library that has the tool in itself.
//!
//! Both are asked over a Unix socket, one JSON message a line. What the host adds is the gate with its limits, the
//! record, the way into the sandbox and back. An agent that waits for each answer is measured on the processor of the
//! server, and on another.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::components;
use crate::measure::{median, quantile};
use crate::process::{self, Process};
use crate::processors;
use crate::report::{Limit, Section, Unit};
use crate::scratch::Folder;

/// Turns that contenders take.
const ROUNDS: usize = 20;
/// Calls in a turn, one after the other.
const CALLS: usize = 250;
/// Agents that call at once, where calls a second are counted.
const AGENTS: usize = 8;
/// For how long they do, in each of so many turns.
const COUNTED: (Duration, usize) = (Duration::from_secs(1), 5);
/// How long a server has until it can be reached.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// What the host is measured beside.
const PEER: &str = "a bare rmcp server";
/// The tool, which answers at once.
const TOOL: &str = "nothing";

/// Measures the row.
pub fn measure(arguments: &Arguments, section: &mut Section<'_>) -> Result<()> {
    let home = Folder::new()?;
    let feature = arguments.features()?.join("tests/bench-tools.wasm");
    let configuration = format!(
        "[tools.per_minute]\nread_only = 10000000\n{}",
        components::installed("bench-tools", &feature, "store = 65536, observe_events = ['*']")?
    );
    let bare = home.path().join("bare.sock");
    let (host, _) = process::conductor(arguments.conductor()?, arguments.features()?, home.path(), &configuration)?;
    let peer = Process::start(Command::new(std::env::current_exe()?).arg("tool-server").arg(&bare))?;
    let servers = [home.path().join("mcp.sock"), bare];

    let mut agents = [Agent::connect(&servers[0])?, Agent::connect(&servers[1])?];
    let all = processors::allowed()?;
    let mut worst: f64 = 0.0;
    for (place, of_servers) in [("on its processor", all.first()), ("on another", all.get(1))] {
        let (Some(of_agent), Some(of_servers)) = (all.first(), of_servers) else { continue };
        processors::keep(host.id(), &[*of_servers])?;
        processors::keep(peer.id(), &[*of_servers])?;
        // On a thread of its own: what is measured after this row may run anywhere.
        let asking = std::thread::scope(|scope| {
            let asking = scope.spawn(|| processors::stay(&[*of_agent]).and_then(|()| answer_times(&mut agents)));
            asking.join()
        });
        let times = asking.map_err(|_| anyhow::anyhow!("the asking thread failed"))??;
        for (share, name) in [(0.5, "p50"), (0.99, "p99")] {
            let [ours, theirs] = times.each_ref().map(|times| quantile(times, share));
            let what = format!("a call through a guest, by an agent {place}, {name}");
            section.beside(what, ours, Unit::Microseconds, PEER, theirs);
        }
        let [guests, bare] = times.each_ref().map(|times| median(times));
        worst = worst.max(guests / bare);
    }
    processors::keep(host.id(), &all)?;
    processors::keep(peer.id(), &all)?;
    let mut counts = [Vec::new(), Vec::new()];
    for _ in 0..COUNTED.1 {
        for (server, counts) in servers.iter().zip(&mut counts) {
            counts.push(calls_a_second(server)?);
        }
    }
    let [ours, theirs] = counts.each_ref().map(|counts| median(counts));
    section.beside(format!("calls a second of {AGENTS} agents"), ours, Unit::Count, PEER, theirs);
    section.target("a call through a guest, p50, of the bare server's", worst, Unit::Times, Limit::AtMost(3.0));
    section.target("calls a second, of the bare server's", ours / theirs, Unit::Times, Limit::AtLeast(0.5));
    Ok(())
}

/// How long each of the agents waited for answers, in turns, in microseconds.
fn answer_times(agents: &mut [Agent; 2]) -> Result<[Vec<f64>; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        for (agent, times) in agents.iter_mut().zip(&mut times) {
            for _ in 0..CALLS {
                let start = Instant::now();
                agent.call()?;
                times.push(start.elapsed().as_secs_f64() * 1e6);
            }
            // The first turn is the warm-up.
            if round == 0 {
                times.clear();
            }
        }
    }
    Ok(times)
}

/// What this server answers in a second, to several who ask at once.
fn calls_a_second(server: &Path) -> Result<f64> {
    let mut agents = (0..AGENTS).map(|_| Agent::connect(server)).collect::<Result<Vec<_>>>()?;
    let done = AtomicBool::new(false);
    let start = Instant::now();
    let called = std::thread::scope(|scope| {
        let threads: Vec<_> = agents
            .iter_mut()
            .map(|agent| {
                scope.spawn(|| -> Result<u64> {
                    let mut calls = 0;
                    while !done.load(Ordering::Relaxed) {
                        agent.call()?;
                        calls += 1;
                    }
                    Ok(calls)
                })
            })
            .collect();
        std::thread::sleep(COUNTED.0);
        done.store(true, Ordering::Relaxed);
        let counts = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Ok(0)));
        counts.sum::<Result<u64>>()
    })?;
    ensure!(called > 0, "nothing was called");
    Ok(called as f64 / start.elapsed().as_secs_f64())
}

/// An agent that waits for each answer.
pub struct Agent {
    server: BufReader<UnixStream>,
    asked: u64,
}

impl Agent {
    /// Connects to a server at this socket, which may be about to start.
    pub fn connect(socket: &Path) -> Result<Self> {
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(error) if Instant::now() >= deadline => {
                    return Err(error).with_context(|| format!("{} can't be reached", socket.display()));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        stream.set_read_timeout(Some(CONNECT_TIMEOUT))?;
        let mut agent = Self { server: BufReader::new(stream), asked: 0 };
        let client = json!({ "name": "bench", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        agent.ask("initialize", &hello)?;
        agent.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(agent)
    }

    fn say(&mut self, message: &Value) -> Result<()> {
        Ok(self.server.get_mut().write_all(format!("{message}\n").as_bytes())?)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.asked += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }))?;
        let mut line = String::new();
        loop {
            line.clear();
            ensure!(self.server.read_line(&mut line)? > 0, "the server has hung up");
            let mut answer: Value = serde_json::from_str(&line)?;
            if answer["id"] == self.asked {
                return Ok(answer["result"].take());
            }
        }
    }

    /// Calls the tool that answers at once.
    pub fn call(&mut self) -> Result<()> {
        let result = self.ask("tools/call", &json!({ "name": TOOL, "arguments": {} }))?;
        let good = result["content"].is_array() && result["isError"] != true;
        ensure!(good, "the tool did not answer: {result}");
        Ok(())
    }
}

/// The least that a server can be.
struct Bare;

impl ServerHandler for Bare {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text("null")]).into())
    }
}

/// Serves the tool on a socket until the process ends.
pub fn serve(socket: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::UnixListener::bind(socket)?;
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(async move {
                if let Ok(running) = Bare.serve(stream.into_split()).await {
                    let _ = running.waiting().await;
                }
            });
        }
    })
}
