//! Provenance: statements of features, signed with a key of this home (Ed25519).
//!
//! The key follows from the home's own, so that there is no second file to keep. What is signed names the feature that
//! states it, so that no feature can sign as another one.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use conductor_stdx::digest::sha256;
use conductor_stdx::host_key::HostKey;
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};

use crate::error::ServiceError;

/// What the signing key is derived with.
const PURPOSE: &[u8] = b"conductor statement key v1";
/// What is signed begins with this.
const DOMAIN: &str = "conductor feature statement v1";

/// Signs and verifies for the features of one home.
#[derive(Debug, Default)]
pub struct Signer {
    home: Option<PathBuf>,
    key: OnceLock<SigningKey>,
}

/// A signature, with the key that it is by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The public key: 32 bytes.
    pub key: Vec<u8>,
    /// The signature: 64 bytes.
    pub value: Vec<u8>,
}

/// What a signature is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// It was made with the key of this home.
    ThisHost,
    /// It was made with the key beside it, which is another home's.
    AnotherHost,
    /// It is not a signature of this statement.
    Invalid,
}

/// The bytes that are signed: a text, the feature's whole id and the statement's SHA-256 in lower-case hex digits, with a
/// zero byte between them.
fn signed(feature: &str, statement: &[u8]) -> Vec<u8> {
    [DOMAIN, feature, &sha256(statement)].join("\0").into_bytes()
}

impl Signer {
    /// The signer of a home. Its key is read, or made, when it is first used.
    pub fn of(home: &Path) -> Self {
        Self { home: Some(home.to_owned()), key: OnceLock::new() }
    }

    fn key(&self) -> Result<&SigningKey, ServiceError> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let home = self.home.as_ref();
        let home = home.ok_or_else(|| ServiceError::Unavailable("the host has no home to keep a key in".into()))?;
        let key = HostKey::of(home).map_err(|error| ServiceError::Failed(format!("the host's key: {error}")))?;
        Ok(self.key.get_or_init(|| SigningKey::from_bytes(&key.derived(PURPOSE))))
    }

    /// Signs what a feature (its whole id) states.
    ///
    /// # Errors
    /// - `Unavailable`: the host has no home.
    /// - `Failed`: its key can't be read or made.
    pub fn sign(&self, feature: &str, statement: &[u8]) -> Result<Signature, ServiceError> {
        let key = self.key()?;
        let value = key.sign(&signed(feature, statement)).to_bytes().to_vec();
        Ok(Signature { key: key.verifying_key().to_bytes().to_vec(), value })
    }

    /// What a signature of what a feature states is worth.
    pub fn validity(&self, feature: &str, statement: &[u8], signature: &Signature) -> Validity {
        let parts = (<[u8; 32]>::try_from(&*signature.key), <[u8; 64]>::try_from(&*signature.value));
        let (Ok(key), Ok(value)) = parts else { return Validity::Invalid };
        let value = ed25519_dalek::Signature::from_bytes(&value);
        let is_signed = |key: VerifyingKey| key.verify_strict(&signed(feature, statement), &value);
        if VerifyingKey::from_bytes(&key).and_then(is_signed).is_err() {
            return Validity::Invalid;
        }
        let is_own = self.key().is_ok_and(|own| own.verifying_key().to_bytes() == key);
        if is_own { Validity::ThisHost } else { Validity::AnotherHost }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Home(PathBuf);

    impl Home {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("conductor-signing-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Home {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_signature_is_of_one_statement_by_one_feature_of_one_home() {
        let (home, other) = (Home::new("one"), Home::new("other"));
        let signature = Signer::of(&home.0).sign("builtin:council", b"it passes").unwrap();
        // The next process of the same home has the same key.
        let signer = Signer::of(&home.0);
        assert_eq!(signer.validity("builtin:council", b"it passes", &signature), Validity::ThisHost);
        assert_eq!(signer.validity("builtin:council", b"it fails", &signature), Validity::Invalid);
        assert_eq!(signer.validity("project:council", b"it passes", &signature), Validity::Invalid);
        let other = Signer::of(&other.0);
        assert_eq!(other.validity("builtin:council", b"it passes", &signature), Validity::AnotherHost);
        let forged = Signature { key: other.sign("builtin:council", b"").unwrap().key, ..signature.clone() };
        assert_eq!(signer.validity("builtin:council", b"it passes", &forged), Validity::Invalid);
        for at in 0..64 {
            let mut altered = signature.clone();
            altered.value[at] ^= 1;
            assert_eq!(signer.validity("builtin:council", b"it passes", &altered), Validity::Invalid);
        }
        for (key, value) in [(0, 64), (32, 0), (31, 64), (32, 65)] {
            let odd = Signature { key: vec![1; key], value: vec![1; value] };
            assert_eq!(signer.validity("builtin:council", b"it passes", &odd), Validity::Invalid);
        }
    }

    #[test]
    fn without_a_home_nothing_is_signed_and_others_are_verified() {
        let home = Home::new("verified");
        let signature = Signer::of(&home.0).sign("builtin:council", b"x").unwrap();
        let signer = Signer::default();
        assert!(matches!(signer.sign("builtin:council", b"x"), Err(ServiceError::Unavailable(_))));
        assert_eq!(signer.validity("builtin:council", b"x", &signature), Validity::AnotherHost);
    }
}
