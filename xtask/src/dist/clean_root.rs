//! The package in a clean system: Debian in a folder, where it is installed with what it depends on, run, and removed.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use super::{
    Release, debian,
    tried::{CONFIG, EVENTS, SENT},
};

/// Installs the package in a new Debian system below the release's folder, runs it, and removes it.
///
/// # Errors
/// Whatever does not work, or is left behind.
pub fn try_out(release: &Release) -> Result<()> {
    let package = fs::read_dir(&release.dist)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .context("there is no package to install: `dpkg-deb` is not here")?;
    // Beside what is released: it is no part of that.
    let root = release.dist.with_file_name("dist-root");
    // With apt and nothing that is not essential.
    debian::system(&root, &["--variant=apt"])?;
    let tried = in_system(&root, &package);
    let removed = debian::remove(&root);
    tried.and(removed)?;
    println!("{}: installed, run and removed in a clean system", package.display());
    Ok(())
}

fn in_system(root: &Path, package: &Path) -> Result<()> {
    fs::copy(package, root.join("tmp/conductor.deb")).context("cannot copy the package")?;
    fs::write(root.join("tmp/config.toml"), CONFIG)?;
    fs::write(root.join("tmp/events"), EVENTS)?;
    let before = owned(root)?;
    // With what it depends on, as a person would.
    inside(root, "apt-get update")?;
    let install = "DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends /tmp/conductor.deb";
    inside(root, install)?;
    let version = inside(root, "conductor --version")?;
    if !version.contains(env!("CARGO_PKG_VERSION")) {
        bail!("the installed program calls itself {version:?}");
    }
    inside(root, "conductor --home /tmp/home --config /tmp/config.toml config validate")?;
    let played = inside(root, "conductor --home /tmp/home --config /tmp/config.toml simulate /tmp/events")?;
    if !played.contains(SENT) {
        bail!("the installed program did not fire the rule: {played}");
    }
    inside(root, "conductor --home /tmp/home --config /tmp/config.toml feature list")?;
    inside(root, "apt-get purge --yes conductor")?;
    let left: Vec<String> = owned(root)?.into_iter().filter(|path| !before.contains(path)).collect();
    if !left.is_empty() {
        bail!("removed, and these are left:\n{}", left.join("\n"));
    }
    Ok(())
}

/// The files of a system that have the program's name in their path, but for people's own.
fn owned(root: &Path) -> Result<Vec<String>> {
    // dpkg's and apt's own records are theirs to keep.
    let found = inside(root, "find /usr /etc /var/lib -path '*conductor*' -not -path '/var/lib/dpkg/*'")?;
    Ok(found.lines().map(str::to_owned).collect())
}

/// Runs a line of a shell in the system, and returns what it printed.
fn inside(root: &Path, line: &str) -> Result<String> {
    // With processes and mounts of its own: /proc, by which the program finds itself, goes away with them.
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork"]).arg(format!("--mount-proc={}", root.join("proc").display()));
    command.arg("chroot").arg(root).args(["/bin/sh", "-c", line]);
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/root");
    let output = command.stdin(Stdio::null()).output().context("unshare can't be started")?;
    let (printed, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        bail!("`{line}` failed in the clean system ({}):\n{printed}{complaint}", output.status);
    }
    eprintln!("in the clean system: {line}");
    Ok(printed.into_owned())
}
