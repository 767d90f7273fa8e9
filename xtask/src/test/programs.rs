//! The test programs: all are built by one command, so that each dependency is compiled for one set of features, and
//! run here, beside whatever Cargo does meanwhile.

use std::{
    collections::VecDeque,
    fs::File,
    io::Write as _,
    path::Path,
    process::{Command, Output, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use crate::cargo::{self, Artifact};

/// How many programs run at once; most of them wait most of the time.
const AT_ONCE: usize = 2;

/// Programs of tests.
pub struct Programs(Vec<Artifact>);

impl Programs {
    /// Builds the test programs that a `cargo test` command selects. Diagnostics go into the log, if there is one.
    pub fn build(mut command: Command, log: Option<&File>) -> Result<Self> {
        command.arg("--no-run");
        if let Some(log) = log {
            command.stdin(Stdio::null()).stderr(log.try_clone()?);
        }
        let mut programs = cargo::build(&mut command)?;
        programs.retain(|artifact| artifact.is_test && artifact.executable.is_some());
        Ok(Self(programs))
    }

    /// Those that `keep` wants.
    pub fn those(&self, keep: impl Fn(&Artifact) -> bool) -> Vec<&Artifact> {
        self.0.iter().filter(|program| keep(program)).collect()
    }

    /// The program of the test target with this name.
    pub fn named(&self, name: &str) -> Option<&Path> {
        self.0.iter().find(|program| program.name == name)?.executable.as_deref()
    }
}

/// Runs programs with these variables, as `cargo test --no-fail-fast` does: each in the folder of its package. What
/// they print goes into the log, or else to standard output.
///
/// # Errors
/// The names of those that failed.
pub fn run(programs: &[&Artifact], variables: &[(&str, &Path)], log: Option<&File>) -> Result<()> {
    let waiting: Mutex<VecDeque<_>> = Mutex::new(programs.iter().collect());
    let (ended, failed) = (Mutex::new(()), Mutex::new(Vec::new()));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let write = |program: &Artifact, output: &Output, took: Duration| -> Result<()> {
        let _one = ended.lock().unwrap_or_else(PoisonError::into_inner);
        let head = format!("\n--- {}: {:.1} s\n", name(program), took.as_secs_f64());
        let text = [head.as_bytes(), &output.stdout, &output.stderr].concat();
        match log {
            Some(mut log) => log.write_all(&text),
            None => std::io::stdout().write_all(&text),
        }
        .context("cannot write what the tests print")
    };
    let work = || -> Result<()> {
        while let Some(program) = next() {
            let started = Instant::now();
            let output =
                command(program, variables).output().with_context(|| format!("cannot start {}", name(program)))?;
            write(program, &output, started.elapsed())?;
            if !output.status.success() {
                failed.lock().unwrap_or_else(PoisonError::into_inner).push(format!(
                    "{} ({})",
                    name(program),
                    output.status
                ));
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| bail!("a worker panicked")))
    })?;
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn command(program: &Artifact, variables: &[(&str, &Path)]) -> Command {
    let mut command = Command::new(program.executable.as_deref().unwrap_or(Path::new("")));
    cargo::forget_our_build(&mut command);
    command.current_dir(&program.package).env("CARGO_MANIFEST_DIR", &program.package).stdin(Stdio::null());
    command.envs(variables.iter().copied());
    command
}

/// `<folder of the package> <target>`.
fn name(program: &Artifact) -> String {
    let package = program.package.file_name().unwrap_or_default().to_string_lossy();
    format!("{package} {}", program.name)
}
