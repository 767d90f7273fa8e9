//! MCP resources: the configuration, plans, ports, skills, and the manual. Notifications of features are listed here, and
//! read in [`notifications`].

use rmcp::model::{Resource, ResourceContents, ResourceTemplate};

use super::described::title;
use super::notifications::{self, NOTIFICATIONS};
use super::skills;
use conductor_audit::caller::Caller;
use conductor_host::host::Host;
use conductor_sandbox::limits::MAX_RESULT;
use conductor_skills::library::Library;
use conductor_stdx::changes::HostChange;
use conductor_terminal::excerpt;

/// The pages of the manual.
const DOCS: &[(&str, &str)] = &[
    ("mappings", include_str!("../../../docs/mappings.md")),
    ("configuration", include_str!("../../../docs/configuration.md")),
    ("expressions", include_str!("../../../docs/expressions.md")),
    ("layers", include_str!("../../../docs/layers.md")),
    ("timeline", include_str!("../../../docs/timeline.md")),
    ("skills", include_str!("../../../docs/skills.md")),
    ("features", include_str!("../../../docs/features.md")),
    ("audit", include_str!("../../../docs/audit.md")),
    ("mcp", include_str!("../../../docs/mcp.md")),
];

const CONFIG: &str = "conductor://config";
const STATUS: &str = "conductor://status";
const PLANS: &str = "conductor://plans";
const PORTS: &str = "conductor://ports";

/// Name, address, description, type.
const PAGES: [[&str; 4]; 5] = [
    ["config", CONFIG, "The configuration in force. `<hidden>` stands for private values.", "application/toml"],
    ["status", STATUS, "Ports, bindings, features, the mode, and what was dropped.", "application/json"],
    ["plans", PLANS, "Proposed changes that wait for a person.", "application/json"],
    ["ports", PORTS, "Every port, and which device it is.", "application/json"],
    ["notifications", NOTIFICATIONS, "The last things that features notified you of.", "application/json"],
];

/// What is addressed by a name, with the names: pattern, description, type.
const TEMPLATES: [[&str; 4]; 4] = [
    ["plan", "conductor://plans/{id}", "A plan that waits: its diff, risk and rehearsal.", "application/json"],
    ["skill", skills::TEMPLATE, "How to do something well: the text of a skill, or a file of it.", "text/markdown"],
    ["manual", "conductor://docs/{page}", "A page of the manual.", "text/markdown"],
    [
        "notifications",
        notifications::TEMPLATE,
        "Notifications after a number, of all features or one.",
        "application/json",
    ],
];

/// All resources.
pub(super) fn all(host: &Host, library: &Library) -> Vec<Resource> {
    let mut all: Vec<Resource> = PAGES.iter().map(|[name, uri, what, kind]| resource(uri, name, what, kind)).collect();
    for plan in host.plan_summaries().unwrap_or_default() {
        let what = excerpt(&plan.description, usize::MAX);
        all.push(resource(&format!("{PLANS}/{}", plan.id), "plan", &what, "application/json"));
    }
    all.extend(skills::resources(host, library));
    for (page, _) in DOCS {
        let (uri, what) = (format!("conductor://docs/{page}"), format!("The manual: {page}."));
        all.push(resource(&uri, page, &what, "text/markdown"));
    }
    all
}

fn resource(uri: &str, name: &str, what: &str, kind: &str) -> Resource {
    Resource::new(uri, name).with_title(title(name)).with_description(what).with_mime_type(kind)
}

/// How long a resource stays as it is, in milliseconds: the manual as long as the program runs, all else may change at
/// any time.
pub(super) fn ttl_ms(uri: &str) -> u64 {
    const HOUR: u64 = 3_600_000;
    if uri.starts_with("conductor://docs/") { HOUR } else { 0 }
}

/// What is addressed by a name.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let made = TEMPLATES.iter();
    made.map(|[name, uri, what, kind]| ResourceTemplate::new(*uri, *name).with_description(*what).with_mime_type(*kind))
        .collect()
}

/// The names that fit the place of a template that is called so.
pub(super) fn names(host: &Host, library: &Library, template: &str, place: &str) -> Vec<String> {
    match template {
        notifications::TEMPLATE if place == "feature" => {
            host.features().into_iter().map(|report| report.name).collect()
        }
        "conductor://plans/{id}" => host.plan_summaries().unwrap_or_default().into_iter().map(|plan| plan.id).collect(),
        skills::TEMPLATE if place == "name" => skills::names(host, library),
        "conductor://docs/{page}" => DOCS.iter().map(|(page, _)| (*page).to_owned()).collect(),
        _ => Vec::new(),
    }
}

