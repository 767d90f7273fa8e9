//! The council beside another implementation of the same decision record, `llm-council-core` from PyPI: both verify the same
//! commits with the same models, and what each makes of it is compared.
//!
//! The peer is installed into `target/llm-council`; the comparison is `tests/llm-council/compare.py`.

use std::{
    env, fs,
    path::PathBuf,
    process::{Command, ExitCode},
};

use anyhow::{Context, Result};

use crate::{features, host, process, repo::Repo};

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
    let folder = repo.target().join("llm-council");
    let (python, installed) = (folder.join("bin/python"), folder.join("installed"));
    let wanted = PACKAGES.join("\n");
    if fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(python);
    }
    process::find("python3").context("python3 is not installed")?;
    process::read(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(PACKAGES);
    process::read(&mut install).context("llm-council-core can't be had from PyPI")?;
    fs::write(&installed, wanted).with_context(|| format!("cannot write {}", installed.display()))?;
    Ok(python)
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
