//! The descriptor: what a feature says about itself, as its author wrote it in `feature.toml`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::capability::CapabilityRequest;

/// The version of the contract that this host serves.
pub const CONTRACT: &str = "0.1";

/// Name of the custom section that carries the descriptor.
pub const SECTION: &str = "conductor:feature";

/// The largest descriptor that is read, in bytes.
pub const MAX_DESCRIPTOR: usize = 64 * 1024;

/// A source-qualified identity: `builtin:osc-output`, `project:lights`, `plugin:<digest>:name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FeatureId(Arc<str>);

impl FeatureId {
    /// The whole id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part after the last colon: the name that configuration and listings use.
    pub fn name(&self) -> &str {
        self.0.rsplit(':').next().unwrap_or(&self.0)
    }

    /// The part before the first colon: `builtin`, `project` or `plugin`.
    pub fn source(&self) -> &str {
        self.0.split(':').next().unwrap_or(&self.0)
    }
}

impl TryFrom<String> for FeatureId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let word = |part: &str| {
            !part.is_empty()
                && part.len() <= 128
                && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        let shape = match parts.as_slice() {
            ["builtin" | "project", name] => word(name),
            ["plugin", digest, name] => word(digest) && word(name),
            _ => false,
        };
        if !shape {
            return Err(format!(
                "\"{text}\" is no feature id; write builtin:NAME, project:NAME or plugin:DIGEST:NAME, with names of a-z, 0-9 and -"
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

/// An action that the feature contributes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionDeclaration {
    /// The name that mappings write under `type`: a letter, then letters and digits.
    pub name: String,
    /// What it does, in a sentence.
    pub summary: String,
}

/// What a feature says about itself. Nothing in it is believed: [`super::check`] compares it with
/// the component's type, and grants cut down what it asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Descriptor {
    /// Who it is.
    pub id: FeatureId,
    /// What listings call it.
    pub name: String,
    /// The feature's own version.
    pub version: String,
    /// SPDX expression.
    #[serde(default)]
    pub license: Option<String>,
    /// What it is for, in a sentence.
    #[serde(default)]
    pub summary: Option<String>,
    /// The version of the contract that it was written for, such as `0.1`.
    pub contract: String,
    /// What it asks to use.
    #[serde(default)]
    pub capabilities: Vec<CapabilityRequest>,
    /// The actions that it contributes.
    #[serde(default)]
    pub actions: Vec<ActionDeclaration>,
}

/// Why a descriptor was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorError {
    /// It is not UTF-8.
    #[error("the descriptor is not UTF-8 text")]
    NotText,
    /// It is longer than [`MAX_DESCRIPTOR`].
    #[error("the descriptor has {0} bytes; at most {MAX_DESCRIPTOR} are read")]
    TooLong(usize),
    /// It is not TOML, or not of a descriptor's shape.
    #[error("the descriptor is wrong: {0}")]
    Invalid(String),
    /// It was written for another version of the contract.
    #[error("the feature was written for contract {0}; this host serves {CONTRACT}")]
    Contract(String),
}

impl Descriptor {
    /// Reads the text of a `feature.toml`.
    ///
    /// # Errors
    /// See [`DescriptorError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, DescriptorError> {
        if bytes.len() > MAX_DESCRIPTOR {
            return Err(DescriptorError::TooLong(bytes.len()));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| DescriptorError::NotText)?;
        let descriptor: Self = toml::from_str(text).map_err(|error| DescriptorError::Invalid(error.to_string()))?;
        if descriptor.contract != CONTRACT {
            return Err(DescriptorError::Contract(descriptor.contract));
        }
        descriptor.validate().map_err(DescriptorError::Invalid)?;
        Ok(descriptor)
    }

    fn validate(&self) -> Result<(), String> {
        for (what, text) in [("name", &self.name), ("version", &self.version)] {
            if text.is_empty() || text.len() > 128 || text.chars().any(char::is_control) {
                return Err(format!("`{what}` must be 1 to 128 printable characters"));
            }
        }
        for (index, action) in self.actions.iter().enumerate() {
            let mut chars = action.name.chars();
            let shaped =
                chars.next().is_some_and(|c| c.is_ascii_alphabetic()) && chars.all(|c| c.is_ascii_alphanumeric());
            if !shaped || action.name.len() > 64 {
                return Err(format!(
                    "action name {:?} must be a letter, then letters and digits, at most 64",
                    action.name
                ));
            }
            if self.actions[..index].iter().any(|other| other.name == action.name) {
                return Err(format!("action {} is declared twice", action.name));
            }
        }
        let mut seen = Vec::new();
        for request in &self.capabilities {
            let key = request.key();
            if seen.contains(&key) {
                return Err(format!("the capability {key} is requested twice"));
            }
            seen.push(key);
        }
        Ok(())
    }

    /// The network request with this purpose.
    pub fn network(&self, purpose: &str) -> Option<&CapabilityRequest> {
        self.capabilities
            .iter()
            .find(|request| matches!(request, CapabilityRequest::Network { purpose: p, .. } if p == purpose))
    }

    /// What the feature adds, by kind: the names of its actions, and so on. Kinds that it does not
    /// add are left out.
    pub fn contributions(&self) -> BTreeMap<&'static str, Vec<String>> {
        let mut contributions = BTreeMap::new();
        contributions.insert("actions", self.actions.iter().map(|action| action.name.clone()).collect::<Vec<_>>());
        contributions.retain(|_, names| !names.is_empty());
        contributions
    }

    /// Whether a capability of this kind is requested.
    pub fn requests(&self, kind: &str) -> bool {
        self.capabilities.iter().any(|request| request.kind() == kind)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        id = "project:lamp"
        name = "Lamp"
        version = "1.0.0"
        contract = "0.1"
        [[capabilities]]
        kind = "network"
        purpose = "lamp"
        udp = ["192.168.1.5:*"]
        reason = "Talk to the lamp."
        [[actions]]
        name = "LampOn"
        summary = "Switch it on."
    "#;

    #[test]
    fn a_descriptor_is_read_as_written() {
        let descriptor = Descriptor::parse(GOOD.as_bytes()).unwrap();
        assert_eq!(descriptor.id.name(), "lamp");
        assert_eq!(descriptor.id.source(), "project");
        assert!(descriptor.network("lamp").unwrap().required());
        assert!(descriptor.network("other").is_none());
    }

    #[test]
    fn what_does_not_fit_is_refused_with_a_sentence() {
        let refused =
            |from: &str, to: &str| Descriptor::parse(GOOD.replace(from, to).as_bytes()).unwrap_err().to_string();
        assert!(refused("project:lamp", "lamp").contains("no feature id"));
        assert!(refused("project:lamp", "project:LAMP").contains("no feature id"));
        assert!(refused("contract = \"0.1\"", "contract = \"9.9\"").contains("written for contract 9.9"));
        assert!(refused("LampOn", "Lamp\\u0007On").contains("must be a letter"));
        assert!(refused("kind = \"network\"", "kind = \"root\"").contains("unknown variant"));
        assert!(refused("name = \"Lamp\"", "name = \"Lamp\"\nbogus = 1").contains("bogus"));
        assert!(refused("name = \"Lamp\"", "name = \"\"").contains("1 to 128"));
        assert_eq!(Descriptor::parse(&[0xff, 0xfe]).unwrap_err(), DescriptorError::NotText);
        assert_eq!(
            Descriptor::parse(&vec![b'#'; MAX_DESCRIPTOR + 1]).unwrap_err(),
            DescriptorError::TooLong(MAX_DESCRIPTOR + 1)
        );
    }
}
