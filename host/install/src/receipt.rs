//! Receipts: records of what was done to the set of installed features. They hold no secrets.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::source::Origin;
use conductor_package::FeatureId;
use conductor_package::capability::CapabilityRequest;

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// A feature came.
    Install,
    /// Another package took the place of the one before.
    Upgrade,
    /// The package before came back.
    Downgrade,
    /// It may use more.
    Grant,
    /// It may use less.
    Revoke,
    /// Hosts load it.
    Enable,
    /// Hosts don't load it.
    Disable,
    /// Single contributions are refused.
    Refuse,
    /// Single contributions are refused no longer.
    Accept,
    /// It went.
    Remove,
}

impl What {
    /// The word that the command line and file names use.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Upgrade => "upgrade",
            Self::Downgrade => "downgrade",
            Self::Grant => "grant",
            Self::Revoke => "revoke",
            Self::Enable => "enable",
            Self::Disable => "disable",
            Self::Refuse => "refuse",
            Self::Accept => "accept",
            Self::Remove => "remove",
        }
    }
}

/// What a change of the set did, for one feature, and how it stands then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeatureInstallReport {
    /// What was done.
    pub what: What,
    /// The feature's name.
    pub feature: String,
    /// Its source-qualified id.
    pub id: FeatureId,
    /// The author's version of the package.
    pub version: String,
    /// SHA-256 of the package, lower-case hex.
    pub digest: String,
    /// Where the package came from.
    pub source: Origin,
    /// Who signed the package: the names of trusted signers, the keys of unknown ones.
    pub signers: Vec<String>,
    /// Whether hosts load it.
    pub enabled: bool,
    /// The id of the feature that comes with the host, and in whose place it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub displaces: Option<String>,
    /// What it may use.
    pub granted: Vec<CapabilityRequest>,
    /// What it asks for and may not use.
    pub denied: Vec<CapabilityRequest>,
    /// What hosts get with it, by kind: `actions`, `tools`, `hooks`, `tasks`.
    pub installed: BTreeMap<String, Vec<String>>,
    /// What it would add, but does not: it is disabled, removed, or lacks what it requires; or a person refused it.
    pub skipped: BTreeMap<String, Vec<String>>,
    /// What a person should know, in sentences.
    pub diagnostics: Vec<String>,
    /// Milliseconds since 1970.
    pub at: u64,
}
