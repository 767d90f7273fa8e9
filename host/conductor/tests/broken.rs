//! Broken configurations in `broken/`: each is checked as a person checks it, and what is printed is compared with the file
//! beside it. Every mistake is named in one run, with its place, its cause, and what to write instead.
//!
//! `BROKEN=write` writes these files anew.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The bundled features: where `cargo xtask test` says, else beside the build of this test.
fn built() -> PathBuf {
    let beside = || std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("features");
    std::env::var_os("CONDUCTOR_FEATURES").map_or_else(beside, PathBuf::from)
}

/// A folder with the features whose actions and tools the configurations name, and a home.
fn stage() -> (PathBuf, PathBuf) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken");
    let (features, home) = (folder.join("features"), folder.join("home"));
    fs::create_dir_all(&features).unwrap();
    fs::create_dir_all(&home).unwrap();
    for feature in ["osc-output.wasm", "artnet-output.wasm", "anthropic.wasm"] {
        fs::copy(built().join(feature), features.join(feature)).unwrap();
    }
    (features, home)
}

// CFG-2
#[test]
fn every_broken_configuration_is_told_what_is_wrong_with_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let (features, home) = stage();
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    assert!(files.len() >= 60, "{} configurations", files.len());
    let mut differ = Vec::new();
    for file in files {
        let mut validate = Command::new(env!("CARGO_BIN_EXE_conductor"));
        validate.args(["config", "validate", "--config"]).arg(file.file_name().unwrap()).current_dir(&folder);
        validate.env("CONDUCTOR_HOME", &home).env("CONDUCTOR_FEATURES", &features).env("CONDUCTOR_LOG", "off");
        let output = validate.output().unwrap();
        let said = [output.stderr, output.stdout, format!("exit code {}\n", output.status.code().unwrap()).into()];
        let said = String::from_utf8(said.concat()).unwrap();
        assert!(said.contains("error: ") || said.contains("warning: "), "{} is fine:\n{said}", file.display());
        let expected = file.with_extension("txt");
        if std::env::var("BROKEN").is_ok_and(|what| what == "write") {
            fs::write(&expected, &said).unwrap();
        }
        let expected = fs::read_to_string(&expected).unwrap_or_default();
        if said != expected {
            differ.push(format!("{}:\n{said}instead of\n{expected}", file.display()));
        }
    }
    assert!(differ.is_empty(), "{} of them have another message:\n{}", differ.len(), differ.join("\n"));
}
