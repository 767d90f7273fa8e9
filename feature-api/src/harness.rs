//! A harness to test a feature in plain `cargo test`, on the host's own runtime.
//!
//! `conductor feature test` builds the package and says where it and the host are. The harness starts that
//! host in a process of its own, with the feature installed: ports are simulated, datagrams are recorded
//! instead of sent, and the clock moves only when a test moves it. Nothing leaves that process.
//!
//! ```no_run
//! use conductor_feature::harness::{Failure, Harness, json};
//!
//! fn it_answers() -> Result<(), Failure> {
//!     let mut feature = Harness::new()?.grant_all().install()?;
//!     assert_eq!(feature.call("double", json!({ "number": 21 }))?, json!(42));
//!     Ok(())
//! }
//! # it_answers();
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub use serde_json::{Value, json};

/// How long the host may take to answer: longer than the longest call that it allows.
const REPLY_TIMEOUT: Duration = Duration::from_secs(75);
/// How long [`Feature::until`] asks.
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two questions of [`Feature::until`].
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Why something did not work, as text. What a test returns, so that `?` shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// The words.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The words alone: a test that fails shows this.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// What to install a feature with.
#[derive(Debug, Clone)]
pub struct Harness {
    conductor: String,
    package: String,
    config: String,
    grants: String,
    grant_all: bool,
    outputs: Vec<String>,
    http: Vec<Value>,
}

impl Harness {
    /// A harness for the package and the host that `conductor feature test` names, in
    /// `CONDUCTOR_FEATURE_PACKAGE` and `CONDUCTOR_BIN`.
    ///
    /// # Errors
    /// When either is not set.
    pub fn new() -> Result<Self, Failure> {
        let told = |name: &str| {
            std::env::var(name).map_err(|_| {
                Failure(format!(
                    "{name} is not set: run the tests with `conductor feature test`, which builds the package"
                ))
            })
        };
        Ok(Self {
            conductor: told("CONDUCTOR_BIN")?,
            package: told("CONDUCTOR_FEATURE_PACKAGE")?,
            config: String::new(),
            grants: String::new(),
            grant_all: false,
            outputs: Vec::new(),
            http: Vec::new(),
        })
    }

    /// Grants something: lines of TOML, as a person writes them under `[features.NAME.grants]`.
    /// `udp = ["127.0.0.1:9000"]`, `alert = true`.
    #[must_use]
    pub fn grant(mut self, lines: &str) -> Self {
        self.grants.push_str(lines);
        self.grants.push('\n');
        self
    }

    /// Grants everything that the descriptor asks for.
    #[must_use]
    pub fn grant_all(mut self) -> Self {
        self.grant_all = true;
        self
    }

    /// The configuration, in TOML, with the mappings that use the feature's actions. The feature itself is put
    /// in by the harness.
    #[must_use]
    pub fn config(mut self, toml: &str) -> Self {
        toml.clone_into(&mut self.config);
        self
    }

    /// Plugs a MIDI output in, under the name that the system would give it.
    #[must_use]
    pub fn output(mut self, port: &str) -> Self {
        self.outputs.push(port.to_owned());
        self
    }

    /// The response to an HTTP request to this URL. Requests to URLs without a response fail, as
    /// if no server were there; nothing ever leaves the process.
    #[must_use]
    pub fn answers(mut self, url: &str, status: u16, body: &str) -> Self {
        self.http.push(json!({ "url": url, "status": status, "body": body }));
        self
    }

