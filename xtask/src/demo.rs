//! The demonstration: what it shows is built, then `conductor demo`.
//!
//! On a fresh machine that is a small build of its own, so that there is something to see soon. Where a host is built already, as for
//! the tests, that one is brought up to date and shown.

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

/// Build what the demonstration shows, and run it.
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

/// The feature that the demonstration shows.
const SHOWN: &str = "osc-output";

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    setup::ensure(setup::Purpose::Demo)?;
    if args.jack {
        setup::ensure_jack()?;
    }
    let midi = if args.jack { Midi::Jack } else { Midi::System };
    let profile = match args.release {
        true => Profile::Release,
        false if host::program(repo, midi, Profile::Dev).is_file() => Profile::Dev,
        false => Profile::Demo,
    };
    let components = match profile {
        Profile::Demo => features::build_alone(repo, SHOWN)?,
        Profile::Dev | Profile::Release => features::build(repo)?,
    };
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
