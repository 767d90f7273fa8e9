//! Folders with a Python of their own and packages from PyPI, for tests beside programs that are written in it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::process;

/// Installs the packages; it is faster than pip.
const UV: &str = "uv==0.9.9";

/// The folder of programs of an environment in `folder` that has just these packages; they are installed if they are not
/// there.
///
/// # Errors
/// Where there is no Python, or PyPI can't be reached.
pub fn environment(folder: &Path, packages: &[&str]) -> Result<PathBuf> {
    let (programs, installed) = (folder.join("bin"), folder.join("installed"));
    let (python, wanted) = (programs.join("python"), packages.join("\n"));
    if python.is_file() && fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(programs);
    }
    process::find("python3").context("python3 is not installed")?;
    process::read(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", UV];
    process::read(Command::new(&python).args(pip)).context("uv can't be had from PyPI")?;
    let mut install = Command::new(programs.join("uv"));
    install.args(["pip", "install", "--quiet", "--python"]).arg(&python).args(packages);
    process::read(&mut install).with_context(|| format!("{} can't be had from PyPI", packages.join(", ")))?;
    fs::write(&installed, wanted).with_context(|| format!("cannot write {}", installed.display()))?;
    Ok(programs)
}
