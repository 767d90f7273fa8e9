//! What a release holds of its dependencies: their licences as one text, and a bill of materials (SBOM).

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::foreign::System;
use crate::{cargo, process, repo::Repo};

/// A package that the program is made of.
#[derive(Debug)]
pub struct Part {
    /// Where it comes from, as package URLs call it.
    registry: &'static str,
    name: String,
    version: String,
    licence: String,
    /// Where its source is, as it says itself. Some licences want those told who get the program.
    origin: Option<String>,
    folder: PathBuf,
}

/// The packages from elsewhere that the program, or a bundled feature, is made of, by name and version. `None` is this
/// machine's system.
///
/// # Errors
/// Where Cargo can't say.
pub fn all(repo: &Repo, system: Option<System>) -> Result<Vec<Part>> {
    let mut parts = BTreeMap::new();
    for (folder, package) in [(repo.root().to_owned(), Some("conductor")), (repo.root().join("features"), None)] {
        let mut tree = cargo::command("tree", repo.locked());
        tree.args(["--edges=normal", "--prefix=none", "--format={p}", "--manifest-path"])
            .arg(folder.join("Cargo.toml"));
        match package {
            Some(package) => {
                tree.args(["--package", package]).args(system.map(|system| format!("--target={}", system.triple())))
            }
            None => tree.args(["--workspace", "--target=all"]),
        };
        let used = process::read(&mut tree)?;
        let used: Vec<&str> = used.lines().collect();
        let mut metadata = cargo::command("metadata", repo.locked());
        metadata.args(["--format-version", "1", "--manifest-path"]).arg(folder.join("Cargo.toml"));
        let metadata: Value =
            serde_json::from_str(&process::read(&mut metadata)?).context("cannot read `cargo metadata`")?;
        for package in metadata["packages"].as_array().context("`cargo metadata` names no packages")? {
            let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
            let (name, version) = (text("name"), text("version"));
            let line = format!("{name} v{version}");
            // Our own come from a path, which `cargo tree` names after the version.
            if package["source"].is_null() || !used.iter().any(|used| used.trim_end_matches(" (*)").starts_with(&line))
            {
                continue;
            }
            let manifest = PathBuf::from(text("manifest_path"));
            let folder = manifest.parent().context("a manifest without a folder")?.to_owned();
            let (registry, licence) = ("cargo", text("license"));
            let origin = package["repository"].as_str().map(str::to_owned);
            let part = Part { registry, name: name.clone(), version: version.clone(), licence, origin, folder };
            parts.insert((name, version), part);
        }
    }
    Ok(parts.into_values().collect())
}

/// The packages from elsewhere that the web shell's pages can have something of: those of its lock file that are not for
/// its development alone.
///
/// # Errors
/// Where npm has not installed them.
pub fn of_pages(ui: &Path) -> Result<Vec<Part>> {
    let path = ui.join("package-lock.json");
    let lock = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let lock: Value = serde_json::from_str(&lock).with_context(|| format!("{} is no JSON", path.display()))?;
    let packages = lock["packages"].as_object().context("package-lock.json names no packages")?;
    // The one without a path is the shell itself.
    let used = packages.iter().filter(|(path, package)| !path.is_empty() && package["dev"] != true);
    let parts = used.map(|(path, package)| {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        let name = path.rsplit("node_modules/").next().unwrap_or(path).to_owned();
        let (version, licence) = (text("version"), text("license"));
        Part { registry: "npm", name, version, licence, origin: None, folder: ui.join(path) }
    });
    Ok(parts.collect())
}

/// Which licence each part has and where its source is, and every licence text that comes with one, each once.
///
/// # Errors
/// A folder that can't be read.
pub fn licences(parts: &[Part]) -> Result<String> {
    let mut text = "Conductor is made with the packages below, under their own licences.\n\n".to_owned();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for part in parts {
        let origin = part.origin.as_ref().map(|origin| format!(", {origin}")).unwrap_or_default();
        let _ = writeln!(text, "{} {}: {}{origin}", part.name, part.version, part.licence);
        for file in licence_files(&part.folder)? {
            let words = fs::read_to_string(&file).unwrap_or_default();
            texts.entry(words.trim().to_owned()).or_default().push(format!("{} {}", part.name, part.version));
        }
    }
    for (words, users) in texts.into_iter().filter(|(words, _)| !words.is_empty()) {
        let _ = write!(text, "\n{}\n{}:\n\n{words}\n", "-".repeat(80), users.join(", "));
    }
    Ok(text)
}

