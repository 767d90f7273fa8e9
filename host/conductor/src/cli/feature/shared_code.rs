//! Compiled code that the hosts of one test run share: each of them has a home of its own, and a package with the engine of
//! another language takes ten seconds to compile.

use std::io;
use std::path::{Path, PathBuf};

use conductor_stdx::host_key::HostKey;

/// Says where it is to the hosts that tests start.
pub(super) const VARIABLE: &str = "CONDUCTOR_FEATURE_CODE";

/// The part of a home that is shared.
const CACHE: &str = "cache";

/// The folder that the environment names.
pub(super) fn of_environment() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).map(PathBuf::from)
}

/// Makes the folder anew, with nothing in it but the key that vouches for what will be.
///
/// # Errors
/// The file system's.
pub(super) fn begin(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder.join(CACHE))?;
    HostKey::of(folder).map(drop)
}

/// Has a new home use the folder.
///
/// # Errors
/// The file system's; of a system without symbolic links for everybody, always.
pub(super) fn share(folder: &Path, home: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.join(CACHE), home.join(CACHE))?;
        std::fs::copy(folder.join("host.key"), home.join("host.key")).map(drop)
    }
    #[cfg(not(unix))]
    {
        let _ = (folder, home);
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn two_homes_share_what_is_compiled_and_who_vouches_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let shared = folder.path().join("code");
        begin(&shared).unwrap();
        let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
        for home in [&one, &other] {
            std::fs::create_dir(home).unwrap();
            share(&shared, home).unwrap();
        }
        std::fs::write(one.join("cache/x"), "code").unwrap();
        assert_eq!(std::fs::read_to_string(other.join("cache/x")).unwrap(), "code");
        let derived = |home: &Path| HostKey::of(home).unwrap().derived(b"test");
        assert_eq!(derived(&one), derived(&other));
        // A home that goes away leaves it to others, and the next run begins without it.
        std::fs::remove_dir_all(&one).unwrap();
        assert!(shared.join("cache/x").is_file());
        begin(&shared).unwrap();
        assert!(!shared.join("cache/x").exists());
    }
}
