//! Identity: who a feature is, and whose data it works with.
//!
//! Rights and data hang on the whole id, and for a package from elsewhere on its bytes or its signer as well.
//! Anybody can write any id but a `builtin:` one into a descriptor, so neither the id nor its last word alone
//! gives anything.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A source-qualified identity: `builtin:osc-output`, `project:lights`, `plugin:PUBLISHER:name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct FeatureId(Arc<str>);

/// The longest part of an id, in bytes. Three of them, and what is put around them, fit into a file name.
const MAX_PART: usize = 64;

impl FeatureId {
    /// The id of the feature that comes with the host under this name; `None` if it can't be a name.
    pub fn builtin(name: &str) -> Option<Self> {
        Self::try_from(format!("{BUILTIN}:{name}")).ok()
    }

    /// The whole id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part after the last colon: the name that configuration and listings use. It gives no rights.
    pub fn name(&self) -> &str {
        self.0.rsplit(':').next().unwrap_or(&self.0)
    }

    /// The part before the first colon: `builtin`, `project` or `plugin`.
    pub fn source(&self) -> &str {
        self.0.split(':').next().unwrap_or(&self.0)
    }

    /// Whether it is the id of a feature that comes with the host.
    pub fn is_builtin(&self) -> bool {
        self.source() == BUILTIN
    }

    /// The id as part of a file name: two ids never have the same one. `_` is in no id.
    pub fn file_stem(&self) -> String {
        self.0.replace(':', "_")
    }
}

/// Names the data of one feature: its id, and for a package from elsewhere its owner as well, so that a package
/// that calls itself alike does not come into another's data.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DataKey(String);

/// Digits of an owner that are part of a key: 128 bits.
const OWNER_DIGITS: usize = 32;

impl DataKey {
    /// The key of what `id` keeps, where it belongs to `owner`: the hex digits of a signer's key or of a digest.
    /// Two pairs never have the same key.
    pub fn new(id: &FeatureId, owner: Option<&str>) -> Self {
        let owner = owner.map(|owner| format!("_{}", owner.get(..OWNER_DIGITS).unwrap_or(owner)));
        Self(format!("{}{}", id.file_stem(), owner.unwrap_or_default()))
    }

    /// As a file is called, without its extension: of a-z, 0-9, `-` and `_`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const BUILTIN: &str = "builtin";

/// A part of an id: 1 to 64 of a-z, 0-9 and `-`, a letter or digit first, so that no id looks like an option
/// of a command.
fn is_part(part: &str) -> bool {
    part.len() <= MAX_PART
        && part.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

impl TryFrom<String> for FeatureId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let shape = match parts.as_slice() {
            [BUILTIN | "project", name] => is_part(name),
            ["plugin", publisher, name] => is_part(publisher) && is_part(name),
            _ => false,
        };
        if !shape {
            let shown: String = text.chars().take(2 * MAX_PART).collect();
            return Err(format!(
                "{shown:?} is no feature id; write builtin:NAME, project:NAME or plugin:PUBLISHER:NAME, each part 1 to \
                 {MAX_PART} of a-z, 0-9 and -, a letter or digit first"
            ));
        }
        Ok(Self(text.into()))
    }
}

impl From<FeatureId> for String {
    fn from(id: FeatureId) -> Self {
        id.0.as_ref().to_owned()
    }
}

impl fmt::Display for FeatureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn id(text: &str) -> Result<FeatureId, String> {
        FeatureId::try_from(text.to_owned())
    }

    #[test]
    fn ids_that_look_like_options_or_are_no_words_are_rejected() {
        for text in [
            "project:--json",
            "project:-",
            "project:-x",
            "plugin:--:x",
            "plugin:aa:-x",
            "project:",
            "project:a b",
            "project:A",
            "project:a_b",
            "project:\u{430}",
            "lamp",
            "other:lamp",
            "project:a:b",
            "plugin:a",
            "",
        ] {
            assert!(id(text).unwrap_err().contains("no feature id"), "{text}");
        }
        assert!(id(&format!("project:{}", "x".repeat(65))).is_err());
        let longest = format!("plugin:{0}:{0}", "x".repeat(64));
        assert!(id(&longest).unwrap().file_stem().len() < 160);
    }

    #[test]
    fn data_is_kept_by_id_and_owner() {
        let key = |text: &str, owner| DataKey::new(&id(text).unwrap(), owner).as_str().to_owned();
        let (ann, bob) = ("a".repeat(64), "b".repeat(64));
        let keys = [
            key("builtin:notes", None),
            key("project:notes", None),
            key("project:notes", Some(&ann)),
            key("project:notes", Some(&bob)),
            key("plugin:aaaa:notes", Some(&ann)),
            key("plugin:bbbb:notes", Some(&ann)),
            key("plugin:project:notes", None),
        ];
        let distinct: std::collections::BTreeSet<&String> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len(), "{keys:?}");
        assert_eq!(keys[2], format!("project_notes_{}", "a".repeat(32)));
    }

    proptest::proptest! {
        // FEA-2: what is kept under an id is kept under no other.
        #[test]
        fn two_ids_have_two_file_stems(one in "(builtin|project|plugin:[a-z0-9][a-z0-9-]{0,4}):[a-z0-9][a-z0-9-]{0,4}",
                                       other in "(builtin|project|plugin:[a-z0-9][a-z0-9-]{0,4}):[a-z0-9][a-z0-9-]{0,4}") {
            let (one, other) = (id(&one).unwrap(), id(&other).unwrap());
            proptest::prop_assert_eq!(one == other, one.file_stem() == other.file_stem());
        }
    }
}
