//! The council beside another implementation of the same decision record, `llm-council-core` from PyPI: both verify the same
//! commits with the same models, and what each makes of it is compared.
//!
//! The peer is installed into `target/llm-council`; the comparison is `tests/llm-council/compare.py`.

use std::{
    env,
    path::PathBuf,
    process::{Command, ExitCode},
};

use anyhow::Result;

use crate::{features, host, process, python, repo::Repo};

/// The version that is compared with, and what its module needs beside what it names itself.
const PACKAGES: [&str; 2] = ["llm-council-core==0.53.0", "fastapi==0.165.0"];

/// Compare the council with llm-council-core, field by field, on the same commits and models.
#[derive(clap::Args)]
pub struct Args {}

/// A Python that has the peer; it is installed if it is not there.
///
/// # Errors
/// Where there is no Python, or PyPI can't be reached.
pub fn ensure(repo: &Repo) -> Result<PathBuf> {
    Ok(python::environment(&repo.target().join("llm-council"), &PACKAGES)?.join("python"))
}

/// The chore.
pub fn run(repo: &Repo, _: Args) -> Result<ExitCode> {
    let python = ensure(repo)?;
    if env::var_os(host::PROGRAM).is_none() {
        features::build(repo)?;
    }
    let conductor = host::ready(repo)?;
    let components = env::var_os(host::FEATURES).map_or_else(|| repo.components(), PathBuf::from);
    let mut compare = Command::new(python);
    compare.arg(repo.root().join("tests/llm-council/compare.py")).arg(conductor).arg(components);
    process::become_command(&mut compare)
}
