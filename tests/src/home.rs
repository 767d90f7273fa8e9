//! A home for one conductor: a folder with a configuration, gone when the test is.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The folder. Dropping it removes it.
#[derive(Debug)]
pub struct Home {
    folder: PathBuf,
}

impl Home {
    /// A home without a configuration. It has been lived in: whatever the host keeps from one start to the
    /// next, such as compiled features, is there, so that not every test waits for the compiler.
    pub fn empty() -> Self {
        static KEPT: OnceLock<Vec<(PathBuf, Vec<u8>)>> = OnceLock::new();
        let home = Self::untouched();
        for (path, content) in KEPT.get_or_init(what_the_host_keeps) {
            let path = home.folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            file.unwrap().write_all(content).unwrap();
        }
        home
    }

    /// A home that no host has been in.
    pub fn untouched() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        // Short: the path of a Unix socket has to fit into 107 bytes.
        let folder = std::env::temp_dir().join(format!("cond-e2e-{}-{number}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    /// A home with this configuration.
    pub fn new(config: &str) -> Self {
        let home = Self::empty();
        home.configure(config);
        home
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Where the configuration is.
    pub fn config(&self) -> PathBuf {
        self.folder.join("config.toml")
    }

    /// Where a running host answers.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("conductor.sock")
    }

    /// Writes the configuration as an editor does: aside, and then moved over the old one.
    pub fn configure(&self, config: &str) {
        let aside = self.write("config.toml.new", config);
        fs::rename(aside, self.config()).unwrap();
    }

    /// Writes a file into the home.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.join(name);
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
    let (mut folders, mut files) = (vec![home.folder.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push((path.strip_prefix(&home.folder).unwrap().to_owned(), fs::read(&path).unwrap()));
            }
        }
    }
    files
}

impl Drop for Home {
    fn drop(&mut self) {
        // Left-overs in the temporary folder are a blemish, not a failure.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
