//! Package signatures (ed25519), and the signers that a person trusts.
//!
//! The last section of a signed component is a custom section named `conductor:signature`. It holds
//! one entry of 96 bytes per signer: the ed25519 public key (32), and the signature (64) of
//! `"conductor package signature v1\0"` followed by the SHA-256 of all bytes before the section.
//!
//! A signature says that the holder of a key vouches for these bytes. It opens nothing: what a
//! package may do is granted by a person, who sees the signer's name. A signer has a name only if a
//! person wrote it into `trusted-signers.toml`.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{hex, unhex};
use conductor_stdx::atomic_file::replace;
use conductor_stdx::plain_file;

/// Name of the custom section that carries the signatures.
pub const SECTION: &str = "conductor:signature";

/// The most signatures of one package.
pub const MAX_SIGNATURES: usize = 16;

/// The largest key file, and the largest list of trusted signers, in bytes (1 MiB).
const MAX_FILE: u64 = 1024 * 1024;

/// What is signed begins with this, so that no signature made for something else can serve here.
const DOMAIN: &[u8] = b"conductor package signature v1\0";

/// Who signed, and the signatures.
type Entries = Vec<(PublicKey, Signature)>;

/// The length of a key and a signature.
const ENTRY_BYTES: usize = 32 + 64;

/// A signer's ed25519 public key; 64 hex digits as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey([u8; 32]);

impl From<&SigningKey> for PublicKey {
    fn from(key: &SigningKey) -> Self {
        Self(key.verifying_key().to_bytes())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl FromStr for PublicKey {
    type Err = SignatureError;

    fn from_str(text: &str) -> Result<Self, SignatureError> {
        let bytes = unhex(text).ok_or_else(|| SignatureError::NoKey(text.to_owned()))?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| SignatureError::NoKey(text.to_owned()))?;
        if key.is_weak() {
            return Err(SignatureError::NoKey(text.to_owned()));
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for PublicKey {
    type Error = SignatureError;

    fn try_from(text: String) -> Result<Self, SignatureError> {
        text.parse()
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_string()
    }
}

/// What is wrong with a signature, a key or the list of trusted signers.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// A signature does not fit the bytes.
    #[error("the signature of {0} does not fit: the package was altered after it was signed")]
    Wrong(PublicKey),
    /// The section is not the last one, or there are several.
    #[error("bytes follow the signature section; they are not signed")]
    NotLast,
    /// The section is not one of signatures.
    #[error(
        "the signature section is malformed: it must hold 1 to {MAX_SIGNATURES} entries of {ENTRY_BYTES} bytes, each with a valid key"
    )]
    Malformed,
    /// The bytes are no component.
    #[error("is cut short or no component")]
    NoComponent,
    /// The text is no public key.
    #[error("\"{0}\" is no public key; write the 64 hex digits that `conductor feature key new` printed")]
    NoKey(String),
    /// The text is no name for a signer.
    #[error("\"{0}\" is no name for a signer; write 1 to 64 of a-z, 0-9, - and _")]
    NoName(String),
    /// The name stands for another key.
    #[error("{name} is {key} already; remove its line from {} first", path.display())]
    NameTaken {
        /// The name.
        name: String,
        /// Its key.
        key: PublicKey,
        /// The list.
        path: PathBuf,
    },
    /// A file can't be read, written or understood.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
}

/// The keys whose signatures the component carries, all of them valid. Empty if it is unsigned.
///
/// # Errors
/// A signature that does not fit, or a section that is malformed or not the last one.
pub fn verify(component: &[u8]) -> Result<Vec<PublicKey>, SignatureError> {
    let (signed, entries) = split(component)?;
    let message = message(signed);
    let mut keys = Vec::new();
    for (key, signature) in &entries {
        let verifying = VerifyingKey::from_bytes(&key.0).map_err(|_| SignatureError::Malformed)?;
        verifying.verify_strict(&message, signature).map_err(|_| SignatureError::Wrong(*key))?;
        if !keys.contains(key) {
            keys.push(*key);
        }
    }
    Ok(keys)
}

/// The component with one more signature. A former signature of the same key is replaced.
///
/// # Errors
/// Those of [`verify`]: what is signed wrongly already is not signed again.
pub fn sign(component: &[u8], key: &SigningKey) -> Result<Vec<u8>, SignatureError> {
    verify(component)?;
    let (signed, mut entries) = split(component)?;
    let public = PublicKey::from(key);
    entries.retain(|(other, _)| *other != public);
    entries.push((public, key.sign(&message(signed))));
    if entries.len() > MAX_SIGNATURES {
        return Err(SignatureError::Malformed);
    }
    let mut content = leb128(SECTION.len());
    content.extend(SECTION.bytes());
    for (key, signature) in entries {
        content.extend(key.0);
        content.extend(signature.to_bytes());
    }
    let mut out = signed.to_vec();
    out.push(0);
    out.extend(leb128(content.len()));
    out.extend(content);
    Ok(out)
}

fn message(signed: &[u8]) -> Vec<u8> {
    [DOMAIN, &Sha256::digest(signed)].concat()
}

/// What is signed, and by whom.
fn split(component: &[u8]) -> Result<(&[u8], Entries), SignatureError> {
    let short = || SignatureError::NoComponent;
    let mut rest = component.get(8..).ok_or_else(short)?;
    while let Some((id, tail)) = rest.split_first() {
        let start = component.len() - rest.len();
        let (size, tail) = read_leb128(tail).ok_or_else(short)?;
        let content = tail.get(..size).ok_or_else(short)?;
        rest = &tail[size..];
        if *id != 0 {
            continue;
        }
        let (length, named) = read_leb128(content).ok_or_else(short)?;
        let name = named.get(..length).ok_or_else(short)?;
        if name == SECTION.as_bytes() {
            if !rest.is_empty() {
                return Err(SignatureError::NotLast);
            }
            return Ok((&component[..start], entries(&named[length..])?));
        }
    }
    Ok((component, Vec::new()))
}

fn entries(data: &[u8]) -> Result<Entries, SignatureError> {
    if data.is_empty() || !data.len().is_multiple_of(ENTRY_BYTES) || data.len() / ENTRY_BYTES > MAX_SIGNATURES {
        return Err(SignatureError::Malformed);
    }
    let entry = |entry: &[u8]| {
        let (key, signature) = entry.split_at(32);
        let key = hex(key).parse().map_err(|_| SignatureError::Malformed)?;
        Ok((key, Signature::from_slice(signature).map_err(|_| SignatureError::Malformed)?))
    };
    data.chunks(ENTRY_BYTES).map(entry).collect()
}

fn leb128(mut value: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while value > 0x7f {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// A number of at most 32 bits, and what follows it.
fn read_leb128(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_u64;
    for (index, byte) in bytes.iter().enumerate().take(5) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, &bytes[index + 1..]));
        }
    }
    None
}

