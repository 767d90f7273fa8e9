//! The official validator of Agent Skills (`skills-ref`, from PyPI) over every bundled skill.

use std::{
    fs,
    path::PathBuf,
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};

use crate::{process, repo::Repo};

/// The version that is proven; another may find more.
const PACKAGE: &str = "skills-ref==0.1.1";

/// Have the official validator check every bundled skill.
#[derive(clap::Args)]
pub struct Args {}

/// The program; installed into the target folder if it is not there.
///
/// # Errors
/// Where there is no Python, or PyPI can't be reached.
pub fn program(repo: &Repo) -> Result<PathBuf> {
    let folder = repo.target().join("skills-ref");
    let (python, program) = (folder.join("bin/python"), folder.join("bin/agentskills"));
    if !program.is_file() {
        process::find("python3").context("python3 is not installed")?;
        process::read(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE];
        process::read(Command::new(python).args(install)).context("skills-ref can't be had from PyPI")?;
    }
    Ok(program)
}

/// The chore.
pub fn run(repo: &Repo, _: Args) -> Result<ExitCode> {
    let program = program(repo)?;
    let mut folders: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(repo.root().join("skills"))? {
        let path = entry?.path();
        if path.join("SKILL.md").is_file() {
            folders.push(path);
        }
    }
    folders.sort();
    if folders.is_empty() {
        bail!("skills/ has no skill");
    }
    for folder in folders {
        process::run(Command::new(&program).arg("validate").arg(folder))?;
    }
    Ok(ExitCode::SUCCESS)
}
