//! Code that a release brings along: its first start compiles nothing, and what was altered is compiled anew.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use conductor_tests::conductor::{Host, command, components};
use conductor_tests::folder::Folder;
use conductor_tests::home::Home;
use conductor_tests::process::Process;

const FEATURE: &str = "osc-output";

/// A release of one feature: the folder with the program, and its features.
struct Release(Folder);

impl Release {
    fn new() -> Self {
        let folder = Folder::new("release");
        fs::create_dir(folder.path().join("features")).unwrap();
        let packed = format!("{FEATURE}.wasm");
        fs::copy(components().join(&packed), folder.path().join("features").join(packed)).unwrap();
        let release = Self(folder);
        let (features, program) = (release.features(), release.program());
        let arguments = ["precompile", features.to_str().unwrap(), program.to_str().unwrap()];
        let end = Process::start(&mut command(release.0.path(), &arguments)).wait().0;
        assert_eq!(end.code, Some(0), "{}", end.err);
        assert!(end.out.starts_with("1 features, "), "{}", end.out);
        release
    }

    fn program(&self) -> PathBuf {
        self.0.path().join("conductor")
    }

    fn features(&self) -> PathBuf {
        self.0.path().join("features")
    }

    fn code(&self) -> PathBuf {
        let mut files = fs::read_dir(self.features().join("code")).unwrap().map(|file| file.unwrap().path());
        files.find(|file| file.extension().is_some_and(|extension| extension == "cwasm")).unwrap()
    }

    /// A command of the released program in a home.
    fn command(&self, home: &Home, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program());
        command.arg("--home").arg(home.path()).args(arguments).env("NO_COLOR", "1");
        command.env_remove("CONDUCTOR_HOME").env_remove("CONDUCTOR_LOG").env_remove("CONDUCTOR_FEATURES");
        command
    }

    /// Starts the released program for the first time in a new home, and returns how many packages it compiled.
    fn first_start(&self) -> usize {
        let home = Home::untouched();
        home.configure("");
        let host = Host::ready(&mut self.command(&home, &["run"]), home.socket());
        assert_eq!(host.feature(FEATURE)["name"], FEATURE, "{:#}", host.status());
        host.stop();
        compiled(home.path())
    }
}

fn compiled(home: &Path) -> usize {
    let files = fs::read_dir(home.join("cache/code")).unwrap().map(|file| file.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "cwasm")).count()
}

// PERF-4: the first start of a release compiles nothing.
#[test]
fn a_release_compiles_nothing_and_trusts_nothing_that_was_altered() {
    let release = Release::new();
    assert_eq!(release.first_start(), 0);

    let good = fs::read(release.code()).unwrap();
    let mut altered = good.clone();
    let middle = altered.len() / 2;
    altered[middle] ^= 1;
    fs::write(release.code(), &altered).unwrap();
    assert_eq!(release.first_start(), 1, "code that was altered");
    fs::write(release.code(), &good).unwrap();
    assert_eq!(release.first_start(), 0);

    // A manifest that is altered along with the code is not the one that the program knows.
    let manifest = release.features().join("code/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text + "\n").unwrap();
    assert_eq!(release.first_start(), 1, "a manifest that was altered");
}

#[test]
fn commands_of_a_release_compile_nothing_before_its_first_start() {
    let release = Release::new();
    for arguments in [&["config", "validate"][..], &["feature", "list"], &["explain", "pads note-on 36 100"]] {
        let home = Home::untouched();
        home.configure("");
        let end = Process::start(&mut release.command(&home, arguments)).wait().0;
        assert_eq!(end.code, Some(0), "{arguments:?}: {}", end.err);
        assert_eq!(compiled(home.path()), 0, "{arguments:?}");
    }
}

// A build that is no release trusts no code that lies beside its features.
#[test]
fn a_program_of_no_release_trusts_no_code() {
    let release = Release::new();
    let home = Home::untouched();
    home.configure("");
    let mut command = command(home.path(), &["run"]);
    let host = Host::ready(command.env("CONDUCTOR_FEATURES", release.features()), home.socket());
    host.stop();
    assert_eq!(compiled(home.path()), 1);
}
