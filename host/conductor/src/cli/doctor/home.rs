//! The home: whether it is writable, has free disk space, and is private to its owner.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::finding::Finding;

const ABOUT: &str = "home";
/// Free bytes below which the audit, plans and receipts soon can't be written.
const MIN_FREE_BYTES: u64 = 16 << 20;
/// Free bytes below which a few more features and their compiled code fill the disk.
const LOW_FREE_BYTES: u64 = 256 << 20;
/// Files that only the owner may read.
const PRIVATE: [&str; 5] = ["host.key", "audit.sqlite", "audit.head", "api.token", "mcp.token"];

/// How the home is.
#[derive(Debug)]
pub(super) struct HomeCheck {
    pub(super) path: PathBuf,
    pub(super) folder: Folder,
    /// Bytes that are free there, for this user; `None` if that is unknown.
    pub(super) free: Option<u64>,
    /// Folders in it in which files are made, with the reason where none can be.
    pub(super) inside: Vec<(PathBuf, io::Result<()>)>,
    /// Files that others than the owner may read or write, with their permissions.
    pub(super) open_to_others: Vec<(PathBuf, u32)>,
}

/// What is at the home's place.
#[derive(Debug)]
pub(super) enum Folder {
    /// Nothing, and whether it could be made.
    Missing(io::Result<()>),
    /// No folder.
    Other,
    /// A folder, its permissions, and whether a file can be made in it.
    There { mode: u32, writable: io::Result<()> },
}

impl HomeCheck {
    pub(super) fn gather(home: &Path) -> Self {
        let (mut inside, mut open_to_others) = (Vec::new(), Vec::new());
        let folder = match fs::metadata(home) {
            Err(_) => Folder::Missing(nearest_folder(home).map_or(Ok(()), |folder| writable(&folder))),
            Ok(about) if !about.is_dir() => Folder::Other,
            Ok(about) => {
                let folders = ["cache", "cache/code", "features", "features/blobs"].map(|name| home.join(name));
                let there = folders.into_iter().filter(|folder| folder.is_dir());
                inside.extend(there.map(|folder| (folder.clone(), writable(&folder))));
                for path in PRIVATE.map(|name| home.join(name)) {
                    let mode = fs::metadata(&path).map(|about| mode(&about)).unwrap_or(0);
                    if mode & 0o077 != 0 {
                        open_to_others.push((path, mode));
                    }
                }
                Folder::There { mode: mode(&about), writable: writable(home) }
            }
        };
        Self {
            path: home.to_owned(),
            folder,
            free: nearest_folder(home).and_then(|folder| free(&folder)),
            inside,
            open_to_others,
        }
    }

    pub(super) fn judge(&self) -> Vec<Finding> {
        let path = self.path.display();
        let mut findings = Vec::new();
        match &self.folder {
            Folder::Missing(Ok(())) => {
                findings.push(Finding::ok(ABOUT, format!("{path} is not there yet; the first `conductor run` makes it")))
            }
            Folder::Missing(Err(error)) => findings.push(Finding::trouble(
                ABOUT,
                format!("{path} is not there and can't be made: {error}"),
                "make the folder around it writable, or name another home with --home or CONDUCTOR_HOME",
            )),
            Folder::Other => findings.push(Finding::trouble(
                ABOUT,
                format!("{path} is no folder"),
                "move that file away, or name another home with --home or CONDUCTOR_HOME",
            )),
            Folder::There { writable: Err(error), .. } => findings.push(Finding::trouble(
                ABOUT,
                format!("no file can be written into {path}: {error}; nothing is recorded in the audit log or kept"),
                format!("chown -R \"$USER\" '{path}' && chmod u+rwx '{path}', or mount the file system for writing"),
            )),
            Folder::There { mode, .. } if mode & 0o022 != 0 => findings.push(Finding::trouble(
                ABOUT,
                format!("others than its owner may write into {path} (mode {mode:o}): they could put a configuration in its place"),
                format!("chmod 700 '{path}'"),
            )),
            Folder::There { mode, .. } if mode & 0o077 != 0 => findings.push(Finding::warning(
                ABOUT,
                format!("others than its owner may look into {path} (mode {mode:o})"),
                format!("chmod 700 '{path}'"),
            )),
            Folder::There { .. } => findings.push(Finding::ok(ABOUT, format!("{path} can be written, by its owner alone"))),
        }
        for (folder, error) in
            self.inside.iter().filter_map(|(folder, writable)| Some((folder, writable.as_ref().err()?)))
        {
            let folder = folder.display();
            findings.push(Finding::warning(
                ABOUT,
                format!("no file can be written into {folder}: {error}; features are compiled at every start, or can't be installed"),
                format!("chown -R \"$USER\" '{folder}' && chmod u+rwx '{folder}'"),
            ));
        }
        for (file, mode) in &self.open_to_others {
            let file = file.display();
            findings.push(Finding::trouble(
                ABOUT,
                format!("others than its owner may read or write {file} (mode {mode:o})"),
                format!("chmod 600 '{file}'"),
            ));
        }
        findings.extend(self.free.map(room));
        findings
    }
}

