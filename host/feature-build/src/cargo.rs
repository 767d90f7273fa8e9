//! Cargo, called from a program that Cargo itself runs.

use std::{
    env,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// Subcommands that take `--locked`.
const WITH_LOCK: [&str; 7] = ["bench", "build", "check", "clippy", "doc", "run", "test"];

/// `cargo <subcommand>` of the toolchain that runs us.
pub fn command(subcommand: &str, locked: bool) -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.arg(subcommand);
    if locked && WITH_LOCK.contains(&subcommand) {
        command.arg("--locked");
    }
    forget_our_build(&mut command);
    command
}

/// Takes away what `cargo run` told us about ourselves: build scripts that watch such variables would run
/// again and again, depending on who calls them.
pub fn forget_our_build(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let ours = name.to_str().is_some_and(|name| {
            ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"].iter().any(|prefix| name.starts_with(prefix))
                || ["CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "OUT_DIR"].contains(&name)
        });
        if ours {
            command.env_remove(name);
        }
    }
}

/// One thing that a build made, or found to be up to date.
pub struct Artifact {
    /// The target's name, such as `conductor`.
    pub name: String,
    /// The target's kinds, such as `bin`, `test` or `cdylib`.
    pub kinds: Vec<String>,
    /// The name of its package.
    pub crate_name: String,
    /// The folder of its package.
    pub package: PathBuf,
    /// All files that it consists of.
    pub files: Vec<PathBuf>,
    /// Whether it holds the tests of the target, in place of the target itself.
    pub is_test: bool,
    /// The program, if it is one.
    pub executable: Option<PathBuf>,
}

/// Runs a building command and tells what it made. Progress and diagnostics go to standard error, as ever.
pub fn build(command: &mut Command) -> Result<Vec<Artifact>> {
    command.arg("--message-format=json-render-diagnostics").stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start `{}`", process::line(command)))?;
    let stdout = child.stdout.take().context("a piped output is there")?;
    let mut artifacts = Vec::new();
    for line in BufReader::new(stdout).lines() {
        let line = line.context("cannot read Cargo's messages")?;
        match serde_json::from_str(&line) {
            Ok(message) => artifacts.extend(artifact(&message)),
            // Test programs and build scripts may print what they like.
            Err(_) => println!("{line}"),
        }
    }
    process::ensure_success(command, child.wait()?)?;
    Ok(artifacts)
}

fn artifact(message: &Value) -> Option<Artifact> {
    if message["reason"] != "compiler-artifact" {
        return None;
    }
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    Some(Artifact {
        name: message["target"]["name"].as_str()?.to_owned(),
        kinds: texts(&message["target"]["kind"]),
        crate_name: package_name(message["package_id"].as_str()?).to_owned(),
        package: Path::new(message["manifest_path"].as_str()?).parent()?.to_owned(),
        files: texts(&message["filenames"]).into_iter().map(PathBuf::from).collect(),
        is_test: message["profile"]["test"] == true,
        executable: message["executable"].as_str().map(PathBuf::from),
    })
}

/// The name in a package id: `path+file:///r/features/osc-output#0.1.0`, or `…/api#conductor-api@0.1.0`.
fn package_name(id: &str) -> &str {
    let (path, version) = id.split_once('#').unwrap_or((id, ""));
    match version.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit('/').next().unwrap_or(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_is_read_from_cargos_message() {
        let message = serde_json::json!({
            "reason": "compiler-artifact",
            "package_id": "path+file:///r/features/osc-output#0.1.0",
            "manifest_path": "/r/features/osc-output/Cargo.toml",
            "target": { "name": "osc_output", "kind": ["cdylib", "rlib"] },
            "filenames": ["/t/osc_output.wasm", "/t/libosc_output.rlib"],
            "executable": null,
            "profile": { "opt_level": "0", "test": true },
        });
        let artifact = artifact(&message).expect("an artifact");
        assert_eq!(artifact.name, "osc_output");
        assert_eq!(artifact.kinds, ["cdylib", "rlib"]);
        assert_eq!(artifact.package, Path::new("/r/features/osc-output"));
        assert_eq!(artifact.files[0], Path::new("/t/osc_output.wasm"));
        assert_eq!(artifact.executable, None);
        assert!(artifact.is_test);
        assert_eq!(artifact.crate_name, "osc-output");
        assert_eq!(package_name("path+file:///r/host/api#conductor-api@0.1.0"), "conductor-api");
    }

    #[test]
    fn other_messages_are_no_artifacts() {
        assert!(artifact(&serde_json::json!({ "reason": "build-finished", "success": true })).is_none());
    }
}
