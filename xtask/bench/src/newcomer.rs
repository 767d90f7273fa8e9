//! What a new user waits for: from an empty home to the first answer of a model and to the first mapping that is applied,
//! each command by itself.
//!
//! The home is a new one in every round, so that features are compiled. The model is a server on this machine that answers
//! at once, and thinking and typing take no time: what is left is the program's.

use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use conductor_api::client::Client;
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::measure::median;
use crate::models::{event, read_request};
use crate::process;
use crate::report::{Limit, Section, Unit};
use crate::scratch::Folder;

const ROUNDS: usize = 3;
/// What a new user does, in this order.
const STEPS: [&str; 6] = [
    "conductor init",
    "conductor run, until it is ready",
    "conductor models add",
    "conductor chat \"hello\", to the end of the answer",
    "conductor chat \"map pad 36 to copy\", to its plan",
    "conductor plan apply",
];
/// So many of them lead to the first answer.
const ANSWERED: usize = 4;
/// How the server calls its model.
const MODEL: &str = "small";
/// What is to be mapped.
const WISH: &str = "map pad 36 to copy";

/// Measures the row.
pub fn measure(arguments: &Arguments, section: &mut Section<'_>) -> Result<()> {
    let port = serve()?;
    let mut samples: [Vec<f64>; STEPS.len()] = Default::default();
    let (mut answered, mut mapped) = (Vec::<f64>::new(), Vec::<f64>::new());
    for _ in 0..ROUNDS {
        let took = first_steps(arguments.conductor()?, arguments.features()?, port)?;
        samples.iter_mut().zip(took).for_each(|(samples, took)| samples.push(took));
        answered.push(took[..ANSWERED].iter().sum());
        mapped.push(took.iter().sum());
    }
    for (step, samples) in STEPS.iter().zip(&samples) {
        section.figure(*step, median(samples) * 1e3, Unit::Milliseconds);
    }
    section.figure("from an empty home to the first mapping", median(&mapped), Unit::Seconds);
    let what = "from an empty home to the first answer";
    section.target(what, median(&answered), Unit::Seconds, Limit::AtMost(120.0));
    Ok(())
}

/// Seconds of each step in a home that is new.
fn first_steps(program: &Path, features: &Path, port: u16) -> Result<[f64; STEPS.len()]> {
    let home = Folder::new()?;
    let command = |arguments: &[&str]| -> Result<(String, f64)> {
        let mut command = Command::new(program);
        command.arg("--home").arg(home.path()).args(arguments).stdin(Stdio::null());
        command.env("CONDUCTOR_FEATURES", features).env_remove("CONDUCTOR_LOG");
        let start = Instant::now();
        let output = command.output().with_context(|| format!("{} can't be started", program.display()))?;
        let took = start.elapsed().as_secs_f64();
        let wrong = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "conductor {} failed: {wrong}", arguments.join(" "));
        Ok((String::from_utf8(output.stdout)?, took))
    };
    let (_, init) = command(&["init"])?;
    let (_process, run) = process::in_home(program, features, home.path())?;
    let url = format!("http://127.0.0.1:{port}/v1");
    let (_, add) = command(&["models", "add", "openai-compatible", MODEL, "--name", "local", "--url", &url, "--yes"])?;
    let (said, hello) = command(&["chat", "hello"])?;
    ensure!(said.trim() == "Hello there.", "the first answer was {said:?}");
    let (_, wish) = command(&["chat", WISH])?;
    let plans = Client::new(home.path()).plans()?;
    let plan = plans.first().context("no plan waits")?;
    let (_, apply) = command(&["plan", "apply", &plan.id, "--yes"])?;
    let config = fs::read_to_string(home.path().join("config.toml"))?;
    ensure!(config.contains("note = 36"), "the mapping is not in force: {config}");
    Ok([init, run.as_secs_f64(), add, hello, wish, apply])
}

/// Starts a server of Chat Completions, and returns its port.
fn serve() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for peer in listener.incoming().flatten() {
            // Who has hung up does not read the rest.
            thread::spawn(move || drop(answer(peer)));
        }
    });
    Ok(port)
}

fn answer(mut peer: TcpStream) -> Result<()> {
    peer.set_nodelay(true)?;
    let question = read_request(&peer)?;
    let head = |kind: &str| format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
    // Which models there are is asked without a body.
    if question.is_empty() {
        let models = json!({ "object": "list", "data": [{ "id": MODEL, "object": "model" }] });
        peer.write_all((head("application/json") + &models.to_string()).as_bytes())?;
        return Ok(());
    }
    let (delta, why) = said_to(&serde_json::from_slice(&question)?);
    let said = json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] });
    let stop = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": why }] });
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 900, "completion_tokens": 9 } });
    let text = [&said, &stop, &usage].map(event).concat();
    peer.write_all(format!("{}{text}data: [DONE]\n\n", head("text/event-stream")).as_bytes())?;
    Ok(())
}

/// What the model says to a question, and why it ends.
fn said_to(question: &Value) -> (Value, &'static str) {
    let last = question["messages"].as_array().and_then(|messages| messages.last()).unwrap_or(&Value::Null);
    let is_wish = last["content"].as_str().is_some_and(|said| said.ends_with(WISH));
    if last["role"] == "tool" {
        return (json!({ "content": "Pad 36 will press Ctrl+C." }), "stop");
    }
    if last["role"] == "user" && is_wish {
        let mapping = json!({
            "trigger": { "type": "Note", "note": 36 },
            "action": { "type": "Keystroke", "keys": ["c"], "modifiers": ["ctrl"] },
        });
        let function = json!({ "name": "conductor_create_mapping", "arguments": mapping.to_string() });
        let call = json!({ "index": 0, "id": "call_0", "type": "function", "function": function });
        return (json!({ "tool_calls": [call] }), "tool_calls");
    }
    (json!({ "content": "Hello there." }), "stop")
}
