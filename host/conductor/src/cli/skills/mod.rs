//! `conductor skills`: what agents read, from the home, the project, the program and the features of the running host.
//!
//! Only skills of features need a host that runs.

mod fetch;

use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueEnum};
use serde::Serialize;

use super::{CommandResult, Failure, Output, Paths};
use conductor_api::client::{Client, if_running};
use conductor_audit::caller::Caller;
use conductor_skills::agents::Agent;
use conductor_skills::install::{self, Outcome, Prepared};
use conductor_skills::library::{FindError, Library, Place, SearchFolder, project_root};
use conductor_skills::problem::{Problem, Severity};
use conductor_skills::skill::Skill;
use conductor_skills::source::Source;
use conductor_skills::view::{PlaceView, SkillFileText, SkillText, SkillView};
use conductor_stdx::plural::plural;
use conductor_terminal::{self as terminal, Lines, Table, errln, outln};

#[derive(Debug, Subcommand)]
pub(super) enum SkillsCommand {
    /// List skills: those of the home, the project, the program, and of the running host's features
    List(Output),
    /// Print a skill, or one of its files
    Show {
        /// Its name
        name: String,
        /// A file of it, such as references/actions.md
        #[arg(long, value_name = "PATH")]
        file: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check folders against the specification of Agent Skills. Exit code 1 where one is against it
    Validate {
        /// The folders
        #[arg(required = true)]
        folders: Vec<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Install a skill: one of the program, a folder, an archive (.tar.gz), https://…#sha256=HEX, or
    /// github:owner/repository/path@commit. Nothing of it is run
    Install {
        /// Where it comes from
        source: String,
        #[command(flatten)]
        to: Destination,
        /// Refuse an archive with another SHA-256
        #[arg(long, value_name = "sha256:HEX")]
        digest: Option<String>,
        /// Put it in the place of another one of that name
        #[arg(long)]
        replace: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a skill that was installed
    Remove {
        /// Its name
        name: String,
        #[command(flatten)]
        to: Destination,
        /// Also if it was changed, or put there by someone else
        #[arg(long)]
        force: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print where skills are looked for, the first first
    Path(Output),
}

/// Into whose folder.
#[derive(Debug, clap::Args)]
pub(super) struct Destination {
    /// In the folder of this agent [default: Conductor's own]
    #[arg(long = "for", value_name = "AGENT")]
    agent: Option<AgentName>,
    /// In this project's folder of the agent, in place of the user's
    #[arg(long, requires = "agent")]
    project: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum AgentName {
    Claude,
    Codex,
    Cursor,
    Vscode,
}

impl Destination {
    fn folder(&self, home: &Path) -> Result<PathBuf, Failure> {
        let agent = match self.agent {
            None => return Ok(home.join(conductor_skills::library::HOME_FOLDER)),
            Some(AgentName::Claude) => Agent::Claude,
            Some(AgentName::Codex) => Agent::Codex,
            Some(AgentName::Cursor) => Agent::Cursor,
            Some(AgentName::Vscode) => Agent::VsCode,
        };
        if self.project {
            return Ok(agent
                .of_project(&project().ok_or_else(|| Failure::Wrong("conductor: there is no project here".into()))?));
        }
        let user = std::env::home_dir().ok_or_else(|| Failure::Wrong("conductor: there is no home folder".into()))?;
        Ok(agent.of_user(&user))
    }
}

pub(super) fn run(places: &Paths, command: &SkillsCommand) -> CommandResult {
    match command {
        SkillsCommand::List(output) => list(places, output.json),
        SkillsCommand::Show { name, file, json } => show(places, name, file.as_deref(), *json),
        SkillsCommand::Validate { folders, json } => validate(folders, *json),
        SkillsCommand::Install { source, to, digest, replace, json } => {
            let prepared = prepare(places, source, digest.as_deref())?;
            install(places, &prepared, &to.folder(&places.home)?, *replace, *json)
        }
        SkillsCommand::Remove { name, to, force, json } => {
            let removed = install::remove(&places.home, &to.folder(&places.home)?, name, *force, &Caller::cli())?;
            if *json {
                terminal::json(&serde_json::json!({ "removed": removed }))?;
            } else {
                outln!("{} is removed", removed.display());
            }
            Ok(())
        }
        SkillsCommand::Path(output) => path(places, output.json),
    }
}

/// The project around the current folder. The folder of a user is none.
pub(super) fn project() -> Option<PathBuf> {
    let root = project_root(&std::env::current_dir().ok()?);
    (std::env::home_dir().as_ref() != Some(&root)).then_some(root)
}

fn library(places: &Paths) -> Library {
    Library::new(Some(&places.home), project().as_deref())
}

/// All skills: those that are found here, and those that features of the running host contribute.
fn all(places: &Paths) -> Result<Vec<SkillView>, Failure> {
    let mut views: Vec<SkillView> = library(places).all(&[]).iter().map(SkillView::from).collect();
    let of_host = if_running(Client::new(&places.home).skills())?.unwrap_or_default();
    for mut view in of_host.into_iter().filter(|view| view.place == PlaceView::Feature) {
        let first = views.iter().find(|other| other.name == view.name && other.refused.is_empty());
        view.shadowed_by = first.map(|other| other.place);
        views.push(view);
    }
    Ok(views)
}

fn list(places: &Paths, json: bool) -> CommandResult {
    let views = all(places)?;
    if json {
        terminal::json(&views)?;
        return Ok(());
    }
    let mut table = Table::new(["SKILL", "WHERE", "WHAT"]);
    for view in &views {
        let place = view.feature.clone().unwrap_or_else(|| view.place.to_string());
        let what = match (&view.shadowed_by, view.refused.first()) {
            (_, Some(why)) => format!("not used: {why}"),
            (Some(by), None) => format!("not used: there is one in {by}"),
            (None, None) => view.description.clone(),
        };
        table.row([&view.name, &place, &what]);
    }
    terminal::print_table(&table);
    Ok(())
}

fn show(places: &Paths, name: &str, file: Option<&str>, json: bool) -> CommandResult {
    let named = library(places).find(name, &[]);
    let client = Client::new(&places.home);
    if let Some(path) = file {
        let view = match &named {
            Err(FindError::Unknown { .. }) => if_running(client.skill_file(name, path))?,
            _ => None,
        };
        let view = match view {
            Some(view) => view,
            None => {
                let skill = named?.skill;
                SkillFileText { skill: skill.name.clone(), path: path.to_owned(), text: skill.read(path)? }
            }
        };
        if json {
            terminal::json(&view)?
        } else {
            print(&view.text)
        }
        return Ok(());
    }
    let view = match &named {
        Err(FindError::Unknown { .. }) => if_running(client.skill(name))?,
        _ => None,
    };
    let view = match view {
        Some(view) => view,
        None => {
            let named = named?;
            SkillText::new(&named.found, &named.skill, named.by_alias)
        }
    };
    if json {
        terminal::json(&view)?;
        return Ok(());
    }
    if view.by_alias {
        errln!("{name} is an old name of {}", view.skill.name);
    }
    print(&view.text);
    if view.files.len() > 1 {
        let files: Vec<&str> = view.files[1..].iter().map(|file| file.path.as_str()).collect();
        errln!("--file prints one of {}", files.join(", "));
    }
    Ok(())
}

fn print(text: &str) {
    let mut lines = Lines::new();
    lines.push_text("", text);
    terminal::print(&lines);
}

/// What was found about one folder.
#[derive(Debug, Serialize)]
struct Checked {
    folder: PathBuf,
    valid: bool,
    problems: Vec<Found>,
}

#[derive(Debug, Serialize)]
struct Found {
    /// `error`, or `advice`.
    severity: &'static str,
    message: String,
}

fn validate(folders: &[PathBuf], json: bool) -> CommandResult {
    let check = |folder: &PathBuf| {
        // A folder that is named `.` has a name as well.
        let loaded = folder.canonicalize().ok().map_or_else(|| Skill::load(folder), |folder| Skill::load(&folder));
        let problems = match loaded {
            Ok(skill) => skill.findings,
            Err(refused) => refused.problems,
        };
        let valid = problems.iter().all(|problem| problem.severity() == Severity::Advice);
        let found = |problem: &Problem| Found {
            severity: if problem.severity() == Severity::Advice { "advice" } else { "error" },
            message: problem.to_string(),
        };
        Checked { folder: folder.clone(), valid, problems: problems.iter().map(found).collect() }
    };
    let checked: Vec<Checked> = folders.iter().map(check).collect();
    let wrong = checked.iter().filter(|one| !one.valid).count();
    if json {
        terminal::json(&checked)?;
    } else {
        for one in &checked {
            outln!("{}: {}", one.folder.display(), if one.valid { "valid" } else { "not valid" });
            for found in &one.problems {
                outln!("  {}: {}", found.severity, found.message);
            }
        }
    }
    match wrong {
        0 => Ok(()),
        _ => Err(Failure::Failed(anyhow::anyhow!("{} not valid", plural(wrong, "skill")))),
    }
}

/// What is to be installed, checked as a whole. Nothing has been written.
fn prepare(places: &Paths, source: &str, digest: Option<&str>) -> Result<Prepared, Failure> {
    let source = Source::parse(source, digest).map_err(|error| Failure::Wrong(format!("conductor: {error}")))?;
    Ok(match &source {
        Source::Bundled(name) => {
            let named = Library::of(Vec::new()).find(name, &[])?;
            Prepared::of_skill(&named.skill, format!("bundled {}", named.skill.name))?
        }
        Source::Folder(folder) => Prepared::of_folder(folder)?,
        Source::Archive(file, digest) => fetch::archive(file, digest.as_deref())?,
        Source::Url(url, digest) => fetch::url(url, digest)?,
        Source::GitHub(place) => fetch::github(place)?,
    })
    .inspect(|prepared| {
        tracing::debug!("{} from {} for {}", prepared.skill().name, prepared.origin(), places.home.display())
    })
}

fn install(places: &Paths, prepared: &Prepared, into: &Path, replace: bool, json: bool) -> CommandResult {
    super::make_home(&places.home);
    let (folder, outcome) = prepared.install(&places.home, into, replace, &Caller::cli())?;
    let skill = prepared.skill();
    let files = skill.resources().len() + 1;
    if json {
        let outcome = match outcome {
            Outcome::Installed => "installed",
            Outcome::Replaced => "replaced",
            Outcome::Unchanged => "unchanged",
        };
        let (origin, digest) = (prepared.origin(), format!("sha256:{}", skill.digest()));
        terminal::json(&serde_json::json!({
            "skill": skill.name, "folder": folder, "outcome": outcome, "origin": origin, "digest": digest, "files": files,
        }))?;
        return Ok(());
    }
    match outcome {
        Outcome::Installed => outln!("{} is in {}: {}", skill.name, folder.display(), plural(files, "file")),
        Outcome::Replaced => outln!("{} was replaced in {}: {}", skill.name, folder.display(), plural(files, "file")),
        Outcome::Unchanged => outln!("{} is in {} already", skill.name, folder.display()),
    }
    outln!("from {}, digest sha256:{}", prepared.origin(), skill.digest());
    if skill.resources().iter().any(|file| file.path.starts_with("scripts/")) {
        outln!("It has scripts. Conductor runs none of them; an agent may, if you let it.");
    }
    Ok(())
}

fn path(places: &Paths, json: bool) -> CommandResult {
    let library = library(places);
    let folders = library.folders();
    if json {
        let view = |folder: &SearchFolder| {
            let place = PlaceView::from(folder.place);
            serde_json::json!({ "place": place, "path": folder.path, "exists": folder.path.is_dir() })
        };
        terminal::json(&folders.iter().map(view).collect::<Vec<_>>())?;
        return Ok(());
    }
    for folder in folders {
        let note = if folder.path.is_dir() { "" } else { " (not there)" };
        outln!("{}: {}{note}", PlaceView::from(folder.place), folder.path.display());
    }
    outln!("{}: in this program", PlaceView::from(Place::Bundled));
    outln!("{}: what features of the running host contribute", PlaceView::from(Place::Feature));
    Ok(())
}
