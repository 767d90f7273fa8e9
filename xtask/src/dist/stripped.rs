//! The program without its debug information, which is three quarters of it. Functions keep their names, so that a backtrace
//! still says where it was.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::foreign::{Foreign, System};
use crate::process;

/// Makes a copy without debug information in a folder of its own, and returns where it is.
///
/// # Errors
/// There is no `strip`, or it can't read the program.
pub fn copy(program: &Path, folder: &Path, foreign: Option<&Foreign>) -> Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let copy = folder.join(program.file_name().context("the program has no name")?);
    let strip = match foreign.map(Foreign::system) {
        None => "strip",
        Some(System::Windows) => "x86_64-w64-mingw32-strip",
        Some(System::LinuxArm) => "aarch64-linux-gnu-strip",
    };
    // GNU's and Apple's call it alike.
    process::run(Command::new(strip).arg("-S").arg("-o").arg(&copy).arg(program))?;
    Ok(copy)
}
