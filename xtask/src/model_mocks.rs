//! The host with models of others: aimock, which answers as the vendors' APIs do, and LiteLLM's proxy in front of it.
//!
//! aimock comes from npm and LiteLLM from PyPI, in the versions below, into `target/model-mocks`; what is talked about, and what
//! has to come of it, is the program `model-mocks` of the tests crate.

use std::{
    fs,
    path::PathBuf,
    process::{Command, ExitCode},
};

use anyhow::{Context, Result};

use crate::{host, process, python, repo::Repo};

const AIMOCK: &str = "@copilotkit/aimock@1.43.0";
const LITELLM: &str = "litellm[proxy]==1.106.2";
/// The program that talks.
pub const PROGRAM: &str = "model-mocks";

/// Talk with models of others, and let councils of them verify work: aimock by each provider, and behind LiteLLM's proxy.
#[derive(clap::Args)]
pub struct Args {
    /// Leave out the proxy, which takes 750 MB on the disk.
    #[arg(long)]
    no_proxy: bool,
}

/// aimock's script; it is installed if it is not there.
///
/// # Errors
/// Where there is no Node, or npm can't be reached.
pub fn ensure(repo: &Repo) -> Result<PathBuf> {
    let folder = repo.target().join("model-mocks/node");
    let (script, installed) =
        (folder.join("node_modules/@copilotkit/aimock/dist/aimock-cli.js"), folder.join("installed"));
    if fs::read_to_string(&installed).is_ok_and(|text| text == AIMOCK) {
        return Ok(script);
    }
    process::find("node").context("node is not installed")?;
    process::find("npm").context("npm is not installed")?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::write(folder.join("package.json"), "{ \"private\": true }\n")?;
    let mut install = Command::new("npm");
    install.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", AIMOCK]).current_dir(&folder);
    process::read(&mut install).context("aimock can't be had from npm")?;
    fs::write(&installed, AIMOCK).with_context(|| format!("cannot write {}", installed.display()))?;
    Ok(script)
}

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    let script = ensure(repo)?;
    let litellm = || python::environment(&repo.target().join("model-mocks/py"), &[LITELLM]);
    let proxy = if args.no_proxy { None } else { Some(litellm()?.join("litellm")) };
    let mut talk = host::tester(repo, PROGRAM)?;
    process::become_command(talk.arg(script).args(proxy))
}
