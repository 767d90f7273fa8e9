//! Where everything is: the repository, its Cargo workspaces, and the folders that builds write to.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{cargo, process};

/// The checked-out repository.
pub struct Repo {
    root: PathBuf,
    target: PathBuf,
    locked: bool,
    /// This very program, noted early: a test step may build a newer one over it.
    xtask: PathBuf,
}

impl Repo {
    /// Finds the repository that this program was compiled in.
    pub fn open(locked: bool) -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in no repository")?.to_owned();
        let metadata = metadata(&root.join("Cargo.toml"))?;
        Ok(Self { target: folder(&metadata, "target_directory")?, root, locked, xtask: env::current_exe()? })
    }

    /// The repository's own folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What Cargo builds for this machine goes here (`target`, or `CARGO_TARGET_DIR`).
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// What Cargo builds for guests goes here. A folder of its own, shared by all guest workspaces, since the
    /// standard library may have to be built, and by another Rust.
    pub fn guest_target(&self) -> PathBuf {
        match env::var_os("CARGO_TARGET_DIR") {
            Some(_) => self.target.join("guests"),
            None => self.root.join("features/target"),
        }
    }

    /// The finished components, one `<feature>.wasm` each.
    pub fn components(&self) -> PathBuf {
        self.target.join("features")
    }

    /// Whether lock files must stay as they are.
    pub fn locked(&self) -> bool {
        self.locked
    }

    /// `cargo <subcommand>` in the repository's root.
    pub fn cargo(&self, subcommand: &str) -> Command {
        let mut command = cargo::command(subcommand, self.locked);
        command.current_dir(&self.root);
        command
    }

    /// `cargo <subcommand>` for all packages of the root's workspace but the benchmarks.
    ///
    /// Everything that is built for tests is built like this, even a single program (`--bin NAME`): Cargo compiles a
    /// dependency with the features that the packages of one command ask for, and so once more for each other choice.
    pub fn workspace_cargo(&self, subcommand: &str) -> Command {
        let mut command = self.cargo(subcommand);
        command.args(["--workspace", "--exclude=conductor-bench"]);
        command
    }

    /// `cargo <subcommand>` for a workspace of guests, built for this machine.
    pub fn guest_cargo(&self, subcommand: &str, workspace: &Path) -> Command {
        let mut command = self.cargo(subcommand);
        command.arg("--manifest-path").arg(workspace.join("Cargo.toml")).env("CARGO_TARGET_DIR", self.guest_target());
        command
    }

    /// This very program.
    pub fn xtask_program(&self) -> &Path {
        &self.xtask
    }

    /// Another chore, in a process of its own.
    pub fn xtask(&self, chore: &str) -> Command {
        let mut command = Command::new(&self.xtask);
        command.arg(chore).current_dir(&self.root);
        cargo::forget_our_build(&mut command);
        if self.locked {
            command.arg("--locked");
        }
        command
    }

    /// The workspaces beside the root's own, by folder: the features, their SDK, and the tests' guests, each
    /// where it exists and is not a member of another.
    pub fn guest_workspaces(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for folder_name in ["features", "feature-api", "tests/guests"] {
            let manifest = self.root.join(folder_name).join("Cargo.toml");
            if !manifest.is_file() {
                continue;
            }
            let workspace = folder(&metadata(&manifest)?, "workspace_root")?;
            if workspace != self.root && !found.contains(&workspace) {
                found.push(workspace);
            }
        }
        Ok(found)
    }

    /// The packages of the workspace in `folder`, as `cargo metadata` prints them.
    pub fn packages(&self, folder: &Path) -> Result<Vec<Value>> {
        let mut metadata = metadata(&folder.join("Cargo.toml"))?;
        match metadata["packages"].take() {
            Value::Array(packages) => Ok(packages),
            _ => bail!("`cargo metadata` names no packages"),
        }
    }
}

fn metadata(manifest: &Path) -> Result<Value> {
    let mut command = cargo::command("metadata", false);
    command.args(["--no-deps", "--format-version", "1", "--manifest-path"]).arg(manifest);
    let text = process::read(&mut command)?;
    serde_json::from_str(&text).context("cannot read what `cargo metadata` printed")
}

fn folder(metadata: &Value, key: &str) -> Result<PathBuf> {
    let path = metadata[key].as_str().with_context(|| format!("`cargo metadata` names no {key}"))?;
    Ok(PathBuf::from(path))
}
