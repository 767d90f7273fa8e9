//! A program of its own: what it has printed so far, and its end.

use std::io::{BufRead as _, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::wait::{self, TEST_TIMEOUT};

/// How long a program that is not wanted any more may take to end by itself.
const FAREWELL: Duration = Duration::from_secs(3);

/// Where a program is on the search path.
pub fn path_of(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|program| program.is_file())
}

/// Whether all these programs are on the search path. Where one is not, a line says which, and that the test is
/// skipped.
pub fn are_there(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| path_of(program).is_none());
    if let Some(program) = missing {
        println!("skipped: there is no {program} here; `cargo xtask setup` installs it");
    }
    missing.is_none()
}

/// A running program. Dropping it ends it, however the test ends.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
    /// What it prints.
    pub out: Lines,
    /// What it complains about.
    pub err: Lines,
}

/// How a program ended.
#[derive(Debug)]
pub struct End {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Everything that it printed.
    pub out: String,
    /// Everything that it complained about.
    pub err: String,
}

impl Process {
    /// Starts a program; its input is empty.
    pub fn start(command: &mut Command) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        let out = Lines::of(child.stdout.take().unwrap());
        let err = Lines::of(child.stderr.take().unwrap());
        Self { child, name, out, err }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, such as `TERM`.
    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status().unwrap();
        assert!(sent.success(), "{} can't be sent {signal}", self.name);
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Ends it without asking, as a power cut would.
    pub fn kill(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for its end, and returns it with the time that it took.
    pub fn wait(mut self) -> (End, Duration) {
        let (out, err) = (self.out.clone(), self.err.clone());
        let (status, took) = wait::until(
            || self.child.try_wait().unwrap(),
            || format!("it still runs; it printed\n{}\nand complained\n{}", out.text(), err.text()),
        );
        (End { code: status.code(), out: out.whole(), err: err.whole() }, took)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Politely first: servers that others share, such as JACK, suffer from clients that are killed.
        let pid = self.child.id().to_string();
        let deadline = Instant::now() + FAREWELL;
        if matches!(self.child.try_wait(), Ok(None)) && Command::new("kill").arg(pid).status().is_ok() {
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
                thread::sleep(wait::POLL_INTERVAL);
            }
        }
        self.kill();
        if thread::panicking() {
            // For finding out why.
            println!("{} printed\n{}\nand complained\n{}\n", self.name, self.out.whole(), self.err.whole());
        }
    }
}

/// Lines that come in as a program prints them.
#[derive(Debug, Clone)]
pub struct Lines {
    shared: Arc<(Mutex<Printed>, Condvar)>,
}

#[derive(Debug, Default)]
struct Printed {
    lines: Vec<String>,
    ended: bool,
}

impl Lines {
    fn of(stream: impl Read + Send + 'static) -> Self {
        let lines = Self { shared: Arc::default() };
        let writer = lines.clone();
        thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            while stream.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
                let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
                writer.change(|printed| printed.lines.push(text));
                line.clear();
            }
            writer.change(|printed| printed.ended = true);
        });
        lines
    }

    fn change(&self, change: impl FnOnce(&mut Printed)) {
        change(&mut self.printed());
        self.shared.1.notify_all();
    }

    fn printed(&self) -> MutexGuard<'_, Printed> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lines so far.
    pub fn all(&self) -> Vec<String> {
        self.printed().lines.clone()
    }

    /// The lines so far, as one text.
    pub fn text(&self) -> String {
        self.printed().lines.join("\n")
    }

    /// All lines, once there can come no more.
    fn whole(&self) -> String {
        self.wait(|printed| printed.ended.then(|| printed.lines.join("\n"))).unwrap_or_else(|lines| lines)
    }

    /// Waits until `find` finds something in the lines so far.
    ///
    /// # Panics
    /// When patience ends, with `what` was missing and what there was instead.
    pub fn find<T>(&self, what: &str, mut find: impl FnMut(&[String]) -> Option<T>) -> T {
        self.wait(|printed| find(&printed.lines))
            .unwrap_or_else(|lines| panic!("{what} did not come; there was only\n{lines}"))
    }

    /// Waits for a line that holds `part`, and returns it.
    pub fn line(&self, part: &str) -> String {
        self.find(&format!("a line with {part:?}"), |lines| lines.iter().find(|line| line.contains(part)).cloned())
    }

    fn wait<T>(&self, mut look: impl FnMut(&Printed) -> Option<T>) -> Result<T, String> {
        let deadline = Instant::now() + TEST_TIMEOUT;
        let mut printed = self.printed();
        loop {
            if let Some(found) = look(&printed) {
                return Ok(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || printed.ended {
                return Err(printed.lines.join("\n"));
            }
            printed = self.shared.1.wait_timeout(printed, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
