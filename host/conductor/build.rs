//! Embeds the SDK and the contract: `sdk.rs` in the build's folder, a list of their files and texts.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    let mut files = vec![root.join("feature-api/Cargo.toml")];
    for folder in ["feature-api/src", "wit/v0.1"] {
        collect(&root.join(folder), &mut files)?;
    }
    files.sort();
    let mut list = String::from("const FILES: &[(&str, &str)] = &[\n");
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.strip_prefix(&root)?.to_string_lossy().replace('\\', "/");
        list += &format!("    ({name:?}, include_str!({file:?})),\n");
    }
    list += "];\n";
    Ok(fs::write(Path::new(&env::var("OUT_DIR")?).join("sdk.rs"), list)?)
}

/// Adds all files below a folder. A file that is added later is seen, too.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
