//! `conductor feature build`: from a folder to a checked package, in any of the supported languages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, anyhow, bail};
use conductor_feature_build::{GuestRust, cargo, component, guest_rust, process};

use super::super::{CommandResult, Failure};
use super::{inspected, sdk};
use conductor_package::descriptor::MAX_DESCRIPTOR;
use conductor_package::file::PackageError;
use conductor_package::{Descriptor, Package, check};
use conductor_stdx::plain_file;
use conductor_stdx::template;
use conductor_terminal::{self as terminal, errln, outln};

/// The largest module or component that a build may have made, in bytes (256 MiB): what is packed may be larger than
/// the package.
const MAX_MADE: u64 = 256 * 1024 * 1024;

/// Where the package of the feature in `folder` goes.
pub(super) fn package_path(folder: &Path) -> Result<PathBuf, Failure> {
    let descriptor = descriptor(folder)?;
    Ok(folder.join("target/feature").join(format!("{}.wasm", descriptor.id.name())))
}

fn descriptor(folder: &Path) -> Result<Descriptor, Failure> {
    let path = folder.join("feature.toml");
    let text = plain_file::read(&path, MAX_DESCRIPTOR as u64).map_err(|error| {
        Failure::Wrong(format!(
            "conductor: {}: {error}\nA feature's folder has its feature.toml; `conductor feature new NAME` begins one.",
            path.display()
        ))
    })?;
    Descriptor::parse(&text).map_err(|error| Failure::Wrong(format!("conductor: {}: {error}", path.display())))
}

/// Builds, checks and describes; returns where the package is.
pub(super) fn run(folder: &Path, sdk: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = &folder.canonicalize().with_context(|| folder.display().to_string())?;
    let out = package_path(folder)?;
    if let Some(parent) = out.parent() {
        fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
    }
    let bytes = match foreign(folder)? {
        Some(mut program) => {
            // With a world of what the descriptor says and nothing else: engines of other languages import a world whole,
            // used or not.
            let contract = folder.join("target/feature/wit");
            sdk::write_contract(sdk::named(sdk)?.as_deref(), folder, &contract)?;
            fs::write(contract.join("feature.wit"), check::world("feature", &descriptor(folder)?))
                .with_context(|| contract.display().to_string())?;
            program.fill(&contract, &out);
            // What an earlier build left must not be taken for what this one made.
            let _ = fs::remove_file(&out);
            errln!("building with `{}`", process::line(&program.command));
            process::run(&mut program.command)?;
            let made =
                plain_file::read(&out, MAX_MADE).with_context(|| format!("the build left no {}", out.display()))?;
            let made = component::complete(made, &contract, "feature").context("the module makes no component")?;
            component::without_initialiser(made)
        }
        None => rust(folder)?,
    };
    let bytes = match Package::from_bytes(&out, bytes.clone()) {
        Err(PackageError::NoDescriptor { .. }) => {
            component::embed(bytes, &plain_file::read(&folder.join("feature.toml"), MAX_DESCRIPTOR as u64)?)
        }
        _ => bytes,
    };
    fs::write(&out, &bytes).with_context(|| out.display().to_string())?;
    terminal::print(&inspected(&out)?);
    outln!("package    {}", out.display());
    Ok(out)
}

/// Builds, and runs `cargo test` with the package.
pub(super) fn test(folder: &Path, rest: &[String]) -> CommandResult {
    if !folder.join("Cargo.toml").is_file() {
        return Err(Failure::Wrong(format!(
            "conductor: {} has no Cargo.toml, so there is nothing for `cargo test`; `conductor feature build` builds the \
             package, and `conductor feature check` installs it",
            folder.display()
        )));
    }
    let package = run(folder, None)?;
    let mut test = cargo::command("test", false);
    test.current_dir(folder)
        .args(rest)
        .env("CONDUCTOR_FEATURE_PACKAGE", package)
        .env("CONDUCTOR_BIN", std::env::current_exe().context("this program's own path")?);
    Ok(process::run(&mut test)?)
}

