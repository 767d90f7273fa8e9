//! An OCI registry for the end-to-end tests: this system's, or else Debian's, unpacked and never installed.

use std::path::PathBuf;

use anyhow::Result;

use crate::{process, setup::unpacked::Unpacked};

const PROGRAM: &str = "docker-registry";

/// The program; downloaded if it is not there.
///
/// # Errors
/// apt's, when it can't be downloaded.
pub fn program() -> Result<PathBuf> {
    if let Some(installed) = process::find(PROGRAM) {
        return Ok(installed);
    }
    let why = "keeps packages for the tests that install from a registry";
    Ok(Unpacked::package(PROGRAM, why)?.file("usr/bin").join(PROGRAM))
}
