//! The caller of a request: the door that it came through, the scope that the door gives it, and its claimed name.
//!
//! The host fills in door and scope; a client chooses its name only, which is a claim and is shown as one, in
//! quotation marks and with escapes. So no client can be recorded as if it came through another door:
//!
//! ```text
//! socket:owner "conductor-cli"      tcp:control "conductor-cli"      mcp-socket:agent "x" by elicitation
//! ```

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use conductor_terminal::is_hidden;

/// Bytes that are kept of a name, escapes included.
const MAX_NAME: usize = 64;
/// Bytes that are kept of a feature's id; the longest has fewer.
const MAX_ID: usize = 512;

/// The way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Door {
    /// The API on the Unix socket, which only the home's owner can open: the command line, shells.
    Socket,
    /// The API on a TCP port, with a token.
    Tcp,
    /// MCP on the Unix socket, or through `conductor mcp`, which passes on to it.
    McpSocket,
    /// MCP on a TCP port, with the agents' token.
    McpHttp,
    /// A conversation with a model. Its name is the conversation, which the host knows.
    Chat,
    /// A command that does its work itself, with or without a running host.
    Cli,
    /// A program that embeds the host.
    Library,
    /// The configuration file, which a person writes.
    Configuration,
    /// A feature, within its grants. Its name is its id, which the host knows.
    Feature,
    /// The host itself.
    Host,
}

impl Door {
    /// The word that rows and messages use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::Tcp => "tcp",
            Self::McpSocket => "mcp-socket",
            Self::McpHttp => "mcp-http",
            Self::Chat => "chat",
            Self::Cli => "cli",
            Self::Library => "library",
            Self::Configuration => "configuration",
            Self::Feature => "feature",
            Self::Host => "host",
        }
    }
}

/// How much a caller may do, by the door and the token that it came with. Each may also do what those before it may,
/// except that agents are no clients of the API: theirs is MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// What MCP offers: to look, to call tools, to propose.
    Agent,
    /// To look.
    Read,
    /// To call tools, and to change what holds until the host stops.
    Control,
    /// What a person decides: to apply, undo and confirm. A client of the Unix socket is the home's owner.
    Owner,
}

impl Scope {
    /// The word that rows and messages use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Read => "read",
            Self::Control => "control",
            Self::Owner => "owner",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who asks. Nothing is allowed for a name's sake: every client may choose its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Caller {
    door: Door,
    scope: Option<Scope>,
    /// With escapes, so that no two names look alike and none holds a quotation mark that is not escaped.
    name: Option<String>,
    by_elicitation: bool,
}

impl Caller {
    /// A client that came through this door and has this scope, with the name that it gives itself.
    pub fn client(door: Door, scope: Scope, name: Option<&str>) -> Self {
        let name = name.filter(|name| !name.trim().is_empty()).map(|name| escaped(name, MAX_NAME));
        Self { door, scope: Some(scope), name, by_elicitation: false }
    }

    /// A client that was not let in at this door.
    pub fn refused(door: Door) -> Self {
        Self { door, scope: None, name: None, by_elicitation: false }
    }

    /// A program that embeds the host. It is trusted as the home's owner is.
    pub fn library() -> Self {
        Self::client(Door::Library, Scope::Owner, None)
    }

    /// A command, run by the home's owner.
    pub fn cli() -> Self {
        Self::client(Door::Cli, Scope::Owner, None)
    }

    /// What a person has written into the configuration file.
    pub fn configuration() -> Self {
        Self::refused(Door::Configuration)
    }

    /// A feature, by its id.
    pub fn feature(id: &str) -> Self {
        Self { name: Some(escaped(id, MAX_ID)), ..Self::refused(Door::Feature) }
    }

    /// The host itself.
    pub fn host() -> Self {
        Self::refused(Door::Host)
    }

    /// The user of this agent, who answered as far as the agent's program says (elicitation).
    #[must_use]
    pub fn by_elicitation(self) -> Self {
        Self { by_elicitation: true, ..self }
    }

    /// Whether this is the same client, asked for itself or through its user.
    pub fn is_same_client(&self, other: &Self) -> bool {
        (self.door, self.scope, &self.name) == (other.door, other.scope, &other.name)
    }

    /// The way in.
    pub fn door(&self) -> Door {
        self.door
    }

    /// How much it may do; `None` if it is not a client.
    pub fn scope(&self) -> Option<Scope> {
        self.scope
    }

    /// Whether a person is on the other side: what is done so, is done by the home's owner.
    pub fn is_owner(&self) -> bool {
        self.scope == Some(Scope::Owner)
    }

    /// What it calls itself, with escapes; `None` if it gives no name.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// What it calls itself, as it is shown to people: in quotation marks.
    pub fn claim(&self) -> String {
        self.name.as_ref().map_or_else(|| "without a name".to_owned(), |name| format!("\"{name}\""))
    }

    /// Whether the agent's program says that its user has answered.
    pub fn is_by_elicitation(&self) -> bool {
        self.by_elicitation
    }
}

/// The name with escapes for characters that are not printed as themselves, truncated if it is too long.
fn escaped(name: &str, most: usize) -> String {
    let mut out = String::new();
    for c in name.chars() {
        // What ends the name, and what begins an escape, is escaped as well.
        let next = match c {
            '"' | '\\' => format!("\\{c}"),
            c if is_hidden(c) => c.escape_unicode().to_string(),
            c => c.to_string(),
        };
        if out.len() + next.len() > most {
            out.push('…');
            break;
        }
        out.push_str(&next);
    }
    out
}