/// A new key, from the system's randomness.
///
/// # Errors
/// The system has none.
pub fn new_key() -> std::io::Result<SigningKey> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(std::io::Error::other)?;
    Ok(SigningKey::from_bytes(&seed))
}

/// Writes a key into a new file that only this user can read.
///
/// # Errors
/// The file already exists, or can't be written.
pub fn write_key(path: &Path, key: &SigningKey) -> Result<(), SignatureError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|error| file_error(path, error))?;
    writeln!(file, "{}", hex(key.as_bytes())).and_then(|()| file.sync_all()).map_err(|error| file_error(path, error))
}

/// Reads a key that [`write_key`] wrote.
///
/// # Errors
/// The file can't be read, or holds no key. What it holds is not repeated.
pub fn read_key(path: &Path) -> Result<SigningKey, SignatureError> {
    let text = plain_file::read_text(path, MAX_FILE).map_err(|error| file_error(path, error))?;
    let seed = unhex(text.trim())
        .ok_or_else(|| file_error(path, "is no key file; `conductor feature key new FILE` makes one"))?;
    Ok(SigningKey::from_bytes(&seed))
}

fn file_error(path: &Path, message: impl ToString) -> SignatureError {
    SignatureError::File { path: path.to_owned(), message: message.to_string() }
}

/// A signer as listings show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signer {
    /// The key that signed.
    pub key: PublicKey,
    /// The name that a person gave to the key; `None` if the signer is unknown.
    pub name: Option<String>,
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name),
            None => write!(f, "unknown signer {}", self.key),
        }
    }
}

/// The signers that a person trusts: `name = "public key"` in `<home>/trusted-signers.toml`.
/// Removing a line ends the trust.
#[derive(Debug, Clone, Default)]
pub struct TrustedSigners {
    names: BTreeMap<String, PublicKey>,
}

impl TrustedSigners {
    /// Reads the list. A list that is not there is empty.
    ///
    /// # Errors
    /// The file can't be read, or is no such list.
    pub fn read(home: &Path) -> Result<Self, SignatureError> {
        let path = trusted(home);
        let text = match plain_file::read_text(&path, MAX_FILE) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(file_error(&path, error)),
        };
        let names = toml::from_str(&text).map_err(|error| file_error(&path, error))?;
        Ok(Self { names })
    }

    /// The key with its name, where it has one.
    pub fn signer(&self, key: PublicKey) -> Signer {
        let name = self.names.iter().find(|(_, named)| **named == key).map(|(name, _)| name.clone());
        Signer { key, name }
    }

    /// Whether a person trusts this key.
    pub fn trusts(&self, key: PublicKey) -> bool {
        self.names.values().any(|trusted| *trusted == key)
    }

    /// Adds a signer to the list on disk.
    ///
    /// # Errors
    /// The name is invalid, or stands for another key; or the file can't be written.
    pub fn add(home: &Path, name: &str, key: PublicKey) -> Result<(), SignatureError> {
        let shaped = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        if name.is_empty() || name.len() > 64 || !name.bytes().all(shaped) {
            return Err(SignatureError::NoName(name.to_owned()));
        }
        let path = trusted(home);
        match Self::read(home)?.names.get(name) {
            Some(known) if *known == key => return Ok(()),
            Some(known) => return Err(SignatureError::NameTaken { name: name.to_owned(), key: *known, path }),
            None => {}
        }
        // What a person wrote there stays as it is.
        let mut text = plain_file::read_text(&path, MAX_FILE).unwrap_or_default();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("{name} = \"{key}\"\n"));
        replace(&path, text.as_bytes()).map_err(|error| file_error(&path, error))
    }
}

