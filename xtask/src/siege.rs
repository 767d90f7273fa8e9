//! The siege: a host with clients that misbehave at every door, for minutes, and what its owner notices of it.

use std::process::ExitCode;

use anyhow::Result;

use crate::{
    features,
    host::{self, Midi, Profile},
    process,
    repo::Repo,
    setup,
};

/// Besiege a host with slow, silent, greedy and lying clients, and see that its owner and its show notice nothing.
#[derive(clap::Args)]
pub struct Args {
    /// How long; fractions are taken.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Build the host optimised: slower to build, quicker to run.
    #[arg(long)]
    release: bool,
}

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    setup::ensure(setup::Purpose::Build)?;
    features::build(repo)?;
    let profile = if args.release { Profile::Release } else { Profile::Dev };
    let program = host::build(repo, Midi::System, profile)?;
    let mut siege = repo.cargo("run");
    siege
        .args(["--package=conductor-tests", "--bin=siege", "--quiet"])
        .args(args.release.then_some("--release"))
        .arg("--")
        .arg(args.minutes.to_string())
        .env("CONDUCTOR_BIN", program)
        .env("CONDUCTOR_FEATURES", repo.components());
    process::become_command(&mut siege)
}
