//! `conductor devices`: what is known of controllers, without asking anything of the network.
//!
//! Profiles come with the program. A person's own are files in the folder `devices` of the home; one with the id of a
//! bundled profile stands in its place.

use std::path::PathBuf;

use clap::Subcommand;
use conductor_control_names::own;
use conductor_device_profile::{Control, Library, Mistake, Profile, schema};
use conductor_terminal::{self as terminal, Table, errln, outln};
use serde_json::json;

use super::{CommandResult, Failure, Output, Paths, suggest};

#[derive(Debug, Subcommand)]
pub(super) enum DevicesCommand {
    /// List the controllers that are known
    List(Output),
    /// Print what is known of one: its controls, modes and lights, and the documents that say so
    Show {
        /// Its id, as `list` has it
        id: String,
        /// Print JSON, with every control by itself
        #[arg(long)]
        json: bool,
    },
    /// Find controllers by maker, name, kind, port or USB ids
    Search {
        /// Words, each the beginning of one of theirs
        #[arg(required = true)]
        words: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Suggest a first setup for a device that is there, as a plan: its name, keys for its transport, its lights
    Suggest {
        /// Its input: a binding, or a port's own name
        port: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check the file of a profile, and name every mistake with its line; exit code 1 if there is one
    Check {
        /// The files [default: those that come with the program, and those of the home]
        files: Vec<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON schema of the file of a profile
    Schema,
}

pub(super) fn run(places: &Paths, command: &DevicesCommand) -> CommandResult {
    match command {
        DevicesCommand::List(Output { json }) => list(library(places).profiles().iter(), *json),
        DevicesCommand::Search { words, json } => {
            let library = library(places);
            let found = library.search(&words.join(" "));
            if found.is_empty() && !json {
                return Err(Failure::Failed(anyhow::anyhow!(
                    "no controller that is known has the words {:?}; `conductor devices list` shows all",
                    words.join(" ")
                )));
            }
            list(found.into_iter(), *json)
        }
        DevicesCommand::Show { id, json } => {
            let library = library(places);
            let profile = library.get(id).ok_or_else(|| {
                let near = library.near(id).join(", ");
                let near = if near.is_empty() { String::new() } else { format!("; there is {near}") };
                Failure::Wrong(format!(
                    "conductor: no profile has the id {id:?}{near}; `conductor devices search` finds one"
                ))
            })?;
            if *json { Ok(terminal::json(profile)?) } else { show(profile) }
        }
        DevicesCommand::Suggest { port, json } => suggest::run(places, &library(places), port, *json),
        DevicesCommand::Check { files, json } => check(places, files, *json),
        DevicesCommand::Schema => Ok(terminal::json(&schema())?),
    }
}

/// The profiles that come with the program, and the person's own. A file with mistakes is left out, and said.
pub(super) fn library(places: &Paths) -> Library {
    let (library, left_out) = own::library(&places.home);
    for (path, mistake) in left_out {
        errln!("{}: left out: {mistake}; `conductor devices check` shows all mistakes", path.display());
    }
    library
}

fn list<'p>(profiles: impl Iterator<Item = &'p Profile>, json: bool) -> CommandResult {
    if json {
        let of = |profile: &Profile| {
            json!({
                "id": profile.id,
                "vendor": profile.vendor,
                "name": profile.name,
                "kinds": profile.kinds,
                "controls": profile.controls.len(),
                "usb": profile.identity.usb.iter().map(ToString::to_string).collect::<Vec<_>>(),
            })
        };
        terminal::json(&profiles.map(of).collect::<Vec<_>>())?;
        return Ok(());
    }
    let mut table = Table::new(["ID", "MAKER", "NAME", "KINDS", "CONTROLS"]).right(4);
    for profile in profiles {
        let kinds = profile.kinds.join(", ");
        table.row([&profile.id, &profile.vendor, &profile.name, &kinds, &profile.controls.len()]);
    }
    terminal::print_table(&table);
    Ok(())
}

fn show(profile: &Profile) -> CommandResult {
    outln!("{} {} ({})", profile.vendor, profile.name, profile.kinds.join(", "));
    if let Some(about) = &profile.about {
        outln!("{about}");
    }
    let identity = &profile.identity;
    if !identity.usb.is_empty() {
        outln!("usb: {}", identity.usb.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    }
    if identity.ports.all().next().is_some() {
        outln!("ports: {}", identity.ports.all().collect::<Vec<_>>().join(", "));
    }
    if let Some(sysex) = identity.sysex {
        let [first, second, third] = sysex.manufacturer;
        outln!("identity reply: manufacturer {first:02X} {second:02X} {third:02X}, family {}", sysex.family);
    }
    for mode in &profile.modes {
        let how = mode.how.as_deref().unwrap_or_default();
        let enter = mode.enter.as_ref().map(|bytes| format!(" ({bytes})")).unwrap_or_default();
        outln!("mode {}: {how}{enter}", mode.name);
    }
    for light in &profile.lights {
        let values: Vec<String> = light.values.iter().map(|value| format!("{} {}", value.name, value.value)).collect();
        let about = light.about.as_deref().unwrap_or_default();
        outln!("light {}: {} {} {about}", light.id, light.sysex.as_deref().unwrap_or_default(), values.join(", "));
    }
    let mut table = Table::new(["CONTROLS", "KIND", "SENDS", "LIGHT", "MODES", "SOURCE", "CONFIDENCE"]);
    for series in profile.controls.chunk_by(|one, other| one.line == other.line) {
        let [first, .., last] = series else {
            if let [only] = series {
                row(&mut table, only, &only.name, &only.message.to_string());
            }
            continue;
        };
        let names = format!("{} … {}", first.name, last.name);
        row(&mut table, first, &names, &format!("{} … {}", first.message, last.message));
    }
    terminal::print_table(&table);
    for source in &profile.sources {
        let compared = source.compared.as_ref().map(|compared| format!(" {compared}")).unwrap_or_default();
        outln!("{}: {}, {}.{compared}", source.id, source.title, source.publisher);
    }
    Ok(())
}

fn row(table: &mut Table<7>, of: &Control, names: &str, sends: &str) {
    let (light, modes) = (of.light.as_deref().unwrap_or_default(), of.modes.join(", "));
    table.row([&names, &of.kind.as_str(), &sends, &light, &modes, &of.source, &of.confidence]);
}

fn check(places: &Paths, files: &[PathBuf], json: bool) -> CommandResult {
    let mut found: Vec<(String, Result<Profile, Vec<Mistake>>)> = Vec::new();
    if files.is_empty() {
        found.extend(Library::files().map(|(name, text)| (name.to_owned(), Profile::parse(text))));
    }
    let own = if files.is_empty() { own::files(&places.home) } else { files.to_vec() };
    found.extend(own.iter().map(|path| (path.display().to_string(), own::read(path))));
    if json {
        let of = |(file, read): &(String, Result<Profile, Vec<Mistake>>)| {
            let mistakes = read.as_ref().err().cloned().unwrap_or_default();
            json!({ "file": file, "valid": read.is_ok(), "mistakes": mistakes })
        };
        terminal::json(&found.iter().map(of).collect::<Vec<_>>())?;
    }
    let (mut right, mut wrong) = (0, 0);
    for (file, read) in &found {
        match read {
            Ok(_) => right += 1,
            Err(mistakes) => {
                wrong += 1;
                if !json {
                    mistakes.iter().for_each(|mistake| outln!("{file}:{mistake}"));
                }
            }
        }
    }
    match wrong {
        0 if json => Ok(()),
        0 => {
            outln!("{right} right");
            Ok(())
        }
        _ => Err(Failure::Failed(anyhow::anyhow!("{wrong} of {} have mistakes", found.len()))),
    }
}
