//! Benchmarks: an optimised host and all features, measured beside their peers.

use std::{
    env,
    ffi::OsString,
    process::{Command, ExitCode},
};

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
    // Both in one call: alone, each would have every dependency compiled with its own set of features.
    process::run(repo.cargo("build").args([
        "--release",
        "--package=conductor-bench",
        "--package=conductor",
        "--bin=conductor-bench",
        "--bin=conductor",
    ]))?;
    let conductor = host::program(repo, Midi::System, Profile::Release);
    let mut bench = Command::new(conductor.with_file_name(format!("conductor-bench{}", env::consts::EXE_SUFFIX)));
    bench.args(args.rest).env("CONDUCTOR_FEATURES", components).env("CONDUCTOR_BIN", conductor);
    process::become_command(&mut bench)
}
