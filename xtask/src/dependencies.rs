//! Licences and sources of all dependencies, as `deny.toml` allows them.
//!
//! A part of what cargo-deny checks, on every machine: what each package says of itself, from `cargo metadata`.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use spdx::{Expression, LicenseItem, LicenseReq, ParseMode};

use crate::{cargo, process, repo::Repo};

/// Checks the dependencies of the workspace in `folder`.
///
/// # Errors
/// Every package whose licence or source is not allowed, and licences that can't be read.
pub fn check(repo: &Repo, folder: &Path) -> Result<()> {
    let rules = fs::read_to_string(repo.root().join("deny.toml")).context("cannot read deny.toml")?;
    let rules: toml::Table = rules.parse().context("deny.toml is not TOML")?;
    let list = |table: &str, key: &str| -> Vec<String> {
        let list = rules.get(table).and_then(|table| table.get(key)).and_then(toml::Value::as_array);
        list.into_iter().flatten().filter_map(toml::Value::as_str).map(str::to_owned).collect()
    };
    let (licences, registries) = (list("licenses", "allow"), list("sources", "allow-registry"));
    let exceptions = rules.get("licenses").and_then(|table| table.get("exceptions")).and_then(toml::Value::as_array);
    // A crate and one licence each.
    let exceptions: Vec<(&str, &str)> = exceptions
        .into_iter()
        .flatten()
        .filter_map(|one| Some((one.get("crate")?.as_str()?, one.get("allow")?.as_array()?)))
        .flat_map(|(name, allowed)| allowed.iter().filter_map(move |licence| Some((name, licence.as_str()?))))
        .collect();
    let allowed_for = |package: &Value| -> Vec<String> {
        let own = exceptions.iter().filter(|(name, _)| package["name"] == *name);
        licences.iter().cloned().chain(own.map(|(_, licence)| (*licence).to_owned())).collect()
    };
    let mut command = cargo::command("metadata", repo.locked());
    command.args(["--format-version", "1", "--all-features", "--manifest-path"]).arg(folder.join("Cargo.toml"));
    let metadata: Value =
        serde_json::from_str(&process::read(&mut command)?).context("cannot read `cargo metadata`")?;
    let packages = metadata["packages"].as_array().context("`cargo metadata` names no packages")?;
    let wrong: Vec<String> =
        packages.iter().flat_map(|package| disallowed(package, &allowed_for(package), &registries)).collect();
    if !wrong.is_empty() {
        bail!("deny.toml does not allow these dependencies of {}:\n{}", folder.display(), wrong.join("\n"));
    }
    Ok(())
}

/// What of a package is not allowed, a line each. Our own packages, which come from a path, are.
fn disallowed(package: &Value, licences: &[String], registries: &[String]) -> Vec<String> {
    let Some(source) = package["source"].as_str() else { return Vec::new() };
    let called =
        format!("  {} {}", package["name"].as_str().unwrap_or("?"), package["version"].as_str().unwrap_or("?"));
    let mut wrong = Vec::new();
    if !source.strip_prefix("registry+").is_some_and(|registry| registries.iter().any(|allowed| allowed == registry)) {
        wrong.push(format!("{called}: comes from {source}"));
    }
    // Older packages write `/` for `OR`.
    match package["license"].as_str().map(|text| (text, Expression::parse_mode(text, ParseMode::LAX))) {
        None => wrong.push(format!("{called}: has no `license`")),
        Some((text, Err(error))) => {
            wrong.push(format!("{called}: the license {text:?} can't be read: {}", error.reason))
        }
        Some((text, Ok(expression))) if !expression.evaluate(|wanted| is_allowed(wanted, licences)) => {
            wrong.push(format!("{called}: the license {text:?}"));
        }
        Some(_) => {}
    }
    wrong
}

fn is_allowed(wanted: &LicenseReq, licences: &[String]) -> bool {
    let LicenseItem::Spdx { .. } = &wanted.license else { return false };
    licences.iter().any(|allowed| *allowed == wanted.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CRATES_IO: &str = "https://github.com/rust-lang/crates.io-index";

    fn wrong(license: &str, source: &str) -> String {
        let package = json!({ "name": "x", "version": "1.0.0", "license": license, "source": source });
        let licences = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
        disallowed(&package, &licences, &[CRATES_IO.to_owned()]).join("\n")
    }

    #[test]
    fn one_of_alternatives_has_to_be_allowed_and_all_that_are_required() {
        let registry = format!("registry+{CRATES_IO}");
        for license in
            ["MIT", "MIT OR GPL-3.0-only", "GPL-2.0/MIT", "MIT AND Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
        {
            assert_eq!(wrong(license, &registry), "");
        }
        for license in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "LicenseRef-mine", "no such thing", ""] {
            assert!(wrong(license, &registry).contains("license"), "{license}");
        }
    }

    #[test]
    fn a_dependency_comes_from_a_registry_that_is_named() {
        assert!(wrong("MIT", "git+https://example.com/x").contains("comes from git+https://example.com/x"));
        assert!(wrong("MIT", "registry+https://example.com/index").contains("comes from"));
        let ours = json!({ "name": "conductor-x", "version": "0.1.0", "license": null, "source": null });
        assert!(disallowed(&ours, &[], &[]).is_empty());
    }
}
