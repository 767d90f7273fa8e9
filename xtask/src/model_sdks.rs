//! The vendors' own Python SDKs beside the host: both ask one server the same, and what each makes of the answers is
//! compared.
//!
//! The SDKs come from PyPI, in the versions below, into `target/model-sdks`; what they are asked is written in
//! `tests/model-sdks/ask.py`, and the comparison is the program `model-sdks` of the tests crate.

use std::{
    env,
    path::PathBuf,
    process::{Command, ExitCode},
};

use anyhow::Result;

use crate::{features, host, process, python, repo::Repo};

const SDKS: [&str; 3] = ["anthropic==2.13.0", "openai==3.57.0", "google-genai==3.6.1"];
/// The program that compares.
pub const PROGRAM: &str = "model-sdks";

/// Compare what the SDKs of Anthropic, OpenAI and Google make of answers with what the host makes of them.
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
    if env::var_os(host::PROGRAM).is_none() {
        features::build(repo)?;
        process::run(repo.workspace_cargo("build").arg(format!("--bin={PROGRAM}")))?;
    }
    let conductor = host::ready(repo)?;
    let components = env::var_os(host::FEATURES).map_or_else(|| repo.components(), PathBuf::from);
    let program = repo.target().join("debug").join(format!("{PROGRAM}{}", env::consts::EXE_SUFFIX));
    let mut compare = Command::new(program);
    compare.arg(python).arg(args.seed.to_string());
    compare.env(host::PROGRAM, conductor).env(host::FEATURES, components);
    process::become_command(&mut compare)
}
