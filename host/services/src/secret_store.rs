//! The secret store: which secrets there are, and where each is kept. Values are never in a file of the home.
//!
//! `secrets.toml` in the home says for each id whether its value is in a keychain of the system or in an
//! environment variable. An id that is not in there, and one whose value should be another for once, is looked
//! for in `CONDUCTOR_SECRET_ID`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::secrets::{EnvironmentSecrets, Secret, SecretError, Secrets, from_environment};
use crate::keychain::{Keychain, KeychainError};
use conductor_stdx::atomic_file::replace;
use conductor_stdx::plain_file;

/// The file, in the home.
const FILE: &str = "secrets.toml";

/// Where the value of a secret is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum Place {
    /// In a keychain.
    Keychain {
        /// Which.
        r#in: Keychain,
    },
    /// In a variable of the environment that the host is started in.
    Environment {
        /// Its name.
        env: String,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keychain { r#in } => write!(f, "the {in}"),
            Self::Environment { env } => write!(f, "the environment variable {env}"),
        }
    }
}

/// Why a secret was not kept or removed. No text holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The id is invalid.
    #[error("{0:?} is no id of a secret; write a letter, then a-z, 0-9 and -, at most 64: openai-key")]
    Id(String),
    /// The name of a variable is invalid.
    #[error("{0:?} is no name of an environment variable; write letters, digits and _: OPENAI_API_KEY")]
    Variable(String),
    /// The value can't be used.
    #[error(transparent)]
    Value(#[from] SecretError),
    /// The keychain did not do it.
    #[error(transparent)]
    Keychain(#[from] KeychainError),
    /// There is no secret with this id.
    #[error("there is no secret {0:?}")]
    Unknown(String),
    /// The list could not be read or written.
    #[error("{}: {error}", path.display())]
    List {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// The secrets of one home.
#[derive(Debug, Clone)]
pub struct SecretStore {
    file: PathBuf,
}

impl SecretStore {
    /// The secrets of this home.
    pub fn at(home: &Path) -> Self {
        Self { file: home.join(FILE) }
    }

    /// The ids, and where their values are.
    ///
    /// # Errors
    /// [`StoreError::List`].
    pub fn list(&self) -> Result<BTreeMap<String, Place>, StoreError> {
        let text = match plain_file::read_text(&self.file, plain_file::MAX_TEXT) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(self.failed(error)),
        };
        toml::from_str(&text).map_err(|error| self.failed(io::Error::other(error.message().to_owned())))
    }

    /// Keeps a value in a keychain, and there only.
    ///
    /// # Errors
    /// See [`StoreError`]; nothing is changed then.
    pub fn set(&self, id: &str, value: &str, keychain: Keychain) -> Result<(), StoreError> {
        checked(id)?;
        Secret::new(id, value.to_owned())?;
        let list = self.list()?;
        keychain.set(id, value)?;
        self.put(list, id, Place::Keychain { r#in: keychain })
    }

    /// Has a value be read from an environment variable, each time that it is needed, and keeps none.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn refer(&self, id: &str, variable: &str) -> Result<(), StoreError> {
        checked(id)?;
        let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if variable.is_empty() || !variable.chars().all(letters) || variable.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(StoreError::Variable(variable.to_owned()));
        }
        self.put(self.list()?, id, Place::Environment { env: variable.to_owned() })
    }

    /// Forgets a secret, in the keychain, too.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn remove(&self, id: &str) -> Result<(), StoreError> {
        let mut list = self.list()?;
        match list.remove(id) {
            None => return Err(StoreError::Unknown(id.to_owned())),
            Some(Place::Keychain { r#in }) => r#in.remove(id)?,
            Some(Place::Environment { .. }) => {}
        }
        self.write(&list)
    }

    fn put(&self, mut list: BTreeMap<String, Place>, id: &str, place: Place) -> Result<(), StoreError> {
        let before = list.insert(id.to_owned(), place.clone()).filter(|before| *before != place);
        self.write(&list)?;
        // The old value would be left behind in its former place.
        if let Some(Place::Keychain { r#in }) = before
            && let Err(error) = r#in.remove(id)
        {
            tracing::warn!("the value of {id} from before is still there: {error}");
        }
        Ok(())
    }

    fn write(&self, list: &BTreeMap<String, Place>) -> Result<(), StoreError> {
        let text = toml::to_string(list).map_err(|error| self.failed(io::Error::other(error)))?;
        replace(&self.file, text.as_bytes()).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> StoreError {
        StoreError::List { path: self.file.clone(), error }
    }
}

fn checked(id: &str) -> Result<(), StoreError> {
    let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if id.starts_with(|c: char| c.is_ascii_lowercase()) && id.bytes().all(letters) && id.len() <= 64 {
        Ok(())
    } else {
        Err(StoreError::Id(id.to_owned()))
    }
}

impl Secrets for SecretStore {
    fn get(&self, id: &str) -> Result<Secret, SecretError> {
        let missing = |remedy: String| SecretError::Missing { id: id.to_owned(), remedy };
        let told = EnvironmentSecrets.get(id);
        if !matches!(told, Err(SecretError::Missing { .. })) {
            return told;
        }
        let list = self.list().map_err(|error| missing(error.to_string()))?;
        match list.get(id) {
            None => Err(missing(format!("set it with `conductor secret set {id}`"))),
            Some(Place::Environment { env }) => from_environment(id, env, std::env::var_os(env)),
            Some(Place::Keychain { r#in }) => match r#in.get(id) {
                Ok(value) => Secret::new(id, value),
                Err(KeychainError::Missing(keychain)) => {
                    Err(missing(format!("the {keychain} has lost it; set it again with `conductor secret set {id}`")))
                }
                Err(error) => Err(missing(error.to_string())),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::ValueEnum as _;

    use super::*;

    fn home(name: &str) -> PathBuf {
        let home = std::env::temp_dir().join(format!("conductor-secrets-{}-{name}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        home
    }

    #[test]
    fn a_reference_to_the_environment_is_kept_and_followed() {
        let home = home("refer");
        let store = SecretStore::at(&home);
        store.refer("path-key", "PATH").unwrap();
        assert_eq!(store.list().unwrap()["path-key"], Place::Environment { env: "PATH".into() });
        let kept = fs::read_to_string(home.join(FILE)).unwrap();
        assert_eq!(kept, "[path-key]\nenv = \"PATH\"\n");
        assert!(store.get("path-key").is_ok());
        store.refer("other-key", "NOBODY_HAS_SET_THIS").unwrap();
        let error = store.get("other-key").unwrap_err().to_string();
        assert!(error.contains("NOBODY_HAS_SET_THIS"), "{error}");
        store.remove("path-key").unwrap();
        assert!(store.get("path-key").unwrap_err().to_string().contains("conductor secret set path-key"));
        assert!(matches!(store.remove("path-key"), Err(StoreError::Unknown(_))));
        fs::remove_dir_all(home).unwrap();
    }

    /// LLM-6: a value goes into the system's keychain, and comes back from there.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_value_is_kept_in_the_kernels_keyring_and_in_no_file() {
        let home = home("kernel");
        let store = SecretStore::at(&home);
        let id = format!("test-{}", std::process::id());
        if let Err(StoreError::Keychain(error)) = store.set(&id, "hunter2-hunter2", Keychain::Kernel) {
            return eprintln!("SKIPPED: {error}");
        }
        assert_eq!(store.get(&id).unwrap(), Secret::new(&id, "hunter2-hunter2".into()).unwrap());
        let kept = fs::read_to_string(home.join(FILE)).unwrap();
        assert_eq!(kept, format!("[{id}]\nin = \"kernel\"\n"));
        store.remove(&id).unwrap();
        assert!(matches!(Keychain::Kernel.get(&id), Err(KeychainError::Missing(_))));
        fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn what_is_no_id_no_variable_and_no_value_is_refused() {
        let home = home("refused");
        let store = SecretStore::at(&home);
        for id in ["", "Key", "key/../x", "1key", "käse", &"k".repeat(65)] {
            assert!(matches!(store.refer(id, "PATH"), Err(StoreError::Id(_))), "{id}");
        }
        for variable in ["", "A B", "1A", "A=B"] {
            assert!(matches!(store.refer("key", variable), Err(StoreError::Variable(_))), "{variable}");
        }
        let error = store.set("key", "short", Keychain::value_variants()[0]).unwrap_err().to_string();
        assert!(error.contains("too short") && !error.contains("short\""), "{error}");
        assert!(store.list().unwrap().is_empty());
        fs::write(home.join(FILE), "[key]\nvalue = 'hunter2hunter2'").unwrap();
        let error = store.get("key").unwrap_err().to_string();
        assert!(error.contains(FILE) && !error.contains("hunter2"), "a file that is wrong is not quoted: {error}");
        fs::remove_dir_all(home).unwrap();
    }
}
