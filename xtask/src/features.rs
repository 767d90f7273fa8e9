//! Features: Rust crates for WebAssembly, built and encoded as components.
//!
//! `features/<name>` becomes `target/features/<name>.wasm`, one file that is the whole package. The tests'
//! own guests in `tests/guests/<name>` become `target/features/tests/<name>.wasm`.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use conductor_feature_build::component::encode;

use crate::{
    cargo,
    guest_rust::{self, GuestRust},
    process,
    repo::Repo,
};

/// Build all features, and the tests' guests, into WebAssembly components.
#[derive(clap::Args)]
pub struct Args {
    /// Only check that they compile; write no component.
    #[arg(long)]
    check: bool,
}

/// A workspace of guests, and where its components go.
struct Guests {
    workspace: PathBuf,
    output: PathBuf,
}

impl Guests {
    fn all(repo: &Repo) -> Vec<Self> {
        let components = repo.components();
        let known = [("features", components.clone()), ("tests/guests", components.join("tests"))];
        let folders = known.map(|(folder, output)| Self { workspace: repo.root().join(folder), output });
        folders.into_iter().filter(|guests| guests.manifest().is_file()).collect()
    }

    fn manifest(&self) -> PathBuf {
        self.workspace.join("Cargo.toml")
    }
}

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    if args.check {
        let rust = guest_rust(repo)?;
        for guests in Guests::all(repo) {
            let mut command = guest_rust::cargo(&rust, repo, "check");
            process::run(command.args(["--workspace", "--manifest-path"]).arg(guests.manifest()))?;
        }
    } else {
        build(repo)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds everything that is not up to date, and returns the folder of the features' components.
pub fn build(repo: &Repo) -> Result<PathBuf> {
    let rust = guest_rust(repo)?;
    let all = Guests::all(repo);
    if all.is_empty() {
        bail!("there are no features: {} is missing", repo.root().join("features/Cargo.toml").display());
    }
    for guests in all {
        build_workspace(repo, &rust, &guests)?;
    }
    Ok(repo.components())
}

/// Builds one of the features alone, and returns the folder with its component, which has no other in it.
pub fn build_alone(repo: &Repo, name: &str) -> Result<PathBuf> {
    let rust = guest_rust(repo)?;
    let output = repo.target().join(format!("{name}-alone"));
    build_packages(
        repo,
        &rust,
        &Guests { workspace: repo.root().join("features"), output: output.clone() },
        Some(name),
    )?;
    Ok(output)
}

fn guest_rust(repo: &Repo) -> Result<GuestRust> {
    let rust = guest_rust::ensure(repo)?;
    eprintln!("guests: {}", rust.describe());
    Ok(rust)
}

fn build_workspace(repo: &Repo, rust: &GuestRust, guests: &Guests) -> Result<()> {
    let built = build_packages(repo, rust, guests, None)?;
    complain_about_silent_folders(guests, &built)?;
    remove_stale(&guests.output, &built)
}

/// Builds one package of the workspace, or all. Returns the names of the components' files.
fn build_packages(repo: &Repo, rust: &GuestRust, guests: &Guests, one: Option<&str>) -> Result<BTreeSet<String>> {
    let mut command = guest_rust::cargo(rust, repo, "build");
    let packages = one.map_or_else(|| "--workspace".to_owned(), |name| format!("--package={name}"));
    command.args(["--release", &packages, "--manifest-path"]).arg(guests.manifest());
    let artifacts = cargo::build(&mut command)?;
    fs::create_dir_all(&guests.output).with_context(|| format!("cannot create {}", guests.output.display()))?;
    let mut built = BTreeSet::new();
    for artifact in artifacts.iter().filter(|artifact| artifact.kinds.iter().any(|kind| kind == "cdylib")) {
        // A dependency from a registry may be a dynamic library, too.
        if !artifact.package.starts_with(&guests.workspace) {
            continue;
        }
        let (Some(name), Some(module)) = (
            artifact.package.file_name().and_then(|name| name.to_str()),
            artifact.files.iter().find(|file| file.extension().is_some_and(|extension| extension == "wasm")),
        ) else {
            continue;
        };
        let component = encode(module).with_context(|| format!("{name} is no valid component"))?;
        let file = format!("{name}.wasm");
        let news = write_if_changed(&guests.output.join(&file), &component)?;
        eprintln!("{name:>24} {:>9.1} KB  {news}", component.len() as f64 / 1e3);
        built.insert(file);
    }
    Ok(built)
}

/// Keeps the file's date if nothing changed, so that it is not compiled again.
fn write_if_changed(file: &Path, bytes: &[u8]) -> Result<&'static str> {
    if fs::read(file).is_ok_and(|old| old == bytes) {
        return Ok("unchanged");
    }
    fs::write(file, bytes).with_context(|| format!("cannot write {}", file.display()))?;
    Ok("written")
}

/// A folder with a `feature.toml` that builds no module is a mistake that would else show up much later.
fn complain_about_silent_folders(guests: &Guests, built: &BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(&guests.workspace)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().join("feature.toml").is_file() && !built.contains(&format!("{name}.wasm")) {
            bail!(
                "{} has a feature.toml, but builds no module: list it in the workspace's members, and say \
                 `crate-type = [\"cdylib\"]` in its Cargo.toml",
                entry.path().display()
            );
        }
    }
    Ok(())
}

/// A component whose source is gone must not run any more.
fn remove_stale(output: &Path, built: &BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(output)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".wasm") && !built.contains(&name) {
            fs::remove_file(entry.path()).with_context(|| format!("cannot remove {}", entry.path().display()))?;
            eprintln!("{name:>24} removed: it has no source any more");
        }
    }
    Ok(())
}
