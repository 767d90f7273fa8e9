//! The official validator of Agent Skills (`skills-ref`, from PyPI) over every bundled skill.

use std::{
    fs,
    path::PathBuf,
    process::{Command, ExitCode},
};

use anyhow::{Result, bail};

use crate::{process, python, repo::Repo};

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
    Ok(python::environment(&repo.target().join("skills-ref"), &[PACKAGE])?.join("agentskills"))
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
