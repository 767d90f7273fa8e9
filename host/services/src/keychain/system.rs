//! The entries that we keep in keychains, through their stores.

use std::sync::Arc;

use keyring_core::{CredentialStore, Entry, Error};

#[cfg(all(unix, not(target_os = "macos")))]
use super::secret_service;
use super::{Keychain, KeychainError};

/// What all our entries are filed under.
const SERVICE: &str = "conductor";

pub(super) fn set(keychain: Keychain, id: &str, value: &str) -> Result<(), KeychainError> {
    let value = value.to_owned();
    with(keychain, id, move |entry| entry.set_password(&value)).map_err(|error| explained(keychain, &error))
}

pub(super) fn get(keychain: Keychain, id: &str) -> Result<String, KeychainError> {
    with(keychain, id, |entry| entry.get_password()).map_err(|error| explained(keychain, &error))
}

pub(super) fn remove(keychain: Keychain, id: &str) -> Result<(), KeychainError> {
    match with(keychain, id, |entry| entry.delete_credential()) {
        Ok(()) | Err(Error::NoEntry) => Ok(()),
        Err(error) => Err(explained(keychain, &error)),
    }
}

/// Does something with the entry.
fn with<T: Send + 'static>(
    keychain: Keychain,
    id: &str,
    work: impl FnOnce(&Entry) -> keyring_core::Result<T> + Send + 'static,
) -> keyring_core::Result<T> {
    #[cfg(all(unix, not(target_os = "macos")))]
    if keychain == Keychain::SecretService {
        let id = id.to_owned();
        return secret_service::in_turn(move || work(&entry(keychain, &id)?));
    }
    work(&entry(keychain, id)?)
}

fn entry(keychain: Keychain, id: &str) -> keyring_core::Result<Entry> {
    let store: Arc<CredentialStore> = match keychain {
        // A connection for each time: a keyring that was started anew since the last one is found.
        #[cfg(all(unix, not(target_os = "macos")))]
        Keychain::SecretService => zbus_secret_service_keyring_store::Store::new()?,
        #[cfg(target_os = "linux")]
        Keychain::Kernel => linux_keyutils_keyring_store::Store::new()?,
        #[cfg(target_os = "macos")]
        Keychain::Keychain => apple_native_keyring_store::keychain::Store::new()?,
        #[cfg(windows)]
        Keychain::CredentialManager => windows_native_keyring_store::Store::new()?,
    };
    store.build(SERVICE, id, None)
}

/// The error as text. Those that carry bytes of the entry are not shown.
fn explained(keychain: Keychain, error: &Error) -> KeychainError {
    let why = match error {
        Error::NoEntry => return KeychainError::Missing(keychain),
        Error::PlatformFailure(why) | Error::NoStorageAccess(why) => why.to_string(),
        Error::BadEncoding(_) | Error::BadDataFormat(..) => "what is kept there is no text".into(),
        Error::TooLong(what, most) => format!("{what} may have {most} characters"),
        Error::Ambiguous(_) => "several entries have this name".into(),
        _ => "it gave no reason".into(),
    };
    KeychainError::Unusable { keychain, why }
}
