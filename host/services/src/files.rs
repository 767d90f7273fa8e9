//! File access confined to a folder that a grant names (no path traversal, no symlink out of it).
//!
//! Paths are relative, with `/` between names. A path's text is not trusted: names are
//! checked here, and the system resolves them beneath the folder's handle. Symbolic links that stay
//! inside are followed on the way and by reading; what leads out, an absolute target too, is denied.
//! Writing and removing touch regular files only: a link at the end of their path is refused.

use std::collections::BTreeSet;
use std::io::{self, Read, Write as _};
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, FileType, OpenOptions};

use crate::added_files::{AddedFiles, Sum};
use crate::error::{ServiceError, shown};

/// The longest file that is read or written, in bytes (4 MiB).
pub const MAX_FILE: usize = 4 * 1024 * 1024;
/// The longest path, in bytes.
pub const MAX_PATH: usize = 4096;
/// The longest name within a path, in bytes.
pub const MAX_NAME: usize = 255;
/// The most names in one answer.
pub const MAX_NAMES: usize = 1000;

/// How a file is called while it is being written. A crash may leave one behind; features never
/// see it.
const UNFINISHED: &str = ".conductor-unfinished-";

/// What a name in a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// Anything else: a symbolic link, a device, a pipe, a socket.
    Other,
}

/// A name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name alone.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// In bytes; 0 for all but files.
    pub size: u64,
}

/// One folder, held open: renaming it, or putting another in its place, changes nothing.
#[derive(Debug)]
pub struct GrantedFolder {
    folder: Dir,
    may_write: bool,
    added: Arc<AddedFiles>,
}

impl GrantedFolder {
    /// Opens a folder of this machine. `may_write` says whether the grant is to write, too.
    ///
    /// # Errors
    /// `Unavailable` when it is not there, is no folder, or may not be opened. The text names the
    /// folder as the grant does.
    pub fn open(path: &Path, may_write: bool) -> Result<Self, ServiceError> {
        match Dir::open_ambient_dir(path, ambient_authority()) {
            Ok(folder) => Ok(Self { folder, may_write, added: Arc::default() }),
            Err(error) => Err(ServiceError::Unavailable(format!(
                "{}: the granted folder can't be opened: {error}; make it, or grant another",
                path.display()
            ))),
        }
    }

    /// The same, with what is written counted there: for all folders of a feature together.
    #[must_use]
    pub fn counted(mut self, added: &Arc<AddedFiles>) -> Self {
        self.added = Arc::clone(added);
        self
    }

