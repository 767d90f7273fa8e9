//! Every check and test of the project, as a list of timed steps.
//!
//! The list is this file; `test/board.rs` runs and reports it. A failed step stops only those that need it.

mod board;
#[cfg(test)]
mod documented;
#[cfg(test)]
mod one_build;
mod programs;

use std::{
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::Result;

use crate::{
    dependencies, guest_rust,
    host::{self, Midi, Profile},
    jack, layers, mcp_peers, process, registry,
    repo::Repo,
    schemathesis, setup, vm,
};
use board::Board;
use process::in_background;
use programs::Programs;

/// Run every check and test of the project, and print a table.
#[derive(clap::Args)]
pub struct Args {
    /// Only what a change needs while it is being written: no docs, licences, JACK or virtual machine.
    #[arg(long)]
    fast: bool,
    /// Leave out the virtual machine.
    #[arg(long)]
    no_vm: bool,
    /// Show what the steps print, not only those that fail.
    #[arg(long, short)]
    verbose: bool,
}

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    let board = Board::new(repo, args.verbose)?;
    let purpose = if args.fast || args.no_vm { setup::Purpose::TestWithoutVm } else { setup::Purpose::Test };
    board.here("set-up", || {
        setup::disk::ensure(repo)?;
        setup::ensure(purpose)?;
        guest_rust::ensure(repo).map(drop)
    });
    let guests = repo.guest_workspaces()?;
    let guests: Vec<_> = guests.iter().map(|folder| (short_name(repo, folder), folder.as_path())).collect();

    format(repo, &board, &guests);
    board.here("layers", || layers::check(repo.root()).map(drop));
    // All that is to run is built first. Then one lane needs Cargo alone, which locks its folder, and the other one
    // runs what was built and waits for it, mostly.
    let built = Built::new(repo, &board, &args);
    board.beside(
        || {
            clippy(repo, &board, &guests);
            if !args.fast {
                documentation(repo, &board, &guests);
                dependencies(repo, &board, &guests);
                engine_is_pure(repo, &board);
                // Nothing else builds them.
                board.step("fuzz targets", in_background(with(repo.xtask("fuzz"), ["--check"])));
            }
            guest_units(repo, &board, &guests);
        },
        || {
            board.step("references", told(repo, with(repo.xtask("docs"), ["--check"])));
            units(repo, &board, &built);
            end_to_end(repo, &board, &built);
            if !args.fast {
                examples(repo, &board, &built);
                api_lane(repo, &board, &built);
                agents(repo, &board, &built);
                jack_lane(repo, &board, &built);
                vm_lane(repo, &board, &built, args.no_vm);
            }
        },
    );
    Ok(board.finish())
}

/// What was built to be run.
struct Built {
    /// The host and the features; without them no program can be tested.
    product: bool,
    /// All test programs.
    programs: Option<Programs>,
    /// The tests on JACK, and the host that they test, where there can be any.
    jack: Option<Programs>,
}

impl Built {
    fn new(repo: &Repo, board: &Board, args: &Args) -> Self {
        // Before the tests: the sandbox is tested with real guests.
        let features = board.step("features", repo.xtask("features"));
        let mut programs = None;
        board.logged("test programs", |log| {
            let mut test = repo.workspace_cargo("test");
            test.arg("--no-fail-fast");
            programs = Some(Programs::build(test, log)?);
            let mut others = mcp_peers::programs(repo);
            if let Some(log) = log {
                others.stderr(log.try_clone()?);
            }
            process::run(&mut others)
        });
        let mut jack = None;
        if !args.fast
            && jack::unavailable().is_none()
            && board.step("host for JACK", with(repo.xtask("host"), ["--jack"]))
        {
            board.logged("test programs for JACK", |log| {
                let mut test = repo.workspace_cargo("test");
                test.args(["--features=conductor-tests/jack", "--test=jack"]);
                jack = Some(Programs::build(test, log)?);
                Ok(())
            });
        }
        // Last: both variants of the host have one name.
        let host = board.step("host", repo.xtask("host"));
        Self { product: features & host, programs, jack }
    }
}

