//! Changing the secrets of a home: the audit log has the intent before the change, and the outcome after it.
//!
//! Values go in and never come out; the audit log has ids and places only.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Host;
use conductor_audit::caller::Caller;
use conductor_audit::{Audit, AuditError, Chain, Entry, Kind, Outcome};
use conductor_services::keychain::Keychain;
use conductor_services::secret_store::{Place, SecretStore, StoreError};

/// Why a secret was not changed. No text holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretChangeError {
    /// The host keeps nothing.
    #[error("this host has no home, so it keeps no secrets")]
    NoHome,
    /// Neither a value nor a variable was named, or both.
    #[error("say either `value`, perhaps with `in`, or `env`")]
    Which,
    /// It has to be on record before it is done, and can't be.
    #[error(transparent)]
    Unrecorded(#[from] AuditError),
    /// It is not valid, or the keychain or the list did not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The secrets of one home, changed for somebody.
#[derive(Debug, Clone)]
pub struct SecretHome {
    home: PathBuf,
    who: Caller,
    audit: Audit,
}

impl SecretHome {
    /// The secrets of `home`, which has to exist to be changed, for `who`, as the audit names them.
    pub fn new(home: &Path, who: Caller) -> Self {
        Self { home: home.to_owned(), who, audit: Audit::none() }
    }

    fn store(&self) -> SecretStore {
        SecretStore::at(&self.home)
    }

    /// The ids, and where the values are.
    ///
    /// # Errors
    /// [`SecretChangeError::Store`].
    pub fn list(&self) -> Result<BTreeMap<String, Place>, SecretChangeError> {
        Ok(self.store().list()?)
    }

    /// Keeps a value in a keychain: in the one of this system, if none is named. Returns where.
    ///
    /// # Errors
    /// See [`SecretChangeError`].
    pub fn set(&self, id: &str, value: &str, keychain: Option<Keychain>) -> Result<Place, SecretChangeError> {
        let keychain = keychain.unwrap_or_else(Keychain::of_this_system);
        // Should a tool be called with it, the record does not show it.
        self.audit.learn_secret(value);
        let entry = Entry::new(Kind::Secret, "set", &self.who, id).with("in", keychain.to_string());
        self.on_record(entry, || self.store().set(id, value, keychain))?;
        Ok(Place::Keychain { r#in: keychain })
    }

    /// Has a value be read from a variable of the host's environment each time, and keeps none. Returns where.
    ///
    /// # Errors
    /// See [`SecretChangeError`].
    pub fn refer(&self, id: &str, variable: &str) -> Result<Place, SecretChangeError> {
        let entry = Entry::new(Kind::Secret, "set", &self.who, id).with("in", "the environment");
        self.on_record(entry.with("variable", variable), || self.store().refer(id, variable))?;
        Ok(Place::Environment { env: variable.to_owned() })
    }

    /// Forgets a secret.
    ///
    /// # Errors
    /// See [`SecretChangeError`].
    pub fn remove(&self, id: &str) -> Result<(), SecretChangeError> {
        self.on_record(Entry::new(Kind::Secret, "remove", &self.who, id), || self.store().remove(id))
    }

    fn on_record(&self, entry: Entry, work: impl FnOnce() -> Result<(), StoreError>) -> Result<(), SecretChangeError> {
        let chain = Chain::at(&self.home);
        chain.append(&[entry.clone().outcome(Outcome::Begun)])?;
        let result = work();
        let came = match &result {
            Ok(()) => entry,
            Err(error) => entry.failed(error),
        };
        if let Err(error) = chain.append(&[came]) {
            tracing::warn!("{error}");
        }
        Ok(result?)
    }
}

impl Host {
    /// The secrets of this host's home, changed for `who`.
    ///
    /// # Errors
    /// [`SecretChangeError::NoHome`].
    pub fn secrets(&self, who: &Caller) -> Result<SecretHome, SecretChangeError> {
        let home = self.home.as_deref().ok_or(SecretChangeError::NoHome)?;
        Ok(SecretHome { audit: self.audit.clone(), ..SecretHome::new(home, who.clone()) })
    }
}