    /// The whole file, at most 4 MiB.
    ///
    /// # Errors
    /// - `Invalid`: not a path, or not a regular file.
    /// - `Denied`: a symbolic link leads out of the folder.
    /// - `Unavailable`: it is not there.
    /// - `Exhausted`: it has more than 4 MiB, or grew beyond while it was read.
    /// - `Failed`: the system's own refusal, or the disk failed.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, ServiceError> {
        check(path)?;
        let refusal = |error| refusal(path, &error);
        // Looked at first, since opening a device can already do something to it; and again once it
        // is open, since another may have taken its place. Opening a pipe does not wait.
        if !self.folder.metadata(path).map_err(refusal)?.is_file() {
            return Err(no_file(path));
        }
        let file = self.folder.open_with(path, &reading()).map_err(refusal)?;
        if !file.metadata().map_err(refusal)?.is_file() {
            return Err(no_file(path));
        }
        read_bounded(path, file)
    }

    /// Makes or replaces a file of at most 4 MiB, whole or not at all; it is on disk when this
    /// returns. Folders on its path that are missing are made. A file that is replaced keeps its
    /// permissions (read, write and execute), not its owner.
    ///
    /// # Errors
    /// - `Denied`: the grant is not to write, or a symbolic link leads out of the folder.
    /// - `Invalid`: not a path, longer than 4 MiB, or what is there is not a regular file.
    /// - `Exhausted`: the disk is full, or the feature has added as much as it may.
    /// - `Failed`: the system's own refusal, or the disk failed.
    pub fn write(&self, path: &str, data: &[u8]) -> Result<(), ServiceError> {
        self.check_grant(path)?;
        let (parent, name) = check(path)?;
        if data.len() > MAX_FILE {
            return Err(ServiceError::Invalid(format!(
                "{}: {} bytes are too many; a file may have at most {MAX_FILE}",
                shown(path),
                data.len()
            )));
        }
        let refusal = |error| refusal(path, &error);
        let mut added = self.added.lock();
        let parent = self.made(path, parent, &mut added)?;
        let replaced = match parent.symlink_metadata(name) {
            Ok(there) if !there.is_file() => return Err(no_file(path)),
            Ok(there) => Some((there.permissions(), there.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(refusal(error)),
        };
        let (replaced, length) = replaced.unzip();
        #[cfg(not(unix))]
        let _ = replaced;
        let sum = added.with(path, length, data.len() as u64)?;
        let number = getrandom::u64().map_err(|error| ServiceError::Failed(format!("{}: {error}", shown(path))))?;
        let unfinished = format!("{UNFINISHED}{number:016x}");
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if let Some(permissions) = &replaced {
            use cap_std::fs::PermissionsExt as _;
            cap_std::fs::OpenOptionsExt::mode(&mut options, permissions.mode() & 0o777);
        }
        let mut file = parent.open_with(&unfinished, &options).map_err(refusal)?;
        let done = (|| {
            #[cfg(unix)]
            if let Some(permissions) = replaced {
                use cap_std::fs::PermissionsExt as _;
                file.set_permissions(cap_std::fs::Permissions::from_mode(permissions.mode() & 0o777))?;
            }
            file.write_all(data)?;
            file.sync_all()?;
            drop(file);
            parent.rename(&unfinished, &parent, name)
        })();
        if let Err(error) = done {
            // When this fails, too, the name is left: it is not listed, and the first error counts.
            let _ = parent.remove_file(&unfinished);
            return Err(refusal(error));
        }
        *added = sum;
        sync(&parent).map_err(refusal)
    }

    /// The folder that a file goes into. Each that has to be made counts as a file.
    fn made(&self, path: &str, folder: &str, added: &mut Sum) -> Result<Dir, ServiceError> {
        let refusal = |error| refusal(path, &error);
        let ends = folder.match_indices('/').map(|(end, _)| end).chain([folder.len()]);
        for missing in ends.map(|end| &folder[..end]).filter(|folder| self.folder.symlink_metadata(folder).is_err()) {
            let sum = added.with(path, None, 0)?;
            self.folder.create_dir(missing).map_err(refusal)?;
            *added = sum;
        }
        self.folder.open_dir(folder).map_err(refusal)
    }

    /// Removes a regular file.
    ///
    /// # Errors
    /// Those of [`write`](Self::write); `Unavailable` when it is not there.
    pub fn remove(&self, path: &str) -> Result<(), ServiceError> {
        self.check_grant(path)?;
        let (parent, name) = check(path)?;
        let refusal = |error| refusal(path, &error);
        let parent = self.folder.open_dir(parent).map_err(refusal)?;
        let mut added = self.added.lock();
        let there = parent.symlink_metadata(name).map_err(refusal)?;
        if !there.is_file() {
            return Err(no_file(path));
        }
        parent.remove_file(name).map_err(refusal)?;
        *added = added.without(there.len());
        sync(&parent).map_err(refusal)
    }

    /// What is in a folder, in the order of the names' bytes; `.` is the granted folder. Where there
    /// are more than 1000 names, the first 1000. Names that no path may hold (not UTF-8, control
    /// characters, backslashes) are left out.
    ///
    /// # Errors
    /// - `Invalid`: not a path, or not a folder.
    /// - `Denied`: a symbolic link leads out of the folder.
    /// - `Unavailable`: it is not there.
    /// - `Failed`: the system's own refusal, or the disk failed.
    pub fn names(&self, path: &str) -> Result<Vec<Entry>, ServiceError> {
        if path != "." {
            check(path)?;
        }
        let refusal = |error| refusal(path, &error);
        let folder = self.folder.open_dir(path).map_err(refusal)?;
        let mut names = BTreeSet::new();
        for entry in folder.entries().map_err(refusal)? {
            let Ok(name) = entry.map_err(refusal)?.file_name().into_string() else { continue };
            if check(&name).is_ok() {
                names.insert(name);
                // However many there are, no more than these are held.
                if names.len() > MAX_NAMES {
                    names.pop_last();
                }
            }
        }
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            match folder.symlink_metadata(&name) {
                Ok(there) => {
                    let kind = kind(there.file_type());
                    entries.push(Entry { name, kind, size: if kind == Kind::File { there.len() } else { 0 } });
                }
                // Removed since.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(refusal(error)),
            }
        }
        Ok(entries)
    }

    fn check_grant(&self, path: &str) -> Result<(), ServiceError> {
        if self.may_write {
            return Ok(());
        }
        Err(ServiceError::Denied(format!(
            "{}: the grant for this folder is to read only; this needs a grant to write",
            shown(path)
        )))
    }
}