fn format(repo: &Repo, board: &Board, guests: &[(String, &Path)]) {
    let format = |command| with(command, ["--all", "--check"]);
    board.step("format", format(repo.cargo("fmt")));
    for (name, folder) in guests {
        board.step(&format!("format {name}"), format(repo.guest_cargo("fmt", folder)));
    }
}

fn clippy(repo: &Repo, board: &Board, guests: &[(String, &Path)]) {
    let strict = |clippy| in_background(with(clippy, ["--all-targets", "--", "-Dwarnings"]));
    board.step("clippy", strict(repo.workspace_cargo("clippy")));
    for (name, folder) in guests {
        let clippy = with(repo.guest_cargo("clippy", folder), ["--workspace", "--all-features"]);
        board.step(&format!("clippy {name}"), strict(clippy));
    }
}

fn documentation(repo: &Repo, board: &Board, guests: &[(String, &Path)]) {
    let strict = |mut doc: Command| {
        doc.arg("--no-deps").env("RUSTDOCFLAGS", "-Dwarnings");
        in_background(doc)
    };
    board.step("docs", strict(repo.workspace_cargo("doc")));
    for (name, folder) in guests {
        board.step(
            &format!("docs {name}"),
            strict(with(repo.guest_cargo("doc", folder), ["--workspace", "--all-features"])),
        );
    }
    board.step("examples in docs", in_background(with(repo.workspace_cargo("test"), ["--doc", "--no-fail-fast"])));
}

/// Licences and sources of all dependencies, and, if cargo-deny is there, what else it finds.
fn dependencies(repo: &Repo, board: &Board, guests: &[(String, &Path)]) {
    let root = [("host".to_owned(), repo.root())];
    let all: Vec<_> = root.iter().chain(guests).collect();
    for (name, folder) in &all {
        board.here(&format!("dependencies {name}"), || dependencies::check(repo, folder));
    }
    if process::find("cargo-deny").is_none() {
        board.skip("advisories", "cargo-deny is not installed (`cargo install --locked cargo-deny`)");
        return;
    }
    let deny = |folder: &Path, checks: &[&str]| {
        let mut deny = repo.cargo("deny");
        deny.arg("--manifest-path").arg(folder.join("Cargo.toml"));
        deny.args(["check", "--config"]).arg(repo.root().join("deny.toml")).args(checks);
        deny
    };
    for (name, folder) in &all {
        board.step(&format!("cargo-deny {name}"), deny(folder, &["licenses", "bans", "sources"]));
    }
    match process::read(repo.cargo("deny").args(["fetch", "db"])) {
        Ok(_) => {
            for (name, folder) in &all {
                board.step(&format!("advisories {name}"), deny(folder, &["--disable-fetch", "advisories"]));
            }
        }
        Err(error) => {
            let reason = error.to_string().lines().last().unwrap_or_default().to_owned();
            board.skip("advisories", &format!("the advisory database cannot be fetched here: {reason}"));
        }
    }
}

/// The engine builds where there is no clock, no thread and no file: it cannot have come to use any.
fn engine_is_pure(repo: &Repo, board: &Board) {
    const NAME: &str = "engine without a system";
    match guest_rust::ensure(repo) {
        Ok(rust) => {
            board.step(NAME, with(guest_rust::cargo(&rust, repo, "build"), ["--package", "conductor-engine"]));
        }
        Err(error) => board.blocked(NAME, &error.to_string()),
    }
}

fn guest_units(repo: &Repo, board: &Board, guests: &[(String, &Path)]) {
    for (name, folder) in guests {
        let test = with(repo.guest_cargo("test", folder), ["--workspace", "--no-fail-fast"]);
        board.step(&format!("unit tests {name}"), in_background(test));
    }
}

/// The tests of every crate but those that start the whole host.
fn units(repo: &Repo, board: &Board, built: &Built) {
    const NAME: &str = "unit tests";
    let Some(programs) = &built.programs else { return board.blocked(NAME, NOTHING) };
    let end_to_end = repo.root().join("tests");
    let units = programs.those(|program| program.package != end_to_end);
    board.logged(NAME, |log| programs::run(&units, &[], log));
}

