//! Every check and test of the project, as a list of timed steps.
//!
//! The list is this file; `test/board.rs` runs and reports it. A failed step stops only those that need it.

mod board;
#[cfg(test)]
mod documented;

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
    let mut board = Board::new(repo, args.verbose)?;
    let purpose = if args.fast || args.no_vm { setup::Purpose::TestWithoutVm } else { setup::Purpose::Test };
    board.here("set-up", || {
        setup::disk::ensure(repo)?;
        setup::ensure(purpose)?;
        guest_rust::ensure(repo).map(drop)
    });
    let guests = repo.guest_workspaces()?;
    let guests: Vec<_> = guests.iter().map(|folder| (short_name(repo, folder), folder.as_path())).collect();

    style(repo, &mut board, &guests);
    board.here("layers", || layers::check(repo.root()).map(drop));
    if !args.fast {
        documentation(repo, &mut board, &guests);
        dependencies(repo, &mut board, &guests);
        engine_is_pure(repo, &mut board);
        // They are a workspace of their own, which nothing else builds.
        board.step("fuzz targets", with(repo.xtask("fuzz"), ["--check"]));
    }
    // Before the unit tests: the sandbox is tested with real guests.
    let built = board.step("features", repo.xtask("features")) & board.step("host", repo.xtask("host"));
    board.step("references", with(repo.xtask("docs"), ["--check"]));
    units(repo, &mut board, &guests);
    if built && !args.fast {
        board.step("examples in other languages", repo.xtask("examples"));
    }
    if let Err(reason) = registry::program() {
        board.skip("end to end, OCI registry", &format!("{reason:#}"));
    }
    if built {
        board.step("end to end", end_to_end(repo, Midi::System));
    } else {
        board.blocked("end to end", "there is nothing to test");
    }
    if !args.fast {
        api_lane(repo, &mut board, built);
        agents(repo, &mut board, built);
        jack_lane(repo, &mut board, built);
        if args.no_vm {
            board.skip("virtual machine", "--no-vm");
        } else {
            vm_lane(repo, &mut board, built);
        }
    }
    Ok(board.finish())
}

fn style(repo: &Repo, board: &mut Board, guests: &[(String, &Path)]) {
    let format = |command| with(command, ["--all", "--check"]);
    board.step("format", format(repo.cargo("fmt")));
    for (name, folder) in guests {
        board.step(&format!("format {name}"), format(repo.guest_cargo("fmt", folder)));
    }
    board.step("clippy", with(repo.cargo("clippy"), ["--all-targets", "--", "-Dwarnings"]));
    for (name, folder) in guests {
        let clippy = repo.guest_cargo("clippy", folder);
        board.step(
            &format!("clippy {name}"),
            with(clippy, ["--workspace", "--all-targets", "--all-features", "--", "-Dwarnings"]),
        );
    }
}

fn documentation(repo: &Repo, board: &mut Board, guests: &[(String, &Path)]) {
    let strict = |mut doc: Command| {
        doc.arg("--no-deps").env("RUSTDOCFLAGS", "-Dwarnings");
        doc
    };
    board.step("docs", strict(repo.cargo("doc")));
    for (name, folder) in guests {
        board.step(
            &format!("docs {name}"),
            strict(with(repo.guest_cargo("doc", folder), ["--workspace", "--all-features"])),
        );
    }
}

/// Licences and sources of all dependencies, and, if cargo-deny is there, what else it finds.
fn dependencies(repo: &Repo, board: &mut Board, guests: &[(String, &Path)]) {
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
fn engine_is_pure(repo: &Repo, board: &mut Board) {
    const NAME: &str = "engine without a system";
    match guest_rust::ensure(repo) {
        Ok(rust) => {
            board.step(NAME, with(guest_rust::cargo(&rust, repo, "build"), ["--package", "conductor-engine"]));
        }
        Err(error) => board.blocked(NAME, &error.to_string()),
    }
}

fn units(repo: &Repo, board: &mut Board, guests: &[(String, &Path)]) {
    let others = ["--workspace", "--no-fail-fast", "--exclude=conductor-tests", "--exclude=conductor-bench"];
    board.step("unit tests", with(repo.cargo("test"), others));
    for (name, folder) in guests {
        board.step(
            &format!("unit tests {name}"),
            with(repo.guest_cargo("test", folder), ["--workspace", "--no-fail-fast"]),
        );
    }
}

/// The tests crate, told what to test.
fn end_to_end(repo: &Repo, midi: Midi) -> Command {
    let mut test = repo.cargo("test");
    test.args(["--package", "conductor-tests", "--no-fail-fast"])
        // Beyond MIDI the two builds are the same program.
        .args((midi == Midi::Jack).then_some(["--features=jack", "--test=jack"]).into_iter().flatten())
        .env("CONDUCTOR_BIN", host::program(repo, midi, Profile::Dev))
        .env("CONDUCTOR_FEATURES", repo.components());
    if let Ok(registry) = registry::program() {
        test.env("CONDUCTOR_REGISTRY", registry);
    }
    test
}

/// The API against its own document.
fn api_lane(repo: &Repo, board: &mut Board, built: bool) {
    const NAME: &str = "API against its document";
    match schemathesis::program(repo) {
        Ok(_) if built => drop(board.step(NAME, repo.xtask("schemathesis"))),
        Ok(_) => board.blocked(NAME, "there is nothing to test"),
        Err(reason) => board.skip(NAME, &format!("{reason:#}")),
    }
}

/// Agents of others, where they can be had.
fn agents(repo: &Repo, board: &mut Board, built: bool) {
    const NAME: &str = "agents of others, MCP";
    if !built {
        return board.blocked(NAME, "there is nothing to test");
    }
    match mcp_peers::ensure(repo) {
        Ok(_) => {
            let mut peers = repo.xtask("mcp-peers");
            peers.env("CONDUCTOR_BIN", host::program(repo, Midi::System, Profile::Dev));
            board.step(NAME, peers);
        }
        Err(error) => {
            let reason = format!("{error:#}").lines().last().unwrap_or_default().to_owned();
            board.skip(NAME, &format!("the official MCP clients can't be had here: {reason}"));
        }
    }
}

fn jack_lane(repo: &Repo, board: &mut Board, built: bool) {
    const NAME: &str = "end to end, JACK";
    if let Some(reason) = jack::unavailable() {
        board.skip(NAME, reason);
        return;
    }
    if built && board.step("host for JACK", with(repo.xtask("host"), ["--jack"])) {
        let inner = end_to_end(repo, Midi::Jack);
        let mut lane = repo.xtask("with-jack");
        lane.arg("--").arg(inner.get_program()).args(inner.get_args());
        lane.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        board.step(NAME, lane);
    } else {
        board.blocked(NAME, "there is nothing to test");
    }
}

fn vm_lane(repo: &Repo, board: &mut Board, built: bool) {
    const NAME: &str = "virtual machine, ALSA";
    if let Some(reason) = vm::unavailable() {
        board.skip(NAME, reason);
    } else if built {
        board.step(NAME, repo.xtask("vm"));
    } else {
        board.blocked(NAME, "there is nothing to test");
    }
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
