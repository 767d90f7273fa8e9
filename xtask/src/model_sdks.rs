//! The vendors' own Python SDKs beside the host: both ask one server the same, and what each makes of the answers is
//! compared.
//!
//! The SDKs come from PyPI, in the versions below, into `target/model-sdks`; what they are asked is written in
//! `tests/model-sdks/ask.py`, and the comparison is the program `model-sdks` of the tests crate.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;

use crate::{host, process, python, repo::Repo};

const SDKS: [&str; 3] = ["anthropic==2.13.0", "openai==3.57.0", "google-genai==3.6.1"];
/// The program that compares.
pub const PROGRAM: &str = "model-sdks";

/// Compare what the SDKs of Anthropic, OpenAI and Google make of answers, those of OpenRouter and LiteLLM among them, with what
/// the host makes of them.
#[derive(clap::Args)]
pub struct Args {
    /// Where the answers that are made up come from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A Python that has the SDKs; they are installed if they are not there.
///
/// # Errors
/// Where there is no Python, or PyPI can't be reached.
pub fn ensure(repo: &Repo) -> Result<PathBuf> {
    Ok(python::environment(&repo.target().join("model-sdks"), &SDKS)?.join("python"))
}

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    let python = ensure(repo)?;
    let mut compare = host::tester(repo, PROGRAM)?;
    process::become_command(compare.arg(python).arg(args.seed.to_string()))
}
