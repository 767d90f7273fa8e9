//! schemathesis against the API: requests that fit the OpenAPI document, and some that don't, go to the TCP door; each
//! response has to be one that the document describes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{host, process, python, repo::Repo};

/// The version that is proven; another may find more.
const PACKAGE: &str = "schemathesis==4.32.5";
/// How long the host may take until its door is open: it may have to compile every feature.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// What a stream answers never ends.
const STREAMS: [&str; 2] = ["/v1/events", "/v1/stream"];
/// Here a command may end the host; so it is asked with a token that may not.
const COMMANDS: &str = "/v1/ipc";
/// Here a request may reach a registry, or the keyring of the user who runs this.
const BEYOND_THE_HOME: [&str; 3] = ["/v1/install", "/v1/install/look", "/v1/secrets/{id}"];

/// Have schemathesis ask the API all kinds of things.
#[derive(clap::Args)]
pub struct Args {
    /// Cases for each operation.
    #[arg(long, default_value_t = 50)]
    cases: u32,
    /// The same cases again.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The program; installed into the target folder if it is not there.
///
/// # Errors
/// Where there is no Python, or PyPI can't be reached.
pub fn program(repo: &Repo) -> Result<PathBuf> {
    Ok(python::environment(&repo.target().join("schemathesis"), &[PACKAGE])?.join("schemathesis"))
}

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    let program = program(repo)?;
    let conductor = host::ready(repo)?;
    let home = repo.target().join(format!("schemathesis-home-{}", std::process::id()));
    fs::create_dir_all(&home).with_context(|| format!("cannot create {}", home.display()))?;
    let played = play(repo, &program, &conductor, &home, &args);
    // In any case.
    let _ = fs::remove_dir_all(&home);
    played?;
    Ok(ExitCode::SUCCESS)
}

fn play(repo: &Repo, program: &Path, conductor: &Path, home: &Path, args: &Args) -> Result<()> {
    fs::write(home.join("config.toml"), "[[modes]]\nname = \"Play\"\n\n[[modes]]\nname = \"Mix\"\n")?;
    let mut host = Command::new(conductor);
    host.arg("--home").arg(home).args(["run", "--http", "0"]).env("CONDUCTOR_FEATURES", repo.components());
    let log = fs::File::create(home.join("log"))?;
    let mut host = Running(host.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?);
    let url = host.door(home)?;
    let document = home.join("openapi.json");
    fs::write(&document, process::read(Command::new(conductor).arg("openapi"))?)?;
    let ask = |token: &str, paths: &[&str]| -> Result<()> {
        let token = fs::read_to_string(home.join(token)).with_context(|| format!("there is no {token}"))?;
        let mut command = Command::new(program);
        command.arg("--config-file").arg(repo.root().join("tests/schemathesis.toml")).arg("run").arg(&document);
        command.args(["--url", &url, "--no-color", "-H", &format!("Authorization: Bearer {token}")]).args(paths);
        command.args(["-n", &args.cases.to_string(), "--seed", &args.seed.to_string()]);
        // It writes down what it has learned.
        process::run(command.current_dir(home))
    };
    let [events, stream] = STREAMS;
    let excluded = [events, stream, COMMANDS].into_iter().chain(BEYOND_THE_HOME);
    let others: Vec<&str> = excluded.flat_map(|path| ["--exclude-path", path]).collect();
    ask("api.token", &others)?;
    ask("api-control.token", &["--include-path", COMMANDS])?;
    if let Some(end) = host.0.try_wait()? {
        bail!("the host has ended ({end}):\n{}", fs::read_to_string(home.join("log")).unwrap_or_default());
    }
    Ok(())
}

/// The host. It ends with this.
struct Running(Child);

impl Running {
    /// Where its door is, as soon as it is open.
    fn door(&mut self, home: &Path) -> Result<String> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let told = fs::read_to_string(home.join("api.json")).ok();
            let told = told.and_then(|told| serde_json::from_str::<Value>(&told).ok());
            if let Some(url) = told.as_ref().and_then(|told| told["url"].as_str()) {
                return Ok(url.to_owned());
            }
            if self.0.try_wait()?.is_some() || Instant::now() > deadline {
                bail!("the host did not start:\n{}", fs::read_to_string(home.join("log")).unwrap_or_default());
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
