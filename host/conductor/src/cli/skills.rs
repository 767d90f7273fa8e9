//! `conductor skills`: texts with instructions that features offer to agents.

use clap::Subcommand;
use serde_json::Value;

use super::{CommandResult, Failure, Output, Paths};
use conductor_terminal::{self as terminal, Lines, outln};

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
    let skills = skills(places)?;
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    match command {
        SkillsCommand::List(Output { json: true }) => terminal::json(&skills)?,
        SkillsCommand::List(_) => {
            outln!("{:<28} {:<28} WHEN", "SKILL", "FEATURE");
            for skill in skills.as_array().into_iter().flatten() {
                outln!("{:<28} {:<28} {}", text(&skill["name"]), text(&skill["feature"]), text(&skill["summary"]));
            }
        }
        SkillsCommand::Show { name, json } => {
            let found = skills.as_array().into_iter().flatten().find(|skill| skill["name"] == name.as_str());
            let unknown = || Failure::Wrong(format!("conductor: no feature has the skill {name:?}"));
            let skill = found.ok_or_else(unknown)?;
            if *json {
                terminal::json(skill)?;
            } else {
                let mut lines = Lines::new();
                lines.push_text("", &text(&skill["text"]));
                terminal::print(&lines);
            }
        }
    }
    Ok(())
}

fn skills(places: &Paths) -> Result<Value, Failure> {
    Ok(conductor_api::client::json(&places.home, "/v1/skills")?)
}
