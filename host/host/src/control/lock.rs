//! The lock for the show: while it holds, only the owner changes anything.
//!
//! Agents, and clients with a token that is lent, may look on. What the show itself does (controllers, mappings,
//! profiles, features within their grants) goes on, and so does reading the configuration file anew when its author
//! saves it. Only the home's owner locks and unlocks.

use parking_lot::RwLock;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use conductor_audit::caller::Caller;
use conductor_stdx::atomic_file::replace;
use conductor_stdx::plain_file;

/// Bytes that are read of the file.
const MAX_FILE: u64 = 4096;

/// That the show is locked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lock {
    /// Since when, in milliseconds since 1970.
    pub since: u64,
    /// Who locked it, as the audit names callers.
    pub by: String,
    /// Whether it holds when the host starts again.
    pub persistent: bool,
}

/// A change was refused because the show is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the show is locked: until a person unlocks it with `conductor unlock`, only they can change anything")]
pub struct Locked;

/// The lock of one host. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ShowLock(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    held: RwLock<Option<Lock>>,
    /// Where a lock is kept that holds when the host starts again; `None` without a home.
    file: Option<PathBuf>,
}

impl ShowLock {
    /// The lock of this home, as the last host left it. Where the file can't be understood, the show is locked: it is
    /// there because a person locked it.
    pub fn of(home: Option<&Path>) -> Self {
        let file = home.map(|home| home.join("show.lock"));
        let held = file.as_deref().and_then(|file| match read(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Ok(lock) => Some(lock),
            Err(error) => {
                tracing::warn!("{}: {error}; the show is locked until `conductor unlock`", file.display());
                Some(Lock { since: 0, by: "unknown".to_owned(), persistent: true })
            }
        });
        Self(Arc::new(Inner { held: RwLock::new(held), file }))
    }

    /// The lock, if it is held.
    pub fn held(&self) -> Option<Lock> {
        self.0.held.read().clone()
    }

    /// Whether this caller may change anything now.
    ///
    /// # Errors
    /// [`Locked`].
    pub fn check(&self, caller: &Caller) -> Result<(), Locked> {
        let is_held = || self.0.held.read().is_some();
        if caller.is_owner() || !is_held() { Ok(()) } else { Err(Locked) }
    }

    /// Locks the show, at `now` in milliseconds since 1970. It stays as it was if it is locked already, except that
    /// `persistent` is as it is said now.
    ///
    /// # Errors
    /// If it should hold when the host starts again and can't be kept; then it holds until the host stops.
    pub fn lock(&self, by: &Caller, persistent: bool, now: u64) -> io::Result<Lock> {
        let mut held = self.0.held.write();
        let lock = held.get_or_insert_with(|| Lock { since: now, by: by.to_string(), persistent });
        lock.persistent = false;
        let Some(file) = self.0.file.as_deref() else {
            return match persistent {
                true => Err(io::Error::other("this host has no home to keep it in")),
                false => Ok(lock.clone()),
            };
        };
        if persistent {
            let kept = Lock { persistent: true, ..lock.clone() };
            replace(file, serde_json::to_string(&kept)?.as_bytes())?;
            *lock = kept;
        } else {
            remove(file)?;
        }
        Ok(lock.clone())
    }

    /// Unlocks the show. Whether it was locked.
    ///
    /// # Errors
    /// If a lock that was kept can't be removed; then it still holds.
    pub fn unlock(&self) -> io::Result<bool> {
        let mut held = self.0.held.write();
        if let Some(file) = &self.0.file {
            remove(file)?;
        }
        Ok(held.take().is_some())
    }
}

fn read(file: &Path) -> io::Result<Lock> {
    Ok(serde_json::from_slice(&plain_file::read(file, MAX_FILE)?)?)
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_audit::caller::{Door, Scope};

    struct Home(PathBuf);

    impl Home {
        fn new(name: &str) -> Self {
            let home = std::env::temp_dir().join(format!("conductor-lock-{name}-{}", std::process::id()));
            fs::create_dir_all(&home).unwrap();
            Self(home)
        }
    }

    impl Drop for Home {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn agent() -> Caller {
        Caller::client(Door::McpSocket, Scope::Agent, Some("x"))
    }

    #[test]
    fn a_locked_show_is_changed_by_its_owner_only() {
        let lock = ShowLock::of(None);
        assert_eq!(lock.check(&agent()), Ok(()));
        lock.lock(&Caller::cli(), false, 7).unwrap();
        let lent = Caller::client(Door::Tcp, Scope::Control, Some("conductor-cli"));
        for other in [agent(), agent().by_elicitation(), lent, Caller::feature("builtin:x")] {
            assert_eq!(lock.check(&other), Err(Locked), "{other}");
        }
        for owner in [Caller::library(), Caller::client(Door::Socket, Scope::Owner, None)] {
            assert_eq!(lock.check(&owner), Ok(()));
        }
        assert_eq!(lock.held().map(|held| (held.since, held.by)), Some((7, "cli:owner".to_owned())));
        assert!(lock.unlock().unwrap() && !lock.unlock().unwrap());
        assert_eq!(lock.check(&agent()), Ok(()));
    }

    #[test]
    fn a_lock_outlives_the_host_only_if_asked_to() {
        let home = Home::new("outlives");
        let lock = ShowLock::of(Some(&home.0));
        lock.lock(&Caller::cli(), false, 7).unwrap();
        assert_eq!(ShowLock::of(Some(&home.0)).held(), None);
        let kept = lock.lock(&Caller::library(), true, 8).unwrap();
        assert_eq!((kept.since, kept.by.as_str(), kept.persistent), (7, "cli:owner", true));
        let next = ShowLock::of(Some(&home.0));
        assert_eq!(next.held(), Some(kept));
        assert!(next.unlock().unwrap());
        assert_eq!(ShowLock::of(Some(&home.0)).held(), None);
    }

    #[test]
    fn a_file_that_is_not_understood_locks() {
        let home = Home::new("broken");
        for content in ["", "{", "[]", &"x".repeat(10_000)] {
            fs::write(home.0.join("show.lock"), content).unwrap();
            let lock = ShowLock::of(Some(&home.0));
            assert_eq!(lock.check(&agent()), Err(Locked), "{content:.10}");
            lock.unlock().unwrap();
        }
        // A pipe without a writer is not waited for.
        #[cfg(unix)]
        {
            use rustix::fs::{CWD, FileType, Mode, mknodat};
            mknodat(CWD, home.0.join("show.lock"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            assert_eq!(ShowLock::of(Some(&home.0)).check(&agent()), Err(Locked));
        }
        assert!(ShowLock::of(None).lock(&Caller::cli(), true, 1).is_err());
    }
}
