//! The host: the program `conductor`.

use std::{
    env, fs,
    path::PathBuf,
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};

use crate::{features, process, repo::Repo, setup};

/// Build the host and print the program's path.
#[derive(clap::Args)]
pub struct Args {
    /// MIDI goes through JACK.
    #[arg(long)]
    jack: bool,
    /// Optimised.
    #[arg(long)]
    release: bool,
}

/// What the host's MIDI goes through: decided when it is compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Midi {
    /// The system's own: ALSA, CoreMIDI, WinMM.
    System,
    /// A JACK server.
    Jack,
}

/// How carefully the compiler works.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Quick to build.
    Dev,
    /// Quick to run.
    Release,
    /// Quickest to build: nothing is optimised, and what hangs on libraries of a desktop is left out.
    Demo,
}

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    setup::ensure(setup::Purpose::Build)?;
    if args.jack {
        setup::ensure_jack()?;
    }
    let midi = if args.jack { Midi::Jack } else { Midi::System };
    let profile = if args.release { Profile::Release } else { Profile::Dev };
    println!("{}", build(repo, midi, profile)?.display());
    Ok(ExitCode::SUCCESS)
}

/// Where the built program is.
///
/// Cargo gives both variants one name. The one for JACK is a copy, so that no step builds over what another runs.
pub fn program(repo: &Repo, midi: Midi, profile: Profile) -> PathBuf {
    let folder = match profile {
        Profile::Dev => "debug",
        Profile::Release => "release",
        Profile::Demo => "demo",
    };
    let name = match midi {
        Midi::System => "conductor",
        Midi::Jack => "conductor-jack",
    };
    repo.target().join(folder).join(format!("{name}{}", env::consts::EXE_SUFFIX))
}

/// Where the copy of the host is that [`precompile`] makes.
pub fn precompiled(repo: &Repo, midi: Midi) -> PathBuf {
    let built = program(repo, midi, Profile::Dev);
    repo.target().join("precompiled").join(built.file_name().unwrap_or_default())
}

/// The command that compiles the components to machine code, as for a release, and makes a copy of the host that trusts
/// it: most tests start a host in a new home, where it would compile every feature.
pub fn precompile(repo: &Repo, midi: Midi) -> Result<Command> {
    let copy = precompiled(repo, midi);
    let folder = copy.parent().context("the target folder has no parent")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    // An older one trusts other code.
    match fs::remove_file(&copy) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot remove {}", copy.display()));
        }
        _ => {}
    }
    let mut command = Command::new(program(repo, midi, Profile::Dev));
    command.arg("precompile").arg(repo.components()).arg(copy);
    Ok(command)
}

/// Says which host is to be tested.
pub const PROGRAM: &str = "CONDUCTOR_BIN";
/// Says where the components are that it is tested with.
pub const FEATURES: &str = "CONDUCTOR_FEATURES";

/// The host that [`PROGRAM`] names, or else one that is built now.
pub fn ready(repo: &Repo) -> Result<PathBuf> {
    env::var_os(PROGRAM).map_or_else(|| build(repo, Midi::System, Profile::Dev), |program| Ok(program.into()))
}

/// A program of the tests crate, with the host and the components that it tests. All of it is there if [`PROGRAM`] names a host,
/// or else is built now.
pub fn tester(repo: &Repo, name: &str) -> Result<Command> {
    if env::var_os(PROGRAM).is_none() {
        features::build(repo)?;
        process::run(repo.workspace_cargo("build").arg(format!("--bin={name}")))?;
    }
    let components = env::var_os(FEATURES).map_or_else(|| repo.components(), PathBuf::from);
    let mut tester = Command::new(repo.target().join("debug").join(format!("{name}{}", env::consts::EXE_SUFFIX)));
    tester.env(PROGRAM, ready(repo)?).env(FEATURES, components);
    Ok(tester)
}

/// Builds the host and returns the program's path.
pub fn build(repo: &Repo, midi: Midi, profile: Profile) -> Result<PathBuf> {
    process::run(&mut build_command(repo, midi, profile))?;
    let built = program(repo, Midi::System, profile);
    if !built.is_file() {
        bail!("Cargo built the host, but not as {}: is `build.target` set?", built.display());
    }
    if midi == Midi::System {
        return Ok(built);
    }
    let copy = program(repo, midi, profile);
    // Not written in place: the old copy may be running.
    let fresh = copy.with_extension("new");
    fs::copy(&built, &fresh)
        .and_then(|_| fs::rename(&fresh, &copy))
        .with_context(|| format!("cannot copy {} to {}", built.display(), copy.display()))?;
    Ok(copy)
}

fn build_command(repo: &Repo, midi: Midi, profile: Profile) -> Command {
    let mut command = match profile {
        // What the tests are built with is built already.
        Profile::Dev => repo.workspace_cargo("build"),
        // Nothing but the host has a say in which features its dependencies have.
        Profile::Release | Profile::Demo => with_package(repo.cargo("build")),
    };
    command.arg("--bin=conductor").args((midi == Midi::Jack).then_some("--features=conductor/jack"));
    match profile {
        Profile::Dev => {}
        Profile::Release => drop(command.arg("--release")),
        Profile::Demo => drop(command.args(["--profile=demo", "--no-default-features"])),
    }
    command
}

fn with_package(mut command: Command) -> Command {
    command.arg("--package=conductor");
    command
}
