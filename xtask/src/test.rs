//! Every check and test of the project, as a list of timed steps.
//!
//! The list is this file; `test/board.rs` runs and reports it. A failed step stops only those that need it.
//!
//! What is tested is built first. Then two lanes of steps run side by side: the steps of one call Cargo, which locks the
//! folder that it builds in, with little priority; those of the other run what was built, and mostly wait.

mod board;
mod changed;
#[cfg(test)]
mod documented;
#[cfg(test)]
mod one_build;
mod programs;
mod without_features;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::Result;

use crate::{
    dependencies, guest_rust,
    host::{self, Midi, Profile},
    jack, layers, llm_council, mcp_peers, model_mocks, model_sdks, process, registry,
    repo::Repo,
    schemathesis, setup, skills_ref, vm, web,
};
use board::Board;
use changed::Reach;
use process::in_background;
use programs::Programs;

/// Run every check and test of the project, and print a table.
#[derive(clap::Args)]
pub struct Args {
    /// Only what a change needs while it is being written: no docs, licences, JACK or virtual machine.
    #[arg(long)]
    fast: bool,
    /// Only what the files can reach that differ from this commit, or else from the merge base with `main`.
    #[arg(long, value_name = "COMMIT", num_args = 0..=1, require_equals = true)]
    changed: Option<Option<String>>,
    /// Leave out the virtual machine.
    #[arg(long)]
    no_vm: bool,
    /// Show what the steps print, not only those that fail.
    #[arg(long, short)]
    verbose: bool,
}

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    let reach = match &args.changed {
        None => Reach::All,
        Some(base) => Reach::since(repo, base.as_deref())?,
    };
    let board = Board::new(repo, args.verbose)?;
    let purpose = if args.fast || args.no_vm { setup::Purpose::TestWithoutVm } else { setup::Purpose::Test };
    board.here("set-up", || {
        setup::disk::ensure(repo)?;
        setup::ensure(purpose)?;
        guest_rust::ensure(repo).map(drop)
    });
    let run =
        Run { repo, board: &board, fast: args.fast, reach, guests: guests(repo)?, crates: names(repo, repo.root())? };
    run.format();
    board.here("layers", || layers::check(repo.root()).map(drop));
    let built = run.build();
    board.beside(
        || {
            run.clippy();
            if !args.fast {
                run.documentation();
                run.dependencies();
                run.engine_is_pure();
                run.without_features();
                run.fuzz_targets();
            }
            run.other_tests_of_cargo();
        },
        || {
            run.references(&built);
            run.units(&built);
            run.end_to_end(&built);
            if !args.fast {
                run.examples(&built);
                run.release(&built);
                run.skills();
                run.api(&built);
                run.agents(&built);
                run.models_of_others(&built);
                run.browser(&built);
                run.jack(&built);
                run.vm(&built, args.no_vm);
            }
        },
    );
    Ok(board.finish())
}

/// Why a step can't be done whose programs could not be built.
const NOTHING: &str = "there is nothing to test";

/// One run of the steps.
struct Run<'a> {
    repo: &'a Repo,
    board: &'a Board,
    fast: bool,
    reach: Reach,
    guests: Vec<Guests>,
    /// The names of the root workspace's crates.
    crates: BTreeSet<String>,
}

/// A workspace of guests.
struct Guests {
    folder: PathBuf,
    /// The folder below the repository.
    name: String,
    crates: BTreeSet<String>,
}

/// What was built to be run.
struct Built {
    /// The host and the features; without them no program can be tested.
    product: bool,
    /// All test programs.
    programs: Option<Programs>,
    /// The tests on JACK, where there can be any.
    jack: Option<Programs>,
    /// The web shell's pages, in the host.
    pages: bool,
}

