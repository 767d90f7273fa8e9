//! `conductor config`: validates it, migrates it to the current form, compares it, or prints its schema.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::plan::Agreed;
use super::{CommandResult, Failure, Output, Paths, config_file, load, plan, unreadable, warn};
use conductor_api::client::Client;
use conductor_api::types::InForce;
use conductor_config as config;
use conductor_config::include::Included;
use conductor_config::migrate::{MigrateError, migrated_file};
use conductor_config::{Loaded, Severity};
use conductor_config_text::diff::unified;
use conductor_host::host;
use conductor_host::host::StartError;
use conductor_rules::Compiled;
use conductor_stdx::plain_file;
use conductor_stdx::plural::plural;
use conductor_terminal::{self as terminal, Lines, errln, outln};

/// What to do with the configuration.
#[derive(Debug, clap::Subcommand)]
pub(super) enum ConfigCommand {
    /// Check the file as `run` would: every mistake, with its place. Opens no port
    #[command(alias = "check")]
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
    let name = loaded.source.file();
    let mut changed = Vec::new();
    for (file, before) in loaded.source.files() {
        let after = migrated_file(&loaded, file, before).map_err(|error| match error {
            MigrateError::Wrong(diagnostics) => super::wrong(*diagnostics),
            other => Failure::Failed(other.into()),
        })?;
        if after != before {
            changed.push((file, before, after));
        }
    }
    let report = |lines: &[String], backups: &[PathBuf]| -> CommandResult {
        if agreed.json {
            let answer = json!({ "file": name, "changed": !backups.is_empty(), "backup": backups.first() });
            terminal::json(&answer)?;
        } else {
            lines.iter().for_each(|line| outln!("{line}"));
        }
        Ok(())
    };
    if changed.is_empty() {
        return report(&[format!("{name} has no old form in it")], &[]);
    }
    let mut changes = Lines::new();
    for (file, before, after) in &changed {
        changes.push_text("", &unified(file, before, after));
    }
    terminal::eprint(&changes);
    if !plan::agrees("Write this?", agreed)? {
        return report(&["nothing is written".to_owned()], &[]);
    }
    let (mut backups, mut done) = (Vec::new(), Vec::new());
    for (file, before, after) in &changed {
        let backup = config_file::replace_text(file, before, after)?;
        done.push(format!("{file} is in today's form (the file as it was: {})", backup.display()));
        backups.push(backup);
    }
    report(&done, &backups)
}

fn differences(places: &Paths, as_json: bool) -> CommandResult {
    let InForce { file, text: before, included, refused, .. } = Client::new(&places.home).config()?;
    // The host may have been started elsewhere.
    let path = if Path::new(&file).is_absolute() { Path::new(&file) } else { &places.config };
    let after = plain_file::read_text(path, plain_file::MAX_TEXT)
        .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    let name = path.display().to_string();
    let included_now = Included::read(&after, &name);
    let on_disk = included_now.source(&after, &name);
    let was = |file: &str| included.iter().find(|one| one.file == file).map_or("", |one| one.text.as_str());
    let mut changes = unified(&file, &before, &after);
    for (included, now) in on_disk.files().skip(1) {
        changes.push_str(&unified(included, was(included), now));
    }
    for gone in included.iter().filter(|one| on_disk.files().all(|(file, _)| file != one.file)) {
        changes.push_str(&unified(&gone.file, &gone.text, ""));
    }
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
    Ok(match config::read(&text, &places.config.display().to_string()) {
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
