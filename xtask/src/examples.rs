//! The examples in other languages: built where their language is there, left out loudly where it is not.
//!
//! Each folder below `features/examples` is copied to `target/examples`, gets its tools there, and is built
//! by `conductor feature build`, as any author's feature is. Then a new feature of several kinds is begun in each language, and
//! its tests are run.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result};

use crate::{host, process, repo::Repo, setup::unpacked::Unpacked};

/// Build the examples in other languages, where those are there.
#[derive(clap::Args)]
pub struct Args {}

/// The chore.
pub fn run(repo: &Repo, _: Args) -> Result<ExitCode> {
    let conductor = host::ready(repo)?;
    let packages = repo.components().join("examples");
    // What is there afterwards was built now.
    if packages.exists() {
        fs::remove_dir_all(&packages).with_context(|| format!("cannot remove {}", packages.display()))?;
    }
    fs::create_dir_all(&packages).with_context(|| format!("cannot create {}", packages.display()))?;
    for entry in fs::read_dir(repo.root().join("features/examples"))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let folder = repo.target().join("examples").join(&name);
        copy(&entry.path(), &folder)?;
        let mut build = Command::new(&conductor);
        build.args(["feature", "build"]).arg(&folder);
        if let Err(missing) = tools(&folder).and_then(|()| c_compiler(&folder, &mut build)) {
            eprintln!("SKIPPED {name}: {missing:#}");
            continue;
        }
        process::run(&mut build)?;
        let package = format!("{name}.wasm");
        fs::copy(folder.join("target/feature").join(&package), packages.join(&package))?;
    }
    let examples = repo.target().join("examples");
    // Where each goes, and the folder of an example with what it is built with. Node looks for packages in the folders above.
    for (language, place, tools) in [
        ("rust", "", None),
        ("javascript", "chords-js", Some("chords-js/node_modules")),
        ("python", "", Some("scales-py/.venv/bin")),
    ] {
        let tools = tools.map(|tools| examples.join(tools));
        match tools.as_deref().filter(|tools| !tools.is_dir()) {
            Some(missing) => eprintln!("SKIPPED a new feature in {language}: {} is not there", missing.display()),
            None => begun(&conductor, language, &examples.join(place), &examples, tools.as_deref())?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Begins a feature of several kinds in a language, below `above`, as an author does, and runs the tests that it comes with.
/// `tools` holds the programs that it is built with.
fn begun(conductor: &Path, language: &str, above: &Path, examples: &Path, tools: Option<&Path>) -> Result<()> {
    let folder = above.join(format!("begun-{language}"));
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let mut new = Command::new(conductor);
    process::run(new.args(["feature", "new", "--kind", "action,tool,hook", "--language", language]).arg(&folder))?;
    let mut test = Command::new(conductor);
    test.args(["feature", "test", "--target-dir"]).arg(examples.join("builds")).arg(&folder);
    if let Some(tools) = tools {
        let path = env::var_os("PATH").unwrap_or_default();
        test.env("PATH", env::join_paths([tools.to_owned()].into_iter().chain(env::split_paths(&path)))?);
    }
    process::run(&mut test)
}

/// Has a build find a compiler for C that makes WebAssembly: this system's, or else Debian's, unpacked.
fn c_compiler(folder: &Path, build: &mut Command) -> Result<()> {
    const PACKAGES: [&str; 2] = ["clang", "lld"];
    if !folder.join("Makefile").is_file() {
        return Ok(());
    }
    process::find("make").context("make is not installed")?;
    if process::find("clang").is_some() && process::find("wasm-ld").is_some() {
        return Ok(());
    }
    let mut programs: Vec<PathBuf> = env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect();
    let mut libraries = Vec::new();
    for name in PACKAGES {
        let package = Unpacked::package(name, "compiles the example in C to WebAssembly")?;
        programs.insert(0, package.file("usr/bin"));
        libraries.extend(env::split_paths(&package.library_path()?).collect::<Vec<_>>());
    }
    build.env("PATH", env::join_paths(programs)?).env("LD_LIBRARY_PATH", env::join_paths(libraries)?);
    Ok(())
}

/// The files of an example, over what an earlier run left.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Gets what an example is built with.
fn tools(folder: &Path) -> Result<()> {
    if folder.join("package.json").is_file() && !folder.join("node_modules").is_dir() {
        process::find("npm").context("npm is not installed")?;
        let mut install = Command::new("npm");
        install.args(["install", "--no-audit", "--no-fund", "--silent"]).current_dir(folder);
        process::read(&mut install)?;
    }
    if folder.join("pyproject.toml").is_file() && !folder.join(".venv/bin/componentize-py").is_file() {
        process::find("python3").context("python3 is not installed")?;
        let python = |arguments: &[&str], program: PathBuf| {
            let mut command = Command::new(program);
            process::read(command.args(arguments).current_dir(folder)).map(drop)
        };
        python(&["-m", "venv", ".venv"], "python3".into())?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "componentize-py==0.25.*"];
        python(&install, folder.join(".venv/bin/python"))?;
    }
    Ok(())
}
