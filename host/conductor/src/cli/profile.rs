//! `conductor profile`: which mode applies for which application, and which one applies now.

use std::sync::Arc;

use clap::Subcommand;
use serde::Serialize;

use super::{CommandResult, Failure, Output, Paths, load, wrong};
use conductor_api::client::{Client, if_running};
use conductor_api::types::Profiles;
use conductor_config::{Diagnostics, Severity, nearest};
use conductor_rules::profile::{self, ProfileView};
use conductor_terminal::{self as terminal, Table, outln};

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
    let listing = match if_running(Client::new(&places.home).profiles())? {
        Some(Profiles { profiles, front, front_unknown, mode }) => {
            Listing { profiles, now: Some(Now { front, front_unknown, mode }), running: true }
        }
        None => Listing { profiles: written(places)?, now: None, running: false },
    };
    match command {
        ProfileCommand::List(Output { json: true }) => terminal::json(&listing)?,
        ProfileCommand::List(_) => list(&listing),
        ProfileCommand::Show { name, json } => show(&listing, name, *json)?,
    }
    Ok(())
}

/// The profiles, and how things are.
#[derive(Debug, Serialize)]
struct Listing {
    profiles: Vec<ProfileView>,
    /// `None` if no host runs in this home.
    #[serde(flatten)]
    now: Option<Now>,
    running: bool,
}

/// What the running host goes by.
#[derive(Debug, Serialize)]
struct Now {
    /// The application in front; `None` if there is none or it is unknown.
    front: Option<String>,
    /// Why it is not known which one is in front.
    front_unknown: Option<String>,
    /// The active mode.
    mode: Option<String>,
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

fn list(listing: &Listing) {
    if listing.profiles.is_empty() {
        outln!("no profiles: the mode does not depend on the application in front");
    } else {
        let mut table = Table::new(["PROFILE", "MODE", "APPLIES", "APPLICATIONS", "TITLE"]);
        for ProfileView { name, mode, apps, title, applies } in &listing.profiles {
            let applies = if *applies { "yes" } else { "-" };
            table.row([name, mode, &applies, &apps.join(", "), &title.as_deref().unwrap_or("-")]);
        }
        terminal::print_table(&table);
    }
    match &listing.now {
        None => outln!("(no host is running: this is what the configuration says)"),
        Some(Now { front: Some(front), .. }) => outln!("in front: {front}"),
        Some(Now { front_unknown: Some(reason), .. }) => outln!("in front: not known: {reason}"),
        Some(_) => outln!("in front: nothing"),
    }
}

fn show(listing: &Listing, name: &str, as_json: bool) -> CommandResult {
    let Some(profile) = listing.profiles.iter().find(|profile| profile.name == name) else {
        let names = || listing.profiles.iter().map(|profile| profile.name.as_str());
        let mut message = format!("conductor: there is no profile {name:?}");
        if let Some(meant) = nearest(name, names()) {
            message.push_str(&format!("; did you mean {meant:?}?"));
        } else if !listing.profiles.is_empty() {
            message.push_str(&format!("; there are {}", names().collect::<Vec<_>>().join(", ")));
        }
        return Err(Failure::Wrong(message));
    };
    if as_json {
        terminal::json(profile)?;
        return Ok(());
    }
    let ProfileView { name, mode, apps, title, applies } = profile;
    outln!("profile       {name}");
    outln!("mode          {mode}");
    outln!("applications  {}", apps.join(", "));
    outln!("title         {}", title.as_deref().unwrap_or("-"));
    if listing.running {
        outln!("applies       {}", if *applies { "yes" } else { "no" });
    }
    Ok(())
}
