//! Runs steps, times them, and keeps the score.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};

use crate::{process, repo::Repo};

/// The score so far. Steps may run side by side: each line is printed whole when its step has ended.
pub struct Board {
    rows: Mutex<Vec<Row>>,
    started: Instant,
    logs: PathBuf,
    verbose: bool,
}

struct Row {
    name: String,
    outcome: Outcome,
    took: Duration,
}

#[derive(PartialEq)]
enum Outcome {
    Passed,
    Failed,
    Skipped(String),
}

impl Board {
    /// An empty board; the steps' logs go to the target folder.
    pub fn new(repo: &Repo, verbose: bool) -> Result<Self> {
        let logs = repo.target().join("xtask-logs");
        fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
        Ok(Self { rows: Mutex::default(), started: Instant::now(), logs, verbose })
    }

    /// Runs a command as a step. Its output is shown if it fails, without what tells of progress alone.
    pub fn step(&self, name: &str, mut command: Command) -> bool {
        self.logged(name, |log| match log {
            None => process::run(&mut command),
            Some(log) => process::run(command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?)),
        })
    }

    /// Runs a function of ours as a step. What it writes into the file is shown if it fails; without a file, it prints.
    pub fn logged(&self, name: &str, work: impl FnOnce(Option<&File>) -> Result<()>) -> bool {
        self.here(name, || {
            if self.verbose {
                return work(None);
            }
            let file: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
            let path = self.logs.join(format!("{file}.log"));
            let log = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
            work(Some(&log)).map_err(|error| {
                let output = fs::read(&path).unwrap_or_default();
                anyhow!("{error:#}\n{}\nAll of it: {}", shown(&String::from_utf8_lossy(&output)), path.display())
            })
        })
    }

    /// Runs a function of ours as a step.
    pub fn here(&self, name: &str, work: impl FnOnce() -> Result<()>) -> bool {
        if self.verbose {
            println!("\n--- {name}");
        }
        let started = Instant::now();
        let result = work();
        let outcome = if result.is_ok() { Outcome::Passed } else { Outcome::Failed };
        let passed = outcome == Outcome::Passed;
        self.record(
            Row { name: name.into(), outcome, took: started.elapsed() },
            result.err().map(|e| format!("{e:#}\n")),
        );
        passed
    }

    /// A step that cannot be done on this machine, or is not wanted.
    pub fn skip(&self, name: &str, why: &str) {
        self.record(Row { name: name.into(), outcome: Outcome::Skipped(why.into()), took: Duration::ZERO }, None);
    }

    /// Whether to do a step, of which it is known whether a change can reach it. If not, it is noted as skipped.
    pub fn reached(&self, name: &str, reached: bool) -> bool {
        if !reached {
            self.skip(name, "no change reaches it");
        }
        reached
    }

    /// A step that another one's failure makes impossible: failed, too.
    pub fn blocked(&self, name: &str, why: &str) {
        let row = Row { name: name.into(), outcome: Outcome::Failed, took: Duration::ZERO };
        self.record(row, Some(format!("not run: {why}")));
    }

    /// Runs two sequences of steps, side by side; one after the other if all that they print is shown.
    pub fn beside(&self, first: impl FnOnce() + Send, second: impl FnOnce() + Send) {
        if self.verbose {
            first();
            second();
            return;
        }
        thread::scope(|scope| {
            scope.spawn(first);
            second();
        });
    }

    /// Prints the table, and the score as its last line.
    pub fn finish(self) -> ExitCode {
        println!("\n{}", self.table(self.started.elapsed()));
        if self.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn record(&self, row: Row, said: Option<String>) {
        let mut rows = self.rows();
        println!("{}", row.line());
        if let Some(said) = said {
            println!("{said}");
        }
        rows.push(row);
    }

    fn rows(&self) -> MutexGuard<'_, Vec<Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> usize {
        self.rows().iter().filter(|row| row.outcome == Outcome::Failed).count()
    }

    fn table(&self, took: Duration) -> String {
        let mut text = format!("{:<28} {:<8} {:>7}\n", "step", "result", "seconds");
        for row in self.rows().iter() {
            text += &row.line();
            text.push('\n');
        }
        text += &format!("{:<28} {:<8} {:>7.1}\n", "all", "", took.as_secs_f64());
        let passed = self.rows().iter().filter(|row| row.outcome == Outcome::Passed).count();
        text + &format!("{passed} passed, {} failed", self.failed())
    }
}

/// What a failed step printed, without the lines that say that something went well: reports that are cut off show the
/// beginning.
fn shown(output: &str) -> String {
    let is_progress = |line: &&str| {
        let line = line.trim_start();
        let word = line.split(' ').next().unwrap_or_default();
        let of_cargo = ["Compiling", "Checking", "Documenting", "Downloading", "Downloaded", "Fresh", "Finished"];
        of_cargo.contains(&word) || (word == "test" && line.ends_with(" ... ok"))
    };
    output.trim_end().lines().filter(|line| !is_progress(line)).collect::<Vec<_>>().join("\n")
}

impl Row {
    fn line(&self) -> String {
        let why = match &self.outcome {
            Outcome::Skipped(why) => why.as_str(),
            Outcome::Passed | Outcome::Failed => "",
        };
        let line = format!("{:<28} {:<8} {:>7.1}  {why}", self.name, word(&self.outcome), self.took.as_secs_f64());
        line.trim_end().to_owned()
    }
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "ok",
        Outcome::Failed => "FAILED",
        Outcome::Skipped(_) => "skipped",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_shown_without_what_went_well() {
        let output = "   Compiling a v0.1.0\nwarning: x\n --> a.rs:1\ntest one ... ok\ntest two ... FAILED\n    Finished `dev`\n";
        assert_eq!(shown(output), "warning: x\n --> a.rs:1\ntest two ... FAILED");
    }

    #[test]
    fn the_score_is_the_last_line_and_skipped_steps_have_no_share_in_it() {
        let row = |name: &str, outcome, millis| Row { name: name.into(), outcome, took: Duration::from_millis(millis) };
        let board = Board {
            rows: Mutex::new(vec![
                row("format", Outcome::Passed, 1234),
                row("clippy", Outcome::Failed, 61_000),
                row("virtual machine", Outcome::Skipped("--no-vm".into()), 0),
            ]),
            started: Instant::now(),
            logs: PathBuf::new(),
            verbose: false,
        };
        let expected = "\
step                         result   seconds
format                       ok           1.2
clippy                       FAILED      61.0
virtual machine              skipped      0.0  --no-vm
all                                      65.0
1 passed, 1 failed";
        assert_eq!(board.table(Duration::from_secs(65)), expected);
    }
}
