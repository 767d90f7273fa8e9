//! The bearer tokens of the HTTP door, which are files of the home.
//!
//! There are several, because an agent is not its user, and a display is neither: what the agent's token opens can
//! look, call tools and propose, over MCP; only the owner's applies plans; the others are to be lent to shells that
//! must not. Each is 256 random bits, made once and kept, so that what was written into an agent's settings goes on
//! working.

use std::fmt;
use std::hint::black_box;
use std::io::{self, Error, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

pub use super::holder::Holder;
use conductor_stdx::digest::hex;
use conductor_stdx::host_key::write_private;
use conductor_stdx::plain_file;

/// Bytes of a token before they are written as hex.
const TOKEN_BYTES: usize = 32;

/// A secret of 64 hex digits.
struct Token([u8; 2 * TOKEN_BYTES]);

/// The tokens of a home, in the order of [`Holder::ALL`].
pub(super) struct Tokens([Token; Holder::ALL.len()]);

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Tokens {
    /// The tokens of this home. Those that are not there are made.
    ///
    /// # Errors
    /// What is wrong with the file, and what to do: a token that others can read is rejected.
    pub(super) fn of(home: &Path) -> io::Result<Self> {
        let [owner, control, read, agent] = Holder::ALL.map(|holder| Token::of(home, holder));
        Ok(Self([owner?, control?, read?, agent?]))
    }

    /// What this opens, if it is one of them.
    pub(super) fn holder(&self, said: &[u8]) -> Option<Holder> {
        // All of them are always looked at.
        let found = Holder::ALL.into_iter().zip(&self.0).filter(|(_, token)| token.is(said));
        found.fold(None, |first, (holder, _)| first.or(Some(holder)))
    }
}

impl Token {
    fn of(home: &Path, holder: Holder) -> io::Result<Self> {
        let path = holder.file(home);
        let read =
            || Self::read(&path).map_err(|error| Error::new(error.kind(), format!("{}: {error}", path.display())));
        match Self::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            _ => return read(),
        }
        let mut random = [0; TOKEN_BYTES];
        getrandom::fill(&mut random).map_err(Error::other)?;
        match write_private(home, holder.file_name(), hex(&random).as_bytes()) {
            // Another process was faster: its token is the one.
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => read(),
        }
    }

    fn read(path: &Path) -> io::Result<Self> {
        let wrong = |what: &str| Error::new(ErrorKind::InvalidData, format!("{what}; remove it, and another is made"));
        let mut file = plain_file::open(path)?;
        let about = file.metadata()?;
        if !about.is_file() || about.mode() & 0o077 != 0 || about.uid() != rustix::process::geteuid().as_raw() {
            return Err(wrong("others than its owner may have read or written this token"));
        }
        let mut digits = [0; 2 * TOKEN_BYTES];
        let whole = file.read_exact(&mut digits).is_ok() && about.len() == digits.len() as u64;
        if !whole || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(wrong("this is no token of 64 hex digits"));
        }
        Ok(Self(digits))
    }

    /// Whether it is this one, compared in constant time.
    fn is(&self, said: &[u8]) -> bool {
        if said.len() != self.0.len() {
            return false;
        }
        black_box(self.0.iter().zip(said).fold(0, |differs, (one, other)| black_box(differs | (one ^ other)))) == 0
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    struct Home(PathBuf);

    impl Home {
        fn new(name: &str) -> Self {
            let home = std::env::temp_dir().join(format!("conductor-token-{name}-{}", std::process::id()));
            fs::create_dir_all(&home).unwrap();
            Self(home)
        }
    }

    impl Drop for Home {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn each_token_opens_what_is_its_own_and_stays() {
        let home = Home::new("scopes");
        let tokens = Tokens::of(&home.0).unwrap();
        let said = Holder::ALL.map(|holder| fs::read(holder.file(&home.0)).unwrap());
        let [owner, control, read, agent] = &said;
        assert!(owner != agent && owner != control && owner != read && control != read && read != agent);
        for tokens in [tokens, Tokens::of(&home.0).unwrap()] {
            for (holder, token) in Holder::ALL.into_iter().zip(&said) {
                assert_eq!(tokens.holder(token), Some(holder));
            }
            let mut near = owner.clone();
            near[63] ^= 1;
            for wrong in [&b""[..], &owner[..63], &near, &[&owner[..], b"0"].concat(), &[b'0'; 64]] {
                assert_eq!(tokens.holder(wrong), None);
            }
        }
        let mode = fs::metadata(Holder::Owner.file(&home.0)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_token_that_others_could_read_or_that_is_none_is_not_taken() {
        let home = Home::new("wrong");
        Tokens::of(&home.0).unwrap();
        let file = Holder::Agent.file(&home.0);
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        let error = Tokens::of(&home.0).unwrap_err().to_string();
        assert!(error.contains("mcp.token") && error.contains("others"), "{error}");
        for content in ["", "abc", &"g".repeat(64), &"0".repeat(65)] {
            fs::remove_file(&file).unwrap();
            fs::write(&file, content).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
            let error = Tokens::of(&home.0).unwrap_err().to_string();
            assert!(error.contains("64 hex digits"), "{content:?}: {error}");
        }
    }
}
