//! `conductor mode`: shows and changes the active mode.

use clap::Subcommand;

use super::{CommandResult, Output, Paths};
use conductor_api::client::Client;
use conductor_terminal::{self as terminal, outln};

#[derive(Debug, Subcommand)]
pub(super) enum ModeCommand {
    /// List the modes of the running host, and say which is active
    List(Output),
    /// Make another mode active
    Switch {
        /// The mode
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(places: &Paths, command: &ModeCommand) -> CommandResult {
    match command {
        ModeCommand::List(output) => {
            let answer = Client::new(&places.home).modes()?;
            if output.json {
                terminal::json(&answer)?;
                return Ok(());
            }
            if answer.modes.is_empty() {
                outln!("no modes: every mapping is global");
            }
            for mode in &answer.modes {
                outln!("{} {mode}", if answer.mode.as_ref() == Some(mode) { "*" } else { " " });
            }
        }
        ModeCommand::Switch { name, json } => {
            let answer = Client::new(&places.home).switch_mode(name)?;
            if *json {
                terminal::json(&answer)?;
            }
        }
    }
    Ok(())
}
