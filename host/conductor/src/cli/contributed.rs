//! `conductor FEATURE COMMAND`: the commands that features declare for their tools.
//!
//! The running host says which there are. Each is a [`clap::Command`] made of the tool's declaration and of the schema of
//! its arguments, so that `--help` and mistakes are as they are everywhere. What it prints is a feature's text.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches};
use conductor_api::client::Client;
use conductor_host::control::gate::ToolView;
use conductor_package::descriptor::{CommandDeclaration, RESERVED_OPTIONS, is_door_name};
use conductor_terminal::{self as terminal, Lines};
use serde_json::{Map, Value};

use super::{Failure, Paths, ended, misread, tool};

/// Exit codes that a result may ask for.
const EXIT_CODES: std::ops::RangeInclusive<u64> = 0..=99;

/// Runs `words`, a feature's name and what follows it. `None` if the running host has no feature with commands of that
/// name.
pub(super) fn run(places: &Paths, words: &[OsString]) -> Option<ExitCode> {
    let feature = words.first()?.to_str()?;
    let tools = match Client::new(&places.home).tools() {
        Ok(tools) => tools,
        Err(error) => {
            return Some(ended(Err(Failure::Wrong(format!(
                "conductor: {feature:?} is no command of the program, and which commands features have is known to the \
                 running host: {error}"
            )))));
        }
    };
    let tools: Vec<&ToolView> = tools.iter().filter(|tool| name(tool) == feature && declared(tool).is_some()).collect();
    if tools.is_empty() {
        return None;
    }
    let mut line = clap::Command::new(format!("conductor {feature}"))
        .bin_name(format!("conductor {feature}"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommands(tools.iter().filter_map(|tool| Some(command(tool, declared(tool)?))));
    let parsed = match line.try_get_matches_from_mut(words) {
        Ok(parsed) => parsed,
        // It quotes what was typed: the message is made again for words without hidden characters.
        Err(error) => {
            let typed = words.iter().map(|word| terminal::escape(&word.to_string_lossy()).into_owned());
            return Some(misread(&error, || line.try_get_matches_from_mut(typed).err()));
        }
    };
    let (chosen, matches) = parsed.subcommand()?;
    let (tool, command) =
        tools.iter().find_map(|tool| Some((tool, declared(tool)?)).filter(|it| it.1.name == chosen))?;
    Some(called(places, tool, command, matches).unwrap_or_else(|failure| match (failure, &command.exit_code) {
        // 1 would be taken for what the result says.
        (Failure::Failed(error), Some(_)) => {
            ended(Err(Failure::Wrong(format!("conductor: {}", super::with_causes(&error)))))
        }
        (failure, _) => ended(Err(failure)),
    }))
}

/// What the configuration calls the tool's feature.
fn name(tool: &ToolView) -> &str {
    tool.feature.rsplit(':').next().unwrap_or_default()
}

fn declared(tool: &ToolView) -> Option<&CommandDeclaration> {
    tool.tool.doors.command.as_ref()
}

/// What an argument takes, by the schema of the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    /// Text, several times.
    Texts,
    Flag,
    /// A number, or anything else that JSON can say.
    Json,
}

/// A property of an object's schema, with the schemas that it stands for.
struct Property<'s> {
    name: &'s str,
    kind: Kind,
    description: &'s str,
}

/// The arguments of a tool, by name.
fn properties(input: &Value) -> impl Iterator<Item = Property<'_>> {
    input["properties"].as_object().into_iter().flatten().map(|(name, schema)| {
        let target = resolved(input, schema);
        let description = schema["description"].as_str().or(target["description"].as_str()).unwrap_or_default();
        Property { name, kind: kind(input, target), description }
    })
}

/// What a schema refers to, past references and a choice between that and null.
fn resolved<'s>(root: &'s Value, mut schema: &'s Value) -> &'s Value {
    // A schema that refers to itself ends here.
    for _ in 0..8 {
        let choices = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
        let not_null = || choices?.iter().find(|choice| choice["type"] != "null");
        if let Some(target) = schema["$ref"].as_str().and_then(|path| root.pointer(path.strip_prefix('#')?)) {
            schema = target;
        } else if let Some(choice) = not_null().filter(|_| schema["type"].is_null()) {
            schema = choice;
        } else {
            break;
        }
    }
    schema
}

fn kind(root: &Value, schema: &Value) -> Kind {
    let is = |schema: &Value, kind: &str| match &schema["type"] {
        Value::String(one) => one == kind,
        Value::Array(several) => several.iter().any(|one| one == kind),
        _ => false,
    };
    if is(schema, "string") || schema["const"].is_string() || schema["enum"][0].is_string() {
        Kind::Text
    } else if is(schema, "boolean") {
        Kind::Flag
    } else if is(schema, "array") && is(resolved(root, &schema["items"]), "string") {
        Kind::Texts
    } else {
        Kind::Json
    }
}

