//! Atomic file writes: a file is replaced as a whole, so that a process that is killed midway leaves the old one or
//! the new one.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::plain_file;

/// How often a temporary file is made anew if another process has cleaned it up.
const MAX_TRIES: usize = 64;

/// Replaces a file as a whole, so that after a power cut it is the old one or the new one. A process that might
/// use the old one may use the new one.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary(path, std::process::id());
    let mut file = locked(&temporary)?;
    let written = (|| {
        if let Ok(old) = fs::metadata(path) {
            file.set_permissions(old.permissions())?;
        }
        file.set_len(0)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        // Half a file on a full disk is of no use.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    #[cfg(unix)]
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Removes what processes that were killed while they replaced `path` have left beside it, and returns how many files
/// that were. One that is being written is locked by its process, and is left alone.
pub fn remove_stale(path: &Path) -> usize {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else { return 0 };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let ours = |file: &str| {
        let process = file.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".tmp")?;
        (!process.is_empty() && process.bytes().all(|digit| digit.is_ascii_digit())).then_some(())
    };
    let left = entries.flatten().filter(|entry| {
        // A link is none of ours, and what it leads to even less.
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        is_file && entry.file_name().to_str().and_then(ours).is_some()
    });
    left.filter(|entry| {
        let file = entry.path();
        // The lock goes with the process that had it.
        let unused = File::options().write(true).open(&file).is_ok_and(|open| open.try_lock().is_ok());
        unused && fs::remove_file(&file).is_ok()
    })
    .count()
}

/// Keeps what a file has now beside it, as `<file>.bak`, and says where that is.
pub fn keep_backup(file: &Path) -> io::Result<PathBuf> {
    let backup = backup(file);
    replace(&backup, &plain_file::read(file, plain_file::MAX_TEXT)?)?;
    Ok(backup)
}

/// Where [`keep_backup`] keeps it.
pub fn backup(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".bak");
    file.with_file_name(name)
}

fn temporary(path: &Path, process: u32) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{process}.tmp"));
    path.with_file_name(name)
}

/// A file of this name that is locked for this process. What lies there already was left by a process that had the same
/// number; it is not followed if it is a link.
fn locked(path: &Path) -> io::Result<File> {
    for _ in 0..MAX_TRIES {
        match File::options().write(true).create_new(true).open(path) {
            Ok(file) => {
                match file.try_lock() {
                    Ok(()) => {}
                    // Who tidies up has it, and is about to remove it.
                    Err(TryLockError::WouldBlock) => continue,
                    // A file system without locks: no process cleans up there either.
                    Err(TryLockError::Error(_)) => return Ok(file),
                }
                // Another process may have removed the name in between.
                if path.symlink_metadata().is_ok() {
                    return Ok(file);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
                if is_file && let Ok(other) = File::options().write(true).open(path) {
                    // Another thread may be writing it: its turn ends with its lock.
                    let _ = other.lock();
                }
                match fs::remove_file(path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("{} is taken away again and again", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("conductor-whole-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<String> = entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let folder = Folder::new("replaced");
        let file = folder.0.join("config.toml");
        fs::write(&file, "old").unwrap();
        // Of a process with this number, which was killed.
        fs::write(temporary(&file, std::process::id()), "half a fi").unwrap();
        keep_backup(&file).unwrap();
        replace(&file, b"new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::read_to_string(backup(&file)).unwrap(), "old");
        assert_eq!(folder.names(), ["config.toml", "config.toml.bak"]);
    }

    #[test]
    fn what_killed_processes_left_is_removed_and_nothing_else() {
        let folder = Folder::new("stale");
        let file = folder.0.join("config.toml");
        for name in [
            "config.toml",
            "config.toml.1.tmp",
            "config.toml.77.tmp",
            "config.toml.x.tmp",
            "config.toml..tmp",
            "other.1.tmp",
        ] {
            fs::write(folder.0.join(name), "x").unwrap();
        }
        fs::create_dir(folder.0.join("config.toml.5.tmp")).unwrap();
        let written = locked(&folder.0.join("config.toml.6.tmp")).unwrap();
        assert_eq!(remove_stale(&file), 2);
        assert_eq!(
            folder.names(),
            [
                "config.toml",
                "config.toml..tmp",
                "config.toml.5.tmp",
                "config.toml.6.tmp",
                "config.toml.x.tmp",
                "other.1.tmp"
            ]
        );
        drop(written);
        assert_eq!(remove_stale(&file), 1, "it is written no longer");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_place_of_the_temporary_file_is_not_followed() {
        let folder = Folder::new("link");
        let (file, victim) = (folder.0.join("config.toml"), folder.0.join("victim"));
        fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, temporary(&file, std::process::id())).unwrap();
        replace(&file, b"new").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
        assert!(!file.is_symlink());
    }
}
