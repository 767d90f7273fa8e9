//! Conductor's chores, as `cargo xtask <chore>`.
//!
//! Two of them are all that a newcomer needs: `cargo xtask demo` and `cargo xtask test`. Every chore installs
//! what it lacks by itself, after saying what and why (see `setup`).

mod bench;
mod demo;
mod dependencies;
mod dist;
mod docs;
mod examples;
mod features;
mod fuzz;
mod guest_compiler;
mod guest_rust;
mod host;
mod jack;
mod kills;
mod layers;
mod llm_council;
mod mcp_peers;
mod model_mocks;
mod model_sdks;
mod mutants;
mod python;
mod registry;
mod repo;
mod schemathesis;
mod setup;
mod siege;
mod skills_ref;
mod soak;
mod test;
mod vm;
mod web;

use std::{ffi::OsString, process::ExitCode};

use anyhow::Result;
use clap::{Parser, Subcommand};
use conductor_feature_build::{cargo, process};

use repo::Repo;

/// Conductor's chores. Start with `cargo xtask demo`; prove the whole with `cargo xtask test`.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    /// Refuse to change a Cargo.lock (for CI).
    #[arg(long, global = true)]
    locked: bool,
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Install the system packages that the other chores need.
    Setup(setup::Args),
    /// Build all features, and the tests' guests, into WebAssembly components.
    Features(features::Args),
    /// Build the examples in other languages, where those are there.
    Examples(examples::Args),
    /// Build the host and print the program's path.
    Host(host::Args),
    /// Write docs/contract.md, docs/mappings.md and docs/openapi.json from what they are about.
    Docs(docs::Args),
    /// Build what the demonstration shows, and run it.
    Demo(demo::Args),
    /// Build what is released: an archive with the program, the bundled features and their code.
    Dist(dist::Args),
    /// Run every check and test of the project, and print a table.
    Test(test::Args),
    /// Run a command in a throw-away virtual machine that has ALSA, USB-MIDI gadgets and game pads.
    Vm(vm::Args),
    /// Run a command beside a private JACK server.
    WithJack(jack::Args),
    /// Run the official MCP conformance suite, inspector and Python client against the host.
    McpPeers(mcp_peers::Args),
    /// Run the benchmarks; arguments go to the benchmark program.
    Bench(bench::Args),
    /// Fuzz what reads bytes, rules and gestures, with libFuzzer.
    Fuzz(fuzz::Args),
    /// Send the API requests that fit its OpenAPI document, and some that don't, with schemathesis.
    Schemathesis(schemathesis::Args),
    /// Check the bundled skills with the official validator of Agent Skills.
    SkillsRef(skills_ref::Args),
    /// Run a host at full speed for minutes, with faults, and see that nothing is lost or stuck.
    Soak(soak::Args),
    /// Check who imports whom in the source against the table in docs/architecture.md, and print it with code lines.
    Layers(layers::Args),
    /// Take defences out one at a time, and see that a test fails without each.
    Mutants(mutants::Args),
    /// Besiege a host with clients that misbehave, and see that its owner and its show notice nothing.
    Siege(siege::Args),
    /// Kill hosts at random moments of turns, and see that every conversation opens with all that was shown.
    Kills(kills::Args),
    /// Check and build the pages of the web shell, with Node; the next build of the host embeds them.
    Web(web::Args),
    /// Compare what the SDKs of models' vendors make of answers with what the host makes of them.
    ModelMocks(model_mocks::Args),
    ModelSdks(model_sdks::Args),
    /// Compare the council with another implementation of the same decision record.
    LlmCouncil(llm_council::Args),
}

fn main() -> ExitCode {
    if let Some(compiled) = fuzz::instrumented().or_else(guest_compiler::called) {
        return compiled.unwrap_or(ExitCode::FAILURE);
    }
    run(Args::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(args: Args) -> Result<ExitCode> {
    let repo = Repo::open(args.locked)?;
    match args.chore {
        Chore::Setup(args) => setup::run(&repo, args),
        Chore::Features(args) => features::run(&repo, args),
        Chore::Examples(args) => examples::run(&repo, args),
        Chore::Host(args) => host::run(&repo, args),
        Chore::Docs(args) => docs::run(&repo, args),
        Chore::Demo(args) => demo::run(&repo, args),
        Chore::Dist(args) => dist::run(&repo, args),
        Chore::Test(args) => test::run(&repo, args),
        Chore::Vm(args) => vm::run(&repo, args),
        Chore::WithJack(args) => jack::run(args),
        Chore::McpPeers(args) => mcp_peers::run(&repo, args),
        Chore::Bench(args) => bench::run(&repo, args),
        Chore::Fuzz(args) => fuzz::run(&repo, args),
        Chore::Schemathesis(args) => schemathesis::run(&repo, args),
        Chore::SkillsRef(args) => skills_ref::run(&repo, args),
        Chore::Soak(args) => soak::run(&repo, args),
        Chore::Layers(args) => layers::run(&repo, args),
        Chore::Mutants(args) => mutants::run(&repo, args),
        Chore::Siege(args) => siege::run(&repo, args),
        Chore::Kills(args) => kills::run(&repo, args),
        Chore::ModelMocks(args) => model_mocks::run(&repo, args),
        Chore::ModelSdks(args) => model_sdks::run(&repo, args),
        Chore::LlmCouncil(args) => llm_council::run(&repo, args),
        Chore::Web(args) => web::run(&repo, args),
    }
}

/// A command line given after `--`, as program and arguments.
fn split(mut command: Vec<OsString>) -> Option<(OsString, Vec<OsString>)> {
    if command.is_empty() {
        return None;
    }
    let program = command.remove(0);
    Some((program, command))
}
