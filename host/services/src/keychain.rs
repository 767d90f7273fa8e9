//! The system's keychains: macOS Keychain, Windows Credential Manager, Secret Service, the kernel's keyring.
//!
//! `system` asks them. `absent` takes its place in a build without the feature `keychain`, in which none can be used.

#[cfg(any(test, not(feature = "keychain")))]
mod absent;
#[cfg(all(feature = "keychain", unix, not(target_os = "macos")))]
mod secret_service;
#[cfg(feature = "keychain")]
mod system;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(not(feature = "keychain"))]
use self::absent as entries;
#[cfg(feature = "keychain")]
use self::system as entries;

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
    /// It is locked, not running, not in this build, or failed.
    #[error("the {keychain} can't be used: {why}; {}", keychain.instead())]
    Unusable {
        /// Which.
        keychain: Keychain,
        /// The system's reason.
        why: String,
    },
}

impl Keychain {
    /// The default: the desktop's keychain if there is one that answers. Asks it.
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
        entries::set(self, id, value)
    }

    /// The value.
    ///
    /// # Errors
    /// See [`KeychainError`].
    pub fn get(self, id: &str) -> Result<String, KeychainError> {
        entries::get(self, id)
    }

    /// Forgets a value. It is no error if there is none.
    ///
    /// # Errors
    /// See [`KeychainError`].
    pub fn remove(self, id: &str) -> Result<(), KeychainError> {
        entries::remove(self, id)
    }

    /// What does without it.
    fn instead(self) -> &'static str {
        #[cfg(all(feature = "keychain", target_os = "linux"))]
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
