//! `conductor learn --map`: has a person decide about the plan that maps a control that was moved.

use serde_json::Value;

use super::tool::{asked, proposed};
use super::{Failure, Paths, named, plan};
use conductor_api::client::Client;
use conductor_learn_mapping::{self as learn_mapping, LearnError, Learned};
use conductor_terminal as terminal;
use conductor_terminal::{errln, outln};

/// What is to be mapped, as the command line says.
#[derive(Debug)]
pub(super) struct MapOptions<'a> {
    /// `TYPE`, `TYPE VALUE` or `TYPE { key = value }`.
    pub(super) action: &'a str,
    /// The mode; `None` for every mode.
    pub(super) mode: Option<&'a str>,
    /// Whether any device is meant; `None` to ask.
    pub(super) any: Option<bool>,
    /// Whether to print JSON, and not to ask.
    pub(super) json: bool,
}

/// Proposes a mapping of what was moved last, and has a person at a terminal decide.
pub(super) fn propose(
    places: &Paths,
    learned: &Learned,
    action: &Value,
    wanted: &MapOptions<'_>,
) -> Result<(), Failure> {
    let Some(control) = learned.controls.first() else {
        return Err(failed("something was moved, but nothing that a mapping can wait for".into()));
    };
    let is_any = match wanted.any {
        Some(any) => any,
        None if wanted.json || !terminal::is_interactive() => false,
        None => {
            let answer = terminal::ask(format_args!("For {:?} alone, or for any device? [this/any]", control.device))?;
            matches!(answer.as_str(), "a" | "any")
        }
    };
    let name = named::event(&named::of_host(places), &control.device, &control.last);
    let name = name.as_deref().unwrap_or(&control.kind);
    let mode = wanted.mode;
    let mapped = learn_mapping::MappingRequest { action, text: wanted.action, name, mode, any: is_any, light: None };
    // The last call is the one that proposes.
    let mut last = None;
    let mut call =
        |name: &str, args: &Value| asked(places, name, args).map(|called| last.insert(called).result.clone());
    let config = || -> Result<String, Failure> { Ok(Client::new(&places.home).config()?.text) };
    let result = learn_mapping::propose(&mut call, config, learned, control, mapped);
    let mut result = result.map_err(|error| failure(error, ""))?;
    let called = last.ok_or_else(|| failed("no tool was called".into()))?;
    let id = proposed(&called)?;
    if wanted.json {
        if result.is_object() {
            result["plan"] = id.into();
        }
        terminal::json(&result)?;
        return Ok(());
    }
    if terminal::is_interactive() {
        return plan::offer(places, id, plan::APPLY);
    }
    outln!("{id}");
    errln!("it waits: `conductor plan show {id}`, `conductor plan apply {id}`");
    Ok(())
}

/// The action that a text means.
///
/// # Errors
/// What is wrong with it, and what the type takes.
pub(super) fn action(places: &Paths, text: &str) -> Result<Value, Failure> {
    let action = learn_mapping::action(&mut |name, args| asked(places, name, args).map(|called| called.result), text);
    action.map_err(|error| failure(error, &format!("--map {text:?}: ")))
}

fn failed(why: String) -> Failure {
    Failure::Failed(anyhow::Error::msg(why))
}

pub(super) fn failure(error: LearnError<Failure>, about: &str) -> Failure {
    match error {
        LearnError::Wrong(why) => Failure::Wrong(format!("conductor: {about}{why}")),
        LearnError::Failed(why) => failed(why),
        LearnError::Tool(failure) => failure,
    }
}