/// The caller as a person says it, from what one is shown as, such as `socket:owner "conductor-cli"`. `None` if that is no
/// client's, or was not asked for by the client itself.
///
/// A name stays in quotation marks and escaped, so that none can pass for another caller.
pub fn in_words(shown: &str) -> Option<String> {
    let (who, name) = shown.split_once(' ').unwrap_or((shown, ""));
    if !name.is_empty() && !is_claim(name) {
        return None;
    }
    Some(match (who, name) {
        ("socket:owner", "\"conductor-ui\"") => "you, in the browser".into(),
        ("socket:owner", "\"conductor-cli\"" | "\"conductor-tui\"") | ("cli:owner", _) => "you, in the terminal".into(),
        ("socket:owner" | "library:owner", _) => "you, on this computer".into(),
        ("chat:agent", _) => "a model in the chat".into(),
        ("mcp-socket:agent" | "mcp-http:agent", "") => "an agent without a name".into(),
        ("mcp-socket:agent" | "mcp-http:agent", name) => format!("the agent that calls itself {name}"),
        _ => return None,
    })
}

/// Whether this is one name in quotation marks, as a caller is shown with.
fn is_claim(text: &str) -> bool {
    let Some(inside) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return false };
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        // What follows a backslash is escaped by it; a quotation mark of its own would end the name.
        if c == '"' || (c == '\\' && chars.next().is_none()) {
            return false;
        }
    }
    true
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.door.as_str())?;
        if let Some(scope) = self.scope {
            write!(f, ":{scope}")?;
        }
        if let Some(name) = &self.name {
            write!(f, " \"{name}\"")?;
        }
        if self.by_elicitation { f.write_str(" by elicitation") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_named_by_door_scope_and_claim() {
        let cli = Caller::client(Door::Socket, Scope::Owner, Some("conductor-cli"));
        assert_eq!(cli.to_string(), "socket:owner \"conductor-cli\"");
        let lent = Caller::client(Door::Tcp, Scope::Control, Some("conductor-cli"));
        assert_eq!(lent.to_string(), "tcp:control \"conductor-cli\"");
        let agent = Caller::client(Door::McpHttp, Scope::Agent, Some(" "));
        assert_eq!(agent.to_string(), "mcp-http:agent");
        assert_eq!(agent.by_elicitation().to_string(), "mcp-http:agent by elicitation");
        assert_eq!(Caller::feature("builtin:x").to_string(), "feature \"builtin:x\"");
    }

    #[test]
    fn callers_are_said_in_words_and_no_name_changes_which() {
        let owner = |name| Caller::client(Door::Socket, Scope::Owner, Some(name)).to_string();
        let agent = |name| Caller::client(Door::McpHttp, Scope::Agent, name).to_string();
        let said = |shown: &str| in_words(shown).unwrap();
        assert_eq!(said(&owner("conductor-ui")), "you, in the browser");
        assert_eq!(said(&owner("conductor-tui")), "you, in the terminal");
        assert_eq!(said(&owner("lamp desk")), "you, on this computer");
        assert_eq!(said(&Caller::library().to_string()), "you, on this computer");
        assert_eq!(said(&agent(None)), "an agent without a name");
        assert_eq!(said(&agent(Some("conductor-ui"))), "the agent that calls itself \"conductor-ui\"");
        assert_eq!(said(&agent(Some("x\" by elicitation"))), "the agent that calls itself \"x\\\" by elicitation\"");
        let user = Caller::client(Door::McpSocket, Scope::Agent, Some("x")).by_elicitation().to_string();
        let feature = Caller::feature("project:x").to_string();
        for other in [
            &user,
            &feature,
            "socket:owner \"a\" \"b\"",
            "socket:owner a",
            "socket:read",
            "project:x",
            "",
            "chat:agent \"\\\"",
        ] {
            assert_eq!(in_words(other), None, "{other}");
        }
    }

    // PLN-4
    #[test]
    fn no_name_makes_a_caller_look_like_another() {
        let user = Caller::client(Door::McpSocket, Scope::Agent, Some("Claude")).by_elicitation();
        let owner = Caller::client(Door::Socket, Scope::Owner, None);
        for name in [
            "Claude by elicitation",
            "Claude\" by elicitation",
            "Claude\\\" by elicitation",
            "Claude\u{22} by elicitation\n",
            "socket:owner",
            "\"\nsocket:owner \"conductor-cli",
            "\u{202e}renwo:tekcos",
        ] {
            let agent = Caller::client(Door::McpSocket, Scope::Agent, Some(name));
            let shown = agent.to_string();
            assert!(shown.starts_with("mcp-socket:agent \"") && shown.ends_with('"'), "{shown}");
            assert!(shown != user.to_string() && shown != owner.to_string());
            // The mark that ends the name is the only one that is not escaped.
            let inside = &shown["mcp-socket:agent \"".len()..shown.len() - 1];
            assert!(!inside.replace("\\\\", "").replace("\\\"", "").contains('"'), "{shown}");
            assert!(shown.chars().all(|c| !c.is_control() && c != '\u{202e}'), "{shown}");
        }
        let long = Caller::client(Door::Tcp, Scope::Read, Some(&"\u{202e}".repeat(1000)));
        assert!(long.to_string().len() < 2 * MAX_NAME);
    }
}
