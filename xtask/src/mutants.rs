//! Mutants: defences that are taken out one at a time, each of which has to make a test fail.
//!
//! [`LIST`] names an expression of the source for each, what stands in its place, and the test that must notice. All
//! of them are put into one copy of the repository, switched by an environment variable, so that the copy is compiled
//! once, with all that it depends on.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{cargo, features, process, repo::Repo};

/// The list, from the repository's root.
const LIST: &str = "tests/mutants.toml";
/// The number of the mutant that is switched on, for the copy's code.
const SWITCH: &str = "CONDUCTOR_MUTANT";
/// The package of the models, which compiles other crates' source, and its root.
const MODELS: (&str, &str) = ("conductor-models", "tests/models/src/lib.rs");
/// How long a test may take before it counts as failed: without its defence it may never end.
const TEST_TIMEOUT: Duration = Duration::from_secs(180);

/// Take defences out one at a time, and see that a test fails without each.
#[derive(clap::Args)]
pub struct Args {
    /// Only those whose defence or file contains this text.
    #[arg(long)]
    only: Option<String>,
}

/// A defence that can be taken out.
struct Mutant {
    /// What it keeps away, in a line.
    defence: String,
    /// The file that it stands in, from the repository's root.
    file: String,
    /// A piece of that file that it has once, with the expression that is replaced in double brackets.
    at: String,
    /// The expression instead.
    to: String,
    /// The package that has the test.
    package: String,
    /// `lib`, or the name of a test target.
    target: String,
    /// The test's whole name.
    test: String,
}

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    let text = fs::read_to_string(repo.root().join(LIST)).with_context(|| format!("cannot read {LIST}"))?;
    let chosen = |mutant: &Mutant| {
        args.only.as_ref().is_none_or(|only| mutant.defence.contains(only) || mutant.file.contains(only))
    };
    let all: Vec<Mutant> = mutants(&text)?.into_iter().filter(chosen).collect();
    ensure!(!all.is_empty(), "{LIST} has no such mutant");
    // The sandbox is tested with real guests.
    features::build(repo)?;
    let copy = repo.target().join("mutants/tree");
    copy_sources(repo, &copy)?;
    plant(&copy, &all)?;
    let tests = Tests::build(repo, &copy, &all)?;
    let mut survivors = 0;
    println!("{:>3}  {:<60} {:<30} test", "#", "defence taken out", "result");
    for (number, mutant) in all.iter().enumerate() {
        let began = Instant::now();
        let (before, after) = (tests.passes(mutant, None)?, tests.passes(mutant, Some(number))?);
        let result = match (before, after) {
            (true, false) => format!("fails ({:.1} s)", began.elapsed().as_secs_f64()),
            (true, true) => "SURVIVES".to_owned(),
            (false, _) => "FAILS WITH THE DEFENCE".to_owned(),
        };
        survivors += usize::from(!before || after);
        println!("{:>3}  {:<60} {result:<30} {} {}", number + 1, mutant.defence, mutant.target, mutant.test);
    }
    println!("{} defences, {survivors} without a test that fails", all.len());
    Ok(if survivors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads the list.
///
/// # Errors
/// What is wrong with it.
fn mutants(text: &str) -> Result<Vec<Mutant>> {
    let table: toml::Table = text.parse().with_context(|| format!("{LIST} is no TOML"))?;
    let list =
        table.get("mutant").and_then(toml::Value::as_array).with_context(|| format!("{LIST} has no [[mutant]]"))?;
    list.iter()
        .map(|entry| {
            let field = |name: &str| -> Result<String> {
                let value = entry.get(name).and_then(toml::Value::as_str);
                Ok(value.with_context(|| format!("{LIST}: a mutant without {name}: {entry}"))?.to_owned())
            };
            Ok(Mutant {
                defence: field("defence")?,
                file: field("file")?,
                at: field("at")?,
                to: field("to")?,
                package: field("package")?,
                target: field("target")?,
                test: field("test")?,
            })
        })
        .collect()
}

/// Copies what git tracks, as it stands in the working tree. Files that are the same stay as they are, so that they
/// are not compiled again.
fn copy_sources(repo: &Repo, copy: &Path) -> Result<()> {
    let listed = process::read(Command::new("git").args(["ls-files", "-z"]).current_dir(repo.root()))?;
    for name in listed.split('\0').filter(|name| !name.is_empty()) {
        let (from, to) = (repo.root().join(name), copy.join(name));
        // A file that was removed and not committed is listed still.
        let Ok(bytes) = fs::read(&from) else { continue };
        write_changed(&to, &bytes)?;
    }
    Ok(())
}

fn write_changed(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let folder = path.parent().context("a file without a folder")?;
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, bytes))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Puts the mutants into the copy, and into each crate that has one what tells whether it is switched on.
fn plant(copy: &Path, all: &[Mutant]) -> Result<()> {
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    let mut roots = BTreeSet::new();
    for (number, mutant) in all.iter().enumerate() {
        let path = copy.join(&mutant.file);
        if !files.contains_key(mutant.file.as_str()) {
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", mutant.file))?;
            files.insert(&mutant.file, text);
        }
        let text = files.get_mut(mutant.file.as_str()).context("it was put in above")?;
        *text = mutated(text, mutant, number)?;
        let (source, _) = mutant.file.split_once("/src/").with_context(|| format!("{} is no source", mutant.file))?;
        roots.insert(format!("{source}/src/lib.rs"));
        if mutant.package == MODELS.0 {
            roots.insert(MODELS.1.to_owned());
        }
    }
    for root in &roots {
        let path = copy.join(root);
        if !files.contains_key(root.as_str()) {
            files.insert(root, fs::read_to_string(&path).with_context(|| format!("cannot read {root}"))?);
        }
        let text = files.get_mut(root.as_str()).context("it was put in above")?;
        *text += &format!(
            "\n#[allow(missing_docs)]\npub(crate) fn mutant(number: usize) -> bool {{\n    \
             std::env::var({SWITCH:?}).is_ok_and(|on| on == number.to_string())\n}}\n"
        );
    }
    for (name, text) in files {
        write_changed(&copy.join(name), text.as_bytes())?;
    }
    Ok(())
}

