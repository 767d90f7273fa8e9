//! The demonstration: everything built, then `conductor demo`.

use std::{
    ffi::OsString,
    process::{Command, ExitCode},
};

use anyhow::{Context, Result};

use crate::{
    features,
    host::{self, Midi, Profile},
    jack, process,
    repo::Repo,
    setup,
};

/// Build everything and run the demonstration.
#[derive(clap::Args)]
pub struct Args {
    /// Send and receive MIDI through JACK; starts a private server if none runs.
    #[arg(long)]
    jack: bool,
    /// Also use real OSC peers on loopback.
    #[arg(long)]
    osc: bool,
    /// Build the host optimised: slower to build, quicker to run.
    #[arg(long)]
    release: bool,
    /// Further arguments for `conductor demo`.
    #[arg(last = true)]
    rest: Vec<OsString>,
}

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    setup::ensure(setup::Purpose::Demo)?;
    if args.jack {
        setup::ensure_jack()?;
    }
    let components = features::build(repo)?;
    let midi = if args.jack { Midi::Jack } else { Midi::System };
    let profile = if args.release { Profile::Release } else { Profile::Dev };
    let mut demo = Command::new(host::build(repo, midi, profile)?);
    demo.arg("demo")
        .args(args.jack.then_some("--jack"))
        .args(args.osc.then_some("--osc"))
        .args(args.rest)
        .env("CONDUCTOR_FEATURES", components);
    if !args.jack || jack::runs() {
        return process::become_command(&mut demo);
    }
    let server = jack::Server::start()?;
    let status = server.run(&mut demo).context("cannot start the demonstration")?;
    Ok(process::exit_code(status))
}
