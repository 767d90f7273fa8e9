//! The program of a release, built in a folder of its own and without a path of this machine in it; for this machine's
//! system, or for another one.
//!
//! Panics and debug information name source files; what lies in this repository or in Cargo's folder is named alike on
//! every machine. Flags of the compiler are part of what Cargo compares: in the folder of other builds, these and those
//! would compile everything again, in turns.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};
use conductor_feature_build::guest_rust::cargo_home;

use super::foreign::Foreign;
use crate::{host::Profile, process, repo::Repo};

/// What the repository and Cargo's folder are called in a release.
const NAMES: [&str; 2] = ["/conductor", "/cargo"];

/// Builds the program, and returns where it is.
///
/// # Errors
/// Cargo's.
pub fn build(repo: &Repo, profile: Profile, foreign: Option<&Foreign>) -> Result<PathBuf> {
    let target = repo.target().join("dist-build");
    let folders = [Some(repo.root().to_owned()), cargo_home()];
    let renamed: Vec<(PathBuf, &str)> =
        folders.into_iter().zip(NAMES).filter_map(|(folder, name)| Some((folder?, name))).collect();
    let mut command = repo.cargo("build");
    command.args(["--package=conductor", "--bin=conductor"]).args((profile == Profile::Release).then_some("--release"));
    command
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_ENCODED_RUSTFLAGS", rust_flags(&renamed))
        // The parts in C, for which `cc` is called.
        .env("CFLAGS", c_flags(&renamed));
    if let Some(foreign) = foreign {
        foreign.build_for(&mut command);
    }
    process::run(&mut command)?;
    let folder = target.join(foreign.map_or("", |foreign| foreign.system().triple()));
    let folder = folder.join(if profile == Profile::Release { "release" } else { "debug" });
    let suffix = foreign.map_or(env::consts::EXE_SUFFIX, |foreign| foreign.system().program_suffix());
    let built = folder.join(format!("conductor{suffix}"));
    if !built.is_file() {
        bail!("Cargo built the host, but not as {}: is `build.target` set?", built.display());
    }
    Ok(built)
}

/// Flags of rustc as `CARGO_ENCODED_RUSTFLAGS` has them, those of `RUSTFLAGS` before.
fn rust_flags(renamed: &[(PathBuf, &str)]) -> String {
    let given = env::var("RUSTFLAGS").unwrap_or_default();
    let given = given.split_whitespace().map(str::to_owned);
    let own = renamed.iter().map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display()));
    given.chain(own).collect::<Vec<_>>().join("\u{1f}")
}

fn c_flags(renamed: &[(PathBuf, &str)]) -> String {
    let flag = |(folder, name): &(PathBuf, &str)| format!("-ffile-prefix-map={}={name}", folder.display());
    renamed.iter().filter(|(folder, _)| is_word(folder)).map(flag).collect::<Vec<_>>().join(" ")
}

/// Whether a path is one word among others: `CFLAGS` knows no quotes.
fn is_word(path: &Path) -> bool {
    !path.to_string_lossy().contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_this_machine_get_other_names() {
        let renamed =
            [(PathBuf::from("/home/me/conductor"), "/conductor"), (PathBuf::from("/home/me/.cargo"), "/cargo")];
        assert!(rust_flags(&renamed).ends_with(
            "--remap-path-prefix=/home/me/conductor=/conductor\u{1f}--remap-path-prefix=/home/me/.cargo=/cargo"
        ));
        assert_eq!(
            c_flags(&renamed),
            "-ffile-prefix-map=/home/me/conductor=/conductor -ffile-prefix-map=/home/me/.cargo=/cargo"
        );
        assert_eq!(c_flags(&[(PathBuf::from("/home/my things"), "/x")]), "");
    }
}
