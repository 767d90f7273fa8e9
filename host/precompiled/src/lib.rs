//! Machine code that a release brings along for its bundled features, so that a first start needs no compiler.
//!
//! Beside the bundled features stands a folder `code`: one file of code per package, named after the package's digest,
//! and a [manifest](MANIFEST) with the BLAKE3 hash of each. Loading machine code is trusting it, so the program holds the
//! SHA-256 of the manifest in itself ([`Anchor`]): who can replace that can replace the program. A manifest that does
//! not have this digest is ignored whole, a file of code that does not have its own is ignored, and what is ignored is
//! compiled as in a build without precompiled code.
//!
//! The program has to exist before it can compile, so its anchor is written into the finished file: it is a
//! static that begins with a mark, which [`Anchor::put`] finds in the file and fills.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use blake3::{Hash, Hasher};
use conductor_stdx::atomic_file::replace;
use conductor_stdx::digest::{hex, unhex};
use conductor_stdx::plain_file;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The folder of precompiled code, within that of the bundled features.
pub const FOLDER: &str = "code";

/// The file that lists the digests of the code, within [`FOLDER`].
pub const MANIFEST: &str = "manifest.json";

/// The largest manifest that is read, in bytes (1 MiB).
const MAX_MANIFEST: u64 = 1024 * 1024;

/// Why there is no precompiled code.
#[derive(Debug, thiserror::Error)]
pub enum PrecompiledError {
    /// The system's error for a file.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// Users other than this one and root may change the files.
    #[error("{} may be changed by other users, so no code in it is trusted: make it and what is in it yours or root's, and not writable by others", .0.display())]
    Shared(PathBuf),
    /// The manifest is not the one that this program was released with.
    #[error("{} is of another release than this program", .0.display())]
    Foreign(PathBuf),
    /// The manifest can't be read as one.
    #[error("{}: {message}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The program has no anchor, one that is filled already, or several.
    #[error("{0}")]
    Anchor(&'static str),
}

/// Of each package's digest (hexadecimal, as packages state it) the BLAKE3 hash of its code, as 64 hexadecimal digits. All
/// code is hashed at every start, for which SHA-256 would take several times as long.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Manifest(BTreeMap<String, String>);

/// The place in a program for the SHA-256 of the manifest that it was released with: a static that the program keeps.
#[derive(Debug)]
#[repr(C)]
pub struct Anchor {
    mark: [u8; 32],
    digest: [u8; 32],
}

/// The mark of an anchor, inverted: in a program's file the mark itself is nowhere but in its anchor.
const INVERTED_MARK: [u8; 32] = inverted(*b"conductor precompiled manifest:\n");

const fn inverted(mut bytes: [u8; 32]) -> [u8; 32] {
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = !bytes[at];
        at += 1;
    }
    bytes
}

impl Anchor {
    /// One that is not filled.
    #[expect(clippy::new_without_default, reason = "only for statics")]
    pub const fn new() -> Self {
        Self { mark: inverted(INVERTED_MARK), digest: [0; 32] }
    }

    /// The digest. `None` if no precompiled code belongs to this program.
    pub fn digest(&'static self) -> Option<[u8; 32]> {
        // SAFETY: a reference is valid to read. The read is volatile because the static is changed in the program's file
        // after the compiler has seen it, which would otherwise put the zeros in here.
        let anchor = unsafe { std::ptr::read_volatile(self) };
        (anchor.digest != [0; 32]).then_some(anchor.digest)
    }

    /// Fills the anchor in the bytes of a program's file.
    ///
    /// # Errors
    /// [`PrecompiledError::Anchor`].
    pub fn put(program: &mut [u8], digest: [u8; 32]) -> Result<(), PrecompiledError> {
        let mark = inverted(std::hint::black_box(INVERTED_MARK));
        let mut found = memchr::memmem::find_iter(program, &mark).filter(|at| {
            program.get(at + mark.len()..at + 2 * mark.len()).is_some_and(|rest| rest.iter().all(|byte| *byte == 0))
        });
        let Some(at) = found.next() else {
            return Err(PrecompiledError::Anchor("the program has no place for the digest of precompiled code"));
        };
        if found.next().is_some() {
            return Err(PrecompiledError::Anchor("the program has several places for the digest of precompiled code"));
        }
        drop(found);
        program[at + mark.len()..at + 2 * mark.len()].copy_from_slice(&digest);
        Ok(())
    }
}

/// What code this program was released with.
#[used]
static RELEASED: Anchor = Anchor::new();