/// The text with the mutant's expression behind its switch.
fn mutated(text: &str, mutant: &Mutant, number: usize) -> Result<String> {
    let parts = || {
        let (before, rest) = mutant.at.split_once("[[")?;
        let (expression, after) = rest.split_once("]]")?;
        Some((before, expression, after))
    };
    let (before, expression, after) = parts().with_context(|| format!("no [[...]] in {:?}", mutant.at))?;
    let from = [before, expression, after].concat();
    let count = text.matches(&from).count();
    ensure!(count == 1, "{} has {from:?} {count} times, and not once", mutant.file);
    let to = &mutant.to;
    Ok(text.replace(&from, &format!("{before}(if crate::mutant({number}) {{ {to} }} else {{ {expression} }}){after}")))
}

/// The tests of the copy, compiled.
struct Tests {
    /// By package and target.
    programs: BTreeMap<(String, String), std::path::PathBuf>,
    folders: BTreeMap<String, std::path::PathBuf>,
    features: std::path::PathBuf,
}

impl Tests {
    fn build(repo: &Repo, copy: &Path, all: &[Mutant]) -> Result<Self> {
        let wanted: BTreeSet<(&str, &str)> = all.iter().map(|mutant| (&*mutant.package, &*mutant.target)).collect();
        let mut build = cargo::command("test", repo.locked());
        build.current_dir(copy).args(["--workspace", "--no-run", "--message-format=json"]);
        // A place of its own for all that is compiled: Cargo tells crates of a workspace apart by their path within it, and
        // would take the copy's for the repository's.
        let target = repo.target().join("mutants/target");
        build.env("CARGO_TARGET_DIR", &target).env("CARGO_BUILD_BUILD_DIR", &target);
        build.args(["--exclude=conductor-bench", "--exclude=conductor-tests"]);
        if wanted.iter().any(|(_, target)| *target == "lib") {
            build.arg("--lib");
        }
        for (_, target) in wanted.iter().filter(|(_, target)| *target != "lib") {
            build.args(["--test", target]);
        }
        let messages = process::read(build.stderr(Stdio::inherit()))?;
        let (mut programs, mut folders) = (BTreeMap::new(), BTreeMap::new());
        for line in messages.lines() {
            let message: serde_json::Value = serde_json::from_str(line)?;
            let (Some(program), Some(manifest)) = (message["executable"].as_str(), message["manifest_path"].as_str())
            else {
                continue;
            };
            let folder = Path::new(manifest).parent().context("a manifest without a folder")?;
            let manifest: toml::Table = fs::read_to_string(manifest)?.parse()?;
            let package = manifest["package"]["name"].as_str().unwrap_or_default().to_owned();
            let kind = message["target"]["kind"][0].as_str().unwrap_or_default();
            let target = if kind == "lib" { "lib" } else { message["target"]["name"].as_str().unwrap_or_default() };
            folders.insert(package.clone(), folder.to_owned());
            programs.insert((package, target.to_owned()), program.into());
        }
        for (package, target) in wanted {
            if !programs.contains_key(&(package.to_owned(), target.to_owned())) {
                bail!("{package} has no tests called {target}");
            }
        }
        Ok(Self { programs, folders, features: repo.components() })
    }

