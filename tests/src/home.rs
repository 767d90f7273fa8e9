//! A home for one conductor: a folder with a configuration, gone when the test is.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::folder::Folder;

/// The home. Dropping it removes its folder.
#[derive(Debug)]
pub struct Home {
    folder: Folder,
}

impl Home {
    /// A home without a configuration. It has been used before: everything that the host keeps from one start to the
    /// next, such as compiled features, is there, so that not every test waits for the compiler.
    pub fn empty() -> Self {
        static KEPT: OnceLock<Vec<(PathBuf, Vec<u8>)>> = OnceLock::new();
        let home = Self::untouched();
        for (path, content) in KEPT.get_or_init(what_the_host_keeps) {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            file.unwrap().write_all(content).unwrap();
        }
        home
    }

    /// A home that no host has been in.
    pub fn untouched() -> Self {
        Self { folder: Folder::new("e2e") }
    }

    /// A home with this configuration.
    pub fn new(config: &str) -> Self {
        let home = Self::empty();
        home.configure(config);
        home
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Where the configuration is.
    pub fn config(&self) -> PathBuf {
        self.path().join("config.toml")
    }

    /// Where a running host answers.
    pub fn socket(&self) -> PathBuf {
        self.path().join("conductor.sock")
    }

    /// Writes the configuration as an editor does: aside, and then moved over the old one.
    pub fn configure(&self, config: &str) {
        let aside = self.write("config.toml.new", config);
        fs::rename(aside, self.config()).unwrap();
    }

    /// The lines of `[features.NAME]` that bind its grants to the package in this file; `None` if it is no package.
    pub fn pins(&self, file: &Path) -> String {
        let file = self.path().join(file);
        let end = self.conductor(&["feature", "inspect", &file.display().to_string(), "--json"]);
        let Ok(info) = serde_json::from_str::<serde_json::Value>(&end.out) else { return String::new() };
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        format!("id = '{}'\ndigest = 'sha256:{}'\n", text(&info["descriptor"]["id"]), text(&info["digest"]))
    }

    /// Writes a file into the home.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

/// Has a host live in a home, and returns the files that it leaves there, by their place.
fn what_the_host_keeps() -> Vec<(PathBuf, Vec<u8>)> {
    let home = Home::untouched();
    home.configure("");
    assert_eq!(home.conductor(&["config", "validate"]).code, Some(0));
    fs::remove_file(home.config()).unwrap();
    let (mut folders, mut files) = (vec![home.path().to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push((path.strip_prefix(home.path()).unwrap().to_owned(), fs::read(&path).unwrap()));
            }
        }
    }
    files
}
