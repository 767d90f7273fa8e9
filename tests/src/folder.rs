//! A folder of one's own for as long as a test needs it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// The folder, which is its owner's alone. Dropping it removes it.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// An empty one. `kind` is part of its name.
    pub fn new(kind: &str) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        // Short: the path of a Unix socket has to fit into 107 bytes.
        let path = std::env::temp_dir().join(format!("cond-{kind}-{}-{number}", process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Best effort: what is left behind is small.
        let _ = fs::remove_dir_all(&self.path);
    }
}
