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
    model_sdks, process,
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
    if measures_models(&args.rest) {
        match model_sdks::ensure(repo) {
            Ok(python) => {
                bench.env("CONDUCTOR_SDK_PYTHON", python);
            }
            Err(error) => eprintln!("bench: turns have no SDK beside them: {error:#}"),
        }
    }
    bench.args(args.rest).env("CONDUCTOR_FEATURES", components).env("CONDUCTOR_BIN", conductor);
    process::become_command(&mut bench)
}

/// Whether the row is measured, by these arguments, in which the SDK of a vendor is a peer.
fn measures_models(rest: &[OsString]) -> bool {
    let words: Vec<String> = rest.iter().map(|word| word.to_string_lossy().to_uppercase()).collect();
    let names_rows = words.iter().any(|word| word.starts_with("--ONLY"));
    !names_rows || words.iter().any(|word| word.contains("PERF-7"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sdks_are_installed_for_the_row_that_they_are_in() {
        let measures = |text: &str| measures_models(&text.split_whitespace().map(OsString::from).collect::<Vec<_>>());
        assert!(measures("") && measures("--json all.json"));
        assert!(measures("--only perf-7") && measures("--only=PERF-1,PERF-7 --json all.json"));
        assert!(!measures("--only PERF-1,TURNS") && !measures("--json all.json --only=perf-1"));
    }
}
