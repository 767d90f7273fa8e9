//! `conductor config`: check it, or print its schema.

use serde_json::json;

use super::{Done, Failure, Output, Places, load, unreadable, warn};
use crate::config::Severity;
use crate::host::StartError;
use crate::{config, host};

/// What to do with the configuration.
#[derive(Debug, clap::Subcommand)]
pub(super) enum ConfigCommand {
    /// Check the file as `run` would: every mistake, with its place. Opens no port
    Validate(Output),
    /// Print the JSON Schema of the file
    Schema,
}

pub(super) fn run(places: &Places, command: &ConfigCommand) -> Done {
    match command {
        ConfigCommand::Schema => println!("{}", serde_json::to_string_pretty(&config::json_schema())?),
        ConfigCommand::Validate(Output { json: true }) => validate(places)?,
        ConfigCommand::Validate(_) => {
            let loaded = load(&places.config)?;
            let compiled =
                host::check(&loaded, Some(&places.home), places.features.as_deref()).map_err(super::started)?;
            warn(&compiled.warnings);
            let Ok(rules) = u32::try_from(compiled.rules.rules().len()) else { return Ok(()) };
            println!("{}: fine; {rules} rules, {} modes", places.config.display(), compiled.rules.modes().len());
        }
    }
    Ok(())
}

/// The same, for programs: everything is printed, and the exit code says whether the file would be taken.
fn validate(places: &Places) -> Done {
    let text = std::fs::read_to_string(&places.config).map_err(|error| unreadable(&places.config, &error))?;
    let checked = config::parse(&text, &places.config.display().to_string())
        .map_err(StartError::Config)
        .and_then(|loaded| host::check(&loaded, Some(&places.home), places.features.as_deref()));
    let (found, sizes) = match checked {
        Ok(compiled) => {
            let sizes = json!({ "rules": compiled.rules.rules().len(), "modes": compiled.rules.modes().len() });
            (compiled.warnings, sizes)
        }
        Err(StartError::Config(wrong)) => (wrong, json!({})),
        Err(other) => return Err(super::started(other)),
    };
    let errors = found.count(Severity::Error);
    let mut told = serde_json::to_value(&found)?;
    told["valid"] = (errors == 0).into();
    sizes.as_object().into_iter().flatten().for_each(|(name, size)| told[name] = size.clone());
    println!("{}", serde_json::to_string_pretty(&told)?);
    match errors {
        0 => Ok(()),
        _ => Err(Failure::Wrong(format!("{}: {errors} mistakes", places.config.display()))),
    }
}