/// What is at an address; `None` if nothing is.
///
/// # Errors
/// Why it can't be read.
pub(super) fn read(
    host: &Host,
    library: &Library,
    caller: &Caller,
    uri: &str,
) -> Result<Option<ResourceContents>, String> {
    if skills::is_one(uri) {
        return skills::read(host, library, uri);
    }
    let json = |value: serde_json::Result<String>| value.map_err(|error| error.to_string());
    let (text, kind) = match uri {
        CONFIG => (host.hidden_config(), "application/toml"),
        STATUS => (json(serde_json::to_string(&host.status()))?, "application/json"),
        PORTS => (json(serde_json::to_string(&host.status().ports))?, "application/json"),
        PLANS => {
            let plans = host.plan_summaries().map_err(|error| error.to_string())?;
            (json(serde_json::to_string(&plans))?, "application/json")
        }
        _ => match below(host, caller, uri)? {
            Some(found) => found,
            None => return Ok(None),
        },
    };
    Ok(Some(ResourceContents::text(bounded(text, uri, kind), uri).with_mime_type(kind)))
}

/// The text, or as much of it as an answer may have, with a note of how to get the rest. Of JSON there is the note
/// only: a part of it would be none.
fn bounded(text: String, uri: &str, kind: &str) -> String {
    if text.len() <= MAX_RESULT {
        return text;
    }
    let rest = match uri {
        CONFIG => "conductor_get_config shows the rest section by section, conductor_list_mappings the mappings",
        STATUS => "tools that get the status of bindings, features and ports show it part by part",
        PORTS => "tools that list ports show it part by part",
        _ => "a person sees all of it with `conductor plan show`, or with `conductor` for what else there is",
    };
    let note = format!("{} bytes, of which an answer has at most {MAX_RESULT}: {rest}", text.len());
    if kind == "application/json" {
        return serde_json::json!({ "truncated": note }).to_string();
    }
    let room = MAX_RESULT - note.len() - 8;
    format!("{}\n# {note}\n", &text[..text.floor_char_boundary(room)])
}

/// Whether there is something at an address.
pub(super) fn exists(host: &Host, library: &Library, uri: &str) -> bool {
    if skills::is_one(uri) {
        return skills::read(host, library, uri).is_ok_and(|found| found.is_some());
    }
    may_exist(uri) && uri.strip_prefix("conductor://plans/").is_none_or(|id| host.plan_description(id).is_some())
}

/// The same without looking at plans and skills: whether there may be something at an address.
pub(super) fn may_exist(uri: &str) -> bool {
    if let Some(id) = uri.strip_prefix("conductor://plans/") {
        return !id.is_empty() && id.bytes().all(|digit| digit.is_ascii_hexdigit() || digit == b'-');
    }
    if skills::is_one(uri) {
        return skills::may_exist(uri);
    }
    if notifications::query(uri).is_some() {
        return true;
    }
    let page = uri.strip_prefix("conductor://docs/");
    [CONFIG, STATUS, PLANS, PORTS].contains(&uri) || DOCS.iter().any(|(name, _)| Some(*name) == page)
}

fn below(host: &Host, caller: &Caller, uri: &str) -> Result<Option<(String, &'static str)>, String> {
    if let Some(id) = uri.strip_prefix("conductor://plans/") {
        return match host.plan_for(caller, id) {
            Ok(view) => {
                let text = serde_json::to_string(&view).map_err(|error| error.to_string())?;
                Ok(Some((text, "application/json")))
            }
            Err(conductor_host::control::plan::PlanError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.to_string()),
        };
    }
    let page = uri.strip_prefix("conductor://docs/");
    Ok(page
        .and_then(|page| DOCS.iter().find(|(name, _)| *name == page))
        .map(|(_, text)| ((*text).to_owned(), "text/markdown")))
}

/// Whether what is at this address may be different by this.
pub(super) fn is_touched(uri: &str, new: HostChange) -> bool {
    match new {
        HostChange::Everything => !uri.starts_with("conductor://docs/"),
        HostChange::Config => [CONFIG, STATUS, PORTS].contains(&uri) || skills::is_one(uri),
        HostChange::Plans => uri.starts_with(PLANS),
        HostChange::Ports => [PORTS, STATUS].contains(&uri),
        HostChange::Prompts => false,
        HostChange::Lock => uri == STATUS,
    }
}
