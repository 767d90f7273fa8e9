//! A throw-away virtual machine for what this machine's kernel may not have: ALSA's sequencer, USB-MIDI
//! devices that can be plugged and unplugged, game pads.
//!
//! It runs Debian's kernel, and its root is this machine's own `/`, read-only below an overlay in memory: every
//! program built here runs there as it is, and its writes are discarded afterwards. Results are what the
//! command prints, and its exit status.

mod cpio;
mod image;
mod kernel;
mod machine;
mod qemu;

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{
    cargo, features,
    host::{self, Midi, Profile},
    process::{self, quote},
    repo::Repo,
    setup::{self, apt, unpacked},
};
use qemu::Qemu;

/// Run a command in a throw-away virtual machine that has ALSA, USB-MIDI gadgets and game pads.
///
/// The machine sees this machine's files, read-only; what it writes is discarded.
#[derive(clap::Args)]
pub struct Args {
    /// Seconds until the machine is switched off.
    #[arg(long, default_value_t = 300)]
    timeout: u64,
    /// Build the machine's image anew, with the kernel package of today.
    #[arg(long)]
    fresh: bool,
    /// Only set controllers up, from the cable to the light, and print the steps and the seconds.
    #[arg(long)]
    setting_up: bool,
    /// The command; the end-to-end tests on ALSA if not given.
    #[arg(last = true)]
    command: Vec<OsString>,
}

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    if let Some(reason) = unavailable() {
        bail!("no virtual machine: {reason}");
    }
    ensure()?;
    let job = if args.command.is_empty() { alsa_tests(repo, args.setting_up)? } else { Job::new(args.command) };
    let image = image::Image::ready(&unpacked::cache()?.join("vm"), args.fresh)?;
    let status = machine::run(&Qemu::find()?, &image, &job.script()?, Duration::from_secs(args.timeout))?;
    Ok(ExitCode::from(status))
}

/// Why there can be no such machine on this one, if so.
pub fn unavailable() -> Option<&'static str> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Some("it shares this machine's files and programs, which must be Linux on x86-64");
    }
    if !apt::available() {
        return Some("its kernel is a Debian package, and there is no apt-get here to fetch it with");
    }
    None
}

/// Makes sure that there is a QEMU, where there can be such a machine at all.
pub fn ensure() -> Result<()> {
    if unavailable().is_none() {
        Qemu::find()?;
    }
    Ok(())
}

/// What is to run inside, one after the other as long as each succeeds, with its arguments.
struct Job {
    commands: Vec<Vec<OsString>>,
    variables: Vec<(String, OsString)>,
}

impl Job {
    fn new(command: Vec<OsString>) -> Self {
        let told = |name: &str| {
            name.starts_with("CONDUCTOR_") || ["PATH", "HOME", "RUST_BACKTRACE", "RUST_LOG"].contains(&name)
        };
        let variables = env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let mut variables: Vec<_> = variables.filter(|(name, _)| told(name)).collect();
        variables.push(("CONDUCTOR_VM".into(), "1".into()));
        Self { commands: vec![command], variables }
    }

    /// As a shell script that starts in our own folder.
    fn script(&self) -> Result<String> {
        let word = |value: &OsString| value.to_str().map(quote).context("the virtual machine's command must be UTF-8");
        let folder = word(&env::current_dir()?.into_os_string())?;
        let mut script = format!("cd {folder} || exit 125\n");
        for (name, value) in &self.variables {
            script += &format!("export {name}={}\n", word(value)?);
        }
        for command in &self.commands {
            let command: Result<Vec<_>> = command.iter().map(word).collect();
            script += &format!("{} || exit\n", command?.join(" "));
        }
        Ok(script)
    }
}

/// Says which program the end-to-end tests on ALSA are.
pub const TEST: &str = "CONDUCTOR_VM_TEST";

