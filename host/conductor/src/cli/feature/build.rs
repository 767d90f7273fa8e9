//! `conductor feature build`: from a folder to a checked package, in any of the supported languages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, anyhow, bail};
use conductor_feature_build::{GuestRust, cargo, component, guest_rust, process};

use super::super::{CommandResult, Failure};
use super::world::{Setup, World};
use super::{inspected, sdk, shared_code};
use conductor_package::descriptor::MAX_DESCRIPTOR;
use conductor_package::file::PackageError;
use conductor_package::{Descriptor, Package, check};
use conductor_stdx::plain_file;
use conductor_stdx::template;
use conductor_terminal::{self as terminal, Progress, errln, outln};

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

/// Builds, checks and describes; returns where the package is. `target` is where Cargo keeps what it compiled.
pub(super) fn run(folder: &Path, sdk: Option<&Path>, target: &Path) -> Result<PathBuf, Failure> {
    let folder = &folder.canonicalize().with_context(|| folder.display().to_string())?;
    let out = package_path(folder)?;
    if let Some(parent) = out.parent() {
        fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
    }
    let bytes = match foreign(folder, Step::Build)? {
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
        None => rust(folder, target)?,
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

/// Builds, and runs the project's tests with the package: those of Cargo, or of another language.
pub(super) fn test(folder: &Path, rest: &[String], target: &Path) -> CommandResult {
    let folder = &folder.canonicalize().with_context(|| folder.display().to_string())?;
    let is_crate = folder.join("Cargo.toml").is_file() && foreign(folder, Step::Build)?.is_none();
    let program = if is_crate { None } else { foreign(folder, Step::Test)? };
    let mut test = match program {
        Some(program) => program.whole(rest),
        None if is_crate => {
            let mut test = cargo::command("test", false);
            test.current_dir(folder).args(rest).env("CARGO_TARGET_DIR", target);
            test
        }
        None => {
            return Err(Failure::Wrong(format!(
                "conductor: {} has no tests to run: no Cargo.toml, no package.json with a script `test`, no pyproject.toml \
                 with `test` under [tool.conductor], no Makefile with a target `test`; `conductor feature build` builds \
                 the package, and `conductor feature check` installs it",
                folder.display()
            )));
        }
    };
    let package = run(folder, None, target)?;
    let code = folder.join("target/feature/code");
    compile_once(&package, &code)?;
    test.env("CONDUCTOR_FEATURE_PACKAGE", package)
        .env(shared_code::VARIABLE, code)
        .env("CONDUCTOR_BIN", std::env::current_exe().context("this program's own path")?);
    Ok(process::run(&mut test)?)
}

/// Compiles the package for all hosts that the tests start.
fn compile_once(package: &Path, code: &Path) -> anyhow::Result<()> {
    shared_code::begin(code).with_context(|| code.display().to_string())?;
    let package = Package::read(package)?;
    let setup = Setup { grant_all: true, code: Some(code.to_owned()), ..Setup::default() };
    let _working = compiling(&package);
    // What is wrong with it is for the tests to tell, which may grant it less.
    drop(World::new(&package, &setup));
    Ok(())
}

/// Says that a package is compiled, as long as this is kept.
pub(in super::super) fn compiling(package: &Package) -> Progress {
    let megabytes = package.info.size as f64 / 1e6;
    let id = &package.info.descriptor.id;
    Progress::start(format_args!("compiling {id}, {megabytes:.1} MB, and trying it out"))
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
fn rust(folder: &Path, target: &Path) -> anyhow::Result<Vec<u8>> {
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
    let target = target.join("guest");
    // Until the module is read: another project may have a crate of the same name, whose module goes to the same file.
    let _locked = lock(&target)?;
    let mut command = rust.cargo("build", folder, &target, false);
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

/// Waits until no other build of this program has the folder; released when it is dropped.
fn lock(folder: &Path) -> anyhow::Result<fs::File> {
    let path = folder.join("conductor.lock");
    let failed = || path.display().to_string();
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let file = fs::File::options().create(true).append(true).open(&path).with_context(failed)?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(fs::TryLockError::WouldBlock) => errln!("waiting for another build in {}", folder.display()),
        Err(fs::TryLockError::Error(error)) => return Err(error).with_context(failed),
    }
    file.lock().with_context(failed)?;
    Ok(file)
}

/// What a project of another language is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Build,
    Test,
}

/// A build or test run of another language's own.
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

    /// The command as it stands, with more arguments.
    fn whole(mut self, rest: &[String]) -> Command {
        self.command.args(&self.words[1..]);
        if !rest.is_empty() {
            // npm takes what stands before this for itself.
            self.command.args((self.words[0] == "npm").then_some("--")).args(rest);
        }
        self.command
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

/// What a folder brings along for a step, if it is no Rust crate.
fn foreign(folder: &Path, step: Step) -> anyhow::Result<Option<Program>> {
    let read = |name: &str| plain_file::read_text(&folder.join(name), plain_file::MAX_TEXT).ok();
    // The name of a Makefile's target and of a script of npm, and the key of a pyproject.toml.
    let (target, key) = match step {
        Step::Build => ("feature", "build"),
        Step::Test => ("test", "test"),
    };
    let rule = format!("{target}:");
    if read("Makefile").is_some_and(|text| text.lines().any(|line| line.starts_with(&rule))) {
        return Ok(Some(Program::new(folder, &["make", target])));
    }
    if let Some(text) = read("package.json") {
        let package: serde_json::Value = serde_json::from_str(&text).context("package.json")?;
        if package["scripts"][target].is_string() {
            let needs = |key: &str| package[key].as_object().is_some_and(|packages| !packages.is_empty());
            let has_modules = || folder.ancestors().any(|above| above.join("node_modules").is_dir());
            if (needs("dependencies") || needs("devDependencies")) && !has_modules() {
                bail!("{} has no node_modules yet; run `npm install` there first", folder.display());
            }
            return Ok(Some(Program::new(folder, &["npm", "run", "--silent", target])));
        }
    }
    if let Some(text) = read("pyproject.toml") {
        let project: toml::Table = text.parse().context("pyproject.toml")?;
        let words = project.get("tool").and_then(|tool| tool.get("conductor")?.get(key)?.as_array());
        if let Some(listed) = words {
            let words: Vec<&str> = listed.iter().filter_map(toml::Value::as_str).collect();
            if words.is_empty() || words.len() != listed.len() {
                bail!("pyproject.toml: `{key}` under [tool.conductor] is a list of words: a program and its arguments");
            }
            let mut program = Program::new(folder, &words);
            // A virtual environment beside it needs no activation.
            let beside = folder.join(".venv/bin").join(words[0]);
            if beside.is_file() {
                program.command = Command::new(beside);
                program.command.current_dir(folder);
            } else if process::find(words[0]).is_none() && Path::new(words[0]).components().count() == 1 {
                bail!(
                    "{}: there is no `{}` in .venv/bin or on the search path; run `{}` there first",
                    folder.display(),
                    words[0],
                    in_venv(&project)
                );
            }
            return Ok(Some(program));
        }
    }
    Ok(None)
}

/// The command that makes a virtual environment with what a pyproject.toml names for its development.
fn in_venv(project: &toml::Table) -> String {
    let packages = project.get("dependency-groups").and_then(|groups| groups.get("dev")?.as_array());
    let packages = packages.into_iter().flatten().filter_map(toml::Value::as_str);
    let packages: String = packages.map(|package| format!(" \"{package}\"")).collect();
    let install = if packages.is_empty() { " .".to_owned() } else { packages };
    format!("python3 -m venv .venv && .venv/bin/pip install{install}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is done for a step in a folder with this one file.
    fn line(file: &str, text: &str, step: Step) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(file), text).unwrap();
        foreign(folder.path(), step).unwrap().map(|program| process::line(&program.whole(&["-v".to_owned()])))
    }

    #[test]
    fn each_language_says_how_it_is_built_and_tested() {
        let package = r#"{ "scripts": { "feature": "node build.js", "test": "node --test" } }"#;
        assert_eq!(line("package.json", package, Step::Build).unwrap(), "npm run --silent feature -- -v");
        assert_eq!(line("package.json", package, Step::Test).unwrap(), "npm run --silent test -- -v");
        let project = "[tool.conductor]\nbuild = ['python3', 'make-it']\ntest = ['python3', '-m', 'unittest']\n";
        assert_eq!(line("pyproject.toml", project, Step::Build).unwrap(), "python3 make-it -v");
        assert_eq!(line("pyproject.toml", project, Step::Test).unwrap(), "python3 -m unittest -v");
        assert_eq!(line("Makefile", "feature: x\ntest: y\n", Step::Test).unwrap(), "make test -v");
        assert_eq!(line("Makefile", "feature: x\n", Step::Test), None);
    }

    #[test]
    fn what_a_script_needs_has_to_be_there() {
        let folder = tempfile::tempdir().unwrap();
        let package = r#"{ "scripts": { "feature": "x" }, "devDependencies": { "a": "1" } }"#;
        fs::write(folder.path().join("package.json"), package).unwrap();
        let refused = foreign(folder.path(), Step::Build).err().unwrap().to_string();
        assert!(refused.contains("npm install"), "{refused}");
        fs::create_dir(folder.path().join("node_modules")).unwrap();
        assert!(foreign(folder.path(), Step::Build).unwrap().is_some());
    }

    #[test]
    fn what_a_pyproject_needs_has_to_be_there() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |project: &str| {
            fs::write(folder.path().join("pyproject.toml"), project).unwrap();
            foreign(folder.path(), Step::Build).err().map(|error| error.to_string())
        };
        let project = "[dependency-groups]\ndev = [\"make-it==1.*\"]\n[tool.conductor]\nbuild = [\"make-it\"]\n";
        let said = refused(project).unwrap();
        assert!(said.contains("there is no `make-it` in .venv/bin or on the search path"), "{said}");
        assert!(said.contains("`python3 -m venv .venv && .venv/bin/pip install \"make-it==1.*\"` there"), "{said}");
        let said = refused("[tool.conductor]\nbuild = [\"make-it\"]\n").unwrap();
        assert!(said.contains(".venv/bin/pip install .`"), "{said}");
        assert_eq!(refused("[tool.conductor]\nbuild = [\"./make-it\"]\n"), None, "a file of its own");
        fs::create_dir_all(folder.path().join(".venv/bin")).unwrap();
        fs::write(folder.path().join(".venv/bin/make-it"), "").unwrap();
        assert_eq!(refused(project), None);
    }

    /// Two builds in one folder: another project may have a crate of the same name.
    #[test]
    fn one_build_at_a_time_has_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock(folder.path()).unwrap();
        let other = fs::File::options().append(true).open(folder.path().join("conductor.lock")).unwrap();
        assert!(matches!(other.try_lock(), Err(fs::TryLockError::WouldBlock)));
        drop(held);
        other.try_lock().unwrap();
    }
}
