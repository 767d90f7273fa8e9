//! No keychain: this build has no library that asks one.

use super::{Keychain, KeychainError};

const REASON: &str = "this conductor was built without the feature `keychain`; build it with `--features keychain`";

pub(super) fn set(keychain: Keychain, _: &str, _: &str) -> Result<(), KeychainError> {
    Err(unusable(keychain))
}

pub(super) fn get(keychain: Keychain, _: &str) -> Result<String, KeychainError> {
    Err(unusable(keychain))
}

pub(super) fn remove(keychain: Keychain, _: &str) -> Result<(), KeychainError> {
    Err(unusable(keychain))
}

fn unusable(keychain: Keychain) -> KeychainError {
    KeychainError::Unusable { keychain, why: REASON.to_owned() }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn an_error_says_which_feature_is_missing_and_what_does_without() {
        for keychain in Keychain::value_variants() {
            let errors =
                [set(*keychain, "key", "hunter2hunter2"), get(*keychain, "key").map(drop), remove(*keychain, "key")];
            for error in errors.map(|outcome| outcome.unwrap_err().to_string()) {
                assert!(error.contains("--features keychain") && error.contains("--env VARIABLE"), "{error}");
            }
        }
    }
}
