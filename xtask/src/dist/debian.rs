//! Debian systems in folders, made by mmdebstrap: this machine's release of Debian, and what is asked for of it.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result};

use crate::{process, setup::unpacked::Unpacked};

/// Makes a system in a new folder, as these options of mmdebstrap say.
///
/// # Errors
/// Where this is no Debian, or mmdebstrap fails: it needs root, and a mirror.
pub fn system(folder: &Path, options: &[&str]) -> Result<()> {
    remove(folder)?;
    let about = fs::read_to_string("/etc/os-release").context("this is no Debian")?;
    let codename = about.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let codename = codename.context("/etc/os-release names no release")?.trim_matches('"');
    let bootstrap = Unpacked::package("mmdebstrap", "makes Debian systems in folders")?;
    let mut make = Command::new(bootstrap.file("usr/bin/mmdebstrap"));
    make.args(["--mode=root", "--quiet"]).args(options).arg(codename).arg(folder);
    process::run(&mut make).context("no Debian system in a folder: this needs root, and a mirror of Debian")
}

/// Removes a folder, if it is there.
///
/// # Errors
/// The system's.
pub fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}
