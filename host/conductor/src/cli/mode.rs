//! `conductor mode`: shows and changes the active mode.

use clap::Subcommand;
use serde_json::{Value, json};

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
            let answer: Value = Client::new(&places.home).get("/v1/modes")?;
            if output.json {
                terminal::json(&answer)?;
                return Ok(());
            }
            let modes = answer["modes"].as_array().map(Vec::as_slice).unwrap_or_default();
            if modes.is_empty() {
                outln!("no modes: every mapping is global");
            }
            for mode in modes {
                outln!("{} {}", if *mode == answer["mode"] { "*" } else { " " }, mode.as_str().unwrap_or("-"));
            }
        }
        ModeCommand::Switch { name, json } => {
            let answer: Value = Client::new(&places.home).post("/v1/mode", &json!({ "mode": name }))?;
            if *json {
                terminal::json(&answer)?;
            }
        }
    }
    Ok(())
}
