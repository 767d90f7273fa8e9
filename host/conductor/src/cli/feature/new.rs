//! `conductor feature new`: a folder that builds and tests as it is.

use std::fs;
use std::path::Path;

use super::super::{CommandResult, Failure};
use super::sdk;
use conductor_stdx::template;
use conductor_terminal::outln;

/// What a new feature contributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum Kind {
    /// Something that mappings do
    Action,
    /// A function for models, agents and people
    Tool,
    /// Told of events as they come
    Hook,
    /// Work in the background
    Task,
    /// An API by which models are reached
    Provider,
}

/// What every kind has in common.
const COMMON: [(&str, &str); 4] = [
    ("Cargo.toml", include_str!("templates/Cargo.toml.template")),
    ("rustfmt.toml", include_str!("templates/rustfmt.toml.template")),
    ("README.md", include_str!("templates/README.md")),
    (".gitignore", "/target/\n"),
];

impl Kind {
    /// Descriptor, source and test.
    const fn templates(self) -> [&'static str; 3] {
        macro_rules! of {
            ($kind:literal) => {
                [
                    include_str!(concat!("templates/", $kind, "/feature.toml")),
                    include_str!(concat!("templates/", $kind, "/lib.rs")),
                    include_str!(concat!("templates/", $kind, "/test.rs")),
                ]
            };
        }
        match self {
            Self::Action => of!("action"),
            Self::Tool => of!("tool"),
            Self::Hook => of!("hook"),
            Self::Task => of!("task"),
            Self::Provider => of!("provider"),
        }
    }
}

pub(super) fn run(path: &str, kind: Kind, sdk: Option<&Path>) -> CommandResult {
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
        return Err(Failure::Wrong(format!("conductor: {path} is there already; choose another name")));
    }
    let [descriptor, source, test] = kind.templates();
    let sdk = named.as_ref().map_or_else(|| sdk::CRATE.to_owned(), |folder| folder.display().to_string());
    let fill = |template: &str| fill(template, name, &sdk);
    for (file, template) in COMMON {
        write(folder, file, &fill(template))?;
    }
    write(folder, "feature.toml", &fill(descriptor))?;
    write(folder, "src/lib.rs", &fill(source))?;
    write(folder, &format!("tests/{}.rs", name.replace('-', "_")), &fill(test))?;
    if named.is_none() {
        sdk::write(folder)?;
    }
    outln!("{path} is there. Next:");
    outln!("  cd {path}");
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

/// A template with its blanks filled in: `NAME-` as it is, `NAME_` for tools and crates, `Name` for types
/// and actions, `SDK` for the SDK's folder.
fn fill(template: &str, name: &str, sdk: &str) -> String {
    let words = name.split('-').map(|word| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
    });
    let typed = words.collect::<String>();
    template::fill(template, ["{{", "}}"], |blank| {
        Some(match blank {
            "name" => name.into(),
            "snake" => name.replace('-', "_").into(),
            "Type" => typed.clone().into(),
            "sdk" => sdk.replace('\\', "\\\\").replace('"', "\\\"").into(),
            _ => return None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_package::Descriptor;

    #[test]
    fn every_kind_has_a_descriptor_that_is_one() {
        for kind in [Kind::Action, Kind::Tool, Kind::Hook, Kind::Task, Kind::Provider] {
            let [descriptor, source, test] = kind.templates().map(|template| fill(template, "desk-lamp", "/sdk"));
            let descriptor = Descriptor::parse(descriptor.as_bytes()).unwrap();
            assert_eq!(descriptor.id.as_str(), "project:desk-lamp");
            assert!(!source.contains("{{") && !test.contains("{{"), "{kind:?}");
        }
    }

    #[test]
    fn a_manifest_is_a_workspace_of_its_own() {
        let manifest: toml::Table = fill(COMMON[0].1, "desk-lamp", "/some \"where\"").parse().unwrap();
        assert!(manifest.contains_key("workspace"));
        assert_eq!(manifest["dependencies"]["conductor-feature"]["path"].as_str(), Some("/some \"where\""));
    }
}