    /// Starts the host and installs the feature.
    ///
    /// # Errors
    /// What the host, or the feature's own `install`, says.
    pub fn install(self) -> Result<Feature, Failure> {
        let mut child = Command::new(&self.conductor)
            .args(["feature", "harness", &self.package])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| Failure(format!("{} can't be started: {error}", self.conductor)))?;
        let (sender, answers) = mpsc::channel();
        let log = Arc::<Mutex<VecDeque<String>>>::default();
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                BufReader::new(stdout).lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
            });
        }
        if let Some(stderr) = child.stderr.take() {
            let kept = Arc::clone(&log);
            thread::spawn(move || keep_last_lines(stderr, &kept));
        }
        let stdin = child.stdin.take();
        let mut feature =
            Feature { child, stdin, answers, log, report: Value::Null, progress: Vec::new(), remarks: Vec::new() };
        let setup = json!({
            "do": "install",
            "config": self.config,
            "grants": self.grants,
            "grant_all": self.grant_all,
            "outputs": self.outputs,
            "http": self.http,
        });
        feature.report = feature.ask_host(&setup)?;
        Ok(feature)
    }
}

/// Keeps the last lines of what the host logs, for failures without a message of their own.
fn keep_last_lines(from: impl std::io::Read, kept: &Mutex<VecDeque<String>>) {
    for line in BufReader::new(from).lines().map_while(Result::ok) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= 20 {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}

/// A datagram that the feature sent. It was recorded and went nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// Where to, as `host:port`.
    pub to: String,
    /// What.
    pub bytes: Vec<u8>,
}

/// Something that the feature told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// `diagnostic`, `alert` or `notification`.
    pub sink: String,
    /// `info`, `warning` or `error`, of a diagnostic.
    pub severity: Option<String>,
    /// What.
    pub text: String,
}

/// An installed feature, in a running host. Dropping it ends the host.
#[derive(Debug)]
pub struct Feature {
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Receiver<String>,
    log: Arc<Mutex<VecDeque<String>>>,
    report: Value,
    progress: Vec<(f32, String)>,
    remarks: Vec<String>,
}

impl Feature {
    /// What the host says of the feature as it was installed: `package`, `grants`, `denied` (what it asks for
    /// and was not granted).
    pub fn report(&self) -> &Value {
        &self.report
    }

    /// Calls a tool, and returns its result. `args` is an object.
    ///
    /// # Errors
    /// Why there is no result, as the caller would read it.
    pub fn call(&mut self, tool: &str, args: Value) -> Result<Value, Failure> {
        self.call_as(tool, args, false)
    }

    /// Calls a tool of the tier `hardware-io` or `privileged`, to which a person has agreed.
    ///
    /// # Errors
    /// Why there is no result.
    pub fn call_confirmed(&mut self, tool: &str, args: Value) -> Result<Value, Failure> {
        self.call_as(tool, args, true)
    }

    fn call_as(&mut self, tool: &str, args: Value, confirmed: bool) -> Result<Value, Failure> {
        let mut answer = self.ask_host(&json!({ "do": "call", "tool": tool, "args": args, "confirmed": confirmed }))?;
        self.remarks = texts(&answer["remarks"]);
        Ok(answer["result"].take())
    }