/// The precompiled code of one release.
#[derive(Debug)]
pub struct Precompiled {
    folder: PathBuf,
    manifest: Manifest,
}

impl Precompiled {
    /// The code in the folder `code` of `features` that this program was released with. `None` if it was released with
    /// none, or there is none in this folder.
    ///
    /// # Errors
    /// See [`PrecompiledError`].
    pub fn released(features: &Path) -> Result<Option<Self>, PrecompiledError> {
        let Some(digest) = RELEASED.digest() else { return Ok(None) };
        match Self::open(features, digest) {
            // Another folder of features was named, or the code was left out: nothing is wrong with that.
            Err(PrecompiledError::File { error, .. }) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// The code in the folder `code` of `features`, if its manifest has this SHA-256.
    ///
    /// # Errors
    /// See [`PrecompiledError`].
    pub fn open(features: &Path, digest: [u8; 32]) -> Result<Self, PrecompiledError> {
        let folder = features.join(FOLDER);
        for shared in [features, &folder] {
            only_ours(shared)?;
        }
        let path = folder.join(MANIFEST);
        let text = plain_file::read(&path, MAX_MANIFEST)
            .map_err(|error| PrecompiledError::File { path: path.clone(), error })?;
        if sha256(&text) != digest {
            return Err(PrecompiledError::Foreign(path));
        }
        let manifest = serde_json::from_slice(&text)
            .map_err(|error| PrecompiledError::Manifest { path, message: error.to_string() })?;
        Ok(Self { folder, manifest })
    }

    /// The file with the code of the package that has this digest, whose content was checked just now. `None` if there
    /// is none that can be trusted. `max` is the largest code that is read, in bytes.
    pub fn file(&self, package: &str, max: u64) -> Option<PathBuf> {
        let hash = Hash::from_bytes(unhex(self.manifest.0.get(package)?)?);
        let path = code_file(&self.folder, package);
        if let Err(error) = only_ours(&path) {
            tracing::warn!("{error}; compiling instead");
            return None;
        }
        let mut hasher = Hasher::new();
        match plain_file::hash(&path, max, &mut hasher) {
            Ok(()) if hasher.finalize() == hash => Some(path),
            Ok(()) => {
                tracing::warn!("{}: was altered; compiling instead", path.display());
                None
            }
            Err(error) => {
                tracing::warn!("{}: {error}; compiling instead", path.display());
                None
            }
        }
    }
}

/// Writes code into the folder `code` of `features`: of each package its digest and its code. What stood there before is
/// removed. Returns the SHA-256 of the manifest, for [`Anchor::put`].
///
/// # Errors
/// The system's.
pub fn write<'a>(
    features: &Path,
    code: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> Result<[u8; 32], PrecompiledError> {
    let folder = features.join(FOLDER);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| PrecompiledError::File { path, error }
    };
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&folder)(error)),
        _ => {}
    }
    for made in [features, &folder] {
        private_to_write(made).map_err(failed(made))?;
    }
    let mut manifest = Manifest::default();
    for (package, code) in code {
        let path = code_file(&folder, package);
        save(&path, code).map_err(failed(&path))?;
        manifest.0.insert(package.to_owned(), hex(blake3::hash(code).as_bytes()));
    }
    let path = folder.join(MANIFEST);
    let message =
        |error: serde_json::Error| PrecompiledError::Manifest { path: path.clone(), message: error.to_string() };
    let mut text = serde_json::to_vec_pretty(&manifest).map_err(message)?;
    text.push(b'\n');
    save(&path, &text).map_err(failed(&path))?;
    Ok(sha256(&text))
}

/// Writes a file that everybody can read and only this user write to.
fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes)?;
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    Ok(())
}

/// Creates a folder that everybody can read and only this user write to.
fn private_to_write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    #[cfg(unix)]
    fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(())
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// What was checked must not change before it is mapped: whether only this user and root can change it.
#[cfg(unix)]
fn only_ours(path: &Path) -> Result<(), PrecompiledError> {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::metadata(path).map_err(|error| PrecompiledError::File { path: path.to_owned(), error })?;
    let is_ours = found.uid() == 0 || found.uid() == rustix::process::geteuid().as_raw();
    if is_ours && found.mode() & 0o022 == 0 { Ok(()) } else { Err(PrecompiledError::Shared(path.to_owned())) }
}

/// Other systems have no such bits: the folder of the program is as safe as the program.
#[cfg(not(unix))]
fn only_ours(_path: &Path) -> Result<(), PrecompiledError> {
    Ok(())
}

