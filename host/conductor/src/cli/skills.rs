//! `conductor skills`: texts with instructions that features offer to agents.

use clap::Subcommand;

use super::{CommandResult, Failure, Output, Paths};
use conductor_api::client::Client;
use conductor_terminal::{self as terminal, Lines, Table};

#[derive(Debug, Subcommand)]
pub(super) enum SkillsCommand {
    /// List the skills of the running host's features
    List(Output),
    /// Print a skill
    Show {
        /// Its name
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(places: &Paths, command: &SkillsCommand) -> CommandResult {
    let skills = Client::new(&places.home).skills()?;
    match command {
        SkillsCommand::List(Output { json: true }) => terminal::json(&skills)?,
        SkillsCommand::List(_) => {
            let mut table = Table::new(["SKILL", "FEATURE", "WHEN"]);
            skills.iter().for_each(|skill| table.row([&skill.name, &skill.feature, &skill.summary]));
            terminal::print_table(&table);
        }
        SkillsCommand::Show { name, json } => {
            let unknown = || Failure::Wrong(format!("conductor: no feature has the skill {name:?}"));
            let skill = skills.iter().find(|skill| skill.name == *name).ok_or_else(unknown)?;
            if *json {
                terminal::json(skill)?;
            } else {
                let mut lines = Lines::new();
                lines.push_text("", &skill.text);
                terminal::print(&lines);
            }
        }
    }
    Ok(())
}
