//! Which tools a client is listed: those of the core, and of the groups that it has opened.
//!
//! A model reads the list before every conversation, so it is short with any number of features. The tools of a feature
//! that is not [core](CORE) form a group, called like the feature. [`OPEN_TOOLS`] names the groups with their tools, and
//! opens one for the client that calls it. The other tools of the host's own are always listed. This is about the list alone: a
//! tool that is not listed can be called by its name, and what may be called is for the gate to decide.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::described::{schema, titled, tool};
use super::{AnswerError, ClientKey, Server, effects, repeated, withdraw};
use conductor_config::{ToolList, nearest};
use conductor_host::control::gate::ToolView;
use conductor_host::host::Host;
use conductor_terminal::excerpt;

/// The tool that opens a group. It is the host's own.
pub const OPEN_TOOLS: &str = "conductor_open_tools";

/// The features whose tools are listed from the start: to look, and to map.
const CORE: [&str; 2] = ["builtin:mapping-tools", "builtin:status-tools"];
/// Groups that are named in the description of [`OPEN_TOOLS`].
const MAX_GROUPS: usize = 24;
/// Tools of a group that are named there.
const MAX_NAMED: usize = 16;
/// Bytes that all groups take there with the names of their tools. What comes after is named without them, so that
/// many packages don't make the list long.
const MAX_NAMES: usize = 2048;
/// Clients whose opened groups are remembered; of more, those are forgotten that opened one least recently.
const MAX_CLIENTS: usize = 128;

/// The groups that the clients behind one door have opened.
#[derive(Debug, Default)]
pub(super) struct Opened {
    remembered: Mutex<Remembered>,
    /// Changes after each group that is opened.
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Remembered {
    clients: HashMap<ClientKey, (u64, BTreeSet<String>)>,
    /// Groups opened so far: how recent is what.
    count: u64,
}

impl Opened {
    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock()
    }

    /// The groups that a client has opened.
    pub(super) fn of(&self, client: &ClientKey) -> BTreeSet<String> {
        self.remembered().clients.get(client).map(|(_, groups)| groups.clone()).unwrap_or_default()
    }

    /// A way to wait for the next group that any client opens.
    pub(super) fn watch(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Opens a group for a client; `true` if it was closed.
    fn open(&self, client: ClientKey, group: &str) -> bool {
        let is_new = self.remember(client, group);
        if is_new {
            self.changed.send_replace(());
        }
        is_new
    }

    fn remember(&self, client: ClientKey, group: &str) -> bool {
        let mut remembered = self.remembered();
        remembered.count += 1;
        let Remembered { clients, count } = &mut *remembered;
        if !clients.contains_key(&client)
            && clients.len() >= MAX_CLIENTS
            && let Some(oldest) = clients.iter().min_by_key(|(_, (at, _))| *at).map(|(client, _)| client.clone())
        {
            clients.remove(&oldest);
        }
        let (at, groups) = clients.entry(client).or_default();
        *at = *count;
        groups.insert(group.to_owned())
    }
}

/// The groups among these tools, by the id of their feature, each with the names of its tools.
fn groups(tools: &[ToolView]) -> BTreeMap<&str, Vec<&str>> {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for view in tools.iter().filter(|view| !CORE.contains(&view.feature.as_str())) {
        groups.entry(view.feature.as_str()).or_default().push(view.tool.name.as_str());
    }
    groups
}

/// The list for a client that has opened these groups.
pub fn listed(tools: Vec<ToolView>, list: ToolList, opened: &BTreeSet<String>) -> Vec<Tool> {
    let groups = match list {
        ToolList::Groups => groups(&tools),
        ToolList::All => BTreeMap::new(),
    };
    let closed: BTreeSet<String> =
        groups.keys().filter(|group| !opened.contains(**group)).map(|&group| group.to_owned()).collect();
    let opener = (!groups.is_empty()).then(|| opener(&groups));
    let shown = tools.into_iter().filter(|view| !closed.contains(&view.feature)).map(tool);
    let mut tools: Vec<Tool> = opener.into_iter().chain([effects::tool(), withdraw::tool()]).chain(shown).collect();
    repeated::state_once(&mut tools);
    tools
}

fn opener(groups: &BTreeMap<&str, Vec<&str>>) -> Tool {
    let named = |(group, tools): (&&str, &Vec<&str>)| {
        let more = if tools.len() > MAX_NAMED { ", ..." } else { "" };
        let names: Vec<&str> = tools.iter().take(MAX_NAMED).map(|name| name.trim_start_matches("conductor_")).collect();
        format!("{group} ({}{more})", names.join(", "))
    };
    let mut all: Vec<String> = Vec::new();
    for group in groups.iter().take(MAX_GROUPS) {
        let whole = named(group);
        let so_far: usize = all.iter().map(String::len).sum();
        all.push(if so_far + whole.len() > MAX_NAMES { (*group.0).to_owned() } else { whole });
    }
    let description = format!(
        "Add a group of tools to the list of tools, each named conductor_ and what stands here. Groups: {}.",
        all.join("; ")
    );
    let input = json!({
        "type": "object",
        "properties": { "group": { "type": "string", "description": "Such as builtin:binding-tools." } },
        "required": ["group"],
        "additionalProperties": false,
    });
    let output = json!({
        "type": "object",
        "properties": { "opened": { "type": "array", "items": { "type": "string" } }, "next": { "type": "string" } },
        "required": ["opened", "next"],
    });
    let annotations = ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false);
    let tool = Tool::new(OPEN_TOOLS, description, schema(input)).with_annotations(annotations);
    titled(tool.with_raw_output_schema(schema(output)))
}

