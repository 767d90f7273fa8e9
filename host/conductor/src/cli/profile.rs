//! `conductor profile`: which mode applies for which application, and which one applies now.

use std::sync::Arc;

use clap::Subcommand;
use serde_json::{Value, json};

use super::{CommandResult, Failure, Output, Paths, load, wrong};
use conductor_api::client::Client;
use conductor_config::{Diagnostics, Severity, nearest};
use conductor_rules::profile::{self, ProfileView};
use conductor_terminal::{self as terminal, outln};

#[derive(Debug, Subcommand)]
pub(super) enum ProfileCommand {
    /// List the profiles, and what is in front
    List(Output),
    /// Show one of them
    Show {
        /// The profile
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(places: &Paths, command: &ProfileCommand) -> CommandResult {
    let status = match running(places) {
        Some(status) => status,
        None => json!({ "profiles": written(places)?, "running": false }),
    };
    match command {
        ProfileCommand::List(Output { json: true }) => terminal::json(&status)?,
        ProfileCommand::List(_) => list(&status),
        ProfileCommand::Show { name, json } => show(&status, name, *json)?,
    }
    Ok(())
}

/// What the host says that runs in this home.
fn running(places: &Paths) -> Option<Value> {
    let mut answer: Value = Client::new(&places.home).get("/v1/profiles").ok()?;
    answer["running"] = true.into();
    Some(answer)
}

/// What the configuration says.
fn written(places: &Paths) -> Result<Vec<ProfileView>, Failure> {
    let loaded = load(&places.config)?;
    let mut diagnostics = Diagnostics::new(loaded.source.clone());
    let profiles = profile::compile(&loaded.config, &mut diagnostics);
    if diagnostics.count(Severity::Error) > 0 {
        return Err(wrong(diagnostics));
    }
    Ok(profiles.iter().map(Arc::as_ref).map(|profile| ProfileView::new(profile, false)).collect())
}

fn profiles(status: &Value) -> &[Value] {
    status["profiles"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("-")
}

fn apps(profile: &Value) -> String {
    profile["apps"].as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join(", ")
}

fn list(status: &Value) {
    if profiles(status).is_empty() {
        outln!("no profiles: the mode does not depend on the application in front");
    } else {
        outln!("{:<20} {:<20} {:<8} {:<36} TITLE", "PROFILE", "MODE", "APPLIES", "APPLICATIONS");
    }
    for profile in profiles(status) {
        let applies = if profile["applies"] == true { "yes" } else { "-" };
        let (name, mode) = (text(&profile["name"]), text(&profile["mode"]));
        outln!("{name:<20} {mode:<20} {applies:<8} {:<36} {}", apps(profile), text(&profile["title"]));
    }
    match (&status["front"], &status["front_unknown"]) {
        _ if status["running"] != true => outln!("(no host is running: this is what the configuration says)"),
        (Value::String(front), _) => outln!("in front: {front}"),
        (_, Value::String(reason)) => outln!("in front: not known: {reason}"),
        _ => outln!("in front: nothing"),
    }
}

fn show(status: &Value, name: &str, as_json: bool) -> CommandResult {
    let Some(profile) = profiles(status).iter().find(|profile| profile["name"] == name) else {
        let names = || profiles(status).iter().map(|profile| text(&profile["name"]));
        let mut message = format!("conductor: there is no profile {name:?}");
        if let Some(meant) = nearest(name, names()) {
            message.push_str(&format!("; did you mean {meant:?}?"));
        } else if !profiles(status).is_empty() {
            message.push_str(&format!("; there are {}", names().collect::<Vec<_>>().join(", ")));
        }
        return Err(Failure::Wrong(message));
    };
    if as_json {
        terminal::json(profile)?;
        return Ok(());
    }
    outln!("profile       {}", text(&profile["name"]));
    outln!("mode          {}", text(&profile["mode"]));
    outln!("applications  {}", apps(profile));
    outln!("title         {}", text(&profile["title"]));
    if status["running"] == true {
        outln!("applies       {}", if profile["applies"] == true { "yes" } else { "no" });
    }
    Ok(())
}
