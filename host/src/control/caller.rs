//! Who asks: the door that they came through, and what they call themselves.

use std::fmt;

use crate::terminal::excerpt;

/// Bytes that are kept of a name.
const MAX_NAME: usize = 64;

/// The way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Door {
    /// The API: the command line, shells.
    Api,
    /// MCP: agents.
    Mcp,
    /// MCP, where the agent's program says that it has asked its user.
    McpUser,
    /// Whoever has embedded the host.
    Library,
}

/// Who asks. Nothing is allowed for a name's sake: everybody behind a door may choose theirs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Caller {
    door: Door,
    name: Option<String>,
}

impl Caller {
    /// Somebody at the API.
    pub fn api(name: Option<&str>) -> Self {
        Self::new(Door::Api, name)
    }

    /// An agent.
    pub fn mcp(name: Option<&str>) -> Self {
        Self::new(Door::Mcp, name)
    }

    /// Whoever has embedded the host.
    pub fn library() -> Self {
        Self::new(Door::Library, None)
    }

    fn new(door: Door, name: Option<&str>) -> Self {
        let name = name.map(|name| excerpt(name, MAX_NAME));
        Self { door, name: name.filter(|name| !name.trim().is_empty()) }
    }

    /// The user of this agent, as whose answer something comes.
    #[must_use]
    pub fn by_elicitation(self) -> Self {
        Self { door: Door::McpUser, name: self.name }
    }

    /// What they call themselves.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The way in.
    pub fn door(&self) -> Door {
        self.door
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.door {
            Door::Api => "api",
            Door::Mcp | Door::McpUser => "mcp",
            Door::Library => "library",
        })?;
        if let Some(name) = &self.name {
            write!(f, ":{name}")?;
        }
        if self.door == Door::McpUser { f.write_str(" by elicitation") } else { Ok(()) }
    }
}
