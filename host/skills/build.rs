//! Puts the skills of the repository's `skills/` folder into the program, so that they are there without any file.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills");
    let root = root.canonicalize().expect("the repository has a folder `skills`");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut text = String::from("&[\n");
    for folder in sorted(&root).into_iter().filter(|path| path.join("SKILL.md").is_file()) {
        let mut files = Vec::new();
        collect(&folder, &mut files);
        let name = folder.file_name().expect("a folder has a name").to_string_lossy().into_owned();
        writeln!(text, "    ({name:?}, &[").expect("a string takes all");
        for file in files {
            let inner = file.strip_prefix(&folder).expect("it was found there").to_string_lossy().replace('\\', "/");
            writeln!(text, "        ({inner:?}, include_bytes!({:?}) as &[u8]),", file.display().to_string())
                .expect("a string takes all");
        }
        text += "    ]),\n";
    }
    text += "]\n";
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
    fs::write(out.join("bundled.rs"), text).expect("OUT_DIR can be written");
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of skills can be read");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    paths.sort();
    paths
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo::rerun-if-changed={}", folder.display());
    for path in sorted(folder) {
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}