/// The tests crate, told what to test.
fn end_to_end(repo: &Repo, board: &Board, built: &Built) {
    const NAME: &str = "end to end";
    let registry = registry::program();
    if let Err(reason) = &registry {
        board.skip("end to end, OCI registry", &format!("{reason:#}"));
    }
    let Some(programs) = built.programs.as_ref().filter(|_| built.product) else { return board.blocked(NAME, NOTHING) };
    let end_to_end = repo.root().join("tests");
    let programs = programs.those(|program| program.package == end_to_end);
    let (host, components) = (host::program(repo, Midi::System, Profile::Dev), repo.components());
    let mut variables = vec![(host::PROGRAM, host.as_path()), (host::FEATURES, components.as_path())];
    variables.extend(registry.as_deref().ok().map(|registry| ("CONDUCTOR_REGISTRY", registry)));
    board.logged(NAME, |log| programs::run(&programs, &variables, log));
}

fn examples(repo: &Repo, board: &Board, built: &Built) {
    if built.product {
        board.step("examples in other languages", told(repo, repo.xtask("examples")));
    }
}

/// The API against its own document.
fn api_lane(repo: &Repo, board: &Board, built: &Built) {
    const NAME: &str = "API against its document";
    match schemathesis::program(repo) {
        Ok(_) if built.product => drop(board.step(NAME, told(repo, repo.xtask("schemathesis")))),
        Ok(_) => board.blocked(NAME, NOTHING),
        Err(reason) => board.skip(NAME, &format!("{reason:#}")),
    }
}

/// Agents of others, where they can be had.
fn agents(repo: &Repo, board: &Board, built: &Built) {
    const NAME: &str = "agents of others, MCP";
    if !built.product || built.programs.is_none() {
        return board.blocked(NAME, NOTHING);
    }
    match mcp_peers::ensure(repo) {
        Ok(_) => drop(board.step(NAME, told(repo, repo.xtask("mcp-peers")))),
        Err(error) => {
            let reason = format!("{error:#}").lines().last().unwrap_or_default().to_owned();
            board.skip(NAME, &format!("the official MCP clients can't be had here: {reason}"));
        }
    }
}

fn jack_lane(repo: &Repo, board: &Board, built: &Built) {
    const NAME: &str = "end to end, JACK";
    if let Some(reason) = jack::unavailable() {
        board.skip(NAME, reason);
        return;
    }
    let Some(program) = built.jack.as_ref().and_then(|all| all.named("jack")) else {
        return board.blocked(NAME, NOTHING);
    };
    // Beyond MIDI the two builds are the same program.
    let mut lane = repo.xtask("with-jack");
    lane.arg("--").arg(program);
    lane.env(host::PROGRAM, host::program(repo, Midi::Jack, Profile::Dev)).env(host::FEATURES, repo.components());
    board.step(NAME, lane);
}

fn vm_lane(repo: &Repo, board: &Board, built: &Built, unwanted: bool) {
    const NAME: &str = "virtual machine, ALSA";
    if unwanted {
        board.skip("virtual machine", "--no-vm");
    } else if let Some(reason) = vm::unavailable() {
        board.skip(NAME, reason);
    } else if built.product {
        let mut machine = told(repo, repo.xtask("vm"));
        machine.envs(built.programs.as_ref().and_then(|all| Some((vm::TEST, all.named("alsa")?))));
        board.step(NAME, machine);
    } else {
        board.blocked(NAME, NOTHING);
    }
}

/// Why a step can't be done whose programs could not be built.
const NOTHING: &str = "there is nothing to test";

/// A chore that is told what was built, and so builds nothing itself.
fn told(repo: &Repo, mut chore: Command) -> Command {
    let host = host::program(repo, Midi::System, Profile::Dev);
    if host.is_file() {
        chore.env(host::PROGRAM, host).env(host::FEATURES, repo.components());
    }
    chore
}

/// A workspace's folder as one says it.
fn short_name(repo: &Repo, folder: &Path) -> String {
    folder.strip_prefix(repo.root()).unwrap_or(folder).display().to_string()
}

/// A command with more arguments.
fn with<const N: usize>(mut command: Command, arguments: [&str; N]) -> Command {
    command.args(arguments);
    command
}