    /// Asks a model that the configuration names under `[models]`, through the feature's provider. The answer
    /// has `text`, `calls` (objects with `name` and `args`) and `usage`.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn ask(&mut self, model: &str, text: &str) -> Result<Value, Failure> {
        self.ask_host(&json!({ "do": "ask", "model": model, "text": text }))
    }

    /// What the last call told of its progress: 0.0 to 1.0, and a few words.
    pub fn progress(&self) -> &[(f32, String)] {
        &self.progress
    }

    /// What hooks remarked about the last call that gave a result.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Has the feature prepare an action, as a mapping with these parameters would.
    ///
    /// # Errors
    /// The feature's.
    pub fn prepare(&mut self, action: &str, params: Value) -> Result<Prepared, Failure> {
        let prepared = self.ask_host(&json!({ "do": "prepare", "action": action, "params": params }))?;
        Ok(Prepared(prepared.as_u64().unwrap_or_default()))
    }

    /// Performs a prepared action for one event: a device and what comes from it, `pads note-on 36 100`.
    ///
    /// # Errors
    /// The feature's.
    pub fn perform(&mut self, action: &Prepared, event: &str) -> Result<(), Failure> {
        self.ask_host(&json!({ "do": "perform", "prepared": action.0, "event": event })).map(drop)
    }

    /// Plays a script of events through the configuration's rules, one event a line: when, from which device,
    /// what. The clock moves as the script says; no time passes. Returns when the feature has done all that
    /// the rules wanted of it.
    ///
    /// ```text
    /// 0ms    pads note-on 36 100
    /// +20ms  pads note-off 36
    /// 1.5s   tablet osc /fader 0.75
    /// ```
    ///
    /// # Errors
    /// A script that is not understood, with line and column. What the feature could not do is among
    /// [`failures`](Self::failures).
    pub fn play(&mut self, script: &str) -> Result<(), Failure> {
        self.ask_host(&json!({ "do": "play", "script": script })).map(drop)
    }

    /// Moves the clock on. What waits for that goes on beside: ask for its effect with [`until`](Self::until).
    ///
    /// # Errors
    /// When the host is gone.
    pub fn advance(&mut self, by: Duration) -> Result<(), Failure> {
        let milliseconds = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.ask_host(&json!({ "do": "advance", "milliseconds": milliseconds })).map(drop)
    }

    /// Makes another mode active.
    ///
    /// # Errors
    /// When the host is gone.
    pub fn mode(&mut self, mode: &str) -> Result<(), Failure> {
        self.ask_host(&json!({ "do": "mode", "mode": mode })).map(drop)
    }

    /// Puts another configuration in force.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn configure(&mut self, toml: &str) -> Result<(), Failure> {
        self.ask_host(&json!({ "do": "configure", "config": toml })).map(drop)
    }

    /// Plugs a MIDI input in.
    ///
    /// # Errors
    /// When the host is gone.
    pub fn plug(&mut self, port: &str) -> Result<(), Failure> {
        self.ask_host(&json!({ "do": "plug", "port": port, "plugged": true })).map(drop)
    }

    /// Pulls a MIDI input out.
    ///
    /// # Errors
    /// When the host is gone.
    pub fn unplug(&mut self, port: &str) -> Result<(), Failure> {
        self.ask_host(&json!({ "do": "plug", "port": port, "plugged": false })).map(drop)
    }

    /// The datagrams that were sent so far.
    ///
    /// # Errors
    /// When the host is gone.
    pub fn sent(&mut self) -> Result<Vec<Datagram>, Failure> {
        let datagram = |sent: &Value| Datagram { to: text(&sent["to"]), bytes: bytes(&sent["bytes"]) };
        Ok(list(&self.seen()?["sent"]).map(datagram).collect())
    }

    /// The HTTP requests that the feature made so far: objects with `method`, `url`, `headers` (pairs) and
    /// `body`. Secrets in them are made up.
    ///
    /// # Errors
    /// When the host is gone.
    pub fn asked(&mut self) -> Result<Vec<Value>, Failure> {
        Ok(list(&self.seen()?["asked"]).cloned().collect())
    }

    /// The MIDI messages that went to an output so far.
    ///
    /// # Errors
    /// When the host is gone.
    pub fn midi(&mut self, port: &str) -> Result<Vec<Vec<u8>>, Failure> {
        let seen = self.seen()?;
        Ok(list(&seen["midi"]).filter(|sent| sent["port"] == port).map(|sent| bytes(&sent["bytes"])).collect())
    }

    /// What the feature has told so far: diagnostics, alerts and notifications, in their order.
    ///
    /// # Errors
    /// When the host is gone.
    pub fn said(&mut self) -> Result<Vec<Message>, Failure> {
        let message = |said: &Value| Message {
            sink: text(&said["sink"]),
            severity: said["severity"].as_str().map(str::to_owned),
            text: text(&said["text"]),
        };
        Ok(list(&self.seen()?["said"]).map(message).collect())
    }

    /// Why actions failed so far.
    ///
    /// # Errors
    /// When the host is gone.
    pub fn failures(&mut self) -> Result<Vec<String>, Failure> {
        Ok(texts(&self.seen()?["failures"]))
    }

    /// The plans that the feature has proposed: `id`, `description`, `changes`.
    ///
    /// # Errors
    /// When the host is gone.
    pub fn plans(&mut self) -> Result<Vec<Value>, Failure> {
        Ok(list(&self.seen()?["plans"]).cloned().collect())
    }

    /// How often the feature trapped or was stopped.
    ///
    /// # Errors
    /// When the host is gone.
    pub fn traps(&mut self) -> Result<u64, Failure> {
        Ok(self.seen()?["traps"].as_u64().unwrap_or_default())
    }

    /// How a background task is: `running`, `done`, `failed`, `waiting` or `ended`.
    ///
    /// # Errors
    /// When the host is gone, or there is no such task.
    pub fn task(&mut self, name: &str) -> Result<String, Failure> {
        let seen = self.seen()?;
        let task = list(&seen["tasks"]).find(|task| task["name"] == name);
        task.map(|task| text(&task["state"])).ok_or_else(|| Failure(format!("there is no task {name:?}")))
    }

    /// Everything that came of it so far, as the host answers: `sent`, `midi`, `said`, `failures`, `plans`,
    /// `traps`, `tasks`, `mode`, `report`.
    ///
    /// # Errors
    /// When the host is gone.
    pub fn seen(&mut self) -> Result<Value, Failure> {
        self.ask_host(&json!({ "do": "seen" }))
    }

    /// Asks until `is` says yes, for ten seconds at most: for what goes on beside calls, such as tasks and
    /// hooks on changes. `what` is for the failure: "the reminder comes".
    ///
    /// # Errors
    /// When the time is over, with what was seen by then; or what `is` gives.
    pub fn until(&mut self, what: &str, mut is: impl FnMut(&mut Self) -> Result<bool, Failure>) -> Result<(), Failure> {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            if is(self)? {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let seen = self.seen()?;
                let seconds = WAIT_TIMEOUT.as_secs();
                return Err(Failure(format!(
                    "not within {seconds} s: {what}\nseen by then: {seen:#}{}",
                    self.logged()
                )));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Asks the host.
    fn ask_host(&mut self, request: &Value) -> Result<Value, Failure> {
        let line = format!("{request}\n");
        if let Some(stdin) = &mut self.stdin {
            // Whether it is gone shows when its answer is read.
            let _ = stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush());
        }
        let answer = match self.answers.recv_timeout(REPLY_TIMEOUT) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => {
                let _ = self.child.kill();
                let seconds = REPLY_TIMEOUT.as_secs();
                return Err(Failure(format!("no answer within {seconds} s to {request}{}", self.logged())));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let ended = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
                return Err(Failure(format!("the host has ended ({ended}){}", self.logged())));
            }
        };
        let mut answer: Value = serde_json::from_str(&answer)
            .map_err(|error| Failure(format!("the host's answer is not understood ({error}): {answer}")))?;
        if let Some(progress) = answer["progress"].as_array() {
            let step = |step: &Value| (step[0].as_f64().unwrap_or_default() as f32, text(&step[1]));
            self.progress = progress.iter().map(step).collect();
        }
        match answer["error"].as_str() {
            Some(error) => Err(Failure(error.to_owned())),
            None => Ok(answer["ok"].take()),
        }
    }

    /// The last of what the host logged, for a failure's text.
    fn logged(&self) -> String {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.is_empty() {
            return String::new();
        }
        format!("\nthe host's log ends with:\n{}", log.iter().map(String::as_str).collect::<Vec<_>>().join("\n"))
    }
}

/// An action that was prepared. See [`Feature::prepare`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared(u64);

impl Drop for Feature {
    fn drop(&mut self) {
        // The host ends when its standard input is closed, and removes its folder. One that hangs is killed.
        self.stdin = None;
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(POLL_INTERVAL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    list(value).map(text).collect()
}

fn bytes(value: &Value) -> Vec<u8> {
    list(value).filter_map(|byte| u8::try_from(byte.as_u64()?).ok()).collect()
}
