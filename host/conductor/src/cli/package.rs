//! `conductor feature install`, `remove`, `enable` and others, which change the set of installed features.
//!
//! They change the package store of the home; a host that runs there notices.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::plan::Agreed;
use super::{CommandResult, Failure, Paths, load, make_home};
use conductor_api::client::Client;
use conductor_audit::caller::Caller;
use conductor_host::host;
use conductor_host::host::feature_change::FeatureChange;
use conductor_host::host::installer::{FetchOptions, Installer, InstallerError, LeftData, Removed};
use conductor_install::installation::{self, ChangeError, GrantWords, InstallPlan};
use conductor_install::receipt::{FeatureInstallReport, What};
use conductor_install::signature::{self, PublicKey, TrustedSigners};
use conductor_install::store::{InstalledFeature, PackageStore};
use conductor_package::{FeatureId, Grants, Package};
use conductor_terminal::{self as terminal, outln};

mod configured;
mod pin;
mod prompt;
mod switch;

/// What to change.
#[derive(Debug, clap::Subcommand)]
pub(super) enum ChangeCommand {
    /// Install a feature: from a file, https://…#sha256=HEX, oci://host/repository:tag, or one that
    /// comes with the host
    Install {
        /// Where it comes from
        source: String,
        /// Refuse a package that calls itself otherwise
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        options: Options,
    },
    /// Install another package of a feature, and ask only for what it may not use yet
    Upgrade {
        /// The feature
        name: String,
        /// Where it comes from [default: where the installed one came from]
        source: Option<String>,
        #[command(flatten)]
        options: Options,
    },
    /// Go back to the package before the last upgrade, with the grants that it had
    Downgrade(Named),
    /// Show where a feature came from, who signed it, and what it may use
    Info(Named),
    /// Let a feature use more
    Grant {
        /// The feature
        name: String,
        /// What: all, KIND or KIND=VALUE, such as alert or network=10.0.0.5:9000
        #[arg(required = true, value_name = "CAPABILITY")]
        capabilities: Vec<GrantWords>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Let a feature use less
    Revoke {
        /// The feature
        name: String,
        /// What: KIND or KIND=VALUE [default: everything]
        #[arg(value_name = "CAPABILITY")]
        capabilities: Vec<GrantWords>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Have hosts load a feature; ends its quarantine if it kept trapping. With --tool and its like, take back that
    /// these contributions are left out
    Enable(switch::Switched),
    /// Keep a feature installed, but have no host load it. With --tool and its like, only leave out these contributions
    Disable(switch::Switched),
    /// Take a feature out, and say what of it is left: data, grants in the configuration, mappings
    Remove {
        /// The feature
        name: String,
        /// Delete what it keeps, too; of a feature that is not installed any more, what it has left
        #[arg(long)]
        data: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Bind the grants of [features.NAME] in the configuration to the current package: shows what they grant to
    /// it, asks, and writes its id and digest into the file
    Pin {
        /// The feature
        name: String,
        #[command(flatten)]
        agreed: Agreed,
    },
}

/// Commands around keys.
#[derive(Debug, clap::Subcommand)]
pub(super) enum KeyCommand {
    /// Write a new key into a file, and print its public key
    New {
        /// The file; it must not be there yet
        file: PathBuf,
    },
}

/// One feature.
#[derive(Debug, clap::Args)]
pub(super) struct Named {
    /// The feature
    name: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How to install.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Refuse a package with another SHA-256
    #[arg(long, value_name = "sha256:HEX")]
    digest: Option<String>,
    /// Let it use this, and ask nothing: all, KIND or KIND=VALUE, such as alert or
    /// network=10.0.0.5:9000. Can be given several times. Without it, a terminal is asked; where
    /// there is none, nothing is granted
    #[arg(long, value_name = "CAPABILITY")]
    grant: Vec<GrantWords>,
    /// Put it in the place of the feature of the same name that comes with Conductor
    #[arg(long)]
    replace_bundled: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(places: &Paths, command: &ChangeCommand) -> CommandResult {
    if let ChangeCommand::Info(Named { name, json }) = command {
        return info(places, name, *json);
    }
    if let ChangeCommand::Pin { name, agreed } = command {
        return pin::run(places, name, agreed);
    }
    if let Some((name, change, json)) = feature_change(command)
        && let Some(configured) = configured::find(places, name)?
    {
        configured::change(places, name, &configured, &change, json)?;
        if change == FeatureChange::Enable(true) && lift_quarantine(places, name) == Some(true) && !json {
            outln!("  note         {LIFTED}");
        }
        return Ok(());
    }
    make_home(&places.home);
    let installer = Installer::open(&places.home, Caller::cli())
        .map_err(|error| failed(places, error))?
        .features(places.features.as_deref())
        .config_file(&places.config);
    let done = |report: Result<FeatureInstallReport, InstallerError>, json: bool| {
        print(&report.map_err(|error| failed(places, error))?, json)
    };
    match command {
        ChangeCommand::Install { source, name, options } => {
            let plan = installer.fetch(source, &wanted(name.clone(), options));
            put(places, &installer, plan.map_err(|error| failed(places, error))?, options)
        }
        ChangeCommand::Upgrade { name, source, options } => {
            let plan = installer.fetch_upgrade(name, source.as_deref(), &wanted(None, options));
            put(places, &installer, plan.map_err(|error| failed(places, error))?, options)
        }
        ChangeCommand::Downgrade(Named { name, json }) => {
            done(installer.previous(name).and_then(|plan| installer.install(plan, Vec::new())), *json)
        }
        ChangeCommand::Enable(switched) if switched.contributions().is_empty() => {
            enable(places, &installer, &switched.name, switched.json)
        }
        ChangeCommand::Remove { name, data, json } => {
            match installer.remove(name, *data).map_err(|error| failed(places, error))? {
                Removed::Feature(report) => print(&report, *json),
                Removed::Data(left) => print_deleted(name, &left, *json),
            }
        }
        command => match feature_change(command) {
            Some((name, change, json)) => done(installer.change_feature(name, &change), json),
            // `info` and `pin`, which are done above, without touching the store.
            None => Ok(()),
        },
    }
}

/// What a command changes about one feature, and whether it prints JSON. `None` for commands that do something else.
fn feature_change(command: &ChangeCommand) -> Option<(&str, FeatureChange, bool)> {
    Some(match command {
        ChangeCommand::Grant { name, capabilities, json } => (name, FeatureChange::Grant(capabilities.clone()), *json),
        ChangeCommand::Revoke { name, capabilities, json } => {
            (name, FeatureChange::Revoke(capabilities.clone()), *json)
        }
        ChangeCommand::Enable(of) => (&of.name, FeatureChange::enable(of.contributions()), of.json),
        ChangeCommand::Disable(of) => (&of.name, FeatureChange::disable(of.contributions()), of.json),
        _ => return None,
    })
}

/// Has hosts load a feature, and ends the quarantine of one that runs, wherever it came from.
fn enable(places: &Paths, installer: &Installer, name: &str, json: bool) -> CommandResult {
    let mut report = match installer.enable(name) {
        Ok(report) => report,
        Err(error @ InstallerError::Change(ChangeError::Unknown { .. })) => {
            let Some(lifted) = lift_quarantine(places, name) else { return Err(failed(places, error)) };
            if json {
                terminal::json_line(&json!({ "feature": name, "lifted": lifted }));
            } else {
                outln!("{name}: {}", if lifted { LIFTED } else { "it runs, and was not quarantined" });
            }
            return Ok(());
        }
        Err(error) => return Err(failed(places, error)),
    };
    if lift_quarantine(places, name) == Some(true) {
        report.diagnostics.push(LIFTED.to_owned());
    }
    print(&report, json)
}

/// What is said of a quarantine that a person ended.
const LIFTED: &str = "it kept trapping; its quarantine is lifted, and it is called again";

/// Ends the quarantine of a feature of the running host: whether it was in one. `None` if no host runs, or
/// has no such feature.
fn lift_quarantine(places: &Paths, name: &str) -> Option<bool> {
    Some(Client::new(&places.home).lift_quarantine(name).ok()?.lifted)
}

fn wanted(name: Option<String>, options: &Options) -> FetchOptions {
    FetchOptions { name, digest: options.digest.clone(), replace_bundled: options.replace_bundled }
}

/// Tells wrong words from failures.
fn failed(places: &Paths, error: InstallerError) -> Failure {
    match error {
        InstallerError::Change(error) => hint(places, error),
        InstallerError::Start(error) => super::started(error),
        InstallerError::NoSource(_) | InstallerError::OnePackage { .. } => {
            Failure::Wrong(format!("conductor: {error}"))
        }
        other => other.into(),
    }
}

/// Says more where a feature is meant that is not in the store, and tells wrong words from failures.
fn hint(places: &Paths, error: ChangeError) -> Failure {
    match error {
        ChangeError::Words(words) => Failure::Wrong(format!("conductor: {words}")),
        ChangeError::Unknown { ref name, .. } => {
            let bundled = places.features.as_ref().is_some_and(|folder| folder.join(format!("{name}.wasm")).is_file());
            let hint = if bundled {
                format!(
                    "; {name} comes with the host: its place is [features.{name}] in the configuration, unless you \
                     install it with `conductor feature install {name}`"
                )
            } else {
                String::new()
            };
            Failure::Failed(anyhow::anyhow!("{error}{hint}"))
        }
        other => other.into(),
    }
}

/// Asks for what a plan asks for, and installs or upgrades.
fn put(places: &Paths, installer: &Installer, plan: InstallPlan, options: &Options) -> CommandResult {
    let given = if options.grant.is_empty() {
        prompt::ask(&plan)?
    } else {
        let asks = &plan.package.info.descriptor.capabilities;
        GrantWords::select(&options.grant, asks).map_err(|error| hint(places, error.into()))?
    };
    let working = super::feature::compiling(&plan.package);
    let report = installer.install(plan, given);
    drop(working);
    print(&report.map_err(|error| failed(places, error))?, options.json)
}

fn print_deleted(name: &str, left: &[LeftData], json: bool) -> CommandResult {
    if json {
        terminal::json(&json!({ "feature": name, "deleted": left }))?;
        return Ok(());
    }
    left.iter().for_each(|data| outln!("deleted: {} in {}", data.size(), data.path.display()));
    Ok(())
}

fn print(report: &FeatureInstallReport, json: bool) -> CommandResult {
    if json {
        terminal::json(report)?;
        return Ok(());
    }
    let state = if report.enabled { "" } else { ", disabled" };
    let state = if report.what == What::Remove { ", removed" } else { state };
    outln!("{}: {} {} ({}){state}", report.what.word(), report.feature, report.version, report.id);
    outln!("  digest       sha256:{}", report.digest);
    outln!("  from         {}", report.source);
    outln!("  signed by    {}", words(&report.signers, "none"));
    prompt::print_list("may use", &report.granted, "nothing");
    prompt::print_list("may not use", &report.denied, "nothing that it asks for");
    for (title, contributions) in [("adds", &report.installed), ("leaves out", &report.skipped)] {
        for (kind, names) in contributions {
            outln!("  {title:<12} {kind} {}", names.join(" "));
        }
    }
    for diagnostic in &report.diagnostics {
        outln!("  note         {diagnostic}");
    }
    Ok(())
}

fn words(list: &[String], none: &str) -> String {
    if list.is_empty() { none.to_owned() } else { list.join("; ") }
}

fn info(places: &Paths, name: &str, json: bool) -> CommandResult {
    let store = PackageStore::at(&places.home);
    let trusted = TrustedSigners::read(&places.home)?;
    let installed = store.installed()?;
    let feature = installation::find(&installed, name).map_err(|error| hint(places, error))?;
    let package = installation::describe(&store, feature)?;
    let current = &feature.current;
    let signers: Vec<_> = current.signers.iter().map(|key| trusted.signer(*key)).collect();
    let asks = &package.info.descriptor.capabilities;
    let denied: Vec<_> = asks.iter().filter_map(|request| request.beyond(&current.grants)).collect();
    if json {
        let value = json!({
            "name": name,
            "id": feature.id,
            "enabled": feature.enabled,
            "displaces": feature.replaces_bundled.then(|| format!("builtin:{name}")),
            "version": current.version,
            "digest": current.digest,
            "source": current.origin,
            "signers": signers,
            "granted": current.grants,
            "denied": denied,
            "refused": feature.refused,
            "contributions": package.info.descriptor.contributions(),
            "installed_at": current.installed_at,
            "path": package.path,
            "previous": feature.previous,
        });
        terminal::json(&value)?;
        return Ok(());
    }
    let descriptor = &package.info.descriptor;
    let state = if feature.enabled { "" } else { ", disabled" };
    outln!("{} {} ({}){state}", descriptor.name, descriptor.version, feature.id);
    outln!("  {}", descriptor.summary.as_deref().unwrap_or("no summary"));
    outln!("  digest       sha256:{}", current.digest);
    outln!("  from         {}", current.origin);
    outln!("  signed by    {}", words(&signers.iter().map(ToString::to_string).collect::<Vec<_>>(), "none"));
    prompt::print_list("may use", &current.grants, "nothing");
    prompt::print_list("may not use", &denied, "nothing that it asks for");
    for (kind, names) in descriptor.contributions() {
        outln!("  adds         {kind} {}", names.join(" "));
    }
    for skipped in descriptor.granted(&Grants::of(&current.grants), &feature.refused).1 {
        outln!("  leaves out   {skipped}");
    }
    if is_kept_out(places, name, feature) {
        outln!("  {}", kept_out(name, feature));
    }
    if feature.replaces_bundled {
        outln!("  displaces    builtin:{name}, which comes with Conductor and is not loaded");
    }
    for line in configured_lines(places, name, &feature.id, &current.digest) {
        outln!("  {line}");
    }
    if let Some(previous) = &feature.previous {
        outln!("  before       {} sha256:{}", previous.version, previous.digest);
    }
    Ok(())
}

/// Whether an installed feature is not loaded because a feature that comes with the host has its name.
pub(super) fn is_kept_out(places: &Paths, name: &str, feature: &InstalledFeature) -> bool {
    let is_bundled = |folder: &PathBuf| folder.join(format!("{name}.wasm")).is_file();
    !feature.id.is_builtin() && !feature.replaces_bundled && places.features.as_ref().is_some_and(is_bundled)
}

/// What is said of such a feature.
pub(super) fn kept_out(name: &str, feature: &InstalledFeature) -> String {
    format!(
        "NOT LOADED: {} is installed, and builtin:{name} has its name; remove it, or install it anew with \
         --replace-bundled",
        feature.id
    )
}

/// What the configuration does about an installed package, a line each: what it grants to it besides, or why it
/// does not.
fn configured_lines(places: &Paths, name: &str, id: &FeatureId, digest: &str) -> Vec<String> {
    let Ok(loaded) = load(&places.config) else { return Vec::new() };
    let Some(configured) = loaded.config.features.get(name).and_then(|feature| host::configured_grants(name, feature))
    else {
        return Vec::new();
    };
    let file = loaded.source.file();
    match configured.meant_for(id, digest) {
        Ok(()) => {
            let lines = prompt::grants_of_file(&configured.grants);
            std::iter::once(format!("{file} grants besides"))
                .chain(lines.into_iter().map(|line| format!("  {line}")))
                .collect()
        }
        Err(_) => vec![format!("{file} has grants for {}, and this package gets none of them", configured.id)],
    }
}

/// `conductor feature key new`.
pub(super) fn new_key(file: &Path) -> CommandResult {
    let key = signature::new_key()?;
    signature::write_key(file, &key)?;
    outln!("{}", PublicKey::from(&key));
    Ok(())
}

/// `conductor feature sign`.
pub(super) fn sign(file: &Path, key: &Path, output: &Path) -> CommandResult {
    let package = Package::read(file)?;
    let key = signature::read_key(key)?;
    let signed =
        signature::sign(&package.bytes, &key).map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?;
    std::fs::write(output, signed).map_err(|error| anyhow::anyhow!("{}: {error}", output.display()))?;
    outln!("{}: signed by {}", output.display(), PublicKey::from(&key));
    Ok(())
}

/// `conductor feature trust`.
pub(super) fn trust(places: &Paths, name: &str, public_key: &str) -> CommandResult {
    let key: PublicKey = public_key.parse().map_err(|error| Failure::Wrong(format!("conductor: {error}")))?;
    make_home(&places.home);
    TrustedSigners::add(&places.home, name, key)?;
    outln!("{name} is {key}");
    Ok(())
}
