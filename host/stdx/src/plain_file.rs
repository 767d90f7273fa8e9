//! Reads whole files whose paths come from outside: only regular files, up to a limit, without blocking.
//!
//! A path in a configuration, a package or a folder may name a FIFO without a writer, a device without an end or a
//! file that grows. [`read`] rejects what is not a regular file without waiting for it, and stops at its limit. Links
//! are followed: what they lead to has to be a regular file.
//!
//! A file on a network mount that does not answer still blocks the thread that reads it, so none of this is called while
//! a lock is held that readers of the host's state need.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, Error, ErrorKind, Read as _};
use std::path::Path;

/// The largest text that people write by hand and the host reads, in bytes (4 MiB): a configuration, a script of events.
pub const MAX_TEXT: u64 = 4 * 1024 * 1024;

/// The whole content of the plain file at `path`, which may have at most `max` bytes.
///
/// # Errors
/// The system's; [`ErrorKind::InvalidInput`] if it is not a plain file; [`ErrorKind::FileTooLarge`] if it has more than
/// `max` bytes, of which `max` + 1 were read.
pub fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    read_opened(&open(path)?, max)
}

/// The same for UTF-8 text.
///
/// # Errors
/// Those of [`read`]; [`ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_text(path: &Path, max: u64) -> io::Result<String> {
    String::from_utf8(read(path, max)?).map_err(|_| Error::new(ErrorKind::InvalidData, "is not UTF-8 text"))
}

/// Opens the plain file at `path` for reading, without waiting for anything but the file system.
///
/// # Errors
/// The system's; [`ErrorKind::InvalidInput`] if it is not a plain file.
pub fn open(path: &Path) -> io::Result<File> {
    // Opening some devices does something, so what is certainly no plain file is not opened.
    plain(&std::fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        // Another thing may stand there by now: opening a FIFO must not wait for a writer, nor make a terminal ours.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    plain(&file.metadata()?)?;
    Ok(file)
}

/// The rest of an open file, which may be at most `max` bytes long.
pub fn read_opened(file: &File, max: u64) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len();
    if size > max {
        return Err(too_large(max));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    // It may grow while it is read, and the files of /proc have no length.
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max { Err(too_large(max)) } else { Ok(bytes) }
}

/// Feeds `hasher` the content of the plain file at `path`, which may have at most `max` bytes, without keeping it.
///
/// # Errors
/// Those of [`read`]; the hasher may have been fed then.
pub fn hash(path: &Path, max: u64, hasher: &mut blake3::Hasher) -> io::Result<()> {
    let (file, before) = (open(path)?, hasher.count());
    if file.metadata()?.len() > max {
        return Err(too_large(max));
    }
    // It may grow while it is read.
    hasher.update_reader(file.take(max.saturating_add(1)))?;
    if hasher.count() - before > max { Err(too_large(max)) } else { Ok(()) }
}

/// Which file this is, and how often it was written, as far as the system says so: as long as a path leads to an equal
/// one, its bytes are those that were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds.
    written: (i64, i64),
    changed: (i64, i64),
}

/// How long a file must have been left alone before its times say that it is the same: a clock of a file system may be
/// as coarse as this, and two writes within one step of it look like one.
#[cfg(unix)]
const SETTLED_SECONDS: i64 = 2;

impl FileIdentity {
    /// That of an open file. `None` if it was written so lately that its times prove nothing, or if the system has no
    /// such identities.
    #[cfg(unix)]
    pub fn of(file: &File) -> io::Result<Option<Self>> {
        use std::os::unix::fs::MetadataExt as _;
        let about = file.metadata()?;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let settled = |seconds: i64| seconds.saturating_add(SETTLED_SECONDS) < now;
        // Programs can set a file's modification time, but not its change time.
        if !settled(about.ctime()) {
            return Ok(None);
        }
        Ok(Some(Self {
            device: about.dev(),
            inode: about.ino(),
            size: about.len(),
            written: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        }))
    }

    /// That of an open file.
    #[cfg(not(unix))]
    pub fn of(_: &File) -> io::Result<Option<Self>> {
        Ok(None)
    }
}

fn too_large(max: u64) -> Error {
    Error::new(ErrorKind::FileTooLarge, format!("has more than {max} bytes; the rest is not read"))
}

/// Rejects what is no plain file.
pub fn plain(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, format!("is {}, not a plain file", kind(metadata.file_type()))))
}

#[cfg(unix)]
fn kind(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;
    if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(not(unix))]
fn kind(kind: FileType) -> &'static str {
    if kind.is_dir() { "a folder" } else { "something else" }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::PathBuf;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("conductor-plain-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_plain_file_is_read_up_to_its_limit_and_not_beyond() {
        let folder = Folder::new("limit");
        let file = folder.0.join("text");
        std::fs::write(&file, "four").unwrap();
        assert_eq!(read(&file, 4).unwrap(), b"four");
        assert_eq!(read(&file, 3).unwrap_err().kind(), ErrorKind::FileTooLarge);
        std::fs::write(&file, [0xff]).unwrap();
        assert_eq!(read_text(&file, 4).unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(read(&folder.0.join("missing"), 4).unwrap_err().kind(), ErrorKind::NotFound);
        assert!(read(&folder.0, 4).unwrap_err().to_string().contains("a folder, not a plain file"));
    }

    #[test]
    fn a_file_that_grows_after_it_was_opened_is_read_up_to_the_limit() {
        let folder = Folder::new("grows");
        let path = folder.0.join("text");
        std::fs::write(&path, "").unwrap();
        let opened = open(&path).unwrap();
        let mut grows = OpenOptions::new().append(true).open(&path).unwrap();
        grows.write_all(&[b'x'; 100]).unwrap();
        assert_eq!(read_opened(&opened, 10).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_plain_file_is_hashed_after_what_came_before_it_and_not_beyond_its_limit() {
        let folder = Folder::new("hash");
        let file = folder.0.join("text");
        std::fs::write(&file, "four").unwrap();
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"twenty-");
        hash(&file, 4, &mut hasher).unwrap();
        assert_eq!(hasher.finalize(), blake3::hash(b"twenty-four"));
        assert_eq!(hash(&file, 3, &mut hasher).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_has_no_length_is_bounded_all_the_same() {
        // A file of the kernel's: its length is 0, and there is something in it.
        let file = Path::new("/proc/self/status");
        assert!(!read(file, MAX_TEXT).unwrap().is_empty());
        assert_eq!(read(file, 10).unwrap_err().kind(), ErrorKind::FileTooLarge);
        let hashed = hash(file, 10, &mut blake3::Hasher::new());
        assert_eq!(hashed.unwrap_err().kind(), ErrorKind::FileTooLarge);
    }

    #[cfg(unix)]
    #[test]
    fn pipes_devices_and_links_to_them_are_rejected_without_waiting() {
        let folder = Folder::new("pipe");
        let pipe = folder.0.join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        let link = folder.0.join("link");
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        for path in [&pipe, &link] {
            let error = read(path, 10).unwrap_err();
            assert_eq!(
                (error.kind(), error.to_string().as_str()),
                (ErrorKind::InvalidInput, "is a pipe, not a plain file")
            );
        }
        let error = read(Path::new("/dev/zero"), 10).unwrap_err();
        assert!(error.to_string().contains("a device"), "{error}");
        let socket = folder.0.join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(read(&socket, 10).unwrap_err().to_string().contains("a socket"));
    }
}
