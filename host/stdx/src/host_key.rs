//! The host's key: 32 random bytes that only hosts of this user have, in `<home>/host.key`.
//!
//! It vouches for what the host itself has written into its home: compiled code, the head of the audit; and the key by
//! which features' statements are signed follows from it. None stands for another: what is vouched for begins with what it
//! is.

use std::io::{Error, ErrorKind, Read as _, Result, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::plain_file;

/// The key of one home.
#[derive(Clone)]
pub struct HostKey([u8; 32]);

impl std::fmt::Debug for HostKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl HostKey {
    /// The key of this home, which is made if there is none.
    pub fn of(home: &Path) -> Result<Self> {
        match Self::read(home) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            found => return found,
        }
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(Error::other)?;
        match write_private(home, FILE, &key) {
            Ok(()) => Ok(Self(key)),
            // Another process was faster: its key is the one.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Self::read(home),
            Err(error) => Err(error),
        }
    }

    /// The key of this home; an error if there is none.
    pub fn read(home: &Path) -> Result<Self> {
        let mut key = [0; 32];
        plain_file::open(&home.join(FILE))?.read_exact(&mut key)?;
        Ok(Self(key))
    }

    /// Another key that follows from it: 32 bytes, for one purpose.
    pub fn derived(&self, purpose: &[u8]) -> [u8; 32] {
        self.mac().chain_update(purpose).finalize().into_bytes().into()
    }

    /// A MAC under it, to be fed with what is vouched for.
    pub fn mac(&self) -> Hmac<Sha256> {
        // HMAC fills a short key up with zeros to the hash's block (RFC 2104).
        let mut block = [0; 64];
        block[..self.0.len()].copy_from_slice(&self.0);
        Hmac::new(&block.into())
    }
}

const FILE: &str = "host.key";

/// Writes a file that is not there yet, for its owner alone. Written aside and linked into its place: a process that
/// finds one finds a whole one, and never a second one.
pub fn write_private(home: &Path, name: &str, content: &[u8]) -> Result<()> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let aside = home.join(format!("{name}.{}-{number}.tmp", std::process::id()));
    let _ = std::fs::remove_file(&aside);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&aside).and_then(|mut out| {
        out.write_all(content)?;
        out.sync_all()?;
        match std::fs::hard_link(&aside, home.join(name)) {
            // A file system without links.
            Err(error) if error.kind() != ErrorKind::AlreadyExists => std::fs::rename(&aside, home.join(name)),
            linked => linked,
        }
    });
    let _ = std::fs::remove_file(&aside);
    written
}