/// The test that runs by itself: on an emulated processor that others share, the time of a feature's call, which has a limit,
/// counts what the others take.
const ALONE: &str = "the_demonstration_plays";

/// Says to the tests where the features are that a controller is set up with.
const SETTING_UP: &str = "CONDUCTOR_VM_SETTING_UP";

/// The end-to-end tests on ALSA, with everything that they test: what the environment names, or else built now.
fn alsa_tests(repo: &Repo, setting_up: bool) -> Result<Job> {
    let (conductor, test) = match (env::var_os(host::PROGRAM), env::var_os(TEST)) {
        (Some(conductor), Some(test)) => (conductor, test),
        _ => built(repo)?,
    };
    let mut job = Job::new(Vec::new());
    job.variables.push((host::PROGRAM.into(), conductor));
    let components = repo.components();
    let played_with = ["osc-output.wasm", "midi-learn.wasm"];
    job.variables.push((host::FEATURES.into(), those(&components, "vm", &played_with)?.into()));
    job.commands = if setting_up {
        let set_up_with = ["osc-output.wasm", "midi-learn.wasm", "mapping-tools.wasm", "binding-tools.wasm"];
        job.variables.push((SETTING_UP.into(), those(&components, "vm-setting-up", &set_up_with)?.into()));
        vec![vec![test, "controllers_are_set_up".into(), "--nocapture".into()]]
    } else {
        vec![vec![test.clone(), "--skip".into(), ALONE.into()], vec![test, ALONE.into()]]
    };
    Ok(job)
}

/// The host, and the tests.
fn built(repo: &Repo) -> Result<(OsString, OsString)> {
    setup::ensure(setup::Purpose::Build)?;
    features::build(repo)?;
    let conductor = host::build(repo, Midi::System, Profile::Dev)?;
    let mut command = repo.workspace_cargo("test");
    command.args(["--test=alsa", "--no-run"]);
    let artifacts = cargo::build(&mut command)?;
    let test = artifacts
        .into_iter()
        .find_map(|artifact| artifact.executable.filter(|_| artifact.name == "alsa"))
        .context("the tests crate has no test named alsa")?;
    Ok((conductor.into(), test.into()))
}

/// The folder of machine code, within that of components.
const CODE: &str = "code";

/// A folder of this name with these components alone, and with their machine code if there is any: to compile those that no
/// test of the machine's uses would take its emulated processor minutes.
fn those(components: &Path, name: &str, names: &[&str]) -> Result<PathBuf> {
    let folder = components.join(name);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for name in names {
        fs::copy(components.join(name), folder.join(name)).with_context(|| format!("cannot copy {name}"))?;
    }
    let (code, copy) = (components.join(CODE), folder.join(CODE));
    fs::create_dir_all(&copy).with_context(|| format!("cannot create {}", copy.display()))?;
    let Ok(files) = fs::read_dir(&code) else { return Ok(folder) };
    for file in files {
        let file = file.with_context(|| format!("cannot read {}", code.display()))?;
        fs::copy(file.path(), copy.join(file.file_name()))
            .with_context(|| format!("cannot copy {}", file.path().display()))?;
    }
    Ok(folder)
}

/// Runs a tool of the system for its effect.
fn tool(command: &mut Command) -> Result<()> {
    process::read(command).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_becomes_a_script() {
        let job = Job {
            commands: vec![vec!["sh".into(), "-c".into(), "cat /proc/asound/seq/clients".into()], vec!["true".into()]],
            variables: vec![("CONDUCTOR_VM".into(), "1".into()), ("HOME".into(), "/home/an artist".into())],
        };
        let script = job.script().expect("UTF-8");
        let (_, rest) = script.split_once('\n').expect("several lines");
        assert_eq!(
            rest,
            "export CONDUCTOR_VM=1\nexport HOME='/home/an artist'\nsh -c 'cat /proc/asound/seq/clients' || exit\ntrue || exit\n"
        );
    }
}
