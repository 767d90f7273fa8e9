//! Folders in which other agents look for skills.

use std::path::{Path, PathBuf};

/// An agent with folders for skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Cursor.
    Cursor,
    /// VS Code with Copilot.
    VsCode,
}

impl Agent {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Cursor, Self::VsCode];

    /// How it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
        }
    }

    /// Its folder for the skills of a user, whose home folder is `user`.
    pub fn of_user(self, user: &Path) -> PathBuf {
        user.join(match self {
            Self::Claude => ".claude/skills",
            Self::Codex => ".agents/skills",
            Self::Cursor => ".cursor/skills",
            Self::VsCode => ".copilot/skills",
        })
    }

    /// Its folder for the skills of a project, whose root is `project`.
    pub fn of_project(self, project: &Path) -> PathBuf {
        project.join(match self {
            Self::Claude => ".claude/skills",
            Self::Codex => ".agents/skills",
            Self::Cursor => ".cursor/skills",
            Self::VsCode => ".github/skills",
        })
    }
}