/// The files of a package that hold a licence or a notice: at its top, and in folders of what it brings along, such as a font.
fn licence_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_uppercase();
            // What a package of the web has installed for itself is listed as its own part.
            if path.is_dir() && depth < LICENCE_DEPTH && name != "NODE_MODULES" {
                folders.push((path, depth + 1));
            } else if path.is_file() && LICENCE_NAMES.iter().any(|word| name.starts_with(word)) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// What names of files with a licence or a notice begin with.
const LICENCE_NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];
/// How many folders down they are looked for.
const LICENCE_DEPTH: usize = 3;

/// A bill of materials as CycloneDX 1.6 has it: <https://cyclonedx.org/docs/1.6/json/>.
pub fn bill(parts: &[Part], version: &str) -> Value {
    let components: Vec<Value> = parts
        .iter()
        .map(|part| {
            let (name, version) = (part.name.replace('@', "%40"), part.version.replace('+', "%2B"));
            let purl = format!("pkg:{}/{name}@{version}", part.registry);
            json!({
                "type": "library",
                "bom-ref": purl,
                "name": part.name,
                "version": part.version,
                // Older packages write `/` for `OR`.
                "licenses": [{ "expression": part.licence.replace('/', " OR ") }],
                "purl": purl,
            })
        })
        .collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": { "type": "application", "name": "conductor", "version": version } },
        "components": components,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, folder: &Path) -> Part {
        let (version, licence) = ("1.0.0+x".to_owned(), "MIT/Apache-2.0".to_owned());
        let origin = Some("https://example.com/source".to_owned());
        Part { registry: "cargo", name: name.to_owned(), version, licence, origin, folder: folder.to_owned() }
    }

    #[test]
    fn a_licence_that_two_share_stands_there_once() {
        let folder = std::env::temp_dir().join(format!("conductor-licences-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder of the system for temporary files");
        fs::write(folder.join("LICENSE-MIT"), "Do what you like.\n")
            .expect("a folder of the system for temporary files");
        fs::write(folder.join("lib.rs"), "no licence").expect("a folder of the system for temporary files");
        fs::create_dir_all(folder.join("assets/font")).expect("a folder of the system for temporary files");
        fs::write(folder.join("assets/font/LICENSE"), "Sell it with other things.\n")
            .expect("a folder of the system for temporary files");
        let text = licences(&[part("one", &folder), part("two", &folder)]).expect("both can be read");
        fs::remove_dir_all(&folder).expect("a folder of the system for temporary files");
        assert_eq!(text.matches("Do what you like.").count(), 1, "{text}");
        assert!(text.contains("one 1.0.0+x: MIT/Apache-2.0, https://example.com/source\n"), "{text}");
        assert!(text.contains("one 1.0.0+x, two 1.0.0+x:") && !text.contains("no licence"), "{text}");
        assert!(text.contains("Sell it with other things."), "what a package brings along has its own: {text}");
    }

    #[test]
    fn a_bill_names_each_part_by_its_address_in_the_registry() {
        let bill = bill(&[part("one", Path::new("/"))], "0.1.0");
        assert_eq!(bill["components"][0]["purl"], "pkg:cargo/one@1.0.0%2Bx");
        assert_eq!(bill["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
    }

    #[test]
    fn pages_are_made_of_what_is_not_for_their_development() {
        let ui = std::env::temp_dir().join(format!("conductor-pages-{}", std::process::id()));
        fs::create_dir_all(&ui).expect("a folder of the system for temporary files");
        let lock = json!({ "packages": {
            "": { "name": "shell" },
            "node_modules/vite": { "version": "8.0.0", "license": "MIT", "dev": true },
            "node_modules/svelte/node_modules/@a/b": { "version": "1.2.3", "license": "ISC" },
        } });
        fs::write(ui.join("package-lock.json"), lock.to_string()).expect("a folder of the system for temporary files");
        let parts = of_pages(&ui).expect("it can be read");
        fs::remove_dir_all(&ui).expect("a folder of the system for temporary files");
        assert!(parts.len() == 1 && parts[0].folder == ui.join("node_modules/svelte/node_modules/@a/b"), "{parts:?}");
        let bill = bill(&parts, "0.1.0");
        assert_eq!(bill["components"][0]["purl"], "pkg:npm/%40a/b@1.2.3");
        assert_eq!(bill["components"][0]["licenses"][0]["expression"], "ISC");
    }
}
