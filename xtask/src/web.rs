//! The web shell's pages: what is in `host/web/ui` is checked and built with Node into `host/web/ui/dist`, which the next
//! build of the host embeds. Without Node everything else is built all the same, and the shell says that it has no pages.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::SystemTime,
};

use anyhow::{Context, Result, bail};

use crate::{
    host::{self, Midi, Profile},
    jack, process,
    repo::Repo,
    setup,
};

/// The package, below the repository.
const UI: &str = "host/web/ui";
/// The pages, below the package.
pub const PAGES: &str = "dist";
/// What its types are generated from.
const DOCUMENT: &str = "docs/openapi.json";
/// The oldest Node that its tools run on.
const NODE: (u32, u32) = (20, 19);

/// Check and build the pages of the web shell, with Node; the next build of the host embeds them.
#[derive(clap::Args)]
pub struct Args {
    /// Run their unit tests, too.
    #[arg(long)]
    test: bool,
    /// Run their tests in Chromium and in Firefox against a host instead, with MIDI through a JACK server where there can be
    /// one. All of this is installed if it is not there.
    #[arg(long, conflicts_with = "test")]
    browser: bool,
    /// Make the pictures in docs/pictures anew instead, in Chromium.
    #[arg(long, conflicts_with_all = ["test", "browser"])]
    pictures: bool,
    /// Measure what open shells cost a host instead, in Chromium. `CONDUCTOR_BIN` names the host: an optimised one says more.
    #[arg(long, conflicts_with_all = ["test", "browser", "pictures"])]
    figures: bool,
}

/// The package.
pub fn folder(repo: &Repo) -> PathBuf {
    repo.root().join(UI)
}

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    node()?;
    let in_browsers = |script, browsers| in_browsers(repo, &folder(repo), script, browsers);
    if args.browser {
        return in_browsers("browser", &BROWSERS);
    }
    if args.pictures {
        return in_browsers("pictures", &BROWSERS[..1]);
    }
    if args.figures {
        return in_browsers("figures", &BROWSERS[..1]);
    }
    println!("{}", build(repo, args.test)?.display());
    Ok(ExitCode::SUCCESS)
}

/// Checks the pages, and with `test` tests them, and builds them where they are older than what they are made of. Returns
/// their folder.
pub fn build(repo: &Repo, test: bool) -> Result<PathBuf> {
    let ui = folder(repo);
    let dist = ui.join(PAGES);
    let built = is_built(repo.root())?;
    if built && !test {
        return Ok(dist);
    }
    install(&ui)?;
    npm(&ui, &["run", "check"])?;
    if test {
        npm(&ui, &["run", "test"])?;
    }
    if !built {
        if !dist.is_dir() {
            // The host's build looks at this file while there is no folder to look at; see `host/web/build.rs`.
            let watched = File::options().append(true).open(ui.join("package.json"))?;
            watched.set_modified(SystemTime::now()).context("cannot have the host built anew")?;
        }
        npm(&ui, &["run", "build"])?;
    }
    Ok(dist)
}

/// Makes sure that this machine has what the pages are built with: Node, and the packages that npm installs. A mistake in
/// the list of these is no reason to do without the pages, and is said when they are built.
///
/// # Errors
/// What is missing, and how to get it.
pub fn ensure(repo: &Repo) -> Result<()> {
    node()?;
    let Err(error) = install(&folder(repo)) else { return Ok(()) };
    let said = format!("{error:#}");
    match npm_code(&said) {
        Some(code) if !OURS.contains(&code) => bail!("npm can't install the tools of the web shell here: {code}"),
        _ => Ok(()),
    }
}

/// What npm calls mistakes of `package.json` and its lock file. Everything else is about this machine and its network.
const OURS: [&str; 5] = ["EUSAGE", "EJSONPARSE", "EINTEGRITY", "ETARGET", "EBADENGINE"];

/// The code of an error of npm's, such as `ECONNREFUSED`, in what it printed.
fn npm_code(said: &str) -> Option<&str> {
    let codes = ["npm error code ", "npm ERR! code "];
    said.lines().find_map(|line| codes.iter().find_map(|before| line.split_once(before))).map(|(_, code)| code.trim())
}

/// Makes sure that there is a Node that can build the pages.
fn node() -> Result<()> {
    const ADVICE: &str = "install Node 20.19 or later with npm, from https://nodejs.org or your system's packages";
    for program in ["node", "npm"] {
        process::find(program).with_context(|| format!("{program} is not installed; {ADVICE}"))?;
    }
    let said = process::read(Command::new("node").arg("--version"))?;
    if version(&said).is_none_or(|version| version < NODE) {
        bail!("node is {}, which is too old; {ADVICE}", said.trim());
    }
    Ok(())
}

