//! `conductor tool`: the tools of features, from a shell.

use clap::Subcommand;
use serde_json::{Map, Value};

use super::{CommandResult, Failure, Output, Paths};
use conductor_api::client::{AskError, Client};
use conductor_host::control::confirmation::Confirmation;
use conductor_host::control::gate::{ToolRequest, ToolResult, ToolView};
use conductor_terminal::{self as terminal, Lines, Table, errln};

#[derive(Debug, Subcommand)]
pub(super) enum ToolCommand {
    /// List the tools of the running host
    List(Output),
    /// Call a tool and print its result
    Call {
        /// The tool
        name: String,
        /// Its arguments, a JSON object
        #[arg(default_value = "{}")]
        args: String,
        /// Without a terminal: agree to what this confirmation says, whose id the same call was answered with before
        #[arg(long, value_name = "ID")]
        confirm: Option<String>,
    },
}

pub(super) fn run(places: &Paths, command: &ToolCommand) -> CommandResult {
    match command {
        ToolCommand::List(output) => list(places, output.json),
        ToolCommand::Call { name, args, confirm } => call(places, name, args, confirm.as_deref()),
    }
}

fn list(places: &Paths, as_json: bool) -> CommandResult {
    let tools = Client::new(&places.home).tools()?;
    if as_json {
        terminal::json(&tools)?;
        return Ok(());
    }
    let mut table = Table::new(["TOOL", "TIER", "FEATURE", "WHAT IT DOES"]);
    for ToolView { feature, tool } in &tools {
        table.row([&tool.name, &tool.tier.as_str(), feature, &tool.summary]);
    }
    terminal::print_table(&table);
    Ok(())
}

fn call(places: &Paths, name: &str, args: &str, confirm: Option<&str>) -> CommandResult {
    terminal::json(&confirmed(places, name, &object(args)?, confirm)?)?;
    Ok(())
}

/// Arguments as they are typed.
pub(super) fn object(args: &str) -> Result<Map<String, Value>, Failure> {
    let args: Value = serde_json::from_str(args)
        .map_err(|error| Failure::Wrong(format!("conductor: the arguments are not JSON: {error}")))?;
    let Value::Object(args) = args else {
        return Err(Failure::Wrong("conductor: the arguments are a JSON object, such as {\"limit\": 5}".into()));
    };
    Ok(args)
}

/// The result of a tool of the running host, which a person has agreed to where that is asked for: before, as
/// `confirm` says, or now.
pub(super) fn confirmed(
    places: &Paths,
    name: &str,
    args: &Map<String, Value>,
    confirm: Option<&str>,
) -> Result<Value, Failure> {
    match sent(places, name, args, confirm) {
        Err(AskError::Confirm(asked)) if confirm.is_none() => {
            if !terminal::is_interactive() {
                terminal::eprint(&described(&asked));
                return Err(Failure::Wrong(by_hand(name, &asked)));
            }
            if !agreed(&asked)? {
                return Err(Failure::Failed(anyhow::anyhow!("not called: it was not confirmed")));
            }
            Ok(sent(places, name, args, Some(&asked.id))?.result)
        }
        answered => Ok(answered?.result),
    }
}

/// What came of a call of a tool of the running host that needs no confirmation; remarks of features, and the plans that
/// it proposed, are printed beside.
pub(super) fn asked(places: &Paths, name: &str, args: &Value) -> Result<ToolResult, Failure> {
    let args = args.as_object().cloned().unwrap_or_default();
    Ok(sent(places, name, &args, None)?)
}

/// The id of the plan that a call proposed: the host's word, since a feature could name another's plan in its result.
///
/// # Errors
/// It proposed none.
pub(super) fn proposed(called: &ToolResult) -> Result<&str, Failure> {
    called.plan().ok_or_else(|| Failure::Failed(anyhow::anyhow!("the tool proposed no plan")))
}

fn sent(
    places: &Paths,
    name: &str,
    args: &Map<String, Value>,
    confirmation: Option<&str>,
) -> Result<ToolResult, AskError> {
    let confirmation = confirmation.map(str::to_owned);
    let request = ToolRequest { args: args.clone(), confirmed: confirmation.is_some(), confirmation };
    let called = Client::new(&places.home).call_tool(name, &request)?;
    called.remarks.iter().for_each(|remark| errln!("{remark}"));
    called.plans.iter().for_each(|plan| errln!("a plan waits for a person: `conductor plan show {plan}`"));
    Ok(called)
}

/// What the call does, as the host reads it.
fn described(asked: &Confirmation) -> Lines {
    let mut lines = Lines::new();
    lines.push(format_args!("{} {}:", asked.tool, asked.effect));
    lines.push_text("  | ", &asked.shown);
    lines
}

/// A person's yes, and, where it reaches devices or as far, a second one that is not given by habit.
pub(super) fn agreed(asked: &Confirmation) -> Result<bool, Failure> {
    terminal::eprint(&described(asked));
    // What holds until the host stops can be set back, and needs no second yes.
    let warning = if asked.phrase.is_some() { "It can't be taken back. " } else { "" };
    let answer = terminal::ask(format_args!("{warning}Call it? [y/N]"))?;
    if !matches!(answer.as_str(), "y" | "Y" | "yes") {
        return Ok(false);
    }
    let Some(phrase) = &asked.phrase else { return Ok(true) };
    let typed = terminal::ask(format_args!("To agree, type {phrase:?} (without the quotation marks):"))?;
    Ok(typed == phrase.trim())
}

/// What a program reads that calls for a person elsewhere: two commands, and the second names what the first has shown.
fn by_hand(name: &str, asked: &Confirmation) -> String {
    let (id, seconds) = (&asked.id, asked.expires_in_ms / 1000);
    format!(
        "conductor: a person has to agree to each call of {name}: run it in a terminal; or, having seen what it does, run \
         it again within {seconds} s with --confirm {id}"
    )
}
