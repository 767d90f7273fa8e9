//! Lists the profiles of the library, so that they become part of the program.

use std::{env, fs, path::Path};

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../features/device-library/devices");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    files.sort();
    let lines = files.iter().map(|name| {
        let path = folder.join(name);
        println!("cargo::rerun-if-changed={}", path.display());
        format!("    ({name:?}, include_str!({path:?})),\n")
    });
    let source = format!("&[\n{}]", lines.collect::<String>());
    let out = env::var("OUT_DIR").unwrap_or_else(|error| panic!("OUT_DIR: {error}"));
    let out = Path::new(&out).join("files.rs");
    fs::write(&out, source).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
}
