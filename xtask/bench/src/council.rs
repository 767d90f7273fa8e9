//! What a deliberation of three stages takes beyond the time that its models take.
//!
//! The models are one server on this machine that answers each request after the same time, so that the time of a stage whose
//! members are asked side by side is that of one answer.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use conductor_api::client::Client;
use conductor_host::control::gate::ToolRequest;
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::measure::median;
use crate::models::{compatible, event, read_request};
use crate::process;
use crate::report::{Limit, Section, Unit};
use crate::scratch::Folder;

/// Models of the panel, and files that they review.
const MODELS: usize = 5;
const FILES: usize = 20;
/// How long each answer takes.
const ANSWER: Duration = Duration::from_millis(400);
/// Reviews, rankings, the verdict.
const STAGES: u32 = 3;
/// Deliberations that count; there is one before them.
const ROUNDS: usize = 7;

/// Measures the row.
pub fn measure(arguments: &Arguments, section: &mut Section<'_>) -> Result<()> {
    let (home, work, server) = (Folder::new()?, Folder::new()?, Server::start()?);
    repository(work.path())?;
    let config = configuration(server.port, work.path());
    let (_process, _) = process::conductor(arguments.conductor()?, arguments.features()?, home.path(), &config)?;
    let api = Client::new(home.path());
    let models = f64::from(STAGES) * ANSWER.as_secs_f64() * 1e3;
    let mut more = Vec::new();
    for round in 0..=ROUNDS {
        let start = Instant::now();
        let verdict = verify(&api)?;
        let took = start.elapsed().as_secs_f64() * 1e3;
        let asked = server.asked();
        ensure!(verdict["verdict"] == "pass", "it did not pass: {verdict:#}");
        let files = verdict["expanded_paths"].as_array().map_or(0, Vec::len);
        ensure!(verdict["left_out"] == json!([]), "models were left out: {verdict:#}");
        ensure!(files == FILES, "{files} files were reviewed: {verdict:#}");
        let stages: BTreeSet<_> = asked.iter().copied().collect();
        ensure!(asked.len() == 2 * MODELS + 1 && stages.len() == STAGES as usize, "the models were asked {asked:?}");
        if round > 0 {
            more.push(took - models);
        }
    }
    let what = format!("three stages of {MODELS} models over {FILES} files");
    section.beside(what.as_str(), models + median(&more), Unit::Milliseconds, "the models' own time", models);
    let longest = more.iter().copied().fold(f64::MIN, f64::max);
    section.figure(format!("{what}, more than the models' own time, longest of {ROUNDS}"), longest, Unit::Milliseconds);
    let what = format!("{what}, more than the models' own time");
    section.target(what, median(&more), Unit::Milliseconds, Limit::AtMost(300.0));
    Ok(())
}

fn verify(api: &Client) -> Result<Value> {
    let Value::Object(args) = json!({ "snapshot_id": "HEAD", "target_paths": ["src"] }) else {
        unreachable!("it is an object")
    };
    let request = ToolRequest { args, confirmed: false, confirmation: None };
    Ok(api.call_tool("council_verify", &request)?.result)
}

/// Makes a repository with one commit of so many files.
fn repository(folder: &Path) -> Result<()> {
    fs::create_dir(folder.join("src"))?;
    for number in 0..FILES {
        let mut text = String::new();
        for line in 0..4 {
            let _ = writeln!(text, "pub fn gain_{number}_{line}(x: f32) -> f32 {{ x * 0.{line}1 }}");
        }
        fs::write(folder.join(format!("src/gain_{number}.rs")), text)?;
    }
    let git = |arguments: &[&str]| -> Result<()> {
        let nothing = if cfg!(windows) { "NUL" } else { "/dev/null" };
        let mut command = Command::new("git");
        command.env("GIT_CONFIG_GLOBAL", nothing).env("GIT_CONFIG_SYSTEM", nothing).arg("-C").arg(folder);
        command.args(["-c", "user.name=bench", "-c", "user.email=bench@localhost"]).args(arguments);
        let status = command.status().context("git can't be started")?;
        ensure!(status.success(), "git {} failed", arguments.join(" "));
        Ok(())
    };
    git(&["init", "--quiet"])?;
    git(&["add", "--all"])?;
    git(&["commit", "--quiet", "--message=gains"])
}

fn configuration(port: u16, repository: &Path) -> String {
    let mut text = String::from("[tools.per_minute]\nmodel_requests = 1000000\nread_only = 1000000\n\n");
    let names: Vec<String> = (0..MODELS).map(|number| format!("m{number}")).collect();
    for name in &names {
        let _ = writeln!(
            text,
            "[models.{name}]\nprovider = \"openai-compatible\"\nmodel = \"{name}\"\nurl = \"http://127.0.0.1:{port}/v1\"\n"
        );
    }
    let path = json!(repository);
    let _ = writeln!(
        text,
        "[features.openai-compatible.grants]\nhttp = [\"127.0.0.1:{port}\"]\n\n\
         [features.council.grants]\nmodels = {}\nmodel_tokens = 10000000\n\
         git = [{{ purpose = \"work\", path = {path} }}]\n\
         files = [{{ purpose = \"transcripts\", path = {path}, write = true }}]",
        json!(names)
    );
    text
}

/// What a model is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Review,
    Ranking,
    Verdict,
}

impl Stage {
    fn of(request: &str) -> Self {
        match request {
            review if review.contains("one of several independent reviewers") => Self::Review,
            ranking if ranking.contains("Rank them by") => Self::Ranking,
            _ => Self::Verdict,
        }
    }

    fn answer(self) -> Value {
        let scores = json!({ "accuracy": 8, "completeness": 8, "clarity": 8, "conciseness": 8, "relevance": 8 });
        let why = "I looked at each of them.";
        match self {
            Self::Review => {
                json!({ "verdict": "pass", "confidence": 0.9, "scores": scores, "issues": [], "rationale": why })
            }
            Self::Ranking => json!({ "ranking": &["A", "B", "C", "D", "E"][..MODELS] }),
            Self::Verdict => json!({ "verdict": "pass", "confidence": 0.9, "rationale": why, "dissent": "" }),
        }
    }
}

/// A server of Chat Completions that all models are behind.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<Stage>>>,
}

impl Server {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&asked);
        thread::spawn(move || {
            for peer in listener.incoming().flatten() {
                let notes = Arc::clone(&notes);
                thread::spawn(move || drop(answer(peer, &notes)));
            }
        });
        Ok(Self { port, asked })
    }

    /// What the models were asked for since the last call.
    fn asked(&self) -> Vec<Stage> {
        self.asked.lock().map(|mut asked| std::mem::take(&mut *asked)).unwrap_or_default()
    }
}

fn answer(mut peer: TcpStream, notes: &Mutex<Vec<Stage>>) -> Result<()> {
    peer.set_nodelay(true)?;
    let request = read_request(&peer)?;
    let due = Instant::now() + ANSWER;
    let stage = Stage::of(&String::from_utf8_lossy(&request));
    if let Ok(mut notes) = notes.lock() {
        notes.push(stage);
    }
    let stop = json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] });
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 900, "completion_tokens": 90 } });
    let text = [&compatible(&stage.answer().to_string()), &stop, &usage].map(event).concat();
    thread::sleep(due.saturating_duration_since(Instant::now()));
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    peer.write_all(format!("{head}{text}data: [DONE]\n\n").as_bytes())?;
    Ok(())
}
