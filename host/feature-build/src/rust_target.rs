//! The targets that the active Rust can build for, and rustup, which adds them.

use std::{fs, path::Path, process::Command, time::Duration};

use crate::process;

/// How long rustup may take to add a target.
const RUSTUP_TIMEOUT: Duration = Duration::from_secs(120);

/// Whether the Rust that is active in `folder` has the standard library of a target.
pub fn is_there(folder: &Path, target: &str) -> bool {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", target]).current_dir(folder);
    let Ok(folder) = process::read(&mut rustc) else { return false };
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let names: Vec<_> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    ["libcore", "libstd"].iter().all(|library| names.iter().any(|name| name.starts_with(library)))
}

/// Asks rustup for a target of the Rust that is active in `folder`, after saying why. Returns whether it is there then;
/// `false` if rustup does not manage this Rust.
pub fn add(folder: &Path, target: &str, why: &str) -> bool {
    if process::find("rustup").is_none() {
        return false;
    }
    eprintln!("{why}: adding the Rust target {target} (`rustup target add {target}`)");
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", target]).env("RUSTUP_MAX_RETRIES", "1").current_dir(folder);
    let Ok(mut child) = rustup.spawn() else { return false };
    let ended = process::poll(RUSTUP_TIMEOUT, || matches!(child.try_wait(), Ok(Some(_))));
    if !ended {
        process::end(&mut child, Duration::from_secs(2));
    }
    let added = is_there(folder, target);
    if !added {
        eprintln!("rustup did not add it");
    }
    added
}
