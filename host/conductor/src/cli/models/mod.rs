//! `conductor models`: the models of the configuration, whether they answer, and what they cost; adding and removing
//! them.

use clap::{Subcommand, ValueEnum};

use super::{CommandResult, Failure, Output, Paths};
use conductor_api::client::Client;
use conductor_chat::conversations::ModelHealth;
use conductor_chat::costs::dollars;
use conductor_chat::models::ModelSummary;
use conductor_chat::store::usage::{UsageBy, UsageRow};
use conductor_terminal::{self as terminal, Table, outln};

mod add;
mod remove;

#[derive(Debug, Subcommand)]
pub(super) enum ModelsCommand {
    /// List the models of the configuration, and what their providers declare of them
    List(Output),
    /// Add a model: asks for the key, asks the API which models there are, and writes it by a plan
    Add(add::AddArguments),
    /// Remove a model by a plan, and with it what no other model needs
    Remove(remove::RemoveArguments),
    /// Ask models for a word each; their APIs may charge for that. Exit code 1 if one does not answer
    Check {
        /// The model, by its name under [models] [default: all]
        name: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Say what conversations and features took and cost
    Usage {
        /// By what it is added up
        #[arg(long, value_enum, default_value_t = By::Day)]
        by: By,
        #[command(flatten)]
        output: Output,
    },
}

/// By what usage is added up.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum By {
    /// By day, UTC
    Day,
    /// By model
    Model,
    /// By provider
    Provider,
    /// By conversation, or by the feature that asked
    Conversation,
}

pub(super) fn run(places: &Paths, command: &ModelsCommand) -> CommandResult {
    let client = Client::new(&places.home);
    match command {
        ModelsCommand::Add(arguments) => add::run(places, arguments),
        ModelsCommand::Remove(arguments) => remove::run(places, arguments),
        ModelsCommand::List(output) => list(&client, output.json),
        ModelsCommand::Check { name, output } => check(&client, name.as_deref(), output.json),
        ModelsCommand::Usage { by, output } => usage(&client, *by, output.json),
    }
}

fn list(client: &Client, as_json: bool) -> CommandResult {
    let models = client.models()?;
    if as_json {
        terminal::json(&models)?;
        return Ok(());
    }
    if models.is_empty() {
        print_none();
        return Ok(());
    }
    let mut table = Table::new(["MODEL", "PROVIDER", "ITS NAME THERE", "CONTEXT", "PRICES AS OF"]);
    for ModelSummary { name, provider, model, there, here, declared, .. } in &models {
        let provider = if *there { provider.clone() } else { format!("{provider} (not installed)") };
        let of = |key: &str| declared.as_ref().and_then(|declared| declared.get(key));
        let context = of("context").map_or("unknown".to_owned(), ToString::to_string);
        let priced = of("prices").is_some_and(|prices| prices.as_array().is_some_and(|prices| !prices.is_empty()));
        let text = |key| of(key).and_then(|text| text.as_str());
        let as_of = match text("prices_source") {
            Some("it is on this computer") if *here => "free: on this computer",
            Some("the configuration") => "the configuration",
            _ => text("prices_as_of").or(text("as_of")).filter(|_| priced).unwrap_or("unknown"),
        };
        table.row([name, &provider, model, &context, &as_of]);
    }
    terminal::print_table(&table);
    for (name, error) in models.iter().filter_map(|model| Some((&model.name, model.error.as_ref()?))) {
        outln!("{name} gave no answer when it was asked last: {error}");
    }
    Ok(())
}

/// How a model on this computer is added.
const LOCAL: &str = "conductor models add openai-compatible --url http://localhost:11434/v1";

/// What a person does where there is no model, line by line.
pub(super) fn none() -> [String; 2] {
    [
        "there is no model; add one: conductor models add anthropic, or gemini, openai, openrouter, litellm;"
            .to_owned(),
        format!("or one on this computer: {LOCAL}"),
    ]
}

fn print_none() {
    none().iter().for_each(|line| outln!("{line}"));
}

fn check(client: &Client, name: Option<&str>, as_json: bool) -> CommandResult {
    let names = match name {
        Some(name) => vec![name.to_owned()],
        None => client.models()?.into_iter().map(|model| model.name).collect(),
    };
    if names.is_empty() && !as_json {
        print_none();
    }
    let mut all = Vec::new();
    for name in names {
        let health = client.check_model(&name)?;
        if !as_json {
            let ModelHealth { model, error, took_ms } = &health;
            match error {
                None => outln!("{model} answers, after {took_ms} ms"),
                Some(error) => outln!("{model} gives no answer: {error}"),
            }
        }
        all.push(health);
    }
    if as_json {
        terminal::json(&all)?;
    }
    match all.iter().filter(|health| health.error.is_some()).count() {
        0 => Ok(()),
        count => Err(Failure::Failed(anyhow::anyhow!("{count} of {} models gave no answer", all.len()))),
    }
}

fn usage(client: &Client, by: By, as_json: bool) -> CommandResult {
    let by = match by {
        By::Day => UsageBy::Day,
        By::Model => UsageBy::Model,
        By::Provider => UsageBy::Provider,
        By::Conversation => UsageBy::Conversation,
    };
    let rows = client.usage(by)?;
    if as_json {
        terminal::json(&rows)?;
        return Ok(());
    }
    if rows.is_empty() {
        outln!("no model was asked yet");
        return Ok(());
    }
    let mut table = Table::new(["OF", "ANSWERS", "TOKENS READ", "OF A CACHE", "WRITTEN", "COST", "PRICES AS OF"]);
    for UsageRow { of, exchanges, tokens, cost, unknown, estimated, prices_as_of } in &rows {
        let cost = match unknown {
            0 => dollars(*cost),
            _ if unknown == exchanges => "unknown".to_owned(),
            _ => format!("{} and {unknown} answers at an unknown price", dollars(*cost)),
        };
        let exchanges = match estimated {
            0 => exchanges.to_string(),
            count => format!("{exchanges} ({count} estimated)"),
        };
        table.row([
            of,
            &exchanges,
            &tokens.input,
            &tokens.cached,
            &tokens.output,
            &cost,
            &prices_as_of.as_deref().unwrap_or_default(),
        ]);
    }
    terminal::print_table(&table);
    Ok(())
}
