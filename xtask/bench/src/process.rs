//! Processes that are measured: started, asked what they use, ended.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use crossbeam_channel::{Receiver, RecvTimeoutError};

/// No start takes longer than this.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A process that ends with this.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

/// Resident memory, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Resident {
    /// All of it.
    pub total: f64,
    /// The part that is the process's own, not a file's.
    pub anonymous: f64,
}

impl Process {
    /// Starts a program; its output is discarded.
    pub fn start(command: &mut Command) -> Result<Self> {
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = spawned.with_context(|| format!("{} can't be started", command.get_program().display()))?;
        Ok(Self { child })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The processor time that its threads have used. Threads that have ended are not in it.
    pub fn processor_time(&self) -> Result<Duration> {
        let mut nanos = 0;
        let tasks = format!("/proc/{}/task", self.id());
        for task in fs::read_dir(&tasks).with_context(|| format!("cannot read {tasks}"))? {
            let file = task?.path().join("schedstat");
            let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let running = text.split_whitespace().next().context("schedstat is empty")?;
            nanos += running.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanos))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The resident memory of a process, once it has come to rest.
pub fn resident(pid: &str) -> Result<Resident> {
    /// Looks that must agree.
    const ALIKE: usize = 5;
    const POLL_INTERVAL: Duration = Duration::from_millis(20);
    const SETTLE_TIMEOUT: Duration = Duration::from_secs(3);
    let start = Instant::now();
    let (mut last, mut alike) = (resident_now(pid)?, 0);
    while alike < ALIKE && start.elapsed() < SETTLE_TIMEOUT {
        std::thread::sleep(POLL_INTERVAL);
        let now = resident_now(pid)?;
        alike = if now.total == last.total { alike + 1 } else { 0 };
        last = now;
    }
    Ok(last)
}

fn resident_now(pid: &str) -> Result<Resident> {
    let file = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
    let bytes = |name: &str| -> Result<f64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).context("no such line in status")?;
        let kilobytes = line.trim().trim_end_matches(" kB").parse::<f64>()?;
        Ok(kilobytes * 1024.0)
    };
    Ok(Resident { total: bytes("VmRSS:")?, anonymous: bytes("RssAnon:")? })
}

/// `conductor run` with this configuration, and how long it took until its API answered.
pub fn conductor(program: &Path, features: &Path, home: &Path, configuration: &str) -> Result<(Process, Duration)> {
    fs::write(home.join("config.toml"), configuration)?;
    in_home(program, features, home)
}

/// The same with what is in the home.
pub fn in_home(program: &Path, features: &Path, home: &Path) -> Result<(Process, Duration)> {
    let mut command = Command::new(program);
    command.arg("--home").arg(home).arg("run").env("CONDUCTOR_FEATURES", features).env_remove("CONDUCTOR_LOG");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let start = Instant::now();
    let mut child = command.spawn().with_context(|| format!("{} can't be started", program.display()))?;
    let said = child.stderr.take().map(lines);
    let process = Process { child };
    let said = said.context("no pipe")?;
    let mut all = String::new();
    // Waiting for its word needs no processor time, which asking again and again would take from it.
    let ready = loop {
        match said.recv_timeout(START_TIMEOUT.saturating_sub(start.elapsed())) {
            Ok(line) if line.contains("ready: ") => break line,
            Ok(line) => all = all + &line + "\n",
            Err(RecvTimeoutError::Disconnected) => bail!("conductor ended at its start: {all}"),
            Err(RecvTimeoutError::Timeout) => bail!("conductor did not get ready: {all}"),
        }
    };
    conductor_api::client::Client::new(home).status()?;
    let took = start.elapsed();
    if ready.contains(" 0 features") {
        bail!("there are no features in {}: {all}", features.display());
    }
    Ok((process, took))
}

/// What a process says, line by line, until it ends. Read to the end by a thread, with or without a listener: who
/// writes into a closed pipe fails, and into a full one waits.
fn lines(said: ChildStderr) -> Receiver<String> {
    let (line, lines) = crossbeam_channel::unbounded();
    std::thread::spawn(move || {
        BufReader::new(said).lines().map_while(Result::ok).for_each(|said| drop(line.send(said)));
    });
    lines
}
