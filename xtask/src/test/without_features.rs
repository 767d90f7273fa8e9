//! The program without its features: it is compiled without a warning, and without the libraries that they bring.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::{process, repo::Repo};

/// What depends on the program with its features.
const DEPENDENT: &str = "conductor-mcp-fixtures";

/// The libraries on Linux that the features bring: of the desktop, of devices and of keychains.
const LIBRARIES: [&str; 7] = ["elgato-streamdeck", "enigo", "gilrs", "keyring-core", "wayland-client", "x11rb", "zbus"];

const NO_FEATURES: &str = "--no-default-features";

/// Checks the crates without features. A warning is an error.
///
/// All crates rather than those that have such features: with the program alone, its dependencies would be compiled for
/// other features of theirs than in all other checks, and so once more.
pub fn clippy(repo: &Repo) -> Command {
    let mut clippy = repo.workspace_cargo("clippy");
    clippy.args([&format!("--exclude={DEPENDENT}"), NO_FEATURES, "--", "-Dwarnings"]);
    clippy
}

/// Checks that the program without features depends on none of their libraries.
///
/// # Errors
/// Those that it depends on.
pub fn check_libraries(repo: &Repo) -> Result<()> {
    let found = libraries(repo, Some(NO_FEATURES))?;
    ensure!(found.is_empty(), "without features the program still depends on {}", found.join(", "));
    Ok(())
}

/// The libraries that the program depends on if it is built with this argument.
fn libraries(repo: &Repo, argument: Option<&str>) -> Result<Vec<&'static str>> {
    let mut tree = repo.cargo("tree");
    tree.args(["--package=conductor", "--edges=normal", "--prefix=none"]).args(argument);
    let tree = process::read(&mut tree)?;
    let has = |name: &str| tree.lines().any(|line| line.split(' ').next() == Some(name));
    Ok(LIBRARIES.into_iter().filter(|name| has(name)).collect())
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "in a test a panic is a result")]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_checked_without_any_of_them() {
        let repo = Repo::open(true).unwrap();
        let mut tree = repo.workspace_cargo("tree");
        tree.args([&format!("--exclude={DEPENDENT}"), NO_FEATURES, "--edges=normal,build", "--prefix=none"]);
        tree.args(["--format={p}: {f}", "--invert=conductor", "--depth=0"]);
        let tree = process::read(&mut tree).unwrap();
        assert!(tree.trim().ends_with(':'), "the program is checked with features: {tree}");
    }

    #[test]
    fn the_libraries_come_with_the_features() {
        let repo = Repo::open(true).unwrap();
        assert_eq!(libraries(&repo, None).unwrap(), LIBRARIES);
        assert!(check_libraries(&repo).is_ok());
    }
}
