//! `conductor feature new`: a folder that builds and tests as it is.

mod project;
mod template;

use std::fs;
use std::path::Path;

pub(in crate::cli) use template::{Kind, Language};

use super::super::{CommandResult, Failure};
use super::sdk;
use conductor_terminal::outln;
use project::Project;

/// Writes a project for a feature of these kinds into a new folder, whose name is the feature's.
pub(super) fn run(path: &str, kinds: &[Kind], language: Language, sdk: Option<&Path>) -> CommandResult {
    let named = sdk::named(sdk)?;
    let folder = Path::new(path);
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase())
        || !name.bytes().all(letters)
        || name.ends_with('-')
        || name.contains("--")
        || name.len() > 48
    {
        return Err(Failure::Wrong(format!(
            "conductor: {name:?} is no name for a feature; begin with a-z, go on with a-z, 0-9 and single -, at most 48 \
             characters: `desk-lamp`"
        )));
    }
    if folder.exists() {
        return Err(Failure::Wrong(format!("conductor: {path} already exists; choose another name")));
    }
    let crate_folder = named.as_ref().map_or_else(|| sdk::CRATE.to_owned(), |folder| folder.display().to_string());
    let project = Project::new(name, kinds, language, &crate_folder)
        .map_err(|problem| Failure::Wrong(format!("conductor: {problem}")))?;
    for (file, text) in project.files() {
        write(folder, &file, &text)?;
    }
    match language {
        Language::Rust if named.is_some() => {}
        Language::Rust => sdk::write(folder)?,
        Language::JavaScript | Language::Python => sdk::write_own_contract(folder)?,
    }
    outln!("{path} is there. Next:");
    outln!("  cd {path}");
    for line in project.preparation() {
        outln!("  {line}");
    }
    outln!("  conductor feature test");
    Ok(())
}

fn write(folder: &Path, file: &str, text: &str) -> CommandResult {
    let path = folder.join(file);
    let parent = path.parent().unwrap_or(folder);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(&path, text))
        .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()).into())
}
