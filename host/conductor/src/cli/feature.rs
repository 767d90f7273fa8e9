//! `conductor feature`: lists installed features and their state, and inspects packages.

use std::path::{Path, PathBuf};

use super::{CommandResult, Failure, Paths, beside, load, package};

mod top;

use conductor_api::client::Client;
use conductor_host::host;
use conductor_install::signature::{self, Signer, TrustedSigners};
use conductor_install::store::PackageStore;
use conductor_package::descriptor::TaskStart;
use conductor_package::file::PackageInfo;
use conductor_package::{Package, consent};
use conductor_registry::FeatureReport;
use conductor_terminal::{self as terminal, Lines, outln};

pub(super) use build::compiling;

pub(super) mod author;
mod build;
mod check;
mod harness;
mod new;
mod publish;
mod scripted_http;
mod sdk;
mod shared_code;
mod world;

/// What to do with features.
#[derive(Debug, clap::Subcommand)]
pub(super) enum FeatureCommand {
    /// List the features; with a running host, with what they have done and how often they failed
    List(super::Output),
    /// Show what the features of the running host use, again and again
    Top {
        /// Seconds between two looks
        #[arg(long, default_value_t = 1.0, value_parser = seconds)]
        every: f64,
        /// How many looks; until Ctrl-C when left out
        #[arg(long)]
        looks: Option<u32>,
        /// Print JSON, one object a line for each feature
        #[arg(long)]
        json: bool,
    },
    #[command(flatten)]
    Author(author::AuthorCommand),
    /// Show what a package says about itself. Nothing in it is run
    Inspect {
        /// The `.wasm` file
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    #[command(flatten)]
    Change(package::ChangeCommand),
    /// Start or stop a background task of a feature of the running host
    #[command(subcommand)]
    Task(TaskCommand),
    /// Make keys to sign packages with
    #[command(subcommand)]
    Key(package::KeyCommand),
    /// Sign a package
    Sign {
        /// The `.wasm` file
        file: PathBuf,
        /// The key file, from `conductor feature key new`
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// Where to write the signed package
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Give a name to a signer that you trust; kept in trusted-signers.toml in the home
    Trust {
        /// The name, of a-z, 0-9, - and _
        name: String,
        /// The public key: 64 hex digits
        public_key: String,
    },
}

/// What to do with a background task.
#[derive(Debug, clap::Subcommand)]
pub(super) enum TaskCommand {
    /// Start it; without effect if it runs
    Start(TaskNamed),
    /// Have it end; without effect if it does not run
    Stop(TaskNamed),
}

/// One background task.
#[derive(Debug, clap::Args)]
pub(super) struct TaskNamed {
    /// The feature
    name: String,
    /// The task
    task: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let range = 0.1..=3600.0;
    text.parse().ok().filter(|seconds| range.contains(seconds)).ok_or_else(|| "0.1 to 3600".into())
}

pub(super) fn run(places: &Paths, command: &FeatureCommand) -> CommandResult {
    match command {
        FeatureCommand::List(output) => list(places, output.json),
        FeatureCommand::Top { every, looks, json } => top::run(places, *every, *looks, *json),
        FeatureCommand::Inspect { file, json } => inspect(places, file, *json),
        FeatureCommand::Change(command) => package::run(places, command),
        FeatureCommand::Task(TaskCommand::Start(named)) => switch_task(places, named, true),
        FeatureCommand::Task(TaskCommand::Stop(named)) => switch_task(places, named, false),
        FeatureCommand::Key(package::KeyCommand::New { file }) => package::new_key(file),
        FeatureCommand::Sign { file, key, output } => package::sign(file, key, output),
        FeatureCommand::Trust { name, public_key } => package::trust(places, name, public_key),
        FeatureCommand::Author(command) => author::run(|| Ok(places.home.clone()), command),
    }
}

fn list(places: &Paths, json: bool) -> CommandResult {
    let (features, running) = match running(places) {
        Some(features) => (features, true),
        None => {
            let loaded = if places.config.exists() {
                load(&places.config)?
            } else {
                conductor_config::parse("", "nothing").map_err(super::wrong)?
            };
            (host::installed(&loaded, Some(&places.home), places.features.as_deref()).map_err(super::started)?, false)
        }
    };
    if json {
        terminal::json(&features)?;
        return Ok(());
    }
    outln!("{:<26} {:<8} {:<10} {:>8} {:>8} {:>8}  ADDS", "FEATURE", "VERSION", "DIGEST", "DONE", "FAILED", "TRAPPED");
    features.iter().for_each(print_feature);
    for (name, feature) in &PackageStore::at(&places.home).installed()?.features {
        if !feature.enabled {
            print_beside(name, &format!("DISABLED; `conductor feature enable {name}`"));
        } else if package::is_kept_out(places, name, feature) {
            print_beside(name, &package::kept_out(name, feature));
        }
    }
    if !running {
        outln!("(no host is running: nothing was done yet)");
    }
    Ok(())
}

/// Starts or stops a background task.
fn switch_task(places: &Paths, named: &TaskNamed, start: bool) -> CommandResult {
    let task = Client::new(&places.home).switch_task(&named.name, &named.task, start)?;
    if named.json {
        terminal::json(&task)?;
    } else {
        outln!("{} of {}: {}", task.name, named.name, task.state);
    }
    Ok(())
}

/// A feature in the list: a line, and one more for each thing that a person should know of it.
fn print_feature(feature: &FeatureReport) {
    let more = |what: &dyn std::fmt::Display| print_beside("", &what.to_string());
    let displaced = feature.displaces.iter();
    let displaced = displaced.map(|it| format!("displaces {it}, which comes with Conductor and is not loaded"));
    let package = match (&feature.package, &feature.refused) {
        (Some(package), None) => package,
        (_, refused) => {
            print_beside(&feature.name, &format!("NOT INSTALLED: {}", refused.as_deref().unwrap_or("-")));
            return displaced.for_each(|line| more(&line));
        }
    };
    let tools: Vec<String> = package.tools.iter().map(ToString::to_string).collect();
    let adds = [&package.actions, &tools, &package.providers, &package.skills];
    let adds: Vec<String> = adds.into_iter().flatten().cloned().collect();
    let adds = few(&adds);
    let row = format!(
        "{:<26} {:<8} {:<10} {:>8} {:>8} {:>8}",
        package.id,
        package.version,
        package.digest.get(..8).unwrap_or("-"),
        feature.performed + feature.calls,
        feature.failed + feature.calls_failed,
        feature.trapped,
    );
    let whole = format!("{row}  {adds}");
    if terminal::output_columns().is_none_or(|columns| terminal::width(&whole) <= usize::from(columns)) {
        outln!("{whole}");
    } else {
        outln!("{row}");
        more(&format_args!("adds {adds}"));
    }
    if let Some(left) = feature.quarantine {
        let enable = format_args!("`conductor feature enable {}`", feature.name);
        more(&format_args!("kept trapping; quarantined for {left} s more, or until {enable}"));
    }
    displaced.for_each(|line| more(&line));
    feature.denied.iter().for_each(|denied| more(&format_args!("not granted: {denied}")));
    feature.skipped.iter().for_each(|skipped| more(&format_args!("left out: {skipped}")));
    for task in &feature.tasks {
        more(&format_args!("task {}: {}", task.name, task.state));
    }
    if let Some(failure) = &feature.last_failure {
        more(&format_args!("last failure: {failure}"));
    }
}

/// Prints text beside a name of the list.
fn print_beside(name: &str, text: &str) {
    const NAME: usize = 26;
    beside::print(NAME, name, text);
}

/// The first of what a feature adds; `conductor feature info` has the rest.
fn few(adds: &[String]) -> String {
    const MAX_LISTED: usize = 4;
    match adds.len().checked_sub(MAX_LISTED) {
        None | Some(0) => adds.join(", "),
        Some(more) => format!("{} and {more} more", adds[..MAX_LISTED].join(", ")),
    }
}

/// The features of the host that runs in this home; `None` if none runs.
fn running(places: &Paths) -> Option<Vec<FeatureReport>> {
    Client::new(&places.home).features().ok()
}

fn inspect(places: &Paths, file: &Path, json: bool) -> CommandResult {
    let package = Package::read(file)?;
    let info = &package.info;
    let checked = conductor_package::check::check(info);
    let trusted = TrustedSigners::read(&places.home)?;
    let signed = signature::verify(&package.bytes);
    let signers: Vec<Signer> = signed.iter().flatten().map(|key| trusted.signer(*key)).collect();
    let misfits = checked.as_ref().err().into_iter().flatten().map(ToString::to_string);
    let problems: Vec<String> = misfits.chain(signed.as_ref().err().map(ToString::to_string)).collect();
    if json {
        let mut value = serde_json::to_value(info)?;
        value["signers"] = serde_json::to_value(&signers)?;
        value["problems"] = serde_json::to_value(&problems)?;
        terminal::json(&value)?;
    } else {
        terminal::print(&overview(info, true));
        outln!("signed by");
        signers.iter().for_each(|signer| outln!("  {signer}"));
        if signers.is_empty() {
            outln!("  none");
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = problems.iter().map(|problem| format!("{}: {problem}", file.display())).collect();
    Err(Failure::Failed(anyhow::anyhow!("{}", list.join("\n"))))
}

/// What a package says about itself, without its imports and exports. Nothing in it is run.
///
/// # Errors
/// What is wrong with it.
fn inspected(file: &Path) -> Result<Lines, Failure> {
    let info = Package::read(file)?.info;
    conductor_package::check::check(&info).map_err(|errors| {
        let list: Vec<String> = errors.iter().map(|error| format!("{}: {error}", file.display())).collect();
        Failure::Failed(anyhow::anyhow!("{}", list.join("\n")))
    })?;
    Ok(overview(&info, false))
}

/// What a package says about itself, with or without its imports and exports.
fn overview(info: &PackageInfo, with_interfaces: bool) -> Lines {
    let descriptor = &info.descriptor;
    let mut out = Lines::new();
    out.push(format_args!("{} {} ({})", descriptor.name, descriptor.version, descriptor.id));
    out.push(format_args!("  {}", descriptor.summary.as_deref().unwrap_or("no summary")));
    out.push(format_args!("contract   {}", descriptor.contract));
    out.push(format_args!("license    {}", descriptor.license.as_deref().unwrap_or("not said")));
    out.push(format_args!("size       {} bytes", info.size));
    out.push(format_args!("digest     sha256:{}", info.digest));
    out.push("asks for");
    for request in &descriptor.capabilities {
        let need = if request.required { "required" } else { "optional" };
        out.push(format_args!("  {} ({need}): {}", request.key(), request.reason));
        for line in consent::lines(&request.capability) {
            out.push(format_args!("    {line}"));
        }
        if !request.capability.must_be_named()
            && let Err(why) = consent::whole(&request.capability)
        {
            out.push(format_args!("    note: it {why}"));
        }
    }
    if descriptor.capabilities.is_empty() {
        out.push("  nothing");
    }
    out.push("adds");
    for action in &descriptor.actions {
        out.push(format_args!("  action {}: {}", action.name, action.summary));
    }
    for tool in &descriptor.tools {
        out.push(format_args!("  tool {} ({}): {}", tool.name, tool.tier.as_str(), tool.summary));
    }
    for hook in &descriptor.hooks {
        out.push(format_args!("  hook {}: {}", hook.point.as_str(), hook.summary));
    }
    for task in &descriptor.tasks {
        let start = if task.start == TaskStart::OnDemand { " (on demand)" } else { "" };
        out.push(format_args!("  task {}{start}: {}", task.name, task.summary));
    }
    if descriptor.data_version() > 1 {
        out.push(format_args!("  data of version {}", descriptor.data_version()));
    }
    for skill in &descriptor.skills {
        out.push(format_args!("  skill {}: {}", skill.name, skill.summary));
    }
    if !with_interfaces {
        return out;
    }
    for (title, names) in [("imports", &info.imports), ("exports", &info.exports)] {
        out.push(format_args!("{title}"));
        for name in names {
            out.push(format_args!("  {name}"));
        }
    }
    out
}
