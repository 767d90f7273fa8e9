//! The compiler of guests, which makes the same bytes of the same sources wherever those are.
//!
//! Cargo tells packages apart by their folders, and rustc has that in the name of each function. Of a package within its
//! workspace Cargo takes the path from there; the SDK and others of the host's crates lie beside the workspaces of guests,
//! so that Cargo takes all of the path. Therefore this program is also Cargo's `RUSTC_WRAPPER`, which tells packages of
//! this repository apart by their names, versions and features.

use std::{
    env,
    ffi::OsString,
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::{Context, Result};

use crate::{process, repo::Repo};

/// Set for the builds in which this program is the compiler's wrapper: to the repository's root.
const ROOT: &str = "CONDUCTOR_XTASK_COMPILES_GUESTS_OF";

/// Has this program call the compiler in a build of guests.
pub fn wrap(cargo: &mut Command, repo: &Repo) {
    cargo.env("RUSTC_WRAPPER", repo.xtask_program()).env(ROOT, repo.root());
}

/// The compiler, if this program was called as its wrapper.
pub fn called() -> Option<Result<ExitCode>> {
    let root = env::var_os(ROOT)?;
    let mut arguments = env::args_os().skip(1);
    let compiler = arguments.next().context("Cargo names the compiler first");
    Some(compiler.and_then(|compiler| {
        let folder = env::var_os("CARGO_MANIFEST_DIR");
        let is_ours = folder.is_some_and(|folder| Path::new(&folder).starts_with(&root));
        let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
        let arguments = arguments.collect();
        let arguments = if is_ours { without_place(arguments, &version) } else { arguments };
        process::become_command(Command::new(compiler).args(arguments))
    }))
}

/// The arguments with a name in the place of Cargo's hash.
fn without_place(mut arguments: Vec<OsString>, version: &str) -> Vec<OsString> {
    const PLACE: &str = "metadata=";
    let after = |flag: &'static str| {
        let values = arguments.windows(2).filter(move |pair| pair[0] == flag);
        values.filter_map(|pair| pair[1].to_str()).map(str::to_owned)
    };
    let features = after("--cfg").filter(|cfg| cfg.starts_with("feature="));
    let name: Vec<String> =
        after("--crate-name").chain([version.to_owned()]).chain(after("--target")).chain(features).collect();
    let name = name.join("-").replace(char::is_whitespace, "");
    for argument in &mut arguments {
        if argument.to_str().is_some_and(|argument| argument.starts_with(PLACE)) {
            *argument = format!("{PLACE}{name}").into();
        }
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(line: &str) -> String {
        let arguments = without_place(line.split(' ').map(OsString::from).collect(), "0.1.0");
        arguments.iter().filter_map(|argument| argument.to_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_package_is_what_it_is_called_and_not_where_it_lies() {
        let line = |hash: &str| {
            format!(
                "--crate-name sdk --cfg feature=\"http\" --cfg nightly -C metadata={hash} -C extra-filename=-{hash} \
                 --target wasm32-unknown-unknown"
            )
        };
        let named = called(&line("0123"));
        assert!(named.contains("-C metadata=sdk-0.1.0-wasm32-unknown-unknown-feature=\"http\" "), "{named}");
        assert!(named.contains("extra-filename=-0123"), "files of two builds lie side by side: {named}");
        assert_eq!(named.replace("0123", "4567"), called(&line("4567")));
        let other = called(&line("0123").replace("http", "midi"));
        assert_ne!(named, other, "with other features it is another one");
    }

    #[test]
    fn what_has_no_hash_is_left_alone() {
        assert_eq!(called("-vV"), "-vV");
    }
}
