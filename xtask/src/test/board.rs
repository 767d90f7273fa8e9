//! Runs steps, times them, and keeps the score.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::{process, repo::Repo};

/// The score so far.
pub struct Board {
    rows: Vec<Row>,
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
        Ok(Self { rows: Vec::new(), logs, verbose })
    }

    /// Runs a command as a step. Its output is shown whole if it fails.
    pub fn step(&mut self, name: &str, mut command: Command) -> bool {
        announce(name, self.verbose);
        let started = Instant::now();
        let result = if self.verbose { process::run(&mut command) } else { self.run_quietly(name, &mut command) };
        self.record(name, started, result)
    }

    /// Runs a function of ours as a step.
    pub fn here(&mut self, name: &str, work: impl FnOnce() -> Result<()>) -> bool {
        announce(name, self.verbose);
        let started = Instant::now();
        let result = work();
        self.record(name, started, result)
    }

    /// A step that cannot be done on this machine, or is not wanted.
    pub fn skip(&mut self, name: &str, why: &str) {
        println!("{name:<28} skipped: {why}");
        self.rows.push(Row { name: name.into(), outcome: Outcome::Skipped(why.into()), took: Duration::ZERO });
    }

    /// A step that another one's failure makes impossible: failed, too.
    pub fn blocked(&mut self, name: &str, why: &str) {
        println!("{name:<28} FAILED: not run, {why}");
        self.rows.push(Row { name: name.into(), outcome: Outcome::Failed, took: Duration::ZERO });
    }

    /// Prints the table, and the score as its last line.
    pub fn finish(self) -> ExitCode {
        println!("\n{}", self.table());
        if self.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn run_quietly(&self, name: &str, command: &mut Command) -> Result<()> {
        let file: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let path = self.logs.join(format!("{file}.log"));
        let log = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let result = process::run(command);
        if let Err(error) = result {
            let output = fs::read(&path).unwrap_or_default();
            bail!("{}\n{error}", String::from_utf8_lossy(&output).trim_end());
        }
        Ok(())
    }

    fn record(&mut self, name: &str, started: Instant, result: Result<()>) -> bool {
        let took = started.elapsed();
        let outcome = if result.is_ok() { Outcome::Passed } else { Outcome::Failed };
        if self.verbose {
            print!("{name:<28} ");
        }
        println!("{:<8} {:>7.1} s", word(&outcome), took.as_secs_f64());
        if let Err(error) = result {
            println!("{error:#}\n");
        }
        let passed = outcome == Outcome::Passed;
        self.rows.push(Row { name: name.into(), outcome, took });
        passed
    }

    fn failed(&self) -> usize {
        self.rows.iter().filter(|row| row.outcome == Outcome::Failed).count()
    }

    fn table(&self) -> String {
        let mut text = format!("{:<28} {:<8} {:>7}\n", "step", "result", "seconds");
        for row in &self.rows {
            let (result, why) = (
                word(&row.outcome),
                match &row.outcome {
                    Outcome::Skipped(why) => why.as_str(),
                    Outcome::Passed | Outcome::Failed => "",
                },
            );
            let line = format!("{:<28} {result:<8} {:>7.1}  {why}", row.name, row.took.as_secs_f64());
            text += line.trim_end();
            text.push('\n');
        }
        let passed = self.rows.iter().filter(|row| row.outcome == Outcome::Passed).count();
        text + &format!("{passed} passed, {} failed", self.failed())
    }
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "ok",
        Outcome::Failed => "FAILED",
        Outcome::Skipped(_) => "skipped",
    }
}

/// Says what is going on; the result follows on the same line, unless the step speaks in between.
fn announce(name: &str, alone: bool) {
    if alone {
        println!("\n--- {name}");
    } else {
        print!("{name:<28} ");
    }
    // A closed output shows at the next line that is printed.
    let _ = io::stdout().flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_is_the_last_line_and_skipped_steps_have_no_share_in_it() {
        let row = |name: &str, outcome, millis| Row { name: name.into(), outcome, took: Duration::from_millis(millis) };
        let board = Board {
            rows: vec![
                row("format", Outcome::Passed, 1234),
                row("clippy", Outcome::Failed, 61_000),
                row("virtual machine", Outcome::Skipped("--no-vm".into()), 0),
            ],
            logs: PathBuf::new(),
            verbose: false,
        };
        let expected = "\
step                         result   seconds
format                       ok           1.2
clippy                       FAILED      61.0
virtual machine              skipped      0.0  --no-vm
1 passed, 1 failed";
        assert_eq!(board.table(), expected);
    }
}