impl Run<'_> {
    fn format(&self) {
        let format = |command| with(command, ["--all", "--check"]);
        self.board.step("format", format(self.repo.cargo("fmt")));
        for guests in &self.guests {
            self.board.step(&format!("format {}", guests.name), format(self.repo.guest_cargo("fmt", &guests.folder)));
        }
    }

    fn build(&self) -> Built {
        let (repo, board) = (self.repo, self.board);
        if !self.runs_crates() {
            let mut programs = None;
            board.logged("test programs", |log| {
                programs = Some(Programs::build(with(repo.cargo("test"), ["--package=xtask"]), log)?);
                Ok(())
            });
            let product = host::precompiled(repo, Midi::System).is_file();
            return Built { product, programs, jack: None, pages: false };
        }
        // Before the host, which embeds them.
        let pages = self.pages();
        // Before the tests: the sandbox is tested with real guests.
        let features = board.step("features", repo.xtask("features"));
        let mut programs = None;
        board.logged("test programs", |log| {
            programs = Some(Programs::build(with(repo.workspace_cargo("test"), ["--no-fail-fast"]), log)?);
            let mut others = mcp_peers::programs(repo);
            others.args([model_mocks::PROGRAM, model_sdks::PROGRAM].map(|program| format!("--bin={program}")));
            if let Some(log) = log {
                others.stderr(log.try_clone()?);
            }
            process::run(&mut others)
        });
        let jack = self.build_for_jack();
        // Last: both variants of the host have one name.
        let host = board.step("host", repo.xtask("host"));
        let product = features & host && self.precompile(Midi::System);
        if product && jack.is_some() {
            self.precompile(Midi::Jack);
        }
        Built { product, programs, jack, pages }
    }

    fn build_for_jack(&self) -> Option<Programs> {
        let wanted = !self.fast && jack::unavailable().is_none() && self.jack_is_reached();
        if !wanted || !self.board.step("host for JACK", with(self.repo.xtask("host"), ["--jack"])) {
            return None;
        }
        let mut programs = None;
        self.board.logged("test programs for JACK", |log| {
            let test = with(self.repo.workspace_cargo("test"), ["--features=conductor-tests/jack", "--test=jack"]);
            programs = Some(Programs::build(test, log)?);
            let mut instrument = web::instrument_build(self.repo);
            if let Some(log) = log {
                instrument.stderr(log.try_clone()?);
            }
            process::run(&mut instrument)
        });
        programs
    }

    fn precompile(&self, midi: Midi) -> bool {
        let name = match midi {
            Midi::System => "machine code",
            Midi::Jack => "machine code for JACK",
        };
        match host::precompile(self.repo, midi) {
            Ok(command) => self.board.step(name, command),
            Err(error) => {
                self.board.blocked(name, &format!("{error:#}"));
                false
            }
        }
    }

    /// Whether a crate has to be built and tested, beside this one.
    fn runs_crates(&self) -> bool {
        self.reach.has_any(&self.crates.iter().filter(|name| *name != "xtask").cloned().collect())
    }

    fn jack_is_reached(&self) -> bool {
        self.reach.end_to_end() || self.reach.has("conductor-jack")
    }

    fn clippy(&self) {
        let strict = |clippy| in_background(with(clippy, ["--all-targets", "--", "-Dwarnings"]));
        if self.board.reached("clippy", self.reach.has_any(&self.crates)) {
            self.board.step("clippy", strict(self.repo.workspace_cargo("clippy")));
        }
        self.each_guests("clippy", |guests| {
            strict(with(self.repo.guest_cargo("clippy", &guests.folder), ["--workspace", "--all-features"]))
        });
    }

    /// A step for each workspace of guests that is reached.
    fn each_guests(&self, name: &str, command: impl Fn(&Guests) -> Command) {
        for guests in &self.guests {
            let name = format!("{name} {}", guests.name);
            if self.board.reached(&name, self.reach.has_any(&guests.crates)) {
                self.board.step(&name, command(guests));
            }
        }
    }

    fn documentation(&self) {
        let strict = |mut doc: Command| {
            doc.arg("--no-deps").env("RUSTDOCFLAGS", "-Dwarnings");
            in_background(doc)
        };
        if self.board.reached("docs", self.reach.has_any(&self.crates)) {
            self.board.step("docs", strict(self.repo.workspace_cargo("doc")));
        }
        self.each_guests("docs", |guests| {
            strict(with(self.repo.guest_cargo("doc", &guests.folder), ["--workspace", "--all-features"]))
        });
    }

    /// Licences and sources of all dependencies, and, if cargo-deny is there, what else it finds.
    fn dependencies(&self) {
        let (repo, board) = (self.repo, self.board);
        if !board.reached("dependencies", self.reach.all()) {
            return;
        }
        let all: Vec<(&str, &Path)> = std::iter::once(("host", repo.root()))
            .chain(self.guests.iter().map(|guests| (guests.name.as_str(), guests.folder.as_path())))
            .collect();
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
    fn engine_is_pure(&self) {
        const NAME: &str = "engine without a system";
        if !self.board.reached(NAME, self.reach.has("conductor-engine")) {
            return;
        }
        match guest_rust::ensure(self.repo) {
            Ok(rust) => {
                let build = guest_rust::cargo(&rust, self.repo, "build");
                self.board.step(NAME, in_background(with(build, ["--package", "conductor-engine"])));
            }
            Err(error) => self.board.blocked(NAME, &error.to_string()),
        }
    }

    /// The program can be built without what hangs on a desktop, on gamepads and on keychains.
    fn without_features(&self) {
        const NAME: &str = "clippy without features";
        if self.board.reached(NAME, self.reach.has("conductor")) {
            self.board.step(NAME, in_background(without_features::clippy(self.repo)));
            self.board.here("libraries without features", || without_features::check_libraries(self.repo));
        }
    }

    fn fuzz_targets(&self) {
        const NAME: &str = "fuzz targets";
        if self.board.reached(NAME, self.reach.has("conductor-libfuzzer")) {
            self.board.step(NAME, in_background(with(self.repo.xtask("fuzz"), ["--check"])));
        }
    }

    /// The tests that Cargo itself builds and runs.
    fn other_tests_of_cargo(&self) {
        if self.board.reached("examples in docs", self.runs_crates()) {
            let test = with(self.repo.workspace_cargo("test"), ["--doc", "--no-fail-fast"]);
            self.board.step("examples in docs", in_background(test));
        }
        self.each_guests("unit tests", |guests| {
            in_background(with(self.repo.guest_cargo("test", &guests.folder), ["--workspace", "--no-fail-fast"]))
        });
    }

    fn references(&self, built: &Built) {
        if self.board.reached("references", self.reach.end_to_end()) {
            self.board.step("references", self.with_built(built, with(self.repo.xtask("docs"), ["--check"])));
        }
    }

    /// The tests of every crate but those that start the whole host.
    fn units(&self, built: &Built) {
        const NAME: &str = "unit tests";
        let Some(programs) = &built.programs else { return self.board.blocked(NAME, NOTHING) };
        let end_to_end = self.repo.root().join("tests");
        // The tests of this crate hold pages against sources of all others.
        let units = programs.those(|program| {
            program.package != end_to_end && (program.crate_name == "xtask" || self.reach.has(&program.crate_name))
        });
        let (host, components) = (host::program(self.repo, Midi::System, Profile::Dev), self.repo.components());
        // Not every crate has the program beside its tests that compiles features.
        let variables = [(host::FEATURES, components.as_path()), ("CONDUCTOR_COMPILER", host.as_path())];
        self.board.logged(NAME, |log| programs::run(&units, &variables, log));
    }

    /// The tests crate, with what it tests.
    fn end_to_end(&self, built: &Built) {
        const NAME: &str = "end to end";
        if !self.board.reached(NAME, self.reach.end_to_end()) {
            return;
        }
        let registry = registry::program();
        if let Err(reason) = &registry {
            self.board.skip("end to end, OCI registry", &format!("{reason:#}"));
        }
        let Some(programs) = built.programs.as_ref().filter(|_| built.product) else {
            return self.board.blocked(NAME, NOTHING);
        };
        let end_to_end = self.repo.root().join("tests");
        let programs = programs.those(|program| program.package == end_to_end);
        let (host, components) = (host::program(self.repo, Midi::System, Profile::Dev), self.repo.components());
        let mut variables = vec![(host::PROGRAM, host.as_path()), (host::FEATURES, components.as_path())];
        variables.extend(registry.as_deref().ok().map(|registry| ("CONDUCTOR_REGISTRY", registry)));
        self.board.logged(NAME, |log| programs::run(&programs, &variables, log));
    }

    fn examples(&self, built: &Built) {
        const NAME: &str = "examples in other languages";
        if built.product && self.board.reached(NAME, self.reach.has("conductor")) {
            self.board.step(NAME, self.with_built(built, self.repo.xtask("examples")));
        }
    }

    /// What is released, made of what is built by now, and tried out.
    fn release(&self, built: &Built) {
        const NAME: &str = "release";
        if built.product && self.board.reached(NAME, self.reach.end_to_end()) {
            self.board.step(NAME, with(self.repo.xtask("dist"), ["--dev"]));
        }
    }

    /// The bundled skills by the official validator.
    fn skills(&self) {
        const NAME: &str = "skills by the official validator";
        if !self.board.reached(NAME, self.reach.has("conductor-skills")) {
            return;
        }
        match skills_ref::program(self.repo) {
            Ok(_) => drop(self.board.step(NAME, self.repo.xtask("skills-ref"))),
            Err(reason) => self.board.skip(NAME, &format!("{reason:#}")),
        }
    }

    fn api(&self, built: &Built) {
        self.beside(built, "API against its document", schemathesis::program, self.repo.xtask("schemathesis"));
    }

    /// Agents of others, where they can be had.
    fn agents(&self, built: &Built) {
        const NAME: &str = "agents of others, MCP";
        if !self.board.reached(NAME, self.reach.end_to_end() || self.reach.has("conductor-mcp-fixtures")) {
            return;
        }
        if !built.product || built.programs.is_none() {
            return self.board.blocked(NAME, NOTHING);
        }
        match mcp_peers::ensure(self.repo) {
            Ok(_) => drop(self.board.step(NAME, self.with_built(built, self.repo.xtask("mcp-peers")))),
            Err(error) => {
                let reason = format!("{error:#}").lines().last().unwrap_or_default().to_owned();
                self.board.skip(NAME, &format!("the official MCP clients can't be had here: {reason}"));
            }
        }
    }

    /// The host beside programs of others, where `ensure` can have them.
    fn beside<T>(&self, built: &Built, name: &'static str, ensure: impl Fn(&Repo) -> Result<T>, chore: Command) {
        if !self.board.reached(name, self.reach.end_to_end()) {
            return;
        }
        if !built.product || built.programs.is_none() {
            return self.board.blocked(name, NOTHING);
        }
        match ensure(self.repo) {
            Ok(_) => drop(self.board.step(name, self.with_built(built, chore))),
            Err(error) => self.board.skip(name, &format!("{error:#}")),
        }
    }

    fn models_of_others(&self, built: &Built) {
        let chore = |name| self.repo.xtask(name);
        self.beside(built, "SDKs of models' vendors", model_sdks::ensure, chore("model-sdks"));
        // LiteLLM's proxy takes longer to come than to be talked with.
        self.beside(built, "models of others", model_mocks::ensure, with(chore("model-mocks"), ["--no-proxy"]));
        self.beside(built, "council beside its peer", llm_council::ensure, chore("llm-council"));
    }

    /// The web shell's pages, where they can be built. They are for whatever the host's API is.
    fn pages(&self) -> bool {
        const NAME: &str = "web shell";
        if !self.board.reached(NAME, self.reach.end_to_end()) {
            return false;
        }
        match web::ensure(self.repo) {
            Ok(()) => self.board.step(NAME, with(self.repo.xtask("web"), ["--test"])),
            Err(reason) => {
                self.board.skip(NAME, &format!("{reason:#}"));
                false
            }
        }
    }

    /// The web shell in a browser, with the host behind it.
    fn browser(&self, built: &Built) {
        const NAME: &str = "web shell in a browser";
        if !self.board.reached(NAME, self.reach.end_to_end()) {
            return;
        }
        match web::ensure(self.repo).and_then(|()| setup::ensure_browsers()) {
            Ok(()) if built.product && built.pages => {
                let mut web = self.with_built(built, with(self.repo.xtask("web"), ["--browser"]));
                if built.jack.is_some() {
                    // Beyond MIDI the two builds are the same program.
                    web.env(host::PROGRAM, host::precompiled(self.repo, Midi::Jack));
                }
                self.board.step(NAME, web);
            }
            Ok(()) => self.board.blocked(NAME, NOTHING),
            Err(reason) => {
                let reason = format!("{reason:#}").lines().map(str::trim).collect::<Vec<_>>().join(" ");
                self.board.skip(NAME, &reason);
            }
        }
    }

    fn jack(&self, built: &Built) {
        const NAME: &str = "end to end, JACK";
        if let Some(reason) = jack::unavailable() {
            return self.board.skip(NAME, reason);
        }
        if !self.board.reached(NAME, self.jack_is_reached()) {
            return;
        }
        let Some(program) = built.jack.as_ref().and_then(|all| all.named("jack")) else {
            return self.board.blocked(NAME, NOTHING);
        };
        let mut lane = self.repo.xtask("with-jack");
        lane.arg("--").arg(program);
        lane.env(host::PROGRAM, host::program(self.repo, Midi::Jack, Profile::Dev));
        lane.env(host::FEATURES, self.repo.components());
        self.board.step(NAME, lane);
    }

    fn vm(&self, built: &Built, unwanted: bool) {
        const NAME: &str = "virtual machine, ALSA";
        if unwanted {
            self.board.skip("virtual machine", "--no-vm");
        } else if let Some(reason) = vm::unavailable() {
            self.board.skip(NAME, reason);
        } else if !self.board.reached(NAME, self.reach.end_to_end()) {
        } else if let (true, Some(test)) = (built.product, built.programs.as_ref().and_then(|all| all.named("alsa"))) {
            let mut machine = self.with_built(built, self.repo.xtask("vm"));
            machine.env(vm::TEST, test);
            self.board.step(NAME, machine);
        } else {
            self.board.blocked(NAME, NOTHING);
        }
    }

    /// A chore that tests what was built, and so builds nothing itself.
    fn with_built(&self, built: &Built, mut chore: Command) -> Command {
        if built.product {
            chore.env(host::PROGRAM, host::precompiled(self.repo, Midi::System));
            chore.env(host::FEATURES, self.repo.components());
        }
        chore
    }
}

fn guests(repo: &Repo) -> Result<Vec<Guests>> {
    let all = repo.guest_workspaces()?.into_iter().map(|folder| {
        let name = folder.strip_prefix(repo.root()).unwrap_or(&folder).display().to_string();
        Ok(Guests { crates: names(repo, &folder)?, name, folder })
    });
    all.collect()
}

/// The names of a workspace's crates.
fn names(repo: &Repo, workspace: &Path) -> Result<BTreeSet<String>> {
    let packages = repo.packages(workspace)?;
    Ok(packages.iter().filter_map(|package| package["name"].as_str().map(str::to_owned)).collect())
}

/// A command with more arguments.
fn with<const N: usize>(mut command: Command, arguments: [&str; N]) -> Command {
    command.args(arguments);
    command
}
