//! The kills: hosts that are killed at random moments while models talk, and what is left of the conversations.

use std::process::ExitCode;

use anyhow::Result;

use crate::{
    features,
    host::{self, Midi, Profile},
    process,
    repo::Repo,
    setup,
};

/// Kill hosts at random moments of turns, and see that every conversation opens with all that was shown and what it cost.
#[derive(clap::Args)]
pub struct Args {
    /// How often while a turn streams.
    #[arg(long, default_value_t = 300)]
    kills: u32,
    /// The same moments again, about; else others each time. It is printed.
    #[arg(long)]
    seed: Option<u64>,
}

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    setup::ensure(setup::Purpose::Build)?;
    features::build(repo)?;
    let program = host::build(repo, Midi::System, Profile::Dev)?;
    let mut kills = repo.cargo("run");
    kills
        .args(["--package=conductor-tests", "--bin=kills", "--quiet", "--"])
        .arg(args.kills.to_string())
        .args(args.seed.map(|seed| seed.to_string()))
        .env(host::PROGRAM, program)
        .env(host::FEATURES, repo.components());
    process::become_command(&mut kills)
}
