//! Skills over MCP, as the extension `io.modelcontextprotocol/skills` (SEP-2640) has it: every file of a skill is a resource
//! `skill://NAME/PATH`, `skills/list` and `skills/get` have the metadata with a digest for each file, and
//! `resources/directory/read` lists a folder. Clients without the extension find the same among the resources and prompts.
//!
//! A skill is guidance of strangers for the agent, and nothing to this server.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rmcp::ErrorData;
use rmcp::model::{
    DIRECTORY_MIME_TYPE, Prompt, PromptArgument, PromptMessage, Resource, ResourceContents, Role, Skill as Entry,
    SkillFrontmatter, SkillResource, SkillResources,
};
use serde_json::json;

use super::described::title;
use super::no_resource;
use conductor_host::host::Host;
use conductor_skills::library::{Library, Named};
use conductor_skills::problem::check_name;
use conductor_skills::skill::{ReadError, Skill};
use conductor_terminal::excerpt;

/// The scheme of addresses of skills.
const SCHEME: &str = "skill://";
/// How skills were addressed before they had files. It still reads the text of one.
const OLD: &str = "conductor://skills/";
/// What is addressed by a name and a path.
pub(super) const TEMPLATE: &str = "skill://{name}/{+path}";
/// The file that a skill begins with.
const SKILL_FILE: &str = "SKILL.md";

/// The name and the path in the address of a file of a skill; the path is empty for the skill's folder.
fn divided(uri: &str) -> Option<(&str, &str)> {
    if let Some(name) = uri.strip_prefix(OLD) {
        return Some((name, SKILL_FILE));
    }
    let inner = uri.strip_prefix(SCHEME)?;
    Some(inner.split_once('/').unwrap_or((inner, "")))
}

fn address(skill: &Skill, path: &str) -> String {
    format!("{SCHEME}{}/{path}", skill.name)
}

/// Whether an address may be one of a file of a skill.
pub(super) fn may_exist(uri: &str) -> bool {
    divided(uri).is_some_and(|(name, path)| check_name(name).is_ok() && !path.is_empty())
}

/// Whether an address is one of a skill's.
pub(super) fn is_one(uri: &str) -> bool {
    uri.starts_with(SCHEME) || uri.starts_with(OLD)
}

fn used(host: &Host, library: &Library) -> Vec<Arc<Skill>> {
    library.used(&host.skills()).into_iter().map(|(_, skill)| skill).collect()
}

/// The names of the skills that are used.
pub(super) fn names(host: &Host, library: &Library) -> Vec<String> {
    used(host, library).iter().map(|skill| skill.name.clone()).collect()
}

/// The resources of the skills themselves. Files beside them are found by what names them, and in their folders.
pub(super) fn resources(host: &Host, library: &Library) -> Vec<Resource> {
    used(host, library).iter().map(|skill| resource(skill, SKILL_FILE)).collect()
}