/// Opens a group for the client that asks.
pub(super) async fn open(
    server: &Server,
    host: &Arc<Host>,
    context: &RequestContext<RoleServer>,
    args: JsonObject,
) -> Result<CallToolResult, ErrorData> {
    let caller = server.caller(context);
    let key = server.key(&caller);
    let answer = || {
        let tools = host.tools();
        let groups = groups(&tools);
        let known = || groups.keys().copied();
        let all = || known().take(MAX_GROUPS).collect::<Vec<_>>().join(", ");
        let asked = match (args.get("group"), args.len()) {
            (Some(Value::String(asked)), 1) => asked,
            _ => return Err(AnswerError::wrong(format!("`group` is wanted, and nothing else; there are {}", all()))),
        };
        // The last part of a name is enough where it is clear.
        let named: Vec<&str> =
            known().filter(|group| *group == asked || group.ends_with(&format!(":{asked}"))).collect();
        let [group] = named[..] else {
            let near = nearest(asked, known()).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            return Err(AnswerError::wrong(format!(
                "there is no group {:?}{near} There are {}",
                excerpt(asked, 64),
                all()
            )));
        };
        let names: Vec<String> = groups[group].iter().map(|&name| name.to_owned()).collect();
        Ok((server.shared.opened.open(key, group), names))
    };
    let (is_new, opened) = host.own_tool(&caller, OPEN_TOOLS, async { answer() }).await.map_err(ErrorData::from)?;
    if is_new && server.is_session() {
        // A client that is gone needs no news.
        let _ = context.peer.notify_tool_list_changed().await;
    }
    Ok(CallToolResult::structured(json!({ "opened": opened, "next": "list the tools again; these are there now" })))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use super::effects::SHOW_EFFECTS;
    use super::withdraw::WITHDRAW_PLAN;
    use super::*;
    use conductor_package::descriptor::{Doors, Tier};
    use conductor_sandbox::RegisteredTool;

    fn view(feature: &str, name: &str) -> ToolView {
        let (name, summary, input) = (name.to_owned(), "Does something.".to_owned(), json!({ "type": "object" }));
        let (tier, timeout) = (Tier::ReadOnly, Duration::ZERO);
        let tool = RegisteredTool {
            name,
            tier,
            proposes: false,
            summary,
            input: serde_json::from_value(input).unwrap(),
            output: None,
            doors: Doors::default(),
            timeout,
        };
        ToolView { feature: feature.to_owned(), tool }
    }

    fn names(tools: &[Tool]) -> Vec<&str> {
        tools.iter().map(|tool| &*tool.name).collect()
    }

    fn all() -> Vec<ToolView> {
        vec![
            view("builtin:mapping-tools", "conductor_list_mappings"),
            view("builtin:binding-tools", "conductor_scan_ports"),
            view("plugin:acme:lights", "lights_blink"),
            // Another one of that name is not the core's.
            view("project:mapping-tools", "mapping_extra"),
        ]
    }

    #[test]
    fn groups_are_closed_until_they_are_opened() {
        let opened = Opened::default();
        let (one, other) = (ClientKey::Server(1), ClientKey::Server(2));
        let list = |client: &ClientKey| listed(all(), ToolList::Groups, &opened.of(client));
        assert_eq!(names(&list(&one)), [OPEN_TOOLS, SHOW_EFFECTS, WITHDRAW_PLAN, "conductor_list_mappings"]);
        let description = list(&one)[0].description.clone().unwrap();
        for part in ["builtin:binding-tools (scan_ports)", "plugin:acme:lights (lights_blink)", "project:mapping-tools"]
        {
            assert!(description.contains(part), "no {part} in {description}");
        }
        assert!(opened.open(one.clone(), "plugin:acme:lights"));
        assert!(!opened.open(one.clone(), "plugin:acme:lights"), "it is open already");
        assert_eq!(
            names(&list(&one)),
            [OPEN_TOOLS, SHOW_EFFECTS, WITHDRAW_PLAN, "conductor_list_mappings", "lights_blink"]
        );
        assert_eq!(names(&list(&other)).len(), 4, "each client has groups of its own");
        let whole = listed(all(), ToolList::All, &BTreeSet::new());
        assert_eq!(whole.len(), 6, "all of them, and nothing to open");
        assert_eq!(whole[2].title.as_deref(), Some("List mappings"));
    }

    #[test]
    fn many_packages_do_not_make_the_list_long() {
        let package = |n: usize| format!("project:{}-{n:03}", "x".repeat(50));
        let many =
            (0..100).flat_map(|n| (0..100).map(move |tool| view(&package(n), &format!("{}_{tool}", "y".repeat(50)))));
        let list = listed(all().into_iter().chain(many).collect(), ToolList::Groups, &BTreeSet::new());
        assert_eq!(names(&list), [OPEN_TOOLS, SHOW_EFFECTS, WITHDRAW_PLAN, "conductor_list_mappings"]);
        let description = list[0].description.as_deref().unwrap();
        assert!(description.contains("builtin:binding-tools (scan_ports)") && description.contains(&package(20)));
        assert!(description.len() < 2 * MAX_NAMES, "{} bytes", description.len());
    }

    #[test]
    fn so_many_clients_are_remembered() {
        let opened = Opened::default();
        for client in 0..1000 {
            opened.open(ClientKey::Server(client), "g");
        }
        assert_eq!(opened.remembered().clients.len(), MAX_CLIENTS);
        assert!(opened.of(&ClientKey::Server(0)).is_empty());
        assert!(opened.of(&ClientKey::Server(999)).contains("g"));
    }
}
