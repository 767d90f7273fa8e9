//! The SDK and the contract as they were when this program was built. Each new project gets them, so that it builds on any
//! machine and stays with the contract that it was written against.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use toml::{Table, Value};

use super::super::Failure;

include!(concat!(env!("OUT_DIR"), "/sdk.rs"));

/// What the SDK's manifest takes over from its workspace.
const WORKSPACE: &str = include_str!("../../../../../features/Cargo.toml");
const MANIFEST: &str = "feature-api/Cargo.toml";
const CONTRACT: &str = "wit/v0.1";
/// The folder of a project that holds both.
pub(super) const FOLDER: &str = "sdk";
/// The crate in that folder.
pub(super) const CRATE: &str = "sdk/feature-api";

/// The SDK that a person names, by an argument or in `CONDUCTOR_SDK`: the folder `feature-api` of Conductor's sources.
/// `None` if they don't.
pub(super) fn named(given: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
    let given = given.map(Path::to_owned).or_else(|| std::env::var_os("CONDUCTOR_SDK").map(PathBuf::from));
    let Some(folder) = given else { return Ok(None) };
    match folder.canonicalize() {
        Ok(folder) if folder.join("Cargo.toml").is_file() => Ok(Some(folder)),
        _ => Err(Failure::Wrong(format!(
            "conductor: {}: there is no SDK; it is the folder `feature-api` of Conductor's sources",
            folder.display()
        ))),
    }
}

/// Writes both into a project.
pub(super) fn write(project: &Path) -> anyhow::Result<()> {
    for (name, text) in FILES {
        let text = if *name == MANIFEST { manifest()? } else { (*text).to_owned() };
        write_file(&project.join(FOLDER).join(name), &text)?;
    }
    Ok(())
}

/// Writes this program's contract into a project, where later builds find it.
pub(super) fn write_own_contract(project: &Path) -> anyhow::Result<()> {
    write_files_below(CONTRACT, &project.join(FOLDER).join(CONTRACT))
}

/// Writes the contract into a folder: of the SDK that is named, else of the project, else this program's.
pub(super) fn write_contract(named: Option<&Path>, project: &Path, to: &Path) -> anyhow::Result<()> {
    let own = project.join(FOLDER).join(CONTRACT);
    let there = match named {
        Some(sdk) => Some(sdk.parent().unwrap_or(sdk).join(CONTRACT)),
        None => own.is_dir().then_some(own),
    };
    let Some(there) = there else {
        return write_files_below(CONTRACT, to);
    };
    fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    for entry in fs::read_dir(&there).with_context(|| there.display().to_string())? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name())).with_context(|| entry.path().display().to_string())?;
    }
    Ok(())
}

/// Writes what is below one folder of the sources into another.
fn write_files_below(folder: &str, to: &Path) -> anyhow::Result<()> {
    for (name, text) in FILES {
        if let Ok(name) = Path::new(name).strip_prefix(folder) {
            write_file(&to.join(name), text)?;
        }
    }
    Ok(())
}

fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).and_then(|()| fs::write(path, text)).with_context(|| path.display().to_string())
}

/// The SDK's manifest with all that it takes over from its workspace written out.
fn manifest() -> anyhow::Result<String> {
    let text = FILES.iter().find(|(name, _)| *name == MANIFEST).map_or("", |(_, text)| text);
    let (mut manifest, workspace): (Table, Table) = (text.parse()?, WORKSPACE.parse()?);
    let shared = |table: &str, key: &str| workspace.get("workspace")?.get(table)?.get(key).cloned();
    if let Some(Value::Table(package)) = manifest.get_mut("package") {
        package.remove("workspace");
        for (key, value) in package.iter_mut().filter(|(_, value)| is_shared(value)) {
            *value = shared("package", key).with_context(|| format!("the workspace has no {key}"))?;
        }
    }
    if let Some(Value::Table(dependencies)) = manifest.get_mut("dependencies") {
        for (name, value) in dependencies.iter_mut().filter(|(_, value)| is_shared(value)) {
            let all = shared("dependencies", name).with_context(|| format!("the workspace has no {name}"))?;
            let mut all = match all {
                Value::Table(all) => all,
                version => Table::from_iter([("version".to_owned(), version)]),
            };
            let own = value.as_table().cloned().unwrap_or_default();
            all.extend(own.into_iter().filter(|(key, _)| key != "workspace"));
            *value = Value::Table(all);
        }
    }
    manifest.remove("lints");
    Ok(manifest.to_string())
}

/// Whether something says `workspace = true`.
fn is_shared(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_stands_alone() {
        let text = manifest().unwrap();
        let manifest: Table = text.parse().unwrap();
        assert!(!text.contains("workspace"), "{text}");
        assert_eq!(manifest["package"]["version"].as_str(), Some(env!("CARGO_PKG_VERSION")));
        let schemars = &manifest["dependencies"]["schemars"];
        assert!(schemars["version"].is_str() && schemars["optional"].as_bool() == Some(true), "{text}");
    }

    #[test]
    fn all_that_the_crate_includes_is_there() {
        let has = |name: &str| FILES.iter().any(|(file, _)| *file == name);
        assert!(has("feature-api/src/lib.rs") && has("feature-api/src/harness.rs"));
        assert!(FILES.iter().filter(|(name, _)| name.starts_with(CONTRACT)).count() > 20);
    }
}
