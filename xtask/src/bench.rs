//! Benchmarks: an optimised host and all features, measured beside their peers.

use std::{ffi::OsString, process::ExitCode};

use anyhow::Result;

use crate::{
    features,
    host::{self, Midi, Profile},
    process,
    repo::Repo,
    setup,
};

/// Run the benchmarks; arguments go to the benchmark program.
#[derive(clap::Args)]
pub struct Args {
    /// Arguments for the benchmark program; `--help` after `--` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    setup::ensure(setup::Purpose::Bench)?;
    let components = features::build(repo)?;
    let conductor = host::build(repo, Midi::System, Profile::Release)?;
    let mut bench = repo.cargo("run");
    bench
        .args(["--release", "--package", "conductor-bench", "--"])
        .args(args.rest)
        .env("CONDUCTOR_FEATURES", components)
        .env("CONDUCTOR_BIN", conductor);
    process::become_command(&mut bench)
}
