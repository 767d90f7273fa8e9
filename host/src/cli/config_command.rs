//! `conductor config`: check it, or print its schema.

use super::{Done, Places, load, warn};
use crate::{config, host};

/// What to do with the configuration.
#[derive(Debug, clap::Subcommand)]
pub(super) enum ConfigCommand {
    /// Check the file as `run` would: every mistake, with its place. Opens no port
    Validate,
    /// Print the JSON Schema of the file
    Schema,
}

pub(super) fn run(places: &Places, command: &ConfigCommand) -> Done {
    match command {
        ConfigCommand::Schema => println!("{}", serde_json::to_string_pretty(&config::json_schema())?),
        ConfigCommand::Validate => {
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
