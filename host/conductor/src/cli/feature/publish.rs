//! `conductor feature publish`: a package that is checked and signed, into an OCI registry.

use std::path::PathBuf;

use serde_json::json;

use super::super::{CommandResult, Failure};
use super::build;
use conductor_install::publish::{Account, Destination, publish};
use conductor_install::signature::{self, PublicKey};
use conductor_package::{Package, check};
use conductor_terminal::{self as terminal, outln};

/// Where the password of a registry's account may stand.
const PASSWORD: &str = "CONDUCTOR_REGISTRY_PASSWORD";

/// What to publish, and where.
#[derive(Debug, clap::Args)]
pub(in super::super) struct Publish {
    /// Where it goes: oci://host/repository:tag. Without a tag it is the package's version
    to: String,
    /// The `.wasm` file, or the folder of a feature that was built
    #[arg(default_value = ".")]
    package: PathBuf,
    /// Sign it with this key, from `conductor feature key new`; the file stays as it is
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Publish it even if it is not signed
    #[arg(long, conflicts_with = "key")]
    unsigned: bool,
    /// Replace the package that the tag names already
    #[arg(long)]
    replace: bool,
    /// The registry's account; its password is in $CONDUCTOR_REGISTRY_PASSWORD, else it is asked for
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Publish) -> CommandResult {
    let wrong = |problem: &dyn std::fmt::Display| Failure::Wrong(format!("conductor: {problem}"));
    let path = &arguments.package;
    let file = if path.is_dir() { build::package_path(path)? } else { path.clone() };
    if path.is_dir() && !file.is_file() {
        let folder = path.display();
        let file = file.display();
        return Err(wrong(&format_args!(
            "{file} is not there; build it first, with `conductor feature build {folder}`"
        )));
    }
    let mut package = Package::read(&file)?;
    check::check(&package.info).map_err(|errors| {
        let list: Vec<String> = errors.iter().map(|error| format!("{}: {error}", file.display())).collect();
        Failure::Failed(anyhow::anyhow!("{}", list.join("\n")))
    })?;
    if let Some(key) = &arguments.key {
        let signed = signature::sign(&package.bytes, &signature::read_key(key)?)
            .map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?;
        package = Package::from_bytes(&file, signed)?;
    }
    let signers = signature::verify(&package.bytes).map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?;
    if signers.is_empty() && !arguments.unsigned {
        return Err(wrong(&format_args!(
            "{}: it is not signed, so who published it can't be verified. Sign it with --key FILE \
             (`conductor feature key new FILE` makes one), or publish it with --unsigned",
            file.display()
        )));
    }
    let descriptor = &package.info.descriptor;
    let to = Destination::parse(&arguments.to, &descriptor.version).map_err(|error| wrong(&error))?;
    let account = arguments.user.as_deref().map(account).transpose()?;
    let published = publish(&package, &to, account.as_ref(), arguments.replace)?;
    let (shown, digest) = (format!("oci://{}", published.reference), &package.info.digest);
    if arguments.json {
        let signers: Vec<String> = signers.iter().map(PublicKey::to_string).collect();
        terminal::json(&json!({
            "reference": shown,
            "manifest": published.manifest,
            "id": descriptor.id,
            "version": descriptor.version,
            "digest": digest,
            "signers": signers,
            "unchanged": published.is_unchanged,
        }))?;
        return Ok(());
    }
    let done = if published.is_unchanged { "already published" } else { "published" };
    outln!("{done}: {} {}", descriptor.id, descriptor.version);
    outln!("  digest       sha256:{digest}");
    outln!("  manifest     {}", published.manifest);
    for signer in &signers {
        outln!("  signed by    {signer}");
    }
    if signers.is_empty() {
        outln!("  signed by    none");
    }
    outln!("  to install   conductor feature install {shown}");
    Ok(())
}

/// The account of a name: its password is in the environment, or a person types it.
fn account(name: &str) -> Result<Account, Failure> {
    let password = match std::env::var(PASSWORD) {
        Ok(password) => password,
        Err(_) => terminal::ask_secret(format_args!("password of {name} (or set {PASSWORD}):"))
            .map_err(|error| Failure::Wrong(format!("conductor: no password: {PASSWORD} is not set, and {error}")))?,
    };
    Ok(Account { name: name.to_owned(), password })
}
