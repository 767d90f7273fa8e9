//! The kinds of client that a door tells apart, by their tokens.

use std::path::{Path, PathBuf};

use super::scope::Scope;

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

    /// How much of the API it opens; none of it for agents, who come as far as MCP, which asks for no scope.
    pub(super) fn of_api(self) -> Option<Scope> {
        match self {
            Self::Owner => Some(Scope::Owner),
            Self::Control => Some(Scope::Control),
            Self::Read => Some(Scope::Read),
            Self::Agent => None,
        }
    }

    /// How much it opens, as the status says it.
    pub(super) fn scope_name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Control => "control",
            Self::Read => "read",
            Self::Agent => "agent",
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