/// The folder and the name of a path that may be used, or what is wrong with it.
pub(super) fn check(path: &str) -> Result<(&str, &str), ServiceError> {
    let refuse = |what: String| {
        Err(ServiceError::Invalid(format!(
            "{}: {what}; a path is relative to the granted folder, with / between names, such as shows/first.toml",
            shown(path)
        )))
    };
    if path.len() > MAX_PATH {
        return refuse(format!("has {} bytes, at most {MAX_PATH} are allowed", path.len()));
    }
    if path.starts_with('/') {
        return refuse("begins with /".to_owned());
    }
    for name in path.split('/') {
        if name.is_empty() || name == "." || name == ".." {
            return refuse(format!("has {} where a name belongs", shown(name)));
        }
        if name.len() > MAX_NAME {
            return refuse(format!("has a name of {} bytes, at most {MAX_NAME} are allowed", name.len()));
        }
        // A backslash is a separator on some systems.
        if name.contains(|c: char| c == '\\' || c.is_control()) {
            return refuse("has a backslash or a control character".to_owned());
        }
        if name.starts_with(UNFINISHED) {
            return refuse(format!("has a name that begins with {UNFINISHED}, as no file may"));
        }
    }
    Ok(path.rsplit_once('/').unwrap_or((".", path)))
}

/// Reads to the end, but never more than one byte beyond what is allowed.
fn read_bounded(path: &str, file: impl Read) -> Result<Vec<u8>, ServiceError> {
    let mut data = Vec::new();
    file.take(MAX_FILE as u64 + 1).read_to_end(&mut data).map_err(|error| refusal(path, &error))?;
    if data.len() > MAX_FILE {
        return Err(ServiceError::Exhausted(format!(
            "{}: has more than the {MAX_FILE} bytes that are read",
            shown(path)
        )));
    }
    Ok(data)
}

/// Reading, without waiting for a pipe's other end and without taking a terminal over.
fn reading() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        cap_std::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    options
}

