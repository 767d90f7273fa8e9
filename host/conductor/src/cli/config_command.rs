//! `conductor config`: validates it, migrates it to the current form, compares it, or prints its schema.

use std::path::Path;

use serde_json::json;

use super::plan::Agreed;
use super::{CommandResult, Failure, Output, Paths, load, plan, unreadable, warn};
use conductor_api::client::Client;
use conductor_api::types::InForce;
use conductor_config as config;
use conductor_config::migrate::{MigrateError, migrated};
use conductor_config::{Loaded, Severity};
use conductor_config_text::diff::unified;
use conductor_host::host;
use conductor_host::host::StartError;
use conductor_rules::Compiled;
use conductor_stdx::atomic_file::{keep_backup, replace};
use conductor_stdx::plain_file;
use conductor_stdx::plural::plural;
use conductor_terminal::{self as terminal, Lines, errln, outln};

/// What to do with the configuration.
#[derive(Debug, clap::Subcommand)]
pub(super) enum ConfigCommand {
    /// Check the file as `run` would: every mistake, with its place. Opens no port
    Validate(Output),
    /// Print the JSON Schema of the file
    Schema,
    /// Bring old forms in the file to today's, after showing what changes; the file as it was is kept beside it
    Migrate(Agreed),
    /// Show what the file on the disk changes, beside what the running host has in force
    Diff(Output),
}

pub(super) fn run(places: &Paths, command: &ConfigCommand) -> CommandResult {
    match command {
        ConfigCommand::Schema => terminal::json(&config::json_schema())?,
        ConfigCommand::Validate(Output { json: true }) => validate(places)?,
        ConfigCommand::Validate(_) => {
            let compiled = checked(places)?.map_err(super::started)?;
            warn(&compiled.warnings);
            let rules = plural(compiled.rules.rules().len(), "rule");
            let modes = plural(compiled.rules.modes().len(), "mode");
            outln!("{}: fine; {rules}, {modes}", places.config.display());
        }
        ConfigCommand::Migrate(agreed) => migrate(places, agreed)?,
        ConfigCommand::Diff(output) => differences(places, output.json)?,
    }
    Ok(())
}

fn migrate(places: &Paths, agreed: &Agreed) -> CommandResult {
    let loaded = load(&places.config)?;
    let (before, name) = (loaded.source.text(), loaded.source.file());
    let after = migrated(before, name).map_err(|error| match error {
        MigrateError::Wrong(diagnostics) => super::wrong(*diagnostics),
        other => Failure::Failed(other.into()),
    })?;
    let report = |text: String, backup: Option<&Path>| -> CommandResult {
        if agreed.json {
            let answer = json!({ "file": name, "changed": backup.is_some(), "backup": backup });
            terminal::json(&answer)?;
        } else {
            outln!("{text}");
        }
        Ok(())
    };
    if after == before {
        return report(format!("{name} has no old form in it"), None);
    }
    let mut changes = Lines::new();
    changes.push_text("", &unified(name, before, &after));
    terminal::eprint(&changes);
    if !plan::agrees("Write this?", agreed)? {
        return report("nothing is written".to_owned(), None);
    }
    // What a link names is replaced, not the link.
    let file = places.config.canonicalize()?;
    if plain_file::read_text(&file, plain_file::MAX_TEXT)? != before {
        return Err(Failure::Failed(anyhow::anyhow!("{name} has changed meanwhile; nothing is written")));
    }
    let backup = keep_backup(&file)?;
    replace(&file, after.as_bytes())?;
    report(format!("{name} is in today's form (the file as it was: {})", backup.display()), Some(&backup))
}

fn differences(places: &Paths, as_json: bool) -> CommandResult {
    let InForce { file, text: before, refused, .. } = Client::new(&places.home).config()?;
    // The host may have been started elsewhere.
    let path = if Path::new(&file).is_absolute() { Path::new(&file) } else { &places.config };
    let after = plain_file::read_text(path, plain_file::MAX_TEXT)
        .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    let changes = unified(&file, &before, &after);
    if as_json {
        let answer = json!({ "file": file, "same": changes.is_empty(), "diff": changes, "refused": refused });
        terminal::json(&answer)?;
        return Ok(());
    }
    if changes.is_empty() {
        outln!("{file} is in force as it is");
        return Ok(());
    }
    let mut lines = Lines::new();
    lines.push_text("", &changes);
    terminal::print(&lines);
    if let Some(refused) = refused {
        errln!("{refused}; `conductor config validate` says why");
    }
    Ok(())
}

/// Checks the file as far as it can be: a mistake in the file's own form keeps none from being found that only
/// features know of.
fn checked(places: &Paths) -> Result<Result<Compiled, StartError>, Failure> {
    let text = plain_file::read_text(&places.config, plain_file::MAX_TEXT)
        .map_err(|error| unreadable(&places.config, &error))?;
    let check = |loaded: &Loaded| host::check(loaded, Some(&places.home), places.features.as_deref());
    Ok(match config::parse(&text, &places.config.display().to_string()) {
        Ok(loaded) => check(&loaded),
        Err(wrong) => match config::salvage(&wrong).map(|rest| check(&rest)) {
            Some(Err(StartError::Config(all))) => Err(StartError::Config(all)),
            _ => Err(StartError::Config(wrong)),
        },
    })
}

/// The same, for programs: everything is printed, and the exit code says whether the file would be taken.
fn validate(places: &Paths) -> CommandResult {
    let (found, sizes) = match checked(places)? {
        Ok(compiled) => {
            let sizes = json!({ "rules": compiled.rules.rules().len(), "modes": compiled.rules.modes().len() });
            (compiled.warnings, sizes)
        }
        Err(StartError::Config(wrong)) => (wrong, json!({})),
        Err(other) => return Err(super::started(other)),
    };
    let errors = found.count(Severity::Error);
    let mut report = serde_json::to_value(&found)?;
    report["valid"] = (errors == 0).into();
    sizes.as_object().into_iter().flatten().for_each(|(name, size)| report[name] = size.clone());
    terminal::json(&report)?;
    match errors {
        0 => Ok(()),
        _ => Err(Failure::Wrong(format!("{}: {}", places.config.display(), plural(errors, "mistake")))),
    }
}
