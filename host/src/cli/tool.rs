//! `conductor tool`: the tools of features, from a shell.

use clap::Subcommand;
use serde_json::{Value, json};

use super::{Done, Failure, Output, Places};
use crate::terminal::{self, errln, outln};

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
        /// Agree to what a tool sends to devices
        #[arg(long)]
        confirm: bool,
    },
}

pub(super) fn run(places: &Places, command: &ToolCommand) -> Done {
    match command {
        ToolCommand::List(output) => list(places, output.json),
        ToolCommand::Call { name, args, confirm } => call(places, name, args, *confirm),
    }
}

fn list(places: &Places, as_json: bool) -> Done {
    let tools = crate::api::client::json(&places.home, "/v1/tools")?;
    if as_json {
        terminal::json(&tools)?;
        return Ok(());
    }
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    outln!("{:<28} {:<14} {:<28} WHAT IT DOES", "TOOL", "TIER", "FEATURE");
    for tool in tools.as_array().into_iter().flatten() {
        let (name, tier) = (text(&tool["name"]), text(&tool["tier"]));
        outln!("{name:<28} {tier:<14} {:<28} {}", text(&tool["feature"]), text(&tool["summary"]));
    }
    Ok(())
}

fn call(places: &Places, name: &str, args: &str, confirm: bool) -> Done {
    let args: Value = serde_json::from_str(args)
        .map_err(|error| Failure::Wrong(format!("conductor: the arguments are not JSON: {error}")))?;
    if !args.is_object() {
        return Err(Failure::Wrong("conductor: the arguments are a JSON object, such as {\"limit\": 5}".into()));
    }
    terminal::json(&asked(places, name, &args, confirm)?)?;
    Ok(())
}

/// What a tool of the running host answers; what features remark about it is printed beside.
pub(super) fn asked(places: &Places, name: &str, args: &Value, confirm: bool) -> Result<Value, Failure> {
    let path = format!("/v1/tools/{}", name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "-"));
    let mut answer = crate::api::client::post(&places.home, &path, &json!({ "args": args, "confirmed": confirm }))?;
    for remark in answer["remarks"].as_array().into_iter().flatten() {
        errln!("{}", remark.as_str().unwrap_or_default());
    }
    Ok(answer["result"].take())
}
