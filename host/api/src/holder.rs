//! The kinds of client that a door distinguishes, by their tokens.

use std::path::{Path, PathBuf};

use conductor_audit::caller::Scope;

/// Whose token it is, and so what it opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// The whole API, with applying plans.
    Owner,
    /// The API without what a person decides (`Scope::Control`).
    Control,
    /// What the API tells (`Scope::Read`).
    Read,
    /// MCP, and nothing else.
    Agent,
}

impl Holder {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Owner, Self::Control, Self::Read, Self::Agent];

    /// How much it opens. No route of the API is for agents, who come as far as MCP.
    pub(super) fn scope(self) -> Scope {
        match self {
            Self::Owner => Scope::Owner,
            Self::Control => Scope::Control,
            Self::Read => Scope::Read,
            Self::Agent => Scope::Agent,
        }
    }

    /// The file of its token, in a home.
    pub fn file(self, home: &Path) -> PathBuf {
        home.join(self.file_name())
    }

    pub(super) fn file_name(self) -> &'static str {
        match self {
            Self::Owner => "api.token",
            Self::Control => "api-control.token",
            Self::Read => "api-read.token",
            Self::Agent => "mcp.token",
        }
    }
}
