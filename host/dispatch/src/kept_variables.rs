//! Variables that are kept across a restart: the file that they are in.
//!
//! It is written when the host ends, and whenever variables are declared anew. What cannot be read or is not as it was
//! declared is left out: a show begins with `initial` rather than not at all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use conductor_stdx::{atomic_file, plain_file};
use conductor_variables::{Key, Variables};

/// The name of the file in the host's home.
const FILE: &str = "variables.json";
/// Bytes that it may have at most: all variables that there may be, for every owner.
const MAX_BYTES: u64 = 8 << 20;

/// Values by the name of their variable and the number of their owner.
type Values = BTreeMap<String, Vec<(u64, f64)>>;

/// The file of a home.
#[derive(Debug, Clone)]
pub(crate) struct KeptVariables(PathBuf);

impl KeptVariables {
    /// The one in this home.
    pub(crate) fn of(home: &Path) -> Self {
        Self(home.join(FILE))
    }

    /// Gives variables the values that they had.
    pub(crate) fn load(&self, variables: &Variables) {
        let Ok(text) = plain_file::read_text(&self.0, MAX_BYTES) else { return };
        let values: Values = serde_json::from_str(&text).unwrap_or_else(|error| {
            tracing::warn!("variables begin anew: {} is not readable: {error}", self.0.display());
            Values::new()
        });
        for variable in variables.iter().filter(|variable| variable.declaration().keep) {
            for (owner, value) in values.get(&variable.declaration().name).into_iter().flatten() {
                variable.restore(Key::from_number(*owner), *value);
            }
        }
    }

    /// Writes those down that are to be kept.
    pub(crate) fn save(&self, variables: &Variables) {
        let kept = variables.iter().filter(|variable| variable.declaration().keep);
        let values: Values = kept
            .map(|variable| {
                let values = variable.values().map(|(owner, value)| (owner.number(), value)).collect();
                (variable.declaration().name.clone(), values)
            })
            .collect();
        if values.is_empty() {
            return;
        }
        let text = serde_json::to_vec(&values).unwrap_or_default();
        if let Err(error) = atomic_file::replace(&self.0, &text) {
            tracing::warn!("variables cannot be kept in {}: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use conductor_variables::{Change, Declaration, Kind, Scope};

    fn declared() -> Variables {
        let one = |name: &str, scope, keep| Declaration {
            name: name.into(),
            kind: Kind::Number { limits: None },
            scope,
            initial: 1.0,
            keep,
        };
        let all = [one("kept", Scope::Device, true), one("not", Scope::Global, false)];
        Variables::declare(all, &Variables::default())
    }

    #[test]
    fn what_is_kept_comes_back_for_each_owner() {
        let home = std::env::temp_dir().join(format!("conductor-kept-variables-{}", std::process::id()));
        std::fs::create_dir_all(&home).unwrap();
        let (file, before) = (KeptVariables::of(&home), declared());
        before.find("kept").unwrap().change(Key::of("pads"), &Change::Set, 7.5, 1);
        before.find("not").unwrap().change(Key::EVERYONE, &Change::Set, 7.5, 1);
        file.save(&before);
        let after = declared();
        file.load(&after);
        let get = |name: &str, device: &str| after.find(name).unwrap().get(Key::of(device));
        assert_eq!((get("kept", "pads"), get("kept", "keys"), get("not", "pads")), (7.5, 1.0, 1.0));

        std::fs::write(home.join(FILE), "{\"kept\": 3").unwrap();
        let anew = declared();
        file.load(&anew);
        assert_eq!(anew.find("kept").unwrap().get(Key::of("pads")), 1.0, "it is cut in the middle");
        std::fs::remove_dir_all(home).unwrap();
    }
}