/// The first two numbers of `v20.19.2`.
fn version(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.trim().strip_prefix('v')?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Installs the package's dependencies, as its lock file has them.
fn install(ui: &Path) -> Result<()> {
    let (lock, installed) = (ui.join("package-lock.json"), ui.join("node_modules/.package-lock.json"));
    if modified(&installed).is_ok_and(|installed| modified(&lock).is_ok_and(|lock| lock <= installed)) {
        return Ok(());
    }
    let mut ci = Command::new("npm");
    ci.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(ui);
    // Without a network it is not to try for minutes.
    ci.args(["--fetch-retries=1", "--fetch-retry-mintimeout=2000", "--fetch-timeout=60000"]);
    process::read(&mut ci).map(drop).context("the tools of the web shell can't be had")
}

fn npm(ui: &Path, arguments: &[&str]) -> Result<()> {
    process::run(Command::new("npm").args(arguments).current_dir(ui).stdin(Stdio::null()))
}

/// Whether the pages are there, and newer than everything that they are made of.
fn is_built(root: &Path) -> Result<bool> {
    let ui = root.join(UI);
    let Ok(built) = modified(&ui.join("dist/index.html")) else { return Ok(false) };
    let mut folders = vec![ui];
    let mut newest = modified(&root.join(DOCUMENT))?;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            match path.file_name().and_then(|name| name.to_str()) {
                // The last one is generated from the document with every check.
                Some("node_modules" | "dist" | "browser" | "openapi.d.ts") => {}
                _ if path.is_dir() => folders.push(path),
                _ => newest = newest.max(modified(&path)?),
            }
        }
    }
    Ok(newest <= built)
}

fn modified(path: &Path) -> Result<SystemTime> {
    fs::metadata(path).and_then(|about| about.modified()).with_context(|| format!("cannot look at {}", path.display()))
}

/// What `CONDUCTOR_BROWSER` may be. Pictures and figures are made in the first.
const BROWSERS: [&str; 2] = ["chromium", "firefox"];

/// Says where the program is that plays MIDI to the tests. Without it they say which of them they leave out.
const INSTRUMENT: &str = "CONDUCTOR_INSTRUMENT";

/// Runs a script of the package in each of these browsers, against the host of this repository.
fn in_browsers(repo: &Repo, ui: &Path, script: &str, browsers: &[&str]) -> Result<ExitCode> {
    setup::ensure_browsers()?;
    install(ui)?;
    let with_midi = script == "browser" && jack::unavailable().is_none();
    let (instrument, server) = if with_midi {
        setup::ensure_jack()?;
        (Some(instrument(repo)?), Some(jack::Server::start()?))
    } else {
        (None, None)
    };
    let midi = if with_midi { Midi::Jack } else { Midi::System };
    let conductor = env::var_os(host::PROGRAM)
        .map_or_else(|| host::build(repo, midi, Profile::Dev), |program| Ok(PathBuf::from(program)))?;
    let features = env::var_os(host::FEATURES).map_or_else(|| repo.components(), PathBuf::from);
    for browser in browsers {
        let mut npm = Command::new("npm");
        npm.args(["run", script]).current_dir(ui).stdin(Stdio::null());
        npm.env(host::PROGRAM, &conductor).env(host::FEATURES, &features).env("CONDUCTOR_BROWSER", browser);
        npm.envs(instrument.iter().map(|program| (INSTRUMENT, program)));
        let status = match &server {
            Some(server) => server.run(&mut npm),
            None => npm.status(),
        };
        let status = status.context("cannot start npm")?;
        if !status.success() {
            bail!("the tests failed in {browser} ({status})");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds the program that plays MIDI through JACK, and returns its path.
fn instrument(repo: &Repo) -> Result<PathBuf> {
    process::run(&mut instrument_build(repo))?;
    Ok(repo.target().join("debug").join(format!("instrument{}", env::consts::EXE_SUFFIX)))
}

/// The command that builds it.
pub fn instrument_build(repo: &Repo) -> Command {
    let mut build = repo.workspace_cargo("build");
    build.args(["--features=conductor-tests/jack", "--bin=instrument"]);
    build
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_old_node_is_told_from_a_new_one() {
        assert!(version("v20.18.9\n").unwrap() < NODE && version("v18.19.0").unwrap() < NODE);
        assert!(version("v20.19.0").unwrap() >= NODE && version("v24.1.0").unwrap() >= NODE);
        assert_eq!(version("20"), None);
    }

    #[test]
    fn a_lock_file_that_does_not_fit_is_told_from_a_network_that_is_not_there() {
        let away = "`npm ci` failed (exit status: 1): npm error code ECONNREFUSED\nnpm error syscall connect\n";
        assert!(!OURS.contains(&npm_code(away).unwrap()));
        let old = "`npm ci` failed (exit status: 1): npm ERR! code EUSAGE\nnpm ERR! \n";
        assert!(OURS.contains(&npm_code(old).unwrap()));
        assert_eq!(npm_code("cannot start `npm ci`"), None);
    }
}