fn trusted(home: &Path) -> PathBuf {
    home.join("trusted-signers.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component() -> Vec<u8> {
        wat::parse_str("(component (component) (core module))").unwrap()
    }

    #[test]
    fn everyone_who_signed_is_named_in_order() {
        let (anna, bert) = (SigningKey::from_bytes(&[1; 32]), SigningKey::from_bytes(&[2; 32]));
        assert!(verify(&component()).unwrap().is_empty());
        let once = sign(&component(), &anna).unwrap();
        assert_eq!(verify(&once).unwrap(), [PublicKey::from(&anna)]);
        let twice = sign(&once, &bert).unwrap();
        assert_eq!(verify(&twice).unwrap(), [PublicKey::from(&anna), PublicKey::from(&bert)]);
        assert_eq!(sign(&twice, &bert).unwrap(), twice, "a key signs once");
        wasmparser::Validator::new().validate_all(&twice).unwrap();
    }

    #[test]
    fn no_byte_of_a_signed_component_can_be_changed() {
        let key = SigningKey::from_bytes(&[1; 32]);
        let signed = sign(&component(), &key).unwrap();
        for index in 0..signed.len() {
            let mut altered = signed.clone();
            altered[index] ^= 1;
            let vouched = verify(&altered).is_ok_and(|keys| keys.contains(&PublicKey::from(&key)));
            assert!(!vouched, "byte {index}");
        }
        let mut longer = signed.clone();
        longer.extend([0, 2, 1, b'x']);
        assert!(matches!(verify(&longer), Err(SignatureError::NotLast)));
        let mut twice = signed.clone();
        twice.extend(&signed[component().len()..]);
        assert!(matches!(verify(&twice), Err(SignatureError::NotLast)));
        assert!(matches!(verify(&signed[..signed.len() - 1]), Err(SignatureError::NoComponent)));
    }

    #[test]
    fn a_signature_of_the_bare_hash_does_not_serve() {
        let key = SigningKey::from_bytes(&[1; 32]);
        let mut signed = sign(&component(), &key).unwrap();
        let bare = key.sign(&Sha256::digest(component()));
        let at = signed.len() - 64;
        signed[at..].copy_from_slice(&bare.to_bytes());
        assert!(matches!(verify(&signed), Err(SignatureError::Wrong(_))));
    }

    #[test]
    fn a_signer_has_the_name_that_a_person_gave() {
        let home = std::env::temp_dir().join(format!("conductor-signers-{}", std::process::id()));
        std::fs::create_dir_all(&home).unwrap();
        let (anna, bert) = (SigningKey::from_bytes(&[1; 32]), SigningKey::from_bytes(&[2; 32]));
        std::fs::write(home.join("trusted-signers.toml"), "# mine").unwrap();
        TrustedSigners::add(&home, "anna", (&anna).into()).unwrap();
        TrustedSigners::add(&home, "anna", (&anna).into()).unwrap();
        assert!(TrustedSigners::add(&home, "anna", (&bert).into()).unwrap_err().to_string().contains("already"));
        assert!(TrustedSigners::add(&home, "a b", (&bert).into()).is_err());
        let list = TrustedSigners::read(&home).unwrap();
        assert_eq!(list.signer((&anna).into()).to_string(), "anna");
        assert!(list.signer((&bert).into()).to_string().starts_with("unknown signer "));
        let text = std::fs::read_to_string(home.join("trusted-signers.toml")).unwrap();
        assert!(text.starts_with("# mine\nanna = "), "{text}");
        assert!("00".repeat(32).parse::<PublicKey>().is_err(), "a weak key");
        std::fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn a_key_file_is_read_as_written_and_never_replaced() {
        let path = std::env::temp_dir().join(format!("conductor-key-{}", std::process::id()));
        let key = new_key().unwrap();
        write_key(&path, &key).unwrap();
        assert_eq!(read_key(&path).unwrap().to_bytes(), key.to_bytes());
        assert!(write_key(&path, &key).is_err());
        std::fs::write(&path, "secret-text").unwrap();
        assert!(!read_key(&path).unwrap_err().to_string().contains("secret-text"));
        std::fs::remove_file(path).unwrap();
    }
}