    /// Whether the mutant's test passes with this mutant switched on, or with none.
    fn passes(&self, mutant: &Mutant, on: Option<usize>) -> Result<bool> {
        let key = (mutant.package.clone(), mutant.target.clone());
        let program = self.programs.get(&key).context("it was looked for above")?;
        let mut test = process::dying_with_us(&program.to_string_lossy());
        test.args(["--exact", &mutant.test]).current_dir(&self.folders[&mutant.package]);
        test.env("CONDUCTOR_FEATURES", &self.features).stdin(Stdio::null()).stderr(Stdio::null());
        test.stdout(Stdio::piped()).env_remove(SWITCH);
        if let Some(number) = on {
            test.env(SWITCH, number.to_string());
        }
        let mut child = test.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let mut status = None;
        if !process::poll(TEST_TIMEOUT, || {
            status = child.try_wait().ok().flatten();
            status.is_some()
        }) {
            process::end(&mut child, Duration::ZERO);
            return Ok(false);
        }
        let output = child.wait_with_output()?;
        let ran = String::from_utf8_lossy(&output.stdout).contains("running 1 test");
        ensure!(ran, "{} has no test {}", mutant.target, mutant.test);
        Ok(status.is_some_and(|status| status.success()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn mutant(at: &str) -> Mutant {
        let text = format!(
            "[[mutant]]\ndefence = 'd'\nfile = 'a/src/b.rs'\nat = '{at}'\nto = 'true'\npackage = 'p'\ntarget = 'lib'\n\
             test = 't'"
        );
        mutants(&text).unwrap().remove(0)
    }

    #[test]
    fn an_expression_is_put_behind_its_switch() {
        let text = mutated("if a && b { c }", &mutant("if [[a && b]] {"), 7).unwrap();
        assert_eq!(text, "if (if crate::mutant(7) { true } else { a && b }) { c }");
        let twice = mutated("if a { } if a { }", &mutant("if [[a]] {"), 7).unwrap_err();
        assert!(twice.to_string().contains("2 times"), "{twice}");
        assert!(mutated("if a { }", &mutant("if a {"), 7).is_err());
    }

    #[test]
    fn the_list_names_what_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let all = mutants(&fs::read_to_string(root.join(LIST)).unwrap()).unwrap();
        assert!(all.len() >= 20, "only {}", all.len());
        for (number, mutant) in all.iter().enumerate() {
            let text = fs::read_to_string(root.join(&mutant.file)).unwrap();
            mutated(&text, mutant, number).unwrap();
        }
    }
}
