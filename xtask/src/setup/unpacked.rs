//! Programs out of Debian packages that are downloaded and unpacked, never installed.
//!
//! For programs that only a test needs: nothing on this machine changes, no service starts, and a package that
//! conflicts with an installed one is as good as any other.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::apt;
use crate::process;

/// Where Debian packages put the libraries that programs load.
const LIBRARIES: [&str; 4] = ["usr/lib", "lib", "usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];

/// A package, with its dependencies that this machine lacks, in a folder of its own.
pub struct Unpacked {
    root: PathBuf,
}

impl Unpacked {
    /// The package, downloaded first if it is not there; then `why` is printed.
    ///
    /// # Errors
    /// apt's, when it does not know the package or cannot fetch it.
    pub fn package(name: &str, why: &str) -> Result<Self> {
        let root = cache()?.join("packages").join(name);
        if !root.is_dir() {
            // Built aside and moved, so that one that was interrupted is never taken for whole.
            let work = root.with_extension(format!("{}.part", std::process::id()));
            let fetched = fetch(name, why, &work).and_then(|()| {
                fs::rename(work.join("root"), &root).with_context(|| format!("cannot create {}", root.display()))
            });
            // Left-overs in a cache are a blemish, not a failure.
            let _ = fs::remove_dir_all(&work);
            // A faster process did the same.
            fetched.or_else(|error| if root.is_dir() { Ok(()) } else { Err(error) })?;
        }
        Ok(Self { root })
    }

    /// A file of the package, by its path in the system.
    pub fn file(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The search path for the libraries that came along, as `LD_LIBRARY_PATH` wants it.
    pub fn library_path(&self) -> Result<OsString> {
        let folders = LIBRARIES.iter().map(|folder| self.root.join(folder)).filter(|folder| folder.is_dir());
        env::join_paths(folders).context("the cache folder's name has a colon in it")
    }
}

/// The folder for what is downloaded, kept between builds and shared by checkouts.
///
/// # Errors
/// When neither `XDG_CACHE_HOME` nor `HOME` is set.
pub fn cache() -> Result<PathBuf> {
    let folder = match env::var_os("XDG_CACHE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env::var_os("HOME").context("HOME is not set")?).join(".cache"),
    };
    Ok(folder.join("conductor"))
}

fn fetch(name: &str, why: &str, work: &Path) -> Result<()> {
    if !apt::available() {
        bail!("{why}: that is Debian's package {name}, and there is no apt-get here to fetch it with");
    }
    let wanted = apt::missing_for(name).or_else(|_| apt::update().and_then(|()| apt::missing_for(name)))?;
    eprintln!("downloading {name} ({why}), {} packages in all; nothing is installed", wanted.len());
    let packages = work.join("packages");
    fs::create_dir_all(&packages).with_context(|| format!("cannot create {}", packages.display()))?;
    if apt::download(&wanted, &packages).is_err() {
        // Lists that are too old name versions that are gone.
        apt::update()?;
        apt::download(&apt::missing_for(name)?, &packages)?;
    }
    let root = work.join("root");
    for package in fs::read_dir(&packages)? {
        process::run(Command::new("dpkg-deb").arg("-x").arg(package?.path()).arg(&root))?;
    }
    Ok(())
}
