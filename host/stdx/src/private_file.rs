//! Files that only their owner can open, for libraries that open files by their paths.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

/// Creates the file if it does not exist, and ensures that only its owner can open it. There is no moment at which
/// another user could open one that is new.
///
/// # Errors
/// The system's.
pub fn make(file: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let opened = options.open(file)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let permissions = opened.metadata()?.permissions();
        if permissions.mode() & 0o077 != 0 {
            opened.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        }
    }
    #[cfg(not(unix))]
    drop(opened);
    Ok(())
}
