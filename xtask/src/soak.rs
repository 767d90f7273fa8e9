//! The soak: a whole host at full speed for minutes, with outputs that hang and fail, and what it found.

use std::process::ExitCode;

use anyhow::Result;

use crate::{process, repo::Repo, setup};

/// Run a host at full speed, with reloads and faults, and see that nothing is lost, stuck or leaked.
#[derive(clap::Args)]
pub struct Args {
    /// How long.
    #[arg(long, default_value_t = 10)]
    minutes: u32,
    /// Build the host optimised: slower to build, quicker to run.
    #[arg(long)]
    release: bool,
}

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    setup::ensure(setup::Purpose::Build)?;
    // Not `--package`: with all of them, what was built for the other tests serves here, too.
    let mut soak = repo.cargo("test");
    soak.args(["--workspace", "--exclude=conductor-bench", "--test=soak"])
        .args(args.release.then_some("--release"))
        .args(["--", "--ignored", "--nocapture"])
        .env("CONDUCTOR_SOAK_MINUTES", args.minutes.to_string());
    process::become_command(&mut soak)
}
