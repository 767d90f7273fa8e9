//! Embeds the pages: `pages.rs` in the build's folder, a list of the files of `ui/dist` and their gzip-compressed bytes.
//!
//! Where that folder is not there, the list is empty, and the program is built all the same. `cargo xtask web` makes it.

use std::env;
use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> Result<(), Box<dyn Error>> {
    let ui = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("ui");
    let (dist, out) = (ui.join("dist"), PathBuf::from(env::var("OUT_DIR")?));
    let mut files = Vec::new();
    if dist.is_dir() {
        collect(&dist, &mut files)?;
        files.sort();
    } else {
        // A path that is not there would have this run, and all that depends on it compiled, with every build. `cargo
        // xtask web` touches this one when the folder is there.
        println!("cargo::rerun-if-changed={}", ui.join("package.json").display());
    }
    let mut list = String::from("const EMBEDDED: &[(&str, &[u8])] = &[\n");
    for (number, file) in files.iter().enumerate() {
        let mut compressed = GzEncoder::new(Vec::new(), Compression::best());
        compressed.write_all(&fs::read(file)?)?;
        let to = out.join(format!("{number}.gz"));
        fs::write(&to, compressed.finish()?)?;
        let name = file.strip_prefix(&dist)?.to_string_lossy().replace('\\', "/");
        list += &format!("    ({name:?}, include_bytes!({to:?})),\n");
    }
    list += "];\n";
    Ok(fs::write(out.join("pages.rs"), list)?)
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
