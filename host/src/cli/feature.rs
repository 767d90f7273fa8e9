//! `conductor feature`: what is installed and how it does, and what is in a package.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Done, Failure, Places, load};
use crate::feature::Package;
use crate::feature::package::PackageInfo;
use crate::host;

pub(super) mod author;
mod build;
mod check;
mod harness;
mod new;
mod world;

/// What to do with features.
#[derive(Debug, clap::Subcommand)]
pub(super) enum FeatureCommand {
    /// List the features; with a running host, with what they have done and how often they failed
    List(super::Output),
    #[command(flatten)]
    Author(author::AuthorCommand),
    /// Show what a package says about itself. Nothing in it is run
    Inspect {
        /// The `.wasm` file
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(places: &Places, command: &FeatureCommand) -> Done {
    match command {
        FeatureCommand::List(output) => list(places, output.json),
        FeatureCommand::Author(command) => author::run(command),
        FeatureCommand::Inspect { file, json } => inspect(file, *json),
    }
}

fn list(places: &Places, json: bool) -> Done {
    let (features, running) = match running(places) {
        Some(features) => (features, true),
        None => {
            let loaded = if places.config.exists() {
                load(&places.config)?
            } else {
                crate::config::parse("", "nothing").map_err(super::wrong)?
            };
            (
                serde_json::to_value(
                    host::installed(&loaded, Some(&places.home), places.features.as_deref()).map_err(super::started)?,
                )?,
                false,
            )
        }
    };
    if json {
        println!("{}", serde_json::to_string_pretty(&features)?);
        return Ok(());
    }
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    println!(
        "{:<26} {:<8} {:<10} {:>10} {:>8} {:>8}  ACTIONS",
        "FEATURE", "VERSION", "DIGEST", "DONE", "FAILED", "TRAPPED"
    );
    for feature in features.as_array().into_iter().flatten() {
        let package = &feature["package"];
        if package.is_null() {
            println!("{:<26} NOT INSTALLED: {}", text(&feature["name"]), text(&feature["refused"]));
            continue;
        }
        let actions: Vec<String> = package["actions"].as_array().into_iter().flatten().map(text).collect();
        println!(
            "{:<26} {:<8} {:<10} {:>10} {:>8} {:>8}  {}",
            text(&package["id"]),
            text(&package["version"]),
            text(&package["digest"]).get(..8).unwrap_or("-"),
            feature["performed"].to_string(),
            feature["failed"].to_string(),
            feature["trapped"].to_string(),
            actions.join(" "),
        );
        if let Some(failure) = feature["last_failure"].as_str() {
            println!("{:<26} last failure: {failure}", "");
        }
    }
    if !running {
        println!("(no host is running: nothing was done yet)");
    }
    Ok(())
}

fn running(places: &Places) -> Option<Value> {
    #[cfg(unix)]
    {
        Some(crate::api::client::status(&places.home).ok()?["features"].take())
    }
    #[cfg(not(unix))]
    {
        let _ = places;
        None
    }
}

fn inspect(file: &Path, json: bool) -> Done {
    let package = Package::read(file)?;
    let info = &package.info;
    let checked = crate::feature::check::check(info);
    if json {
        let mut value = serde_json::to_value(info)?;
        value["problems"] = checked.as_ref().err().into_iter().flatten().map(ToString::to_string).collect();
        println!("{}", serde_json::to_string_pretty(&value)?);
    } else {
        print!("{}", words(info));
    }
    match checked {
        Ok(()) => Ok(()),
        Err(errors) => {
            let list: Vec<String> = errors.iter().map(|error| format!("{}: {error}", file.display())).collect();
            Err(Failure::Failed(anyhow::anyhow!("{}", list.join("\n"))))
        }
    }
}

/// A package in a few words. Nothing in it is run.
///
/// # Errors
/// What is wrong with it.
fn inspected(file: &Path) -> Result<String, Failure> {
    let info = Package::read(file)?.info;
    crate::feature::check::check(&info).map_err(|errors| {
        let list: Vec<String> = errors.iter().map(|error| format!("{}: {error}", file.display())).collect();
        Failure::Failed(anyhow::anyhow!("{}", list.join("\n")))
    })?;
    let words = words(&info);
    Ok(words.split("imports\n").next().unwrap_or(&words).to_owned())
}

fn words(info: &PackageInfo) -> String {
    use std::fmt::Write as _;
    let descriptor = &info.descriptor;
    let mut out = String::new();
    // Writing to a String can't fail.
    let _ = writeln!(out, "{} {} ({})", descriptor.name, descriptor.version, descriptor.id);
    let _ = writeln!(out, "  {}", descriptor.summary.as_deref().unwrap_or("no summary"));
    let _ = writeln!(out, "contract   {}", descriptor.contract);
    let _ = writeln!(out, "license    {}", descriptor.license.as_deref().unwrap_or("not said"));
    let _ = writeln!(out, "size       {} bytes", info.size);
    let _ = writeln!(out, "digest     sha256:{}", info.digest);
    let _ = writeln!(out, "asks for");
    for request in &descriptor.capabilities {
        let need = if request.required { "required" } else { "optional" };
        let (name, scope) = (request.capability.name(), request.capability.scope());
        let scope = if scope.is_empty() { scope } else { format!(": {scope}") };
        let _ = writeln!(out, "  {name}{scope} ({need}): {}", request.reason);
    }
    if descriptor.capabilities.is_empty() {
        let _ = writeln!(out, "  nothing");
    }
    let _ = writeln!(out, "adds");
    for action in &descriptor.actions {
        let _ = writeln!(out, "  action {}: {}", action.name, action.summary);
    }
    for tool in &descriptor.tools {
        let _ = writeln!(out, "  tool {} ({}): {}", tool.name, tool.tier.as_str(), tool.summary);
    }
    for hook in &descriptor.hooks {
        let _ = writeln!(out, "  hook {}: {}", hook.point.as_str(), hook.summary);
    }
    for task in &descriptor.tasks {
        let _ = writeln!(out, "  task {}: {}", task.name, task.summary);
    }
    for skill in &descriptor.skills {
        let _ = writeln!(out, "  skill {}: {}", skill.name, skill.summary);
    }
    for (title, names) in [("imports", &info.imports), ("exports", &info.exports)] {
        let _ = writeln!(out, "{title}");
        for name in names {
            let _ = writeln!(out, "  {name}");
        }
    }
    out
}
