//! Debian's and Ubuntu's package tools.

use std::{
    io::{self, IsTerminal},
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, Result, bail};

use crate::process;

/// How long another of them (a machine that updates itself, another run of this program) may take to finish.
const WAIT_FOR_OTHERS: &str = "DPkg::Lock::Timeout=600";

/// Whether this system has them.
pub fn available() -> bool {
    process::find("apt-get").is_some() && process::find("dpkg-deb").is_some()
}

/// Fetches the lists of packages, once per run of this program.
pub fn update() -> Result<()> {
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    eprintln!("fetching the lists of packages (apt-get update)");
    if let Err(error) = process::run(as_root("apt-get")?.args(["update", "-qq", "-o", WAIT_FOR_OTHERS])) {
        // One bad source of several is no reason to stop: the install will tell.
        eprintln!("{error}; going on with the lists that are there");
    }
    Ok(())
}

/// Whether a package can be installed.
pub fn offers(package: &str) -> bool {
    process::read(Command::new("apt-cache").args(["show", "--no-all-versions", package]))
        .is_ok_and(|text| !text.is_empty())
}

/// Installs packages, and removes none: one that conflicts with what is there is an error.
pub fn install(packages: &[&str]) -> Result<()> {
    let mut command = as_root("env")?;
    command
        .args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-qq", "--yes"])
        .args(["--no-install-recommends", "--no-remove", "-o", "Dpkg::Use-Pty=0", "-o", WAIT_FOR_OTHERS])
        .args(packages);
    process::run(&mut command)
        .with_context(|| format!("install these packages by hand, then try again: {}", packages.join(" ")))
}

/// Downloads packages into a folder, without installing them.
pub fn download(packages: &[String], folder: &Path) -> Result<()> {
    let mut command = Command::new("apt-get");
    // The folder is ours: root would else try to read it as an unprivileged user, and complain.
    command.args(["download", "-qq", "-o", "APT::Sandbox::User=root"]).args(packages).current_dir(folder);
    process::run(&mut command)
}

/// The packages that installing this one would bring, itself among them.
pub fn missing_for(package: &str) -> Result<Vec<String>> {
    let mut plan = Command::new("apt-get");
    plan.args(["install", "--simulate", "--no-install-recommends", "--reinstall", package]);
    let names = planned(&process::read(&mut plan)?);
    if names.is_empty() {
        bail!("apt-get knows no way to install {package}");
    }
    Ok(names)
}

/// The names in a plan's lines `Inst name [old version] (version ...)`.
fn planned(plan: &str) -> Vec<String> {
    let lines = plan.lines().filter_map(|line| line.strip_prefix("Inst "));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// A package's direct dependencies, the first of each choice.
pub fn dependencies(package: &str) -> Result<Vec<String>> {
    let text = process::read(Command::new("apt-cache").args(["depends", "--important", package]))?;
    Ok(text.lines().filter_map(|line| line.trim().strip_prefix("Depends: ")).map(str::to_owned).collect())
}

/// Whether a package is installed.
pub fn installed(package: &str) -> bool {
    let status =
        process::read(Command::new("dpkg-query").args(["--show", "--showformat=${db:Status-Status}", package]));
    status.is_ok_and(|status| status == "installed")
}

/// A command with the rights to install packages.
fn as_root(program: &str) -> Result<Command> {
    if process::read(Command::new("id").arg("-u"))? == "0" {
        return Ok(Command::new(program));
    }
    if process::find("sudo").is_none() {
        bail!("packages must be installed, which takes root's rights: run this as root, or install sudo");
    }
    let mut command = Command::new("sudo");
    if !process::succeeds(Command::new("sudo").args(["-n", "true"])) {
        if !io::stdin().is_terminal() {
            bail!("packages must be installed, and sudo needs a password, but standard input is not a terminal");
        }
        eprintln!("sudo may ask for your password");
    }
    command.arg(program);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_names_what_it_would_install() {
        let plan = "Reading package lists...\n\
            Remv qemu-utils [1:10.0]\n\
            Inst libfdt1 (1.6.1-4+b1 Debian:12.15/oldstable [amd64])\n\
            Inst libc6 [2.36-9] (2.36-10 Debian:12.15/oldstable [amd64])\n\
            Conf libfdt1 (1.6.1-4+b1 Debian:12.15/oldstable [amd64])\n";
        assert_eq!(planned(plan), ["libfdt1", "libc6"]);
    }
}