/// The command of a tool. What a feature says in it can't steer the terminal, and no two options have one name.
fn command(tool: &ToolView, declared: &CommandDeclaration) -> clap::Command {
    let mut command = clap::Command::new(declared.name.clone())
        .about(terminal::excerpt(&tool.tool.summary, terminal::MAX_TEXT))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print the whole result as JSON"))
        .arg(
            Arg::new("args").long("args").value_name("JSON").help("Arguments as a JSON object; options come before it"),
        )
        .arg(Arg::new("confirm").long("confirm").value_name("ID").help("Agree to what this confirmation says"));
    let mut taken: BTreeSet<String> = RESERVED_OPTIONS.map(str::to_owned).into();
    taken.extend(declared.options.keys().cloned());
    let schema = tool.tool.input.value();
    for property in properties(&schema) {
        // Where a description in a schema has its line ends says nothing.
        let description = property.description.split_whitespace().collect::<Vec<_>>().join(" ");
        let help = terminal::excerpt(&description, terminal::MAX_TEXT);
        let arg = Arg::new(id(property.name)).help(help).action(match property.kind {
            Kind::Texts => ArgAction::Append,
            Kind::Text | Kind::Flag | Kind::Json => ArgAction::Set,
        });
        if declared.operand.as_deref() == Some(property.name) {
            command = command.arg(arg.value_name(terminal::escape(property.name).to_uppercase()));
            continue;
        }
        let given =
            declared.options.iter().filter(|(_, argument)| *argument == property.name).map(|(option, _)| option);
        let own = property.name.replace('_', "-");
        let own = (is_door_name(&own) && taken.insert(own.clone())).then_some(own);
        let mut names = given.cloned().chain(own);
        // Without a name of its own it is for `--args`.
        let Some(first) = names.next() else { continue };
        let arg = arg.long(first).visible_aliases(names.collect::<Vec<String>>());
        command = command.arg(match property.kind {
            Kind::Text => arg.value_name("TEXT"),
            Kind::Texts => arg.value_name("TEXT,...").value_delimiter(','),
            Kind::Flag => {
                arg.num_args(0..=1).require_equals(true).default_missing_value("true").value_name("true|false")
            }
            Kind::Json => arg.value_name("JSON"),
        });
    }
    command
}

/// What clap calls an argument of the tool, other than the options that every command has.
fn id(property: &str) -> String {
    format!("={property}")
}

/// The tool's arguments: what the command line says, before `--args`, before what the declaration says.
fn arguments(
    tool: &ToolView,
    declared: &CommandDeclaration,
    matches: &ArgMatches,
) -> Result<Map<String, Value>, Failure> {
    let mut args: Map<String, Value> =
        declared.defaults.iter().map(|(argument, value)| (argument.clone(), value.clone())).collect();
    if let Some(text) = matches.get_one::<String>("args") {
        args.extend(tool::object(text)?);
    }
    let schema = tool.tool.input.value();
    for property in properties(&schema) {
        let Ok(Some(values)) = matches.try_get_many::<String>(&id(property.name)) else { continue };
        let values: Vec<&String> = values.collect();
        let value = match (property.kind, values.as_slice()) {
            (Kind::Texts, values) => values.iter().map(|value| Value::String((*value).clone())).collect(),
            (Kind::Text, [.., value]) => Value::String((*value).clone()),
            (Kind::Flag | Kind::Json, [.., value]) => serde_json::from_str(value).map_err(|error| {
                Failure::Wrong(format!("conductor: {value:?} for {} is not JSON: {error}", property.name))
            })?,
            (_, []) => continue,
        };
        args.insert(property.name.to_owned(), value);
    }
    Ok(args)
}

fn called(
    places: &Paths,
    tool: &ToolView,
    declared: &CommandDeclaration,
    matches: &ArgMatches,
) -> Result<ExitCode, Failure> {
    let args = arguments(tool, declared, matches)?;
    let confirm = matches.get_one::<String>("confirm").map(String::as_str);
    let result = tool::confirmed(places, &tool.tool.name, &args, confirm)?;
    if matches.get_flag("json") {
        terminal::json(&result)?;
    } else {
        terminal::print(&shown(&result, &declared.shows));
    }
    let Some(field) = &declared.exit_code else { return Ok(ExitCode::SUCCESS) };
    let code = result[field].as_u64().filter(|code| EXIT_CODES.contains(code)).and_then(|code| u8::try_from(code).ok());
    let wrong = || {
        let (first, last) = (EXIT_CODES.start(), EXIT_CODES.end());
        Failure::Wrong(format!("conductor: the result's {field:?} is no exit code of {first} to {last}"))
    };
    Ok(ExitCode::from(code.ok_or_else(wrong)?))
}

/// A result as lines `name: value`; lists have an entry a line.
fn shown(result: &Value, fields: &[String]) -> Lines {
    let mut lines = Lines::new();
    let Value::Object(all) = result else {
        lines.push_text("", &text(result));
        return lines;
    };
    let chosen: Vec<&String> = if fields.is_empty() { all.keys().collect() } else { fields.iter().collect() };
    for name in chosen {
        match all.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::Array(entries)) if entries.is_empty() => {}
            Some(Value::Array(entries)) => {
                lines.push(format_args!("{name}:"));
                entries.iter().for_each(|entry| lines.push_text("  ", &format!("- {}", text(entry))));
            }
            Some(value) => {
                let value = text(value);
                match value.split_once('\n') {
                    None => lines.push(format_args!("{name}: {value}")),
                    Some(_) => {
                        lines.push(format_args!("{name}:"));
                        lines.push_text("  | ", &value);
                    }
                }
            }
        }
    }
    lines
}

/// A value as people read it: text as it is, an object's fields in a line.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| format!("{name} {}", text(value));
            fields.iter().map(field).collect::<Vec<_>>().join(", ")
        }
        Value::Array(entries) => entries.iter().map(text).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}