fn resource(skill: &Skill, path: &str) -> Resource {
    let resource = Resource::new(address(skill, path), if path == SKILL_FILE { skill.name.as_str() } else { path });
    let resource = resource.with_mime_type(media_type(path));
    if path == SKILL_FILE { resource.with_description(&*skill.description) } else { resource }
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, end)| end) {
        Some("md") => "text/markdown",
        Some("json") => "application/json",
        Some("toml") => "application/toml",
        Some("yaml" | "yml") => "application/yaml",
        Some("txt" | "test" | "py" | "sh" | "js" | "rs") => "text/plain",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

/// What is at an address of a file of a skill; `None` if nothing is.
///
/// # Errors
/// Why it can't be read.
pub(super) fn read(host: &Host, library: &Library, uri: &str) -> Result<Option<ResourceContents>, String> {
    let Some((name, path)) = divided(uri) else { return Ok(None) };
    let Ok(Named { skill, .. }) = library.find(name, &host.skills()) else { return Ok(None) };
    let bytes = match skill.bytes(path) {
        Ok(bytes) => bytes,
        Err(ReadError::NoFile { .. } | ReadError::Path(_)) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let contents = match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::text(text, uri),
        Err(error) => ResourceContents::blob(BASE64_STANDARD.encode(error.as_bytes()), uri),
    };
    Ok(Some(contents.with_mime_type(media_type(path))))
}

/// The skills as the extension lists them.
pub(super) fn list(host: &Host, library: &Library) -> Vec<Entry> {
    used(host, library).iter().map(|skill| entry(skill)).collect()
}

/// One of them, by the address of its `SKILL.md`.
///
/// # Errors
/// If no skill has it.
pub(super) fn get(host: &Host, library: &Library, uri: &str) -> Result<Entry, ErrorData> {
    let named = divided(uri).filter(|(_, path)| *path == SKILL_FILE && uri.starts_with(SCHEME));
    let named = named.and_then(|(name, _)| library.find(name, &host.skills()).ok());
    // The entry of one that was asked for by an old name would be that of another address.
    named.filter(|named| !named.by_alias).map(|named| entry(&named.skill)).ok_or_else(|| unknown(uri))
}

fn unknown(uri: &str) -> ErrorData {
    // The code that the extension asks for.
    ErrorData::invalid_params(no_resource(uri).message, Some(json!({ "uri": excerpt(uri, 256) })))
}

fn entry(skill: &Skill) -> Entry {
    let size = |path: &str| skill.resources().iter().find(|file| file.path == path).map(|file| file.size);
    let file = |(path, digest): &(String, String)| {
        let size = size(path).unwrap_or(skill.text().len() as u64);
        SkillResource::new(address(skill, path), format!("sha256:{digest}"), size)
    };
    let files = skill.digests().iter().map(file).collect();
    let mut front_matter = SkillFrontmatter::new(&skill.name, "");
    for (field, value) in skill.front_matter() {
        match field.as_str() {
            "name" => {}
            "description" => front_matter.description = value.as_str().unwrap_or(&skill.description).to_owned(),
            _ => front_matter = front_matter.with_field(field, value.clone()),
        }
    }
    Entry::new(address(skill, SKILL_FILE), front_matter, SkillResources::Files(files))
}

/// What lies in a folder of a skill, by name.
///
/// # Errors
/// If there is no such folder.
pub(super) fn folder(host: &Host, library: &Library, uri: &str) -> Result<Vec<Resource>, ErrorData> {
    children(host, library, uri).ok_or_else(|| unknown(uri))
}

fn children(host: &Host, library: &Library, uri: &str) -> Option<Vec<Resource>> {
    let (name, folder) = divided(uri).filter(|_| uri.starts_with(SCHEME))?;
    let named = library.find(name, &host.skills()).ok()?;
    let skill = &named.skill;
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let paths = std::iter::once(SKILL_FILE).chain(skill.resources().iter().map(|file| file.path.as_str()));
    let mut children: Vec<Resource> = Vec::new();
    for inner in paths.filter_map(|path| path.strip_prefix(&prefix)) {
        let (name, is_folder) = inner.split_once('/').map_or((inner, false), |(name, _)| (name, true));
        let uri = address(skill, &format!("{prefix}{name}"));
        if children.iter().all(|child| child.uri != uri) {
            let kind = if is_folder { DIRECTORY_MIME_TYPE } else { media_type(name) };
            children.push(Resource::new(uri, name).with_mime_type(kind));
        }
    }
    (!children.is_empty()).then_some(children)
}

/// A prompt for each skill that is used.
pub(super) fn prompts(host: &Host, library: &Library) -> Vec<Prompt> {
    let prompt = |skill: &Arc<Skill>| {
        let task = PromptArgument::new("task").with_description("What it is to be used for").with_required(false);
        Prompt::new(&skill.name, Some(&skill.description), Some(vec![task])).with_title(title(&skill.name))
    };
    used(host, library).iter().map(prompt).collect()
}

/// The messages of a prompt: the task in the person's words, and the skill beside it. `None` if no skill has the name.
pub(super) fn prompt(host: &Host, library: &Library, name: &str, task: &str) -> Option<(String, Vec<PromptMessage>)> {
    let named = library.find(name, &host.skills()).ok()?;
    let skill = named.skill;
    let text =
        format!("Use the skill {} (below) for: {}", skill.name, if task.is_empty() { "what I say next" } else { task });
    let uri = address(&skill, SKILL_FILE);
    let contents = PromptMessage::new_resource(
        Role::User,
        uri,
        Some("text/markdown".to_owned()),
        Some(skill.text().to_owned()),
        None,
        None,
        None,
    );
    Some((skill.description.clone(), vec![PromptMessage::new_text(Role::User, text), contents]))
}
