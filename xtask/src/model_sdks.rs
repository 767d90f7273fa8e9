//! The vendors' own Python SDKs beside the host: both ask one server the same, and what each makes of the answers is
//! compared.
//!
//! The SDKs come from PyPI, in the versions below, into `target/model-sdks`; what they are asked is written in
//! `tests/model-sdks/ask.py`, and the comparison is the program `model-sdks` of the tests crate.

use std::{
    env, fs,
    path::PathBuf,
    process::{Command, ExitCode},
};

use anyhow::{Context, Result};

use crate::{features, host, process, repo::Repo};

const SDKS: [&str; 3] = ["anthropic==2.13.0", "openai==3.57.0", "google-genai==3.6.1"];
const UV: &str = "uv==0.9.9";
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
    let folder = repo.target().join("model-sdks");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let (python, installed) = (folder.join("py/bin/python"), folder.join("installed"));
    let wanted = SDKS.join("\n");
    if fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(python);
    }
    process::find("python3").context("python3 is not installed")?;
    process::read(Command::new("python3").args(["-m", "venv"]).arg(folder.join("py")))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", UV];
    process::read(Command::new(&python).args(pip)).context("uv can't be had from PyPI")?;
    let mut install = Command::new(folder.join("py/bin/uv"));
    install.args(["pip", "install", "--quiet", "--python"]).arg(&python).args(SDKS);
    process::read(&mut install).context("the SDKs can't be had from PyPI")?;
    fs::write(&installed, wanted).with_context(|| format!("cannot write {}", installed.display()))?;
    Ok(python)
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
