//! `conductor feature pin`: binds the grants of the configuration to the current package.

use serde_json::json;

use super::super::plan::{self, Agreed};
use super::super::{CommandResult, Failure, Paths, config_file, load};
use super::prompt;
use conductor_config as config;
use conductor_config_text::edit::Change;
use conductor_install::installation;
use conductor_install::signature::{self, TrustedSigners};
use conductor_install::store::PackageStore;
use conductor_package::{Package, consent};
use conductor_terminal::{self as terminal, Lines, outln};

pub(super) fn run(places: &Paths, name: &str, agreed: &Agreed) -> CommandResult {
    let loaded = load(&places.config)?;
    let Some(feature) = loaded.config.features.get(name) else {
        return Err(Failure::Wrong(format!(
            "conductor: there is no [features.{name}] in {}; write it with `path` and `grants`, and pin it then",
            loaded.source.file()
        )));
    };
    let package = package(places, name, Some(feature))?;
    let (id, digest) = (&package.info.descriptor.id, format!("sha256:{}", package.info.digest));
    if id.name() != name {
        return Err(Failure::Wrong(format!(
            "conductor: {}: is called {:?} in its descriptor; write it as [features.{1}]",
            package.path.display(),
            id.name()
        )));
    }
    if id.is_builtin() {
        return Err(Failure::Wrong(format!(
            "conductor: {id} comes with Conductor: its grants need no pin. Remove `id` and `digest` under \
             [features.{name}] if they are for something else"
        )));
    }
    if feature.id.as_deref() == Some(id.as_str()) && feature.digest.as_deref() == Some(digest.as_str()) {
        return report(
            agreed,
            name,
            id.as_str(),
            &digest,
            false,
            format!("{name} is pinned to this package: {digest}"),
        );
    }

    terminal::eprint(&shown(places, name, feature, &package)?);
    if !plan::agrees(&format!("Give this to {name}?"), agreed)? {
        return report(agreed, name, id.as_str(), &digest, false, "nothing is written".to_owned());
    }
    let set = |key: &str, value: &str| Change {
        path: ["features", name, key].map(str::to_owned).to_vec(),
        value: Some(json!(value)),
    };
    config_file::write(&loaded, &[set("id", id.as_str()), set("digest", &digest)])?;
    report(agreed, name, id.as_str(), &digest, true, format!("{name} is {id} {digest} from now on"))
}

/// The package that the configuration means under this name.
pub(super) fn package(places: &Paths, name: &str, feature: Option<&config::Feature>) -> Result<Package, Failure> {
    if let Some(path) = feature.and_then(|feature| feature.path.as_ref()) {
        let folder = places.config.parent().unwrap_or(std::path::Path::new("."));
        return Ok(Package::read(&folder.join(path))?);
    }
    let store = PackageStore::at(&places.home);
    let installed = store.installed()?;
    match installed.features.get(name) {
        Some(feature) => Ok(installation::describe(&store, feature)?),
        None => {
            let folder = places.features.as_ref();
            let bundled = folder.map(|folder| folder.join(format!("{name}.wasm"))).filter(|file| file.is_file());
            bundled.map(|file| Package::read(&file)).transpose()?.ok_or_else(|| {
                Failure::Wrong(format!(
                    "conductor: there is no package for {name}: [features.{name}] has no `path`, and none is installed"
                ))
            })
        }
    }
}

/// What a person reads before they decide: which package it is, and what the file gives to it.
fn shown(places: &Paths, name: &str, feature: &config::Feature, package: &Package) -> Result<Lines, Failure> {
    let descriptor = &package.info.descriptor;
    let mut out = Lines::new();
    out.push(format_args!("{} {} ({})", descriptor.name, descriptor.version, descriptor.id));
    out.push(format_args!("  from         {}", package.path.display()));
    out.push(format_args!("  digest       sha256:{}", package.info.digest));
    let trusted = TrustedSigners::read(&places.home)?;
    let signers = signature::verify(&package.bytes).map_err(|error| anyhow::anyhow!("{name}: {error}"))?;
    let signers: Vec<String> = signers.iter().map(|key| trusted.signer(*key).to_string()).collect();
    let signers = if signers.is_empty() { "none".to_owned() } else { signers.join("; ") };
    out.push(format_args!("  signed by    {signers}"));
    if let Some(id) = feature.id.as_deref().filter(|id| *id != descriptor.id.as_str()) {
        out.push(format_args!("  note: the file has the grants for {id}; this is another feature"));
    }
    let grants = feature.grants.clone().asked_for(&descriptor.capabilities);
    let lines = prompt::grants_of_file(&grants);
    out.push(format_args!(
        "  [features.{name}.grants] gives to it{}",
        if lines.is_empty() { " nothing that it asks for" } else { "" }
    ));
    for line in lines {
        out.push(format_args!("    {line}"));
    }
    let lacks: Vec<_> = descriptor.capabilities.iter().filter(|request| !grants.answers(&request.capability)).collect();
    for request in lacks {
        let need = if request.required { "and can't do without" } else { "and does not get" };
        let line = conductor_package::Grants::advice(&request.capability);
        out.push(format_args!(
            "  it asks for {} {need}; `{}` under [features.{name}.grants]",
            consent::line(request),
            line
        ));
    }
    if grants.store > 0 {
        let id = &descriptor.id;
        out.push(format_args!("  its data is that of every package of the id {id} that this file names"));
    }
    Ok(out)
}

fn report(agreed: &Agreed, name: &str, id: &str, digest: &str, changed: bool, text: String) -> CommandResult {
    if agreed.json {
        let answer = json!({ "feature": name, "id": id, "digest": digest, "changed": changed });
        terminal::json(&answer)?;
    } else {
        outln!("{text}");
    }
    Ok(())
}
