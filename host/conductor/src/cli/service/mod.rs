//! `conductor service`: has the system start a host at login, and restart it if it fails.
//!
//! What is written is for this person alone: a user unit of systemd, a launchd agent on macOS. Nothing needs root.

#![cfg_attr(not(any(target_os = "linux", target_os = "macos")), allow(dead_code, unused_imports))]

use std::path::{Path, PathBuf};

use clap::Subcommand;

use super::{CommandResult, Failure, Output, Paths};
use conductor_api::client::Client;
use conductor_stdx::plain_file;

#[cfg(any(target_os = "macos", test))]
mod launchd;
#[cfg(any(target_os = "linux", test))]
mod systemd;

/// What to do with the service.
#[derive(Debug, Subcommand)]
pub(super) enum ServiceCommand {
    /// Have the system run a host with this home and configuration, from now on
    Install {
        /// Only print what would be written
        #[arg(long)]
        print: bool,
    },
    /// Say whether it is installed, up to date and running
    Status(Output),
    /// End the host that the system runs, and have it start no more
    Uninstall,
}

/// What the system is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ServiceSettings {
    program: PathBuf,
    home: PathBuf,
    config: PathBuf,
    /// The folder of the bundled features, where the environment names one.
    features: Option<PathBuf>,
}

impl ServiceSettings {
    /// Absolute paths: the system starts it elsewhere.
    fn new(places: &Paths) -> std::io::Result<Self> {
        let named = std::env::var_os("CONDUCTOR_FEATURES").map(std::path::absolute);
        Ok(Self {
            program: std::env::current_exe()?,
            home: std::path::absolute(&places.home)?,
            config: std::path::absolute(&places.config)?,
            features: named.transpose()?,
        })
    }

    /// The arguments after the program.
    fn arguments(&self) -> Vec<&Path> {
        let mut arguments = vec![Path::new("--home"), &self.home];
        if self.config != self.home.join("config.toml") {
            arguments.extend([Path::new("--config"), &self.config]);
        }
        arguments.push(Path::new("run"));
        arguments
    }
}

/// What a file of ours begins with, after what its format has to begin with. Others are never written over.
const OURS: &str = "Written by `conductor service install`";

pub(super) fn run(places: &Paths, command: &ServiceCommand) -> CommandResult {
    #[cfg(target_os = "macos")]
    use launchd as system;
    #[cfg(target_os = "linux")]
    use systemd as system;
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        let wanted = ServiceSettings::new(places)?;
        match command {
            ServiceCommand::Install { print: true } => conductor_terminal::document(&system::text(&wanted)?),
            ServiceCommand::Install { print: false } => {
                // With a broken configuration the service would end at once.
                super::load(&places.config)?;
                let running = Client::new(&places.home).status().ok();
                system::install(&wanted, running.map(|status| u64::from(status.pid)))?;
            }
            ServiceCommand::Status(output) => system::status(&wanted, output.json)?,
            ServiceCommand::Uninstall => system::uninstall()?,
        }
        Ok(())
    }
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    {
        let _ = (command, ServiceSettings::new(places)?);
        Err(Failure::Wrong(
            "conductor: this system's services are not written yet; have its task scheduler start `conductor run` \
             when you log in (Windows: schtasks /create /tn Conductor /sc onlogon /tr \"conductor run\")"
                .into(),
        ))
    }
}

/// Writes a file of ours, and the folders around it.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if !is_ours(path)? {
        return Err(Failure::Wrong(format!(
            "conductor: {} is not one that `conductor service install` has written; move it away first",
            path.display()
        )));
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    conductor_stdx::atomic_file::replace(path, text.as_bytes())?;
    Ok(())
}

/// Whether a file is one of ours, or not there.
fn is_ours(path: &Path) -> std::io::Result<bool> {
    match plain_file::read_text(path, plain_file::MAX_TEXT) {
        Ok(text) => Ok(text.contains(OURS)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// A path as the text that such files take.
fn utf8(path: &Path) -> Result<&str, Failure> {
    let text = path.to_str().filter(|text| !text.contains(char::is_control));
    text.ok_or_else(|| {
        let why = "has characters that can't stand in a service's file; take a folder with another name";
        Failure::Wrong(format!("conductor: {} {why}", path.display()))
    })
}
