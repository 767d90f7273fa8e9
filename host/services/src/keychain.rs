//! The system's keychains: macOS Keychain, Windows Credential Manager, Secret Service, the kernel's keyring.

use std::fmt;
use std::sync::Arc;

use keyring_core::{CredentialStore, Entry, Error};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(all(unix, not(target_os = "macos")))]
use crate::secret_service;

/// What all our entries are filed under.
const SERVICE: &str = "conductor";

/// The id of no secret: a lookup of it shows whether a keychain answers.
const PROBE_ID: &str = "conductor-doctor";

/// A place that the system keeps secrets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Keychain {
    /// The desktop's keyring (GNOME's, KDE's, KeePassXC's)
    #[cfg(all(unix, not(target_os = "macos")))]
    SecretService,
    /// The kernel's keyring: until the next start of the machine
    #[cfg(target_os = "linux")]
    Kernel,
    /// The login keychain
    #[cfg(target_os = "macos")]
    Keychain,
    /// The credential manager
    #[cfg(windows)]
    CredentialManager,
}

/// Why a keychain did not do it. No text holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum KeychainError {
    /// Nothing is kept there under this id.
    #[error("the {0} has no such secret")]
    Missing(Keychain),
    /// It is locked, not running, or failed.
    #[error("the {keychain} can't be used: {why}; {}", keychain.instead())]
    Unusable {
        /// Which.
        keychain: Keychain,
        /// The system's reason.
        why: String,
    },
}

impl Keychain {
    /// The one to use unless told otherwise: the desktop's where there is one that answers. Asks it.
    pub fn of_this_system() -> Self {
        #[cfg(target_os = "linux")]
        let it = Self::SecretService.answers().map_or(Self::Kernel, |()| Self::SecretService);
        #[cfg(all(unix, not(any(target_os = "linux", target_os = "macos"))))]
        let it = Self::SecretService;
        #[cfg(target_os = "macos")]
        let it = Self::Keychain;
        #[cfg(windows)]
        let it = Self::CredentialManager;
        it
    }

    /// Whether it can be asked. It may be locked all the same.
    ///
    /// # Errors
    /// [`KeychainError::Unusable`].
    pub fn answers(self) -> Result<(), KeychainError> {
        match self.get(PROBE_ID) {
            Ok(_) | Err(KeychainError::Missing(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Keeps a value.
    ///
    /// # Errors
    /// See [`KeychainError`].
    pub fn set(self, id: &str, value: &str) -> Result<(), KeychainError> {
        let value = value.to_owned();
        self.with(id, move |entry| entry.set_password(&value)).map_err(|error| self.explained(&error))
    }

    /// The value.
    ///
    /// # Errors
    /// See [`KeychainError`].
    pub fn get(self, id: &str) -> Result<String, KeychainError> {
        self.with(id, |entry| entry.get_password()).map_err(|error| self.explained(&error))
    }

    /// Forgets a value. That there is none is fine.
    ///
    /// # Errors
    /// See [`KeychainError`].
    pub fn remove(self, id: &str) -> Result<(), KeychainError> {
        match self.with(id, |entry| entry.delete_credential()) {
            Ok(()) | Err(Error::NoEntry) => Ok(()),
            Err(error) => Err(self.explained(&error)),
        }
    }

    /// Does something with the entry.
    fn with<T: Send + 'static>(
        self,
        id: &str,
        work: impl FnOnce(&Entry) -> keyring_core::Result<T> + Send + 'static,
    ) -> keyring_core::Result<T> {
        #[cfg(all(unix, not(target_os = "macos")))]
        if self == Self::SecretService {
            let id = id.to_owned();
            return secret_service::in_turn(move || work(&self.entry(&id)?));
        }
        work(&self.entry(id)?)
    }

    fn entry(self, id: &str) -> keyring_core::Result<Entry> {
        let store: Arc<CredentialStore> = match self {
            // A connection for each time: a keyring that was started anew since the last one is found.
            #[cfg(all(unix, not(target_os = "macos")))]
            Self::SecretService => zbus_secret_service_keyring_store::Store::new()?,
            #[cfg(target_os = "linux")]
            Self::Kernel => linux_keyutils_keyring_store::Store::new()?,
            #[cfg(target_os = "macos")]
            Self::Keychain => apple_native_keyring_store::keychain::Store::new()?,
            #[cfg(windows)]
            Self::CredentialManager => windows_native_keyring_store::Store::new()?,
        };
        store.build(SERVICE, id, None)
    }

    /// The error as text. Those that carry bytes of the entry are not shown.
    fn explained(self, error: &Error) -> KeychainError {
        let why = match error {
            Error::NoEntry => return KeychainError::Missing(self),
            Error::PlatformFailure(why) | Error::NoStorageAccess(why) => why.to_string(),
            Error::BadEncoding(_) | Error::BadDataFormat(..) => "what is kept there is no text".into(),
            Error::TooLong(what, most) => format!("{what} may have {most} characters"),
            Error::Ambiguous(_) => "several entries have this name".into(),
            _ => "it gave no reason".into(),
        };
        KeychainError::Unusable { keychain: self, why }
    }

    /// What does without it.
    fn instead(self) -> &'static str {
        #[cfg(target_os = "linux")]
        if self == Self::SecretService {
            return "unlock it, or do without: `--in kernel`, `--env VARIABLE`";
        }
        "`--env VARIABLE` does without"
    }
}

impl fmt::Display for Keychain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            #[cfg(all(unix, not(target_os = "macos")))]
            Self::SecretService => "desktop's keyring",
            #[cfg(target_os = "linux")]
            Self::Kernel => "kernel's keyring",
            #[cfg(target_os = "macos")]
            Self::Keychain => "login keychain",
            #[cfg(windows)]
            Self::CredentialManager => "credential manager",
        })
    }
}
