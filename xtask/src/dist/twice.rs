//! Whether a release can be made again: it is built once more, out of a clone of the last commit in another folder, and
//! what comes of it is compared, file by file.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::{Release, foreign::System};
use crate::{cargo, process, repo::Repo};

/// Builds the release again and compares both.
///
/// # Errors
/// The files that differ; or what differs from the last commit, since a clone does not have it.
pub fn compare(repo: &Repo, release: &Release, target: Option<System>, dev: bool) -> Result<()> {
    let changed = process::read(Command::new("git").args(["status", "--porcelain"]).current_dir(repo.root()))?;
    if !changed.is_empty() {
        bail!("a clone has the last commit and nothing else; commit these first:\n{changed}");
    }
    let again = repo.target().join("dist-again");
    if again.exists() {
        fs::remove_dir_all(&again).with_context(|| again.display().to_string())?;
    }
    process::run(Command::new("git").args(["clone", "--quiet", "--no-local"]).arg(repo.root()).arg(&again))?;
    let mut build = Command::new("cargo");
    cargo::forget_our_build(&mut build);
    build.args(["run", "--package=xtask", "--quiet", "--", "dist", "--apart"]).args(dev.then_some("--dev"));
    build.args(target.map(|system| format!("--target={}", system.triple())));
    process::run(build.args(repo.locked().then_some("--locked")).current_dir(&again).env_remove("CARGO_TARGET_DIR"))?;
    let [first, second] = [&release.dist, &again.join("target/dist")].map(|folder| files(folder));
    let differing = differing(&first?, &second?);
    if differing.is_empty() {
        println!("built twice, in two folders: every file is the same");
        return Ok(());
    }
    bail!("built twice, and these files differ:\n{}", differing.join("\n"))
}

/// The SHA-256 of all files below a folder, by their paths in it.
fn files(folder: &Path) -> Result<BTreeMap<PathBuf, String>> {
    let sums = process::read(
        Command::new("find").args([".", "-type", "f", "-exec", "sha256sum", "{}", "+"]).current_dir(folder),
    )?;
    let line = |line: &str| line.split_once("  ").map(|(sum, path)| (PathBuf::from(path), sum.to_owned()));
    sums.lines().map(|text| line(text).with_context(|| format!("not a checksum: {text}"))).collect()
}

/// The paths that are not in both, or not with the same content.
fn differing(first: &BTreeMap<PathBuf, String>, second: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let mut all: Vec<&PathBuf> = first.keys().chain(second.keys()).collect();
    all.sort();
    all.dedup();
    all.into_iter()
        .filter(|path| first.get(*path) != second.get(*path))
        .map(|path| path.display().to_string())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_one_alone_differs_too() {
        let folder = |files: &[(&str, &str)]| -> BTreeMap<PathBuf, String> {
            files.iter().map(|(path, sum)| (PathBuf::from(path), (*sum).to_owned())).collect()
        };
        let (first, second) =
            (folder(&[("a", "1"), ("b", "2"), ("c", "3")]), folder(&[("a", "1"), ("b", "9"), ("d", "4")]));
        assert_eq!(differing(&first, &second), ["b", "c", "d"]);
        assert!(differing(&first, &first).is_empty());
    }

    #[test]
    fn all_files_of_a_folder_are_compared() {
        let folder = std::env::temp_dir().join(format!("conductor-twice-{}", std::process::id()));
        fs::create_dir_all(folder.join("a")).expect("a folder of the system for temporary files");
        fs::write(folder.join("a/b"), "").expect("a folder of the system for temporary files");
        let found = files(&folder);
        fs::remove_dir_all(&folder).expect("a folder of the system for temporary files");
        let found = found.expect("it can be read");
        assert_eq!(found.keys().collect::<Vec<_>>(), [Path::new("./a/b")]);
        assert!(found[Path::new("./a/b")].starts_with("e3b0c442"));
    }
}