fn room(free: u64) -> Finding {
    let there = format!("{} MiB are free", free >> 20);
    match free {
        ..MIN_FREE_BYTES => Finding::trouble(
            "disk",
            there,
            "make room: without any, the audit log can't be written, and no plan applied",
        ),
        MIN_FREE_BYTES..LOW_FREE_BYTES => {
            Finding::warning("disk", there, "make room: compiled features and the audit need some")
        }
        _ => Finding::ok("disk", there),
    }
}

/// The path, or what is nearest around it and there.
fn nearest_folder(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    path.ancestors().find(|folder| folder.is_dir()).map(Path::to_owned)
}

/// Whether a file can be made here and has room for something. It is gone at once.
pub(super) fn writable(folder: &Path) -> io::Result<()> {
    let probe = folder.join(format!(".doctor-{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&probe)?;
    // On a full disk a file can still be made, as long as nothing is in it.
    let written = file.write_all(&[0; 4096]).and_then(|()| file.sync_all());
    fs::remove_file(&probe)?;
    written
}

#[cfg(unix)]
fn mode(about: &fs::Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o777
}

#[cfg(not(unix))]
fn mode(_: &fs::Metadata) -> u32 {
    0o700
}

#[cfg(unix)]
fn free(folder: &Path) -> Option<u64> {
    let about = rustix::fs::statvfs(folder).ok()?;
    Some(about.f_bavail.saturating_mul(about.f_frsize))
}

#[cfg(not(unix))]
fn free(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn denied() -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn judged(folder: Folder) -> Finding {
        let facts = HomeCheck { path: "/h".into(), folder, free: None, inside: vec![], open_to_others: vec![] };
        let mut findings = facts.judge();
        assert_eq!(findings.len(), 1, "{findings:?}");
        findings.remove(0)
    }

    #[test]
    fn a_home_is_there_writable_and_its_owners_alone() {
        assert_eq!(judged(Folder::There { mode: 0o700, writable: Ok(()) }).level, Level::Ok);
        assert_eq!(judged(Folder::Missing(Ok(()))).level, Level::Ok);
        assert_eq!(judged(Folder::There { mode: 0o755, writable: Ok(()) }).level, Level::Warning);
        for folder in [
            Folder::There { mode: 0o777, writable: Ok(()) },
            Folder::There { mode: 0o500, writable: denied() },
            Folder::Missing(denied()),
            Folder::Other,
        ] {
            let finding = judged(folder);
            assert_eq!(finding.level, Level::Trouble, "{finding:?}");
            assert!(finding.mend.is_some());
        }
    }

    #[test]
    fn what_is_in_it_and_the_room_count_too() {
        let facts = HomeCheck {
            path: "/h".into(),
            folder: Folder::There { mode: 0o700, writable: Ok(()) },
            free: Some(1 << 20),
            inside: vec![("/h/cache".into(), denied()), ("/h/features".into(), Ok(()))],
            open_to_others: vec![("/h/host.key".into(), 0o644)],
        };
        let levels: Vec<Level> = facts.judge().iter().map(|finding| finding.level).collect();
        assert_eq!(levels, [Level::Ok, Level::Warning, Level::Trouble, Level::Trouble]);
        assert_eq!(room(LOW_FREE_BYTES - 1).level, Level::Warning);
        assert_eq!(room(LOW_FREE_BYTES).level, Level::Ok);
    }

    #[cfg(unix)]
    #[test]
    fn a_real_folder_is_seen_as_it_is_and_left_so() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = std::env::temp_dir().join(format!("cond-doctor-home-{}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(home.join("host.key"), "k").unwrap();
        fs::set_permissions(home.join("host.key"), fs::Permissions::from_mode(0o640)).unwrap();
        let facts = HomeCheck::gather(&home);
        let left: Vec<_> = fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        fs::remove_dir_all(&home).unwrap();
        assert_eq!(left, ["host.key"]);
        assert!(matches!(facts.folder, Folder::There { mode: 0o700, writable: Ok(()) }), "{facts:?}");
        assert_eq!(facts.open_to_others, [(home.join("host.key"), 0o640)]);
        assert!(facts.free.is_some());
        assert!(matches!(HomeCheck::gather(&home).folder, Folder::Missing(Ok(()))));
    }
}
