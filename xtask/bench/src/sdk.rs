//! The SDK of a vendor as a peer: a process that streams answers by it, one at a time.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// What asks by the SDK of OpenAI, and times it.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/model-sdks/turns.py");

/// A process that ends with this.
#[derive(Debug)]
pub struct Sdk {
    child: Child,
    asks: ChildStdin,
    says: BufReader<ChildStdout>,
}

impl Sdk {
    /// Starts it with this Python, which has the SDK, for a server of Chat Completions at this base URL.
    pub fn start(python: &Path, url: &str) -> Result<Self> {
        let mut command = Command::new(python);
        command.arg(SCRIPT).arg(url).env("PYTHONDONTWRITEBYTECODE", "1");
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.with_context(|| format!("{} can't be started", python.display()))?;
        let (asks, says) = (child.stdin.take().context("no pipe")?, child.stdout.take().context("no pipe")?);
        Ok(Self { child, asks, says: BufReader::new(says) })
    }

    /// Streams an answer, which must have so many pieces, to its end. Returns the milliseconds that it took.
    pub fn turn(&mut self, pieces: usize) -> Result<f64> {
        writeln!(self.asks)?;
        let mut line = String::new();
        ensure!(self.says.read_line(&mut line)? > 0, "the SDK's process has ended");
        let (took, came) = line.trim_end().split_once(' ').with_context(|| format!("no time and count: {line:?}"))?;
        ensure!(came.parse::<usize>() == Ok(pieces), "{came} pieces of {pieces} came through the SDK");
        Ok(took.parse()?)
    }
}

impl Drop for Sdk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
