//! The commands within a conversation at a terminal: `/model`, `/cost`, `/undo` and others.

use super::super::{CommandResult, Failure, plan};
use super::Talk;
use conductor_chat::costs::dollars;
use conductor_chat::models::ModelSummary;
use conductor_chat::store::usage::UsageBy;
use conductor_terminal::{self as terminal, Table, errln};

/// The commands, and what each does.
const COMMANDS: [(&str, &str); 9] = [
    ("/model [NAME]", "go on with another model; without a name, list them"),
    ("/cost", "what this conversation took and cost"),
    ("/plan [ID]", "decide about a plan; without an id, list those that wait"),
    ("/undo", "take the last applied plan back"),
    ("/skills", "list the skills that a model can read"),
    ("/open N", "show all of the tool call with this number"),
    ("/new", "begin another conversation"),
    ("/help", "this list"),
    ("/quit", "end; Ctrl-D does the same, and Ctrl-C ends a turn"),
];

/// What decides about a plan, before its id.
pub(super) const PLAN: &str = "/plan";

/// The words that Tab completes.
pub(super) const WORDS: [&str; 9] = ["/model", "/cost", PLAN, "/undo", "/skills", "/open", "/new", "/help", "/quit"];

/// What is next.
pub(super) enum Next {
    /// The next line.
    Read,
    /// It is no command: a model is to hear it.
    Say,
    /// The end.
    Quit,
}

impl Talk<'_> {
    /// Does what a line says, if it is a command. What goes wrong is said, and the conversation goes on.
    pub(super) fn command(&mut self, line: &str) -> Result<Next, Failure> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let done = match word {
            "" => Ok(()),
            "/quit" | "/exit" => return Ok(Next::Quit),
            "/help" => {
                COMMANDS.iter().for_each(|(command, what)| errln!("  {command:<14} {what}"));
                Ok(())
            }
            "/model" => self.choose_model(rest),
            "/cost" => self.print_cost(),
            PLAN => self.decide_plan(rest),
            "/undo" => self.undo(),
            "/skills" => self.list_skills(),
            "/open" => {
                self.shown.open(rest);
                Ok(())
            }
            "/new" => self.begin_anew(),
            _ if word.starts_with('/') => {
                let near = conductor_config::nearest(word, WORDS);
                let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                errln!("there is no command {word}{near}; /help lists them");
                Ok(())
            }
            _ => return Ok(Next::Say),
        };
        match done {
            Ok(()) => {}
            Err(Failure::Failed(error)) => errln!("{error:#}"),
            Err(Failure::Wrong(why)) => errln!("{}", why.trim_start_matches("conductor: ")),
            Err(other) => return Err(other),
        }
        Ok(Next::Read)
    }

    fn choose_model(&mut self, name: &str) -> CommandResult {
        let models = self.client.models()?;
        if name.is_empty() {
            let mut table = Table::new(["MODEL", "PROVIDER", "ITS NAME THERE"]);
            for ModelSummary { name, provider, model, .. } in &models {
                table.row([name, provider, model]);
            }
            terminal::eprint_table(&table);
        } else if models.iter().any(|model| model.name == name) {
            self.model = Some(name.to_owned());
            errln!("{name} is asked from now on");
        } else {
            let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
            errln!("there is no model {name:?}; there are: {}", names.join(", "));
        }
        Ok(())
    }

    fn print_cost(&self) -> CommandResult {
        let id = self.id.to_string();
        let rows = self.client.usage(UsageBy::Conversation)?;
        let Some(row) = rows.iter().find(|row| row.of == id) else {
            errln!("nothing was asked yet");
            return Ok(());
        };
        let cost = match row.unknown {
            0 => dollars(row.cost),
            unknown if unknown == row.exchanges => "at an unknown price".to_owned(),
            unknown => format!("{} and {unknown} answers at an unknown price", dollars(row.cost)),
        };
        let day = row.prices_as_of.as_deref();
        let day = day.map(|day| format!(" by prices as of {day}")).unwrap_or_default();
        let estimated = match row.estimated {
            0 => String::new(),
            count => format!("; {count} of them broke off or were not counted, and are estimated"),
        };
        let (answers, tokens) = (row.exchanges, &row.tokens);
        errln!("{answers} answers: {} tokens read, {} written, {cost}{day}{estimated}", tokens.input, tokens.output);
        Ok(())
    }

    fn decide_plan(&self, id: &str) -> CommandResult {
        let plans = self.client.plans()?;
        if id.is_empty() {
            if plans.is_empty() {
                errln!("no plan waits");
            }
            for plan in &plans {
                errln!("  {}  {}", plan.id.get(..12).unwrap_or(&plan.id), plan.description);
            }
            return Ok(());
        }
        let mut fit = plans.iter().filter(|plan| plan.id.starts_with(id));
        match (fit.next(), fit.next()) {
            (Some(plan), None) => plan::offer(self.places, &plan.id, PLAN),
            (None, _) => Err(Failure::Wrong(format!("no plan {id} waits; /plan lists those that do"))),
            (Some(_), Some(_)) => {
                Err(Failure::Wrong(format!("several plans begin with {id}; write more of its digits")))
            }
        }
    }

    fn undo(&self) -> CommandResult {
        let undone = self.client.undo()?;
        errln!("taken back: {}", undone.description);
        Ok(())
    }

    fn list_skills(&self) -> CommandResult {
        let skills = self.client.skills()?;
        if skills.is_empty() {
            errln!("there is no skill");
            return Ok(());
        }
        let mut table = Table::new(["SKILL", "WHEN IT HELPS"]);
        skills.iter().for_each(|skill| table.row([&skill.name, &skill.description]));
        terminal::eprint_table(&table);
        Ok(())
    }

    fn begin_anew(&mut self) -> CommandResult {
        self.id = self.client.begin_conversation(self.model.as_deref())?.id;
        errln!("conversation {}", self.id);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_completed_and_explained() {
        let explained = COMMANDS.map(|(command, _)| command.split(' ').next().unwrap_or_default());
        assert_eq!(explained, WORDS);
    }
}