fn code_file(folder: &Path, package: &str) -> PathBuf {
    folder.join(format!("{package}.cwasm"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u64 = 1024;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("conductor-precompiled-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn code_that_was_written_is_found_and_no_other() {
        let features = Folder::new("found");
        let digest = write(&features.0, [("aa", &b"code of a"[..]), ("bb", b"code of b")]).unwrap();
        let released = Precompiled::open(&features.0, digest).unwrap();
        let file = released.file("aa", MAX).unwrap();
        assert_eq!(fs::read(file).unwrap(), b"code of a");
        assert_eq!(released.file("cc", MAX), None);
        assert_eq!(released.file("aa", 3), None, "larger than what is read");

        // Written again, with less: the rest is gone.
        write(&features.0, [("bb", &b"other"[..])]).unwrap();
        assert_eq!(released.file("aa", MAX), None);
        assert_eq!(released.file("bb", MAX), None, "the manifest in force is the one that was opened");
    }

    #[test]
    fn what_was_altered_is_not_trusted() {
        let features = Folder::new("altered");
        let digest = write(&features.0, [("aa", &b"good"[..]), ("bb", b"else")]).unwrap();
        let released = Precompiled::open(&features.0, digest).unwrap();
        let folder = features.0.join(FOLDER);
        for bad in [&b"bad!"[..], b"goo", b"good!", b"else", b""] {
            fs::write(folder.join("aa.cwasm"), bad).unwrap();
            assert_eq!(released.file("aa", MAX), None, "{bad:?}");
        }
        // A manifest that was made to fit is another manifest.
        fs::write(folder.join(MANIFEST), fs::read_to_string(folder.join(MANIFEST)).unwrap().replace("aa", "ab"))
            .unwrap();
        assert!(matches!(Precompiled::open(&features.0, digest), Err(PrecompiledError::Foreign(_))));
        fs::remove_file(folder.join(MANIFEST)).unwrap();
        assert!(matches!(Precompiled::open(&features.0, digest), Err(PrecompiledError::File { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn what_other_users_can_change_is_not_trusted() {
        use std::os::unix::fs::PermissionsExt as _;
        let features = Folder::new("shared");
        let digest = write(&features.0, [("aa", &b"good"[..])]).unwrap();
        let folder = features.0.join(FOLDER);
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        for shared in [&features.0, &folder] {
            for mode in [0o775, 0o757, 0o777] {
                set(shared, mode);
                assert!(matches!(Precompiled::open(&features.0, digest), Err(PrecompiledError::Shared(_))), "{mode:o}");
            }
            set(shared, 0o755);
        }
        let released = Precompiled::open(&features.0, digest).unwrap();
        set(&folder.join("aa.cwasm"), 0o666);
        assert_eq!(released.file("aa", MAX), None);
        set(&folder.join("aa.cwasm"), 0o644);
        assert!(released.file("aa", MAX).is_some());
    }

    #[test]
    fn a_manifest_of_nonsense_is_an_error() {
        let features = Folder::new("nonsense");
        write(&features.0, []).unwrap();
        for text in ["", "[]", "{\"aa\": 1}"] {
            fs::write(features.0.join(FOLDER).join(MANIFEST), text).unwrap();
            let opened = Precompiled::open(&features.0, sha256(text.as_bytes()));
            assert!(matches!(opened, Err(PrecompiledError::Manifest { .. })), "{text:?}");
        }
        let escaping = br#"{"../aa": "00"}"#;
        fs::write(features.0.join(FOLDER).join(MANIFEST), escaping).unwrap();
        assert_eq!(Precompiled::open(&features.0, sha256(escaping)).unwrap().file("../aa", MAX), None);
    }

    #[test]
    fn an_anchor_is_filled_once() {
        static UNFILLED: Anchor = Anchor::new();
        static FILLED: Anchor = Anchor { digest: [7; 32], ..Anchor::new() };
        assert_eq!(UNFILLED.digest(), None);
        assert_eq!(FILLED.digest(), Some([7; 32]));

        let mark = UNFILLED.mark;
        let mut program = [&b"before"[..], &mark, &[0; 32], b"after"].concat();
        Anchor::put(&mut program, [9; 32]).unwrap();
        assert_eq!(program, [&b"before"[..], &mark, &[9; 32], b"after"].concat());
        assert!(Anchor::put(&mut program, [9; 32]).is_err(), "filled already");
        let mut twice = [mark, [0; 32], mark, [0; 32]].concat();
        assert!(Anchor::put(&mut twice, [9; 32]).is_err());
        assert!(Anchor::put(&mut [], [9; 32]).is_err());
    }
}