/// Puts a descriptor into a component.
pub(super) fn embed(made: &Path, descriptor: &Path, output: &Path) -> CommandResult {
    let bytes = plain_file::read(made, MAX_MADE).with_context(|| made.display().to_string())?;
    let bytes = component::without_initialiser(bytes);
    let text = plain_file::read(descriptor, MAX_DESCRIPTOR as u64).with_context(|| descriptor.display().to_string())?;
    Descriptor::parse(&text)
        .map_err(|error| Failure::Wrong(format!("conductor: {}: {error}", descriptor.display())))?;
    match Package::from_bytes(made, bytes.clone()) {
        Err(PackageError::NoDescriptor { .. }) => {}
        Err(other) => return Err(other.into()),
        Ok(_) => return Err(anyhow!("{} carries a descriptor already", made.display()).into()),
    }
    fs::write(output, component::embed(bytes, &text)).with_context(|| output.display().to_string())?;
    terminal::print(&inspected(output)?);
    Ok(())
}

/// A Rust crate as a component.
fn rust(folder: &Path) -> anyhow::Result<Vec<u8>> {
    if !folder.join("Cargo.toml").is_file() {
        bail!(
            "{} has nothing to build by: no Cargo.toml, no package.json with a script `feature`, no pyproject.toml \
             with [tool.conductor], no Makefile with a target `feature`",
            folder.display()
        );
    }
    let rust = GuestRust::find_or_add(folder).with_context(|| {
        let target = guest_rust::TARGET;
        format!(
            "features are WebAssembly, and this Rust can't build for {target}. Run `rustup target add {target}`; \
             on Debian, `apt install rustc-web cargo-web rust-web-src lld-22` does as well"
        )
    })?;
    errln!("building with {}", rust.describe());
    // A folder of its own: another Rust may build there than the one that runs the tests.
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| folder.join("target"), PathBuf::from);
    let mut command = rust.cargo("build", folder, &target.join("guest"), false);
    command.arg("--release");
    let artifacts = cargo::build(&mut command)?;
    let wasm = |file: &&PathBuf| file.extension().is_some_and(|extension| extension == "wasm");
    let module = artifacts
        .iter()
        .filter(|artifact| artifact.kinds.iter().any(|kind| kind == "cdylib") && artifact.package == folder)
        .find_map(|artifact| artifact.files.iter().find(wasm))
        .context(
            "the crate makes no module: say `crate-type = [\"cdylib\", \"rlib\"]` under [lib] in its Cargo.toml",
        )?;
    component::encode(module).context("the module makes no component")
}

/// A build of another language's own.
struct Program {
    command: Command,
    words: Vec<String>,
}

impl Program {
    fn new(folder: &Path, words: &[&str]) -> Self {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let mut command = Command::new(&words[0]);
        command.current_dir(folder);
        Self { command, words }
    }

    /// Fills in the paths of the contract and of the component.
    fn fill(&mut self, contract: &Path, out: &Path) {
        let (contract, out) = (contract.display().to_string(), out.display().to_string());
        let value = |name: &str| match name {
            "wit" => Some(contract.as_str().into()),
            "out" => Some(out.as_str().into()),
            _ => None,
        };
        let filled = self.words[1..].iter().map(|word| template::fill(word, ["{", "}"], value));
        self.command.args(filled).env("CONDUCTOR_WIT", &contract).env("CONDUCTOR_OUT", &out);
    }
}

/// The build that a folder brings along, if it is no Rust crate.
fn foreign(folder: &Path) -> anyhow::Result<Option<Program>> {
    let read = |name: &str| plain_file::read_text(&folder.join(name), plain_file::MAX_TEXT).ok();
    if read("Makefile").is_some_and(|text| text.lines().any(|line| line.starts_with("feature:"))) {
        return Ok(Some(Program::new(folder, &["make", "feature"])));
    }
    if let Some(text) = read("package.json") {
        let package: serde_json::Value = serde_json::from_str(&text).context("package.json")?;
        if package["scripts"]["feature"].is_string() {
            return Ok(Some(Program::new(folder, &["npm", "run", "--silent", "feature"])));
        }
    }
    if let Some(text) = read("pyproject.toml") {
        let project: toml::Table = text.parse().context("pyproject.toml")?;
        let build = project.get("tool").and_then(|tool| tool.get("conductor")?.get("build")?.as_array());
        if let Some(build) = build {
            let words: Vec<&str> = build.iter().filter_map(toml::Value::as_str).collect();
            if words.is_empty() || words.len() != build.len() {
                bail!("pyproject.toml: `build` under [tool.conductor] is a list of words: a program and its arguments");
            }
            let mut program = Program::new(folder, &words);
            // A virtual environment beside it needs no activation.
            let beside = folder.join(".venv/bin").join(words[0]);
            if beside.is_file() {
                program.command = Command::new(beside);
                program.command.current_dir(folder);
            }
            return Ok(Some(program));
        }
    }
    Ok(None)
}
