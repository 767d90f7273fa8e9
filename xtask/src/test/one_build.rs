//! That the programs and their tests are compiled from one build of their dependencies: a dependency of tests alone that
//! switches on a feature of, say, what the compiler for WebAssembly is built on, has that compiler built twice.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::collections::BTreeSet;

use crate::{process, repo::Repo};

/// Every dependency with its features, as they are for dependencies of these kinds.
fn dependencies(repo: &Repo, kinds: &str) -> BTreeSet<String> {
    let mut tree = repo.workspace_cargo("tree");
    tree.args(["--prefix=none", "--format={p}: {f}", "--edges", kinds]);
    // What was listed with its dependencies before has a mark.
    process::read(&mut tree).unwrap().lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

#[test]
fn tests_switch_on_no_feature_of_what_the_programs_are_built_from() {
    let repo = Repo::open(true).unwrap();
    let (programs, tests) = (dependencies(&repo, "normal,build"), dependencies(&repo, "normal,build,dev"));
    assert!(programs.len() > 100, "{} dependencies are not all", programs.len());
    let other: Vec<_> = programs.difference(&tests).collect();
    assert!(
        other.is_empty(),
        "with other features in tests: {other:#?}; let host/conductor/Cargo.toml ask for those, too"
    );
}
