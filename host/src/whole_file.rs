//! Files that are replaced as a whole: whoever is killed in the middle leaves the old one or the new one.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::plain_file;

/// Replaces a file as a whole, so that after a power cut it is the old one or the new one. Whoever might
/// use the old one may use the new one.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    // What was left there, or put there, is not opened: it may be a pipe.
    let _ = fs::remove_file(&temporary);
    let written = File::create_new(&temporary).and_then(|mut file| {
        if let Ok(old) = fs::metadata(path) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    });
    if written.is_err() {
        // Half a file on a full disk is of no use to anybody.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    #[cfg(unix)]
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Keeps what a file has now beside it, as `<file>.bak`, and says where that is.
pub(crate) fn keep_backup(file: &Path) -> io::Result<PathBuf> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".bak");
    let backup = file.with_file_name(name);
    replace(&backup, &plain_file::read(file, plain_file::MAX_TEXT)?)?;
    Ok(backup)
}
