//! Fuzzing: libFuzzer on a target of `tests/fuzz`, with the toolchain that is there.
//!
//! Only the fuzzed crates are instrumented. To need no unstable flag for that, this program is also Cargo's
//! `RUSTC_WRAPPER`, which [adds](instrumented) the flags for those crates.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};

use crate::{process, repo::Repo, setup};

/// Fuzz a target with libFuzzer.
#[derive(clap::Args)]
pub struct Args {
    /// The target, a folder of tests/fuzz/corpus; without one, all of them, one after the other.
    target: Option<String>,
    /// How long, for each.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Afterwards, keep a small corpus of what was found in the repository.
    #[arg(long)]
    keep: bool,
    /// Only see that the targets can be built for libFuzzer. Fuzzes nothing.
    #[arg(long, conflicts_with_all = ["target", "keep", "rest"])]
    check: bool,
    /// Further arguments for libFuzzer.
    #[arg(last = true)]
    rest: Vec<OsString>,
}

/// Targets that need nothing but the engine, which is built in seconds.
const IN_THE_ENGINE: [&str; 5] = ["expressions", "gestures", "midi", "rules", "timeline"];
/// Longer inputs than this find nothing that shorter ones don't.
const MAX_INPUT_LENGTH: &str = "-max_len=1024";
/// What a corpus in the repository may take, in bytes.
const MAX_CORPUS_BYTES: u64 = 8 * 1024;

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    setup::ensure(setup::Purpose::Build)?;
    if args.check {
        process::run(repo.workspace_cargo("check").arg("--bin=conductor-libfuzzer"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let corpora = repo.root().join("tests/fuzz/corpus");
    let mut all = Vec::new();
    for entry in fs::read_dir(&corpora).with_context(|| format!("cannot list {}", corpora.display()))? {
        all.push(entry?.file_name().to_string_lossy().into_owned());
    }
    all.sort();
    let chosen = match args.target {
        None => all,
        Some(name) if all.contains(&name) => vec![name],
        Some(name) => bail!("there is no target {name}; there are {}", all.join(", ")),
    };
    let program = build(repo, chosen.iter().any(|name| !IN_THE_ENGINE.contains(&name.as_str())))?;
    for name in chosen {
        let fuzzer =
            Fuzzer { program: &program, kept: corpora.join(&name), found: folder(repo, "corpus", &name)?, name };
        fuzzer.fuzz(&folder(repo, "artifacts", &fuzzer.name)?, args.seconds, &args.rest)?;
        if args.keep {
            fuzzer.keep(&folder(repo, "kept", &fuzzer.name)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// `target/fuzz/<what>/<target>`.
fn folder(repo: &Repo, what: &str, name: &str) -> Result<PathBuf> {
    let folder = target(repo).join(what).join(name);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

fn target(repo: &Repo) -> PathBuf {
    repo.target().join("fuzz")
}

/// Builds the program and returns its path.
fn build(repo: &Repo, host: bool) -> Result<PathBuf> {
    let machine = this_machine()?;
    let mut build = repo.cargo("build");
    build
        .args(["--package=conductor-libfuzzer", "--profile=fuzz"])
        // What is instrumented does not lie beside what is not.
        .env("CARGO_TARGET_DIR", target(repo))
        // Named, so that what the compiler itself loads is built apart.
        .args(["--target", &machine])
        .args(host.then_some("--features=host"))
        .env("RUSTC_WRAPPER", repo.xtask_program())
        .env(WRAPPER, "1");
    process::run(&mut build)?;
    let program = format!("conductor-libfuzzer{}", env::consts::EXE_SUFFIX);
    Ok(target(repo).join(machine).join("fuzz").join(program))
}

/// What the compiler calls this machine.
fn this_machine() -> Result<String> {
    let told = process::read(Command::new("rustc").arg("-vV"))?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.with_context(|| format!("rustc does not say what machine it runs on:\n{told}"))?.to_owned())
}

struct Fuzzer<'a> {
    program: &'a Path,
    name: String,
    /// The corpus in the repository.
    kept: PathBuf,
    /// The corpus that grows.
    found: PathBuf,
}

impl Fuzzer<'_> {
    fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command
            .env("CONDUCTOR_FUZZ_TARGET", &self.name)
            .arg(MAX_INPUT_LENGTH)
            .arg("-timeout=10")
            .arg("-rss_limit_mb=2048");
        command
    }

    fn fuzz(&self, artifacts: &Path, seconds: u32, rest: &[OsString]) -> Result<()> {
        let mut command = self.command();
        command
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .arg("-print_final_stats=1")
            .args(rest)
            .args([&self.found, &self.kept]);
        process::run(&mut command).with_context(|| {
            format!(
                "{}: the input is in {}; run it again with `cargo xtask fuzz {} -- -runs=1 FILE`",
                self.name,
                artifacts.display(),
                self.name
            )
        })
    }

    /// Replaces the corpus in the repository by the inputs that reach most of what all that were found reach,
    /// as far as there is room.
    fn keep(&self, fresh: &Path) -> Result<()> {
        fs::remove_dir_all(fresh).and_then(|()| fs::create_dir_all(fresh))?;
        let mut command = self.command();
        command.arg("-set_cover_merge=1").args([fresh, &self.found, &self.kept]);
        process::run(&mut command)?;
        let mut files = Vec::new();
        for entry in fs::read_dir(fresh)? {
            let entry = entry?;
            let about = entry.metadata()?;
            files.push((about.modified()?, about.len(), entry.path()));
        }
        // libFuzzer writes first what reaches most beyond those before it.
        files.sort();
        fs::remove_dir_all(&self.kept).and_then(|()| fs::create_dir_all(&self.kept))?;
        let mut room = MAX_CORPUS_BYTES;
        for (_, length, file) in &files {
            let (Some(left), Some(name)) = (room.checked_sub(*length), file.file_name()) else { break };
            fs::copy(file, self.kept.join(name))?;
            room = left;
        }
        println!("{}: {} bytes in {}", self.name, MAX_CORPUS_BYTES - room, self.kept.display());
        Ok(())
    }
}

/// Set for the builds in which this program is the compiler's wrapper.
const WRAPPER: &str = "CONDUCTOR_XTASK_IS_RUSTC";

/// What is instrumented, beside all crates of ours: what reads bytes for us.
const INSTRUMENTED: [&str; 12] = [
    "anthropic",
    "gemini",
    "model_wire",
    "nom",
    "openai",
    "openai_compatible",
    "rosc",
    "serde_spanned",
    "toml",
    "toml_datetime",
    "toml_parser",
    "winnow",
];

/// The compiler, if this program was called as its wrapper: with the flags that a fuzzer needs, for the crates
/// that are fuzzed. The same crates in procedural macros are left alone: the compiler loads those, and is no fuzzer.
pub fn instrumented() -> Option<Result<ExitCode>> {
    env::var_os(WRAPPER)?;
    let mut arguments = env::args_os().skip(1);
    let mut rustc = Command::new(arguments.next()?);
    let arguments: Vec<OsString> = arguments.collect();
    let named = arguments.windows(2).find(|pair| pair[0] == "--crate-name").and_then(|pair| pair[1].to_str());
    let is_loaded = !arguments.iter().any(|argument| argument == "--target");
    rustc.args(&arguments);
    if !is_loaded && named.is_some_and(|name| name.starts_with("conductor_") || INSTRUMENTED.contains(&name)) {
        rustc.args(["-Cpasses=sancov-module", "-Ccodegen-units=1"]);
        let coverage = ["level=4", "inline-8bit-counters", "pc-table", "trace-compares"];
        rustc.args(coverage.map(|what| format!("-Cllvm-args=-sanitizer-coverage-{what}")));
    }
    Some(process::become_command(&mut rustc))
}