/// Syncs what names are in a folder. Elsewhere than on Unix folders can't be synced.
fn sync(folder: &Dir) -> io::Result<()> {
    #[cfg(unix)]
    folder.open(".")?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

fn kind(file_type: FileType) -> Kind {
    if file_type.is_file() {
        Kind::File
    } else if file_type.is_dir() {
        Kind::Folder
    } else {
        Kind::Other
    }
}

fn no_file(path: &str) -> ServiceError {
    ServiceError::Invalid(format!(
        "{}: is not a regular file; folders, links, devices and pipes are not used",
        shown(path)
    ))
}

/// The system's error as the contract has it.
fn refusal(path: &str, error: &io::Error) -> ServiceError {
    let path = shown(path);
    match error.kind() {
        // What leads out is found before the system is asked, or by it: only then is there no number.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => ServiceError::Denied(format!(
            "{path}: a symbolic link leads out of the granted folder; grant the folder it is in"
        )),
        io::ErrorKind::NotFound => ServiceError::Unavailable(format!("{path}: is not there")),
        io::ErrorKind::NotADirectory => ServiceError::Invalid(format!("{path}: a part of the path is not a folder")),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ServiceError::Exhausted(format!("{path}: the disk is full; nothing changed"))
        }
        _ => ServiceError::Failed(format!("{path}: {error}")),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;
    use std::process::Command;
    use std::thread;

    use proptest::prelude::*;

    use super::*;

    /// A place with a granted folder, and beside it one that is not. It goes away with the test.
    struct Place(PathBuf);

    impl Place {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("conductor-files-{test}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("granted/sub")).unwrap();
            fs::create_dir_all(path.join("outside")).unwrap();
            fs::write(path.join("outside/sentinel"), "secret").unwrap();
            Self(path)
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.join(path)
        }

        fn granted(&self) -> GrantedFolder {
            GrantedFolder::open(&self.at("granted"), true).unwrap()
        }

        /// Whether nothing beside the granted folder was read into, changed, added or removed.
        fn untouched(&self) -> bool {
            let names = |path: PathBuf| {
                let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
                names.sort();
                names
            };
            names(self.0.clone()) == ["granted", "outside"]
                && names(self.at("outside")) == ["sentinel"]
                && fs::read(self.at("outside/sentinel")).unwrap() == b"secret"
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn invalid<T: std::fmt::Debug>(result: Result<T, ServiceError>) {
        assert!(matches!(&result, Err(ServiceError::Invalid(_))), "{result:?}");
    }

    fn denied<T: std::fmt::Debug>(result: Result<T, ServiceError>) {
        assert!(matches!(&result, Err(ServiceError::Denied(_))), "{result:?}");
    }

    fn unavailable<T: std::fmt::Debug>(result: Result<T, ServiceError>) {
        assert!(matches!(&result, Err(ServiceError::Unavailable(_))), "{result:?}");
    }

    fn exhausted<T: std::fmt::Debug>(result: Result<T, ServiceError>) {
        assert!(matches!(&result, Err(ServiceError::Exhausted(_))), "{:?}", result.map(|_| "a result"));
    }

    fn entry(name: &str, kind: Kind, size: u64) -> Entry {
        Entry { name: name.to_owned(), kind, size }
    }

    #[test]
    fn files_are_written_read_listed_and_removed() {
        let place = Place::new("plain");
        let folder = place.granted();
        folder.write("show.toml", b"one").unwrap();
        folder.write("sub/Größe ∕ 尺寸.txt", b"").unwrap();
        folder.write("show.toml", b"two!").unwrap();
        assert_eq!(folder.read("show.toml").unwrap(), b"two!");
        assert_eq!(folder.read("sub/Größe ∕ 尺寸.txt").unwrap(), b"");
        assert_eq!(folder.names(".").unwrap(), [entry("show.toml", Kind::File, 4), entry("sub", Kind::Folder, 0)]);
        assert_eq!(folder.names("sub").unwrap(), [entry("Größe ∕ 尺寸.txt", Kind::File, 0)]);
        folder.remove("show.toml").unwrap();
        unavailable(folder.read("show.toml"));
        unavailable(folder.remove("show.toml"));
        unavailable(folder.names("missing"));
        assert_eq!(folder.names(".").unwrap(), [entry("sub", Kind::Folder, 0)]);
    }

    #[test]
    fn folders_on_the_way_are_made_and_count_as_files() {
        let place = Place::new("made");
        let folder = place.granted();
        folder.write("a/b/c/file", b"x").unwrap();
        folder.write("a/b/other", b"y").unwrap();
        assert_eq!(folder.read("a/b/c/file").unwrap(), b"x");
        assert_eq!(folder.names("a/b").unwrap(), [entry("c", Kind::Folder, 0), entry("other", Kind::File, 1)]);
        symlink(place.at("outside"), place.at("granted/out")).unwrap();
        denied(folder.write("out/sub/file", b"x"));
        invalid(folder.write("a/../x", b"x"));
        assert!(place.untouched());
        // Three folders and two files are there. As many folders as are left, and no more.
        let deep = vec!["d"; usize::try_from(crate::added_files::MAX_ADDED_FILES).unwrap()].join("/");
        exhausted(folder.write(&deep, b""));
        assert!(!place.at(&format!("granted/{deep}")).exists());
        exhausted(folder.write("one more", b""));
    }

    #[test]
    fn a_folder_is_no_file_and_a_file_no_folder() {
        let place = Place::new("kinds");
        let folder = place.granted();
        folder.write("file", b"x").unwrap();
        invalid(folder.read("sub"));
        invalid(folder.write("sub", b""));
        invalid(folder.remove("sub"));
        invalid(folder.names("file"));
        invalid(folder.read("file/a"));
        invalid(folder.write("file/a", b""));
        assert!(place.at("granted/sub").is_dir());
    }

    #[test]
    fn without_a_grant_to_write_nothing_changes() {
        let place = Place::new("read-only");
        fs::write(place.at("granted/file"), "kept").unwrap();
        let folder = GrantedFolder::open(&place.at("granted"), false).unwrap();
        denied(folder.write("file", b"new"));
        denied(folder.write("other", b"new"));
        denied(folder.remove("file"));
        assert_eq!(folder.read("file").unwrap(), b"kept");
        assert_eq!(folder.names(".").unwrap().len(), 2);
    }

    #[test]
    fn a_granted_folder_that_is_none_is_unavailable() {
        let place = Place::new("no-folder");
        unavailable(GrantedFolder::open(&place.at("missing"), true));
        unavailable(GrantedFolder::open(&place.at("outside/sentinel"), true));
        // One that is removed while it is granted.
        let folder = place.granted();
        fs::remove_dir_all(place.at("granted")).unwrap();
        unavailable(folder.read("file"));
        unavailable(folder.write("file", b""));
        fs::create_dir(place.at("granted")).unwrap();
    }

    #[test]
    fn only_plain_relative_paths_are_taken() {
        let place = Place::new("paths");
        let folder = place.granted();
        let sentinel = place.at("outside/sentinel").to_str().unwrap().to_owned();
        let (long_name, long_path) = ("n".repeat(256), "d/".repeat(2048) + "x");
        let refused = [
            "",
            "/",
            "..",
            "../outside/sentinel",
            "sub/../../outside/sentinel",
            "sub/..",
            "sub/../sub",
            "./sub/a",
            "sub/./a",
            "sub/",
            "sub//a",
            "//a",
            "\\..\\outside",
            "sub\\a",
            "a\0b",
            "\0",
            "a\nb",
            "a\u{7f}",
            "a\u{85}",
            ".conductor-unfinished-1",
            ".conductor-unfinished-/x",
            &sentinel,
            &long_name,
            &long_path,
        ];
        for path in refused {
            invalid(folder.read(path));
            invalid(folder.write(path, b"new"));
            invalid(folder.remove(path));
            invalid(folder.names(path));
        }
        // `.` names the folder, which is no file.
        invalid(folder.read("."));
        invalid(folder.write(".", b""));
        invalid(folder.remove("."));
        // What only looks like a way out is a name like any other.
        for path in
            ["...", "．．", "‥", "..\u{200b}", "．．∕outside", "%2e%2e", "..;", "~", "-rf", "C:", &"n".repeat(255)]
        {
            folder.write(path, b"in").unwrap();
            assert_eq!(fs::read(place.at("granted").join(path)).unwrap(), b"in", "{path:?}");
            folder.remove(path).unwrap();
        }
        assert!(place.untouched());
    }

    #[test]
    fn links_are_followed_inside_and_lead_nowhere_else() {
        let place = Place::new("links");
        let folder = place.granted();
        folder.write("sub/file", b"inside").unwrap();
        let link = |target: &str, name: &str| symlink(target, place.at("granted").join(name)).unwrap();
        link("sub/file", "to-file");
        link("sub", "to-folder");
        link("../to-file", "sub/up-and-down");
        for path in ["to-file", "to-folder/file", "sub/up-and-down"] {
            assert_eq!(folder.read(path).unwrap(), b"inside", "{path}");
        }
        assert_eq!(folder.names("to-folder").unwrap().len(), 2);
        folder.write("to-folder/new", b"inside").unwrap();
        assert_eq!(folder.read("sub/new").unwrap(), b"inside");
        folder.remove("to-folder/new").unwrap();
        // At the end of a path that would be changed, a link is refused, wherever it leads.
        invalid(folder.write("to-file", b"new"));
        invalid(folder.remove("to-file"));

        let sentinel = place.at("outside/sentinel");
        link("../outside/sentinel", "out-file");
        link(sentinel.to_str().unwrap(), "out-absolute");
        link("sub/../../outside/sentinel", "out-crooked");
        link("out-file", "out-by-another");
        link("/dev/zero", "zero");
        link("/proc/self/cwd", "magic");
        link("../outside/new", "out-dangling");
        for path in ["out-file", "out-absolute", "out-crooked", "out-by-another", "zero", "magic", "out-dangling"] {
            denied(folder.read(path));
            invalid(folder.write(path, b"new"));
            invalid(folder.remove(path));
            denied(folder.names(path));
        }
        link("../outside", "out");
        link("..", "up");
        link("/", "root");
        link(place.at("granted/sub").to_str().unwrap(), "absolute-inside");
        for path in
            ["out/sentinel", "up/outside/sentinel", "up/granted/sub/file", "root/etc/passwd", "absolute-inside/file"]
        {
            denied(folder.read(path));
            denied(folder.write(path, b"new"));
            denied(folder.remove(path));
            denied(folder.names(path));
        }
        link("round", "round");
        assert!(matches!(folder.read("round"), Err(ServiceError::Failed(_))));
        for entry in folder.names(".").unwrap() {
            let expected = if entry.name == "sub" { Kind::Folder } else { Kind::Other };
            assert_eq!((entry.kind, entry.size), (expected, 0), "{}", entry.name);
        }
        assert!(place.untouched());
    }

    #[test]
    fn a_link_that_is_swapped_back_and_forth_never_leads_out() {
        let place = Place::new("swapped");
        let folder = place.granted();
        fs::create_dir(place.at("granted/inside")).unwrap();
        fs::write(place.at("granted/inside/sentinel"), "public").unwrap();
        symlink("inside", place.at("granted/way")).unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        let only_public = thread::scope(|scope| {
            scope.spawn(|| {
                // One is put in the place of the other at once: were there none, a folder would be made in its place.
                let [way, spare] = ["way", "spare"].map(|name| place.at("granted").join(name));
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    for target in ["../outside", "inside"] {
                        symlink(target, &spare).unwrap();
                        fs::rename(&spare, &way).unwrap();
                    }
                }
            });
            // Asserted when the other thread has ended, which would go on for ever otherwise.
            let only_public = (0..2000).all(|n| {
                if n % 50 == 0 {
                    let _ = folder.write("way/sentinel", b"public");
                    let _ = folder.write("way/new", b"public");
                    let _ = folder.remove("way/new");
                }
                !folder.read("way/sentinel").is_ok_and(|data| data != b"public")
            });
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            only_public
        });
        assert!(only_public);
        assert!(place.untouched());
    }

    #[test]
    fn pipes_sockets_and_devices_are_refused_without_waiting() {
        let place = Place::new("special");
        let folder = place.granted();
        assert!(Command::new("mkfifo").arg(place.at("granted/pipe")).status().unwrap().success());
        let _socket = UnixListener::bind(place.at("granted/socket")).unwrap();
        symlink("pipe", place.at("granted/to-pipe")).unwrap();
        for path in ["pipe", "socket", "to-pipe"] {
            invalid(folder.read(path));
            invalid(folder.write(path, b"x"));
            invalid(folder.remove(path));
            invalid(folder.names(path));
        }
        invalid(folder.read("pipe/x"));
        invalid(folder.write("pipe/x", b""));
        let kinds: Vec<Kind> = folder.names(".").unwrap().iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, [Kind::Other, Kind::Other, Kind::Folder, Kind::Other]);
        // The opening itself does not wait either, for when a pipe takes a file's place in between.
        assert!(!folder.folder.open_with("pipe", &reading()).unwrap().metadata().unwrap().is_file());

        let devices = GrantedFolder::open(Path::new("/dev"), false).unwrap();
        for path in ["zero", "null", "tty"] {
            invalid(devices.read(path));
        }
        // No permission of the system makes a device writable here.
        invalid(GrantedFolder::open(Path::new("/dev"), true).unwrap().write("null", b""));
    }

    #[test]
    fn files_have_at_most_four_mebibytes() {
        let place = Place::new("large");
        let folder = place.granted();
        let data = vec![0xAB; MAX_FILE + 1];
        folder.write("file", &data[1..]).unwrap();
        invalid(folder.write("file", &data));
        assert!(folder.read("file").unwrap() == data[1..]);
        fs::write(place.at("granted/file"), &data).unwrap();
        exhausted(folder.read("file"));
        // However long a file says it is, and however much it grows: the reading ends.
        exhausted(read_bounded("file", io::repeat(0)));
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let place = Place::new("whole");
        let folder = place.granted();
        let (ones, twos) = (vec![1; 300_000], vec![2; 200_000]);
        folder.write("file", &ones).unwrap();
        thread::scope(|scope| {
            let writers = [&ones, &twos].map(|data| {
                let folder = &folder;
                scope.spawn(move || (0..20).for_each(|_| folder.write("file", data).unwrap()))
            });
            while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
                let read = folder.read("file").unwrap();
                assert!(read == ones || read == twos, "{} bytes", read.len());
                assert_eq!(folder.names(".").unwrap().len(), 2);
            }
        });
        assert_eq!(fs::read_dir(place.at("granted")).unwrap().count(), 2, "nothing unfinished is left");
        // A write that fails leaves the old file, and nothing else.
        fs::create_dir(place.at("granted/sub/taken")).unwrap();
        invalid(folder.write("sub/taken", b"x"));
        assert_eq!(fs::read_dir(place.at("granted/sub")).unwrap().count(), 1);
    }

    #[test]
    fn a_replaced_file_keeps_its_permissions() {
        let place = Place::new("permissions");
        let folder = place.granted();
        for mode in [0o600, 0o640, 0o777, 0o444] {
            folder.write("file", b"old").unwrap();
            let file = place.at("granted/file");
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            folder.write("file", b"new").unwrap();
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, mode);
        }
    }

    #[test]
    fn the_first_thousand_names_are_listed_in_order() {
        let place = Place::new("names");
        let folder = place.granted();
        for n in 0..1500 {
            fs::write(place.at(&format!("granted/sub/{n:04}")), "").unwrap();
        }
        // What no path may hold is left out, and what a crash left while writing.
        for name in ["a\\b", "a\nb", ".conductor-unfinished-0123456789abcdef"] {
            fs::write(place.at("granted").join(name), "").unwrap();
        }
        let no_text = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xFF");
        // Some file systems have UTF-8 names only.
        let _ = fs::write(place.at("granted").join(no_text), "");
        for name in ["b", "B", "ä", ".hidden"] {
            folder.write(name, b"").unwrap();
        }
        let names = |path| folder.names(path).unwrap().into_iter().map(|entry| entry.name).collect::<Vec<_>>();
        assert_eq!(names("."), [".hidden", "B", "b", "sub", "ä"]);
        assert_eq!(names("sub"), (0..1000).map(|n| format!("{n:04}")).collect::<Vec<_>>());
    }

    /// Parts of paths: those that could lead out, those that are there, and any text at all.
    fn part() -> impl Strategy<Value = String> {
        let known = [
            "", ".", "..", "...", "outside", "sentinel", "granted", "sub", "file", "out", "up", "absolute", "in", "\0",
            "\\", "..\\", "．．", "..\0", ".. ", "proc", "self",
        ];
        prop_oneof![6 => prop::sample::select(known.map(str::to_owned).to_vec()), 1 => any::<String>()]
    }

    #[test]
    fn no_path_ever_touches_what_is_outside() {
        let place = Place::new("random");
        let folder = place.granted();
        let link = |target: &str, name: &str| symlink(target, place.at("granted").join(name)).unwrap();
        link("../outside", "out");
        link("..", "up");
        link("sub", "in");
        link(place.0.to_str().unwrap(), "absolute");
        link("../../outside/sentinel", "sub/out");
        let start = prop_oneof![
            6 => Just(String::new()),
            1 => Just("/".to_owned()),
            1 => Just(format!("{}/", place.0.display())),
            1 => Just("up/outside/".to_owned()),
        ];
        let path = (start, prop::collection::vec(part(), 0..6)).prop_map(|(start, parts)| start + &parts.join("/"));
        proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) }, |(path in path)| {
            if let Ok(data) = folder.read(&path) {
                prop_assert_ne!(data, b"secret");
            }
            if let Ok(entries) = folder.names(&path) {
                // A `sentinel` of its own, written below, is larger.
                prop_assert!(entries.iter().all(|entry| entry.name != "sentinel" || entry.size != 6));
                // An `outside` of its own, made below, has no such `sentinel` either.
                for entry in entries.iter().filter(|entry| entry.name == "outside" && entry.kind == Kind::Folder) {
                    let within = if path == "." { entry.name.clone() } else { format!("{path}/{}", entry.name) };
                    let theirs = folder.names(&within).unwrap_or_default();
                    prop_assert!(theirs.iter().all(|entry| entry.name != "sentinel" || entry.size != 6));
                }
            }
            let _ = folder.write(&path, b"written by the feature");
            let _ = folder.remove(&path);
            prop_assert!(place.untouched(), "{path:?}");
        });
    }
}
